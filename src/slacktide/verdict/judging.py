"""What a past comes to: whether its simulation can be believed, what each scheduler keeps, who gains and who loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from slacktide.for_people import counted, share
from slacktide.verdict.cluster_past import ClusterPast
from slacktide.verdict.runs import KUBERNETES, SLACKTIDE, Outcome, Sizing, simulated, smallest, together

SEEDS = 3
CALLED = {KUBERNETES: "kube-scheduler's rules", SLACKTIDE: "slacktide"}
NEAR, NEAR_SHARE, NEAR_SECONDS, NEAR_COUNT = 0.01, 0.10, 1.0, 3
"""How far the simulation may be off what was: of a class's availability; of waiting times and preemptions as a share,
or so many seconds and preemptions."""
WORTH_TELLING = 10
LASTING = 0.001
"""What a workload gains or loses is told from this share on."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One number in truth and in the simulation of what was; ``near``: it differs by no more than it may."""

    what: str
    truth: float
    simulated: float
    near: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """Of a class, or of all (``name`` is all, ``slo`` None): how many workloads it has, and how many get what they
    were promised, in truth (None: it is not known), simulated under kube-scheduler's rules, and under slacktide."""

    name: str
    slo: float | None
    workloads: int
    truth: int | None
    kubernetes: float
    slacktide: float


@dataclass(frozen=True, slots=True)
class Story:
    """A workload for which it matters which scheduler there is."""

    who: str
    service: str
    promised: float
    truth: float
    kubernetes: float
    slacktide: float
    text: str

    @property
    def gain(self) -> float:
        """What slacktide adds to its availability."""
        return self.slacktide - self.kubernetes


@dataclass(slots=True)
class Verdict:
    """The whole of it; numbers of truth, and of both schedulers, by :data:`KUBERNETES` and :data:`SLACKTIDE`.

    ``believed``: whether the simulation comes out as it was, None where nothing was compared. ``kept``: by class, and
    of all as the last. ``bounds``: promises kept by each at both ends of what is not known, by what that is.
    """

    source: str
    seconds: float
    nodes: int
    workloads: int
    unpromised: int
    snapshot: bool
    believed: bool | None
    compared: list[Compared]
    kept: list[Kept]
    preemptions: dict[str, float | None]
    sizes: dict[str, Sizing]
    attainable: int
    stories: list[Story]
    gains: int
    losses: int
    unknown: list[str]
    bounds: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    @property
    def better(self) -> bool:
        """Whether slacktide keeps at least as many promises as kube-scheduler's rules in the same simulation."""
        return self.kept[-1].slacktide >= self.kept[-1].kubernetes

    def sentences(self) -> list[str]:
        """What to know first."""
        whole, found = self.kept[-1], []
        if self.snapshot:
            found.append("This is the present of a cluster, so that there is no past to compare the simulation with.")
        elif self.believed:
            found.append("The simulation of what was comes out as it was.")
        else:
            far = ", ".join(one.what for one in self.compared if not one.near)
            why = f" What may have done it: {'; '.join(self.unknown)}." if self.unknown else ""
            found.append(
                f"The simulation of what was does not come out as it was: {far}. Read the rest with care.{why}"
            )
        simulated = (
            f"n the simulation kube-scheduler's rules keep {_count(whole.kubernetes)} of {whole.workloads}, and "
            f"slacktide {_count(whole.slacktide)}, on the same {counted(self.nodes, 'node')}."
        )
        was = (
            f"kube-scheduler kept {whole.truth} of {counted(whole.workloads, 'promise')}; i"
            if whole.truth is not None
            else "I"
        )
        found.append(was + simulated)
        missing = whole.workloads - self.attainable
        if missing:
            found.append(
                f"{counted(missing, 'promise')} cannot be kept with any number of nodes: starts and failures took more "
                "than that allows. Promise less, or look at the workloads."
            )
        which = f"the other {self.attainable}" if missing else f"all {self.attainable}"
        for scheduler in (SLACKTIDE, KUBERNETES):
            size, name = self.sizes[scheduler], CALLED[scheduler]
            need = f"more than {counted(size.most, 'node')}" if size.nodes is None else counted(size.nodes, "node")
            found.append(f"To keep {which}, {name} would need {need}.")
        return found


def as_mapping(found: Verdict) -> dict[str, Any]:
    """The verdict as plain data."""
    return {**asdict(found), "sentences": found.sentences(), "better": found.better}


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def judged(past: ClusterPast, *, seeds: int = SEEDS, say: Callable[[str], None] = lambda _: None) -> Verdict:
    """Simulate the past under both policies, with several draws of what is drawn, and compare."""
    say("simulating what was")
    ours: list[Outcome]
    theirs = together([partial(simulated, past, KUBERNETES, seed=seed, events=True) for seed in range(seeds)])
    say("simulating slacktide")
    ours = together([partial(simulated, past, SLACKTIDE, seed=seed) for seed in range(seeds)])
    say("looking for what can be kept at all")
    ample = together([
        partial(simulated, past, one, seed=seed, size=4 * len(past.hosts))
        for one in (KUBERNETES, SLACKTIDE) for seed in range(seeds)
    ])  # fmt: skip
    possible = set.intersection(*(one.kept(past.promised) for one in ample))
    sizes = {}
    for scheduler in (SLACKTIDE, KUBERNETES):
        say(f"looking for the smallest number of nodes under {CALLED[scheduler]}")
        sizes[scheduler] = smallest(past, scheduler, possible, seeds)
    snapshot = bool(past.about.get("snapshot"))
    compared = [] if snapshot else _compared(past, theirs)
    stories, gains, losses = _stories(past, theirs, ours)
    say("trying what is not known at both ends")
    return Verdict(
        source=str(past.about["source"]), seconds=past.seconds, nodes=len(past.hosts), workloads=len(past.lines),
        unpromised=past.unpromised, snapshot=snapshot,
        believed=None if snapshot else all(one.near for one in compared), compared=compared,
        kept=_kept(past, theirs, ours),
        preemptions={
            "truth": None if snapshot else float(past.about["preempted"]),
            KUBERNETES: _mean(theirs, _preemptions), SLACKTIDE: _mean(ours, _preemptions),
        },
        sizes=sizes, attainable=len(possible), stories=stories, gains=gains, losses=losses,
        unknown=list(past.about["notes"]), bounds=_bounds(past),
    )  # fmt: skip


def _mean(outcomes: list[Outcome], of: Callable[[Outcome], float]) -> float:
    return float(np.mean([of(one) for one in outcomes]))


def _preemptions(one: Outcome) -> float:
    return float(sum(one.preempted.values()))


def _of_truth(past: ClusterPast) -> Mapping[int, float]:
    return {number: one.delivered[past.config.qos.startup] for number, one in past.lines.items()}


def _kept(past: ClusterPast, theirs: list[Outcome], ours: list[Outcome]) -> list[Kept]:
    truth, snapshot = _of_truth(past), past.about.get("snapshot")
    groups = {one.name: {n for n, of in past.promised.items() if of.name == one.name} for one in past.promised.values()}
    slos = {one.name: one.slo for one in past.promised.values()}
    order = sorted(groups, key=lambda name: min(past.promised[n].rank for n in groups[name]))
    found = []
    for name, members in (*((one, groups[one]) for one in order), ("all", set(past.promised))):
        was = None if snapshot else sum(truth[n] >= past.promised[n].slo for n in members)
        sides = [_mean(some, lambda one, of=members: len(one.kept(past.promised) & of)) for some in (theirs, ours)]  # type: ignore[misc]
        found.append(Kept(name, slos.get(name), len(members), was, *sides))
    found[-1] = replace(found[-1], slo=None)  # also where a class has this name
    return found


def _compared(past: ClusterPast, theirs: list[Outcome]) -> list[Compared]:
    """The simulation of what was beside what was, by class."""
    truth, found = _of_truth(past), []
    for service in sorted({one.name for one in past.promised.values()}):
        members = {n for n, one in past.promised.items() if one.name == service}
        was = float(np.mean([truth[n] for n in members]))
        now = _mean(theirs, lambda one, of=members: float(np.mean([one.delivered.get(n, 1.0) for n in of])))  # type: ignore[misc]
        found.append(Compared(f"availability of {service}", was, now, abs(was - now) <= NEAR))
    waited = np.array(
        [one.bound - max(0.0, one.created) for one in past.pods if one.bound is not None and one.bound > 0.0]
    )
    for part, what in ((50, "median of waiting times, s"), (90, "90th percentile of waiting times, s")):
        was = float(np.percentile(waited, part)) if len(waited) else 0.0
        now = _mean(theirs, lambda one, p=part: float(np.percentile(one.waits[:, 1], p)) if len(one.waits) else 0.0)  # type: ignore[misc]
        near = abs(was - now) <= max(NEAR_SECONDS, NEAR_SHARE * was)
        found.append(Compared(what, was, now, near))
    was, now = float(past.about["preempted"]), _mean(theirs, _preemptions)
    found.append(Compared("preemptions", was, now, abs(was - now) <= max(NEAR_COUNT, NEAR_SHARE * was)))
    return found


def _stories(past: ClusterPast, theirs: list[Outcome], ours: list[Outcome]) -> tuple[list[Story], int, int]:
    """For whom it matters most; and how many gain, and lose."""
    truth, found = _of_truth(past), []
    for number, service in past.promised.items():
        sides = [_mean(some, lambda one, n=number: one.delivered.get(n, 1.0)) for some in (theirs, ours)]  # type: ignore[misc]
        counts = [_mean(some, lambda one, n=number: one.preempted.get(n, 0)) for some in (theirs, ours)]  # type: ignore[misc]
        line = past.lines[number]
        told = _told(service.slo, sides, counts)
        found.append(Story(line.full_name, service.name, service.slo, truth[number], sides[0], sides[1], told))
    gains = sum(one.gain >= LASTING for one in found)
    losses = sum(one.gain <= -LASTING for one in found)
    first = sorted(found, key=lambda one: (-_matters(one), one.who))[:WORTH_TELLING]
    return [one for one in first if _matters(one) > 0.0], gains, losses


def _matters(one: Story) -> float:
    """By how much; a promise that is kept by one of them only counts before all else."""
    turns = (one.kubernetes >= one.promised) != (one.slacktide >= one.promised)
    return (turns + abs(one.gain)) if abs(one.gain) >= LASTING else 0.0


def _told(slo: float, sides: list[float], counts: list[float]) -> str:
    kept = ["keeps" if side >= slo else "breaks" for side in sides]
    text = (
        f"kube-scheduler's rules give it {share(sides[0])}, which {kept[0]} its promise of {slo:g}; slacktide gives it "
        f"{share(sides[1])}, which {kept[1]} it"
    )
    if any(counts):
        first, second = (_count(round(one, 1)) for one in counts)
        text += f". It is preempted {first} time{'' if first == '1' else 's'} under the one, {second} under the other"
    return text + "."


def _bounds(past: ClusterPast) -> dict[str, list[dict[str, float]]]:
    """Promises kept by kube-scheduler's rules and by slacktide, with what is not known at one end and at the other."""
    endless = [row for row in range(len(past.workload)) if _is_unfinished_job(past, row)]
    if not endless:
        return {}

    def sooner(one: ClusterPast) -> ClusterPast:
        duration = one.workload.duration.copy()
        duration[endless] = 1.0
        return replace(one, workload=replace(one.workload, duration=duration))

    ends = []
    for change in (None, sooner):
        sides = (KUBERNETES, SLACKTIDE)
        both = together([partial(simulated, past, one, change=change) for one in sides])
        ends.append({name: float(len(one.kept(past.promised))) for name, one in zip(sides, both, strict=True)})
    return {"pods of Jobs that had not completed go on to the end, or complete at once": ends}


def _is_unfinished_job(past: ClusterPast, row: int) -> bool:
    requests = past.workload.requests
    batch = requests is not None and past.workload.request is not None and requests.batch[past.workload.request[row]]
    return bool(batch) and not np.isfinite(past.workload.duration[row])
