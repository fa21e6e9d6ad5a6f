"""What controllers have suffered: their accounts of disruptions, given, read and gone on from."""

from __future__ import annotations

from collections.abc import Callable

from slacktide.engine.core.instances import Instances
from slacktide.engine.core.types import LEAVING, PLACED, Controller, Suffered
from slacktide.kernels.tables import schema
from slacktide.model import DisruptionLimits
from slacktide.model.durations import write_duration
from slacktide.model.hours import rfc3339
from slacktide.state.live_limits import LONG_AGO, recovering

WEEKS = 28 * 86400.0
ARRIVES_SECONDS = 60.0
"""So long after a new leader came an eviction may still arrive that the former one had sent: the API server ends
requests after a minute (its ``--request-timeout``)."""
DOUBT_SECONDS = 10.0
"""Clocks may differ by so much, that of the API server and ours."""
MOST_TOLD = 64
"""Of so many pods a ledger says that they are told to go; a cooldown lets one at a time."""


def limit(instances: Instances, controller: Controller, limits: DisruptionLimits | None, now: float) -> None:
    """A controller's instances may suffer no more than this from now on; what they have suffered still counts."""
    tables = instances.tables
    controller.limits = limits
    before = controller.account
    controller.account = tables.limits.assign(controller.q, limits, now)
    for row in controller.rows:
        tables.tb["disruption_account"][row] = controller.account
        if controller.account < 0:
            tables.tb["disrupted_at"][row] = float("-inf")
    if before < 0 <= controller.account and controller.suffered is not None:
        records = tables.tb["instances"]

        def stands(row: int) -> tuple[bool, float]:
            on = bool(records["state"][row] == schema.PLACED)
            return on and bool(records["startup"][row] < float("inf")), float(records["since"][row])

        go_on(instances, controller, controller.suffered, stands, now)


def suffered(instances: Instances, controller: Controller) -> Suffered | None:
    """What a controller's account says; None where it has none. O(its instances)."""
    if controller.account < 0:
        return controller.suffered
    tables, pods, uid_of_row = instances.tables, instances.pods, instances.uid_of_row
    account = tables.tb["disruption_accounts"][controller.account]
    rows = recovering(tables.tb, list(controller.rows))
    begun = [float(tables.tb["disrupted_at"][row]) for row in rows]
    there = (pods[uid_of_row[row]] for row in rows if row in uid_of_row)
    told = sorted(pod.uid for pod in there if pod.state == LEAVING or (pod.state == PLACED and pod.told))
    return Suffered(
        tuple(tables.limits.begun(controller.q)),
        float(account["ended"]),
        int(account["recovering"]),
        min((at for at in begun if at != LONG_AGO), default=float("-inf")),
        tuple(told[:MOST_TOLD]),
    )


def standing(instances: Instances, controller: Controller, now: float) -> list[str]:
    """What limits a controller has and how it stands by each at ``now``, in words; nothing where it has none."""
    limits, had = controller.limits, suffered(instances, controller)
    if limits is None:
        return []
    said = []
    if limits.most is not None and had is not None:
        recent = [at for at in had.begun if now < at + limits.per]
        full = len(recent) >= limits.most
        wait = recent[-limits.most] + limits.per - now if full and limits.most else 0.0
        again = f"; the next one in {wait:.0f} s at the earliest" if full and limits.most else ""
        said.append(
            f"disrupted {len(recent)} times, at most {limits.most} in {write_duration(limits.per)} are allowed{again}"
        )
    if limits.cooldown > 0.0 and had is not None:
        wait = had.ended + limits.cooldown - now
        how = "over" if wait <= 0.0 else f"over in {wait:.0f} s"
        how = f"it starts when {had.recovering} of its pods are ready again" if had.recovering else how
        said.append(f"cooldown of {write_duration(limits.cooldown)} after a disruption: {how}")
    hours = limits.intervals(now, now + WEEKS)
    if hours is not None:
        opens = next((begin for begin, end in hours if now < end), None)
        how = "not within four weeks" if opens is None else "now" if opens <= now else f"from {rfc3339(opens)} on"
        said.append(f"may be disrupted at some hours only: {how}")
    if limits.min_running is not None:
        said.append(f"no pod is preempted in its first {write_duration(limits.min_running)} on a node")
    return said


def go_on(
    instances: Instances,
    controller: Controller,
    said: Suffered,
    stands: Callable[[int], tuple[bool, float]],
    now: float,
) -> list[str]:
    """Go on from what a ledger says. ``stands``: whether an instance's pod is ready and not told to go, and since when
    there is that pod, or none.

    Whoever the ledger says is told to go still recovers while that very pod is there. If it stays, the eviction may
    have been sent and not have arrived: these are answered. Which others recovered is not known: as many as did of
    those that are not ready still do, the latest first, and none whose pod is older than these disruptions. Where more
    have become ready, they did no later than ``now``.
    """
    controller.suffered = said
    if controller.account < 0:
        return []
    tables, uid_of_row = instances.tables, instances.uid_of_row
    account = tables.tb["disruption_accounts"][controller.account : controller.account + 1]
    tables.limits.put(controller.q, said.begun)
    account["ended"] = said.ended
    for row in recovering(tables.tb, list(controller.rows)):
        tables.tb["disrupted_at"][row] = float("-inf")
    found = {row: stands(row) for row in controller.rows}
    told = [row for row in found if uid_of_row.get(row) in said.told][: said.recovering]
    others = [row for row, (up, since) in found.items() if not up and since >= said.since - DOUBT_SECONDS]
    others = sorted((row for row in others if row not in told), key=lambda row: -found[row][1])
    others = others[: said.recovering - len(told)]
    for row in told + others:
        tables.tb["disrupted_at"][row] = max(said.since, LONG_AGO)
    for row in told:
        instances.pods[uid_of_row[row]].told = True
    account["recovering"] = len(told) + len(others)
    if len(told) + len(others) < said.recovering:
        account["ended"] = max(said.ended, now)
    controller.suffered = None
    return [uid_of_row[row] for row in told if found[row][0]]


def was_not_told(instances: Instances, uid: str) -> None:
    """A pod that a ledger said is told to go was not: its disruption never came to be."""
    pod = instances.pods.get(uid)
    if pod is None or not pod.told:
        return
    pod.told = False
    if pod.state != PLACED:
        return  # it was preempted meanwhile
    tables, account = instances.tables, instances.controllers[pod.key].account
    if account >= 0 and recovering(tables.tb, [pod.row]):
        tables.tb["disrupted_at"][pod.row] = float("-inf")
        tables.tb["disruption_accounts"]["recovering"][account] -= 1
