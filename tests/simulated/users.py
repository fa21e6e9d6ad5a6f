"""What users and operators do: scale, roll out, relabel, delete, drain; as a seed draws it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextvars import Context

from simulated import pod_model
from simulated.agents import is_active, on_node, remove
from simulated.chance import Chance
from simulated.resources import BY_NAME, Json, Refused, Target
from simulated.world import (
    CLASSES,
    MEDDLES,
    NAMESPACE,
    NODE_LABEL,
    NOTES,
    REGRET,
    Part,
    World,
    deployment,
    job,
    template,
)
from slacktide.engine.core.types import Decision

NODES, DEPLOYMENTS, BUDGETS = BY_NAME["nodes"], BY_NAME["deployments"], BY_NAME["poddisruptionbudgets"]
SIZES = (250, 500, 500, 1000, 1500)
MOST_WORKLOADS = 7
MEDDLING = 0.3
REGRETS, REGRETTED_SECONDS = 0.15, 4.0
NOTES_SECONDS = 60.0


class Users:
    """One deed after the other, ``pause`` seconds apart on average. Each draws from a stream of its own, so that one
    that is left out changes none of the others."""

    def __init__(self, world: World, pause: float) -> None:
        self._world, self._pause = world, pause
        self._chance: Chance = world.chance
        self._made = self._deed = 0
        self._subject = ""
        self._deeds: tuple[tuple[int, Callable[[], None]], ...] = (
            (3, self.deploy), (2, self.run_job), (4, self.scale), (3, self.roll_out), (2, self.delete_workload),
            (4, self.delete_pod), (2, self.bare_pod), (2, self.replace_bare_pod), (2, self.protect),
            (1, self.unprotect), (2, self.cordon), (2, self.uncordon), (1, self.drain), (1, self.relabel),
            (2, self.crash), (1, self.reclass),
        )  # fmt: skip

    def meddle(self, _: str, name: str) -> None:
        """Something is on its way to a pod: now and then it meets another one of that name."""
        if name.startswith("bare-") and self._world.has(MEDDLES) and self._chance.happens("meddling", MEDDLING):
            self._world.loop.call_soon(self._meets_another, name, context=Context())

    def _meets_another(self, name: str) -> None:
        self._subject = "meddling"
        self._replace(name)

    def regret(self, decision: Decision) -> None:
        """Others have to go for a pod: now and then its owner does not want it any more, before they are told or
        after."""
        if self._world.has(REGRET) and self._chance.happens("regret", REGRETS):
            wait = REGRETTED_SECONDS * self._chance.between("regret", 0.0, 1.0) ** 2
            self._world.loop.call_later(wait, self._wants_no_more, decision.uid, context=Context())

    def _wants_no_more(self, uid: str) -> None:
        found = next((one for one in self._world.store.every("pods") if one["metadata"]["uid"] == uid), None)
        if found is not None:
            remove(self._world.api, "pods", found, 0)

    async def write_notes(self) -> None:
        """Until cancelled: now and then somebody annotates all pods that wait."""
        for number in itertools.count():
            await asyncio.sleep(self._chance.of("notes").expovariate(1.0 / NOTES_SECONDS))
            for pod in self._world.store.every("pods") if self._world.has(NOTES) else ():
                if not pod["spec"].get("nodeName"):
                    note = {"annotations": {**pod["metadata"].get("annotations", {}), "note": str(number)}}
                    self._world.store.write(BY_NAME["pods"], {**pod, "metadata": pod["metadata"] | note})

    async def run(self) -> None:
        """Until cancelled."""
        self._world.invariants.acted, self._world.invariants.preempting = self.meddle, self.regret
        weights = [weight for weight, _ in self._deeds]
        draw = self._chance.of("users")
        while True:
            await asyncio.sleep(draw.expovariate(1.0 / self._pause))
            ((_, deed),) = draw.choices(self._deeds, weights)
            self.does(deed)

    def does(self, deed: Callable[[], None]) -> None:
        """Do something, unless the story leaves it out."""
        number, self._deed = self._deed, self._deed + 1
        if self._world.comes(Part("deed", number), deed.__name__):
            self._subject = f"deed {number}"
            self._made = 10 * number
            deed()

    # -- workloads -------------------------------------------------------------------------------------------------

    def deploy(self) -> None:
        if len(self._world.store.objects["deployments"]) >= MOST_WORKLOADS:
            return
        self._made += 1
        service, size = self._class(), self._chance.one_of(self._subject, SIZES)
        made = deployment(f"app-{self._made}", service, self._chance.whole(self._subject, 1, 6), size)
        self._world.make("deployments", made, NAMESPACE)

    def run_job(self) -> None:
        self._made += 1
        at_once, size = self._chance.whole(self._subject, 1, 4), self._chance.one_of(self._subject, SIZES)
        made = job(f"job-{self._made}", self._class(), at_once, at_once + self._chance.whole(self._subject, 0, 3), size,
                   self._chance.between(self._subject, 5.0, 200.0))  # fmt: skip
        self._world.make("jobs", made, NAMESPACE)

    def scale(self) -> None:
        if (found := self._some("deployments")) is not None:
            found["spec"]["replicas"] = self._chance.whole(self._subject, 0, 8)
            self._changed("deployments", found)

    def roll_out(self) -> None:
        if (found := self._some("deployments")) is not None:
            self._made += 1
            found["spec"]["template"]["metadata"]["annotations"] = {"version": str(self._made)}
            self._changed("deployments", found)

    def reclass(self) -> None:
        if (found := self._some("deployments")) is not None:
            found["spec"]["template"]["metadata"]["labels"]["slacktide.io/class"] = self._class()
            self._changed("deployments", found)

    def delete_workload(self) -> None:
        plural = self._chance.one_of(self._subject, ("deployments", "jobs"))
        if (found := self._some(plural)) is not None:
            remove(self._world.api, plural, found)

    # -- pods ------------------------------------------------------------------------------------------------------

    def delete_pod(self) -> None:
        if (found := self._some("pods")) is not None:
            remove(self._world.api, "pods", found, self._chance.one_of(self._subject, (None, None, 0, 1)))

    def bare_pod(self) -> None:
        """A pod that nobody makes again, by one of few names."""
        name = f"bare-{self._chance.whole('users', 0, 3)}"
        if self._world.store.get("pods", NAMESPACE, name) is None:
            made = template(self._class(), name, self._chance.one_of(self._subject, SIZES))
            made["metadata"]["name"] = name
            self._world.make("pods", made, NAMESPACE)

    def replace_bare_pod(self) -> None:
        """Another one of its name, at once."""
        names = [key[1] for key in self._world.store.objects["pods"] if key[1].startswith("bare-")]
        if names:
            self._replace(self._chance.one_of(self._subject, sorted(names)))

    def _replace(self, name: str) -> None:
        found = self._world.store.get("pods", NAMESPACE, name)
        if found is not None:
            remove(self._world.api, "pods", found, 0)
            made = template(self._class(), name, self._chance.one_of(self._subject, SIZES))
            made["metadata"]["name"] = name
            self._world.make("pods", made, NAMESPACE)

    def crash(self) -> None:
        found = self._some("pods")
        if found is not None and found["spec"].get("nodeName"):
            self._world.kubelets.crash(found)

    # -- rules -----------------------------------------------------------------------------------------------------

    def protect(self) -> None:
        found = self._some("deployments")
        if found is None or self._world.store.get("poddisruptionbudgets", NAMESPACE, found["metadata"]["name"]):
            return
        name = found["metadata"]["name"]
        at_most = self._chance.whole(self._subject, 0, 2)
        spec: Json = {"selector": {"matchLabels": {"app": name}}}
        spec |= {"maxUnavailable": at_most} if at_most else {"minAvailable": 1}
        self._world.make("poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec}, NAMESPACE)

    def unprotect(self) -> None:
        if (found := self._some("poddisruptionbudgets")) is not None:
            remove(self._world.api, "poddisruptionbudgets", found)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def cordon(self) -> None:
        self._set_schedulable(False)

    def uncordon(self) -> None:
        self._set_schedulable(True)

    def _set_schedulable(self, wanted: bool) -> Json | None:
        found = self._some("nodes")
        if found is not None:
            spec = {key: value for key, value in found["spec"].items() if key != "unschedulable"}
            found["spec"] = spec if wanted else spec | {"unschedulable": True}
            self._changed("nodes", found)
        return found

    def drain(self) -> None:
        """A node is cordoned, and its pods are evicted as their budgets allow."""
        node = self._set_schedulable(False)
        if node is None:
            return
        for pod in on_node(self._world.store, node["metadata"]["name"]):
            metadata = pod["metadata"]
            self._world.invariants.drained.add(metadata["uid"])
            try:
                pod_model.evict(
                    self._world.store, Target(BY_NAME["pods"], metadata["namespace"], metadata["name"], "eviction"), {}
                )
            except Refused:
                continue  # its budget

    def relabel(self) -> None:
        """A node is given to the scheduler, or taken from it."""
        found = self._some("nodes")
        if found is not None:
            labels = found["metadata"]["labels"]
            if NODE_LABEL in labels and self._chance.happens(self._subject, 0.4):
                del labels[NODE_LABEL]
            else:
                labels[NODE_LABEL] = "true"
            self._changed("nodes", found)

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _class(self) -> str:
        return self._chance.one_of(self._subject, CLASSES)[0]

    def _some(self, plural: str) -> Json | None:
        """One of them, to change; of pods one that is not over."""
        found = sorted(
            key for key, one in self._world.store.objects[plural].items() if plural != "pods" or is_active(one)
        )
        return self._world.store.copy(plural, *self._chance.one_of(self._subject, found)) if found else None

    def _changed(self, plural: str, body: Json) -> None:
        metadata = body["metadata"]
        before = self._world.store.get(plural, metadata.get("namespace", ""), metadata["name"])
        if before is not None and before.get("spec") != body.get("spec"):
            metadata["generation"] += 1
        self._world.store.write(BY_NAME[plural], body)
