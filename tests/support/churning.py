"""An invented live cluster that keeps changing, and the operations that tell an engine of it.

It counts for itself what is free, so that tests can check the engine's decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.model import (
    DEFAULT_CLASSES,
    Constraint,
    Placement,
    Preference,
    Rule,
    ServiceClass,
    Term,
    Topology,
)
from slacktide.model.constraint import AnyOf, Tolerates, Toleration
from slacktide.state.spec import Spec

BEGINNING = 1_790_000_000.0
GI = 2**30


def live_config(**policy: Any) -> Config:
    """Settings as a live scheduler has them."""
    config = Config()
    return replace(
        config,
        policy=replace(config.policy, **policy),
        qos=replace(config.qos, startup="always", alpha=10.0),
    )


@dataclass
class Pod:
    """One pod of the invented cluster."""

    uid: str
    key: str
    spec: int
    host: str = ""
    leaving: bool = False
    due: dict[str, float] = field(default_factory=dict)
    """When what happens to it: ready, gone, completed."""


class Churn:
    """Deployments and jobs come, scale, roll out and go; hosts fail; pods of others come and go."""

    def __init__(self, engine: Engine, seed: int, hosts: int = 8, load: float = 1.3) -> None:
        self.engine = engine
        self.random = np.random.default_rng([seed, 0xC4])
        self.now = BEGINNING
        self.pods: dict[str, Pod] = {}
        self.of: dict[str, dict[str, None]] = {}
        self.shape: dict[str, tuple[bool, Spec, int]] = {}
        self.budgets: dict[str, str] = {}
        self.specs: dict[int, Spec] = {}
        self.users: dict[int, int] = {}
        self.hosts: dict[str, dict[str, int]] = {}
        self.up: dict[str, bool] = {}
        self.others: dict[str, tuple[str, dict[str, int]]] = {}
        self.made = 0
        self.decisions: list[Decision] = []
        self.load = load
        for _ in range(hosts):
            self.new_host()

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def pick(self, options: Any) -> Any:
        listed = list(options)
        return listed[int(self.random.integers(len(listed)))]

    def number(self) -> int:
        self.made += 1
        return self.made

    # -- what happens to hosts -------------------------------------------------------------------------------------

    def new_host(self) -> None:
        name = f"node-{self.number()}"
        self.hosts[name] = {"cpu": int(self.pick((4000, 8000))), "memory": int(self.pick((8, 16))) * GI, "pods": 12}
        self.up[name] = True
        self.attributes = {"zone": self.pick("ab"), "disk": self.pick(("ssd", "hdd"))}
        if self.chance(0.2):
            self.attributes["taint:NoSchedule:gpu"] = "yes"
            self.hosts[name]["example.com/gpu"] = 2
        self.engine.host(name, self.hosts[name], self.attributes, True)

    def cordon(self) -> None:
        name = self.pick(self.hosts)
        self.up[name] = not self.up[name]
        attributes = {"zone": self.pick("ab"), "disk": self.pick(("ssd", "hdd"))}
        self.engine.host(name, self.hosts[name], attributes, self.up[name])

    def lose_host(self) -> None:
        if len(self.hosts) > 4:
            name = self.pick(self.hosts)
            del self.hosts[name], self.up[name]
            self.engine.host_gone(name)
            for uid in [uid for uid, (host, _) in self.others.items() if host == name]:
                del self.others[uid]
                self.engine.other_gone(uid)
            for pod in [pod for pod in self.pods.values() if pod.host == name]:
                self.end(pod)

    def other(self) -> None:
        if self.others and self.chance(0.5):
            uid = self.pick(self.others)
            del self.others[uid]
            self.engine.other_gone(uid)
            return
        uid, host = f"other-{self.number()}", self.pick(self.hosts)
        amounts = {"cpu": 100, "memory": GI // 4, "pods": 1}
        free = self.free(host)
        if all(free.get(name, 0) >= amount for name, amount in amounts.items()):
            self.others[uid] = host, amounts
            self.engine.other(uid, host, amounts, ("port:9100",))

    # -- what happens to pods --------------------------------------------------------------------------------------

    def placement(self, n: int) -> Placement:
        zone, here = Topology("zone"), Topology()
        mark = f"app-{n}"
        rules: tuple[Rule, ...] = self.pick(
            (
                (),
                (),
                (),
                (Rule("away", mark, here),),
                (Rule("spread", mark, zone, 2, 2),),
                (Rule("away", "port:9100", here),),
            )
        )
        wishes = (Preference(self.pick((-5, 10)), mark, zone),) if self.chance(0.2) else ()
        marks = (mark, "port:9100") if self.chance(0.1) else (mark,)
        return Placement(marks, rules, wishes)

    def term(self, n: int) -> Term:
        tolerant = Tolerates((Toleration("gpu", "NoSchedule", any_value=True),)) if self.chance(0.3) else Tolerates()
        further: Any = self.pick(
            (
                (),
                (),
                (Constraint("disk", "==", "ssd"),),
                (
                    AnyOf(
                        (Term((Constraint("zone", "in", values=("a", "c")),)), Term((Constraint(f"x{n}", "exists"),)))
                    ),
                ),
                (Constraint("disk", "not in", values=("tape", f"d{n}")),),
            )
        )
        return Term((tolerant, *further))

    def new_spec(self) -> int:
        n = self.number()
        service: ServiceClass = self.pick(DEFAULT_CLASSES)
        if self.chance(0.05):
            service = replace(service, name=f"{service.name}@{n}", slo=service.slo * 0.99)
        demand = [("cpu", int(self.pick((250, 500, 1000)))), ("memory", int(self.pick((1, 2))) * GI), ("pods", 1)]
        if self.chance(0.1):
            demand.append(("example.com/gpu", 1))
        self.specs[n] = Spec(tuple(demand), service, self.term(n), self.placement(n), self.chance(0.1))
        self.users[n] = 0
        self.engine.spec(n, self.specs[n])
        return n

    def new_controller(self) -> None:
        spec = self.new_spec()
        key = f"controller-{self.number()}"
        batch = self.chance(0.3)
        self.of[key] = {}
        self.shape[key] = batch, self.specs[spec], spec
        approach = 2 if batch else int(self.random.integers(3))
        self.engine.controller(key, self.specs[spec].service, approach, batch)
        if not batch and self.chance(0.3):
            self.budgets[key] = f"budget-{key}"
            self.engine.budget(self.budgets[key], 1)
        for _ in range(int(self.random.integers(1, 8))):
            self.new_pod(key)

    def new_pod(self, key: str, delay: float = 0.0) -> None:
        spec = self.shape[key][2]
        pod = Pod(f"uid-{self.number()}", key, spec)
        self.pods[pod.uid] = pod
        self.of[key][pod.uid] = None
        self.users[spec] += 1
        self.engine.arrive(pod.uid, f"{key}-{len(self.of[key])}", key, spec, self.now, self.budgets.get(key, ""))
        pod.due["wake"] = self.now + delay

    def end(self, pod: Pod, completed: bool = False, replace_it: bool = True) -> None:
        """A pod is no more; its controller makes another one."""
        self.engine.gone(pod.uid, self.now, completed)
        del self.pods[pod.uid], self.of[pod.key][pod.uid]
        self.drop_user(pod.spec)
        if not completed and replace_it:
            self.new_pod(pod.key, delay=float(self.pick((0.0, 1.0))))

    def drop_user(self, spec: int) -> None:
        self.users[spec] -= 1
        if not self.users[spec] and all(spec != used for _, _, used in self.shape.values()):
            del self.users[spec], self.specs[spec]
            self.engine.spec_gone(spec)

    def roll_out(self) -> None:
        """The controller's template changes; its pods are replaced one by one."""
        key = self.pick(self.of)
        spec, old = self.new_spec(), self.shape[key][2]
        service = self.specs[old].service if old in self.specs else self.specs[spec].service
        self.specs[spec] = replace(self.specs[spec], service=service)
        self.engine.spec(spec, self.specs[spec])
        self.shape[key] = self.shape[key][0], self.specs[spec], spec
        for uid in list(self.of[key]):
            if not self.pods[uid].leaving:
                self.end(self.pods[uid])
        if old in self.users and not self.users[old]:
            self.users[old] = 1
            self.drop_user(old)

    def remove(self) -> None:
        """A controller goes, with all its pods."""
        key = self.pick(self.of)
        for uid in list(self.of[key]):
            self.end(self.pods[uid], replace_it=False)
        self.engine.controller_gone(key, self.now)
        del self.of[key]
        _, _, spec = self.shape.pop(key)
        if key in self.budgets:
            self.engine.budget_gone(self.budgets.pop(key))
        if spec in self.users and not self.users[spec]:
            self.users[spec] = 1
            self.drop_user(spec)

    def scale(self) -> None:
        key = self.pick(self.of)
        here = [uid for uid in self.of[key] if not self.pods[uid].leaving]
        wanted = int(self.random.integers(1, 8))
        self.engine.desired(key, wanted, self.now)
        for uid in here[wanted:]:
            self.end(self.pods[uid], replace_it=False)
        for _ in range(len(here), wanted):
            self.new_pod(key)
        self.engine.desired(key, -1, self.now)

    def flap(self) -> None:
        pod = self.pick(self.pods.values())
        if pod.host and not pod.leaving and "ready" not in pod.due:
            self.engine.unready(pod.uid, self.now)
            pod.due["ready"] = self.now + 3.0

    # -- time ------------------------------------------------------------------------------------------------------

    def due(self) -> Iterator[tuple[float, str, Pod]]:
        """What has become due, in order of time."""
        found = [(at, uid, what) for uid, pod in self.pods.items() for what, at in pod.due.items() if at <= self.now]
        for at, uid, what in sorted(found):
            if uid in self.pods and what in self.pods[uid].due:
                del self.pods[uid].due[what]
                yield at, what, self.pods[uid]

    def step(self, seconds: float) -> None:
        """Time passes, things happen, and the engine decides."""
        self.now += seconds
        for at, what, pod in self.due():
            if what == "wake":
                self.engine.wake(pod.uid)
            elif what == "ready":
                self.engine.ready(pod.uid, at)
            else:
                self.end(pod, completed=what == "completed")
        demand = sum(dict(self.specs[pod.spec].demand)["cpu"] for pod in self.pods.values())
        room = sum(amounts["cpu"] for amounts in self.hosts.values())
        if demand < self.load * room:
            self.new_controller()
        elif self.of:
            self.remove()
        for happens, share in (
            (self.roll_out, 0.1),
            (self.scale, 0.2),
            (self.flap, 0.2),
            (self.other, 0.3),
            (self.cordon, 0.05),
            (self.lose_host, 0.02),
        ):
            if self.of and self.pods and self.chance(share):
                happens()
        if len(self.hosts) < 8 and self.chance(0.3):
            self.new_host()
        for name in self.budgets.values():
            if self.chance(0.3):
                self.engine.budget(name, int(self.random.integers(3)))
        self.decide()

    def free(self, host: str) -> dict[str, int]:
        """What a host has left, those not counted that were told to leave."""
        left = dict(self.hosts[host])
        taken = [self.specs[pod.spec].demand for pod in self.pods.values() if pod.host == host and not pod.leaving]
        taken += [tuple(amounts.items()) for name, amounts in self.others.values() if name == host]
        for demand in taken:
            for name, amount in demand:
                left[name] = left.get(name, 0) - amount
        return left

    def decide(self) -> None:
        outcome = self.engine.run(self.now)
        self.decisions.extend(outcome.decisions)
        for decision in outcome.decisions:
            self.carry_out(decision)
        for host in {decision.host for decision in outcome.decisions}:
            assert min(self.free(host).values()) >= 0, f"{host} is given more than it has"

    def carry_out(self, decision: Decision) -> None:
        pod = self.pods[decision.uid]
        assert not pod.host, "bound twice"
        assert self.up[decision.host], "bound to a host that takes none"
        if decision.victims:
            assert not self.specs[pod.spec].never
        for victim in decision.victims:
            other = self.pods[victim.uid]
            assert other.host == decision.host, "a victim elsewhere"
            assert not other.leaving, "a victim twice"
            other.leaving = True
            other.due.pop("completed", None)
            other.due["gone"] = self.now + float(self.pick((0.0, 0.5, 2.0)))
        pod.host = decision.host
        if self.chance(0.03) and not decision.victims:
            self.engine.refused(pod.uid, self.now)
            pod.host = ""
            pod.due["wake"] = self.now + 1.0
            return
        self.engine.bound(pod.uid, self.now)
        pod.due["ready"] = self.now + float(self.random.uniform(0.5, 6.0))
        if self.shape[pod.key][0]:
            pod.due["completed"] = self.now + float(self.random.uniform(5.0, 60.0))
