"""Tables of a live cluster: hosts, classes, kinds, requests and instances come and go.

What happens often (an instance, a request, a kind) appends to arrays that have room
to spare. What changes how hosts are grouped or what is counted over them (a host, a
term, a mark that nobody asked about before) is noted, and carried out once before the
next pass by :meth:`Growing.settle`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.kernels.drive import apply_plan
from slacktide.kernels.feasible import host_slots
from slacktide.kernels.feasible.free_index import AMOUNTS, NOWHERE
from slacktide.kernels.tables import affinity_records, request_records, schema, window_records
from slacktide.kernels.tables.arrays import Presence
from slacktide.model import Hosts, Placement, Term
from slacktide.model.network import NO_ACCESS
from slacktide.state import affinity_tables, cluster, layout
from slacktide.state.empty_tables import empty_tables
from slacktide.state.growing_arrays import along, grow, lengthen, lengthen_along
from slacktide.state.host_groups import HostGroups
from slacktide.state.live_limits import LiveLimits
from slacktide.state.live_network import NOTHING, Further, LiveNetwork
from slacktide.state.service_classes import NEVER, ServiceClasses
from slacktide.state.spec import Spec
from slacktide.state.windows import FIRST_OUTAGES

FIRST = ("cpu", "memory", "pods")
"""Resources that every cluster has; the scores look at the first two."""

FEW_MARKS = 4096
"""Up to so many rows of marks none are dropped."""

SHARED = 16
"""So many times as many specs as there are kinds are known by their identity, at most."""


class Growing(ServiceClasses):
    """The arrays of a live cluster. Hosts, requests and rows are known by number here."""

    def __init__(self, config: Config, own: cluster.OwnCode | None = None) -> None:
        self.config = config
        self.resources: list[str] = list(FIRST)
        self.classes = []
        self.attributes: list[Mapping[str, str]] = []
        self.names: list[str] = []
        self.free_hosts: list[int] = []
        self.free_rows: list[int] = []
        self.free_requests: list[int] = []
        self.rows = self.requests = 0  # ever in use at once
        self.terms: dict[Term, int] = {Term(): 0}
        self.counters = affinity_tables.Counters()
        self._shapes: dict[tuple[tuple[int, ...], Further], int] = {}
        self._pairs: dict[tuple[Any, int], int] = {}
        self._alike: dict[tuple[Spec, int], int] = {}
        self._kinds: dict[Spec, int] = {}
        self._by_identity: dict[int, tuple[Spec, int]] = {}
        """Specs that were asked for, which are kept so that their identity stays theirs, and their kinds."""
        self._affinity = affinity_tables.AffinityRows()
        self._specs: list[Spec] = []  # of each kind
        self._carriers: dict[str, list[int]] = {}  # kinds by the marks that they carry
        self._carried_marks = 0  # rows of marks that kinds have
        self._counted = self._tallied = 0  # counters and tallies that are in the tables
        self._domains_known = 0  # topologies that are
        self.foreign_marks: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.tidied = 0  # kinds that were left when unused ones were last forgotten
        self._regroup = self._recount = self._rewrite = False
        self._resized = False  # what was found out about hosts may hold no more
        self.clock, self._reaches = 0.0, NEVER
        self._changed: dict[int, Mapping[str, str]] = {}  # hosts, and their attributes when they were last grouped
        self._groups = HostGroups()
        self._own_numbers = () if own is None else own.numbers
        self.tb = empty_tables(config, own, FIRST)
        self.limits = LiveLimits(self.tb)
        self.network = LiveNetwork(config)
        self.network.begin(self.tb)

    def _lengthen(self, name: str, needed: int) -> None:
        """Room for ``needed`` on the first axis, and to spare."""
        if len(self.tb[name]) < needed:
            lengthen(self.tb, name, max(64, needed + needed // 2))

    def serve(self, code: int) -> bool:
        """Serve what a pass stopped for; whether it must go on. Recorders grow: they are read after the pass."""
        return grow(self.tb, code)

    def ensure_capacity(self) -> None:
        """Make sure that time can go on, and one instance more be queued or placed, outside of a pass."""
        while self.serve(int(apply_plan.lacking_capacity(self.tb.state))):
            pass

    def ensure_room_for_outages(self, count: int) -> None:
        """Make sure that an account of so many outages can be entered beside what :meth:`ensure_capacity` sees to."""
        self._lengthen("outages", int(self.tb.control["outages"]) + count + FIRST_OUTAGES)

    def new_row(self) -> int:
        """A row for an instance, its record empty: it has no kind before a pod of it is known."""
        if self.free_rows:
            row = self.free_rows.pop()
        else:
            row = self.rows
            self.rows += 1
            for name in along("instances", Presence.ALWAYS, Presence.LIVE):
                self._lengthen(name, self.rows)
            if self.network.grants:
                self._lengthen("granted", self.rows)
        instance = self.tb["instances"][row : row + 1]
        instance[:] = np.zeros(1, schema.INSTANCE)
        instance["host"] = instance["first_host"] = instance["kind"] = -1
        self.tb["duration"][row] = np.inf
        self.tb["owner"][row] = self.tb["budget"][row] = self.tb["disruption_account"][row] = self.tb["links"][row] = -1
        self.tb["pod_group"][row] = self.tb["next_in_group"][row] = -1
        self.tb["guard"][row] = self.tb["disrupted_at"][row] = -np.inf
        self.tb["nominated"][row] = -1, 0
        self.tb["accounts"][row : row + 1] = np.zeros(1, window_records.ACCOUNT)
        return row

    def new_request(self) -> int:
        """A place for a request's ledger, empty."""
        if self.free_requests:
            q = self.free_requests.pop()
        else:
            q = self.requests
            self.requests += 1
            for name in along("requests", Presence.ALWAYS, Presence.LIVE):
                self._lengthen(name, self.requests)
            self._lengthen("request_heap", self.requests + 1)
        record = np.zeros(1, request_records.REQUEST)
        record["head"] = record["heap_at"] = -1
        record["weighed"] = -np.inf
        record["stirred"] = self.tb["requests"]["stirred"][q]  # it stands among the stirred once, whosever it was
        self.tb["requests"][q : q + 1] = record
        self.tb["request_accounts"][q : q + 1] = np.zeros(1, window_records.ACCOUNT)
        self.tb["stretches"][q : q + 1] = np.zeros(1, window_records.STRETCH)
        return q

    def resource(self, name: str) -> int:
        """The number of a resource, which all hosts have nothing of where it was not known."""
        if name not in self.resources:
            self.resources.append(name)
            lengthen_along(self.tb, "resources", len(self.resources), Presence.ALWAYS, Presence.NETWORK, at=-1)
            self.tb.put("unit", np.ones(len(self.resources)))
            self._shapes = {
                ((*demand, 0), (((*limit, 0) if limit else ()), access, application)): number
                for (demand, (limit, access, application)), number in self._shapes.items()
            }
            self._change_hosts()
        return self.resources.index(name)

    def amounts(self, named: Mapping[str, int]) -> NDArray[np.int64]:
        """Amounts of all resources, shape (resources,)."""
        for name in named:
            self.resource(name)
        return np.array([min(named.get(name, 0), int(layout.BEYOND)) for name in self.resources], np.int64)

    # -- hosts -----------------------------------------------------------------------------------------------------

    def new_host(self, name: str) -> int:
        """A place for a host, down and of no capacity."""
        if self.free_hosts:
            h = self.free_hosts.pop()
        else:
            h = len(self.names)
            self.names.append("")
            self.attributes.append({})
            self._add_hosts(h + 1)
        self.names[h] = name
        self.tb["hosts"]["came"][h] = self.tb.control["now"]
        self.tb["hosts"]["failures"][h] = self.tb["hosts"]["scarce"][h] = 0
        self.network.moved = self.network.used
        return h

    def _change_hosts(self) -> None:
        """Hosts are others than before, or what they have."""
        self._regroup = self._resized = True
        self.network.moved = self.network.used

    def _add_hosts(self, needed: int) -> None:
        """Room for ``needed`` hosts; those to spare are down."""
        have = len(self.tb["hosts"])
        if have >= needed:
            return
        count = needed + max(16, needed // 8)
        lengthen_along(self.tb, "hosts", count)
        self.tb.put("wakes", cluster.wakes(count, int(self.tb.rules["policy"])))
        if self.tb.rules["triage"]:
            lengthen_along(self.tb, "hosts", count, Presence.TRIAGE)
        self.network.lengthen(self.tb, count)
        self.tb["hosts"]["down"][have:] = 1
        self._regroup = self._resized = True

    def set_host(self, h: int, named: Mapping[str, int], attributes: Mapping[str, str], up: bool) -> None:
        """What a host has; its instances stay."""
        amounts = self.amounts(named)
        tb = self.tb
        if attributes == self.attributes[h] and (amounts == tb["capacity"][h]).all():
            self.set_up(h, up)  # which needs no new groups
            return
        self._changed.setdefault(h, self.attributes[h])
        self._resized |= bool((amounts != tb["capacity"][h]).any() or tb["hosts"]["down"][h] == up)
        tb["free"][h] += amounts - tb["capacity"][h]
        tb["capacity"][h] = amounts
        self.attributes[h] = attributes
        tb["attributes"][h] = cluster.numbers_of(self._own_numbers, attributes)
        tb["hosts"]["failures"][h] += not (up or tb["hosts"]["down"][h])
        tb["hosts"]["down"][h] = not up
        self._regroup = True
        self.network.moved = self.network.used

    def set_up(self, h: int, up: bool) -> None:
        """Whether a host takes instances; a change counts among its changes."""
        if bool(self.tb["hosts"]["down"][h]) != up:
            return
        self.tb["hosts"]["down"][h] = not up
        self.tb["hosts"]["failures"][h] += not up
        apply_plan.host_changed(self.tb.state, h)

    def remove_host(self, h: int) -> None:
        """Forget a host on which nothing is any more."""
        self.set_host(h, {}, {}, False)
        self.network.forget_host(self.names[h])
        self.names[h] = ""
        self.free_hosts.append(h)

    def take_room(self, h: int, amounts: NDArray[np.int64], sign: int) -> None:
        """Amounts that somebody else takes (1) on a host, or gives back (-1)."""
        self.tb["free"][h] -= sign * amounts
        apply_plan.host_changed(self.tb.state, h)

    def make_budgets(self, count: int) -> None:
        """Room for exactly as many budgets as there are; instances have none until they are told."""
        have = len(self.tb["budgets"])
        if count > have:
            budgets = np.zeros(count, affinity_records.BUDGET)
            budgets[:have] = self.tb["budgets"]
            self.tb.put("budgets", budgets)

    def make_pod_groups(self, count: int) -> None:
        """Room for so many pod groups; new ones ask for nothing."""
        self._lengthen("pod_groups", count)

    # -- kinds -----------------------------------------------------------------------------------------------------

    def kind_of(self, spec: Spec) -> int:
        """The kind of instances that are as ``spec`` says, a new one where there was none."""
        same = self._by_identity.get(id(spec))
        if same is not None:  # which one is asked for each of its instances, and hashing hundreds of rules takes long
            return same[1]
        known = self._kinds.get(spec)
        if known is None:
            known = self._new_kind(spec)
        if len(self._by_identity) > SHARED * (len(self._specs) + SHARED):
            self._by_identity.clear()
        self._by_identity[id(spec)] = spec, known
        return known

    def _new_kind(self, spec: Spec) -> int:
        return self.add_kind(spec, self.class_number(spec.service))

    def add_kind(self, spec: Spec, cls: int) -> int:
        """A kind of instances that are as ``spec`` says, of a class that is known by number."""
        number = len(self._specs)
        shape = self._shape_of(spec)
        pair = self._pairs.setdefault((spec.demand, cls), len(self._pairs))
        plain = replace(spec, limit=(), access=NO_ACCESS, application="", spared=False, grace=0.0, bare=False)
        alike = self._alike.setdefault((plain, cls), number)
        have = len(self.tb["shared_of_pair"])
        if pair >= have:
            self._lengthen("shared_of_pair", pair + 1)
            self.tb["shared_of_pair"][have:] = -1
        self._lengthen("kinds", number + 1)
        kind = self.tb["kinds"][number : number + 1]
        kind[:] = np.zeros(1, schema.KIND)
        kind["shape"], kind["pair"], kind["cls"], kind["job"], kind["alike"] = shape, pair, cls, -1, alike
        kind["term"] = self._term_number(spec.term)
        kind["never"], kind["grace"], kind["bare"] = spec.never, spec.grace, spec.bare
        if number and self.tb["kinds"]["grace"][0] != spec.grace:
            self.tb.control["graces"] = 1
        kind["until"], kind["batch"], kind["no_room"] = -np.inf, -1, -1
        self._specs.append(spec)
        self._kinds[spec] = number
        self._add_affinity(number, spec.placement)
        return number

    def forget_kinds(self) -> None:
        """Forget all kinds, and what they ask about; :meth:`add_kind` enters again those that are used."""
        self._specs.clear()
        self._kinds.clear()
        self._by_identity.clear()
        self.tb.control["graces"] = 0
        self._shapes.clear()
        self._pairs.clear()
        self._alike.clear()
        self.terms = {Term(): 0}
        self.counters = affinity_tables.Counters()
        self._carriers.clear()
        self._affinity, self._carried_marks = affinity_tables.AffinityRows(), 0
        self.tb.put("kinds", np.zeros(0, schema.KIND))
        self.tb.put("demand", np.zeros((0, len(self.resources)), np.int64))
        self.network.forget_shapes(self.tb)
        self._regroup = self._resized = True

    @property
    def kinds(self) -> int:
        """How many kinds are known."""
        return len(self._specs)

    def _shape_of(self, spec: Spec) -> int:
        demand, further = self.amounts(dict(spec.demand)), NOTHING
        if self.network.used:
            limit = self.amounts(dict(spec.limit))
            demand = self.amounts(dict(spec.demand))  # a limit may have brought a resource
            limit = np.maximum(limit, demand)
            further = (tuple(limit.tolist()), spec.access, spec.application)
        key = tuple(demand.tolist()), further
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = len(self._shapes)
            self._lengthen("demand", shape + 1)
            self.tb["demand"][shape] = demand
            if self.network.used:
                bandwidth = dict(spec.demand).get(cluster.NETWORK, 0)
                self.network.add_shape(self.tb, shape, demand, bandwidth, further)
        return shape

    def _term_number(self, term: Term) -> int:
        if term not in self.terms:
            self.terms[term] = len(self.terms)
            self._regroup = True
        return self.terms[term]

    def _add_affinity(self, number: int, placement: Placement) -> None:
        """Enter what a kind asks of instances near it."""
        before = len(self.counters.numbers)
        self.counters.note(placement)
        for preference in placement.preferences:
            if not preference.mark:
                self._term_number(preference.term)
        if len(self.counters.numbers) != before:
            self._recount = True  # marks of other kinds may be counted now
        for mark in placement.marks:
            self._carriers.setdefault(mark, []).append(number)
        self._enter_affinity(number, placement)

    def _enter_affinity(self, number: int, placement: Placement) -> None:
        for name, value in affinity_tables.add_kind(self._affinity, placement, self.counters, self.terms).items():
            self.tb["kinds"][name][number] = value
        self._carried_marks += int(self.tb["kinds"]["marks"][number])
        self._rewrite = True

    def _write_affinity(self) -> None:
        """Only what is new: of a kind that others' terms change again and again the rest is long. Rows of marks that
        were entered again are dropped once they are more than half."""
        marks = self._affinity.place("marks", 0)["marks_at"]
        if marks > 2 * self._carried_marks + FEW_MARKS:
            self._enter_all_affinity()
        for name, rows in self._affinity.arrays().items():
            begin = self._affinity.entered[name]
            self._lengthen(name, begin + len(rows))
            self.tb[name][begin : begin + len(rows)] = rows
            self._affinity.entered[name] += len(rows)
            getattr(self._affinity, name).clear()
        self._rewrite = False

    def spec_of(self, kind: int) -> Spec:
        """What instances of a kind are like."""
        return self._specs[kind]

    def settle(self) -> None:
        """Carry out what was put off: groups of hosts, and tallies; at most a few times a second in a busy cluster."""
        anew = self._regroup and self._group()
        if not anew and self._recount:
            self._count_more()
        if self._rewrite:
            self._write_affinity()
        if self.network.moved and not anew:
            self.network.settle(self.tb, self.hosts())
            self.forget_evaluations()
            host_slots.fill(self.tb.state)
        self._regroup = self._recount = self._resized = False
        self._changed.clear()

    def hosts(self) -> Hosts:
        """The hosts as the model knows them; those to spare are there, down, without a name."""
        count = len(self.tb["hosts"])
        spare = count - len(self.names)
        return Hosts(
            np.arange(count),
            (*self.names, *[""] * spare),
            self.tb["capacity"].astype(np.float64),
            (*self.attributes, *[{}] * spare),
            tuple(self.resources),
        )

    def _group(self) -> bool:
        """Group hosts by what they have and which terms they satisfy; whether all that follows from it is made anew.

        A term by which equal hosts stay equal needs a row in ``allowed`` and nothing else, nor does a label that
        nobody asks for: all that was found out about hosts holds on.
        """
        tb = self.tb
        before, known = tb["hosts"]["group"], tb["allowed"]
        grouping = self._groups.regroup(tb["capacity"], before, self.terms, self.attributes, self._changed)
        allowed = grouping.allowed[: len(known)]
        same = np.array_equal(before, grouping.group) and np.array_equal(known, allowed)
        if same and not self._resized and not self._changes_domains():
            tb.put("allowed", grouping.allowed)
            return False
        self._group_anew(grouping)
        return True

    def _changes_domains(self) -> bool:
        """Whether a host that changed is in another domain of a topology, or may be."""
        return any(
            before.get(one.key) != self.attributes[h].get(one.key)
            or one.within.holds(before) != one.within.holds(self.attributes[h])
            for h, before in self._changed.items()
            for one in self.counters.topologies
        )

    def _group_anew(self, grouping: layout.Grouping) -> None:
        tb = self.tb
        tb["hosts"]["group"], tb["hosts"]["leaf"] = grouping.group, grouping.leaf
        for name in ("allowed", "groups", "leaf_host"):
            tb.put(name, getattr(grouping, name))
        capacity = tb["capacity"]
        with np.errstate(divide="ignore"):
            tb.put("scale", np.where(capacity[:, :2] > 0, 2.0**40 / capacity[:, :2], 0.0))
        width = AMOUNTS + capacity.shape[1]
        tb.put("tree", np.full((grouping.nodes, width), NOWHERE, np.int64))
        tb.rules["stride"] = cluster.coprime_stride(max(1, len(capacity)))
        self.forget_evaluations()
        self._count_anew()
        if self.network.moved:
            self.network.settle(tb, self.hosts())
        host_slots.fill(tb.state)

    def forget_evaluations(self) -> None:
        """Whatever was found out about hosts no longer holds."""
        tb = self.tb
        hosts, resources = tb["capacity"].shape
        levels, triage = int(tb.rules["levels"]), bool(tb.rules["triage"])
        shared = cluster.shared_arrays(hosts, max(1, len(self._pairs)), levels, resources, triage)
        contest = cluster.contest_arrays(hosts, len(tb["tree"]), levels, resources)
        for name, array in (shared | contest).items():
            tb.put(name, array)
        tb["kinds"]["until"], tb["kinds"]["batch"], tb["kinds"]["no_room"] = -np.inf, -1, -1
        tb["requests"]["weighed"] = -np.inf

    def _count_anew(self) -> None:
        """Domains and tallies, from what is on the hosts, and all that kinds ask of neighbours."""
        self._enter_all_affinity()
        self._counted = self._tallied = 0
        self.tb.put("domain", np.zeros((0, len(self.tb["hosts"])), np.int32))
        for name in ("counters", "tallies"):
            self.tb.put(name, self.tb[name][:0])
        self._domains_known = 0
        self._count_more()
        self._write_affinity()

    def _enter_all_affinity(self) -> None:
        """What all kinds ask for, without rows that no kind has any more."""
        self._affinity, self._carried_marks = affinity_tables.AffinityRows(), 0
        for name in affinity_tables.RECORDS:
            self.tb.put(name, self.tb[name][:0])
        for number, spec in enumerate(self._specs):
            self._enter_affinity(number, spec.placement)

    def _count_more(self) -> None:
        """Domains and tallies of counters that are not in the tables yet."""
        tb, known = self.tb, self._counted
        self._enter_domains()
        table, ends = affinity_tables.counter_rows(self.counters, tb["domain"], known, self._tallied)
        self._lengthen("counters", known + len(table))
        self._lengthen("tallies", ends)
        tb["counters"][known : known + len(table)] = table
        tb["tallies"][self._tallied : ends] = 0
        carried = self._carried(known)
        affinity_tables.count_placed(carried, tb["instances"][: self.rows], tb["domain"], tb["counters"], tb["tallies"])
        self._counted, self._tallied = known + len(table), ends
        for h, marks in self.foreign_marks.values():
            self._count_marks(h, marks, 1, known)

    def _enter_domains(self) -> None:
        """The domains of hosts in topologies that nobody asked about before."""
        topologies = tuple(islice(self.counters.topologies, self._domains_known, None))
        if not topologies:
            return
        hosts, begin = self.hosts(), self._domains_known
        self._domains_known += len(topologies)
        self._lengthen("domain", self._domains_known)
        rows = self.tb["domain"][begin : self._domains_known]
        rows[:] = -1
        for row, topology in zip(rows, topologies, strict=True):
            row[: len(self.names)] = affinity_tables.domains(topology, hosts)[: len(self.names)]

    def _carried(self, known: int) -> dict[int, list[int]]:
        """By kind, the counters from number ``known`` on that count it; older kinds' records get these as well."""
        marks = {mark for mark, _ in islice(self.counters.numbers, known, None)}
        kinds = sorted({kind for mark in marks for kind in self._carriers.get(mark, ())})
        found = {}
        for kind in kinds:
            counters = self.counters.of_marks(self._specs[kind].placement)
            if len(counters) != self.tb["kinds"]["marks"][kind]:
                self._rewrite = True
                self._carried_marks += len(counters) - int(self.tb["kinds"]["marks"][kind])
                for name, value in affinity_tables.add_marks(self._affinity, counters).items():
                    self.tb["kinds"][name][kind] = value
            found[kind] = counters[bisect_left(counters, known) :]
        return found

    def count_marks(self, h: int, marks: tuple[str, ...], by: int) -> None:
        """Count an instance of somebody else with these marks on a host, or no more (-1)."""
        self._count_marks(h, marks, by, 0)

    def _count_marks(self, h: int, marks: tuple[str, ...], by: int, known: int) -> None:
        """By the counters from number ``known`` on; on a host that is new all of them are counted with its domains."""
        table, domain, tallies = self.tb["counters"], self.tb["domain"], self.tb["tallies"]
        if h >= domain.shape[1]:
            return
        for c in {number for mark in marks for number in self.counters.by_mark.get(mark, [])}:
            if known <= c < self._counted and (d := int(domain[table[c]["topology"], h])) >= 0:
                tallies[table[c]["first"] + d] += by
                table[c]["total"] += by
