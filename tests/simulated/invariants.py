"""What must hold at every step, whatever happens; asked of the API server's model, not of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simulated.agents import NODES, PODS, is_over, on_node, owner_of, room, taken
from simulated.api_model import Answer, Request
from simulated.loop import Actor
from simulated.network import Wire
from simulated.pod_model import is_true, seconds_of, selects
from simulated.resources import BY_NAME, Json, Target, target_of
from simulated.store import Change, Store
from slacktide.engine.core.types import Decision

if TYPE_CHECKING:
    from simulated.replica import Replica

LEDGERS = BY_NAME["availabilities"]
BLIND_SECONDS = 30.0
"""What a new leader may not know of what happened since the last one wrote a ledger."""
LEASE = ("slacktide-system", "slacktide")
FREE = ("leases", "events")
"""What a replica may write that does not lead."""


class Invariants:
    """Collects what was wrong in ``findings``, each with its instant."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.findings: list[str] = []
        self.bindings = self.evictions = self.terms = 0
        self.acted: Callable[[str, str], None] = lambda *_: None
        """Hears of each pod, by namespace and name, about which a binding or an eviction has just left a process."""
        self.chosen: Callable[[Replica], None] = lambda _: None
        """Hears of each replica that has just decided."""
        self.preempting: Callable[[Decision], None] = lambda _: None
        """Hears of each decision for which somebody has to go."""
        self.told_to_go: Callable[[str], None] = lambda _: None
        """Hears of the node of each pod that has just been evicted."""
        self.drained: set[str] = set()
        """UIDs of pods that a user evicts."""
        self._decided: set[tuple[str, str]] = set()
        """Pods and the nodes that a leader chose for them: a later one may carry that out."""
        self._victims: set[str] = set()
        self._bound_to: dict[str, str] = {}
        """By pods' UIDs those of the nodes that they were bound to; empty where that was gone."""
        self._went: set[str] = set()
        """Nodes that were deleted: a smaller one may have joined under the name."""
        self._beyond: set[str] = set()
        """Of whom it was found that there is no room for what they wait for."""
        self._deciders: dict[str, Replica] = {}
        """Who has decided, by the name of its process."""
        self._delivered: dict[str, tuple[float, float]] = {}
        """What ledgers said last that workloads had, by UID: as of when, and good seconds."""
        store.followers.append(self.see)

    def finding(self, text: str) -> None:
        """Something is wrong."""
        self.findings.append(f"{self.store.now() - 1_767_225_600.0:.3f} s: {text}")

    # -- what the scheduler decides --------------------------------------------------------------------------------

    def decided(self, replica: Replica, decision: Decision) -> None:
        """A replica has decided; now it may carry that out."""
        self.chosen(replica)
        self._decided.add((decision.uid, decision.host))
        self._victims.update(victim.uid for victim in decision.victims)
        self._deciders[replica.identity] = replica
        if decision.victims:
            self.preempting(decision)

    # -- what it sends ---------------------------------------------------------------------------------------------

    def follow(self, wire: Wire) -> None:
        """Look at what a process sends."""
        wire.leaving, wire.arrived = self.leaves, self.arrives

    def leaves(self, actor: Actor, request: Request) -> None:
        """A request leaves a process. Who writes must hold the lease at that instant."""
        if request.method == "GET" or (target := target_of(request.path)) is None or target.resource.plural in FREE:
            return
        lease = self.store.get("leases", *LEASE)
        holder = lease["spec"].get("holderIdentity") if lease else None
        if holder != actor.name:
            self.finding(f"{actor.name} sends {request.method} {request.path} while {holder or 'nobody'} has the lease")
        self._keeps_what_there_is(actor)
        if target.sub == "eviction":
            self._is_for_a_place(actor, target)
        if target.sub in ("binding", "eviction"):
            self.acted(target.namespace, target.name)

    def _is_for_a_place(self, actor: Actor, target: Target) -> None:
        """Whoever is evicted has to go for a place that is still kept."""
        pod, decider = self.store.get("pods", target.namespace, target.name), self._deciders.get(actor.name)
        if pod is None or decider is None or decider.scheduler is None:
            return
        kept = [one.decision for one in decider.scheduler.nominations.values()]
        uid = pod["metadata"]["uid"]
        if uid in self._victims and not any(victim.uid == uid for one in kept for victim in one.victims):
            self.finding(f"{actor.name} evicts {target.name} ({uid}) for a place that nobody waits for any more")

    def _keeps_what_there_is(self, actor: Actor) -> None:
        """A leader keeps a place only where by its own books there is room for all who are there and to come. It has
        not freed the room of a former leader's victims, nor may it have heard that a node is another one."""
        decider = self._deciders.get(actor.name)
        if decider is None or decider.scheduler is None or decider.scheduler.session is None:
            return
        engine, reservations = decider.scheduler.session.engine, decider.scheduler.session.actor.reservations
        excused = {one.decision.host for one in reservations.nominations.values() if not reservations.are_going(one)}
        excused |= self._went
        for uid, one in reservations.nominations.items():
            room = {} if one.decision.host in excused else engine.room(one.decision.host)
            if min(room.values(), default=0) < 0 and uid not in self._beyond:
                self._beyond.add(uid)
                self.finding(
                    f"{actor.name} keeps a place for {uid} on {one.decision.host}, where it counts {room} free"
                )

    def arrives(self, actor: Actor, request: Request, answer: Answer) -> None:
        """A request was carried out."""
        target = target_of(request.path)
        if not answer.ok or target is None or target.resource is not PODS:
            return
        pod = self.store.get("pods", target.namespace, target.name)
        if target.sub == "binding" and pod is not None:
            self.bindings += 1
            uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
            if (uid, node) not in self._decided:
                self.finding(f"{actor.name} binds {target.name} ({uid}) to {node}, which nobody has decided")
        elif target.sub == "eviction" and pod is not None:
            self.evictions += 1
            self.told_to_go(pod["spec"].get("nodeName", ""))

    # -- what is ---------------------------------------------------------------------------------------------------

    def see(self, change: Change) -> None:
        """Something was written."""
        if change.resource is NODES:
            if change.type == "DELETED":
                self._went.add(change.key[1])
            return
        if change.resource is LEDGERS:
            self._forgets_nothing(change)
        if change.resource is not PODS:
            return
        body, before = change.body, change.before or {}
        node, was = body["spec"].get("nodeName"), before.get("spec", {}).get("nodeName")
        if node != was:
            if was is not None:
                self.finding(f"{change.key[1]} is bound to {was}, and then to {node}")
            if change.type != "DELETED":
                self._has_room(change.key[1], node)
                self._bound_to[body["metadata"]["uid"]] = self._uid_of(node)
        is_rejected = body["status"].get("reason") == "OutOfcpu" and not is_over(before)
        # A smaller machine of the name may have joined since.
        if change.type != "DELETED" and is_rejected and self._bound_to[body["metadata"]["uid"]] == self._uid_of(node):
            self.finding(f"{change.key[1]} was rejected by {node}: no room")
        evicted = _evicted(body)
        if evicted and not _evicted(before):
            self._is_told_to_go(body, before)

    def _forgets_nothing(self, change: Change) -> None:
        """What a workload has had it keeps, whoever leads. A write that was given up may arrive after a later one."""
        status = change.body.get("status", {})
        uid, good = status.get("target", {}).get("uid"), status.get("goodSeconds")
        if uid is None or good is None:
            return
        at, (told, before) = seconds_of(status["at"]), self._delivered.get(uid, (0.0, 0.0))
        if before > good + BLIND_SECONDS and at >= told:
            self.finding(f"the ledger {change.key[1]} falls from {before:.1f} good seconds to {good:.1f}")
        self._delivered[uid] = at, good

    def _uid_of(self, node: str) -> str:
        found = self.store.get("nodes", "", node)
        return "" if found is None else str(found["metadata"]["uid"])

    def _has_room(self, name: str, node: str) -> None:
        found = self.store.get("nodes", "", node)
        if found is None:
            return  # it went while the binding was under way
        held, has = taken(on_node(self.store, node)), room(found)
        if any(mine > theirs for mine, theirs in zip(held, has, strict=True)):
            self.finding(f"{name} is bound to {node}, where {held} of {has} are taken now")

    def _is_told_to_go(self, pod: Json, before: Json) -> None:
        """A pod is evicted: within its budget, by a decision, and its ledger tells of its workload."""
        metadata = pod["metadata"]
        if metadata["uid"] in self.drained:
            return
        is_moved = is_true(pod, "PodResizePending")  # to where there is room for it
        if metadata["uid"] not in self._victims and not is_moved:
            self.finding(f"{metadata['name']} ({metadata['uid']}) is evicted, which nobody has decided")
        elif why := self._untold(pod):
            self.finding(f"{metadata['name']} is evicted, and {why}")
        self._within_budget(pod, before)

    def _untold(self, pod: Json) -> str:
        """Whether a new leader would know of the workload whose pod goes."""
        owner = owner_of(pod)
        if owner is None:
            return ""
        known = {one.get("status", {}).get("target", {}).get("uid") for one in self.store.every("availabilities")}
        mine = self.store.get("replicasets", pod["metadata"]["namespace"], owner["name"])
        if owner["kind"] == "ReplicaSet" and mine is None:
            return ""  # its workload was deleted
        above = owner_of(mine) if mine is not None else None
        uids = {owner["uid"], above["uid"] if above else ""}
        return "" if uids & known else f"no ledger tells of {owner['name']}"

    def _within_budget(self, pod: Json, before: Json) -> None:
        """At least as many stay healthy as the budget asks for, by what is there at this instant."""
        if not is_true(before, "Ready"):
            return
        namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
        for budget in self.store.every("poddisruptionbudgets"):
            if budget["metadata"]["namespace"] != namespace or not selects(budget["spec"].get("selector"), labels):
                continue
            gone = budget["status"].get("disruptedPods", {})
            healthy = sum(
                is_true(one, "Ready") and not one["metadata"].get("deletionTimestamp")
                and not _evicted(one)
                for one in self.store.every("pods")
                if one["metadata"]["namespace"] == namespace
                and selects(budget["spec"].get("selector"), one["metadata"].get("labels", {}))
            )  # fmt: skip
            if pod["metadata"]["name"] not in gone:
                self.finding(f"{pod['metadata']['name']} is evicted, and its budget does not count it ({healthy})")


def _evicted(body: Json) -> bool:
    return any(
        one["type"] == "DisruptionTarget" and one["status"] == "True" and one.get("reason") == "EvictionByEvictionAPI"
        for one in body.get("status", {}).get("conditions", ())
    )
