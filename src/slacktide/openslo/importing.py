"""Service classes from SLO documents: which of them a scheduler can promise, and what they become.

A scheduler promises a share of time in which pods run and are ready. So an SLO becomes a class where it says that it is
about that (annotation ``slacktide.io/availability``), or where its indicator reads the seconds that slacktide counts.
Everything else is refused with file, line, field and value (docs/openslo.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import UNSET

from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.openslo import classes, windows
from slacktide.openslo.bindings import Binding, binding_of
from slacktide.openslo.documents import Read, metric_of, of_kind
from slacktide.openslo.series import CLASS, WORKLOAD

AVAILABILITY = "slacktide.io/availability"
RANK = "slacktide.io/rank"
NAME = "slacktide.io/class"
SELECTOR = "slacktide.io/selector"
SPEC = "slacktide.io/service-class-spec"
"""JSON: fields of the ServiceClass that OpenSLO has no place for."""
ANNOTATIONS = (AVAILABILITY, RANK, NAME, SELECTOR, SPEC)
TRUE = "true"
OURS = re.compile(rf"\b({WORKLOAD}|{CLASS})[_:]")
"""In a query: it reads what slacktide counts."""
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
TIME_BASED = ("Timeslices", "RatioTimeslices")


@dataclass(slots=True)
class Imported:
    """What documents became. ``passed_over`` are kept by nobody here: kind and name, and why."""

    classes: list[dict[str, Any]] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


WHY = {
    "Service": "names what SLOs are of",
    "SLI": "an SLO that refers to it is looked at",
    "DataSource": "slacktide counts by itself",
    "AlertPolicy": "see slacktide openslo alerts",
    "AlertCondition": "see slacktide openslo alerts",
    "AlertNotificationTarget": "the Alertmanager knows whom to tell",
}


def convert(documents: Sequence[Read], rank: int | None = None) -> Imported:
    """Classes and bindings from documents; ``rank`` is for SLOs that name none."""
    found = Imported()
    for one in documents:
        try:
            if one.kind != "SLO":
                found.passed_over.append(f"{one.label}: {WHY[one.kind]}")
                continue
            made = class_of(one, documents, rank)
            names = [other["metadata"]["name"] for other in found.classes]
            name = made["metadata"]["name"]
            if name in names:
                _where(one, NAME).fail(f"a class of its own; another SLO became {name!r}: annotation {NAME}")
            binding = binding_of(name, made["spec"], *_selector(one, documents))
            found.classes.append(made)
            if binding is not None:
                found.bindings.append(binding)
        except ConfigError as error:
            found.refused.append(str(error))
    return found


def class_of(slo: Read, documents: Sequence[Read], rank: int | None = None) -> dict[str, Any]:
    """The ServiceClass of an SLO. Raises :class:`ConfigError` for what a scheduler cannot promise."""
    node = slo.node.child("spec")
    objectives = node.child("objectives")
    if len(objectives.value) > 1:
        objectives.child(1).fail("one objective: a class promises one availability; make an SLO of each")
    objective = objectives.child(0)
    for key in ("indicator", "indicatorRef", "compositeWeight"):
        if key in objective.value:
            objective.child(key).fail("no composite SLO: a class promises the availability of its own workloads")
    check_indicator(slo, documents)
    _check_slices(slo, objective)
    more = _more(slo)
    spec: dict[str, Any] = {"slo": _target(objective), "rank": _rank(slo, rank)}
    window = _window(node, more.pop("window", None))
    if window is not None:
        spec["window"] = window
    spec |= more
    name = slo.annotations.get(NAME, slo.name)
    if not _DNS_LABEL.fullmatch(name):
        where = _where(slo, NAME) if NAME in slo.annotations else slo.node.child("metadata").child("name")
        where.fail(f"lower case letters, digits and '-', at most 63: a label names the class; or annotation {NAME}")
    try:
        classes.check(name, spec)
    except ConfigError as error:
        raise ConfigError(f"{objective.where}: {error}") from error
    return classes.class_document(name, spec)


def check_indicator(slo: Read, documents: Sequence[Read]) -> None:
    """Raises :class:`ConfigError` where the indicator is nothing that a scheduler can promise."""
    spec, node = slo.spec, slo.node.child("spec")
    if (spec.indicator is UNSET) == (spec.indicator_ref is UNSET):
        raise ConfigError(f"{node.where}: indicator: expected either indicator or indicatorRef")
    if spec.indicator_ref is UNSET:
        indicator = node.child("indicator").child("spec")
    else:
        sli = of_kind(documents, "SLI", spec.indicator_ref)
        if sli is None:
            node.child("indicatorRef").fail("the name of an SLI in these files")
        indicator = sli.node.child("spec")
    which = metric_of(indicator)
    if which.place[-1] == "ratioMetric" and all(OURS.search(one) for one in _queries(which)):
        return
    named = slo.annotations.get(AVAILABILITY)
    if named is not None and named != TRUE:
        _where(slo, AVAILABILITY).fail(f'"{TRUE}", or no such annotation')
    if which.place[-1] == "thresholdMetric":
        _check_threshold(node, which, named)
    if named is None:
        which.fail(
            "seconds that slacktide counts, or the annotation "
            f'{AVAILABILITY}: "{TRUE}" where the SLO says for which share of time pods run and are ready; '
            "a scheduler cannot promise what the application answers"
        )
    if spec.budgeting_method not in TIME_BASED:
        node.child("budgetingMethod").fail(f"{' or '.join(TIME_BASED)}: a scheduler promises a share of time")


def _check_threshold(spec: Node, metric: Node, named: str | None) -> None:
    objective = spec.child("objectives").child(0)
    op = objective.value.get("op")
    if op in ("lt", "lte"):
        objective.child("op").fail(
            "gt or gte, as for what is up: a scheduler cannot promise an upper bound, such as a latency"
        )
    if named is None or op is None:
        metric.fail("an indicator of availability, not of values: a scheduler cannot promise them")


def _queries(ratio: Node) -> list[str]:
    """The texts of all queries of a ratio; one that has none counts as empty text."""
    found = [key for key in ("good", "bad", "total", "raw") if key in ratio.value]
    sources = [ratio.child(key).child("metricSource").value.get("spec") for key in found]
    return [str(one.get("query", "")) if isinstance(one, dict) else "" for one in sources] or [""]


def _check_slices(slo: Read, objective: Node) -> None:
    """OpenSLO wants to know which share of a slice makes it a good one; a class has no use for it."""
    share = objective.value.get("timeSliceTarget")
    if share is None:
        if slo.spec.budgeting_method == "Timeslices":
            raise ConfigError(
                f"{objective.where}: timeSliceTarget: expected a number above 0 and at most 1, as budgetingMethod is "
                "Timeslices"
            )
    elif not 0 < share <= 1:
        objective.child("timeSliceTarget").fail("a number above 0 and at most 1")


def _target(objective: Node) -> float:
    said = objective.value
    if ("target" in said) == ("targetPercent" in said):
        raise ConfigError(f"{objective.where}: target: expected either target or targetPercent")
    key, most = ("target", 1) if "target" in said else ("targetPercent", 100)
    node = objective.child(key)
    if not 0 <= node.value < most:
        node.fail(f"a number from 0 to below {most}: OpenSLO knows no promise without a budget")
    share: Decimal = Decimal(repr(node.value)) / most
    return float(share)


def _rank(slo: Read, rank: int | None) -> int:
    text = slo.annotations.get(RANK)
    if text is None:
        if rank is None:
            where = slo.node.file.at(("metadata",))
            raise ConfigError(
                f"{where}: metadata.annotations: {RANK} is missing, expected how important the class is, "
                f'such as "1" (the most important); or --rank'
            )
        return rank
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        _where(slo, RANK).fail('a whole number from "1" (the most important)')
    return int(text)


def _window(spec: Node, said: Any) -> dict[str, Any] | None:
    """The window of the document, with what the annotation says beside it; where they differ, the document's."""
    if "timeWindow" not in spec.value:
        return None
    node = spec.child("timeWindow").child(0)
    found = windows.of_openslo(node)
    if not isinstance(said, dict):
        return found
    try:
        both = {**found, **said}
        if windows.plain(both) != windows.plain(found):
            both = found | ({"budget": said["budget"]} if "budget" in said else {})
        windows.made(both)
    except ConfigError as error:
        raise ConfigError(f"{node.where}: annotation {SPEC}: {error}") from error
    return both


def _more(slo: Read) -> dict[str, Any]:
    """Further fields of the class, from the annotation."""
    text = slo.annotations.get(SPEC)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or {"slo", "rank"} & set(found) or not isinstance(found.get("window", {}), dict):
        _where(slo, SPEC).fail('fields of a ServiceClass but slo and rank, as JSON: {"marginSeconds": 20}')
    return found


def _selector(slo: Read, documents: Sequence[Read]) -> tuple[Node | None, str]:
    """Where the selector of workloads stands, and what it is: the SLO's, else that of its Service."""
    service = of_kind(documents, "Service", slo.spec.service)
    for one in (slo, service):
        if one is not None and SELECTOR in one.annotations:
            return _where(one, SELECTOR), one.annotations[SELECTOR]
    return None, ""


def _where(document: Read, annotation: str) -> Node:
    metadata = document.node.child("metadata")
    if annotation not in document.annotations:
        return metadata.child("name")
    return metadata.child("annotations").child(annotation)
