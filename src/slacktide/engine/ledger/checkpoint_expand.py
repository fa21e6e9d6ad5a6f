"""From sums and counts back to instances, with the help of what their pods say.

The checkpoints of aggregated and concurrent controllers do not know one instance from
another, and need not: only sums count. So whatever fits the counts is right, up to what
the pods cannot tell: which of several that vanished had been ready is taken to be the
first, and in the accounting ``restart`` who is in its first start, the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slacktide.engine.core.types import snap
from slacktide.engine.ledger.checkpoint import LEAVING, PLACED, RECORD, VACANT, WAITING, Checkpoint, hashed
from slacktide.engine.ledger.pod_observation import PodObservation

UP, STARTING, NOWHERE = range(3)
RESOLUTION = 1.0
"""Seconds, of the API server's timestamps."""


@dataclass(slots=True)
class _Guess:
    """An instance at the checkpoint's instant; ``pod`` None: it vanished. ``at_risk``: what it did (batch)."""

    pod: PodObservation | None
    stage: int
    leaving: bool = False
    restart: bool = False
    fresh: bool = False
    at_risk: float | None = None


def expand(said: Checkpoint, pods: Sequence[PodObservation], *, batch: bool) -> tuple[Checkpoint, int]:
    """The checkpoint with a record for each instance, and how many leaving ones were spared in the meantime.

    ``pods`` are all of the controller now, oldest first. ``sums`` and ``counts`` stay those of all instances.
    """
    counts = said.counts
    with_pod = counts["waiting"] + counts["starting"] + counts["up"]
    survivors = _survivors(said.at, pods)[:with_pod]
    guesses = _stages(said, survivors, with_pod - len(survivors))
    _first_starts(counts["starting"] - counts["restarting"], guesses)
    fresh = counts["fresh"]
    for guess in [one for one in guesses if one.stage == NOWHERE][:fresh]:
        guess.fresh = True
        fresh -= 1
    told = _told_to_leave(counts["leaving"], guesses)
    if batch:
        _spread_risk(said, guesses)
    records = np.zeros(len(guesses) + counts["vacant"], RECORD)
    records["state"] = VACANT
    for i, guess in enumerate(guesses):
        records[i] = _record(said, guess)
    records["starts"][len(guesses) :] = 1
    records["starts"][len(guesses) : len(guesses) + fresh] = 0
    names = tuple(guess.pod.name if guess.pod else "" for guess in guesses) + ("",) * counts["vacant"]
    return replace(said, records=records, names=names), counts["leaving"] - told


def _survivors(at: float, pods: Sequence[PodObservation]) -> list[PodObservation]:
    """Pods that were there at the checkpoint's instant, then those that may have been."""
    certain, close = [], []
    for pod in pods:
        end = float("inf") if pod.ended is None else pod.ended
        if pod.created <= at - RESOLUTION and end > at:
            certain.append(pod)
        elif pod.created <= at and end > at - RESOLUTION:
            close.append(pod)
    return certain + close


def _stages(said: Checkpoint, survivors: Sequence[PodObservation], vanished: int) -> list[_Guess]:
    """What each instance with a pod did, those that vanished last, the ready ones of them first."""
    at = said.at
    guesses: list[_Guess] = []
    lost_it: list[_Guess] = []
    close: list[_Guess] = []  # their timestamps are too coarse to tell; nor does it matter, for it lasted no second
    came_back: list[_Guess] = []  # ready now, but not since before: may have been ready before and lost it
    for pod in survivors:
        bound = bool(pod.host) and pod.since <= at
        before = bound and pod.ready_since <= at - RESOLUTION
        guess = _Guess(pod, NOWHERE if not bound else UP if before and pod.ready else STARTING)
        if bound and not before:
            (close if pod.ready_since <= at else came_back if pod.ready else lost_it).append(guess)
        guesses.append(guess)
    up = said.counts["up"] - sum(guess.stage == UP for guess in guesses)
    starting = said.counts["starting"] - sum(guess.stage == STARTING for guess in guesses)
    for guess in lost_it[: max(0, up)]:
        guess.stage = UP
        starting += 1
    up -= len(lost_it)
    for guess in guesses[::-1]:
        if up > vanished and guess.pod is not None and guess.pod.created > at - RESOLUTION:
            guesses.remove(guess)  # rather the replacement of one that was up, right after
            vanished += 1
    gone = [UP] * max(0, min(vanished, up))
    gone += [STARTING] * max(0, min(vanished - len(gone), starting))
    gone += [NOWHERE] * (vanished - len(gone))
    for guess in [guess for guess in (*close, *came_back) if guess in guesses][: max(0, up - vanished)]:
        guess.stage = UP
    return guesses + [_Guess(None, stage) for stage in gone]


def _first_starts(first: int, guesses: Sequence[_Guess]) -> None:
    for guess in guesses:
        if guess.stage == STARTING:
            guess.restart = first <= 0
            first -= 1


def _told_to_leave(number: int, guesses: Sequence[_Guess]) -> int:
    """Mark those that were leaving: pods that still are, then those that vanished. How many that were."""
    marked = 0
    for still_there in (True, False):
        for guess in guesses:
            there = guess.pod is not None and guess.pod.leaving
            if marked < number and guess.stage != NOWHERE and (there if still_there else guess.pod is None):
                guess.leaving = True
                marked += 1
    return marked


def _spread_risk(said: Checkpoint, guesses: Sequence[_Guess]) -> None:
    """Running seconds of the pods of those that vanished: what is left of all."""
    rest = said.at_risk
    for guess in guesses:
        if guess.pod is not None and guess.stage != NOWHERE:
            derived = max(0.0, said.at - guess.pod.ready_since) if guess.stage == UP and guess.pod.ready else 0.0
            guess.at_risk = said.risks.get(hashed(guess.pod.uid), derived)
            rest -= guess.at_risk
    vanished = [guess for guess in guesses if guess.pod is None and guess.stage != NOWHERE]
    for guess in vanished:
        guess.at_risk = snap(max(0.0, rest) / len(vanished))


def _record(said: Checkpoint, guess: _Guess) -> Any:
    """The instance's part of the sums, as far as its pod tells; the rest counts as past."""
    record = np.zeros(1, RECORD)[0]
    pod, at = guess.pod, said.at
    record["state"] = WAITING if guess.stage == NOWHERE else LEAVING if guess.leaving else PLACED
    record["starts"] = (not guess.fresh) if guess.stage == NOWHERE else 1 + guess.restart
    record["running"] = guess.at_risk or 0.0
    if pod is not None:
        record["uid"] = hashed(pod.uid)
        record["lifetime"] = max(0.0, at - pod.created)
    if guess.stage == NOWHERE:
        return record
    if pod is not None:
        record["age"] = max(0.0, at - pod.since)
        ready = pod.ready and pod.ready_since <= at
        record["startup"] = min(pod.ready_since - pod.since, float(record["age"])) if ready else 0.0
    elif guess.leaving:
        record["age"] = record["startup"] = snap(said.leaving_startup / max(1, said.counts["leaving"]))
    if guess.stage == STARTING:
        record["startup"] = np.inf
    elif pod is not None and guess.at_risk is not None:
        record["startup"], record["running"] = max(0.0, float(record["age"]) - guess.at_risk), 0.0
    return record
