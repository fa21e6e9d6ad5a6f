"""What an auditor saw, gone through in the order of its writing: whatever must not be, with all there was then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from cluster import judging
from cluster.judging import Json, is_managed, is_ours, is_over, is_ready, plus, requests, seconds, told_by_us

if TYPE_CHECKING:
    from cluster.auditor import Auditor, Seen

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
NEWS_SECONDS = 2.0
"""A change by somebody else younger than this may not have been known to the scheduler, where nothing is late."""
AROUND_SECONDS = 10.0
"""Whoever was late by so much or less around an instant is known from the machine's pulse."""
WITH_GROUP = re.compile(r"with its pod group (\S+) ")
BOTH_SLACKS = re.compile(r"slack is -?(\d+\.\d|inf) s, that of the preemptor -?(\d+\.\d|inf) s")


class Binding(NamedTuple):
    """A pod came to a node; when that was seen, and the etcd revision that wrote it."""

    node: str
    revision: int
    at: float


NOWHERE = Binding("", 0, float("inf"))
FAILED = 500
"""And above: the API server's own failures."""


class Replay:
    """Goes through a tape, knowing at each revision what there was.

    ``terms`` are the instants at which a scheduler began to decide, seconds since 1970: it knows of a former one's
    decisions only what pods say.
    """

    def __init__(self, auditor: Auditor, terms: Iterable[float] = ()) -> None:
        self.auditor = auditor
        self.terms = sorted(terms)
        self.wrong: list[str] = []
        self.pods: dict[str, Json] = {}
        self.since: dict[str, float] = {}  # when a pod was seen on its node
        self.unready: dict[str, float] = {}
        self.nodes: dict[str, list[Seen]] = {}
        self.budgets: dict[str, Json] = {}
        self.claims: dict[tuple[str, str], Json] = {}
        self.names: dict[str, str] = {}
        self.bound: dict[str, Binding] = {}
        self.gone: dict[str, int] = {}  # revision at which a pod was over
        self.last: dict[str, Json] = {}
        self.now = 0.0
        self.comes: dict[str, tuple[float, Json]] = {}  # when each pod of ours is on its node, and how it is then
        for one in auditor.tape("pods"):
            if one.body["spec"].get("nodeName") and is_ours(one.body):
                self.comes.setdefault(one.body["metadata"]["uid"], (one.at, one.body))
        self.evicted = {target(act): seconds(act["stageTimestamp"]) for act in auditor.evictions()}
        # Of one that failed the API server does not say whether it was carried out before.
        self.perhaps_evicted = self.evicted.keys() | {
            target(act)
            for act in auditor.acts()
            if act["objectRef"].get("subresource") == "eviction" and act["responseStatus"]["code"] >= FAILED
        }

    def news(self, at: float) -> float:
        """A change by somebody else younger than this may not have been known to the scheduler at an instant."""
        return NEWS_SECONDS + self.auditor.late(at - AROUND_SECONDS, at + AROUND_SECONDS)

    def judge(self) -> list[str]:
        for one in self.auditor.tape():
            match one.kind:
                case "nodes":
                    self.nodes.setdefault(one.body["metadata"]["name"], []).append(one)
                case "budgets":
                    self._budget(one)
                case "claims":
                    meta = one.body["metadata"]
                    self.claims[meta["namespace"], meta["name"]] = one.body
                case "pods":
                    self._pod(one)
        self._acts()
        self._victims()
        return self.wrong

    def _say(self, pod: Json, what: str) -> None:
        self.wrong.append(f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}: {what}")

    def _pod(self, one: Seen) -> None:
        pod, uid, self.now = one.body, one.body["metadata"]["uid"], one.at
        before = self.pods.get(uid)
        self.last[uid] = pod
        was, now = (before or {}).get("spec", {}).get("nodeName", ""), pod["spec"].get("nodeName", "")
        if was and was != now:
            self._say(pod, f"moved from {was} to {now or 'nowhere'}")
        if now and not was:
            self.since[uid] = one.at
            if before is not None and is_ours(pod) and not one.gone:
                self._binding(pod, now, one)
        if before is not None and is_ready(before) and not (is_ready(pod) and not one.gone):
            self.unready[uid] = one.at
        leaves = "deletionTimestamp" in pod["metadata"] and "deletionTimestamp" not in (before or pod)["metadata"]
        if leaves and uid in self.evicted:
            self._eviction(before or pod, one.at)
        self.pods[uid] = pod
        if one.gone or is_over(pod):
            self.gone.setdefault(uid, one.revision)
        if one.gone:
            del self.pods[uid]

    # -- bindings --------------------------------------------------------------------------------------------------

    def _binding(self, pod: Json, node: str, one: Seen) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self.bound:
            self._say(pod, "bound twice")
        self.bound[uid] = Binding(node, one.revision, one.at)
        if pod["spec"].get("schedulingGates"):
            self._say(pod, "bound while gated")
        for volume in pod["spec"].get("volumes", ()):
            name = volume.get("persistentVolumeClaim", {}).get("claimName")
            found = self.claims.get((pod["metadata"]["namespace"], name), {}).get("metadata", {})
            if name and BIND_COMPLETED not in found.get("annotations", {}):
                self._say(pod, f"bound before its claim {name} was")
        versions = list(self._recent(node, one.at))
        if not versions:
            self._say(pod, f"bound to {node}, which does not exist")
            return
        for judge in (self._fits, judging.wrong_node, self._company):
            reasons = [judge(pod, version) for version in versions]
            if all(reasons):
                self._say(pod, f"bound to {node} at revision {one.revision}: {reasons[-1]}")

    def _recent(self, name: str, at: float) -> Iterator[Json]:
        """The versions of a node that the scheduler may have known at an instant."""
        news = self.news(at)
        versions = [one for one in self.nodes.get(name, ()) if one.at <= at + news]
        for i, one in enumerate(versions):
            until = versions[i + 1].at if i + 1 < len(versions) else float("inf")
            if until >= at - news and not one.gone:
                yield one.body

    def _on(self, node: str, but: str, news: float) -> list[Json]:
        """Who takes room on a node, but for strangers who came no longer ago than ``news``."""
        return [
            pod
            for uid, pod in self.pods.items()
            if uid != but and pod["spec"].get("nodeName") == node and not is_over(pod)
            and (is_ours(pod) or self.now - self.since[uid] > news)
        ]  # fmt: skip

    def _fits(self, pod: Json, node: Json) -> str:
        # Strangers who came just now are not held against us.
        here = self._on(node["metadata"]["name"], pod["metadata"]["uid"], self.news(self.now))
        asked = plus(requests(pod), *(requests(other) for other in here))
        room = {name: judging.number(value) for name, value in node["status"].get("allocatable", {}).items()}
        for name, own in requests(pod).items():
            if own > 0 and asked[name] > room.get(name, 0):
                return f"{float(asked[name]):g} of {name} on it, {float(room.get(name, 0)):g} allocatable"
        return ""

    def _company(self, pod: Json, node: Json) -> str:
        """Strangers who came, and changes of nodes that were made, just now may have been known, or not."""
        reason = ""
        for news, which in product((self.news(self.now), -1.0), (0, -1)):
            reason = self._with(pod, node, news, which)
            if not reason:
                break
        return reason

    def _with(self, pod: Json, node: Json, news: float, which: int) -> str:
        """The same if of each node this one of its recent versions was known, and strangers older than ``news``."""
        soon = self.news(self.now)
        known = {name: list(self._recent(name, self.now)) for name in self.nodes}
        nodes = {name: versions[which] for name, versions in known.items() if versions}
        others = [
            (other, nodes[where])
            for name in nodes
            for other in self._on(name, pod["metadata"]["uid"], news)
            if (where := other["spec"]["nodeName"]) in nodes
        ]
        wrong = judging.wrong_company(pod, node, others) or judging.wrong_spread(pod, node, nodes.values(), others)
        if not wrong:
            return ""
        # Bindings that are decided in an order may go through in another: with those under way it must be right.
        others += [
            (other, nodes[other["spec"]["nodeName"]])
            for uid, (at, other) in self.comes.items()
            if uid not in self.since and at - self.now <= soon and other["spec"]["nodeName"] in nodes
        ]
        return judging.wrong_company(pod, node, others) or judging.wrong_spread(pod, node, nodes.values(), others)

    # -- budgets ---------------------------------------------------------------------------------------------------

    def _budget(self, one: Seen) -> None:
        uid = one.body["metadata"]["uid"]
        if one.gone:
            self.budgets.pop(uid, None)
            return
        self.budgets[uid] = one.body
        if one.body.get("status", {}).get("disruptionsAllowed", 0) < 0:
            self.wrong.append(f"budget {one.body['metadata']['name']}: less than no disruption allowed")

    def _eviction(self, victim: Json, at: float) -> None:
        """A pod is told to leave, by us: those that its budgets want healthy must be there without it."""
        meta, news = victim["metadata"], self.news(at)
        for budget in self.budgets.values():
            selector = budget["spec"].get("selector")
            if budget["metadata"]["namespace"] != meta["namespace"] or not judging.selects(
                selector, meta.get("labels", {})
            ):
                continue
            about = [
                pod for pod in self.pods.values()
                if pod["metadata"]["namespace"] == meta["namespace"]
                and judging.selects(selector, pod["metadata"].get("labels", {}))
                and pod["metadata"]["uid"] != meta["uid"]
            ]  # fmt: skip
            healthy = sum(
                (is_ready(pod) and "deletionTimestamp" not in pod["metadata"])
                or 0.0 <= at - self.unready.get(pod["metadata"]["uid"], 0.0) <= news
                for pod in about
            )
            wanted = budget.get("status", {}).get("desiredHealthy", 0)
            if healthy < wanted:
                name = budget["metadata"]["name"]
                self._say(victim, f"evicted: {healthy} healthy left of budget {name}, {wanted} wanted")

    # -- who did it ------------------------------------------------------------------------------------------------

    def _acts(self) -> None:
        bindings: dict[str, int] = {}
        for act in self.auditor.acts():
            what, code = act["objectRef"], act["responseStatus"]["code"]
            if code >= 300:
                continue
            if what["resource"] == "nodes" or (what["resource"] == "pods" and not what.get("subresource")):
                self.wrong.append(f"{act['verb']} of {what['resource']} {what.get('name')}")
            if what["resource"] != "pods":
                continue
            uid = target(act)
            pod = self.last.get(uid)
            if pod is None:
                self.wrong.append(f"{what['subresource']} of pod {what['namespace']}/{what['name']}, which nobody saw")
            elif not is_ours(pod):
                self._say(pod, f"{what['subresource']} by us, though its scheduler is {pod['spec']['schedulerName']}")
            elif what["subresource"] == "binding":
                bindings[uid] = bindings.get(uid, 0) + 1
                if bindings[uid] > 1:
                    self._say(pod, f"{bindings[uid]} bindings went through")
        for uid in self.bound.keys() - bindings.keys() if bindings else ():
            self._say(self.last[uid], "bound by somebody else")

    def _victims(self) -> None:
        told = {
            one.body["regarding"].get("uid"): one.body
            for one in self.auditor.tape("events")
            if one.body["reason"] == "Preempted" and told_by_us(one.body)
        }
        moved = {
            one.body["regarding"].get("uid")
            for one in self.auditor.tape("events")
            if one.body["reason"] == "ResizeMoved" and told_by_us(one.body)
        }
        for uid in moved - self.perhaps_evicted:
            self.wrong.append(f"event ResizeMoved of {uid}, which we did not evict")
        for uid in told.keys() - self.perhaps_evicted:
            about = told[uid]["regarding"]
            self.wrong.append(f"event Preempted of {about.get('namespace')}/{about['name']}, which we did not evict")
        for uid in self.evicted:
            victim = self.last.get(uid)
            if victim is not None and uid in moved:
                self._moved(victim)
            elif victim is not None:
                self._victim(victim, told.get(uid), self._left_together(uid, told))

    def _moved(self, pod: Json) -> None:
        """Who is evicted for its resize must wait for it, and come back."""
        if not judging.resize_waits(pod):
            self._say(pod, "moved for a resize that does not wait")
        if not any(one.get("controller") for one in pod["metadata"].get("ownerReferences", ())):
            self._say(pod, "moved for its resize, though nobody creates it anew")

    def _left_together(self, uid: str, told: dict[str, Json]) -> set[str]:
        """Nodes of all that were evicted with a pod for the same other one, where their group goes as a whole."""

        def decision(event: Json) -> tuple[str, str]:
            group = WITH_GROUP.search(event.get("note", ""))
            return event.get("related", {}).get("uid", ""), group[1] if group else ""

        mine = decision(told.get(uid, {}))
        both = [one for one in self.evicted if one in told and one in self.last and decision(told[one]) == mine]
        return {self.last[one]["spec"].get("nodeName", "") for one in both} if mine[1] else set()

    def _victim(self, victim: Json, event: Json | None, together: set[str]) -> None:
        node = victim["spec"].get("nodeName", "")
        versions = self.nodes.get(node, ())
        if not any(is_managed(one.body) for one in versions):
            self._say(victim, f"evicted from {node}, which is not ours")
        if event is None:
            self._say(victim, "evicted without an event")
            return
        if not BOTH_SLACKS.search(event.get("note", "")):
            self._say(victim, f"its event does not tell both slacks: {event.get('note')}")
        other, since = event.get("related", {}).get("uid", ""), self.evicted[victim["metadata"]["uid"]]
        binding = self.bound.get(other, NOWHERE)
        if any(self._given_up(other, one) for one in {node, *together}):
            return
        if binding.node in {node, *together}:
            # A new leader knows whether a place is free, not whom a former one waited for.
            if binding.revision < self.gone.get(victim["metadata"]["uid"], 0) and not self._succeeded(since, binding):
                self._say(victim, "was still there when its beneficiary was bound")
        elif not (self._succeeded(since, binding) and self._used(node, since, binding)):
            name = event.get("related", {}).get("name")
            self._say(victim, f"evicted for {name}, which is on {binding.node or 'no node'}")

    def _succeeded(self, since: float, until: Binding) -> bool:
        """Whether another scheduler began to decide between an eviction and a binding, if there was one."""
        if until is NOWHERE:
            return False
        late = self.auditor.late(since, min(until.at, since + AROUND_SECONDS))
        return any(since - late <= at <= until.at + late for at in self.terms)

    def _used(self, node: str, since: float, until: Binding) -> bool:
        """Whether somebody came to a node after an eviction there, until a binding and what was decided with it."""
        soon = until.at + self.news(until.at)
        return any(one.node == node and since <= one.at <= soon for one in self.bound.values())

    def _given_up(self, uid: str, node: str) -> bool:
        """Whether its beneficiary ended first, or an event says that it waits for this node no more.

        Of repeats that come while an event cannot be written only the last note is: then the count tells of places
        that no note names.
        """
        if uid in self.gone and uid not in self.bound:
            return True
        told: dict[str, int] = {}
        for one in self.auditor.tape("events"):
            event, note = one.body, one.body.get("note", "")
            if (
                event["reason"] != "FailedScheduling"
                or event["regarding"].get("uid") != uid
                or "nomination of" not in note
            ):
                continue
            before, count = told.get(event["metadata"]["uid"], 0), event.get("deprecatedCount", 1)
            if node in note or count > before + 1:
                return True
            told[event["metadata"]["uid"]] = count
        return False


def target(act: Json) -> str:
    """UID of the pod that a request was about."""
    body: dict[str, Any] = act.get("requestObject") or {}
    options = body.get("deleteOptions") or {}
    found = (options.get("preconditions") or {}).get("uid") or body.get("metadata", {}).get("uid")
    return str(found or act["objectRef"].get("uid", ""))
