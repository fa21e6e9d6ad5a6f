"""Why an incarnation waits, in the manner of kube-scheduler: nodes counted by what stands in the way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels import carry, explain
from slacktide.live import parts
from slacktide.model.constraint import Condition, Term, Tolerates, taints_of
from slacktide.model.matching import matching_hosts

if TYPE_CHECKING:
    from slacktide.live.engine import Engine

KEPT_SECONDS = 1.0
"""Within this time one answer serves all instances of a kind."""

AMONG_NEIGHBOURS = "do not satisfy its rules about other pods"


class Explainer:
    """Reasons, worked out when asked for; O(all instances) for each kind."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._known: dict[int, tuple[float, str]] = {}

    def reason(self, uid: str, now: float) -> str:
        """Why an incarnation waits; empty where it does not."""
        engine = self.engine
        one = engine.incarnations.get(uid)
        if one is None or one.state != parts.WAITING:
            return ""
        engine.tables.settle()
        tb = engine.tables.tb
        kind = int(tb["instances"]["kind"][one.row])
        known = self._known.get(kind)
        if known is None or now - known[0] > KEPT_SECONDS:
            slack = float(carry.metric_in_queue(tb.state, one.row, now))
            self._known = {k: v for k, v in self._known.items() if now - v[0] <= KEPT_SECONDS}
            known = self._known[kind] = (now, self._sentence(kind, slack))
        return known[1]

    def _sentence(self, kind: int, slack: float) -> str:
        engine = self.engine
        tb = engine.tables.tb
        counts = np.zeros(explain.COUNTS, np.int64)
        explain.count_hosts(tb.state, kind, slack, counts)
        nodes = len(engine.hosts)
        spare = len(tb["hosts"]) - nodes
        said = Counter[str]()
        down = int(counts[explain.DOWN]) - spare
        if down > 0:
            said["not ready or not ours"] = down
        said.update(self._constraints(kind))
        for place, text in ((explain.CPU, "insufficient cpu"), (explain.MEMORY, "insufficient memory"),
                            (explain.OTHER, "insufficient other resources"),
                            (explain.NEIGHBOURS, AMONG_NEIGHBOURS), (explain.ROOM, "have had room since")):  # fmt: skip
            if counts[place]:
                said[text] = int(counts[place])
        full = int(counts[explain.CPU] + counts[explain.MEMORY] + counts[explain.OTHER] + counts[explain.NEIGHBOURS])
        parts_said = [f"{count} {text}" for text, count in said.most_common()]
        return f"0/{nodes} nodes: {', '.join(parts_said) or 'none at all'}; preemption: {self._preemption(kind, slack, full)}"

    def _preemption(self, kind: int, slack: float, full: int) -> str:
        tb = self.engine.tables.tb
        spec = self.engine.tables.spec_of(kind)
        margin = float(tb["classes"][tb["kinds"]["cls"][kind]]["margin"])
        if spec.never:
            return "its preemptionPolicy is Never"
        if self.engine.config.policy.name == "qos-driven" and tb.rules["needed"] and slack >= margin:
            return f"it can wait {slack - margin:.1f} s more before it may preempt"
        if not full:
            return "no node could serve it"
        if tb.rules["policy"] == 1:
            return f"{full} candidates run nothing of lower priority that would suffice"
        return f"{full} candidates kept their promise only if left alone (slack {slack:.1f} s)"

    def _constraints(self, kind: int) -> Counter[str]:
        """Nodes that are up and fail the term of a kind, by the first condition that fails."""
        engine = self.engine
        term = engine.tables.spec_of(kind).term
        hosts = engine.tables.hosts()
        up = engine.tables.tb["hosts"]["down"] == 0
        left: NDArray[np.bool_] = np.array(up, np.bool_)
        said = Counter[str]()
        for condition in term.constraints:
            holds = matching_hosts([Term((condition,))], hosts)[0]
            failing = left & ~holds
            left &= holds
            for h in np.flatnonzero(failing) if isinstance(condition, Tolerates) else ():
                said[self._taint(condition, int(h))] += 1
            if not isinstance(condition, Tolerates) and failing.any():
                said[_named(condition)] += int(failing.sum())
        return said

    def _taint(self, condition: Tolerates, h: int) -> str:
        for taint in taints_of(self.engine.tables.attributes[h]):
            if not condition.accepts((taint,)):
                effect, key, value = taint
                return f"had untolerated taint {{{key}: {value}}}" if value else f"had untolerated taint {{{key}}}"
        return "had untolerated taints"


def _named(condition: Condition) -> str:
    return f"did not match {condition}" if len(str(condition)) <= 120 else "did not match node affinity or selector"
