"""Pods whose places are kept until victims are gone, looked at again: a node may be free for them by now.

As kube-scheduler tries a pod with a nominated node again whenever something becomes free. Who finds a place at once
goes there, and what was kept for it is given back. Victims that were told to go, go; others stay.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import another_host, kind_has_room
from slacktide.engine.core.types import Decision
from slacktide.kube.act.reservations import Nomination, Reservations


def settled(engine: Engine, reservations: Reservations, now: float, *, everybody: bool) -> Iterator[Decision]:
    """Decisions for pods that need not wait any more, the most important first; the engine hears of each, and its
    reservation is dropped.

    ``everybody``: else only those no less important than whoever waits without a place, who may need that room more.
    O(places kept + kinds of their pods * hosts), in a few vector operations where nothing became free.
    """
    hopeless: set[int] = set()
    limit = np.inf if everybody else _most_important_waiting(engine)
    seen, moved = (-1, ""), True
    while moved:  # who moves leaves room behind, which the next ones may use
        moved = False
        for rank, uid, kind in _worth_a_look(engine, reservations, hopeless, limit):
            if (rank, uid) <= seen:
                continue
            seen = rank, uid
            nomination, before = reservations.nominations[uid], engine.pods[uid].host
            host = before if _is_free(engine, reservations, nomination) else ""
            if not host and kind not in hopeless:
                host = _elsewhere(engine, reservations, uid, nomination.decision.metric)
                if not host:
                    hopeless.add(kind)
            if not host:
                continue
            reservations.drop(uid)
            moved = host != before
            if moved:
                engine.refused(uid, now)
                engine.nominated(uid, host, now)
            yield Decision(uid, host, nomination.decision.metric)
            if moved:
                break


def _worth_a_look(
    engine: Engine, reservations: Reservations, hopeless: set[int], limit: float
) -> list[tuple[int, str, int]]:
    """Rank, UID and kind of the pods of which something may have become free, in this order: the contents of their own
    node changed, or some node has room for their kind. Kinds of which one finds no other node join the ``hopeless``.
    O(places kept + kinds * hosts)."""
    tables, nominations = engine.tables, reservations.nominations
    kept = [
        (uid, one)
        for uid in nominations
        if (one := engine.pods.get(uid)) is not None
        and one.state == types.PLACED and not one.bound and one.host == nominations[uid].decision.host
    ]  # fmt: skip
    if not kept:
        return []
    tables.settle()
    tb, uids = tables.tb, [uid for uid, _ in kept]
    kinds = tb["instances"]["kind"][np.array([one.row for _, one in kept])]
    ranks = tb["classes"]["rank"][tb["kinds"]["cls"][kinds]]
    hosts = np.array([engine.hosts[one.host] for _, one in kept])
    worth = tb["hosts"]["version"][hosts] != np.array([nominations[uid].looked for uid in uids])
    for kind in np.unique(kinds).tolist():
        if kind in hopeless or not kind_has_room(engine, kind):
            continue
        alike = (kinds == kind) & (ranks <= limit)
        others = np.flatnonzero(alike & ~worth).tolist()
        # Of equal ones the first fails for all of them: most often what has room is still taken by who goes.
        first = min((uids[i] for i in others), default="")
        if first and not _elsewhere(engine, reservations, first, nominations[first].decision.metric):
            hopeless.add(kind)
        else:
            worth |= alike
    found = np.flatnonzero(worth & (ranks <= limit)).tolist()
    return sorted((int(ranks[i]), uids[i], int(kinds[i])) for i in found)


def _elsewhere(engine: Engine, reservations: Reservations, uid: str, metric: float) -> str:
    """Another node where a pod would go at once; empty where there is none."""
    return another_host(engine, uid, lambda name: bool(reservations.in_the_way(engine, Decision(uid, name, metric))))


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
