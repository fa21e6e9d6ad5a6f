"""Tables of requests with several instances: which need a ledger, and its state before anything happens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import log_records, request_records, schema
from slacktide.model import INDEPENDENT, Workload
from slacktide.state.layout import on_grid


def ledgers(workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Requests (of ``workload.requests``) that need a ledger, and for every row its ledger, or -1; O(n).

    A batch request always does. A service does where its instances are measured together,
    unless it has only one, and where it is scaled.
    """
    requests = workload.requests
    if requests is None or workload.request is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    sizes = np.bincount(workload.request, minlength=len(requests))
    needed = requests.batch | ((requests.approach != INDEPENDENT) & (sizes > 1))
    needed[requests.scale_request] = True
    chosen = np.flatnonzero(needed)
    if not len(chosen):
        return chosen, np.zeros(0, np.int32)
    ledger = np.full(len(requests), -1, np.int32)
    ledger[chosen] = np.arange(len(chosen), dtype=np.int32)
    return chosen, ledger[workload.request]


def first_rows(workload: Workload) -> NDArray[np.int64]:
    """The first row of each request of several instances; O(n)."""
    assert workload.requests is not None  # noqa: S101  # for the type checker
    assert workload.request is not None  # noqa: S101  # for the type checker
    first = np.empty(len(workload.requests), np.int64)
    first[workload.request[::-1]] = np.arange(len(workload) - 1, -1, -1)
    return first


def arrays(workload: Workload, batch_loses: bool) -> dict[str, NDArray[Any]]:
    """Ledgers of requests, by the names of the tables; empty ones where no request needs one."""
    chosen, owner = ledgers(workload)
    table = np.zeros(len(chosen), request_records.REQUEST)
    table["head"] = table["heap_at"] = -1
    scalings = np.zeros(0, request_records.SCALE_EVENT)
    largest = 0
    if workload.requests is not None and workload.request is not None and len(chosen):
        requests, sizes = workload.requests, np.bincount(workload.request, minlength=len(workload.requests))
        first = first_rows(workload)
        table["cls"] = workload.service_class[first[chosen]]
        together = (sizes > 1) | requests.batch  # else the instance's own ledger says the same
        table["approach"] = np.where(together, requests.approach, INDEPENDENT)[chosen]
        table["batch"] = requests.batch[chosen]
        table["loses"] = requests.batch[chosen] & batch_loses
        table["window"] = np.where(requests.batch, requests.parallelism, 0)[chosen]
        ledger = np.full(len(requests), -1, np.int64)
        ledger[chosen] = np.arange(len(chosen))
        scalings = np.zeros(len(requests.scale_time), request_records.SCALE_EVENT)
        scalings["time"] = on_grid(requests.scale_time)
        scalings["request"] = ledger[requests.scale_request]
        scalings["replicas"] = requests.scale_replicas
        largest = int(sizes[requests.scale_request].max(initial=0))
    return {
        "owner": owner,
        "links": np.full((len(owner), 2), -1, np.int32),
        "requests": table,
        "stirred": np.zeros(len(chosen), np.int32),
        "request_heap": np.zeros(len(chosen) + 1, request_records.WAITING),
        "scalings": scalings,
        "excess": np.zeros(largest + 1, request_records.EXCESS),
        "acts": np.zeros(64, request_records.ACT),
        "acted": np.zeros(64, schema.SLOT),
    }


def ensure_capacity(arrays: dict[str, NDArray[Any]], instances: int, record: int) -> None:
    """Events that one scale event or the failure of a host causes must fit into their buffer, and the outages that end
    at one instant."""
    needed = 4 * (instances + len(arrays["leavers"]) + len(arrays["excess"]))
    if record & schema.RECORD_OUTAGES:
        needed += len(arrays.get("request_accounts", ()))
    if len(arrays["events"]) < needed:
        arrays["events"] = np.zeros(needed, log_records.EVENT)
