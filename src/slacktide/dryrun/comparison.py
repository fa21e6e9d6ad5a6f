"""What we would have delivered against what another scheduler delivered: by controller, by class, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import ControllerGone, Operation
from slacktide.engine.ledger.overview import STATES, Overview, overview
from slacktide.for_people import share
from slacktide.kube.observe.availability_metrics import bonus_owed
from slacktide.model.service_class import class_name

SHOWN_CONTROLLERS = 30


@dataclass(frozen=True, slots=True)
class Stood:
    """One controller at an instant. ``delivered`` over its life; ``received`` of ``lifetime`` seconds since the dry run
    began, over all its instances; ``owed`` a share of its price.
    """

    key: str
    service: str
    promised: float
    delivered: float
    state: str
    slack: float | None
    lifetime: float
    received: float
    owed: float
    preemptions: int
    waiting: int


@dataclass
class Tally:
    """The controllers of one engine since the dry run began, also those that are no more. It is a journal."""

    preempted: Mapping[str, int]
    """Preemptions by controller."""
    engine: Engine | None = None
    _began: dict[str, tuple[float, float]] = field(default_factory=dict)
    _final: dict[str, Stood] = field(default_factory=dict)

    def begin(self, engine: Engine, now: float) -> None:
        """What was before is not counted."""
        found = overview(engine, now)
        keys = [one.key for one in found.controllers]
        self._began = dict(zip(keys, zip(found.lifetime.tolist(), found.received.tolist(), strict=True), strict=True))
        self.engine = engine

    def __call__(self, told: Operation) -> None:
        """Keep how a controller stood that is about to be forgotten."""
        if isinstance(told, ControllerGone) and self.engine is not None and told.key in self.engine.controllers:
            (found,) = self._stood(overview(self.engine, told.at, (told.key,)))
            self._final[found.key] = found

    def now(self, at: float) -> dict[str, Stood]:
        """How all stand, or stood last, by key."""
        if self.engine is None:
            return {}
        return {**self._final, **{one.key: one for one in self._stood(overview(self.engine, at))}}

    def _stood(self, found: Overview) -> Iterable[Stood]:
        preempted, owed = self.preempted, bonus_owed(found)
        for i, one in enumerate(found.controllers):
            lifetime, received = self._began.get(one.key, (0.0, 0.0))
            slack = float(found.slack[i])
            yield Stood(
                key=one.key,
                service=class_name(one.service.name),
                promised=float(found.promised[i]),
                delivered=float(found.delivered[i]),
                state=STATES[int(found.state[i])],
                slack=slack if slack < float("inf") else None,
                lifetime=float(found.lifetime[i]) - lifetime,
                received=float(found.received[i]) - received,
                owed=float(owed[i]),
                preemptions=preempted.get(one.key, 0),
                waiting=int(found.waiting[i]),
            )


def summed(stood: Iterable[Stood]) -> dict[str, Any]:
    """Several controllers together: means over controllers, ``share`` of the seconds lived since the beginning."""
    all_of_them = list(stood)
    count, lifetime = len(all_of_them), sum(one.lifetime for one in all_of_them)
    return {
        "controllers": count,
        "delivered": sum(one.delivered for one in all_of_them) / count if count else None,
        "share": sum(one.received for one in all_of_them) / lifetime if lifetime > 0 else None,
        "missed": sum(one.state == "Missed" for one in all_of_them),
        "owed": sum(one.owed for one in all_of_them),
        "preemptions": sum(one.preemptions for one in all_of_them),
        "waiting": sum(one.waiting for one in all_of_them),
    }


def compared(did: Mapping[str, Stood], would: Mapping[str, Stood]) -> dict[str, Any]:
    """Both, by class and by controller; plain JSON."""
    services = sorted({one.service for one in (*did.values(), *would.values())})
    classes = [
        {
            "class": name,
            "promised": max((one.promised for one in did.values() if one.service == name), default=None),
            "did": summed(one for one in did.values() if one.service == name),
            "would": summed(one for one in would.values() if one.service == name),
        }
        for name in services
    ]
    controllers = [
        {
            "controller": "/".join(key.split("/")[:3]),
            "class": (did.get(key) or would[key]).service,
            "promised": (did.get(key) or would[key]).promised,
            "did": asdict(did[key]) if key in did else None,
            "would": asdict(would[key]) if key in would else None,
        }
        for key in sorted({*did, *would})
    ]
    return {"classes": classes, "controllers": controllers}


def text(report: Mapping[str, Any]) -> str:
    """A report for people."""
    theirs, lines = report["scheduler"], []
    lines.append(
        f"Dry run beside {theirs} for {report['seconds']:.0f} s, policy {report['policy']}; nothing was written."
    )
    would, did = report["would"], report["did"]
    lines.append(f"  {theirs} bound {did['bound']} pods and preempted {did['preempted']};")
    lines.append(f"  slacktide would have bound {would['bound']} and preempted {would['preempted']}.")
    if report["strangers"]:
        lines.append(
            f"  {report['strangers']} pods have no promise or another scheduler: their requests count as used."
        )
    lines += ["", "By class, delivered so far (mean of workloads) and share of the time since the dry run began:"]
    head = ("class", "promised", "", "delivered", "share", "missed", "owed", "preempted", "waiting")
    rows = [row for one in report["classes"] for row in _rows(one, theirs)]
    lines += _table(head, rows)
    differing = [one for one in report["controllers"] if _gap(one) > 1e-4]
    differing.sort(key=_gap, reverse=True)
    if differing:
        lines += ["", "Workloads that differ most:"]
        columns = ("controller", "class", "promised", f"{theirs}", "slacktide")
        lines += _table(columns, [_differing(one) for one in differing[:SHOWN_CONTROLLERS]])
        if len(differing) > SHOWN_CONTROLLERS:
            lines.append(f"  and {len(differing) - SHOWN_CONTROLLERS} more")
    return "\n".join(lines)


def _rows(one: Mapping[str, Any], theirs: str) -> list[tuple[str, ...]]:
    rows = []
    for name, found, first in ((theirs, one["did"], True), ("slacktide", one["would"], False)):
        labels = (one["class"], share(one["promised"])) if first else ("", "")
        numbers = (share(found["delivered"]), share(found["share"]), str(found["missed"]), f"{found['owed']:.2f}")
        rows.append((*labels, name, *numbers, str(found["preemptions"]), str(found["waiting"])))
    return rows


def _gap(one: Mapping[str, Any]) -> float:
    if one["did"] is None or one["would"] is None:
        return 0.0
    return abs(float(one["did"]["delivered"]) - float(one["would"]["delivered"]))


def _differing(one: Mapping[str, Any]) -> tuple[str, ...]:
    shares = share(one["did"]["delivered"]), share(one["would"]["delivered"])
    return (one["controller"], one["class"], share(one["promised"]), *shares)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]
