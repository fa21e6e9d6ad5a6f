"""All methods of a scenario emulated, beside what the simulation says of the same placements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from slacktide import settings
from slacktide.edge.emulation.run import Emulation, Measured
from slacktide.edge.replay import ALPHAS, DELAY_AWARE, METHODS, place
from slacktide.edge.sharing import Load
from slacktide.edge.testbed import Run, Testbed, read_testbed
from slacktide.errors import ConfigError

NAMES = (*METHODS, *(f"{DELAY_AWARE} {alpha:g}" for alpha in ALPHAS))
"""Methods by the names of ``slacktide edge replay``."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """A method in a scenario: means over its runs, seconds.

    pods       by placement that came about, pods on each node, and in how many of the runs
    runs       completion of each run
    network    of one request
    iterations the least and the most that a pod's processor time was enough for
    simulated  completion of the same placements, computed for the whole load
    """

    scenario: str
    method: str
    nodes: tuple[str, ...]
    pods: dict[tuple[int, ...], int]
    runs: tuple[float, ...]
    completion: float
    processing: float
    network: float
    iterations: tuple[int, int]
    simulated: float


@dataclass(frozen=True, slots=True)
class Effort:
    """What every run has to do: iterations whose work a pod has, requests a user, and how often; the load simulated.

    0 stands for what the load has; of its requests for half, as one that is emulated takes a whole round trip instead
    of half (Lai, Wang and Wei, eq. 10).
    """

    load: str = "low"
    iterations: int = 0
    requests: int = 0
    repeats: int = 3

    def of(self, behaviour: Run) -> Run:
        """The behaviour with these iterations."""
        iterations = self.iterations or behaviour.of(self.load).iterations
        return replace(behaviour, iterations={**behaviour.iterations, self.load: iterations})

    def asked(self, load: Load) -> int:
        """Requests of a pod's users."""
        return self.requests or max(round(load.asked / 2), 1)


def methods(names: Sequence[str]) -> tuple[str, ...]:
    """These methods, in the order of NAMES; ``delay-aware`` stands for every alpha, nothing for all of them."""
    known = (*NAMES, DELAY_AWARE)
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"method: found {unknown[0]!r}, expected one of {', '.join(known)}")
    return tuple(name for name in NAMES if not names or name in names or name.split()[0] in names)


def placements(folder: Path, testbed: Testbed, method: str, repeats: int) -> list[dict[str, str]]:
    """Where the simulator puts pods in each run: ties drawn with its number as the seed, NAS with each node in turn."""
    config = settings.load(folder / "settings.yaml")
    policy, _, alpha = method.partition(" ")
    if alpha:
        config = replace(config, delay=replace(config.delay, alpha=float(alpha)))
    nodes = testbed.hosts.names
    return [
        place(testbed, policy, config, preferred=nodes[seed % len(nodes)] if policy == "nas" else "", seed=seed)
        for seed in range(repeats)
    ]


def compare(
    emulation: Emulation, chosen: Mapping[str, list[dict[str, str]]], behaviour: Run, effort: Effort
) -> Iterator[Emulated]:
    """A line each method, as soon as it is measured; ``chosen``: its placements. Raises RunsError when a run fails.

    Placements come from before :class:`Emulation` begins: kernels that are just being compiled swallow an interrupt.
    """
    behaviour = effort.of(behaviour)
    load = behaviour.of(effort.load)
    work, requests = load.cpu_seconds * emulation.factor, effort.asked(load)
    for method, ways in chosen.items():
        measured = [emulation.run(one, work=work, requests=requests) for one in ways]
        yield _line(emulation.testbed, method, ways, measured, behaviour, effort.load)


def _line(
    testbed: Testbed, method: str, chosen: list[dict[str, str]], measured: list[Measured], behaviour: Run, load: str
) -> Emulated:
    nodes = testbed.hosts.names
    iterations = [pod.iterations for one in measured for pod in one.pods]
    pods = Counter(tuple(list(one.values()).count(node) for node in nodes) for one in chosen)
    return Emulated(
        testbed.name,
        method,
        nodes,
        dict(pods.most_common()),
        tuple(one.completion for one in measured),
        fmean(one.completion for one in measured),
        fmean(one.processing for one in measured),
        fmean(one.network for one in measured),
        (min(iterations, default=0), max(iterations, default=0)),
        fmean(testbed.run(one, behaviour, load).completion for one in chosen),
    )


def scenarios(folder: Path, number: int | None) -> list[tuple[Path, Testbed]]:
    """The scenarios of a folder, or the one of this number; raises ConfigError if there is none."""
    found = sorted(one for one in folder.glob("scenario-*") if one.is_dir())
    if number is not None:
        found = [one for one in found if one.name == f"scenario-{number}"]
    if not found:
        raise ConfigError(f"{folder}: found no scenario-{'*' if number is None else number}, expected such a folder")
    return [(one, read_testbed(one)) for one in found]
