"""SLO documents from service classes: OpenSLO v1, and what Sloth and Pyrra read, neither of which reads v1 (2026)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from slacktide.errors import ConfigError
from slacktide.model.durations import SECONDS_OF, parse_duration
from slacktide.openslo import windows
from slacktide.openslo.importing import AVAILABILITY, RANK, SPEC, TRUE
from slacktide.openslo.kinds import API_VERSION
from slacktide.openslo.series import CLASS, GOOD, LOST, TOTAL, cause_of, selector

SERVICE = "slacktide"
"""The service that SLOs of classes are of."""
NOT_SAID = ("slo", "rank")

Json = dict[str, Any]


@dataclass(slots=True)
class Exported:
    """Documents, and the classes that could not become any, with the reason."""

    documents: list[Json] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class Unsayable(Exception):  # noqa: N818  # expected, and told
    """A format has no words for a class."""


def export(classes: Sequence[Json], form: str = "openslo", window: str | None = None) -> Exported:
    """The documents of classes in a format of :data:`FORMATS`.

    ``window``, such as ``30d``, is for classes whose own window the format cannot say: lifetime, and calendars.
    """
    make, found = FORMATS[form], Exported()
    if form == "openslo" and classes:
        found.documents.append(_service())
    for one in classes:
        try:
            found.documents.append(make(one["metadata"]["name"], one["spec"], window))
        except Unsayable as reason:
            found.left_out.append(f"{one['metadata']['name']}: {reason}")
    if len(found.left_out) == len(classes):
        found.documents.clear()
    return found


def _service() -> Json:
    spec = {"description": "Availability that slacktide promises to workloads, by service class."}
    return {"apiVersion": API_VERSION, "kind": "Service", "metadata": {"name": SERVICE}, "spec": spec}


def openslo(name: str, spec: Mapping[str, Any], window: str | None) -> Json:  # noqa: ARG001  # v1 can say all windows
    """An SLO of OpenSLO v1, from which the import makes the same class again."""
    slo = _budgeted(spec)
    more = {key: value for key, value in spec.items() if key not in NOT_SAID and key != "window"}
    said = _time_window(spec, more)
    annotations = {AVAILABILITY: TRUE, RANK: str(spec["rank"])}
    if more:
        annotations[SPEC] = json.dumps(more, separators=(",", ":"))
    lost, total = _queries(name, spec)
    found: Json = {
        "description": f"Seconds in which workloads of class {name} got what they were promised.",
        "service": SERVICE,
        "indicator": {
            "metadata": {"name": f"{name}-availability"},
            "spec": {
                "ratioMetric": {
                    "counter": True,
                    "bad": {"metricSource": {"type": "Prometheus", "spec": {"query": lost}}},
                    "total": {"metricSource": {"type": "Prometheus", "spec": {"query": total}}},
                }
            },
        },
    }
    if said is not None:
        found["timeWindow"] = [said]
    found |= {"budgetingMethod": "Occurrences", "objectives": [{"displayName": name, "target": slo}]}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": API_VERSION, "kind": "SLO", "metadata": metadata, "spec": found}


def _time_window(spec: Mapping[str, Any], more: Json) -> Json | None:
    """The item of ``timeWindow``; what it does not say goes into ``more``."""
    window = spec.get("window")
    if window is None:
        return None
    said = windows.to_openslo(window)
    if said is None:
        raise Unsayable(f"window: found {window['rolling']!r}, expected whole minutes, hours, days or weeks")
    if windows.again(said) != window:
        more["window"] = window
    return said


def _budgeted(spec: Mapping[str, Any]) -> float:
    slo = float(spec["slo"])
    if slo >= 1.0:
        raise Unsayable("slo: found 1, expected less: a promise of 1 has no error budget, and OpenSLO forbids it")
    return slo


def _queries(name: str, spec: Mapping[str, Any]) -> tuple[str, str]:
    """Seconds lost against the promise of a class, and all seconds: counters, summed up over series."""
    lost = f"sum({CLASS}_{LOST}{selector(class_=name, cause=cause_of(spec))})"
    labels = selector(class_=name)
    return lost, f"(sum({CLASS}_{GOOD}{labels}) + sum({CLASS}_{LOST}{labels}))"


def sloth(name: str, spec: Mapping[str, Any], window: str | None) -> Json:
    """An SLO of OpenSLO v1alpha, the version that Sloth reads: queries are rates over a window that it fills in."""
    slo = _budgeted(spec)
    seconds = _rolling_seconds(spec, window)
    days = seconds / SECONDS_OF["d"]
    if days != int(days):
        raise Unsayable(f"window: found {_said(spec, window)}, expected whole days, which is what Sloth knows")
    rate = "sum(rate({}{}[{{{{.window}}}}]))"
    cause, labels = cause_of(spec), selector(class_=name)
    good, lost = (rate.format(f"{CLASS}_{which}", labels) for which in (GOOD, LOST))
    total = f"({good} + {lost})"
    against = rate.format(f"{CLASS}_{LOST}", selector(class_=name, cause=cause))
    source = {"source": "prometheus", "queryType": "promql"}
    return {
        "apiVersion": "openslo/v1alpha",
        "kind": "SLO",
        "metadata": {"name": f"class-{name}", "displayName": f"Availability of class {name}"},
        "spec": {
            "service": SERVICE,
            "description": f"Seconds in which workloads of class {name} got what they were promised.",
            "budgetingMethod": "Occurrences",
            "timeWindows": [{"count": int(days), "unit": "Day", "isRolling": True}],
            "objectives": [
                {
                    "ratioMetrics": {
                        "good": {**source, "query": f"({total} - {against})"},
                        "total": {**source, "query": total},
                    },
                    "target": slo,
                }
            ],
        },
    }


def pyrra(name: str, spec: Mapping[str, Any], window: str | None) -> Json:
    """A ServiceLevelObjective of Pyrra, which takes one selector as errors and one as total."""
    slo = _budgeted(spec)
    seconds = _rolling_seconds(spec, window)
    text = windows.shorthand(seconds)
    if text is None:
        raise Unsayable(f"window: found {_said(spec, window)}, expected whole minutes, hours or days")
    return {
        "apiVersion": "pyrra.dev/v1alpha1",
        "kind": "ServiceLevelObjective",
        "metadata": {"name": f"slacktide-{name}", "namespace": "monitoring", "labels": {"pyrra.dev/team": SERVICE}},
        "spec": {
            "target": _percent(slo),
            "window": text,
            "description": f"Seconds in which workloads of class {name} got what they were promised.",
            "indicator": {
                "ratio": {
                    "errors": {"metric": f"{CLASS}_{LOST}{selector(class_=name, cause=cause_of(spec))}"},
                    "total": {"metric": f"{CLASS}_{TOTAL}{selector(class_=name)}"},
                }
            },
        },
    }


def _percent(share: float) -> str:
    return f"{(Decimal(repr(share)) * 100).normalize():f}"


def _rolling_seconds(spec: Mapping[str, Any], window: str | None) -> float:
    """Seconds of the class's rolling window, else of ``window``."""
    own = spec.get("window")
    if own is not None and "rolling" in own:
        return parse_duration(own["rolling"])
    if window is None:
        raise Unsayable(f"window: found {_said(spec, None)}, expected a rolling one; or --window 30d in its place")
    try:
        return parse_duration(window)
    except ValueError as error:
        raise ConfigError(f"--window: {error}") from error


def _said(spec: Mapping[str, Any], window: str | None) -> str:
    own = spec.get("window")
    return windows.made(own).name if own is not None else window or "lifetime"


FORMATS: dict[str, Callable[[str, Mapping[str, Any], str | None], Json]] = {
    "openslo": openslo,
    "sloth": sloth,
    "pyrra": pyrra,
}
