"""One run of a grid, wherever it is carried out: from prepared inputs to the folder of its results."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from slacktide import errors, settings
from slacktide.config import Config
from slacktide.errors import InputError, SlacktideError, fail
from slacktide.experiment import keys
from slacktide.experiment.prepare import HOSTS, WORKLOAD, load_workload, network_of
from slacktide.experiment.run_folder import Asked, run_into
from slacktide.inputs import align, read_hosts
from slacktide.model import Hosts, Workload
from slacktide.results import experiment as folder
from slacktide.settings_file import SettingsFile

Value = TypeVar("Value")


class _Held(Generic[Value]):
    """A value, or its place while it is made."""

    def __init__(self) -> None:
        self.users = 0
        self.making = Lock()
        self.made: list[Value] = []


class Shared(Generic[Value]):
    """Values by key: whoever asks for one at the same time gets the same, which only the first of them makes.

    Those in use are held, and of the others the ``kept`` that were used last: those who ask next are likely to ask
    for the same. Room for a new one is made before it is.
    """

    def __init__(self, kept: int = 1) -> None:
        self.kept = kept
        self._lock = Lock()
        self._held: OrderedDict[Hashable, _Held[Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], Value]) -> Iterator[Value]:
        """The value of this key until the block ends; what ``make`` raises is raised, and the next one tries again."""
        with self._lock:
            if key not in self._held:
                self._forget(self.kept - 1)
                self._held[key] = _Held()
            held = self._held[key]
            held.users += 1
            self._held.move_to_end(key)
        try:
            with held.making:
                if not held.made:
                    held.made.append(make())
            yield held.made[0]
        finally:
            with self._lock:
                held.users -= 1
                if not held.made and not held.users:
                    del self._held[key]
                self._forget(self.kept)

    def _forget(self, kept: int) -> None:
        """Keep no more than so many of those that nobody uses."""
        unused = [key for key, held in self._held.items() if not held.users]
        for key in unused[: max(len(unused) - kept, 0)]:
            del self._held[key]


def read_only(value: Value) -> Value:
    """The same with all arrays in it closed to writers: a run that writes to one would change the others' inputs.

    NumPy then refuses. Kernels, which are machine code, are held to it by a test.
    """
    parts: list[Any] = [value]
    while parts:
        one = parts.pop()
        if isinstance(one, np.ndarray):
            one.flags.writeable = False
        elif is_dataclass(one):
            parts += [getattr(one, field.name) for field in fields(one)]
        elif isinstance(one, tuple) and one and (is_dataclass(one[0]) or isinstance(one[0], np.ndarray)):
            parts += one
    return value


WORKLOADS: Shared[Workload] = Shared()
"""Of this process: runs of equal inputs follow one another, or go on at once in threads."""
HOST_SETS: Shared[Hosts] = Shared()
UNEXPECTED = "defect"
"""The kind of a failure that is no error of slacktide's on purpose."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run, in words that a process elsewhere understands; paths are absolute.

    root           the experiment's folder
    workload       folder of the prepared workload
    hosts          folder of the prepared host set
    configuration  all settings, as in a manifest; tasks that differ in their seeds share it
    seed           simulation.seed, instead of the one there
    files          content (SHA-256) of every file that settings name
    code           that of the sources that the key was made with
    """

    key: str
    root: str
    workload: str
    hosts: str
    grouping: Mapping[str, str] | None
    configuration: Mapping[str, Any]
    seed: int
    intervals: float
    passes: bool
    files: Mapping[str, str]
    code: str

    def plain(self) -> dict[str, Any]:
        """Mappings, lists and texts, ready for JSON; ``Task(**plain)`` is the task again."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task: ``seconds`` it took, or an ``error`` and its ``kind`` (a class of ``slacktide.errors``)."""

    key: str
    seconds: float = 0.0
    error: str | None = None
    kind: str | None = None


def attempt(task: Task) -> Outcome:
    """Carry out a run; whatever goes wrong is told, not raised."""
    begun = time.perf_counter()
    try:
        perform(task)
    except SlacktideError as error:
        kind = next(one.__name__ for one in type(error).__mro__ if one.__module__ == errors.__name__)
        return Outcome(task.key, error=str(error), kind=kind)
    except MemoryError:
        return Outcome(task.key, error="not enough memory for this run", kind=InputError.__name__)
    except Exception as error:
        text = f"a defect of slacktide: {type(error).__name__}: {error}"
        return Outcome(task.key, error=text, kind=UNEXPECTED)
    return Outcome(task.key, seconds=time.perf_counter() - begun)


def perform(task: Task) -> None:
    """Simulate and write ``runs/KEY``, unless it is there.

    Raises :class:`SlacktideError` as ``slacktide simulate`` does, and for code or files that are not those the key
    stands for.
    """
    root = Path(task.root)
    target = root / folder.RUNS / task.key
    if (target / "manifest.json").is_file():
        return
    if task.code != keys.code():
        raise SlacktideError(
            "this process runs another slacktide (or other versions of NumPy or Numba) than the one that began the "
            "experiment: install the same everywhere, and do not change it under way"
        )
    for path, content in task.files.items():
        if keys.content(Path(path)) != content:
            raise fail(path, "the content it had when the experiment began; resume it")
    config = configured(task.configuration)
    config = replace(config, simulation=replace(config.simulation, seed=task.seed))
    if config.delay.network is None:
        config = replace(config, delay=replace(config.delay, network=network_of(Path(task.hosts))))
    files = [Path(task.workload) / WORKLOAD, Path(task.hosts) / HOSTS]
    again = ["slacktide", "simulate", *map(str, files), "--config", str(target / "manifest.json")]
    with _inputs(task, config) as (workload, hosts):
        run_into(
            target,
            workload,
            hosts,
            config,
            files=files,
            command=[*again, "--intervals", f"{task.intervals:g}", *(["--passes"] if task.passes else [])],
            asked=Asked(passes=task.passes, intervals=task.intervals),
            grouping=task.grouping,
        )


def configured(mapping: Mapping[str, Any]) -> Config:
    """Settings from plain values, as :func:`slacktide.settings.to_mapping` made them."""
    return settings.with_sections(Config(), mapping, SettingsFile("settings", mapping))


@contextmanager
def _inputs(task: Task, config: Config) -> Iterator[tuple[Workload, Hosts]]:
    """Workload and hosts of equal resources, shared with all runs of this process that ask for the same."""
    with HOST_SETS.use(task.hosts, lambda: read_only(read_hosts(Path(task.hosts) / HOSTS))) as hosts:

        def read() -> Workload:
            rows = load_workload(Path(task.workload), config.classes, task.grouping)
            return read_only(align(rows, hosts, workload_file=task.workload, hosts_file=task.hosts)[0])

        grouping = None if task.grouping is None else tuple(sorted(task.grouping.items()))
        with WORKLOADS.use((task.workload, config.classes, grouping, hosts.resources), read) as workload:
            yield align(workload, hosts)  # a new array of small hosts at most: the workload is as they want it


def warm_up() -> None:
    """Compile what built-in policies need, by the smallest of runs, so that processes started later find it done."""
    from slacktide.inputs.generators.registry import GENERATORS
    from slacktide.sim import run

    pieces, hosts = GENERATORS["validation-1"].generate({})
    run(next(iter(pieces)), hosts, settings.load(None, None, ["simulation.end=1"]))
