"""What a past comes to: files for a simulation, whose request is whose, and what the cluster's scheduler did."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from slacktide.config import Accounting, Config
from slacktide.engine.journal.rows import rows_of
from slacktide.engine.journal.to_workload import Made, write_history
from slacktide.errors import InputError, Problem
from slacktide.for_people import counted
from slacktide.kube.client.metadata import rfc3339
from slacktide.model.service_class import ServiceClass
from slacktide.pasts.reality import Owner, Reality
from slacktide.pasts.story import Story
from slacktide.qos.availability import ACCOUNTINGS, availability
from slacktide.settings import load_live
from slacktide.whole_file import write_whole

FORMAT = "slacktide-past"
VERSION = 1
WORKLOADS, PODS, PAST = "workloads.csv", "pods.csv", "past.json"
PROMISED = ServiceClass("promise", 0.99, 1)
"""Until it is said what is promised to whom."""
HORIZON_SECONDS = 86_400.0
"""So long a cluster of which only the present is known goes on as it is."""
COLUMNS = (
    "request", "namespace", "kind", "name", "priority_class", "priority", "instances", "seconds", *ACCOUNTINGS,
    "preempted", "labels",
)  # fmt: skip


class WorkloadLine(msgspec.Struct):
    """A workload: its number in workload.parquet, who it is, and what it was delivered, by accounting.

    ``seconds`` are those that its instances lived; ``labels`` those of its pods. ``promised`` is what ServiceClasses of
    the cluster promise it; :data:`WORKLOADS` does not have it, as the proposal does.
    """

    request: int
    namespace: str
    kind: str
    name: str
    priority_class: str
    priority: int
    instances: int
    seconds: float
    delivered: dict[Accounting, float]
    preempted: int
    labels: dict[str, str]
    promised: ServiceClass | None = None

    @property
    def full_name(self) -> str:
        """NAMESPACE/KIND/NAME."""
        return f"{self.namespace}/{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Past:
    """What was written, for people and for the page."""

    source: str
    begin: float
    seconds: float
    snapshot: bool
    made: Made
    workloads: list[WorkloadLine]
    counts: Mapping[str, int]
    notes: list[str]


def settings_of(words: tuple[str, ...] = (), config_file: Path | None = None) -> Config:
    """The settings under which the pods of a cluster's own scheduler are read as ours."""
    own = ("kube.scheduler_name=default-scheduler", "kube.all_nodes=true", "kube.learn_startup=false")
    return replace(load_live(config_file, None, [*own, *words]), classes=(PROMISED,))


def write(story: Story, out: Path, *, config: Config | None = None, horizon: float = HORIZON_SECONDS) -> Past:
    """Tell the story, and write what came of it into ``out``.

    Raises :class:`InputError` where nothing lived, and :class:`OutputError`; nothing is written then.
    """
    config = config or settings_of()
    reality = Reality(config)
    reality.tell(story)
    history = reality.history
    if starts := [*history.hot, *history.cold]:  # a live scheduler holds back what starts take, where that is more
        config = replace(config, qos=replace(config.qos, alpha=max(config.qos.alpha, float(np.median(starts)))))
    at_once = sum(reality.owners[key].preempted for key in _services(reality)) - len(history.recreations)
    history.recreations += [0.0] * max(0, at_once)  # whoever came for a victim while that was still going
    made = write_history(history, config, out, story.source, end=horizon if story.snapshot else None)
    rows = rows_of(history)
    requests = {row.life.controller.key: row.request for row in rows}
    lines = _workloads(reality, requests, Counter(row.life.controller.key for row in rows))
    seconds = horizon if story.snapshot else history.now - history.begin
    findings = story.findings
    _note_unknown(reality, story)
    aside = reality.mirror.barrier.aside.values()
    for one in list(aside)[:20]:
        findings.note(f"left out: {one}")
    counts = dict(sorted(findings.counts.items()))
    past = Past(story.source, history.begin, seconds, story.snapshot, made, lines, counts, findings.notes)
    write_whole(out / WORKLOADS, _csv(COLUMNS, map(_line, lines)))
    write_whole(out / PODS, _pods(reality, requests))
    write_whole(out / PAST, json.dumps(_summary(past, reality), indent=1) + "\n")
    return past


def _services(reality: Reality) -> list[str]:
    """Workloads other than Jobs, by their keys."""
    batch = {one.controller.key for one in reality.history.instances if one.controller.batch}
    return [key for key in reality.owners if key not in batch]


def _note_unknown(reality: Reality, story: Story) -> None:
    """What of the cluster's past is not known, and what is taken for it."""
    lives, findings = reality.history.instances, story.findings
    if story.snapshot:
        findings.note(
            "what was delivered until now: promises.yaml proposes .999 for all that have no ServiceClass; edit it first"
        )
    unfinished = sum(one.controller.batch and not np.isfinite(one.end) for one in lives)
    if unfinished:
        findings.note(
            f"{counted(unfinished, 'pod')} of Jobs had not completed in the end: how long that takes is not known, "
            "so that they go on"
        )
    bare = sum(owner.preempted for key, owner in reality.owners.items() if key.startswith("Pod/"))
    if bare:
        preempted = "was preempted" if bare == 1 else "were preempted"
        findings.note(f"{counted(bare, 'pod')} without a controller {preempted}: for how long else is not known")


def _workloads(reality: Reality, requests: Mapping[str, int], instances: Mapping[str, int]) -> list[WorkloadLine]:
    history = reality.history
    times, begin, now = history.of_controllers(), history.begin, history.now
    lived: dict[str, float] = {}
    for life in history.instances:
        lived[life.controller.key] = lived.get(life.controller.key, 0.0) + life.lived(begin, now)
    found = []
    for key, request in sorted(requests.items(), key=lambda one: one[1]):
        kind, namespace, name = key.split("/")[:3]
        owner = reality.owners.get(key) or Owner()
        seconds = times.get(key)
        delivered = {
            which: float("nan") if seconds is None else float(availability(which, *seconds)) for which in ACCOUNTINGS
        }
        found.append(
            WorkloadLine(
                request, namespace, kind, name, owner.priority_class, owner.priority, instances[key],
                round(lived.get(key, 0.0), 3), delivered, owner.preempted, owner.labels,
                owner.promised,
            )
        )  # fmt: skip
    return found


def _line(one: WorkloadLine) -> list[Any]:
    shares = [f"{one.delivered[which]:.6f}" for which in ACCOUNTINGS]
    who = [one.request, one.namespace, one.kind, one.name, one.priority_class, one.priority, one.instances]
    return [*who, one.seconds, *shares, one.preempted, json.dumps(one.labels, sort_keys=True)]


def _pods(reality: Reality, requests: Mapping[str, int]) -> str:
    """A line for each pod: whose it was, when it was created, bound and ready, and on which node."""
    begin = reality.history.begin

    def at(when: float | None) -> str:
        return "" if when is None else f"{when - begin:.3f}"

    def lines() -> Any:
        for one in reality.waits:
            if (request := requests.get(one.key)) is not None:
                yield [request, at(one.created), at(one.bound), at(one.ready), one.node]

    return _csv(("request", "created", "bound", "ready", "node"), lines())


def _csv(header: tuple[str, ...], lines: Any) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(header)
    rows.writerows(lines)
    return out.getvalue()


def _summary(past: Past, reality: Reality) -> dict[str, Any]:
    return {
        "format": FORMAT, "version": VERSION, "source": past.source, "begin": rfc3339(past.begin),
        "seconds": past.seconds, "snapshot": past.snapshot, "nodes": past.made.hosts, "instances": past.made.instances,
        "workloads": len(past.workloads), "pods": len(reality.waits),
        "preempted": sum(one.preempted for one in past.workloads), "counts": past.counts, "notes": past.notes,
    }  # fmt: skip


def read_workloads(folder: Path) -> list[WorkloadLine]:
    """The workloads of a past. Raises :class:`InputError`."""
    path = folder / WORKLOADS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_read(path, number, row) for number, row in enumerate(csv.DictReader(file), 2)]
    except OSError as error:
        expected = f"what slacktide past writes ({error.strerror}): slacktide past SOURCE --out {folder}"
        raise InputError([Problem(str(path), 0, "", "", expected)]) from None


def _read(path: Path, number: int, row: dict[str, Any]) -> WorkloadLine:
    column = ""
    try:
        values: dict[str, Any] = {}
        for column, kind in (
            ("request", int),
            ("priority", int),
            ("instances", int),
            ("seconds", float),
            ("preempted", int),
        ):
            values[column] = kind(row[column])
        for column in ("namespace", "kind", "name", "priority_class"):
            values[column] = row[column]
        shares: dict[Accounting, float] = {}
        for column in ACCOUNTINGS:
            shares[column] = float(row[column])
        column = "labels"
        return WorkloadLine(**values, delivered=shares, labels=msgspec.json.decode(row["labels"], type=dict[str, str]))
    except (KeyError, TypeError, ValueError, msgspec.DecodeError):
        raise InputError(
            [Problem(str(path), number, column, str(row.get(column, "")), "what slacktide past wrote there")]
        ) from None
