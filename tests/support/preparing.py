"""Preparation of workloads that are there whole, by the functions of pieces."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from slacktide.inputs.prepare import AdmissionInPieces, Refusals, thin_pieces, window_pieces
from slacktide.model import Hosts, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission(Refusals):
    """What was admitted, and how many requests were refused for which reason."""

    workload: Workload


def admit(workload: Workload, hosts: Hosts, *, limit: float = 1.0, first_limit: float | None = None) -> Admission:
    made = AdmissionInPieces([workload], hosts, limit=limit, first_limit=first_limit)
    (kept,) = made
    return Admission(workload=kept, **asdict(made.refused))


def thin(workload: Workload, share: float, seed: int) -> Workload:
    count = len(workload) if workload.requests is None else len(workload.requests)
    return next(thin_pieces([workload], count, share, seed))


def window(workload: Workload, start: float, end: float, *, keep_running: bool = True) -> Workload:
    return next(window_pieces([workload], start, end, keep_running=keep_running))
