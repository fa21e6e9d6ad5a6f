"""Which buffer is full: a pass stops with a code, the caller makes the buffer longer, and the pass goes on."""

from __future__ import annotations

from slacktide.kernels.runtime.compiling import kernel
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import RECORD_OUTAGES, State

FINISHED, MORE_SLOTS, MORE_HEAP, MORE_VISITS, MORE_QUEUE, FLUSH, PASS_DUE, OVER, PAUSE, MORE_ACTS = range(10)
LOOK, MORE_OUTAGES, MORE_LEAVERS = range(10, 13)


@kernel
def lacking(tb: State) -> int:
    """What must grow before another request can be placed, or FINISHED; O(1)."""
    control = views.control(tb)
    widest = views.slots(tb).shape[1] - 1  # the last slot is spare
    if control["most"] + 1 > widest:
        return MORE_SLOTS
    goes = widest + control["whole_members"]  # of those that may go at once, the latter on any hosts
    ahead = goes + 4  # all of them may come back later, and one start
    if len(views.accounts(tb)) > 0:
        ahead += control["placed_now"]  # of all of them a calendar window may begin
    if control["heap"] + ahead >= len(views.heap(tb)):
        return MORE_HEAP
    if len(views.leavers(tb)) > 0 and control["leavers"] + goes >= len(views.leavers(tb)):
        return MORE_LEAVERS
    lost = 2 * (goes + 2) + len(views.request_accounts(tb))  # a request has one outage more at an instant at the most
    if views.rules(tb)["live"]:
        lost += len(views.accounts(tb))  # time goes on for all of them at once
    if len(views.accounts(tb)) > 0 and control["outages"] + lost >= len(views.outages(tb)):
        return MORE_OUTAGES
    if 2 * (control["visits"] + 1) >= len(views.visits(tb)):
        return MORE_VISITS
    if control["queue"] + control["incoming"] + goes + 2 >= len(views.queue(tb)):
        return MORE_QUEUE
    more = goes + len(views.excess(tb)) + 2  # events that so many evictions, or a scale event, can cause
    if views.rules(tb)["record"] & RECORD_OUTAGES:
        more = 2 * more + len(views.request_accounts(tb))  # each may end an outage, too, and a request one more
    full = control["events"] + more >= len(views.events(tb)) or control["passes"] + 1 >= len(views.passes(tb))
    if (
        full
        or control["decisions"] + 1 >= len(views.decisions(tb))
        or control["victims"] + goes >= len(views.victims(tb))
    ):
        return FLUSH
    return FINISHED
