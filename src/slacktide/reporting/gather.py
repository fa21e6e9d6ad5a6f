"""An experiment's finished runs, what they are compared with, and their tables with their columns checked.

Runs of one workload, host set and seed under different policies belong together. Where policies have other seeds the
first belongs to the first, and so on: ``replicate`` counts them from 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slacktide.config import Accounting
from slacktide.errors import ConfigError, fail
from slacktide.metrics.columns import WORST, accounting_of, classes_of, named
from slacktide.model import ServiceClass
from slacktide.reporting.figure import Scene
from slacktide.results.experiment import Experiment, Run

REQUESTS, INTERVALS, PROGRESS = "requests.parquet", "intervals.parquet", "progress.parquet"
WINDOWS = "windows.parquet"


@dataclass(frozen=True, slots=True)
class Member:
    """A finished run of the grid.

    run         where it stands in the grid, and its folder
    replicate   which of the seeds it has, from 0
    manifest    as read; ``policy`` is the name of the policy in it, ``end`` its end in seconds
    classes     of the run, with their penalty tiers
    accounting  of start-up time, that decisions used
    """

    run: Run
    replicate: int
    manifest: dict[str, Any]
    classes: tuple[ServiceClass, ...]
    accounting: Accounting
    policy: str
    end: float

    @property
    def place(self) -> tuple[str, str, int]:
        """What it shares with the runs that it is compared with."""
        return self.run.workload, self.run.hosts, self.replicate

    @property
    def availability(self) -> str:
        """The column with the availability in the accounting of decisions."""
        return named(self.accounting)

    @property
    def judged(self) -> list[str]:
        """Columns that say by what promises are judged: the availability, and worst windows where a class has one."""
        return [self.availability, *([WORST] if any(one.window is not None for one in self.classes) else [])]

    @property
    def over_time(self) -> bool:
        """Whether it was run with intervals, which figures over time need."""
        return self.manifest.get("intervals") is not None

    @property
    def names(self) -> dict[str, Any]:
        """Its place in the grid as columns."""
        one = self.run
        return {"workload": one.workload, "hosts": one.hosts, "policy": one.policy, "replicate": self.replicate}

    def path(self, file: str) -> Path:
        """One of its files."""
        return Path(str(self.run.folder)) / file


def members(experiment: Experiment) -> list[Member]:
    """All finished runs, in the grid's order. Raises :class:`InputError` where there are none."""
    found, counted = [], dict[tuple[str, str, str], int]()
    for run in experiment.runs:
        cell = (run.workload, run.hosts, run.policy)
        replicate = counted.get(cell, 0)
        counted[cell] = replicate + 1
        if run.folder is not None:
            found.append(_member(run, replicate, run.folder / "manifest.json"))
    if not found:
        expected = "at least one finished run; 'slacktide experiment run' with the same --out goes on where it stopped"
        value = f"0 of {len(experiment.runs)} finished"
        raise fail(experiment.folder, expected, column="runs", value=value)
    return found


def _member(run: Run, replicate: int, path: Path) -> Member:
    manifest = run.manifest()
    try:
        policy = str(manifest["configuration"]["policy"]["name"])
        end = float(manifest["totals"]["end"])
        float(manifest.get("intervals") or 0.0)
        return Member(run, replicate, manifest, classes_of(manifest), accounting_of(manifest), policy, end)
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        expected = f"configuration and totals of a run ({type(error).__name__}: {error})"
        raise fail(path, expected) from error


def scene_of(found: Sequence[Member], experiment: Experiment) -> Scene:
    """Names in the order of the grid; classes by importance; the reference is the first priority policy."""
    runs = experiment.runs
    listed = {row.name: row for one in found for row in one.classes}
    classes = sorted(listed, key=lambda name: (listed[name].rank, -listed[name].slo))
    policies = tuple(dict.fromkeys(run.policy for run in runs))
    ran = {one.run.policy: one.policy for one in found}
    reference = next((one for one in policies if ran.get(one) == "priority"), policies[0])
    return Scene(
        workloads=tuple(dict.fromkeys(run.workload for run in runs)),
        hosts=tuple(dict.fromkeys(run.hosts for run in runs)),
        policies=policies,
        classes=tuple(classes),
        slos={name: listed[name].slo for name in classes},
        reference=reference,
    )


def table_of(member: Member, file: str, names: Sequence[str]) -> Any:
    """These columns of a run's table. Raises :class:`InputError` naming the file and the columns it lacks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = member.path(file)
    try:
        with pq.ParquetFile(path) as opened:
            lacking = [name for name in names if name not in opened.schema_arrow.names]
            if lacking:
                expected = f"columns {', '.join(lacking)} (docs/results.md has them all)"
                raise fail(path, expected)
            return opened.read(columns=list(dict.fromkeys(names)))
    except FileNotFoundError as error:
        expected = f"a table of results; runs with intervals write {file}" if file != REQUESTS else "a table of results"
        raise fail(path, expected) from error
    except (OSError, pa.ArrowException) as error:
        raise fail(path, f"a Parquet table of results ({error})") from error


@contextlib.contextmanager
def told(member: Member, file: str) -> Iterator[None]:
    """What cannot be worked with is said of its file: wrong types, unknown classes, no rows."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise fail(member.path(file), f"a table of a run ({error})") from error


def check_numbers(table: Any, names: Sequence[str]) -> None:
    """Raises :class:`ValueError` for a column with a null or with what is no finite number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        kind = table.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise ValueError(f"{name}: found {kind}, expected numbers")
        if table[name].null_count or pc.all(pc.is_finite(table[name])).as_py() is False:
            raise ValueError(f"{name}: found a null or no finite number")


def resources_of(member: Member) -> tuple[str, ...]:
    """Names of the resources of a run, as in its table of requests."""
    return tuple(name.removeprefix("demand_") for name in _columns_of(member) if name.startswith("demand_"))


def at_once(member: Member) -> tuple[str, ...]:
    """The columns that say how many instances are at work at once, where the table of requests has them."""
    return AT_ONCE if set(AT_ONCE) <= set(_columns_of(member)) else ()


def called(member: Member) -> list[str]:
    """The columns that say what people call requests, as far as the table of requests has them."""
    found = _columns_of(member)
    return [name for name in CALLED if name in found]


AT_ONCE = ("instances", "parallelism")
CALLED = ("namespace", "owner", "name")


def _columns_of(member: Member) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = member.path(REQUESTS)
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException) as error:
        raise fail(path, f"a Parquet table of results ({error})") from error
