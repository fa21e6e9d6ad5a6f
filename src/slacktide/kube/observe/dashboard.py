"""The scheduler as the page sees it (:class:`slacktide.dashboard.live.Watched`), and the routes of the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from slacktide.dashboard.hub import Hub
from slacktide.dashboard.live import Elsewhere, Live
from slacktide.dashboard.pages import Route
from slacktide.dashboard.view import Head
from slacktide.engine.core import types
from slacktide.engine.explain.giving_up import why
from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.observe.explain import why_waiting
from slacktide.kube.publish.rule_names import named_rule
from slacktide.model.service_class import class_name

if TYPE_CHECKING:
    from slacktide.engine.core.engine import Engine
    from slacktide.kube.scheduler import Scheduler


class WatchedScheduler:
    """A scheduler, watched; asks nothing of the API server."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._explainer: Explainer | None = None
        self.live = Live(self)
        self.hub = Hub(self.live, self.absent)

    def routes(self) -> dict[str, Route]:
        """The page's data, by path."""
        return {"/view": self.hub.view}

    def absent(self) -> str:
        """Why there is nothing to see: this replica does not lead, and who does; else empty."""
        scheduler = self._scheduler
        if scheduler.session is not None:
            return ""
        holder = "" if scheduler.election is None else scheduler.election.holder
        return "this replica is on standby and has no data" + (f"; ask the leader, {holder}" if holder else "")

    @property
    def engine(self) -> Engine | None:
        return self._scheduler.engine

    def clock(self) -> float:
        return self._scheduler.clock()

    async def between_passes(self) -> None:
        if self._scheduler.session is not None:
            await self._scheduler.session.gate.passed()

    def head(self) -> Head:
        config = self._scheduler.config
        return Head("scheduler", config.kube.scheduler_name, config.policy.name, "epoch")

    def sentences(self) -> list[str]:
        engine = self.engine
        if engine is None:
            return []
        names = sorted({class_name(name) for name, found in engine.tables.overloaded().items() if found})
        said = [f"class {name} is overloaded: not every promise of it can be kept any more." for name in names]
        known = sorted(engine.plans.classes.items())
        return said + [f"{why(name, one)[0].upper()}{why(name, one)[1:]}." for name, one in known if one.gives_up]

    def reason(self, uid: str) -> str:
        engine, session = self.engine, self._scheduler.session
        if engine is None or session is None:
            return ""
        found = self._fed(session.feed.pods.get(uid))
        one = engine.pods.get(uid)
        if one is not None:
            found |= {"state": types.STATES[one.state], "host": one.host, "group": one.group}
            nominated = self._scheduler.nominations.get(uid)
            if nominated is not None:
                found["nominated"] = {"node": nominated.decision.host, "outstanding": len(nominated.outstanding)}
            elif one.state == types.WAITING:
                if self._explainer is None or self._explainer.engine is not engine:
                    self._explainer = Explainer(engine, named_rule)
                found["reason"] = self._explainer.reason(uid, self.clock())
        return why_waiting(found).removeprefix("waits: ")

    def elsewhere(self) -> Iterable[Elsewhere]:
        engine, session = self.engine, self._scheduler.session
        if engine is None or session is None:
            return
        for pod in session.feed.pods.values():
            if pod.queue and pod.uid not in engine.pods and pod.ours and not pod.pod.spec.node_name:
                namespace, name = pod.namespaced_name
                why = why_waiting(self._fed(pod)).removeprefix("waits: ")
                since = float(pod.pod.metadata.creation_timestamp or pod.record.seen)
                yield Elsewhere(pod.uid, namespace, name, since, why)

    @staticmethod
    def _fed(pod: FedPod | None) -> dict[str, Any]:
        if pod is None:
            return {}
        gates = [one.name for one in pod.pod.spec.scheduling_gates]
        return {"gates": gates, "problem": pod.problem, "queue": pod.queue}
