"""Kubelets and the control plane's view of nodes: pods start, become ready, run to their end, and go in their grace."""

from __future__ import annotations

from simulated.agents import NODES, PODS, Agent, is_over, on_node, remove, room, taken
from simulated.pod_model import set_condition, timestamp
from simulated.resources import Json
from simulated.store import Change, Key
from slacktide.submit.manifests import RUN_SECONDS as RUNS
from slacktide.submit.manifests import SHUTDOWN_SECONDS as SHUTDOWN
from slacktide.submit.manifests import STARTUP_SECONDS as STARTUP

UNREACHABLE = "node.kubernetes.io/unreachable"
GRACE_SECONDS = 40.0
"""After this long without a word from its kubelet a node is Unknown."""
TOLERATED_SECONDS = 300.0
ORPHAN_SECONDS = 40.0


def said_of(pod: Json, annotation: str) -> float | None:
    """Seconds, as an annotation of the pod says to the lab's kubelets, too."""
    found = pod["metadata"].get("annotations", {}).get(annotation)
    return None if found is None else float(found)


class Kubelets(Agent):
    """Every node's. A node in ``down`` does nothing, and says nothing."""

    pace = (0.05, 0.6)
    probes = (0.2, 8.0)
    """Seconds from a container's start until its pod is ready, where no annotation says how many."""
    grace = (0.0, 1.0)
    """How much of its grace a pod takes, where none says so."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.down: set[str] = set()
        self.sick: set[Key] = set()
        """Pods whose probes fail."""
        self._ends: dict[str, float] = {}
        """When the work of a job's pod is done, by its UID."""

    def see(self, change: Change) -> None:
        if change.resource is PODS and change.type != "DELETED" and change.body["spec"].get("nodeName"):
            self.wake(change.key)
        elif change.resource is NODES and change.type == "ADDED":  # some may have been bound to it before
            for one in on_node(self.store, change.key[1]):
                self.wake((one["metadata"]["namespace"], one["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        pod = self.store.copy("pods", *key)
        if pod is None or not (node := pod["spec"].get("nodeName")) or node in self.down:
            return
        if self.store.get("nodes", "", node) is None:
            self.later(ORPHAN_SECONDS, self._collect, node)
            return
        metadata, status = pod["metadata"], pod["status"]
        if metadata.get("deletionTimestamp"):
            uid = metadata["uid"]
            period = metadata["deletionGracePeriodSeconds"]
            said = said_of(pod, SHUTDOWN)
            wait = period * self.chance.between("grace", *self.grace) if said is None else min(said, period)
            self.later(wait, self._stopped, key, uid, node)
        elif status.get("phase") == "Pending":
            self._start(key, pod, node)
        elif not is_over(pod) and not status["containerStatuses"][0]["ready"] and key not in self.sick:
            said = said_of(pod, STARTUP)
            wait = self.chance.between("probes", *self.probes) if said is None else said
            self.later(wait, self._ready, key, metadata["uid"], node)

    def _start(self, key: Key, pod: Json, node: str) -> None:
        held, has = taken(on_node(self.store, node)), room(self.store.objects["nodes"]["", node])
        if any(mine > theirs for mine, theirs in zip(held, has, strict=True)):
            pod["status"] |= {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: no room"}
            self.store.write(PODS, pod)
            return
        pod["status"] |= {"phase": "Running", "startTime": timestamp(self.now)}
        self.say(pod, ready=False)
        self.store.write(PODS, pod)
        if (seconds := said_of(pod, RUNS)) is not None:
            self._ends[pod["metadata"]["uid"]] = self.now + seconds
            self.later(seconds, self._done, key, pod["metadata"]["uid"], node)

    def say(self, pod: Json, *, ready: bool) -> None:
        """Its containers run; whether they are ready."""
        state = {"running": {"startedAt": timestamp(self.now)}}
        old = (pod["status"].get("containerStatuses") or [{}])[0].get("state", state)
        pod["status"]["containerStatuses"] = [{"name": "c", "ready": ready, "state": old}]
        for kind in ("PodReadyToStartContainers", "Initialized"):
            set_condition(pod, self.now, kind, "True")
        for kind in ("ContainersReady", "Ready"):
            set_condition(pod, self.now, kind, str(ready), "" if ready else "ContainersNotReady")

    def _present(self, key: Key, uid: str, node: str) -> Json | None:
        """The pod, where it and its node are there."""
        pod = self.store.copy("pods", *key)
        alive = node not in self.down and self.store.get("nodes", "", node) is not None
        return pod if pod is not None and pod["metadata"]["uid"] == uid and alive else None

    def _ready(self, key: Key, uid: str, node: str) -> None:
        pod = self._present(key, uid, node)
        if pod is not None and pod["status"].get("phase") == "Running" and key not in self.sick:
            self.say(pod, ready=True)
            self.store.write(PODS, pod)

    def _done(self, key: Key, uid: str, node: str) -> None:
        pod = self._present(key, uid, node)
        if pod is None or is_over(pod):
            return
        pod["status"]["phase"] = "Succeeded"
        ended = {"exitCode": 0, "reason": "Completed", "finishedAt": timestamp(self.now)}
        pod["status"]["containerStatuses"] = [{"name": "c", "ready": False, "state": {"terminated": ended}}]
        set_condition(pod, self.now, "Ready", "False", "PodCompleted")
        self.store.write(PODS, pod)

    def _stopped(self, key: Key, uid: str, node: str) -> None:
        pod = self._present(key, uid, node)
        if pod is not None:
            remove(self.api, "pods", pod, 0)

    def crash(self, pod: Json) -> None:
        """Its container ends, and is started again."""
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        found = self._present(key, pod["metadata"]["uid"], pod["spec"]["nodeName"])
        if found is not None and found["status"].get("phase") == "Running":
            self.say(found, ready=False)
            self.store.write(PODS, found)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def fail(self, name: str) -> None:
        """A machine is gone, with all that runs there."""
        if name not in self.down:
            self.down.add(name)
            self.later(GRACE_SECONDS, self._unknown, name)

    def _unknown(self, name: str) -> None:
        node = self.store.copy("nodes", "", name)
        if node is None or name not in self.down:
            return
        set_condition(node, self.now, "Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        taints = [one for one in node["spec"].get("taints", ()) if one["key"] != UNREACHABLE]
        node["spec"]["taints"] = [
            *taints, {"key": UNREACHABLE, "effect": "NoSchedule"}, {"key": UNREACHABLE, "effect": "NoExecute"},
        ]  # fmt: skip
        self.store.write(NODES, node)
        for one in on_node(self.store, name):
            pod = self.store.copy("pods", one["metadata"]["namespace"], one["metadata"]["name"])
            if pod is not None and not is_over(pod):
                set_condition(pod, self.now, "Ready", "False")
                self.store.write(PODS, pod)
        self.later(TOLERATED_SECONDS, self._evict_all, name, node["metadata"]["uid"])

    def _evict_all(self, name: str, uid: str) -> None:
        node = self.store.get("nodes", "", name)
        if node is None or node["metadata"]["uid"] != uid or name not in self.down:
            return
        for one in on_node(self.store, name):
            key = one["metadata"]["namespace"], one["metadata"]["name"]
            pod = self.store.copy("pods", *key)
            if pod is None or is_over(pod) or pod["metadata"].get("deletionTimestamp"):
                continue
            set_condition(pod, self.now, "DisruptionTarget", "True", "DeletionByTaintManager")
            self.store.write(PODS, pod)
            remove(self.api, "pods", pod)

    def come_back(self, name: str) -> None:
        """The machine has booted again: what ran there starts anew."""
        self.down.discard(name)
        node = self.store.copy("nodes", "", name)
        if node is None:
            return
        taints = [one for one in node["spec"].get("taints", ()) if one["key"] != UNREACHABLE]
        node["spec"] = {key: value for key, value in node["spec"].items() if key != "taints"}
        if taints:
            node["spec"]["taints"] = taints
        set_condition(node, self.now, "Ready", "True", "KubeletReady")
        self.store.write(NODES, node)
        for one in on_node(self.store, name):
            key, uid = (one["metadata"]["namespace"], one["metadata"]["name"]), one["metadata"]["uid"]
            if one["status"].get("phase") == "Running":
                self.crash(one)
                if uid in self._ends:
                    wait = max(self._ends[uid] - self.now, 1.0)
                    self.later(wait, self._done, key, uid, name)
            self.wake(key)

    def lose(self, name: str) -> None:
        """The machine is gone, and its node is deleted; its pods are nobody's."""
        self.down.discard(name)
        node = self.store.get("nodes", "", name)
        if node is not None:
            remove(self.api, "nodes", node)
            self.later(ORPHAN_SECONDS, self._collect, name)

    def _collect(self, name: str) -> None:
        """Pods of a node that is no more are no more."""
        if self.store.get("nodes", "", name) is None:
            for one in on_node(self.store, name):
                remove(self.api, "pods", one, 0)
