"""Random clusters as the API server takes them: nodes, pods that run, and pods that wait for a scheduler's word.

Each scene has nodes, zones, racks and two namespaces of its own, and its pods keep to its nodes by a node selector. So
hundreds of scenes fit into one cluster and know nothing of each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
SCENE, GPU = "example.com/scene", "example.com/gpu"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
RACK, SIZE, FLAVOUR = "example.com/rack", "example.com/size", "example.com/flavour"
REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
SCHEDULERS = ("default-scheduler", "slacktide")


@dataclass
class Scene:
    """Objects to be created in this order; ``waiting`` are pods without a node and without a scheduler's name."""

    name: str
    namespaces: list[Json] = field(default_factory=list)
    nodes: list[Json] = field(default_factory=list)
    volumes: list[Json] = field(default_factory=list)
    claims: list[Json] = field(default_factory=list)
    running: list[Json] = field(default_factory=list)
    going: list[Json] = field(default_factory=list)
    """Of those that run, who is to be told to go, with so much grace that they stay."""
    waiting: list[Json] = field(default_factory=list)


class Dice:
    """Draws one scene; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scene = Scene(f"s{seed}")
        self.spaces = [f"{self.scene.name}-red", f"{self.scene.name}-blue"]

    def own(self, name: str) -> str:
        """The value of a label that no other scene has."""
        return f"{self.scene.name}-{name}"

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self, share: float, most: int, draw: Callable[[], Any]) -> list[Any]:
        """With this probability up to ``most`` of them, else none."""
        return [draw() for _ in range(self.random.randint(1, most))] if self.chance(share) else []

    # -- the whole of it -------------------------------------------------------------------------------------------

    def drawn(self) -> Scene:
        return self._draw(0, 10)

    def full(self, priorities: Sequence[str]) -> Scene:
        """One with little room, all of whose pods are slacktide's and of one of these PriorityClasses; who waits is not
        of the first."""
        scene = self._draw(8, 20)
        scene.going.clear()
        claimed: set[str] = set()
        for one in scene.running:
            one["spec"] |= {"schedulerName": SCHEDULERS[1], "priorityClassName": self.pick(*priorities)}
            claims = {each["persistentVolumeClaim"]["claimName"] for each in one["spec"].get("volumes", ())}
            if claims & claimed:
                del one["spec"]["volumes"]  # of a claim for one pod kube-scheduler does not count how many use it
            claimed |= claims
        for one in scene.waiting:
            one["spec"]["priorityClassName"] = self.pick(*priorities[1:])
        return scene

    def _draw(self, least: int, most: int) -> Scene:
        scene = self.scene
        for name, team in zip(self.spaces, (self.own("one"), self.own(self.pick("one", "two"))), strict=True):
            scene.namespaces.append({"metadata": {"name": name, "labels": {"team": team}}})
        for number in range(self.random.randint(2, 6)):
            scene.nodes.append(self.node(f"{scene.name}-n{number}"))
        for number in range(self.pick(0, 0, 1, 2)):
            self.volume(f"{scene.name}-v{number}")
        for number in range(self.random.randint(least, most)):
            self.run(f"r{number}")
        for number in range(self.random.randint(2, 5)):
            scene.waiting.append(self.pod(f"w{number}"))
        return scene

    def node(self, name: str) -> Json:
        labels = {HOSTNAME: name, SCENE: self.scene.name}
        labels |= {ZONE: self.own(self.pick("z1", "z2", "z3")), RACK: self.own(self.pick("r1", "r2"))}
        labels |= {SIZE: self.pick("2", "5", "big"), FLAVOUR: self.pick("sweet", "sour")}
        labels = {key: value for key, value in labels.items() if key in (HOSTNAME, SCENE) or self.chance(0.85)}
        room = {"cpu": self.pick("1", "2", "4", "500m"), "memory": self.pick("1Gi", "4Gi", "512Mi")}
        room |= {"pods": self.pick("2", "5", "110"), "ephemeral-storage": self.pick("1Gi", "20Gi")}
        if self.chance(0.4):
            room[GPU] = self.pick("1", "2")
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        spec: Json = {"taints": self.some(0.35, 2, self.taint)}
        spec["taints"] = list({(one["key"], one["effect"]): one for one in spec["taints"]}.values())
        if self.chance(0.08):
            spec["unschedulable"] = True
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    def taint(self) -> Json:
        effect = self.pick("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
        key = self.pick("example.com/t", "example.com/u")
        return {"key": key, "value": self.pick("", "v", "3", "9"), "effect": effect}

    def volume(self, name: str) -> None:
        """A volume that some of the nodes can use, bound to a claim of its own."""
        names = [one["metadata"]["name"] for one in self.scene.nodes]
        usable = self.random.sample(names, self.random.randint(1, len(names)))
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": usable}]}
        common: Json = {"accessModes": [self.pick("ReadWriteOnce", "ReadWriteOncePod")], "storageClassName": "none"}
        reference = {"namespace": self.spaces[0], "name": name}
        spec = common | {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/none"}, "claimRef": reference}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        self.scene.volumes.append({"metadata": {"name": name}, "spec": spec})
        claimed = common | {"volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        self.scene.claims.append({"metadata": {"name": name, "namespace": self.spaces[0]}, "spec": claimed})

    def run(self, name: str) -> None:
        """A pod that somebody put on a node, whether it fits there or not."""
        able = [one for one in self.scene.nodes if all(t["effect"] != "NoExecute" for t in one["spec"]["taints"])]
        if not able:
            return
        body = self.pod(name)
        body["spec"]["nodeName"] = self.random.choice(able)["metadata"]["name"]
        body["spec"]["schedulerName"] = self.pick(*SCHEDULERS)
        body["spec"].pop("nodeSelector", None)  # kubelets refuse what does not match
        body["spec"].get("affinity", {}).pop("nodeAffinity", None)
        if self.chance(0.2):
            self.scene.going.append(body)
        self.scene.running.append(body)

    # -- pods ------------------------------------------------------------------------------------------------------

    def pod(self, name: str) -> Json:
        space = self.pick(self.spaces[0], self.spaces[0], self.spaces[1])
        labels = self.labels() | {"hash": self.pick("1", "2")}
        spec: Json = {"nodeSelector": {SCENE: self.scene.name}, "terminationGracePeriodSeconds": 0}
        spec["containers"] = [self.container("main")]
        spec["initContainers"] = [self.container(f"init-{i}", init=True) for i in range(self.pick(0, 0, 0, 1, 2))]
        affinity: Json = {}
        if self.chance(0.25):
            affinity["nodeAffinity"] = self.node_affinity()
        if terms := self.some(0.25, 2, self.term):
            affinity["podAffinity"] = {REQUIRED: terms}
        if terms := self.some(0.25, 2, self.term):
            affinity["podAntiAffinity"] = {REQUIRED: terms}
        spec["affinity"] = affinity
        spread = {(one["topologyKey"], one["whenUnsatisfiable"]): one for one in self.some(0.35, 2, self.spread)}
        spec["topologySpreadConstraints"] = list(spread.values())
        spec["tolerations"] = self.some(0.4, 2, self.toleration)
        if self.chance(0.1):
            spec["nodeSelector"] |= {ZONE: self.own("z1")}
        mine = [one["metadata"]["name"] for one in self.scene.claims]
        if mine and space == self.spaces[0] and self.chance(0.4):
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": self.random.choice(mine)}}]
        return {"metadata": {"name": name, "namespace": space, "labels": labels}, "spec": spec}

    def labels(self) -> Json:
        found = {"app": self.pick("a", "b"), "tier": self.pick("x", "y")}
        return {key: value for key, value in found.items() if self.chance(0.7)}

    def container(self, name: str, *, init: bool = False) -> Json:
        asked = {
            "cpu": self.pick("0", "100m", "400m", "1"), "memory": self.pick("0", "64Mi", "300Mi", "1Gi"),
            "ephemeral-storage": self.pick("0", "100Mi", "2Gi"),
        }  # fmt: skip
        asked = {key: value for key, value in asked.items() if self.chance(0.6)}
        resources: Json = {"requests": asked}
        if self.chance(0.12):
            asked[GPU] = "1"
            resources["limits"] = {GPU: "1"}
        body: Json = {"name": name, "image": "none", "resources": resources}
        if not init and self.chance(0.2):
            port = {"containerPort": 80, "hostPort": self.pick(80, 81), "protocol": self.pick("TCP", "UDP")}
            body["ports"] = [port | {"hostIP": self.pick("", "", "0.0.0.0", "10.0.0.1", "10.0.0.2")}]
        if init and self.chance(0.4):
            body["restartPolicy"] = "Always"
        return body

    def selector(self) -> Json | None:
        if self.chance(0.07):
            nobody_or_everybody: Json | None = self.pick(None, {})
            return nobody_or_everybody
        if self.chance(0.6):
            return {"matchLabels": self.labels()}
        key = self.pick("app", "tier")
        operator = self.pick("In", "NotIn", "Exists", "DoesNotExist")
        values = self.pick(["a", "x"], ["b", "y"], ["a", "b"]) if operator in ("In", "NotIn") else []
        return {"matchExpressions": [{"key": key, "operator": operator} | ({"values": values} if values else {})]}

    def term(self) -> Json:
        found: Json = {"topologyKey": self.pick(HOSTNAME, ZONE, ZONE, RACK), "labelSelector": self.selector()}
        if self.chance(0.15):
            found["namespaces"] = self.random.sample(self.spaces, self.random.randint(1, 2))
        if self.chance(0.15):
            found["namespaceSelector"] = {"matchLabels": {"team": self.own(self.pick("one", "two"))}}
        if found["labelSelector"] is not None and self.chance(0.15):
            found[self.pick("matchLabelKeys", "mismatchLabelKeys")] = ["hash"]
        return found

    def spread(self) -> Json:
        found: Json = {"topologyKey": self.pick(HOSTNAME, ZONE, ZONE, RACK), "maxSkew": self.pick(1, 1, 2)}
        found |= {"whenUnsatisfiable": self.pick("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")}
        found["labelSelector"] = self.selector()
        if found["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.2):
            found["minDomains"] = self.pick(1, 2, 3)
        if self.chance(0.3):
            found["nodeTaintsPolicy"] = self.pick("Honor", "Ignore")
        if self.chance(0.1):
            found["nodeAffinityPolicy"] = "Honor"  # "Ignore" would count other scenes' nodes
        if found["labelSelector"] is not None and self.chance(0.15):
            found["matchLabelKeys"] = ["hash"]
        return found

    def toleration(self) -> Json:
        operator = self.pick("Equal", "Exists", "Exists", "Lt", "Gt")
        effect = self.pick("", "NoSchedule", "NoExecute")
        if operator == "Exists" and self.chance(0.2):
            return {"operator": operator, "effect": effect}
        found = {"key": self.pick("example.com/t", "example.com/u"), "operator": operator, "effect": effect}
        if operator != "Exists":
            found["value"] = self.pick("5", "9") if operator in ("Lt", "Gt") else self.pick("", "v", "9")
        return found

    def node_affinity(self) -> Json:
        found: Json = {}
        if self.chance(0.8):
            found[REQUIRED] = {"nodeSelectorTerms": [self.node_term() for _ in range(self.pick(1, 1, 2))]}
        if self.chance(0.4):
            found[PREFERRED] = [{"weight": self.pick(1, 50), "preference": self.node_term()}]
        return found

    def node_term(self) -> Json:
        if self.chance(0.15):
            name = self.random.choice(self.scene.nodes)["metadata"]["name"]
            return {"matchFields": [{"key": "metadata.name", "operator": self.pick("In", "NotIn"), "values": [name]}]}
        options: Sequence[Json] = (
            {"key": ZONE, "operator": "In", "values": [self.own("z1"), self.own("z2")]},
            {"key": ZONE, "operator": "NotIn", "values": [self.own("z1")]},
            {"key": RACK, "operator": "Exists"},
            {"key": FLAVOUR, "operator": "DoesNotExist"},
            {"key": SIZE, "operator": "Gt", "values": ["3"]},
            {"key": SIZE, "operator": "Lt", "values": ["3"]},
        )
        return {"matchExpressions": self.random.sample(options, self.random.randint(1, 2))}
