"""Prometheus rules: alerts where error budgets burn too fast, over two windows each (the SRE workbook, chapter 5).

What burns is the budget of the promise's window, in seconds, so that the first minutes of a workload are no more than
they are. The long window says that it is much, the short one ends an alert soon after the burning ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slacktide.model.durations import parse_duration, write_duration
from slacktide.openslo import health
from slacktide.openslo.health import annotated
from slacktide.openslo.series import (
    BUDGET,
    CLASS,
    CLASS_WINDOW,
    CLUSTER,
    LOST,
    UNLISTED,
    WORKLOAD,
    cause_of,
    selector,
)


@dataclass(frozen=True, slots=True)
class Burn:
    """An alert: this share of the budget goes within the ``long`` window, and as fast in the ``short`` one, and all
    that lasts ``lasting``."""

    share: float
    long: str
    short: str
    lasting: str
    severity: str


BURNS = (
    Burn(0.02, "1h", "5m", "1m", "page"),
    Burn(0.05, "6h", "30m", "5m", "page"),
    Burn(0.10, "3d", "6h", "30m", "ticket"),
)
"""Of a window of 30 days they are 14.4, 6 and 1 times what would use up exactly the budget."""
LEAST_SECONDS = 60
"""Instance seconds that must be lost before anybody is told: of a budget of seconds a restart is a large share."""
LABELS = {WORKLOAD: ("namespace", "kind", "name", "class"), CLASS: ("class",)}
ALERTS = {WORKLOAD: "SlacktideBudgetBurns", CLASS: "SlacktideClassBudgetBurns"}
WHO = {
    WORKLOAD: "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }} (class {{ $labels.class }})",
    CLASS: "Class {{ $labels.class }}",
}

Json = dict[str, Any]


def rules(classes: Sequence[Json]) -> Json:
    """A rules file about these classes, each with the causes that count against its promise, and about slacktide."""
    groups = []
    for one in classes:
        name, spec = one["metadata"]["name"], one["spec"]
        # Without any budget, whatever is lost is too much at once.
        groups += _groups(name, cause_of(spec), BURNS[:1] if float(spec["slo"]) == 1.0 else BURNS)
    return {"groups": [*groups, health.group()]}


def rules_of_any_class() -> Json:
    """A rules file about whatever classes there are, and about slacktide."""
    return {"groups": [*_groups("", CLUSTER, BURNS), health.group()]}


def _groups(name: str, cause: str, burns: Sequence[Burn]) -> list[Json]:
    """Groups of one class, or of any (no name): what is recorded and alerted for each workload, and for the class."""
    own = {"class": name} if name else {}  # else rules of several classes count as one rule given twice
    groups = []
    for prefix in (WORKLOAD, CLASS):
        windows = dict.fromkeys(window for burn in burns for window in (burn.short, burn.long))
        found = [_lost(prefix, name, cause, window) for window in windows]
        found += [_budget(prefix, name, burn.long) for burn in burns]
        found += [_alert(prefix, name, burn) for burn in burns]
        if own:
            found = [{**one, "labels": one.get("labels", {}) | own} for one in found]
        ending = f"-{name}" if name else ""
        groups.append({"name": f"{prefix.replace('_', '-')}-budgets{ending}", "rules": found})
    return groups


def _by(prefix: str, *more: str) -> str:
    return f"by ({', '.join((*LABELS[prefix], *more))})"


def _lost(prefix: str, name: str, cause: str, window: str) -> Json:
    """Seconds lost within a window, of those that are there now."""
    series = f"{prefix}_{LOST}{selector(class_=name, cause=cause)}"
    if prefix == WORKLOAD:
        # The ledger's own counters: a new leader, or a second one, goes on from the same numbers, a little less maybe.
        # So it is no reset where they fall, and increase() would count all that was ever lost once more.
        each = _by(prefix, "cause")
        expr = f"sum {_by(prefix)} (max {each} ({series}) - min {each} (min_over_time({series}[{window}])))"
    else:
        expr = f"sum {_by(prefix)} (increase({series}[{window}]))"
    return {"record": f"{prefix}:lost_seconds:{window}", "expr": expr}


def _budget(prefix: str, name: str, window: str) -> Json:
    """The largest budget within a window: who is scaled down may have lost it as a larger one."""
    series = f"{prefix}_{BUDGET}{selector(class_=name)}"
    return {
        "record": f"{prefix}:{BUDGET}:max{window}",
        "expr": f"max {_by(prefix)} (max_over_time({series}[{window}]))",
    }


def _alert(prefix: str, name: str, burn: Burn) -> Json:
    labels = selector(class_=name)
    long, short = parse_duration(burn.long), parse_duration(burn.short)
    # Of a short window of the promise, what goes evenly is no alarm, however large a share it is.
    share = f"clamp_min({long:g} / max by (class) ({CLASS_WINDOW}{labels}), {burn.share:g})"
    limit = f"{prefix}:{BUDGET}:max{burn.long}{labels} * on (class) group_left () {share}"
    conditions = [
        f"{prefix}:lost_seconds:{burn.long}{labels} > ({limit})",
        f"{prefix}:lost_seconds:{burn.long}{labels} > {LEAST_SECONDS}",
        f"{prefix}:lost_seconds:{burn.short}{labels} > ({limit}) * {short / long:.6g}",
    ]
    if prefix == CLASS:  # where each workload has its own series, the class would only say it again
        conditions[1:1] = [f"on (class) max by (class) ({UNLISTED}{labels}) > 0"]
    return {
        "alert": ALERTS[prefix],
        "expr": "\nand ".join(conditions),
        "for": burn.lasting,
        "labels": {"severity": burn.severity, "window": burn.long},
        "annotations": annotated(
            ALERTS[prefix],
            f"{WHO[prefix]} loses its error budget too fast.",
            f"{WHO[prefix]} lost {{{{ $value | humanizeDuration }}}} of instance time within {_words(burn.long)}, more "
            f"than {burn.share:.0%} of what may be lost in the promise's window, and still loses as fast.",
        ),
    }


def _words(window: str) -> str:
    return write_duration(parse_duration(window))


def prometheus_rule(found: Json) -> Json:
    """The same as an object of the Prometheus Operator."""
    metadata = {"name": "slacktide", "namespace": "slacktide-system", "labels": {"app.kubernetes.io/name": "slacktide"}}
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata, "spec": found}
