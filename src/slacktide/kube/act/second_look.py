"""Pods whose places are kept until victims are gone, looked at again: a node may be free for them by now.

As kube-scheduler tries a pod with a nominated node again whenever something becomes free. Who finds a place at once
goes there, and what was kept for it is given back. Victims that were told to go, go; others stay.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import another_host
from slacktide.engine.core.types import Decision
from slacktide.kube.act.reservations import Nomination, Reservations


def settled(engine: Engine, reservations: Reservations, now: float, *, everybody: bool) -> Iterator[Decision]:
    """Decisions for pods that need not wait any more, the most important first; the engine hears of each, and its
    reservation is dropped.

    ``everybody``: else only those no less important than whoever waits without a place, who may need that room more.
    O(places kept + specs of their pods * hosts).
    """
    hopeless: set[int] = set()
    limit = np.inf if everybody else _most_important_waiting(engine)
    for rank, uid in sorted((_rank(engine, uid), uid) for uid in reservations.nominations if uid in engine.pods):
        one, nomination = engine.pods[uid], reservations.nominations[uid]
        if rank > limit or one.state != types.PLACED or one.bound or one.host != nomination.decision.host:
            continue
        host = one.host if _is_free(engine, reservations, nomination) else ""
        if not host and one.spec not in hopeless:
            metric = nomination.decision.metric
            host = another_host(
                engine,
                uid,
                lambda name: bool(reservations.in_the_way(engine, Decision(uid, name, metric))),  # noqa: B023
            )
            if not host:
                hopeless.add(one.spec)
        if not host:
            continue
        reservations.drop(uid)
        if host != one.host:
            engine.refused(uid, now)
            engine.nominated(uid, host, now)
        yield Decision(uid, host, nomination.decision.metric)


def _rank(engine: Engine, uid: str) -> int:
    tb = engine.tables.tb
    return int(tb["classes"]["rank"][tb["kinds"]["cls"][tb["instances"]["kind"][engine.pods[uid].row]]])


def _most_important_waiting(engine: Engine) -> float:
    tb = engine.tables.tb
    kinds = [tb[name]["kind"][: int(tb.control[name])] for name in ("queue", "incoming")]
    ranks = tb["classes"]["rank"][tb["kinds"]["cls"][np.concatenate(kinds)]]
    return float(ranks.min(initial=2**62))


def _is_free(engine: Engine, reservations: Reservations, nomination: Nomination) -> bool:
    """Whether a place that is kept is free though nobody of those who were to leave has: others have left the node.
    Asked again only where the node's contents changed. Of a former leader's victims the engine has not freed the room:
    places that wait for them are not free."""
    version = int(engine.tables.tb["hosts"]["version"][engine.hosts[nomination.decision.host]])
    if version == nomination.looked or not reservations.are_going(nomination):
        return False
    nomination.looked = version
    decision = nomination.decision
    return not reservations.in_the_way(engine, Decision(decision.uid, decision.host, decision.metric))
