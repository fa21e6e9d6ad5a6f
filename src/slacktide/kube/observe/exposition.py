"""The text of /metrics, some lines at a time: of thousands of workloads it takes long enough to hold up bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

TOGETHER = 250
"""So many samples are written without a pause: some milliseconds."""


@dataclass(frozen=True)
class _Part(Collector):
    """Metrics, or one with a part of its samples, as a registry."""

    metrics: tuple[Metric, ...]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


async def text_of(registry: Collector, encode: Callable[[Collector], bytes]) -> bytes:
    """What ``encode`` (of prometheus_client) makes of all metrics as they are now; others have their turn meanwhile."""
    end = encode(_Part(()))  # which the OpenMetrics format has
    text, written = list[bytes](), 0
    for part, goes_on in _parts(list(registry.collect())):
        lines = encode(_Part((part,))).removesuffix(end)
        while goes_on and lines.startswith(b"# "):
            lines = lines.partition(b"\n")[2]
        text.append(lines)
        written += len(part.samples)
        if written >= TOGETHER:
            written = 0
            await asyncio.sleep(0)
    return b"".join((*text, end))


def _parts(metrics: Iterable[Metric]) -> Iterator[tuple[Metric, bool]]:
    """Metrics in parts; whether a part is not the first of its metric."""
    for metric in metrics:
        # Samples of other names may be written apart from the first, so such a metric is not divided.
        if len(metric.samples) <= TOGETHER or len({one.name for one in metric.samples}) > 1:
            yield metric, False
            continue
        for first in range(0, len(metric.samples), TOGETHER):
            part = copy(metric)
            part.samples = metric.samples[first : first + TOGETHER]
            yield part, first > 0
