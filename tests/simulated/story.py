"""One seed's story: faults while users work, then everything heals, and what must be so then."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import ceil

from simulated.agents import amounts, is_active, is_over, on_node, owned, room, taken
from simulated.incidents import Incidents
from simulated.network import Weather
from simulated.pod_model import is_true, seconds_of
from simulated.resources import Json
from simulated.users import Users
from simulated.world import NODE_LABEL, WHOLE, Cut, Part, World, played

HEALED_SECONDS = 420.0
"""By then all that can be placed is placed: two minutes of silence, a lease, the longest backoff, a grace, and the
longest time that containers and budgets take, several times over."""
LOOK_SECONDS = 5.0
LEDGER_SECONDS = 100.0
"""A ledger is written once a minute."""


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
    for number in range(chance.whole("story", 2, 4)):
        world.make_node(f"node-{number}", chance.whole("story", 2, 6))
    users = Users(world, chance.between("story", 5.0, 25.0))
    for _ in range(chance.whole("story", 1, 4)):
        users.does(users.deploy)
    incidents = Incidents(world, chance.between("story", 8.0, 80.0))
    world.start()
    at_work = [asyncio.create_task(users.run()), asyncio.create_task(incidents.run())]
    for _ in range(ceil(world.cut.faults_seconds / LOOK_SECONDS)):
        await asyncio.sleep(LOOK_SECONDS)
        if world.cut.ends_at_once and world.invariants.findings:
            return
    for task in at_work:
        task.cancel()
    failed = [one.exception() for one in at_work if one.done()]
    if any(failed):
        raise next(one for one in failed if one is not None)
    incidents.heal()
    left: list[str] = []
    until = world.loop.time() + HEALED_SECONDS
    while world.loop.time() < until:
        await asyncio.sleep(LOOK_SECONDS)
        left = unsettled(world)
        if not left:
            return
    for one in left:
        world.invariants.finding(f"{HEALED_SECONDS:g} s after everything was healed: {one}")


def unsettled(world: World) -> list[str]:
    """What is not yet as it must be in the end."""
    leaders = [one.identity for one in world.replicas if one.leading]
    found = [] if len(leaders) == 1 else [f"{len(leaders)} lead: {', '.join(leaders)}"]
    return found + _unplaced(world) + _unwritten(world)


def _is_open(node: Json) -> bool:
    taints = [one for one in node["spec"].get("taints", ()) if one["effect"] != "PreferNoSchedule"]
    ours = node["metadata"]["labels"].get(NODE_LABEL) == "true"
    return ours and not taints and not node["spec"].get("unschedulable") and is_true(node, "Ready")


def _unplaced(world: World) -> list[str]:
    """Pods that wait although a node has room for them, or for which a place is kept."""
    found = []
    leader = world.leader
    kept = leader.scheduler.nominations if leader is not None and leader.scheduler is not None else {}
    free = {}
    for node in world.store.every("nodes"):
        if _is_open(node):
            name = node["metadata"]["name"]
            free[name] = [has - held for has, held in zip(room(node), taken(on_node(world.store, name)), strict=True)]
    for pod in world.store.every("pods"):
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        if node and is_active(pod) and not is_true(pod, "Ready"):
            found.append(f"{name} on {node} is not ready")
        if node or not is_active(pod):
            continue
        cpu, memory = amounts(pod)
        fits = [one for one, has in free.items() if cpu <= has[0] and memory <= has[1] and has[2] >= 1]
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


def told(seed: int, cut: Cut = WHOLE) -> Outcome:
    """Play a seed, or what is left of it."""
    weather = scaled((0.0, 0.3, 1.0, 1.0, 2.0)[seed % 5])
    for name in weather.__dataclass_fields__:
        if Part(name, 0) in cut.without:
            setattr(weather, name, 0.0)
    world, _ = played(seed, weather, _play, cut=cut)
    seen = world.invariants
    return Outcome(
        seed, tuple(seen.findings), world.store.hash.hexdigest(), tuple(world.parts), world.loop.time() / 3600.0,
        seen.bindings, seen.evictions, world.store.revision,
    )  # fmt: skip
