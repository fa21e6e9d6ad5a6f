"""What an Availability object says of a controller, for people and for the next leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slacktide.engine.core.plans import GivenUp
from slacktide.engine.explain import giving_up
from slacktide.engine.ledger.slo_status import SloStatus
from slacktide.kube.client.quantities import text_of
from slacktide.kube.resources.objects import API_VERSION, rfc3339
from slacktide.kube.translate.owners import Target, is_followed


def reference(target: Target) -> dict[str, Any]:
    """The owner reference by which the garbage collector removes a ledger with its controller."""
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "name": target.name,
        "uid": target.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def metadata_of(target: Target) -> dict[str, Any]:
    """Those of a ledger. It has an owner only where we do not hear that its workload is deleted."""
    found: dict[str, Any] = {"name": target.ledger, "namespace": target.namespace}
    return found if is_followed(target) else found | {"ownerReferences": [reference(target)]}


def breaks_at(found: SloStatus, at: float) -> float | None:
    """The earliest instant at which a kept promise can break: if all stopped at ``at``, and none came back.

    What the slack holds back for a start-up is no loss, and counts here. None where the promise cannot break, or is
    broken already.
    """
    if found.slack is None or found.state in ("Missed", "Unknown"):
        return None
    return at + max(0.0, found.slack + found.alpha)


def room_text(asks: Sequence[tuple[str, int]]) -> str:
    """What somebody asks for, as people write it; places for pods and what has no name of its own are left out."""
    said = [f"{name} {text_of(name, amount)}" for name, amount in asks if name in ("cpu", "memory") or "." in name]
    return ", ".join(said)


def given_up_text(found: GivenUp | None) -> str:
    """What the plan has to say of a workload that it gives up."""
    return "" if found is None else giving_up.sentence(found, room_text(found.asks))


def message(found: SloStatus, class_is_lost: str = "") -> str:
    """That its class is no more, or not for it, in these words; else that the plan gives it up, and why a kept promise
    is AtRisk; else nothing."""
    if class_is_lost:
        return class_is_lost
    return "; ".join(filter(None, (given_up_text(found.given_up), _at_risk(found))))


def _at_risk(found: SloStatus) -> str:
    if found.state != "AtRisk" or found.slack is None:
        return ""
    left, budget = max(0.0, found.slack + found.alpha), 1.0 - found.promised
    used = f", and {(1.0 - found.delivered) / budget:.0%} of the error budget is used" if budget > 0.0 else ""
    return (
        f"kept so far; if all pods stopped now it would break in {left:.1f} s, less than the margin of class "
        f"{found.service}{used}"
    )


def document(
    target: Target,
    books: dict[str, Any],
    found: SloStatus,
    deleted: float | None = None,
    class_is_lost: str = "",
) -> dict[str, Any]:
    """The Availability of a controller; ``deleted``: when it was; ``class_is_lost``: that its class is no more, or not
    for it, in words.

    It stays when its controller goes, for another one of that name, where we hear that it goes.
    """
    said = _document(target, books, found, class_is_lost)
    if deleted is not None:
        words = "the workload was deleted; a new one of the same namespace, kind and name continues this Availability"
        status = {"state": "Unknown", "message": words, "slackSeconds": None, "breaksAt": None, "givenUp": None}
        said["status"] |= status | {"running": 0, "waiting": 0, "deletedAt": rfc3339(deleted)}
    return said


def _given_up(found: GivenUp | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "since": rfc3339(found.since),
        "instances": found.instances,
        "promises": found.promises,
        "carried": found.carried,
        "nextPlan": rfc3339(found.next_plan),
    }


def _document(target: Target, books: dict[str, Any], found: SloStatus, class_is_lost: str) -> dict[str, Any]:
    breaks, losses = breaks_at(found, books["at"]), found.losses
    return {
        "apiVersion": API_VERSION,
        "kind": "Availability",
        "metadata": metadata_of(target),
        "status": {
            "class": found.service,
            "promised": found.promised,
            "delivered": round(found.delivered, 6),
            "deliveredAlways": round(found.delivered_always, 6),
            "deliveredRestart": round(found.delivered_restart, 6),
            "deliveredNever": round(found.delivered_never, 6),
            "slackSeconds": None if found.slack is None else round(found.slack, 3),
            "breaksAt": None if breaks is None else rfc3339(breaks),
            "state": found.state,
            "message": message(found, class_is_lost),
            "running": found.running,
            "waiting": found.waiting,
            "lost": found.lost,
            "starving": found.starving,
            "goodSeconds": round(losses.good, 3),
            "lostSeconds": {
                "cluster": round(losses.cluster, 3),
                "workload": round(losses.workload, 3),
                "operator": round(losses.operator, 3),
            },
            "givenUp": _given_up(found.given_up),
            "preemptions": found.preemptions,
            "at": rfc3339(books["at"]),
            "target": {
                "apiVersion": target.api_version,
                "kind": target.kind,
                "name": target.name,
                "uid": target.uid,
            },
            "accumulators": books,
        },
    }
