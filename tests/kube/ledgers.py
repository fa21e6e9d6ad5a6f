"""Ledgers worked out by hand: from the timestamps of the pods alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kube.auditor import Life
from kube.judging import Json
from kube.running import at

ALPHA = 1.0
"""``qos.alpha`` in live tests: what little time there is shall tell classes apart."""
INCIDENT_SECONDS = 1.5
"""Of error for each thing that happened to an instance: objects' times are whole seconds."""
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
    joined: list[tuple[float, float]] = []
    for a, b in spans:
        if joined and a <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(b, joined[-1][1]))
        else:
            joined.append((a, b))
    return joined


def length(spans: Sequence[tuple[float, float]]) -> float:
    return sum(b - a for a, b in spans)


def close(found: float, expected: float, error: float, what: str) -> None:
    assert found == pytest.approx(expected, abs=error), what


def independent(status: Json, chains: Sequence[Chain], slo: float, incidents: int) -> None:
    """Checks a ledger of instances that count each alone: the worst of them is what was delivered.

    ``incidents``: how many happened to one instance at most, its creation and its first start included.
    """
    t, error = at(status), INCIDENT_SECONDS * incidents
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


def aggregated(status: Json, running: float, lifetime: float, slo: float, incidents: int) -> None:
    """Checks a ledger of instances that count together, by its sums; ``incidents``: how many there were in all."""
    sums, error = status["accumulators"]["sums"], INCIDENT_SECONDS * incidents
    close(sums["running"], running, error, f"running seconds, {sums=}")
    close(sums["lifetime"], lifetime, error, f"lifetimes, {sums=}")
    close(status["delivered"], running / lifetime, 2 * error / lifetime, f"delivered, {sums=}")
    close(status["delivered"], sums["running"] / max(sums["lifetime"], 1e-9), 1e-6, "delivered by the sums")
    assert status["promised"] == slo
    _state(status, running / lifetime, slo, 2 * error / lifetime)


def concurrent(status: Json, chains: Sequence[Chain], slo: float, incidents: int) -> None:
    """Checks a ledger of instances that count only while all run; ``incidents``: how many there were in all."""
    t, error = at(status), INCIDENT_SECONDS * incidents
    all_up = len(chains) * length(overlap([up(chain, t) for chain in chains]))
    lifetime = sum(t - chain[0].created for chain in chains)
    together = status["accumulators"]["together"]["always"]
    close(together, all_up, error, f"seconds in which all ran, {status['accumulators']=}")
    close(status["accumulators"]["sums"]["lifetime"], lifetime, error, "lifetimes")
    close(status["delivered"], all_up / lifetime, 2 * error / lifetime, "delivered")
    assert status["promised"] == slo
    _state(status, all_up / lifetime, slo, 2 * error / lifetime)
