"""What a live cluster tells: instances come, become ready, stop being ready, and go.

The ledgers are those of the simulator; only the ends of start-ups and of instances are
told instead of known. An instance's start-up lasts for ever (``startup`` is infinite)
until its readiness is told. A preempted one is LEAVING from the decision on: it takes
no room and its request no longer counts on it, while its ledger goes on until its end
is told. VACANT is one whose next incarnation has not come yet: it is live and waits, but
there is nothing to place. EXCUSED is a VACANT one that is on no host for a reason which is not
the cluster's doing (docs/causes.md): its time counts as running, in decisions as well.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.drive import instance_ledger, window_events
from slacktide.kernels.drive.apply_plan import mark_done
from slacktide.kernels.feasible import disruption_limits, host_slots, sparing
from slacktide.kernels.plan import record as shortage
from slacktide.kernels.policies import in_force
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import entry, kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import EXCUSED, LEAVING, PLACED, REMOVED, VACANT, WAITING, State


@entry
def join(tb: State, row: int, now: float, queued: bool) -> None:
    """A new instance is admitted at ``now``; it waits, in the queue where ``queued``."""
    instance = views.instances(tb)[row]
    views.admission(tb)[row] = now
    instance["state"] = WAITING if queued else VACANT
    instance["since"] = now
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.joined(tb, q, now)
    if queued:
        waiting_queue.enqueue(tb, row, now)


@entry
def catch_up(tb: State, now: float) -> None:
    """It is ``now``: old outages leave their windows, and calendar windows begin."""
    shortage.pass_time(tb, now)
    window_events.catch_up(tb, now)


@entry
def enter(tb: State, row: int, now: float) -> None:
    """An instance is of the kind that its record says from now on, which may be of another class than before."""
    window_events.begin(tb, row, max(now, views.instances(tb)[row]["since"]))


@entry
def go_on(tb: State, row: int, cls: int) -> None:
    """An instance goes on with the account that another leader kept; what counts of it follows from the class."""
    if window_ledger.has_window(tb, cls):
        window_ledger.count_anew(tb, row, cls)


@entry
def enter_request(tb: State, q: int, now: float) -> None:
    """A request is of the class that its record says from ``now`` on, which may be another one than before."""
    window_events.begin_request(tb, q, max(now, views.requests(tb)[q]["since"]))


@entry
def end_request(tb: State, q: int) -> None:
    """A request without instances is no more."""
    window_events.end_request(tb, q)


@entry
def turn_request(tb: State, q: int, at: float) -> None:
    """The present calendar window of a request's class began at ``at``, while there was no leader."""
    window_events.turn_request(tb, q, at, at)


@entry
def turn(tb: State, row: int, cls: int, at: float) -> None:
    """The present calendar window of an instance's class began at ``at``, while there was no leader."""
    window_ledger.turn_account(tb, row, cls, at)


@entry
def classes_changed(tb: State, cls: int, now: float) -> None:
    """What class ``cls`` promises, or over which window, is another: its accounts count by that; O(instances)."""
    for row in range(len(views.accounts(tb))):
        account = views.accounts(tb)[row]
        if account["cls"] == cls + 1:
            account["cls"] = 2**31 - 1
            window_events.begin(tb, whole(row), max(now, views.instances(tb)[row]["since"]))
            if views.instances(tb)[row]["state"] == PLACED:
                write_slot(tb, whole(row))
    for q in range(len(views.request_accounts(tb))):
        if views.request_accounts(tb)[q]["cls"] == cls + 1:
            views.request_accounts(tb)[q]["cls"] = 2**31 - 1
            window_events.begin_request(tb, whole(q), max(now, views.requests(tb)[q]["since"]))


@entry
def enqueue(tb: State, row: int, now: float) -> None:
    """The next incarnation of a VACANT instance waits to be placed."""
    instance_ledger.come_back(tb, row, now)


@entry
def dequeue(tb: State, row: int) -> None:
    """A WAITING instance is to be left alone for a while; it becomes VACANT; O(queue)."""
    views.instances(tb)[row]["state"] = VACANT
    mark_done(tb, row)
    control = views.control(tb)
    control["queue"] = waiting_queue.drop_done(views.queue(tb), control["queue"])
    control["incoming"] = waiting_queue.drop_done(views.incoming(tb), control["incoming"])


@entry
def place(tb: State, row: int, h: int, now: float) -> None:
    """A VACANT instance was found on host ``h``, where it has been since ``now``."""
    instance_ledger.start(tb, row, h, now)


@entry
def ready(tb: State, row: int, at: float) -> None:
    """The start-up of a PLACED or LEAVING instance ended."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    leaving = instance["state"] == LEAVING
    if q >= 0 and leaving:
        request_ledger.bring_up_to(tb, q, at)
        request_ledger.goes_on_leaving(tb, q, row, at, whole(-1))
    instance["startup"] = max(0.0, at - instance["since"])
    if q >= 0 and leaving:
        request_ledger.goes_on_leaving(tb, q, row, at, whole(1))
    elif q >= 0:
        request_ledger.became_ready(tb, q, row, at)
    if not leaving:
        if disruption_limits.recovers(tb, row) and instance["since"] >= views.disrupted_at(tb)[row]:
            disruption_limits.over(tb, row, at)  # else it is on the host that it was told to leave
        write_slot(tb, row)


@entry
def unready(tb: State, row: int, at: float) -> None:
    """A PLACED or LEAVING instance is ready no more: a start-up begins that counts as a restart's."""
    begin_unready(tb, row, at, np.inf)


@kernel
def begin_unready(tb: State, row: int, at: float, seconds: float) -> None:
    """As :func:`unready`, for so many seconds; O(instances on the host)."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    leaving = instance["state"] == LEAVING
    if q >= 0:
        request_ledger.bring_up_to(tb, q, at)
        if leaving:
            request_ledger.goes_on_leaving(tb, q, row, at, whole(-1))
        else:
            request_ledger.change(tb, q, whole(-1), whole(instance["starts"]), True, True, whole(0), whole(0))
    instance_ledger.settle(tb, row, at, instance_ledger.NO)
    instance["starts"] += instance["starts"] == 1  # what follows is no first start
    instance["since"] = at
    instance["startup"] = seconds
    if q >= 0 and leaving:
        request_ledger.goes_on_leaving(tb, q, row, at, whole(1))
    elif q >= 0:
        request_ledger.change(tb, q, whole(1), whole(instance["starts"]), False, True, whole(0), whole(0))
    if not leaving:
        write_slot(tb, row)


@kernel
def write_slot(tb: State, row: int) -> None:
    """Carry an instance's ledger into its slot; whoever sorted or bounded the host does so again; O(instances)."""
    instance = views.instances(tb)[row]
    h = whole(instance["host"])
    slot = views.slots(tb)[h, host_slots.slot_of(tb, h, row)]
    since = instance["since"]
    waits = request_ledger.begins_pending(views.rules(tb)["accounting"], instance["starts"])
    window_ledger.fill_slot(tb, row, slot, since, since + instance["startup"] if waits else since)
    views.hosts(tb)[h]["fell"] = views.control(tb)["told"] = views.control(tb)["looks"] + 1
    host_slots.look_again(tb, h)
    window_events.expect(tb, row)


@entry
def spare(tb: State, row: int, until: float) -> None:
    """An instance, on a host or not, is not preempted before this instant, and may be from then on."""
    changed = views.guard(tb)[row] != until
    views.guard(tb)[row] = until
    if changed and views.instances(tb)[row]["state"] == PLACED:
        h = whole(views.instances(tb)[row]["host"])
        if in_force.by_metric(tb):
            sparing.look_through(tb, h)
        else:
            host_slots.look_again(tb, h)


@entry
def gone(tb: State, row: int, at: float, lose: bool, preempted: bool) -> None:
    """The incarnation of a PLACED or LEAVING instance has ended; the instance is VACANT then.

    ``lose``: what it had done is lost; ``preempted``: its start-up counts as overhead.
    """
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    if instance["state"] == PLACED:
        if q >= 0:
            request_ledger.left(tb, q, row, at)
        host_slots.remove(tb, whole(instance["host"]), row)
        views.control(tb)["placed_now"] -= 1
        instance_ledger.account_for(tb, row, at, lose, preempted)
        instance["host"] = -1
        instance["since"] = at
    else:
        instance_ledger.end_leaving(tb, row, at, lose, preempted)
    instance["state"] = VACANT


@entry
def forget(tb: State, row: int, now: float) -> None:
    """A PLACED instance was not bound after all: it is VACANT, as if it had waited on."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        live = views.requests(tb)[q]["live"]
        request_ledger.left(tb, q, row, now)
        if not request_ledger.begins_pending(views.rules(tb)["accounting"], whole(instance["starts"])):
            request_ledger.pays(tb, q, 0.0, now - instance["since"])  # its start-up had counted as running
            window_events.take_back_startup(tb, q, now - instance["since"], whole(live), now)
    host_slots.remove(tb, whole(instance["host"]), row)
    views.control(tb)["placed_now"] -= 1
    instance["starts"] -= 1
    instance["host"] = -1
    instance["state"] = VACANT
    instance["since"] = now


@entry
def put_back(tb: State, row: int, now: float) -> None:
    """A LEAVING instance stays after all, on the host it is on."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    h = whole(instance["host"])
    instance["state"] = PLACED
    disruption_limits.take_back(tb, row, now < instance["since"] + instance["startup"])
    instance["preemptions"] -= 1
    views.control(tb)["preemptions"] -= 1
    views.control(tb)["placed_now"] += 1
    host_slots.add(tb, h, row, whole(instance["kind"]), instance["since"], instance["since"])
    if q >= 0:
        request_ledger.bring_up_to(tb, q, now)
        request_ledger.goes_on_leaving(tb, q, row, now, whole(-1))
        ready = now >= instance["since"] + instance["startup"]
        request_ledger.link(tb, q, row)
        request_ledger.change(tb, q, whole(1), whole(instance["starts"]), ready, True, whole(1), whole(0))
    write_slot(tb, row)


@entry
def disrupt(tb: State, row: int, now: float) -> None:
    """A PLACED instance is told to leave so that it moves to another host; it goes on where it is until it is gone."""
    disruption_limits.begin(tb, row, now)


@entry
def stays(tb: State, row: int, now: float) -> None:
    """A PLACED instance that was told to leave by :func:`disrupt` stays after all."""
    instance = views.instances(tb)[row]
    disruption_limits.take_back(tb, row, now < instance["since"] + instance["startup"])


@entry
def change_kind(tb: State, row: int, kind: int) -> None:
    """A PLACED instance asks for something else now, or is of another class; it stays where it is."""
    instance = views.instances(tb)[row]
    h = whole(instance["host"])
    slot = views.slots(tb)[h, host_slots.slot_of(tb, h, row)]
    placed_by, put_at = slot["batch"], slot["put_at"]
    host_slots.remove(tb, h, row)
    instance["kind"] = kind
    window_events.begin(tb, row, max(views.control(tb)["now"], instance["since"]))
    host_slots.add(tb, h, row, kind, instance["since"], instance["since"])
    slot = views.slots(tb)[h, views.hosts(tb)[h]["count"] - 1]
    slot["batch"], slot["put_at"] = placed_by, put_at
    write_slot(tb, row)


@entry
def weigh_queue(tb: State) -> None:
    """Service classes changed: what waits is sorted again by the metrics that follow; O(n log n)."""
    control = views.control(tb)
    waiting_queue.weigh_entries(tb, views.queue(tb), whole(control["queue"]))
    waiting_queue.weigh_entries(tb, views.incoming(tb), whole(control["incoming"]))
    waiting_queue.sort_entries(tb, views.queue(tb), control["queue"])


@entry
def depart(tb: State, row: int, now: float, completed: bool) -> None:
    """A VACANT instance is live no more: scaled down, or completed; its request keeps its history."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    window_events.book(tb, row, now)
    instance["state"] = REMOVED
    instance["since"] = now
    disruption_limits.over(tb, row, now)
    window_events.end(tb, row, now)
    instance_ledger.note_life(tb, row, now)
    if q >= 0:
        request_ledger.departed(tb, q, now)
    if completed:
        views.control(tb)["completed"] += 1


@entry
def excuse(tb: State, row: int, now: float) -> None:
    """A VACANT instance is on no host for a reason that is not the cluster's: from now on its time counts as running.

    Of a request it counts as one that runs, so that its siblings are neither idle nor told to do its part. If it
    recovers from a disruption, that has ended: what it lacks now would protect the others for as long as it likes.
    """
    window_events.book(tb, row, now)
    disruption_limits.over(tb, row, now)
    instance = views.instances(tb)[row]
    instance["state"] = EXCUSED
    instance["since"] = now
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.bring_up_to(tb, q, now)
        request_ledger.change(tb, q, whole(1), whole(0), True, True, whole(1), whole(0))


@entry
def charge(tb: State, row: int, now: float) -> None:
    """An EXCUSED instance is VACANT again, and its time counts as waiting."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.bring_up_to(tb, q, now)
        request_ledger.change(tb, q, whole(-1), whole(0), True, True, whole(-1), whole(0))
    window_events.book(tb, row, now)
    instance["running"] += now - instance["since"]
    instance["since"] = now
    instance["state"] = VACANT
    window_events.settled(tb, row)


@entry
def give_back(tb: State, row: int, work: float) -> None:
    """Of what an instance's stop discarded, so many seconds were not its work: they count as running again."""
    instance = views.instances(tb)[row]
    instance["discarded"] -= work
    instance["running"] += work
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request = views.requests(tb)[q]
        request_ledger.gets_back(tb, q, request["overhead"], request["received"] + work)


@entry
def bring_up_to(tb: State, q: int, now: float) -> None:
    """Carry a request's sums forward to ``now``."""
    request_ledger.bring_up_to(tb, q, now)


@entry
def weigh(tb: State, q: int, now: float) -> float:
    """Slack of a request's waiting instances at ``now``, seconds: were one preempted or waits on."""
    return request_ledger.weigh(tb, q, now, whole(0), 0.0)
