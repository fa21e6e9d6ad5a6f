"""``slacktide settings``."""

from __future__ import annotations

import click

from slacktide.cli.options import AS_JSON, echo_json
from slacktide.cli.text import columns


@click.command()
@click.option("--markdown", is_flag=True, help="The page docs/settings.md.")
@AS_JSON
def settings(markdown: bool, as_json: bool) -> None:
    """Lists every setting: default, what is allowed, what it means.

    \b
      slacktide settings | grep patience
      slacktide simulate WORKLOAD HOSTS --set policy.patience=30
    """
    from dataclasses import asdict

    from slacktide.settings_page import describe, page, shown

    if markdown:
        click.echo(page(), nl=False)
        return
    if as_json:
        echo_json([asdict(row) for row in describe()])
        return
    for row in describe():
        click.echo(f"{row.key} = {shown(row.default)}  [{row.allowed.replace('`', '')}]")
        if row.published != row.default:
            click.echo(f"    --preset published: {shown(row.published)}")
        if row.meaning:
            click.echo(click.wrap_text(row.meaning.replace("`", ""), columns(), "    ", "    "))
