"""One cycle of a pass: whose turn it is, which host the instance finds, and what is done about it."""

from __future__ import annotations

from slacktide.kernels.drive import gang, instance_ledger
from slacktide.kernels.feasible import affinity, disruption_budgets, pod_groups
from slacktide.kernels.memo import hopeless_kinds, infeasibility_memo, lesser_demands, standstill
from slacktide.kernels.place import companions, nominations, search, search_free, search_with_rules, victims
from slacktide.kernels.policies import in_force, pieces
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.queue import request_heap
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.buffer_capacity import FINISHED, MORE_ACTS, lacking
from slacktide.kernels.tables.log_records import BEGUN, HELD, PREEMPTED
from slacktide.kernels.tables.schema import GONE, NOBODY, OPEN, RECORD_DECISIONS, RECORD_TURNS, SERVED, Records, State


@kernel
def find_host(tb: State, entry: Records, q_j: float) -> int:
    """The host for a waiting instance that stands so (:func:`.in_force.standing`), or -1 with the failure noted."""
    k = whole(entry["kind"])
    views.control(tb)["order_mattered"] = 0
    views.control(tb)["seeking"] = views.kinds(tb)[k]["cls"]
    in_force.note_look(tb, whole(views.kinds(tb)[k]["cls"]))
    if affinity.involved(tb, k):
        return find_with_rules(tb, k, q_j)
    position = infeasibility_memo.known_since(tb, k, q_j)
    if position >= 0 and not search.can_still_wait(tb, k, q_j):
        search.bring_metrics_up_to_date(tb)
        position = infeasibility_memo.known_since(tb, k, q_j)  # unless the log could not hold it all
    if position >= 0:
        host = search.look_at_changes(tb, k, q_j, position)
    elif views.rules(tb)["relaxed"] < 1.0:
        host = search.look_at_random(tb, k, q_j, entry["row"])
    else:
        host = search.look_everywhere(tb, k, q_j)
    if host < 0:
        infeasibility_memo.note_failure(tb, entry, q_j, position)
    return host


@kernel
def find_with_rules(tb: State, k: int, q_j: float) -> int:
    """As :func:`find_host`, for a kind with rules or preferences."""
    if infeasibility_memo.fails_again(tb, k, q_j):
        return whole(-1)
    host = search_with_rules.find(tb, k, q_j)
    if host < 0:
        infeasibility_memo.note_in_pass(tb, k, q_j)
    return host


@kernel
def list_victims(tb: State, h: int, number: int) -> int:
    """Rows of the chosen victims on host ``h``, then of their companions on others, into ``victims``; how many."""
    control = views.control(tb)
    first = control["victims"]
    for v in range(number):
        views.victims(tb)[first + v] = views.slots(tb)[h, views.taken(tb)[v]]["row"]
    if number == 0:
        return whole(0)
    for c in range(control["companions"]):
        views.victims(tb)[first + number + c] = views.companions(tb)[c]
    return number + control["companions"]


@kernel
def evict(tb: State, entries: Records, number: int, by: int) -> None:
    """Preempt the ``number`` of victims that are listed for instance ``by``; O(victims * log)."""
    control = views.control(tb)
    now = control["now"]
    first = control["victims"]
    for v in range(number):
        row = whole(views.victims(tb)[first + v])
        h = whole(views.instances(tb)[row]["host"])
        slot = views.slots(tb)[h, companions.slot_at(tb, row)]
        lost = request_ledger.metric_of(tb, slot, now) - request_ledger.slot_shift(tb, slot)
        instance_ledger.record(tb, PREEMPTED, row, h, by, lost)
    for v in range(number):
        row = whole(views.victims(tb)[first + v])
        instance_ledger.stop(tb, row, now, instance_ledger.YES)
        request_heap.reorder(tb, entries, request_ledger.decider_of(tb, row))
    control["pass_preempted"] += number


@kernel
def victims_for(tb: State, row: int, h: int, q_j: float) -> int:
    """Victims for instance ``row`` on the host found for it into ``taken``, their number; O(instances), and where some
    may be reprieved O(victims^2 * rules)."""
    number = whole(chosen_victims(tb, row, h, q_j))
    if number > 1 and views.rules(tb)["reprieve"]:
        number = whole(search_with_rules.reprieve(tb, h, whole(views.instances(tb)[row]["kind"]), number))
    return number


@kernel
def chosen_victims(tb: State, row: int, h: int, q_j: float) -> int:
    """As :func:`victims_for`, before anybody is reprieved; O(instances).

    Where requests within a tolerance count as one, the choice may have been made for
    the first of them.
    """
    k = whole(views.instances(tb)[row]["kind"])
    control, kind = views.control(tb), views.kinds(tb)[k]
    q_j = in_force.standing(tb, row, k, q_j)
    if affinity.involved(tb, k):
        control["operations"] -= 1
        affinity.prepare(tb, k)
        return whole(search_with_rules.choose_either(tb, h, k, q_j, control["now"]))
    number = whole(victims.choose(tb, h, kind["shape"], kind["cls"], q_j, control["now"]))
    control["operations"] -= 1  # the choice was counted when it was made
    if number < 0:
        at = views.shared_of_pair(tb)[kind["pair"]]
        first = views.shared(tb)[max(at, 0)]["reference"]
        number = whole(victims.choose(tb, h, kind["shape"], kind["cls"], min(first, q_j), control["now"]))
    return number


@kernel
def place(tb: State, entries: Records, at: int, h: int, q_j: float, may_preempt: bool) -> None:
    """Carry out a decision: preempt on host ``h`` what the instance needs and start it there."""
    entry = entries[at]
    control = views.control(tb)
    now = control["now"]
    number = whole(0)
    if may_preempt:
        number = victims_for(tb, whole(entry["row"]), h, q_j)
        if number < 0:
            return
        number = whole(list_victims(tb, h, number))
    if views.rules(tb)["record"] & RECORD_DECISIONS:
        decision = views.decisions(tb)[control["decisions"]]
        decision["row"] = entry["row"]
        decision["time"] = now
        decision["metric"] = q_j - request_ledger.shift_of(tb, whole(entry["row"]))
        decision["batch"] = control["batch"] - 1
        decision["host"] = h
        decision["victims"] = number
        decision["first"] = control["victims"]
        control["decisions"] += 1
    if number > 0:
        evict(tb, entries, number, entry["row"])
        if views.rules(tb)["record"] & RECORD_DECISIONS:
            control["victims"] += number
    instance_ledger.start(tb, entry["row"], h, now)
    instance_ledger.record(tb, BEGUN, entry["row"], h, NOBODY, q_j - request_ledger.shift_of(tb, whole(entry["row"])))
    control["pass_placed"] += 1
    entry["done"] = GONE
    request_heap.reorder(tb, entries, whole(entry["request"]))


@kernel
def prunable(tb: State, entry: Records, last: int) -> bool:
    """Whether it asks for at least as much as the kind ``last`` that failed, with no looser constraints."""
    if last < 0 or not views.rules(tb)["pruning"]:
        return False
    if affinity.involved(tb, whole(last)):
        return False
    return lesser_demands.asks_no_less(tb, views.kinds(tb)[last], views.kinds(tb)[entry["kind"]])


@kernel
def find_in_phase(tb: State, entry: Records, q_j: float) -> int:
    """The host for a waiting instance by the rules of the present phase, or -1."""
    if views.control(tb)["phase"] == 2:
        k = whole(entry["kind"])
        views.control(tb)["seeking"] = views.kinds(tb)[k]["cls"]
        return search_with_rules.find_free(tb, k) if affinity.involved(tb, k) else search_free.find_free(tb, k)
    nominated = whole(nominations.first_choice(tb, whole(entry["row"])))
    if nominated >= 0:
        return nominated
    if prunable(tb, entry, views.control(tb)["failed"]):
        return whole(-1)
    return find_host(tb, entry, in_force.standing(tb, whole(entry["row"]), whole(entry["kind"]), q_j))


@kernel
def has_last_resort(tb: State, entry: Records, q_j: float) -> bool:
    """Whether one that found no host looks again, as if nothing protected less important ones; O(1).

    Only on a cluster, and only one that starts alone and may preempt: what was found before in this pass counts no more
    afterwards.
    """
    control = views.control(tb)
    if not views.rules(tb)["live"] or control["phase"] != 1 or control["gang"] >= 0 or control["asking"] >= 0:
        return False
    cls = whole(views.kinds(tb)[entry["kind"]]["cls"])
    if views.classes(tb)[cls]["beyond"] == 0 or not disruption_budgets.any_protection(tb):
        return False
    return not in_force.can_still_wait(tb, cls, q_j)


@kernel
def find_at_last(tb: State, entry: Records, q_j: float) -> int:
    """As :func:`find_host`, where less important ones are not protected, until :func:`protect_again`."""
    control, ours = views.control(tb), views.classes(tb)[views.kinds(tb)[entry["kind"]]["cls"]]
    control["beyond"], control["beyond_rank"] = ours["beyond"], ours["rank"]
    pod_groups.shake(tb)
    return whole(find_host(tb, entry, q_j))


@kernel
def protect_again(tb: State) -> None:
    """Whoever was not protected for the sake of one is so again; O(1)."""
    views.control(tb)["beyond"] = 0
    pod_groups.shake(tb)


@kernel
def tell_held(tb: State, entry: Records, q_j: float) -> None:
    """An event where it begins to wait in vain; each further turn would say the same, and be most of a run's events.

    Whoever needs these, too, asks for ``RECORD_TURNS``; O(1).
    """
    if entry["told"] == 0 or views.rules(tb)["record"] & RECORD_TURNS:
        views.control(tb)["untold"] -= entry["told"] == 0
        entry["told"] = 1
        told = q_j - request_ledger.shift_of(tb, whole(entry["row"]))
        instance_ledger.record(tb, HELD, entry["row"], NOBODY, NOBODY, told)


@kernel
def serve(tb: State, entries: Records, at: int) -> None:
    """The entry's turn: a host is found for it, or it is held."""
    control = views.control(tb)
    entry = entries[at]
    q_j = request_heap.metric_of_entry(tb, entry, control["now"])
    host = whole(-1)
    if hopeless_kinds.only_told(tb, entry):
        hopeless_kinds.take_turn(tb, entry)
        tell_held(tb, entry, q_j)
        return
    pod_groups.begins_to_ask(tb, whole(entry["row"]))
    hopeless_kinds.take_turn(tb, entry)
    if control["gang"] < 0 or control["gang_starts"]:
        host = whole(find_in_phase(tb, entry, q_j))
    stands = in_force.standing(tb, whole(entry["row"]), whole(entry["kind"]), q_j)
    if host < 0 and has_last_resort(tb, entry, stands):
        host = whole(find_at_last(tb, entry, stands))
    if host >= 0:
        place(tb, entries, at, host, q_j, control["phase"] == 1)
    else:
        if control["gang"] < 0 and control["asking"] < 0:
            control["failed"] = entry["kind"]
        told = stands if pieces.weigh(tb) else q_j
        standstill.note(tb, entry, told)
        hopeless_kinds.note(tb, entry, told)
        tell_held(tb, entry, q_j)
        if control["gang"] < 0:  # a gang takes nothing, or what its trial found: there no room was kept
            nominations.keep_room(tb, whole(entry["row"]))
    if control["beyond"] != 0:
        protect_again(tb)
    pod_groups.has_asked(tb)
    if control["gang"] >= 0 and entry["done"] == OPEN:
        entry["done"] = SERVED


@kernel
def pass_on(tb: State, entries: Records, at: int) -> None:
    """The turn goes from the entry to the next one."""
    q = whole(entries[at]["request"])
    if views.control(tb)["gang"] >= 0:
        return
    if q >= 0 and views.requests(tb)[q]["heap_at"] >= 0:
        request_heap.advance(tb, entries, q)
    else:
        views.control(tb)["at"] += 1


@kernel
def next_place(tb: State, entries: Records, count: int) -> int:
    """Position of the entry whose turn it is, or -1: all had theirs."""
    control = views.control(tb)
    if control["gang"] >= 0:
        at = whole(gang.next_member(tb, entries, whole(control["gang"]), whole(control["gang_at"]), count))
        control["gang_at"] = at
        if at >= 0:
            return at
        control["gang"] = NOBODY
    while control["at"] < control["order"] or control["request_heap"] > 0:
        over = hopeless_kinds.all_left(tb)
        if over and control["untold"] <= 0:
            request_heap.empty(tb)
            break
        if control["request_heap"] > 0 and (
            control["at"] >= control["order"]
            or request_heap.first_is_before(tb, entries[views.order(tb)[control["at"]]])
        ):
            at = whole(views.request_heap(tb)[0]["at"])
            if entries[at]["done"] == OPEN and not (over and entries[at]["told"]):
                return at
            request_heap.advance(tb, entries, whole(entries[at]["request"]))  # it had its turn with its pod group
            continue
        at = whole(views.order(tb)[control["at"]])
        has_turn = nominations.host_of(tb, whole(entries[at]["row"])) >= 0  # also in vain: room may be kept for it
        has_turn = has_turn or hopeless_kinds.only_told(tb, entries[at])
        if entries[at]["done"] == OPEN and (has_turn or not hopeless_kinds.passed_over(tb, entries[at])):
            return at
        control["at"] += 1
    return whole(-1)


@kernel
def try_gang(tb: State, entries: Records, who: int, count: int) -> int:
    """Whether a gang can start, into ``gang_starts``; what must grow, or FINISHED.

    It can where as many of those that wait in this round find a host, one after the other, as are missing. Of a pod
    group all are tried: more may start than must, and people are told how many would.
    """
    control = views.control(tb)
    control["gang_starts"] = 0
    control["gang_at"] = 0
    control["acts"] = 0
    needed = whole(gang.missing(tb, who))
    ahead = whole(gang.number_here(tb, entries, who, count))
    if ahead < needed:
        ahead = whole(0)
    at, found = whole(0), whole(0)
    code = FINISHED
    while code == FINISHED and ahead > 0 and (who & 1 or found + ahead >= needed):
        code = lacking(tb)
        at_most = views.slots(tb).shape[1] + control["whole_members"]
        if code == FINISHED and control["acts"] + at_most >= len(views.acts(tb)):
            code = MORE_ACTS
        if code == FINISHED:
            at = whole(gang.next_member(tb, entries, who, at, count))
            pod_groups.begins_to_ask(tb, whole(entries[at]["row"]))
            found += try_member(tb, entries[at])
            pod_groups.has_asked(tb)
            ahead -= 1
            at += 1
    possible = found >= needed and gang.holds(tb, who)
    gang.note_found(tb, who)
    gang.undo(tb, control["now"])
    control["gang_starts"] = possible
    return code


@kernel
def try_member(tb: State, entry: Records) -> bool:
    """Place an instance for the time of the trial; whether there is a host for it."""
    control = views.control(tb)
    q_j = request_heap.metric_of_entry(tb, entry, control["now"])
    h = whole(find_in_phase(tb, entry, q_j))
    if h < 0:
        return False
    number = whole(0)
    if control["phase"] == 1:
        number = victims_for(tb, whole(entry["row"]), h, q_j)
        if number < 0:
            return False
        number = whole(list_victims(tb, h, number))
    for v in range(number):
        row = whole(views.victims(tb)[control["victims"] + v])
        gang.take_off(tb, whole(views.instances(tb)[row]["host"]), row, control["now"])
    gang.put_on(tb, h, whole(entry["row"]), control["now"])
    return True
