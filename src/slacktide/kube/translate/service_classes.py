"""What a pod was promised: its service class, its own SLO and start-up time, how it is measured."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from slacktide.errors import ConfigError
from slacktide.kube.resources.custom_resources import (
    EVERYBODY,
    DisruptionsSpec,
    HoursSpec,
    ServiceClass,
    ServiceClassSpec,
    Tier,
    WindowSpec,
)
from slacktide.kube.resources.objects import Metadata, Namespace, Pod, Template, TemplateMetadata, TemplateSpec
from slacktide.kube.translate.owners import CRITICAL, CRITICAL_CLASSES, priority_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.user_access import Allowance, allowance, stricter
from slacktide.model import DisruptionLimits, PenaltyTier, Window, limit_fields, limit_texts
from slacktide.model import ServiceClass as Promise
from slacktide.model.durations import parse_duration, write_duration
from slacktide.model.hours import DAYS, clock
from slacktide.model.service_class import LEAST_SLO, LONGEST_START, OWN, class_name, default_tiers
from slacktide.model.window import WHOLE
from slacktide.model.workload import AGGREGATED, APPROACHES
from slacktide.model.written_numbers import shown

LOG = logging.getLogger(__name__)

CLASS_LABEL = "slacktide.io/class"
APPROACH = "slacktide.io/approach"
SLO = "slacktide.io/slo"
ALPHA = "slacktide.io/alpha"
PREFIX = "slacktide.io/"
OWN_LIMITS = tuple(PREFIX + name for name in ("disruptions", "cooldown", "hours", "min-running"))
DEFAULT_CLASS = "slacktide.io/default-class"
OF_LABEL, OF_CLASS = f"label {CLASS_LABEL}: ", "service class "
"""So begins what is said of a pod that has no class, and of one whose class does not exist or cannot be used."""
NO_CLASSES = (
    "the cluster has no ServiceClass: kubectl apply -f examples/kubernetes/01-classes.yaml, or your own "
    "(docs/kubernetes.md)"
)
MOST_PROMISES = 4096
"""How many promises are remembered. Pods of one class share one; only SLOs of single workloads need more."""


@dataclass(frozen=True, slots=True)
class Promised:
    """A pod's class as the core knows it, and the index of its approach in ``APPROACHES``.

    ``everything``: the promise counts every loss, not only those that the cluster caused. ``own_alpha``: its workload
    says how long it takes to start.
    """

    service: Promise
    approach: int
    class_name: str
    limits: DisruptionLimits | None = None
    """What its workload may suffer: what the class says, or less."""
    everything: bool = False
    own_alpha: bool = False


COUNTS = ("cluster", "everything")
"""What a class may count."""

SYSTEM_CRITICAL = ServiceClass(
    Metadata("system:critical"), ServiceClassSpec(1.0, 1, tiers=(), namespaces=(EVERYBODY,), before_budgets=True)
)
"""The class of pods of the system that name none. It is no object of the cluster, and none can have its name. A promise
of 1 is at risk as soon as somebody waits, and the pods' priority puts them before all others of rank 1."""


def promise_of(found: ServiceClass) -> Promise:
    """A ServiceClass as the core knows it. Raises :class:`ConfigError` for a promise that cannot be."""
    spec = found.spec
    tiers = default_tiers(spec.slo)
    if spec.tiers is not None:  # an empty list means that nothing is owed
        tiers = tuple(PenaltyTier(tier.boundary, tier.bonus) for tier in spec.tiers)
    window = None if spec.window is None else window_of(spec.window)
    limits = limits_of(found)
    alpha = _alpha_of(spec.alpha) if spec.alpha else None
    return Promise(
        found.metadata.name, spec.slo, spec.rank, spec.margin_seconds, spec.overhead_limit, tiers, window, limits,
        alpha=alpha, before_budgets=spec.before_budgets, before_limits=found is SYSTEM_CRITICAL,
    )  # fmt: skip


def _alpha_of(text: str) -> float:
    """Seconds that a start takes. Raises :class:`ConfigError` naming the value."""
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"alpha: {error}") from error
    if seconds > LONGEST_START:
        raise ConfigError(f"alpha: found {text!r}, expected at most {write_duration(LONGEST_START)}")
    return seconds


def window_of(spec: WindowSpec) -> Window:
    """A window as the core knows it. Raises :class:`ConfigError` naming the field, as it is written."""
    try:
        rolling = parse_duration(spec.rolling) if spec.rolling else None
    except ValueError as error:
        raise ConfigError(f"window: rolling: {error}") from error
    zone = spec.time_zone or "UTC"
    return Window(rolling, spec.calendar or None, spec.budget or WHOLE, zone, spec.start or None)


def limits_of(found: ServiceClass) -> DisruptionLimits | None:
    """What workloads of a ServiceClass may suffer. Raises :class:`ConfigError` where it is malformed."""
    spec, kueue = found.spec, found.spec.preemption_limit
    said = {
        "disruptions": spec.disruptions and {"max": spec.disruptions.max, "per": spec.disruptions.per},
        "preemption_limit": kueue
        and {"scope": kueue.scope, "limit": kueue.limit, "limitWindowSeconds": kueue.limit_window_seconds},
        "cooldown": spec.cooldown or None,
        "hours": [
            {"days": one.days or DAYS, "from": one.from_, "to": one.to, "time_zone": one.time_zone}
            for one in spec.hours
        ]
        or None,
        "min_running": spec.min_running or None,
    }
    return limit_fields.limits_of(said)


def resource_of(promise: Promise) -> ServiceClass:
    """The ServiceClass, for all namespaces, that :func:`promise_of` reads back as this promise."""
    limits = promise.limits or DisruptionLimits()
    spec = ServiceClassSpec(
        *(promise.slo, promise.rank, promise.margin, promise.overhead_limit),
        tuple(Tier(tier.boundary, tier.bonus) for tier in promise.tiers),
        window=None if promise.window is None else _window_spec(promise.window),
        disruptions=None if limits.most is None else DisruptionsSpec(limits.most, write_duration(limits.per)),
        cooldown=write_duration(limits.cooldown) if limits.cooldown > 0.0 else "",
        hours=tuple(HoursSpec(clock(one.begin), clock(one.end), one.days, one.time_zone) for one in limits.hours or ()),
        min_running="" if limits.min_running is None else write_duration(limits.min_running),
        namespaces=(EVERYBODY,),
        alpha="" if promise.alpha is None else write_duration(promise.alpha),
        before_budgets=promise.before_budgets,
    )
    return ServiceClass(Metadata(promise.name), spec)


def _window_spec(window: Window) -> WindowSpec:
    rolling = "" if window.rolling is None else write_duration(window.rolling)
    zone = window.time_zone if window.calendar else ""
    return WindowSpec(rolling, window.calendar or "", zone, window.start or "", window.budget)


def own_limits(annotations: Mapping[str, str]) -> tuple[str | None, ...]:
    """The annotations by which a workload is stricter than its class, those of :data:`OWN_LIMITS` in their order."""
    return tuple(annotations.get(name) for name in OWN_LIMITS)


def _stricter(
    promise: Promise, own: tuple[str | None, ...], allowed: Allowance, *, runs: bool
) -> DisruptionLimits | None:
    """What a workload may suffer: what its class says, and its annotations, as far as the class lets it.

    Raises :class:`Unschedulable`. Of one that ``runs`` what cannot be counts for nothing: its class's limits hold.
    """
    limits = promise.limits
    for name, text in zip(OWN_LIMITS, own, strict=True):
        if text is not None:
            try:
                limits = stricter(limits or DisruptionLimits(), allowed, name.removeprefix(PREFIX), text)
            except ConfigError as problem:
                if not runs:
                    raise Unschedulable(f"annotation {name}: {problem}") from problem
    return limits


class ClassIsGone(Unschedulable):
    """The class that is named cannot be used, because it does not exist, is malformed, or is not for this namespace;
    ``name`` is its name, empty where none is named and there is no default.

    Who was promised something by it before keeps that.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(reason)


def concerns_class(problem: str) -> bool:
    """Whether that a pod has no class that it may use is why it has this problem (of an :class:`.Unschedulable`)."""
    return problem.startswith((OF_LABEL, OF_CLASS))


def mapping(text: str) -> dict[str, str]:
    """Service classes by PriorityClass from ``PRIORITY=CLASS,...``. Raises :class:`ConfigError`."""
    found: dict[str, str] = {}
    for pair in filter(None, (one.strip() for one in text.split(","))):
        priority, equals, service = (part.strip() for part in pair.partition("="))
        if not (equals and priority and service):
            raise ConfigError(f"kube.priority_classes: found {pair!r}, expected PRIORITY=CLASS")
        found[priority] = service
    return found


def own_template(pod: Pod) -> Template:
    """What a pod says of its promise, as a template of such pods would."""
    metadata = TemplateMetadata(pod.metadata.labels, pod.metadata.annotations)
    return Template(metadata, TemplateSpec(pod.spec.priority_class_name))


def default_of(namespace: Namespace | None) -> str:
    """The class of pods in a namespace that name none; empty where it has none, or is not known."""
    return "" if namespace is None else namespace.metadata.labels.get(DEFAULT_CLASS, "")


class Classes:
    """Service classes and the defaults of namespaces, kept by events.

    What a workload says of its own start counts up to ``longest_start`` seconds: whoever holds more back would come
    before equals that do not. Pods of the system that name no class go before every promise in the namespaces that
    ``critical`` names, separated by commas (``*``: all).
    """

    def __init__(
        self, priority_classes: str = "", longest_start: float = LONGEST_START, critical: str = "kube-system"
    ) -> None:
        self.classes: dict[str, ServiceClass] = {}
        self._critical = {one.strip() for one in critical.split(",")}
        self.broken: dict[str, str] = {}
        self.namespaces: dict[str, Namespace] = {}
        self._by_priority = mapping(priority_classes)
        self._longest_start = longest_start
        self._promised: dict[tuple[str, str | None, str | None, tuple[str | None, ...], int, int, bool], Promised] = {}

    def see(self, found: ServiceClass) -> None:
        """A class, new or changed."""
        name = found.metadata.name
        self.broken.pop(name, None)
        try:
            promise_of(found)
            allowance(found.spec.own_limits)
            if found.spec.approach not in APPROACHES:
                raise ConfigError(f"approach: found {found.spec.approach!r}, expected one of {', '.join(APPROACHES)}")
            if found.spec.counts not in COUNTS:
                raise ConfigError(f"counts: found {found.spec.counts!r}, expected one of {', '.join(COUNTS)}")
        except ConfigError as problem:
            self.broken[name] = str(problem)
        self.classes[name] = found
        self._promised.clear()

    def drop(self, name: str) -> None:
        """A class is gone."""
        self.classes.pop(name, None)
        self._promised.clear()
        self.broken.pop(name, None)

    def gone(self, promise: Promise) -> str:
        """The name of a promise's class where it cannot be used any more; else nothing."""
        name = class_name(promise.name)
        if name == SYSTEM_CRITICAL.metadata.name:
            return ""
        return name if name not in self.classes or name in self.broken else ""

    def lost(self, promise: Promise, namespace: str) -> str:
        """Why a workload of a namespace could not be promised anew what it is promised, for people; else nothing."""
        name = class_name(promise.name)
        if name == SYSTEM_CRITICAL.metadata.name:
            return ""
        if self.gone(promise):
            return (
                f"service class {name} was deleted or is invalid now; this workload keeps its promise until there is a "
                "class of that name again, or its template names another one"
            )
        if not self.classes[name].open_to(namespace):
            return (
                f"service class {name} may no longer be used in namespace {namespace}; this workload keeps its promise "
                "until it is deleted, its template names another class, or the class allows its namespace again"
            )
        return ""

    @property
    def longest_window(self) -> float:
        """Seconds of the longest window that a class promises over, 0 without any."""
        whole = [one for name, one in self.classes.items() if name not in self.broken]
        windows = [window_of(one.spec.window) for one in whole if one.spec.window is not None]
        return max((one.longest for one in windows), default=0.0)

    def name_for(self, template: Template, namespace: str) -> str:
        """The class of a template's pods: their label's, their PriorityClass's, their namespace's default, the
        cluster's."""
        if named := self._named_for(template):
            return named
        default = default_of(self.namespaces.get(namespace))
        if default:
            return default
        defaults = sorted(name for name, one in self.classes.items() if one.spec.default)
        if not defaults:
            reason = f"{OF_LABEL}not set, and neither its namespace nor the cluster has a default class"
            raise ClassIsGone("", f"{reason}{self._what_to_apply()}")
        return defaults[0]

    def _what_to_apply(self) -> str:
        """What helps everybody in a cluster without a class, as it is after the installation; else nothing."""
        return "" if self.classes else f"; {NO_CLASSES}"

    def _named_for(self, template: Template) -> str:
        """The class that the label or PriorityClass of a template's pods names; empty where neither does."""
        return template.metadata.labels.get(CLASS_LABEL) or self._by_priority.get(template.spec.priority_class_name, "")

    def _is_critical(self, template: Template, namespace: str, priority: int) -> bool:
        """Whether pods of a template, of such a priority, go before every promise."""
        if priority < CRITICAL or self._critical.isdisjoint((namespace, EVERYBODY)):
            return False
        return not self._named_for(template) and SLO not in template.metadata.annotations

    def of(
        self, pod: Pod, batch: bool, template: Template | None = None, groups_priority: int | None = None
    ) -> Promised:
        """What a pod was promised, by its controller's ``template`` where that is known: whoever labels a single pod
        changes no promise. ``groups_priority``: of the group that it starts with, in place of its own. Of one on a node
        annotations that cannot be count for nothing: without a promise it would be nobody's victim.

        Raises :class:`Unschedulable` with the reason where that cannot be told, and of these :class:`ClassIsGone`.
        """
        said = own_template(pod) if template is None else template
        if not said.spec.priority_class_name and pod.spec.priority_class_name:
            said = Template(said.metadata, TemplateSpec(pod.spec.priority_class_name))
        priority = priority_of(pod) if groups_priority is None else groups_priority
        return self.of_template(said, pod.metadata.namespace, batch, priority, runs=bool(pod.spec.node_name))

    def of_template(
        self, template: Template, namespace: str, batch: bool, pods_priority: int | None = None, *, runs: bool = False
    ) -> Promised:
        """What pods of a template are promised in a namespace, of ``pods_priority`` (``None``: no pod says it); those
        that wait, or that ``runs``. Raises as :meth:`of`."""
        if pods_priority is None:
            pods_priority = CRITICAL_CLASSES.get(template.spec.priority_class_name, 0)
        is_critical = self._is_critical(template, namespace, pods_priority)
        name = SYSTEM_CRITICAL.metadata.name if is_critical else self.name_for(template, namespace)
        found = SYSTEM_CRITICAL if is_critical else self.classes.get(name)
        if found is None:
            raise ClassIsGone(name, f"{OF_CLASS}{name!r}: does not exist{self._what_to_apply()}")
        if name in self.broken:
            raise ClassIsGone(name, f"{OF_CLASS}{name!r} is malformed: {self.broken[name]}")
        if not found.open_to(namespace):
            nobody = (
                ""
                if found.spec.namespaces
                else f": it lists no namespaces, so none may use it; {EVERYBODY!r} stands for all"
            )
            raise ClassIsGone(name, f"{OF_CLASS}{name!r}: may not be used in namespace {namespace}{nobody}")
        annotations = template.metadata.annotations
        own, suffers = annotations.get(SLO), own_limits(annotations)
        approach, alpha = _approach(annotations, found, batch, runs=runs), annotations.get(ALPHA)
        # Who says what it was promised is as important as that. The others are told apart by their pods' priority.
        priority = 0 if own is not None or self._named_for(template) else pods_priority
        key = name, own, alpha, suffers, approach, priority, runs
        known = self._promised.get(key)
        if known is None:
            promise = promise_of(found)
            limits = _stricter(promise, suffers, allowance(found.spec.own_limits), runs=runs)
            if own is not None:
                with contextlib.suppress(*([Unschedulable] if runs else [])):
                    promise = _with_own(promise, own)
            promise = replace(promise, priority=priority)
            if alpha is not None:
                with contextlib.suppress(*([Unschedulable] if runs else [])):
                    promise = replace(promise, alpha=min(_own_alpha(alpha), self._longest_start))
            if len(self._promised) >= MOST_PROMISES:
                self._promised.clear()
            everything = _everything(found)
            known = Promised(promise, approach, name, limits, everything, alpha is not None)
            self._promised[key] = known
        return known

    def remembered(self, said: str, batch: bool) -> Promised:
        """What a controller without pods was promised, by the class in its ledger. Raises :class:`Unschedulable`."""
        name, at, own = said.partition(OWN)
        found = SYSTEM_CRITICAL if name == SYSTEM_CRITICAL.metadata.name else self.classes.get(name)
        if found is None or name in self.broken:
            raise ClassIsGone(name, f"{OF_CLASS}{name!r}: does not exist, or is malformed")
        promise = promise_of(found)
        approach = AGGREGATED if batch else APPROACHES.index(found.spec.approach)
        service = _with_own(promise, own) if at else promise
        return Promised(service, approach, name, promise.limits, _everything(found))


def _with_own(promise: Promise, text: str) -> Promise:
    """The class with an SLO of a workload's own. Numbers that are alike share one."""
    name = f"{_own_slo(text, promise):.9g}"
    return replace(promise, name=f"{promise.name}{OWN}{name}", slo=min(float(name), promise.slo))


def _own_slo(text: str, promise: Promise) -> float:
    slo = float(text) if limit_texts.is_slo(text) else float("nan")
    if not LEAST_SLO <= slo <= promise.slo:
        expected = f"a number from {LEAST_SLO:g} to {promise.slo:g}, the promise of its class"
        raise Unschedulable(f"annotation {SLO}: found {shown(text)}, expected {expected}")
    return slo


def _own_alpha(text: str) -> float:
    try:
        return _alpha_of(text)
    except ConfigError as problem:
        raise Unschedulable(f"annotation {ALPHA}: {problem}") from problem


def _everything(found: ServiceClass) -> bool:
    return found.spec.counts == COUNTS[1]


def _approach(annotations: Mapping[str, str], found: ServiceClass, batch: bool, *, runs: bool) -> int:
    named = annotations.get(APPROACH)
    if runs and (batch or named not in APPROACHES):
        named = None
    if named is not None and named not in APPROACHES:
        raise Unschedulable(f"annotation {APPROACH}: found {shown(named)}, expected one of {', '.join(APPROACHES)}")
    if batch:
        if named not in (None, APPROACHES[AGGREGATED]):
            raise Unschedulable(f"annotation {APPROACH}: found {shown(named)}, but a Job's pods can only be aggregated")
        return AGGREGATED
    return APPROACHES.index(named or found.spec.approach)
