"""The delay that users see: of every placement of a run, from its events (docs/delay-aware.md).

The same formulas hold for every policy, whatever it thought of when it chose a host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.config import DelaySettings
from slacktide.kernels.tables import log_records
from slacktide.metrics.columns import class_codes
from slacktide.model import Access, Hosts, ServiceClass, Workload, arrow
from slacktide.state.network_tables import Geography

SEGMENTS = 1 << 21
"""Spans of constant residual CPU worked on at a time."""
QUANTILES = (0.95, 0.99)
NETWORK = "network"

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def placement_delays(
    events: Mapping[str, NDArray[Any]], workload: Workload, hosts: Hosts, delay: DelaySettings, end: float
) -> pa.Table:
    """A row for each time that an instance was on a host, in order of beginning: what its users saw meanwhile.

    ``events`` are the columns of a run's events (``time`` in seconds, ``kind``, ``row``, ``host``; as
    ``RunResult.events`` has them), ``hosts`` know their network, ``end`` is the run's, in seconds. Columns:

    ``request`` (id of the instance's row), ``class``, ``host``, ``begin``, ``end`` (s)
    ``network``     s: ``sum over logins u of share_u * RTT(host, u) / 2`` (0 for users on the host itself) plus
                    ``delay.transfer * data / demand of resource network``
    ``processing``  s: ``delay.processing * data / A`` on average over the time on the host, where at every instant
                    ``A = max(c, min(phi * r, l))`` (equation 9) of CPU, with ``r`` the host's capacity less the demands
                    of the other instances on it: what is left before its own demand is taken
    ``delay``       s: network + processing
    ``image``       s: to fetch the image, where it was absent; paid once, before it runs

    The time on a host includes start-up, whose length events do not tell. Placements that took no time are left out.
    O(n log n) and the spans between events of a host, for each instance on it.
    """
    row, host, begin, until = _stays(events, end)
    geography = Geography(hosts)
    access = np.zeros(len(row), np.int64) if workload.access is None else workload.access[row].astype(np.int64)
    data = np.array([one.data for one in workload.accesses] or [0.0])[access]
    image = _fetching(row, host, access, workload.accesses, geography, hosts, delay.keep_images)
    processing = delay.processing * data * _mean_inverse(row, host, begin, until, workload, hosts, delay.phi)
    network = _round_trips(access, host, workload.accesses, geography) / 2.0
    if NETWORK in workload.resources:
        bandwidth = workload.demand[row, workload.resources.index(NETWORK)]
        network += np.divide(delay.transfer * data, bandwidth, out=np.zeros(len(row)), where=bandwidth > 0.0)
    table = {
        "request": workload.ids[row],
        "class": np.array([one.name for one in workload.classes])[workload.service_class[row]],
        "host": np.array(hosts.names)[host],
        "begin": begin,
        "end": until,
        "network": network,
        "processing": processing,
        "delay": network + processing,
        "image": image,
    }
    return arrow.table({name: values[until > begin] for name, values in table.items()})


def user_delay(delays: pa.Table, classes: Sequence[ServiceClass]) -> pa.Table:
    """What users saw per class and in all (last row, class ``all``), of the table of :func:`placement_delays`.

    Columns ``class``, ``placements``, ``seconds`` (on hosts); ``mean``, ``p95`` and ``p99`` of ``delay`` and the means
    ``network`` and ``processing`` (s), a placement's weight its time on the host: ``mean = sum(w d) / sum(w)``, and
    the q-quantile is the smallest delay such that placements of at most this delay have a share q of all time;
    ``image``, the mean over placements (s). Null where there are none.
    """
    code = class_codes(delays, classes)
    names = ("begin", "end", "network", "processing", "delay", "image")
    columns = {name: arrow.as_numpy(delays[name]) for name in names}
    columns["seconds"] = columns["end"] - columns["begin"]
    found = [_of({name: values[code == one] for name, values in columns.items()}) for one in range(len(classes))]
    found.append(_of(columns))
    names = ("mean", "p95", "p99", "network", "processing", "image")
    return arrow.table(
        {
            "class": [*(one.name for one in classes), "all"],
            "placements": np.array([one["placements"] for one in found], np.int64),
            "seconds": np.array([one["seconds"] for one in found], np.float64),
            **{name: arrow.nullable(np.array([one[name] for one in found], np.float64)) for name in names},
        }
    )


def _of(columns: Mapping[str, Floats]) -> dict[str, float]:
    weight = columns["seconds"]
    said = {"placements": float(len(weight)), "seconds": float(weight.sum())}
    if not len(weight):
        return said | dict.fromkeys(("mean", "p95", "p99", "network", "processing", "image"), float("nan"))
    order = np.argsort(columns["delay"], kind="stable")
    cumulated = np.cumsum(weight[order])
    for share in QUANTILES:
        place = min(int(np.searchsorted(cumulated, share * cumulated[-1])), len(order) - 1)
        said[f"p{share * 100:.0f}"] = float(columns["delay"][order[place]])
    said["mean"] = float(np.average(columns["delay"], weights=weight))
    for name in ("network", "processing"):
        said[name] = float(np.average(columns[name], weights=weight))
    return said | {"image": float(columns["image"].mean())}


def _stays(events: Mapping[str, NDArray[Any]], end: float) -> tuple[Integers, Integers, Floats, Floats]:
    """Row, host, begin and end of every time on a host, in order of beginning; who is still there stays to ``end``."""
    kind, row = np.asarray(events["kind"]), np.asarray(events["row"])
    ends = [log_records.PREEMPTED, log_records.COMPLETED, log_records.EVICTED, log_records.DROPPED]
    begins = [log_records.BEGUN, log_records.MOVED]  # who moves ends one stay by beginning another
    chosen = np.flatnonzero(np.isin(kind, [*begins, *ends]) & (row >= 0))
    order = chosen[np.argsort(row[chosen], kind="stable")]
    rows, begun, time = row[order], np.isin(kind[order], begins), np.asarray(events["time"])[order]
    ended = np.full(len(order), end)
    if len(order):
        same = rows[1:] == rows[:-1]
        ended[:-1][same] = time[1:][same]
    first = np.flatnonzero(begun)
    first = first[np.argsort(order[first], kind="stable")]
    host = np.asarray(events["host"])[order[first]]
    return rows[first].astype(np.int64), host.astype(np.int64), time[first], ended[first]


def _round_trips(access: Integers, host: Integers, accesses: Sequence[Access], geography: Geography) -> Floats:
    """By placement the mean round-trip time to the users, s: 0 to those on the host itself."""
    total = np.zeros(len(access))
    place = geography.place[host]
    for number, rows in _groups(access):
        for name, share in accesses[number].logins if accesses else ():
            away = geography.rtt[place[rows], geography.place_of(name)]
            total[rows] += share * np.where(host[rows] == geography.hosts.get(name, -1), 0.0, away)
    return total


def _groups(values: Integers) -> Iterator[tuple[int, Integers]]:
    """Each distinct value and where it occurs."""
    order = np.argsort(values, kind="stable")
    found, first = np.unique(values[order], return_index=True)
    edges = [*first.tolist(), len(order)]
    for number, value in enumerate(found.tolist()):
        yield value, order[edges[number] : edges[number + 1]]


def _fetching(
    row: Integers,
    host: Integers,
    access: Integers,
    accesses: Sequence[Access],
    geography: Geography,
    hosts: Hosts,
    keep: bool,
) -> Floats:
    """By placement the seconds that its image took to come; ``keep``: an image stays on its host."""
    images = geography.network.images
    taken = np.zeros(len(row))
    if not images or not accesses:
        return taken
    number = {image.name: i for i, image in enumerate(images)}
    wanted = np.array([number.get(one.image, -1) for one in accesses])[access]
    there = np.zeros((len(images), len(hosts)), np.bool_)
    for i, image in enumerate(images):
        there[i, [geography.hosts[name] for name in image.present if name in geography.hosts]] = True
    comes = (wanted >= 0) & ~there[wanted, host]
    if keep:  # rows are in order of beginning: only the first of an image on a host waits for it
        rows = np.flatnonzero(comes)
        _, first = np.unique(np.stack([wanted[rows], host[rows]]), axis=1, return_index=True)
        comes[:] = False
        comes[rows[first]] = True
    seconds, size = np.array([[one.seconds, one.size] for one in images])[wanted].T
    bandwidth = np.zeros(len(hosts))
    if NETWORK in hosts.resources:
        bandwidth = hosts.capacity[:, hosts.resources.index(NETWORK)]
    with np.errstate(divide="ignore", invalid="ignore"):
        taken[comes] = np.where(size > 0.0, size / bandwidth[host], seconds)[comes]
    return taken


def _mean_inverse(
    row: Integers, host: Integers, begin: Floats, until: Floats, workload: Workload, hosts: Hosts, phi: float
) -> Floats:
    """By placement the mean of 1 / A over its time (equation 9 of CPU), 1 / CPU; 0 where it took no time."""
    cpu = workload.resources.index("cpu")
    demand = workload.demand[row, cpu]
    limit = demand if workload.limit is None else np.maximum(workload.limit[row, cpu], demand)
    count = len(row)
    # All beginnings and ends by host and time; the demands cumulated along a host say what is used until the next.
    time, where = np.concatenate([begin, until]), np.concatenate([host, host])
    change = np.concatenate([demand, -demand])
    order = np.lexsort((change, time, where))
    place = np.empty(2 * count, np.int64)
    place[order] = np.arange(2 * count)
    used = np.cumsum(change[order])
    at_host = where[order]
    before = np.concatenate([[0.0], used])[np.searchsorted(at_host, at_host)]  # what the hosts before have left over
    used, time = used - before, time[order]
    capacity = hosts.capacity[:, hosts.resources.index("cpu")][host]
    spans = np.maximum(place[count:] - place[:count], 0)
    total = np.zeros(count)
    edges = np.searchsorted(np.cumsum(spans), np.arange(SEGMENTS, spans.sum() + SEGMENTS, SEGMENTS))
    for low, high in zip([0, *(edges + 1)], [*(edges + 1), count], strict=True):
        mine = np.arange(low, min(high, count))
        if not len(mine):
            continue
        whose = np.repeat(mine, spans[mine])
        at = place[whose] + np.arange(len(whose)) - np.repeat(np.cumsum(spans[mine]) - spans[mine], spans[mine])
        residual = capacity[whose] - used[at] + demand[whose]
        granted = np.maximum(demand[whose], np.minimum(phi * residual, limit[whose]))
        weight = time[at + 1] - time[at]
        inverse = np.divide(weight, granted, out=np.zeros(len(whose)), where=granted > 0.0)
        total[mine] = np.bincount(whose - low, inverse, len(mine))
    return np.divide(total, until - begin, out=np.zeros(count), where=until > begin)
