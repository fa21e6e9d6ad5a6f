"""From a workload and hosts to numbers: amounts, shapes, kinds, and groups of hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.kernels import combinations
from slacktide.kernels.tables import schema
from slacktide.model import ServiceClass, Workload
from slacktide.model.resting import PART, let_go, room_beside

LARGEST = 2.0**50
BEYOND = 2.0**51  # more than any host has; larger demands stay infeasible without leaving 64 bits
GRID = 2.0**20


def units(capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole amounts per unit of each resource, shape (r,): powers of ten (docs/semantics.md, 'Amounts')."""
    peaks = capacity.max(axis=0, initial=0.0)
    return np.array([max(10.0**k for k in range(10) if k == 0 or peak * 10.0**k <= LARGEST) for peak in peaks])


def amounts(values: NDArray[np.float64], unit: NDArray[np.float64]) -> NDArray[np.int64]:
    """``values`` (n, r) as whole amounts, rounded half to even; they rest where ``values`` do."""
    whole = room_beside(values)(values.shape, np.int64)
    for part in parts(len(values)):  # 25 million rows need no copy of all
        whole[part] = np.rint(np.minimum(values[part] * unit, BEYOND))
        let_go(whole, values)
    return whole


def on_grid(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times as multiples of 2^-20 s, so that their sums are exact (docs/semantics.md, 'Times')."""
    if seconds.ndim == 0:
        return np.asarray(np.rint(seconds * GRID) / GRID)
    if all(_whole(seconds, part) for part in parts(len(seconds))):
        return seconds  # saves a copy of 25 million
    exact = room_beside(seconds)(seconds.shape, np.float64)
    for part in parts(len(seconds)):
        exact[part] = np.rint(seconds[part] * GRID) / GRID
        let_go(exact, seconds)
    return exact


def _whole(seconds: NDArray[np.float64], part: slice) -> bool:
    some = seconds[part]
    let_go(seconds)
    return bool((some == np.floor(some)).all())


def parts(count: int) -> Iterator[slice]:
    """Slices over so many rows."""
    for at in range(0, count, PART):
        yield slice(at, min(at + PART, count))


def distinct(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """First row of each distinct combination of whole numbers, and for every row which combination it is.

    Combinations are in the order of their numbers, the first column's first. Part by part: beside the codes it needs
    what is distinct, and no copy of the columns.
    """
    count = len(columns[0])
    code = room_beside(*columns)(count, np.int32)
    known = Combinations(len(columns))
    for part in parts(count):
        known.number(np.column_stack([column[part].astype(np.int64) for column in columns]), part.start, code[part])
        let_go(code, *columns)
    order = np.lexsort(known.seen[: known.count].T[::-1])
    place = np.empty(known.count, np.int32)
    place[order] = np.arange(known.count)
    for part in parts(count):
        code[part] = place[code[part]]
        let_go(code)
    return known.first[order], code


class Combinations:
    """Distinct rows of whole numbers in order of appearance, and the first row of each."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.seen, self.first = np.zeros((1 << 10, columns), np.int64), np.zeros(1 << 10, np.int64)
        self._places = np.zeros(1 << 11, np.int32)

    def number(self, rows: NDArray[np.int64], begin: int, code: NDArray[np.int32]) -> None:
        """Into ``code`` which one each of the next rows is; the first of them is row ``begin`` of all."""
        at, before = 0, self.count
        while at < len(rows):
            if self.count == len(self.seen):
                self._grow()
            at, self.count = combinations.number(rows, at, self.count, self.seen, self._places, code, self.first)
        self.first[before : self.count] += begin

    def _grow(self) -> None:
        self.seen, self.first = np.tile(self.seen, (2, 1)), np.tile(self.first, 2)
        self._places = np.zeros(2 * len(self._places), np.int32)
        combinations.enter(self.seen, self.count, self._places)


def _values(some: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """All distinct numbers, in order; what was found is put together as often as it has doubled."""
    found: list[NDArray[Any]] = []
    size = 0
    for part in some:
        found.append(np.unique(part))
        size += len(found[-1])
        if size > 2 * len(found[0]) + PART:
            found = [np.unique(np.concatenate(found))]
            size = len(found[0])
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Hosts of equal capacity that satisfy the same terms; arrays of Tables by their names there."""

    group: NDArray[np.int32]
    leaf: NDArray[np.int32]
    groups: schema.Records
    leaf_host: NDArray[np.int32]
    allowed: NDArray[np.bool_]
    nodes: int


def group_hosts(
    capacity: NDArray[np.int64], masks: NDArray[np.bool_], place: NDArray[np.int64] | None = None
) -> Grouping:
    """Groups, and the place of every host in its group's tree; O(h (r + terms)).

    With ``place``, ``capacity`` and ``masks`` are of some hosts only, and each host is like the one at its place
    there: O(those (r + terms) + h).
    """
    packed = np.packbits(masks, axis=0).T
    keys = np.ascontiguousarray(np.hstack([capacity.view(np.uint8).reshape(len(capacity), -1), packed]))
    _, first, group = np.unique(
        keys.view([("", keys.dtype, keys.shape[1])]).ravel(), return_index=True, return_inverse=True
    )
    if place is not None:
        group = group.reshape(-1)[place]
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(first))
    groups = np.zeros(len(first), schema.GROUP)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    widths = np.array([1 << int(size - 1).bit_length() for size in sizes], np.int64)
    groups["first"], groups["width"] = starts, widths
    groups["root"] = np.concatenate([[0], np.cumsum(2 * widths)[:-1]])
    leaf = np.empty(len(group), np.int32)
    leaf[order] = np.arange(len(order)) - np.repeat(starts, sizes) + np.repeat(widths, sizes)
    return Grouping(
        group=group.astype(np.int32),
        leaf=leaf,
        groups=groups,
        leaf_host=order.astype(np.int32),
        allowed=np.ascontiguousarray(masks[:, first]),
        nodes=int((2 * widths).sum()),
    )


@dataclass(frozen=True, slots=True)
class Kinds:
    """Distinct demands, pairs and kinds, and every request's kind; ``of_shape`` is a row of each shape."""

    demand: NDArray[np.int64]
    of_shape: NDArray[np.int64]
    kinds: schema.Records
    kind: NDArray[np.int32]
    pairs: int
    member: NDArray[np.int32]
    placement: NDArray[np.int64]


def anti_affine_jobs(workload: Workload) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For every row the job whose other instances it keeps away from, or -1; and the job it is of, where others of
    that may keep away from it, or -1. The second is empty where it would be equal to the first."""
    kept_away = workload.anti_affinity
    count = len(workload)
    known = _values(workload.job[part][kept_away[part]] for part in parts(count) if kept_away[part].any())
    if not len(known):
        return np.broadcast_to(np.int32(-1), count), np.zeros(0, np.int32)
    room = room_beside(workload.job)
    job, member, differ = room(count, np.int32), room(count, np.int32), False
    for part in parts(count):
        whose = workload.job[part]
        place = np.searchsorted(known, whose)
        place[place == len(known)] = 0
        member[part] = np.where(known[place] == whose, place, -1)
        job[part] = np.where(kept_away[part], member[part], -1)
        differ = differ or bool((member[part] != job[part]).any())
        let_go(workload.job, kept_away, job, member)
    return job, member if differ else np.zeros(0, np.int32)


def classify(workload: Workload, demand: NDArray[np.int64], further: Sequence[NDArray[np.int64]] = ()) -> Kinds:
    """Sort requests into kinds: equal demand, class, term, anti-affine job and placement; O(n log n).

    ``further`` are columns (n,) by which shapes are told apart besides the demand; pairs are of demand and class only.
    """
    first_of_shape, demanded = distinct(*demand.T)
    shape = demanded
    if further:
        first_of_shape, shape = distinct(demanded, *further)
    job_index, member = anti_affine_jobs(workload)
    first_of_pair, pair = distinct(demanded, workload.service_class)
    columns: list[NDArray[Any]] = [pair, workload.term, job_index]
    if workload.placement is not None:
        columns.append(workload.placement)
    if workload.grace is not None:
        columns.append(np.unique(on_grid(workload.grace), return_inverse=True)[1])
    first, kind = distinct(*columns)
    alike = np.arange(len(first))
    if further:
        of_row = kind
        first, kind = distinct(of_row, shape)
        _, at, group = np.unique(of_row[first], return_index=True, return_inverse=True)
        alike = at[group]
    placement = np.zeros(len(first), np.int64) if workload.placement is None else columns[3][first].astype(np.int64)
    kinds = np.zeros(len(first), schema.KIND)
    kinds["shape"], kinds["pair"], kinds["alike"] = shape[first], pair[first], alike
    kinds["cls"], kinds["term"], kinds["job"] = workload.service_class[first], workload.term[first], job_index[first]
    kinds["grace"] = 0.0 if workload.grace is None else on_grid(workload.grace)[first]
    kinds["until"] = -np.inf
    kinds["batch"] = kinds["no_room"] = -1
    return Kinds(demand[first_of_shape], first_of_shape, kinds, kind, len(first_of_pair), member, placement)


def class_table(classes: Sequence[ServiceClass], config: Config, alike: bool = False) -> schema.Records:
    """Service classes as the kernels read them.

    The settings' margin overrides each class's own; their ``alpha`` and ``min_running`` are of those that say nothing
    of it; ``alike`` gives all one rank. Where a class has a priority, ranks are numbered so that they say it too: only
    their order counts.
    """
    ranks = [1 if alike else service.rank for service in classes]
    if not alike and any(service.priority for service in classes):
        orders = sorted({(service.rank, -service.priority) for service in classes})
        ranks = [1 + orders.index((service.rank, -service.priority)) for service in classes]
    levels = sorted(set(ranks))
    margin, min_running = config.qos.margin, config.policy.min_running
    alpha, savable = (float(on_grid(np.array(one))) for one in (config.qos.alpha, config.policy.savable))
    table = np.zeros(len(classes), schema.CLASS)
    for i, service in enumerate(classes):
        phi = float(on_grid(np.array(service.margin if margin is None else margin)))
        least = None if service.limits is None else service.limits.min_running
        limit = service.limit_or(config.policy.overhead_limit, config.policy.added_overhead)
        one = table[i]
        one["slo"], one["margin"], one["own_margin"], one["limit"] = service.slo, phi, phi, limit
        one["alpha"] = float(on_grid(np.array(service.alpha_or(alpha))))
        one["late_below"] = alpha - one["alpha"] - savable
        one["slope"], one["whole"] = 1.0 / service.slo - 1.0, (1.0 / service.slo).is_integer()
        if config.kube.disruption_budgets == "last-resort" and service.before_budgets:
            one["beyond"] |= schema.BEYOND_BUDGETS
        if service.before_limits:
            one["beyond"] |= schema.BEYOND_LIMITS
        one["rank"], one["level"], one["named_rank"] = ranks[i], levels.index(ranks[i]), service.rank
        one["min_running"] = float(on_grid(np.array(min_running if least is None else least)))
    return table
