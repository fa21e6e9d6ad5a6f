"""What instances had when the run begins, of those that were admitted before (docs/semantics.md, 'A past')."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference.metric import ACCOUNTINGS, Ledger
from reference.times import on_grid
from slacktide.model import Workload

if TYPE_CHECKING:
    from reference.requests import Request
    from reference.state import Instance


def begin(one: Instance, workload: Workload) -> None:
    """Its ledger at second 0, and when it lost what."""
    if workload.lost is None or one.admission >= 0.0:
        return
    one.since = 0.0
    for end, seconds in workload.losses[int(workload.lost[one.row])]:
        so_far = sum(piece[1] for piece in one.pieces) + on_grid(seconds)
        one.pieces.append((on_grid(end) - one.admission - so_far, on_grid(seconds), on_grid(end)))
    lost = sum(piece[1] for piece in one.pieces)
    one.progress = -one.admission - lost
    one.ledgers = {name: Ledger(one.progress, lost) for name in ACCOUNTINGS}
    if one.promise is not None and one.promise.turns:
        begun = one.promise.turns[one.promise.at]
        if begun > one.admission:
            before = sum(max(0.0, min(end, begun) - (end - length)) for _, length, end in one.pieces)
            one.base = (begun - one.admission - before, before, 0.0)


def begin_request(request: Request) -> None:
    """Concurrent ones: all of its instances ran when each of them did."""
    request.together = {name: sum(j.progress for j in request.instances if j.admission < 0.0) for name in ACCOUNTINGS}
