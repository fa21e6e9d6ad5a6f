"""One simulated cluster: the API server's model, the control plane, kubelets, and the replicas of the scheduler."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from simulated.api_model import ApiModel
from simulated.chance import Chance
from simulated.controllers import CONTROLLERS
from simulated.invariants import Invariants
from simulated.kubelets import Kubelets
from simulated.loop import EPOCH, WORLD, WorldLoop, acted_by
from simulated.network import Weather
from simulated.replica import Replica
from simulated.resources import BY_NAME, Json
from simulated.store import Store
from slacktide.config import Config
from slacktide.kube import housekeeping as garbage
from slacktide.kube import leader_session
from slacktide.settings import load_live
from slacktide.submit.manifests import RUN_SECONDS

T = TypeVar("T")
NAMESPACE = "team"
LOGGED = logging.ERROR
"""What is logged at this level becomes a finding; :mod:`retell` wants more of it."""
CLASSES = (("gold", 1, 0.99), ("silver", 2, 0.9), ("bronze", 3, 0.5))
"""Name, rank and promised availability, where nobody names others."""
NODE_LABEL = "node-restriction.kubernetes.io/slacktide"


class Part(NamedTuple):
    """Something that happens in a story, and that can be left out of it: an incident or a deed by its number, or a kind
    of weather."""

    kind: str
    number: int


STRIKES, MEDDLES = Part("strikes", 0), Part("meddling", 0)
"""That a replica is struck just after it has decided; that users replace pods about which something is on its way."""
REGRET, NODE_STRIKES = Part("regret", 0), Part("node strikes", 0)
"""That users delete pods for which others have to go; that a node fails from which somebody has just been evicted."""
NOTES = Part("notes", 0)
"""That users annotate pods that wait."""
OVERLOADS = Part("overloads", 0)
"""That the API server has no time just after decisions."""
ALL_THE_WHILE = (STRIKES, MEDDLES, REGRET, NODE_STRIKES, NOTES, OVERLOADS)
FAULTS_SECONDS = 1200.0


@dataclass(frozen=True)
class Cut:
    """What a story leaves out, how long its faults last, and whether it ends with the first finding."""

    without: frozenset[Part] = frozenset()
    faults_seconds: float = FAULTS_SECONDS
    ends_at_once: bool = False


WHOLE = Cut()


class World:
    """Everything there is. Make it within a running :class:`WorldLoop`."""

    def __init__(
        self,
        seed: int,
        weather: Weather,
        config: Config | None = None,
        replicas: int = 2,
        classes: Sequence[Json] | None = None,
        cut: Cut = WHOLE,
    ) -> None:
        self.cut = cut
        self.parts: list[tuple[Part, str]] = []
        self.seed, self.weather = seed, weather
        self.chance = Chance(seed)
        self.loop = asyncio.get_running_loop()
        self.store = Store(lambda: EPOCH + self.loop.time())
        self.api = ApiModel(self.store)
        self.invariants = Invariants(self.store)
        for name in ("default", "slacktide-system", NAMESPACE):
            self.make("namespaces", {"metadata": {"name": name}})
        for body in usual_classes() if classes is None else classes:
            self.make("serviceclasses", body)
        parts: Any = (self.api, self.chance)
        self.kubelets = Kubelets(*parts)
        self.controllers = [one(*parts) for one in CONTROLLERS]
        self.replicas = [
            Replica(f"replica-{number}", self.api, self.chance, weather, config or load_live(None, None, []))
            for number in range(replicas)
        ]
        for one in self.replicas:
            one.decided = self.invariants.decided
            one.failed = self.invariants.finding
            one.began = self.invariants.follow
        self.tasks: set[asyncio.Task[None]] = set()

    def has(self, part: Part) -> bool:
        """Whether the story does not leave it out."""
        return part not in self.cut.without

    def comes(self, part: Part, what: str) -> bool:
        """The same, of what would happen now."""
        if self.has(part):
            self.parts.append((part, f"{self.loop.time():8.3f} s: {what}"))
        return self.has(part)

    def make(self, plural: str, body: Json, namespace: str = "") -> Json:
        """A user creates something."""
        return self.api.create(BY_NAME[plural], namespace, body)

    def make_node(self, name: str, cpu: int = 4, *, ours: bool = True) -> None:
        """A machine joins."""
        labels = {"kubernetes.io/hostname": name, **({NODE_LABEL: "true"} if ours else {})}
        made = self.make("nodes", {"metadata": {"name": name, "labels": labels}, "spec": {}})
        has = {"cpu": str(cpu), "memory": "16Gi", "pods": "20"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": has, "allocatable": has, "conditions": [ready]}
        self.store.write(BY_NAME["nodes"], {**made, "metadata": dict(made["metadata"]), "status": status})

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Something goes on beside all else."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def start(self) -> None:
        """The replicas begin."""
        for one in self.replicas:
            self.begin(one.run())

    @property
    def leader(self) -> Replica | None:
        """Who leads, as far as replicas believe."""
        return next((one for one in self.replicas if one.leading), None)

    async def end(self) -> None:
        """Everything stops."""
        for one in self.replicas:
            await one.end()
        for task in tuple(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def usual_classes() -> list[Json]:
    return [
        {"metadata": {"name": name}, "spec": {
            "slo": slo, "rank": rank, "marginSeconds": 10, "namespaces": ["*"], "approach": "independent",
            "default": name == "bronze"}}
        for name, rank, slo in CLASSES
    ]  # fmt: skip


def template(service: str, app: str, cpu: int, **annotations: str) -> Json:
    """What pods are made from; ``cpu`` in millicores."""
    labels = {"app": app, "slacktide.io/class": service}
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}}
    spec = {"schedulerName": "slacktide", "containers": [container], "terminationGracePeriodSeconds": 5}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def deployment(name: str, service: str, replicas: int, cpu: int) -> Json:
    selector = {"matchLabels": {"app": name}}
    spec = {"replicas": replicas, "selector": selector, "template": template(service, name, cpu)}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def job(name: str, service: str, parallelism: int, completions: int, cpu: int, seconds: float) -> Json:
    made = template(service, name, cpu, **{RUN_SECONDS: f"{seconds:.3f}"})
    made["spec"]["restartPolicy"] = "Never"
    spec = {"parallelism": parallelism, "completions": completions, "template": made}
    return {"metadata": {"name": name}, "spec": spec}


async def _nothing_to_collect(_: Callable[[], int]) -> None:
    """Garbage takes time of the machine, not of the world."""
    await asyncio.Event().wait()


class Complaints(logging.Handler):
    """What is logged as an error becomes a finding."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._tell(f"logged: {record.getMessage()}{f' ({error!r})' if error else ''}")


@contextmanager
def set_apart(seed: int) -> Iterator[None]:
    """Nothing of the machine reaches the world: no chance but the seed's, no garbage collection by the clock."""
    state, collect = random.getstate(), garbage.collect_when_idle
    random.seed(seed)
    setattr(leader_session, "collect_when_idle", _nothing_to_collect)  # noqa: B010 (it is not the module's own)
    log = logging.getLogger("slacktide")
    level, log.propagate = log.level, False
    log.setLevel(LOGGED)
    try:
        yield
    finally:
        log.setLevel(level)
        log.propagate = True
        setattr(leader_session, "collect_when_idle", collect)  # noqa: B010
        random.setstate(state)


def played(
    seed: int, weather: Weather, play: Callable[[World], Coroutine[Any, Any, T]], **options: Any
) -> tuple[World, T]:
    """A world, and what came of a play in it."""

    async def whole() -> tuple[World, T]:
        with acted_by(WORLD):
            world = World(seed, weather, **options)
            handler = Complaints(world.invariants.finding)
            logging.getLogger("slacktide").addHandler(handler)
            try:
                return world, await play(world)
            finally:
                await world.end()
                logging.getLogger("slacktide").removeHandler(handler)

    with set_apart(seed), asyncio.Runner(loop_factory=WorldLoop) as runner:
        return runner.run(whole())
