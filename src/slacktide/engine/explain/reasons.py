"""Why a pod waits, in the manner of kube-scheduler: nodes counted by what stands in the way.

Nothing here takes part in a decision or changes what decisions are based on; all of it is
worked out when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf, isinf, isnan

import numpy as np

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.plans import is_given_up
from slacktide.engine.explain import giving_up
from slacktide.engine.explain.feasibility import Looker, Obstacles, rule_text
from slacktide.engine.explain.preemption import classify
from slacktide.engine.ledger import lateness
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.for_people import duration
from slacktide.kernels.drive import apply_plan
from slacktide.kernels.place import preemption_obstacles
from slacktide.kernels.queue.lateness import LOST, NOT_LATE
from slacktide.model import Rule

KEPT_SECONDS = 1.0
"""Within this time one answer serves all instances of a kind with about the same slack."""
FAR = 1e9
"""Metrics beyond it, seconds, are told alike."""

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
"""As kube-scheduler says of a node; what it does not say of it follows."""
OVERLOADED = "its class is overloaded"
LATER = "later"
"""Stands in place of seconds, which pass."""
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a pod waits.

    nodes       how many there are
    counts      nodes by what stands in the way (one that lacks several resources counts under each)
    fits        nodes on which nothing stands in the way by now: the next pass will tell
    preemption  candidate nodes by what keeps it from preempting there; empty where ``held`` says why it may not at all
    lasting_held  ``held`` without seconds that pass
    may_at      where ``held`` is over by itself: the instant from which on it may preempt, as things stand; else inf
    slack       seconds; NaN where it takes no part in passes, as no node could take it by its own doing: then nobody is
                preempted for it, whatever slack it has
    group       where it starts only together with others, what became of these; else empty
    overload    what becomes of it where a plan gives it up, or its class is overloaded, in words that stay the same
                while time passes, so that they need not be written again; else empty
    """

    nodes: int
    counts: Counter[str]
    fits: int
    preemption: Counter[str] = field(default_factory=Counter)
    held: str = ""
    lasting_held: str = ""
    may_at: float = inf
    slack: float = 0.0
    overload: str = ""
    group: str = ""

    def __str__(self) -> str:
        return self._said(self.held)

    def lasting(self) -> str:
        """The same in words that stay while nothing changes but the time, so that they need not be written again."""
        return self._said(self.lasting_held)

    def written(self, now: float) -> str:
        """The same in words that are right for whoever reads them later, until it may preempt."""
        if isinf(self.may_at):
            return self.lasting()
        form = "%H:%M:%S UTC" if self.may_at - now < DAY_SECONDS else "%Y-%m-%d %H:%M UTC"
        at = datetime.fromtimestamp(min(self.may_at, now + FAR), UTC).strftime(form)
        return self._said(self.lasting_held.replace(LATER, f"from {at} on"))

    def _said(self, held: str) -> str:
        said = [f"{count} {text}" for text, count in self.counts.most_common()]
        if self.fits:
            said.append(f"{self.fits} node(s) have become available since the last attempt")
        head = f"{self._none_of()}: {', '.join(said)}" if said else "no nodes available to schedule pods"
        if self.group:
            head = f"{self.group}. {head}"
        return f"{head}. preemption: {held or self._preemption()}." + (f" {self.overload}." if self.overload else "")

    def _none_of(self) -> str:
        return f"0/{self.nodes} nodes are available"

    def _preemption(self) -> str:
        candidates = self.preemption.total()
        said = [f"{self.nodes - candidates} {NOT_HELPFUL}"] if candidates < self.nodes else []
        if candidates:
            why = ", ".join(f"{count} {text}" for text, count in self.preemption.most_common())
            said.append(f"{candidates} {NO_VICTIMS} ({why})")
        return f"{self._none_of()}: {', '.join(said)}" if said else NOT_HELPFUL


class Explainer:
    """Reasons, worked out when asked for; ``name_rule`` puts a rule about neighbours into words."""

    def __init__(self, engine: Engine, name_rule: Callable[[Rule], str] = rule_text) -> None:
        self.engine = engine
        self._looker = Looker(engine, name_rule)
        self._looks: dict[int, tuple[float, Obstacles]] = {}
        self._known: dict[tuple[int, int | None, str], tuple[float, Explanation]] = {}

    def reason(self, uid: str, now: float) -> str:
        """Why a pod waits; empty where it does not."""
        found = self.explain(uid, now)
        return "" if found is None else str(found)

    def lasting_reason(self, uid: str, now: float) -> str:
        """The same in words that stay (:meth:`Explanation.lasting`)."""
        found = self.explain(uid, now)
        return "" if found is None else found.lasting()

    def explain(self, uid: str, now: float) -> Explanation | None:
        """Why a pod waits; None where it does not."""
        engine = self.engine
        one = engine.pods.get(uid)
        if one is None or one.state != types.WAITING:
            return None
        engine.tables.settle()
        tb = engine.tables.tb
        kind = int(tb["instances"]["kind"][one.row])
        at = max(types.snap(now), engine.latest)
        slack, overload, is_aside = float("nan"), "", uid in engine.instances.aside
        if not is_aside:
            slack = self._slack(one, at)
            overload = self._given_up(one, at) or self._overload(one.row, kind, slack, at)
        key = kind, None if is_aside else round(min(slack, FAR)), overload
        known = self._known.get(key)
        if known is None or now - known[0] > KEPT_SECONDS:
            self._forget(now)
            known = self._known[key] = now, self._work_out(one.row, kind, slack, at, now, overload)
        group = self._group(one)
        return replace(known[1], group=group) if group else known[1]

    def _slack(self, pod: types.Pod, at: float) -> float:
        engine = self.engine
        if not engine.instances.blame.is_excused(pod.row):
            return float(apply_plan.metric_in_queue(engine.tables.tb.state, pod.row, at))
        found = slo_status(engine, pod.key, at).slack  # it is in no queue
        return float("inf") if found is None else found

    def _group(self, pod: types.Pod) -> str:
        """Of a pod that starts only with others of its group: for how many the last pass would have had nodes."""
        groups = self.engine.groups
        g = groups.numbers.get(pod.group)
        if g is None:
            return ""
        group = self.engine.tables.tb["pod_groups"][g]
        if group["placed"] >= group["least"]:
            return ""
        return f"pod group {pod.group} needs nodes for {group['least']} pods at once, and {group['found']} fit"

    def _forget(self, now: float) -> None:
        self._known = {key: one for key, one in self._known.items() if now - one[0] <= KEPT_SECONDS}
        self._looks = {key: one for key, one in self._looks.items() if now - one[0] <= KEPT_SECONDS}

    def _given_up(self, pod: types.Pod, at: float) -> str:
        """What the present plan has to say of one that it gives up."""
        engine, controller = self.engine, self.engine.controllers[pod.key]
        if not is_given_up(engine.tables.tb, controller, pod.row):
            return ""
        found = engine.plans.of(engine.tables, controller, at)
        return "" if found is None else giving_up.sentence(found)

    def _overload(self, row: int, kind: int, slack: float, at: float) -> str:
        """What triage makes of one that waits: by now where it is late, else as the last pass found its class."""
        (how,) = lateness.how_late(self.engine, np.array([row]), at).tolist()
        if how != NOT_LATE:
            return f"{'lost' if how == LOST else 'starving'}: {OVERLOADED}"
        tb = self.engine.tables.tb
        ours = tb["classes"][tb["kinds"]["cls"][kind]]
        return OVERLOADED if ours["overloaded"] and slack < ours["margin"] else ""

    def _work_out(self, row: int, kind: int, slack: float, at: float, now: float, overload: str) -> Explanation:
        seen = self._looks.get(kind)
        if seen is None:
            seen = self._looks[kind] = now, self._looker.look(kind)
        found = seen[1]
        fits = int(found.fits.sum())
        held, lasting, wait = ("", "", inf) if isnan(slack) else self._held(kind, slack)
        if held or isnan(slack) or not found.candidates.any():
            return Explanation(
                found.nodes, found.counts, fits, held=held, lasting_held=lasting, may_at=at + wait, slack=slack,
                overload=overload,
            )  # fmt: skip
        preemption = classify(self.engine, row, slack, found, at)
        return Explanation(found.nodes, found.counts, fits, preemption, slack=slack, overload=overload)

    def _held(self, kind: int, slack: float) -> tuple[str, str, float]:
        """Why it may preempt nobody, whoever is there; that without seconds that pass; and for how many seconds."""
        tb = self.engine.tables.tb
        if self.engine.tables.spec_of(kind).never:
            never = "not eligible due to preemptionPolicy=Never"
            return never, never, inf
        cls = int(tb["kinds"]["cls"][kind])
        if not preemption_obstacles.held(tb.state, cls, slack):
            return "", "", inf
        margin = float(tb["classes"]["margin"][cls])
        return until_needed(slack, margin), until_needed(slack, margin, LATER), slack - margin


def until_needed(slack: float, margin: float, when: str = "in {}") -> str:
    """When one may preempt that does so only where it must; both in seconds. ``when`` shows the number."""
    if isinf(slack):
        return "may not preempt while its promise cannot break as things stand"
    return f"may preempt {when.format(duration(slack - margin))} if still pending"
