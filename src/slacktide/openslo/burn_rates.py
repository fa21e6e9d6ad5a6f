"""Prometheus rules: alerts where error budgets burn too fast, over two windows each (the SRE workbook, chapter 5).

A burn rate of 1 uses up exactly the budget of the promise's window; what share of it goes in the long window of an
alert, says :data:`BURNS`. The short window ends an alert soon after the burning ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slacktide.model.durations import SECONDS_OF, parse_duration, write_duration
from slacktide.openslo.series import CLASS, CLUSTER, GOOD, LOST, PROMISED, UNLISTED, WORKLOAD, cause_of, selector
from slacktide.openslo.windows import made


@dataclass(frozen=True, slots=True)
class Burn:
    """An alert: this share of the budget goes within the ``long`` window, and still does in the ``short`` one."""

    share: float
    long: str
    short: str
    severity: str

    def rate(self, seconds: float) -> float:
        """The burn rate, for a promise over so many seconds; never below 1, which the promise allows."""
        return max(1.0, round(self.share * seconds / parse_duration(self.long), 6))


BURNS = (Burn(0.02, "1h", "5m", "page"), Burn(0.05, "6h", "30m", "page"), Burn(0.10, "3d", "6h", "ticket"))
"""Over 30 days: burn rates 14.4, 6 and 1."""
USUAL_SECONDS = 30 * SECONDS_OF["d"]
"""The window that the workbook has, taken for promises over a whole life."""
CALENDAR_DAYS = {"d": 1, "w": 7, "M": 30, "Q": 90, "Y": 365}
WINDOWS = ("5m", "30m", "1h", "6h", "3d")
LABELS = {WORKLOAD: ("namespace", "kind", "name", "class"), CLASS: ("class",)}
ALERTS = {WORKLOAD: "SlacktideBudgetBurns", CLASS: "SlacktideClassBudgetBurns"}
WHO = {
    WORKLOAD: "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }} (class {{ $labels.class }})",
    CLASS: "Class {{ $labels.class }}",
}

Json = dict[str, Any]


def window_seconds(spec: Mapping[str, Any]) -> float:
    """Seconds of a class's window; of a calendar's about as many, of a whole life 30 days."""
    if spec.get("window") is None:
        return USUAL_SECONDS
    window = made(spec["window"])
    if window.rolling is not None:
        return window.rolling
    period = str(window.calendar)
    return int(period[:-1]) * CALENDAR_DAYS[period[-1]] * SECONDS_OF["d"]


def rules(classes: Sequence[Json]) -> Json:
    """A rules file about these classes, with their own promises and windows as numbers."""
    groups = []
    for one in classes:
        name, spec = one["metadata"]["name"], one["spec"]
        seconds, budget = window_seconds(spec), round(1.0 - float(spec["slo"]), 12)

        def threshold(burn: Burn, budget: float = budget, seconds: float = seconds) -> str | None:
            least = burn.rate(seconds) * budget
            return f"> {least:.6g}" if least < 1.0 else None

        groups += _groups(name, cause_of(spec), threshold, BURNS if budget else BURNS[:1])
    return {"groups": groups}


def rules_of_any_class() -> Json:
    """A rules file about whatever classes there are, over 30 days, by the promises that the scheduler tells."""

    def threshold(burn: Burn) -> str:
        return f"> on (class) group_left () ({burn.rate(USUAL_SECONDS):g} * (1 - max by (class) ({PROMISED})))"

    return {"groups": _groups("", CLUSTER, threshold, BURNS)}


def _groups(name: str, cause: str, threshold: Callable[[Burn], str | None], burns: Sequence[Burn]) -> list[Json]:
    """Groups of one class, or of any (no name): what is recorded and alerted for each workload, and for the class."""
    labels = selector(class_=name)
    own = {"class": name} if name else {}  # else rules of several classes count as one rule given twice
    groups = []
    for prefix in (WORKLOAD, CLASS):
        found = [_record(prefix, labels, cause, window) for window in WINDOWS]
        found += [_alert(prefix, labels, burn, least) for burn in burns if (least := threshold(burn)) is not None]
        ending = f"-{name}" if name else ""
        group_name = f"{prefix.replace('_', '-')}-budgets{ending}"
        if own:
            found = [{**one, "labels": one.get("labels", {}) | own} for one in found]
        groups.append({"name": group_name, "rules": found})
    return groups


def _ratio(prefix: str, window: str) -> str:
    return f"{prefix}:lost_ratio:rate{window}"


def _record(prefix: str, labels: str, cause: str, window: str) -> Json:
    """The share of seconds that were lost."""
    by = f"sum by ({', '.join(LABELS[prefix])})"
    against = _with_cause(labels, cause)
    lost = f"{by} (rate({prefix}_{LOST}{against}[{window}]))"
    every = f"{by} (rate({prefix}_{GOOD}{labels}[{window}])) + {by} (rate({prefix}_{LOST}{labels}[{window}]))"
    return {"record": _ratio(prefix, window), "expr": f"{lost} / ({every})"}


def _with_cause(labels: str, cause: str) -> str:
    if not cause:
        return labels
    inside = [one for one in (labels[1:-1], selector(cause=cause)[1:-1]) if one]
    return "{" + ",".join(inside) + "}"


def _alert(prefix: str, labels: str, burn: Burn, threshold: str) -> Json:
    both = [f"{_ratio(prefix, window)}{labels} {threshold}" for window in (burn.long, burn.short)]
    expr = "\nand\n".join(both)
    if prefix == CLASS:  # where each workload has its own series, the class would only say it again
        expr = f"({expr})\nunless on (class) ({WORKLOAD}_{GOOD}{labels} unless on (class) {UNLISTED}{labels} > 0)"
    return {
        "alert": ALERTS[prefix],
        "expr": expr,
        "labels": {"severity": burn.severity, "window": burn.long},
        "annotations": {
            "summary": f"{WHO[prefix]} loses its error budget too fast.",
            "description": (
                f"{WHO[prefix]} lost {{{{ $value | humanizePercentage }}}} of the last {_words(burn.long)}, and still "
                f"loses as much in the last {_words(burn.short)}. See slacktide top and slacktide explain."
            ),
        },
    }


def _words(window: str) -> str:
    return write_duration(parse_duration(window))


def prometheus_rule(found: Json) -> Json:
    """The same as an object of the Prometheus Operator."""
    metadata = {"name": "slacktide", "namespace": "slacktide-system", "labels": {"app.kubernetes.io/name": "slacktide"}}
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata, "spec": found}
