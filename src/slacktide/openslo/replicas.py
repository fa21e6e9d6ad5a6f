"""Indicators that are ratios of kube-state-metrics: which share of replicas is up, and whose replicas they are.

A query is taken as a fraction of sums of two things: replicas that are up (``UP``), and those asked for (``ASKED``).
Replicas that are not up are ``ASKED - UP``. What comes out as UP / ASKED, or as 1 minus that, is availability.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from slacktide.openslo.bindings import Workload
from slacktide.openslo.promql import (
    AGGREGATIONS,
    Call,
    Matcher,
    NotUnderstood,
    Number,
    Operation,
    Selector,
    Tree,
    parse,
)
from slacktide.openslo.slos import Indicator

KNOWN = re.compile(r"\bkube_[a-z]+_")
"""In a query: it reads kube-state-metrics."""
UP, ASKED, ONE = "up", "asked", "one"
Sum = Mapping[str, float]
_UP: Sum = {UP: 1.0}
_ASKED: Sum = {ASKED: 1.0}
_DOWN: Sum = {ASKED: 1.0, UP: -1.0}
_PLAIN: Sum = {ONE: 1.0}
POD_READY = "kube_pod_status_ready"
METRICS: dict[str, tuple[str, Sum]] = {
    "kube_deployment_status_replicas_available": ("Deployment", _UP),
    "kube_deployment_status_replicas_ready": ("Deployment", _UP),
    "kube_deployment_status_replicas_unavailable": ("Deployment", _DOWN),
    "kube_deployment_spec_replicas": ("Deployment", _ASKED),
    "kube_deployment_status_replicas": ("Deployment", _ASKED),
    "kube_statefulset_status_replicas_available": ("StatefulSet", _UP),
    "kube_statefulset_status_replicas_ready": ("StatefulSet", _UP),
    "kube_statefulset_replicas": ("StatefulSet", _ASKED),
    "kube_statefulset_status_replicas": ("StatefulSet", _ASKED),
    "kube_daemonset_status_number_available": ("DaemonSet", _UP),
    "kube_daemonset_status_number_ready": ("DaemonSet", _UP),
    "kube_daemonset_status_number_unavailable": ("DaemonSet", _DOWN),
    "kube_daemonset_status_desired_number_scheduled": ("DaemonSet", _ASKED),
}
"""Kind of workload, and what is counted. Replicas that are there count as asked for: whoever waits is there, too."""
EXPECTED = (
    "a share of replicas that are up: available or ready ones over those asked for "
    "(kube_deployment_status_replicas_available over kube_deployment_spec_replicas, StatefulSets and DaemonSets "
    f"likewise), or {POD_READY}"
)
OVER_SERIES, OVER_TIME = ("sum", "avg", "count"), ("sum_over_time", "avg_over_time", "count_over_time")
UNCHANGED = ("last_over_time", "label_replace", "label_join", "scalar", "clamp", "clamp_max", "clamp_min", "sort")
"""Functions that leave a share what it is."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a query counts: ``top`` over ``bottom``, of whom, and how it was put together.

    series  ``each``: one value a series; else ``sum`` or ``avg`` of them
    time    ``avg`` (an instant counts as such) or ``sum`` over a range
    """

    top: Sum
    bottom: Sum
    workload: Workload | None = None
    series: str = "each"
    time: str = "avg"

    @property
    def is_share(self) -> bool:
        """Replicas over replicas, whatever they were summed up over."""
        return ONE not in self.bottom

    @property
    def is_constant(self) -> bool:
        """No replicas in it."""
        return self.workload is None


def workload_of(indicator: Indicator) -> Workload | None:
    """Whose share of replicas an indicator is; None where it reads no kube-state-metrics.

    Raises :class:`~slacktide.errors.ConfigError` with the query where it reads some, and is not that share.
    """
    if indicator.threshold or not any(KNOWN.search(one.text) for one in indicator.queries):
        return None
    values: dict[str, Value] = {}
    for query in indicator.queries:
        try:
            values[query.role] = evaluate(parse(query.text))
        except NotUnderstood as why:
            query.node.fail(f"{EXPECTED}; {why}")
    first = indicator.queries[0]
    try:
        whole, up = _whole(values)
        _check(whole, up)
        if whole.workload is None or not (whole.workload.names or whole.workload.namespaces):
            raise NotUnderstood("the labels name no workload: namespace, deployment, statefulset, daemonset or pod")
    except NotUnderstood as why:
        first.node.fail(f"{EXPECTED}; {why}")
    return whole.workload


def _whole(values: Mapping[str, Value]) -> tuple[Value, bool]:
    """The indicator as one fraction, and whether it is the share that is up (else, that is down)."""
    if "gauge" in values:
        return _average(values["gauge"]), True
    for role, up in (("success", True), ("failure", False)):
        if role in values:
            return values[role], up
    part, up = ("good", True) if "good" in values else ("bad", False)
    return _divided(values[part], values["total"]), up


def _check(whole: Value, up: bool) -> None:
    right = _UP if up else _DOWN
    if not whole.is_share or whole.is_constant:
        raise NotUnderstood("it is a number of replicas, no share of them")
    scale = whole.bottom.get(ASKED, 0.0)
    if set(whole.bottom) != {ASKED} or any(
        whole.top.get(key, 0.0) != right.get(key, 0.0) * scale for key in (UP, ASKED)
    ):
        other = _DOWN if up else _UP
        turned = all(whole.top.get(key, 0.0) == other.get(key, 0.0) * scale for key in (UP, ASKED)) and scale
        wanted = "up" if up else "down"
        raise NotUnderstood(
            f"it is the share that is {'down' if up else 'up'}, where that which is {wanted} is asked for"
            if turned
            else f"it is not the share of replicas that are {wanted}, from 0 to 1"
        )


def evaluate(tree: Tree) -> Value:
    """What a query counts. Raises :class:`NotUnderstood` for what is no sum, average or fraction of replicas."""
    if isinstance(tree, Number):
        return Value({ONE: tree.value}, _PLAIN)
    if isinstance(tree, Selector):
        return _selected(tree)
    if isinstance(tree, Call):
        return _called(tree)
    if isinstance(tree, Operation):
        return _operated(tree)
    raise NotUnderstood("a text counts nothing")


def _selected(tree: Selector) -> Value:
    if tree.name == POD_READY:
        return Value(_ready(tree), _PLAIN, _workload("Pod", tree))
    if tree.name not in METRICS:
        raise NotUnderstood(f"{tree.name or 'a selector without a name'} counts none")
    kind, counted = METRICS[tree.name]
    return Value(counted, _PLAIN, _workload(kind, tree))


def _ready(tree: Selector) -> Sum:
    """One series for each of the conditions true, false and unknown, of which one is 1."""
    said = [one for one in tree.matchers if one.label == "condition"]
    if not said:
        return _ASKED
    found = {state for state in ("true", "false", "unknown") if all(_matches(one, state) for one in said)}
    if "true" not in found:
        return _DOWN
    return _UP if found == {"true"} else _ASKED


def _matches(one: Matcher, value: str) -> bool:
    if one.operator in ("=", "!="):
        return (one.value == value) == (one.operator == "=")
    try:
        return (re.fullmatch(one.value, value) is not None) == (one.operator == "=~")
    except re.error as error:
        raise NotUnderstood(f"{one.label}: found {one.value!r}, expected a regular expression") from error


def _workload(kind: str, tree: Selector) -> Workload:
    """By labels; where Prometheus has labels of the target of that name, those of the series are called exported_..."""
    matchers = tree.matchers

    def of(label: str) -> tuple[Matcher, ...]:
        exported = tuple(replace(one, label=label) for one in matchers if one.label == f"exported_{label}")
        return exported or tuple(one for one in matchers if one.label == label)

    return Workload(kind, of("namespace"), of(kind.lower()))


def _called(tree: Call) -> Value:
    if tree.name == "vector":
        return evaluate(tree.arguments[0])
    if tree.name in UNCHANGED or (tree.name in ("max", "min") and tree.by and _keeps_workload(tree)):
        return evaluate(tree.arguments[0])
    if tree.name not in (*OVER_SERIES, *OVER_TIME) or len(tree.arguments) != 1:
        raise NotUnderstood(
            f"{tree.name} of a gauge says nothing of the share of time"
            if tree.name not in AGGREGATIONS
            else f"{tree.name} is neither a sum nor an average"
        )
    inner = evaluate(tree.arguments[0])
    if inner.is_constant:
        raise NotUnderstood(f"{tree.name} of a number counts no replicas")
    if tree.name in ("count", "count_over_time"):
        return _counted(tree.name, inner)
    if inner.is_share and tree.name in ("avg", "avg_over_time"):
        return inner
    if inner.is_share:
        raise NotUnderstood(f"{tree.name} adds up shares")
    if tree.name in OVER_TIME:
        return replace(inner, time=tree.name.partition("_")[0])
    if tree.name == "avg" and inner.workload is not None and inner.workload.kind == "Pod":
        return _average(inner)
    if inner.series not in ("each", tree.name):
        raise NotUnderstood(f"{tree.name} of {inner.series}")
    return replace(inner, series=tree.name)


def _keeps_workload(tree: Call) -> bool:
    return any(label in (tree.by or ()) for label in ("deployment", "statefulset", "daemonset", "pod"))


def _average(inner: Value) -> Value:
    """Over pods, each of which has one series that is 0 or 1: up ones over all of them."""
    if inner.is_share:
        return inner
    if inner.workload is None or inner.workload.kind != "Pod" or inner.series != "each" or inner.time != "avg":
        raise NotUnderstood("an average of numbers of replicas is no share of them")
    if inner.top == _ASKED:
        raise NotUnderstood(f'{POD_READY} needs condition="true": it has three series a pod')
    return replace(inner, bottom=_ASKED, series="each")


def _counted(name: str, inner: Value) -> Value:
    """How many series or samples: of pods one each, where the condition is named."""
    if inner.workload is None or inner.workload.kind != "Pod" or inner.is_share or inner.series != "each":
        raise NotUnderstood(f"{name} counts series, which are replicas only in {POD_READY}")
    if inner.top == _ASKED:
        raise NotUnderstood(f'{name}({POD_READY}) without condition="true" counts three series a pod')
    if name == "count_over_time":
        return replace(inner, top=_ASKED, time="sum")
    if inner.time != "avg":
        raise NotUnderstood("count counts pods once, and the other side counts them at every instant")
    return replace(inner, top=_ASKED, series="sum")


def _operated(tree: Operation) -> Value:
    sign, left = tree.operator, evaluate(tree.left)
    if sign in ("or", "and", "unless"):
        if sign == "or" and evaluate(tree.right).is_constant:
            return left
        raise NotUnderstood(f"{sign!r} of two vectors")
    if sign not in ("+", "-", "*", "/"):
        raise NotUnderstood(f"{sign!r} asks whether all replicas are up at once, which is another promise")
    right = evaluate(tree.right)
    if sign == "/" and right.is_constant:
        return _times(left, 1.0 / right.top[ONE]) if right.top[ONE] else _never()
    if sign == "/":
        return _divided(left, right)
    if sign == "*":
        if not (left.is_constant or right.is_constant):
            raise NotUnderstood("a product of replicas")
        return _times(right, left.top[ONE]) if left.is_constant else _times(left, right.top[ONE])
    return _added(left, right if sign == "+" else _times(right, -1.0))


def _never() -> Value:
    raise NotUnderstood("a division by 0")


def _times(value: Value, factor: float) -> Value:
    return replace(value, top={key: one * factor for key, one in value.top.items()})


def _added(left: Value, right: Value) -> Value:
    if left.is_constant and right.is_constant:
        return replace(left, top={ONE: left.top[ONE] + right.top[ONE]})
    if left.is_constant or right.is_constant:
        share, number = (right, left) if left.is_constant else (left, right)
        if not share.is_share:
            raise NotUnderstood("a number is added to a number of replicas")
        return replace(share, top=_sum(share.top, {key: one * number.top[ONE] for key, one in share.bottom.items()}))
    joined = _joined(left, right)
    if left.bottom != right.bottom:
        raise NotUnderstood("a share is added to a number of replicas")
    return replace(joined, top=_sum(left.top, right.top))


def _sum(left: Sum, right: Sum) -> Sum:
    found = {key: left.get(key, 0.0) + right.get(key, 0.0) for key in (*left, *right)}
    return {key: one for key, one in found.items() if one}


def _divided(left: Value, right: Value) -> Value:
    if left.is_constant or right.is_constant:
        raise NotUnderstood("one side counts no replicas")
    joined = _joined(left, right)
    if left.is_share or right.is_share:
        raise NotUnderstood("a share of a share")
    return replace(joined, top=left.top, bottom=right.top)


def _joined(left: Value, right: Value) -> Value:
    """Both of the same workload, and added up in the same way."""
    one, other = left.workload, right.workload
    if one is None or other is None:
        raise NotUnderstood("one side counts no replicas")
    if one.kind != other.kind:
        raise NotUnderstood(f"one side counts {one.kind}s, the other {other.kind}s")
    if left.time != right.time:
        raise NotUnderstood("one side adds up over time, the other does not")
    if one == other:
        if left.series != right.series and not one.is_one:
            raise NotUnderstood(f"one side is {left.series} over series, the other {right.series}")
        return left
    if left.series == right.series == "each":  # a vector is matched with those of the same labels
        both = (_both(one.namespaces, other.namespaces), _both(one.names, other.names))
        if both[0] is not None and both[1] is not None:
            return replace(left, workload=Workload(one.kind, both[0], both[1]))
    raise NotUnderstood(f"one side is of {one}, the other of {other}")


def _both(one: tuple[Matcher, ...], other: tuple[Matcher, ...]) -> tuple[Matcher, ...] | None:
    return one or other if one == other or not one or not other else None
