"""How long runs will take: from those that have ended, else from the number of requests."""

from __future__ import annotations

from pathlib import Path

from slacktide.experiment import keys
from slacktide.experiment.grid import FromFile, Grid, Point
from slacktide.experiment.prepare import ABOUT, about
from slacktide.experiment.store import Estimates, Store

RATE = 10_000.0
"""Requests a second: about the middle of what policies and contention make of it (500 to 100,000)."""


class Expected:
    """Times of the runs of a grid whose folder is ``store``."""

    def __init__(self, store: Store, grid: Grid) -> None:
        self._store = store
        self._grid = grid
        self.known = Estimates(store.times())
        self._requests: dict[str, int | None] = {}

    def of(self, point: Point) -> float | None:
        """Seconds that a run takes, or None where nothing is known of it."""
        known = self.known.of(point.workload, point.hosts, point.policy)
        if known is not None:
            return known
        if point.workload not in self._requests:
            self._requests[point.workload] = self._count(point.workload)
        rows = self._requests[point.workload]
        return None if rows is None else rows / RATE

    def _count(self, workload: str) -> int | None:
        """About as many requests as the workload has, or None."""
        origin = self._grid.workloads[workload].origin
        prepared = self._store.inputs / keys.input_key("workload", origin, self._grid)
        if (prepared / ABOUT).is_file():
            return int(about(prepared)["instances"])
        if isinstance(origin, FromFile):
            return _rows(origin.path)
        return int(origin.parameters["requests"]) if "requests" in origin.parameters else None


def _rows(path: Path) -> int:
    """About as many as the file has."""
    if path.suffix.lower() == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return int(pq.ParquetFile(path).metadata.num_rows)
        except (OSError, pa.ArrowException):
            return 0
    with path.open("rb") as file:
        return sum(1 for _ in file)
