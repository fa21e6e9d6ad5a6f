"""An experiment's folder in, figures and tables out: everything of a report but its layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slacktide.reporting import answer, as_published, over_time, promises, reduce, scores, totals, windows
from slacktide.reporting.figure import Figure, Rows, Scene, drawn, where
from slacktide.reporting.gather import (
    REQUESTS,
    Member,
    at_once,
    called,
    check_numbers,
    members,
    resources_of,
    scene_of,
    table_of,
    told,
)
from slacktide.reporting.scores import Least
from slacktide.reporting.verdict import Verdict, amount, verdict
from slacktide.results.experiment import Experiment, read_or_run

SERIES = (*reduce.SHOWN, "runs")
SHOWN_PAIRS = 4
"""Of many policies this many are drawn against the reference, the one that is judged among them."""
Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What a page shows."""

    experiment: Experiment
    found: list[Member]
    scene: Scene
    verdict: Verdict
    scores: Rows
    windows: Rows
    capacities: Rows
    requests: Rows
    least: Rows
    answer: Figure
    figures: list[Figure]


def assemble(folder: Path, announce: Announce = lambda _: None) -> Report:
    """Reads the experiment, or the one run, in ``folder`` and draws. Raises :class:`InputError` for what is not one."""
    return drawn_of(read_or_run(folder), announce)


def drawn_of(experiment: Experiment, announce: Announce = lambda _: None) -> Report:
    """Draws the finished runs of an experiment. Raises :class:`InputError` where there are none."""
    found = members(experiment)
    scene = scene_of(found, experiment)
    resources = resources_of(found[0])
    kept, missed, least = reduce.Availabilities(scene), as_published.Violins(), Least()
    rows: Rows = []
    over_windows: Rows = []
    demand: Rows = []
    counted: Rows = []
    for number, member in enumerate(found):
        announce(f"{number + 1} of {len(found)} runs read")
        first = not any(row["workload"] == member.run.workload for row in counted)
        amounts = [*(f"demand_{one}" for one in resources), *at_once(member)] if first else []
        table = table_of(member, REQUESTS, ["id", *called(member), *scores.NEEDED, *member.judged, *amounts])
        with told(member, REQUESTS):
            check_numbers(table, [member.availability, *(name for name in amounts if name.startswith("demand_"))])
            kept.add(member, table)
            missed.add(member, table)
            least.add(member, table)
            mine = scores.of_run(member, table)
            rows += mine
        over_windows += windows.of_run(member)
        if first:
            demand += reduce.demand(table, member, resources)
            counted += [{name: row[name] for name in ("workload", "class", "requests")} for row in mine]
    limits = reduce.capacities(found, resources)
    bins, sums = kept.deficits()
    said = verdict(rows, scene)
    shown, note = drawn(scene, said.judged)
    came_to, curves = windows.outcome(over_windows, scene), windows.curves(over_windows, scene)
    by_policy = [
        promises.availabilities(scores.table(kept.curves()), shown),
        promises.deficits(scores.table(bins), scores.table(sums), shown),
        as_published.violins(scores.table(missed.rows(scene)), shown),
        *([windows.windows(scores.table(curves), came_to, shown)] if over_windows else []),
        *_penalties(rows, scene, shown),
        _fairness(found, scene, shown),
        *_over_time(found, shown),
        *_passes(found, shown),
        _preemptions(rows, scene, shown),
    ]
    noted = [replace(one, notes=(*note, *one.notes)) for one in by_policy]
    across = over_time.demand(scores.table(demand), scores.table(limits), scene)
    figures = [across, *noted[:1], *_paired(found, shown, said.judged), *noted[1:]]
    whole = replace(answer.answer(rows, shown), notes=note)
    return Report(experiment, found, scene, said, rows, came_to, limits, counted, least.rows(), whole, figures)


def _empty(names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.null()) for name in names})


def paired_with_reference(scene: Scene, judged: str | None) -> tuple[str, ...]:
    """The policies that have heat maps: the first ones, and in any case the one that is judged."""
    first = dict.fromkeys([*([judged] if judged else []), *scene.others])
    kept = list(first)[:SHOWN_PAIRS]
    return tuple(one for one in scene.others if one in kept)


def _paired(found: list[Member], scene: Scene, judged: str | None) -> list[Figure]:
    theirs = {one.place: one for one in found if one.run.policy == scene.reference}
    pairs = reduce.Pairs()
    others = paired_with_reference(scene, judged)
    for member in found:
        if member.run.policy in others and member.place in theirs:
            pairs.add(theirs[member.place], member)
    figures = []
    for number, policy in enumerate(others, 1):
        cells = pairs.cells(policy)
        figures.append(promises.pairs(scores.table(cells), scores.table(reduce.shares(cells)), policy, scene, number))
    return figures


def _penalties(rows: Rows, scene: Scene, shown: Scene) -> list[Figure]:
    owed = scores.per_run(rows, "penalty", scene)
    said = [f"{row['hosts']}, {row['policy']}: {amount(row['value'])}" for row in owed]
    one_run = " One run of each: no intervals." if all(row["low"] is None for row in owed) else ""
    figures = [
        totals.bars(
            scores.table(owed), shown, key="penalties", title="Penalties: mean of a run",
            axis="mean penalty of a run, cpu-seconds",
            idle="There nobody owes a penalty.",
            description=f"Mean penalty of a run, in cpu-seconds: {'; '.join(said)}.{one_run}",
            reading=(
                "For each request that missed its promise: deficit x duration x cpu x (1 + bonus), with the bonus of "
                "the tier that its availability fell into. Whiskers are 95 % confidence intervals (bootstrap over "
                "seeds and workloads)."
            ),
        )
    ]  # fmt: skip
    more = scores.increments(rows, scene)
    if more:
        said = [
            f"{row['hosts']}: "
            + (
                f"{row['policy']} owes none, {scene.reference} does"
                if row["value"] is None
                else f"{row['text'] or format(row['value'], '+,.1f') + ' %'} over {row['policy']}"
            )
            for row in more
        ]
        said_all = f"Summed penalties of {scene.reference} compared with each other policy's: {'; '.join(said)}."
        figures.append(totals.increments(scores.table(more), shown, description=said_all))
    return figures


def _fairness(found: list[Member], scene: Scene, shown: Scene) -> Figure:
    rows, why_not = reduce.by_contention(found, scene)
    seconds = float(found[0].manifest.get("intervals") or 0.0)
    every = f"{seconds / 60.0:g} minutes" if seconds >= 60.0 else f"{seconds:g} s"
    return totals.fairness(scores.table(rows), shown, every, why_not)


def _over_time(found: list[Member], scene: Scene) -> list[Figure]:
    keys = ["workload", "hosts", "policy", "time"]
    table = scores.table(reduce.progress(found)) if any(one.over_time for one in found) else _empty([*keys, *SERIES])
    return [
        over_time.lines(
            table.select([*keys, "queue", "runs"]), "queue", scene, key="queue", title="Queue over time",
            axis="instances waiting",
            reading=(
                "How many instances (of most requests there is one) still wait when a pass is over: the most in each "
                "tenth of an interval, mean over seeds. Whom the pass served at once is not among them. Short queues "
                "are better."
            ),
        ),
        over_time.lines(
            table.select([*keys, "operations", "runs"]), "operations", scene, key="operations",
            title="Operations over time", axis="operations",
            reading=(
                "How often in each tenth of an interval a host was checked and scored for a waiting request, mean over "
                "seeds: the work of the scheduler, whatever machine it runs on."
            ),
        ),
        over_time.lines(
            table.select([*keys, "preemptions", "runs"]), "preemptions", scene, key="preemptions-over-time",
            title="Preemptions over time", axis="preemptions",
            reading="How many instances were preempted in each tenth of an interval, mean over seeds.",
        ),
    ]  # fmt: skip


def _passes(found: list[Member], shown: Scene) -> list[Figure]:
    rows = as_published.passes_of(found)
    return [as_published.passes(scores.table(rows), shown)] if rows else []


def _preemptions(rows: Rows, scene: Scene, shown: Scene) -> Figure:
    found = scores.per_run(rows, "preemptions", scene)
    said = [f"{row['hosts']}, {row['policy']}: {amount(row['value'])}" for row in found]
    return totals.bars(
        scores.table(found), shown, key="preemptions", title="Preemptions: mean of a run",
        axis="mean preemptions of a run",
        idle="There nobody is preempted.",
        description=f"Mean number of preemptions of a run: {'; '.join(said)}.",
        reading="Every preemption costs a start-up. Whiskers are 95 % confidence intervals, as for penalties.",
    )  # fmt: skip


__all__ = ["Report", "assemble", "where"]
