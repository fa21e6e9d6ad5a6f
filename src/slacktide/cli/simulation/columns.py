"""``--columns``: a table with columns of one's own in place of a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE

if TYPE_CHECKING:
    from slacktide.inputs.mapped.reading import Mapped
    from slacktide.model import ServiceClass

COLUMNS = click.option(
    "--columns", metavar="MAPPING",
    help='Of a WORKLOAD with columns of its own: "id=pod_uid, admission=created_at:ms, class=tier", a file, or guess.',
)  # fmt: skip
KEEP = click.option(
    "--keep-columns", "keep", type=FILE, help="Write the mapping into this file (.yaml), for --columns."
)


def read(
    workload: Path, columns: str, keep: Path | None, classes: tuple[ServiceClass, ...], *, rests: bool = False
) -> Mapped:
    """The workload of a table; says on stderr what is taken for what before it is used, and what was assumed."""
    from slacktide.inputs.mapped.reading import Table
    from slacktide.whole_file import write_whole

    table = Table(workload, columns)
    for line in table.describe():
        click.echo(f"slacktide: {line}", err=True)
    if keep is not None:
        write_whole(keep, table.columns.kept())
        click.echo(f"slacktide: --columns {keep} takes the same columns again", err=True)
    found = table.read(classes, rests=rests)
    for line in found.notes:
        click.echo(f"slacktide: {line}", err=True)
    return found


def checked(columns: str | None, keep: Path | None) -> None:
    """Raises :class:`click.UsageError` where there is nothing to keep, or no file to keep it in."""
    if keep is not None and columns is None:
        raise click.UsageError("--keep-columns: keeps what --columns says; leave out both, or give --columns guess")
    if keep is not None and keep.suffix.lower() not in (".yaml", ".yml"):
        raise click.UsageError(f"--keep-columns: found {keep.name}, expected a name ending in .yaml")
