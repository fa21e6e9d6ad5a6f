"""Service classes from SLO documents: which of them a scheduler can promise, and what they become.

A scheduler promises a share of time in which pods run and are ready. So an SLO becomes a class where it says that it is
about that (annotation ``slacktide.io/availability``), where its indicator reads the seconds that slacktide counts, or
where it is a share of replicas that kube-state-metrics counts (:mod:`.replicas`). Everything else is refused with file,
line, field and value (docs/openslo.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.kube.resources.custom_resources import EVERYBODY
from slacktide.openslo import classes, windows
from slacktide.openslo.bindings import Binding, Workload, binding_of
from slacktide.openslo.openslo_documents import TIME_BASED, check_slices
from slacktide.openslo.replicas import workload_of
from slacktide.openslo.series import CLASS, WORKLOAD
from slacktide.openslo.slos import Read, Slo

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


@dataclass(slots=True)
class Imported:
    """What documents became.

    workloads    by class, those that the labels of kube-state-metrics name
    passed_over  what is kept by nobody here: kind and name, and why
    notes        what to know of a class
    """

    classes: list[dict[str, Any]] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    workloads: dict[str, Workload] = field(default_factory=dict)


WHY = {
    "Service": "names what SLOs are of",
    "SLI": "an SLO that refers to it is looked at",
    "DataSource": "slacktide counts by itself",
    "AlertPolicy": "see slacktide openslo alerts",
    "AlertCondition": "see slacktide openslo alerts",
    "AlertNotificationTarget": "the Alertmanager knows whom to tell",
    "AlertWindows": "see slacktide openslo alerts",
}


def convert(documents: Sequence[Read], rank: int | None = None, period: str | None = None) -> Imported:
    """Classes and bindings from documents.

    ``rank`` is for SLOs that name none, ``period`` for those of Sloth, whose documents name no window.
    """
    found = Imported()
    for one in documents:
        try:
            slos = one.slos(one, documents)
            if not slos:
                found.passed_over.append(f"{one.label}: {WHY[one.kind]}")
        except ConfigError as error:
            found.refused.append(str(error))
            continue
        for slo in slos:
            try:
                _import(slo, found, rank, period)
            except ConfigError as error:
                found.refused.append(str(error))
    return found


def _import(slo: Slo, found: Imported, rank: int | None, period: str | None) -> None:
    workload = promised(slo)
    if slo.budgeting is not None:
        check_slices(slo.objective, slo.budgeting.node.value)
    if period is not None and slo.window is not None and slo.window_at is None:
        slo = replace(slo, window={"rolling": period}, note="")
    made = class_of(slo, rank, workload)
    name = made["metadata"]["name"]
    if any(other["metadata"]["name"] == name for other in found.classes):
        slo.where(NAME).fail(f"a class of its own; another SLO became {name!r}: annotation {NAME}")
    binding = binding_of(name, made["spec"], *_selector(slo))
    if binding is None and workload is not None and workload.conditions() is not None:
        binding = Binding(name, "", _namespaces(made["spec"]) or workload.in_namespaces(), workload)
    found.classes.append(made)
    if workload is not None:
        found.workloads[name] = workload
    if binding is not None:
        found.bindings.append(binding)
    if slo.note:
        found.notes.append(f"{name}: {slo.note}")


def class_of(slo: Slo, rank: int | None = None, workload: Workload | None = None) -> dict[str, Any]:
    """The ServiceClass of an SLO. Raises :class:`ConfigError` for what no class can say."""
    more = _more(slo)
    spec: dict[str, Any] = {"slo": slo.target, "rank": _rank(slo, rank)}
    window = _window(slo, more.pop("window", None))
    if window is not None:
        spec["window"] = window
    spec |= more
    if "namespaces" not in spec and workload is not None and workload.in_namespaces():
        spec["namespaces"] = list(workload.in_namespaces())
    name = slo.annotations.get(NAME, slo.name)
    if not _DNS_LABEL.fullmatch(name):
        slo.where(NAME).fail(
            f"lower case letters, digits and '-', at most 63: a label names the class; or annotation {NAME}"
        )
    try:
        classes.check(name, spec)
    except ConfigError as error:
        raise ConfigError(f"{slo.objective.where}: {error}") from error
    return classes.class_document(name, spec)


def promised(slo: Slo) -> Workload | None:
    """The workload whose share of replicas an SLO is about, where its labels name one.

    Raises :class:`ConfigError` where the indicator is nothing that a scheduler can promise.
    """
    indicator, node = slo.indicator, slo.indicator.node
    if indicator.queries and all(OURS.search(one.text) for one in indicator.queries):
        return None
    named = slo.annotations.get(AVAILABILITY)
    if named is not None and named != TRUE:
        slo.where(AVAILABILITY).fail(f'"{TRUE}", or no such annotation')
    if indicator.threshold:
        _check_threshold(slo, named)
    if named is None:
        workload = workload_of(indicator)
        if workload is not None:
            return workload
        node.fail(
            "seconds that slacktide counts, a share of replicas of kube-state-metrics, or the annotation "
            f'{AVAILABILITY}: "{TRUE}" where the SLO says for which share of time pods run and are ready; '
            "a scheduler cannot promise what the application answers"
        )
    if slo.budgeting is not None and not slo.budgeting.of_time:
        slo.budgeting.node.fail(f"{' or '.join(TIME_BASED)}: a scheduler promises a share of time")
    return None


def _check_threshold(slo: Slo, named: str | None) -> None:
    op = slo.objective.value.get("op")
    if op in ("lt", "lte"):
        slo.objective.child("op").fail(
            "gt or gte, as for what is up: a scheduler cannot promise an upper bound, such as a latency"
        )
    if named is None or op is None:
        slo.indicator.node.fail("an indicator of availability, not of values: a scheduler cannot promise them")


def _rank(slo: Slo, rank: int | None) -> int:
    text = slo.annotations.get(RANK)
    if text is None:
        if rank is None:
            file, place = slo.metadata.file, slo.metadata.place
            raise ConfigError(
                f"{file.at(place)}: metadata.annotations: {RANK} is missing, expected how important the class is, "
                f'such as "1" (the most important); or --rank'
            )
        return rank
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        slo.where(RANK).fail('a whole number from "1" (the most important)')
    return int(text)


def _window(slo: Slo, said: Any) -> dict[str, Any] | None:
    """The window of the document, with what the annotation says beside it; where they differ, the document's."""
    if slo.window is None:
        return None
    found = dict(slo.window)
    where = slo.window_at or slo.objective
    try:
        windows.made(found)
        if not isinstance(said, dict):
            return found
        both = {**found, **said}
        if windows.plain(both) != windows.plain(found):
            both = found | ({"budget": said["budget"]} if "budget" in said else {})
        windows.made(both)
    except ConfigError as error:
        annotation = f"annotation {SPEC}: " if isinstance(said, dict) else ""
        raise ConfigError(f"{where.where}: {annotation}{error}") from error
    return both


def _more(slo: Slo) -> dict[str, Any]:
    """Further fields of the class, from the annotation."""
    text = slo.annotations.get(SPEC)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or {"slo", "rank"} & set(found) or not isinstance(found.get("window", {}), dict):
        slo.where(SPEC).fail('fields of a ServiceClass but slo and rank, as JSON: {"marginSeconds": 20}')
    return found


def _selector(slo: Slo) -> tuple[Node | None, str]:
    """Where the selector of workloads stands, and what it is: the SLO's, else that of its Service."""
    if SELECTOR in slo.annotations:
        return slo.where(SELECTOR), slo.annotations[SELECTOR]
    if slo.service is not None and SELECTOR in slo.service[0]:
        annotations, metadata = slo.service
        return metadata.child("annotations").child(SELECTOR), annotations[SELECTOR]
    return None, ""


def _namespaces(spec: Mapping[str, Any]) -> tuple[str, ...]:
    named = tuple(spec.get("namespaces", ()))
    return () if EVERYBODY in named else named
