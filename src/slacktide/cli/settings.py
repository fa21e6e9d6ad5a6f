"""``slacktide settings``."""

from __future__ import annotations

import click


@click.command()
@click.option("--markdown", is_flag=True, help="The page docs/settings.md.")
def settings(markdown: bool) -> None:
    """Lists every setting: default, what is allowed, what it means.

    \b
      slacktide settings | grep patience
      slacktide simulate WORKLOAD HOSTS --set policy.patience=30
    """
    from slacktide.settings_page import describe, page, shown

    if markdown:
        click.echo(page(), nl=False)
        return
    for row in describe():
        click.echo(f"{row.key} = {shown(row.default)}  [{row.allowed.replace('`', '')}]")
        if row.published != row.default:
            click.echo(f"    --preset published: {shown(row.published)}")
        if row.meaning:
            click.echo(click.wrap_text(row.meaning.replace("`", ""), 110, "    ", "    "))
