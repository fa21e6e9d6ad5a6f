"""Two numbers have two names: what is left until the promise breaks, and that without what a start takes."""

from __future__ import annotations

from typing import Any

from slacktide.kube.observe.dashboard import text_of

PLACED: dict[str, Any] = {"what": "placed", "at": "2026-11-28T10:00:00Z", "host": "node-0", "slack": 3.6, "count": 1}
VICTIM = {"name": "shop/low", "slack": None}
LEDGER: dict[str, Any] = {
    "kind": "Deployment", "name": "front", "class": "gold", "promised": 0.99, "delivered": 0.9963, "slack": 26.0,
    "state": "Kept", "running": 1, "waiting": 0, "preemptions": 0,
}  # fmt: skip


def test_what_decisions_weigh_is_not_called_as_what_is_left() -> None:
    found = {"namespace": "shop", "name": "high", "exists": True, "ours": True, "phase": "Running", "state": "placed"}
    found |= {"node": "node-0", "ready": True, "ledger": LEDGER, "history": [PLACED | {"victims": [VICTIM]}]}
    text = text_of(found)
    assert "delivered 0.9963, 26.0s of slack, Kept" in text
    assert "no node was feasible with 3.6s of slack after start-up, so it preempted shop/low (unlimited slack)" in text
    assert "placed on node-0 with 3.6s of slack after start-up, preempting shop/low" in text
