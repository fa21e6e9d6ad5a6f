"""What controllers have suffered: their accounts of disruptions, given, read and gone on from."""

from __future__ import annotations

from collections.abc import Callable

from slacktide.engine.core.types import Controller, Suffered
from slacktide.kernels.tables import schema
from slacktide.model import DisruptionLimits
from slacktide.model.durations import write_duration
from slacktide.model.hours import rfc3339
from slacktide.state.growth import Growing
from slacktide.state.live_limits import recovering

WEEKS = 28 * 86400.0
LONG_AGO = -1.0
"""Stands for the instant at which a disruption began of which it is not known when it was."""


def limit(tables: Growing, controller: Controller, limits: DisruptionLimits | None, now: float) -> None:
    """A controller's instances may suffer no more than this from now on; what they have suffered still counts."""
    controller.limits = limits
    before = controller.account
    controller.account = tables.limits.assign(controller.q, limits, now)
    for row in controller.rows:
        tables.tb["disruption_account"][row] = controller.account
        if controller.account < 0:
            tables.tb["disrupted_at"][row] = float("-inf")
    if before < 0 <= controller.account and controller.suffered is not None:
        instances = tables.tb["instances"]

        def ready(row: int) -> bool:
            return bool(instances["state"][row] == schema.PLACED and instances["startup"][row] < float("inf"))

        go_on(tables, controller, controller.suffered, ready, now)


def suffered(tables: Growing, controller: Controller) -> Suffered | None:
    """What a controller's account says; None where it has none. O(its instances)."""
    if controller.account < 0:
        return controller.suffered
    account = tables.tb["disruption_accounts"][controller.account]
    begun = tuple(tables.limits.begun(controller.q))
    return Suffered(begun, float(account["ended"]), int(account["recovering"]))


def standing(tables: Growing, controller: Controller, now: float) -> list[str]:
    """What limits a controller has and how it stands by each at ``now``, in words; nothing where it has none."""
    limits, had = controller.limits, suffered(tables, controller)
    if limits is None:
        return []
    said = []
    if limits.most is not None and had is not None:
        recent = [at for at in had.begun if now < at + limits.per]
        full = len(recent) >= limits.most
        wait = recent[-limits.most] + limits.per - now if full and limits.most else 0.0
        again = f"; the next one in {wait:.0f} s at the earliest" if full and limits.most else ""
        said.append(f"disrupted {len(recent)} times of at most {limits.most} in {write_duration(limits.per)}{again}")
    if limits.cooldown > 0.0 and had is not None:
        wait = had.ended + limits.cooldown - now
        how = "over" if wait <= 0.0 else f"over in {wait:.0f} s"
        how = f"begins when {had.recovering} of its pods are ready again" if had.recovering else how
        said.append(f"cooldown of {write_duration(limits.cooldown)} after a disruption: {how}")
    hours = limits.intervals(now, now + WEEKS)
    if hours is not None:
        opens = next((begin for begin, end in hours if now < end), None)
        how = "not within four weeks" if opens is None else "now" if opens <= now else f"from {rfc3339(opens)} on"
        said.append(f"may be disrupted at some hours only: {how}")
    if limits.min_running is not None:
        said.append(f"no pod is disrupted in its first {write_duration(limits.min_running)} on a node")
    return said


def go_on(tables: Growing, controller: Controller, said: Suffered, ready: Callable[[int], bool], now: float) -> None:
    """Go on from what a ledger says. Which of its instances recovered is not known: those that are not ``ready`` still
    do, as many as did; where others have become ready, they did no later than ``now``."""
    controller.suffered = said
    if controller.account < 0:
        return
    account = tables.tb["disruption_accounts"][controller.account : controller.account + 1]
    tables.limits.put(controller.q, said.begun)
    account["ended"] = said.ended
    for row in recovering(tables.tb, list(controller.rows)):
        tables.tb["disrupted_at"][row] = float("-inf")
    still = [row for row in controller.rows if not ready(row)][: said.recovering]
    for row in still:
        tables.tb["disrupted_at"][row] = LONG_AGO
    account["recovering"] = len(still)
    if len(still) < said.recovering:
        account["ended"] = max(said.ended, now)
    controller.suffered = None
