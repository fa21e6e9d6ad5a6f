"""Ledgers worked out by hand: from the timestamps of the pods alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain as joined

import pytest

from cluster.auditor import Life
from cluster.judging import Json
from cluster.running import at

ALPHA = 1.0
"""``qos.alpha`` in live tests: what little time there is shall tell classes apart."""
INCIDENT_SECONDS = 1.5
"""Of error for each thing that happened to an instance: objects' times are whole seconds. What the machine's pulse says
that the scheduler may have been late to see it comes on top, for it counts from when it saw."""
Chain = Sequence[Life]
"""The pods that one instance was, one after the other."""


def overlap(spans: list[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The spans that all lists have in common."""
    common = spans[0]
    for other in spans[1:]:
        common = [(max(a, c), min(b, d)) for a, b in common for c, d in other if max(a, c) < min(b, d)]
    return common


def up(chain: Chain, t: float) -> list[tuple[float, float]]:
    """When an instance was ready until ``t``: spans apart from each other, in order."""
    spans = sorted((a, min(t, t if b is None else b)) for life in chain for a, b in life.ready if a < t)
    found: list[tuple[float, float]] = []
    for a, b in spans:
        if found and a <= found[-1][1]:
            found[-1] = (found[-1][0], max(b, found[-1][1]))
        else:
            found.append((a, b))
    return found


def length(spans: Sequence[tuple[float, float]]) -> float:
    return sum(b - a for a, b in spans)


def error_of(lives: Iterable[Life], t: float, incidents: int) -> float:
    """Seconds by which a ledger may be off after so many incidents."""
    return (INCIDENT_SECONDS + max(life.late(t) for life in lives)) * incidents


def close(found: float, expected: float, error: float, what: str) -> None:
    assert found == pytest.approx(expected, abs=error), what


def independent(status: Json, chains: Sequence[Chain], slo: float, incidents: int) -> None:
    """Checks a ledger of instances that count each alone: the worst of them is what was delivered.

    ``incidents``: how many happened to one instance at most, its creation and its first start included.
    """
    t = at(status)
    error = error_of(joined(*chains), t, incidents)
    lived = [t - chain[0].created for chain in chains]
    ran = [length(up(chain, t)) for chain in chains]
    delivered = min(r / max(life, 1e-9) for r, life in zip(ran, lived, strict=True))
    slack = min(r / slo - life for r, life in zip(ran, lived, strict=True)) - ALPHA
    close(status["delivered"], delivered, error / min(lived), f"delivered, at {t}, {lived=} {ran=}")
    close(status["slackSeconds"], slack, error / slo, f"slack, at {t}, {lived=} {ran=}")
    assert status["promised"] == slo
    _state(status, delivered, slo, error / min(lived))
    assert status["running"] + status["waiting"] == len(chains)


def _state(status: Json, delivered: float, slo: float, error: float) -> None:
    if delivered + error < slo:
        assert status["state"] == "Missed"
    elif delivered - error > slo:
        assert status["state"] in ("Kept", "AtRisk")
    assert (status["state"] == "Missed") == (status["delivered"] < slo)


def aggregated(
    status: Json, lives: Sequence[Life], slo: float, incidents: int, *,
    running: float | None = None, lifetime: float | None = None,
) -> None:  # fmt: skip
    """Checks a ledger of instances that count together, by its sums; ``incidents``: how many there were in all.

    ``running`` and ``lifetime`` are those of all ``lives`` unless given.
    """
    t, sums = at(status), status["accumulators"]["sums"]
    error = error_of(lives, t, incidents)
    running = sum(one.running(t) for one in lives) if running is None else running
    lifetime = sum(one.alive(t) for one in lives) if lifetime is None else lifetime
    close(sums["running"], running, error, f"running seconds, {sums=}")
    close(sums["lifetime"], lifetime, error, f"lifetimes, {sums=}")
    close(status["delivered"], running / lifetime, 2 * error / lifetime, f"delivered, {sums=}")
    close(status["delivered"], sums["running"] / max(sums["lifetime"], 1e-9), 1e-6, "delivered by the sums")
    assert status["promised"] == slo
    _state(status, running / lifetime, slo, 2 * error / lifetime)


def concurrent(status: Json, chains: Sequence[Chain], slo: float, incidents: int) -> None:
    """Checks a ledger of instances that count only while all run; ``incidents``: how many there were in all."""
    t = at(status)
    error = error_of(joined(*chains), t, incidents)
    all_up = len(chains) * length(overlap([up(chain, t) for chain in chains]))
    lifetime = sum(t - chain[0].created for chain in chains)
    together = status["accumulators"]["together"]["always"]
    close(together, all_up, error, f"seconds in which all ran, {status['accumulators']=}")
    close(status["accumulators"]["sums"]["lifetime"], lifetime, error, "lifetimes")
    close(status["delivered"], all_up / lifetime, 2 * error / lifetime, "delivered")
    assert status["promised"] == slo
    _state(status, all_up / lifetime, slo, 2 * error / lifetime)
