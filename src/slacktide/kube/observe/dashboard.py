"""Why a pod is where it is, why it waits, why it was preempted: remembered as it happens, told when somebody asks; and
the scheduler as the page sees it (:class:`slacktide.dashboard.live.Watched`).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slacktide.dashboard.hub import Hub
from slacktide.dashboard.live import Elsewhere, Live
from slacktide.dashboard.pages import Route
from slacktide.dashboard.view import Head
from slacktide.engine.core import disruptions, operations, types
from slacktide.engine.core.operations import Bound, Gone, Operation, Ready, Refused, Spared, Unready
from slacktide.engine.core.types import Decision
from slacktide.engine.explain.giving_up import why
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.for_people import share, slack_text
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.feed import Feed
from slacktide.kube.mirror.pod_record import FINAL
from slacktide.kube.publish.conditions import named_rule
from slacktide.kube.publish.state_events import given_up_text
from slacktide.kube.resources.objects import rfc3339, whole_seconds
from slacktide.kube.translate.owners import Target
from slacktide.model.service_class import class_name

if TYPE_CHECKING:
    from slacktide.engine.core.engine import Engine
    from slacktide.kube.scheduler import Scheduler

REMEMBERED_PODS = 10_000
"""Pods beyond these, the longest unheard of, are forgotten."""
REMEMBERED_EVENTS = 8
SHOWN_VICTIMS = 10

NamespacedName = tuple[str, str]


@dataclass(slots=True)
class PodHistory:
    """A journal of the engine's operations: the last few things that happened to each pod, by its name.

    ``name_of`` gives a pod's namespace and name by its UID, while it is known.
    """

    name_of: Callable[[str], NamespacedName | None]
    _pods: OrderedDict[NamespacedName, deque[dict[str, Any]]] = field(default_factory=OrderedDict)
    _now: float = 0.0
    _names: dict[str, NamespacedName] = field(default_factory=dict)
    """Of pods that something happened to and that are not gone."""

    def __call__(self, operation: Operation) -> None:
        """Hear of an operation."""
        match operation:
            case operations.Run(now):
                self._now = now
            case operations.Decided(outcome):
                for decision in outcome.decisions:
                    self.decided(decision)
            case Bound() | Ready() | Unready() | Refused() | Spared() | Gone():
                self._note(operation.uid, operation.method, operation.at)
            case operations.BoundElsewhere(uid, host, at):
                self._note(uid, "bound elsewhere", at, host=host)

    def of(self, pod: NamespacedName) -> list[dict[str, Any]]:
        """What is remembered of a pod, the oldest first; times in seconds since 1970."""
        return list(self._pods.get(pod, ()))

    def __len__(self) -> int:
        return len(self._pods)

    def _note(self, uid: str, what: str, at: float, **more: Any) -> None:
        pod = self.name_of(uid) or self._names.get(uid)
        if pod is None:
            return
        if what == "gone":
            self._names.pop(uid, None)
        else:
            self._names[uid] = pod
        known = self._pods.get(pod)
        if known is None:
            known = self._pods[pod] = deque(maxlen=REMEMBERED_EVENTS)
            if len(self._pods) > REMEMBERED_PODS:
                self._pods.popitem(last=False)
        else:
            self._pods.move_to_end(pod)
        known.append({"what": what, "at": at, "uid": uid, **more})

    def decided(self, decision: Decision) -> None:
        """Hear of one decision of the last pass."""
        shown = decision.victims[:SHOWN_VICTIMS]
        victims, count = [{"name": self._name(one.uid), "slack": one.metric} for one in shown], len(decision.victims)
        self._note(decision.uid, "placed", self._now, host=decision.host, slack=decision.metric, victims=victims,
                   count=count)  # fmt: skip
        for one in decision.victims:
            whom = self._name(decision.uid)
            self._note(one.uid, "preempted", self._now, host=decision.host, slack=one.metric, whom=whom,
                       their_slack=decision.metric)  # fmt: skip

    def _name(self, uid: str) -> str:
        pod = self.name_of(uid)
        return "a deleted pod" if pod is None else "/".join(pod)


class PodStory:
    """Answers for pods of a feed. ``waits_for`` gives a nominated pod's node and how many must go yet."""

    def __init__(
        self,
        feed: Feed,
        memory: PodHistory,
        clock: Callable[[], float],
        waits_for: Callable[[str], tuple[str, int] | None] = lambda _uid: None,
    ) -> None:
        self._feed, self._memory, self._clock, self._waits_for = feed, memory, clock, waits_for
        self._explainer = Explainer(feed.engine, named_rule)

    def document(self, namespace: str, name: str) -> dict[str, Any] | None:
        """All that is known of a pod, plain JSON; None where it is not known (any more)."""
        mirror = self._feed.mirror
        record = mirror.pods.get(mirror.uids.get((namespace, name), ""))
        history = [{**one, "at": rfc3339(one["at"])} for one in self._memory.of((namespace, name))]
        if record is None and not history:
            return None
        found: dict[str, Any] = {"namespace": namespace, "name": name, "exists": record is not None, "history": history}
        if record is not None:
            pod = self._feed.pods.get(record.uid) or FedPod(record)
            found |= {"uid": record.uid, "ours": record.ours, "queue": pod.queue}
            held = pod.problem in (fed_pod.HELD, fed_pod.ORPHAN)
            found["problem"] = self._feed.why_held(pod) if held else pod.problem
            if pod.awaited and pod.awaited_since:
                found["awaited"] = f"{pod.awaited}, since {whole_seconds(pod.awaited_since)}"
            if pod.refusal:
                found["refusal"] = pod.refusal
            found["phase"] = pod.pod.status.phase
            found |= {"node": pod.pod.spec.node_name, "gates": [one.name for one in pod.pod.spec.scheduling_gates]}
            found |= self._in_engine(pod)
        plain: dict[str, Any] = _plain(found)
        return plain

    def waits(self, uid: str) -> str:
        """Why a pod of the engine waits, or is not on the node that it was given yet."""
        pod = self._feed.pods.get(uid)
        return _waits(({} if pod is None else _fed(pod)) | self._standing(uid))

    def _standing(self, uid: str) -> dict[str, Any]:
        """How the engine has a pod."""
        one = self._feed.engine.pods.get(uid)
        if one is None:
            return {"state": "unknown"}
        found: dict[str, Any] = {"state": types.STATES[one.state], "host": one.host, "bound": one.bound}
        found |= {"ready": one.ready} | ({"group": one.group} if one.group else {})
        if one.state == types.WAITING:
            found["reason"] = self._explainer.reason(uid, self._clock())
        if (nominated := self._waits_for(uid)) is not None:
            found["nominated"] = {"node": nominated[0], "outstanding": nominated[1]}
        return found

    def _in_engine(self, pod: FedPod) -> dict[str, Any]:
        found, one = self._standing(pod.uid), self._feed.engine.pods.get(pod.uid)
        if one is None:
            return found
        if pod.target is not None:
            found["ledger"] = self._ledger(pod.target, one.key)
        now = max(types.snap(self._clock()), self._feed.engine.latest)
        if limits := disruptions.standing(self._feed.engine.instances, self._feed.engine.controllers[one.key], now):
            found["limits"] = limits
        return found

    def _ledger(self, target: Target, key: str) -> dict[str, Any]:
        engine = self._feed.engine
        found = slo_status(engine, key, self._clock())
        # What is held back for a start-up is no loss.
        left = None if found.slack is None else found.slack + found.alpha
        return {
            "kind": target.kind,
            "name": target.name,
            "class": found.service,
            "promised": found.promised,
            "delivered": found.delivered,
            "slack": left,
            "alpha": found.alpha,
            "state": found.state,
            "running": found.running,
            "waiting": found.waiting,
            "lost": found.lost,
            "starving": found.starving,
            "preemptions": found.preemptions,
            "given_up": given_up_text(found.given_up),
        }


def _plain(value: Any) -> Any:
    """Without infinities, which JSON has not."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value


def beyond_a_start(slack: float | None) -> str:
    """For people: slack as decisions weigh it, which is without what is held back for a start. Infinite as above."""
    return slack_text(slack) + ("" if slack is None else " after start-up")


def waiting_text(ledger: Mapping[str, Any]) -> str:
    """Who waits, of a ledger, and how many of them are late."""
    counts = [f"{ledger[how]} {how}" for how in ("lost", "starving") if ledger.get(how)]
    return f"{ledger['waiting']} waiting" + (f" ({', '.join(counts)})" if counts else "")


def text_of(found: dict[str, Any]) -> str:
    """A document for people, several lines."""
    lines = [f"Pod {found['namespace']}/{found['name']}" + ("" if found["exists"] else " (gone)")]
    ledger = found.get("ledger")
    if ledger:
        lines.append(
            f"  {ledger['kind']} {ledger['name']}, class {ledger['class']}: promised {share(ledger['promised'])}, "
            f"delivered {share(ledger['delivered'])}, {slack_text(ledger['slack'])}, {ledger['state']}; "
            f"{ledger['running']} running, {waiting_text(ledger)}, preempted {ledger['preemptions']} times"
        )
        if ledger.get("given_up"):
            lines.append(f"  {ledger['given_up']}")
    if found["exists"]:
        lines += [f"  {line}" for line in _now(found)]
        lines += [f"  {line}" for line in found.get("limits", [])]
    if found["history"]:
        lines.append("History, the latest entry last:")
        lines += [f"  {one['at'][11:19]}  {_happened(one)}" for one in found["history"]]
    return "\n".join(lines)


def _now(found: dict[str, Any]) -> list[str]:
    """Where it is, or what it waits for."""
    if found.get("phase") in FINAL:
        return [f"has ended ({found['phase']})" + (f" on {found['node']}" if found["node"] else "")]
    if not found["ours"]:
        return [f"another scheduler's; on {found['node']}" if found["node"] else "another scheduler's"]
    if found["node"] and not found.get("nominated"):
        return [_why_here(found)]
    return [why_waiting(found)]


def why_waiting(found: Mapping[str, Any]) -> str:
    """What a pod without a node waits for: one of the keys ``nominated`` (``node``, ``outstanding``), ``gates``,
    ``problem``, ``queue`` with ``refusal``, ``reason``, and ``state`` with ``host`` or ``awaited``, says it; those
    that are not known may be left out.
    """
    if nominated := found.get("nominated"):
        count = nominated["outstanding"]
        going = "waiting for 1 victim to terminate" if count == 1 else f"waiting for {count} victims to terminate"
        return f"is nominated to node {nominated['node']}: {going}"
    if found.get("gates"):
        return f"waits for scheduling gates: {', '.join(found['gates'])}"
    if found.get("problem"):
        return f"waits: {found['problem']}"
    if found.get("queue") == fed_pod.BACKOFF:
        why = found.get("refusal")
        return "waits in backoff after a binding or a preemption failed" + (f": {why}" if why else "")
    if found.get("reason"):
        return f"waits: {found['reason']}"
    if found.get("state") == "placed" and found.get("group"):
        return f"has a node, {found['host']}, and will be bound together with other pods of pod group {found['group']}"
    if found.get("state") == "placed" and found.get("awaited"):
        return f"has a node, {found['host']}, and is {found['awaited']}"
    if found.get("state") == "placed":
        return f"is being bound to {found['host']}"
    return "waits for the next scheduling pass"


def _waits(found: Mapping[str, Any]) -> str:
    return why_waiting(found).removeprefix("waits: ")


def _fed(pod: FedPod) -> dict[str, Any]:
    gates = [one.name for one in pod.pod.spec.scheduling_gates]
    return {"gates": gates, "problem": pod.problem, "queue": pod.queue}


def _why_here(found: dict[str, Any]) -> str:
    state = "is ready" if found.get("ready") else "is starting"
    if found["state"] == "leaving":
        state = "is being evicted"
    elif found["state"] == "unknown":
        state = "is not counted in any Availability" + (f": {found['problem']}" if found["problem"] else "")
    chosen = next((one for one in reversed(found["history"]) if one["what"] == "placed"), None)
    if chosen is None or chosen["host"] != found["node"]:
        return f"{state} on {found['node']}; why it was placed there is no longer known"
    had = beyond_a_start(chosen["slack"])
    if not chosen["count"]:
        return f"{state} on {found['node']}: of the feasible nodes this one had the best score; it had {had}"
    return f"{state} on {found['node']}: no node was feasible with {had}, so it preempted {_victims(chosen)}"


def _victims(chosen: dict[str, Any]) -> str:
    named = ", ".join(f"{one['name']} ({beyond_a_start(one['slack'])})" for one in chosen["victims"])
    more = chosen["count"] - len(chosen["victims"])
    return named + (f" and {more} more" if more > 0 else "")


def _happened(one: dict[str, Any]) -> str:
    what = one["what"]
    if what == "placed":
        after = f", preempting {_victims(one)}" if one["count"] else ""
        return f"placed on {one['host']} with {beyond_a_start(one['slack'])}{after}"
    if what == "preempted":
        return (
            f"preempted on {one['host']} by {one['whom']}: it had {beyond_a_start(one['slack'])}, "
            f"the preemptor {beyond_a_start(one['their_slack'])}"
        )
    texts = {
        "bound": "bound",
        "ready": "ready",
        "unready": "no longer ready",
        "refused": "could not be bound, or its nomination was withdrawn; back in the queue",
        "spared": "is not evicted after all",
        "gone": "gone",
    }
    return f"bound to {one['host']} by another scheduler" if what == "bound elsewhere" else texts[what]


class WatchedScheduler:
    """A scheduler, watched; asks nothing of the API server."""

    def __init__(self, scheduler: Scheduler, memory: PodHistory) -> None:
        self._scheduler, self._memory = scheduler, memory
        self._story: PodStory | None = None
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
    def story(self) -> PodStory | None:
        """Tells of single pods, while this replica leads."""
        session = self._scheduler.session
        if session is not None and self._story is None:
            self._story = PodStory(session.feed, self._memory, self._scheduler.clock, self._waits_for)
        return self._story

    def _waits_for(self, uid: str) -> tuple[str, int] | None:
        found = self._scheduler.nominations.get(uid)
        return None if found is None else (found.decision.host, len(found.outstanding))

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
        return "" if self.story is None else self.story.waits(uid)

    def elsewhere(self) -> Iterable[Elsewhere]:
        engine, session = self.engine, self._scheduler.session
        if engine is None or session is None:
            return
        for pod in session.feed.pods.values():
            if pod.queue and pod.uid not in engine.pods and pod.ours and not pod.pod.spec.node_name:
                namespace, name = pod.namespaced_name
                since = float(pod.pod.metadata.creation_timestamp or pod.record.seen)
                yield Elsewhere(pod.uid, namespace, name, since, _waits(_fed(pod)))
