"""What several commands share."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.inputs.mapped.reading import Mapped
    from slacktide.model import ServiceClass


Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
"""A file or directory; whoever reads or writes it says what is wrong with it."""


class Written(click.ParamType):  # type: ignore[type-arg]
    """A number that may be written in another way, too, ``1h30m`` or ``90%``; above ``above``, where that is given.

    With ``endless`` ``inf`` is a duration, too.
    """

    def __init__(
        self, name: Literal["duration", "share"], above: float | None = None, *, endless: bool = False
    ) -> None:
        self.name, self._above, self._endless = name, above, endless

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Raises :class:`click.BadParameter` that says what would be right."""
        from slacktide.model.durations import parse_duration, parse_share

        with suppress(ValueError):
            value = float(value)  # programs write 1e+06
        if self._endless and value == math.inf:
            return math.inf
        try:
            found = parse_duration(value) if self.name == "duration" else parse_share(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._above is not None and found <= self._above:
            self.fail(f"found {value!r}, expected more than {self._above:g}", param, ctx)
        return found


DURATION = Written("duration")
"""Seconds, as a number or as 10m or 1h30m."""
ENDLESS = Written("duration", endless=True)
"""The same, or inf."""
SHARE = Written("share")
"""A part of something, as a number or in per cent."""


CONTEXT = click.option(
    "--context", metavar="NAME", shell_complete=completing.contexts,
    help="Of the kubeconfig; its current one if none is named.",
)  # fmt: skip
AS_JSON = click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout, and nothing else there.")
SETTING = click.option(
    "--set", "words", multiple=True, metavar="SECTION.KEY=VALUE", shell_complete=completing.settings,
    help="One setting; may be repeated.",
)  # fmt: skip


def in_a_cluster(text: str = "How to reach the cluster.") -> Callable[[Command], Command]:
    """``--kubeconfig``, of which the help says ``text``, and ``--context``."""
    return lambda command: click.option("--kubeconfig", type=FILE, help=text)(CONTEXT(command))


def prints_aside(as_json: bool) -> AbstractContextManager[object]:
    """While this is open, what a user's own code prints goes to stderr where stdout is for one JSON object."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def echo_json(value: object) -> None:
    """One JSON object on stdout; NaN and infinity, which JSON has not, become null."""
    click.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """What JSON can say: mappings and sequences of its own kinds; NaN and infinity, which it has not, are None."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def key_values(words: Sequence[str], form: str = "KEY=VALUE", example: str = "hosts=100") -> dict[str, str]:
    """What ``--set KEY=VALUE``, given any number of times, says. Raises :class:`click.UsageError`."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set: found {word!r}, expected {form}, for example {example}")
        found[key.strip()] = value.strip()
    return found


GROUPS, KINDS, APPROACHES = ("job", "none"), ("service", "batch"), ("independent", "concurrent", "aggregated")


def grouping_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--group-by``, ``--kind`` and ``--approach``."""
    options = [
        click.option("--group-by", type=click.Choice(GROUPS), help="job: rows of one job and class are one request."),
        click.option(
            "--kind", type=click.Choice(KINDS), help="With --group-by job: what these requests are [service]."
        ),
        click.option(
            "--approach",
            type=click.Choice(APPROACHES),
            help="With --group-by job: how their availability is measured [independent; batch: aggregated].",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def chosen_grouping(
    group_by: str | None, kind: str | None, approach: str | None, config_file: Path | None
) -> dict[str, str] | None:
    """How rows become requests of several instances: by the options, else as a manifest says; ``None``: they do not."""
    from slacktide.inputs.grouping import grouping_of

    return grouping_of(group_by, kind, approach, config_file, lambda name, value: f"--{name.replace('_', '-')} {value}")


OPTION_SETTINGS = {
    "policy": "policy.name",
    "hot": "startup.hot",
    "cold": "startup.cold",
    "host_events": "failures.file",
    "network": "delay.network",
    "end": "simulation.end",
    "ignore": "simulation.ignore",
    "seed": "simulation.seed",
}


def option_words(named: dict[str, object]) -> list[str]:
    """Options that are settings by another name."""
    return [f"{OPTION_SETTINGS[name]}={value}" for name, value in named.items() if value is not None]


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
