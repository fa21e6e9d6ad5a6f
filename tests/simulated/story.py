"""One seed's story: faults while users work, then everything heals, and what must be so then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from simulated.agents import amounts, is_active, is_over, on_node, owned, room, taken
from simulated.chance import Chance
from simulated.incidents import Incidents
from simulated.network import Weather
from simulated.pod_model import is_true, seconds_of
from simulated.resources import Json
from simulated.users import Users
from simulated.world import NODE_LABEL, WHOLE, Cut, Part, World, played
from slacktide.config import Config
from slacktide.settings import load_live

HEALED_SECONDS = 420.0
"""By then all that can be placed is placed: two minutes of silence, a lease, the longest backoff, a grace, and the
longest time that containers and budgets take, several times over."""
LOOK_SECONDS = 5.0
LEDGER_SECONDS = 100.0
"""A ledger is written once a minute."""
CALM_SECONDS = 130.0
"""So long nothing happens when all is settled: then it must be settled still."""
STUCK_SECONDS = 240.0
"""Under one leader nobody waits for so long beside room that he could have, whatever fails meanwhile."""
CALM, CALM_PAUSE, ROOMY = 0.3, 500.0, 4
"""So many stories have few incidents, that leaders last, and so many times as much room, that nobody waits but who was
forgotten; seconds between incidents."""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OTHERWISE = 0.5
"""In so many stories the scheduler has other settings than the usual ones."""
SETTINGS = (
    ("policy.name=hybrid",),
    ("policy.name=priority",),
    (f"policy.name={EXAMPLES}/05_priority_from_pieces.py:priority",),
    (f"policy.name={EXAMPLES}/06_qos_driven_from_pieces.py:qos_driven",),
    ("policy.name=delay-aware",),
    ("policy.overload=plan",),
    ("policy.overload=share", "policy.queue_order=metric", "policy.victim_order=metric"),
    ("policy.preempt_when=better",),
    ("policy.min_running=30",),
    ("kube.disruption_budgets=best-effort",),
    ("kube.pass_budget=0", "scheduler.watchdog=1"),
)
NOTED = 0.3
"""In so many stories users annotate pods that wait."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed."""

    seed: int
    findings: tuple[str, ...]
    digest: str
    parts: tuple[tuple[Part, str], ...]
    """What happened, and when."""
    hours: float
    bindings: int
    evictions: int
    revision: int


def scaled(factor: float) -> Weather:
    """Weather so many times as bad as usual."""
    usual = Weather()
    return Weather(**{name: getattr(usual, name) * factor for name in Weather.__dataclass_fields__})


async def _play(world: World) -> None:
    chance = world.chance
    is_calm = chance.happens("calm", CALM)
    for number in range(chance.whole("story", 2, 4)):
        world.make_node(f"node-{number}", chance.whole("story", 2, 6) * (ROOMY if is_calm else 1))
    users = Users(world, chance.between("story", 5.0, 25.0))
    for _ in range(chance.whole("story", 1, 4)):
        users.does(users.deploy)
    pause = chance.between("story", 8.0, 80.0)
    incidents = Incidents(world, CALM_PAUSE if is_calm else pause)
    patience = Patience(world)
    world.start()
    at_work = [asyncio.create_task(users.run()), asyncio.create_task(incidents.run())]
    if chance.happens("notes in a story", NOTED):
        at_work.append(asyncio.create_task(users.write_notes()))
    for _ in range(ceil(world.cut.faults_seconds / LOOK_SECONDS)):
        await asyncio.sleep(LOOK_SECONDS)
        patience.look()
        if world.cut.ends_at_once and world.invariants.findings:
            return
    for task in at_work:
        task.cancel()
    failed = [one.exception() for one in at_work if one.done()]
    if any(failed):
        raise next(one for one in failed if one is not None)
    incidents.heal()
    if await _settles(world, "after everything was healed"):
        await asyncio.sleep(CALM_SECONDS)
        await _settles(world, "after nothing had happened for a while")


async def _settles(world: World, since: str) -> bool:
    """Whether all is as it must be before long; else that is found."""
    left: list[str] = []
    until = world.loop.time() + HEALED_SECONDS
    while world.loop.time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        left = unsettled(world)
        if not left:
            return True
    for one in left:
        world.invariants.finding(f"{HEALED_SECONDS:g} s {since}: {one}")
    return False


class Patience:
    """Who waits beside room under the present leader, and since when."""

    def __init__(self, world: World) -> None:
        self._world, self._leader = world, ""
        self._since: dict[str, float] = {}

    def look(self) -> None:
        """As it is now; who waits for too long is found, once."""
        leader, now = self._world.leader, self._world.loop.time()
        identity = leader.identity if leader is not None else ""
        if identity != self._leader:
            self._leader, self._since = identity, {}
        waits = {pod["metadata"]["uid"]: (pod, fits) for pod, fits in waiting(self._world) if fits}
        self._since = {uid: self._since.get(uid, now) for uid in waits} if identity else {}
        for uid, since in self._since.items():
            if since < now - STUCK_SECONDS:
                pod, fits = waits[uid]
                where = f"{pod['metadata']['name']} waits, and {', '.join(fits)} has room for it"
                self._world.invariants.finding(f"for {STUCK_SECONDS:g} s {where}")
                self._since[uid] = float("inf")


def unsettled(world: World) -> list[str]:
    """What is not yet as it must be in the end."""
    leaders = [one.identity for one in world.replicas if one.leading]
    found = [] if len(leaders) == 1 else [f"{len(leaders)} lead: {', '.join(leaders)}"]
    return found + _unplaced(world) + _unwritten(world)


def _is_open(node: Json) -> bool:
    taints = [one for one in node["spec"].get("taints", ()) if one["effect"] != "PreferNoSchedule"]
    ours = node["metadata"]["labels"].get(NODE_LABEL) == "true"
    return ours and not taints and not node["spec"].get("unschedulable") and is_true(node, "Ready")


def waiting(world: World) -> Iterator[tuple[Json, list[str]]]:
    """Pods that wait, each with the nodes that have room for it."""
    free = {}
    for node in world.store.every("nodes"):
        if _is_open(node):
            name = node["metadata"]["name"]
            free[name] = [has - held for has, held in zip(room(node), taken(on_node(world.store, name)), strict=True)]
    for pod in world.store.every("pods"):
        if not pod["spec"].get("nodeName") and is_active(pod):
            cpu, memory = amounts(pod)
            yield pod, [one for one, has in free.items() if cpu <= has[0] and memory <= has[1] and has[2] >= 1]


def _unplaced(world: World) -> list[str]:
    """Pods that wait although a node has room for them, or for which a place is kept; and who is not ready."""
    found = []
    leader = world.leader
    kept = leader.scheduler.nominations if leader is not None and leader.scheduler is not None else {}
    for pod in world.store.every("pods"):
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if node and is_active(pod) and not is_true(pod, "Ready"):
            found.append(f"{name} on {node} is not ready")
    for pod, fits in waiting(world):
        name = pod["metadata"]["name"]
        if fits:
            found.append(f"{name} waits, and {', '.join(fits)} has room for it")
        elif pod["metadata"]["uid"] in kept:
            found.append(f"{name} waits for {kept[pod['metadata']['uid']].decision.host}")
    return found


def _unwritten(world: World) -> list[str]:
    """Workloads whose ledgers do not say how they are."""
    ledgers = {one["status"]["target"]["uid"]: one["status"] for one in world.store.every("availabilities")}
    found = []
    for plural in ("deployments", "jobs"):
        for body in world.store.every(plural):
            name, uid = body["metadata"]["name"], body["metadata"]["uid"]
            pods = _pods(world, plural, uid)
            if not pods or all(is_over(one) for one in pods):
                continue
            ledger = ledgers.get(uid)
            running = sum(is_true(one, "Ready") and is_active(one) for one in pods)
            if ledger is None:
                found.append(f"{name} has no ledger")
            elif world.store.now() - seconds_of(ledger["at"]) > LEDGER_SECONDS:
                found.append(f"the ledger of {name} is of {ledger['at']}")
            elif ledger["running"] != running:
                found.append(f"the ledger of {name} tells of {ledger['running']} running, of which {running} are")
    return found


def _pods(world: World, plural: str, uid: str) -> list[Json]:
    owners = [uid] if plural == "jobs" else [one["metadata"]["uid"] for one in owned(world.store, "replicasets", uid)]
    return [pod for owner in owners for pod in owned(world.store, "pods", owner)]


def told(seed: int, cut: Cut = WHOLE, config: Config | None = None) -> Outcome:
    """Play a seed, or what is left of it; ``config`` in place of the settings that the seed draws."""
    chance = Chance(seed)
    words = chance.one_of("settings", SETTINGS) if chance.happens("settings", OTHERWISE) else ()
    weather = scaled((0.0, 0.3, 1.0, 1.0, 2.0)[seed % 5])
    for name in weather.__dataclass_fields__:
        if Part(name, 0) in cut.without:
            setattr(weather, name, 0.0)
    world, _ = played(seed, weather, _play, cut=cut, config=config or load_live(None, None, list(words)))
    seen = world.invariants
    return Outcome(
        seed, tuple(seen.findings), world.store.hash.hexdigest(), tuple(world.parts), world.loop.time() / 3600.0,
        seen.bindings, seen.evictions, world.store.revision,
    )  # fmt: skip
