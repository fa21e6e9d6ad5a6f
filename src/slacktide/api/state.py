"""How a paused simulation stands, as frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from slacktide.api.drawing import frame_of
from slacktide.inputs.formats.frames import OwnColumns
from slacktide.model import arrow
from slacktide.sim import Run, standing

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class State:
    """How a simulation stands.

    Attributes
    ----------
    now : float
        Seconds of simulated time.
    requests : polars.DataFrame
        A row per instance that was admitted: id, class, state, host, since, delivered, metric (slack less
        ``qos.alpha``: below 0 it can afford no further start, though it may keep its promise if it runs on),
        preemptions.
    hosts : polars.DataFrame
        A row per host: name, up, instances, and of each resource what it has and what is free.
    """

    now: float
    requests: pl.DataFrame
    hosts: pl.DataFrame

    @property
    def queue(self) -> pl.DataFrame:
        """Of ``requests`` those that wait, who waits longest first."""
        import polars as pl

        return self.requests.filter(pl.col("state") == "waiting").sort("since", maintain_order=True)

    def __repr__(self) -> str:
        up = int(self.hosts["up"].sum())
        return f"State(now={self.now:g}: {len(self.queue):,} wait, {up:,} of {len(self.hosts):,} hosts are up)"


def state_of(run: Run, own: OwnColumns, now: float) -> State:
    """That of a run; ``own`` has the texts of ids."""
    work, hosts = run.workload, run.hosts
    one = standing.instances_of(run)
    rows, places = one.pop("row"), one.pop("host")
    owners = work.ids if work.requests is None or work.request is None else work.requests.ids[work.request]
    of = own.told({"id": owners[rows]})
    of |= {"class": arrow.named(work.service_class[rows], [each.name for each in work.classes])}
    one |= {"metric": arrow.nullable(one["metric"])}
    one["host"] = arrow.named(np.maximum(places, 0), hosts.names, places < 0)
    named = {"name": arrow.texts(hosts.names)} | standing.hosts_of(run)
    return State(now, frame_of(arrow.table(of | one)), frame_of(arrow.table(named)))
