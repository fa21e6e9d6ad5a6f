"""Who got least of what was promised: requests by number and by what people call them."""

from __future__ import annotations

from heapq import nlargest
from typing import Any

import numpy as np

from slacktide.metrics.columns import achieved, codes
from slacktide.model import Label
from slacktide.qos.availability import fulfilled
from slacktide.reporting.figure import Rows
from slacktide.reporting.gather import CALLED, Member

SHOWN = 20
PLACES = {"workload": "workload", "hosts": "host set", "policy": "policy", "replicate": "seed"}


class Least:
    """The requests that missed their promise by most, of all runs."""

    def __init__(self) -> None:
        self._found: Rows = []

    def add(self, member: Member, table: Any) -> None:
        """Those of a run, from its table of requests with ids and what the file says of names."""
        got = achieved(table, member.accounting)
        slo = np.array([one.slo for one in member.classes])[codes(table, [one.name for one in member.classes])]
        missing = np.where(fulfilled(got, slo), 0.0, slo - got)
        worst = np.argsort(-missing, kind="stable")[:SHOWN]
        rows = [row for row in worst.tolist() if missing[row] > 0.0]
        for row, one in zip(rows, table.take(np.array(rows, np.int64)).to_pylist(), strict=True):
            called = Label(*(one.get(name) or "" for name in CALLED))
            numbers = {"class": one["class"], "promised": float(slo[row]), "got": float(got[row])}
            place = {PLACES[name]: value for name, value in member.names.items()}
            place["seed"] = str(member.run.seed)
            self._found.append({**place, "request": str(one["id"]), "name": str(called), **numbers})
        self._found = nlargest(SHOWN, self._found, key=lambda one: one["promised"] - one["got"])

    def rows(self) -> Rows:
        """The worst first; of where they ran only what differs is said, and names where there are any."""
        said = [name for name in PLACES.values() if len({one[name] for one in self._found}) > 1]
        told = ("request", "name", "class", "promised", "got")
        said += [name for name in told if any(one[name] != "" for one in self._found)]
        return [{name: one[name] for name in said} for one in self._found]
