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
END = b"# EOF\n"
"""The last line in the OpenMetrics format, which the other one does not have."""


@dataclass(frozen=True)
class _Part(Collector):
    """One metric, or a part of its samples, as a registry."""

    metric: Metric

    def collect(self) -> Iterable[Metric]:
        return (self.metric,)


async def text_of(registry: Collector, encode: Callable[[Collector], bytes]) -> bytes:
    """What ``encode`` (of prometheus_client) makes of all metrics as they are now; others have their turn meanwhile."""
    text, ended = list[bytes](), False
    for part, goes_on in _parts(list(registry.collect())):
        line = encode(part)
        ended = ended or line.endswith(END)
        line = line.removesuffix(END)
        while goes_on and line.startswith(b"# "):
            line = line.partition(b"\n")[2]
        text.append(line)
        await asyncio.sleep(0)
    return b"".join((*text, END if ended else b""))


def _parts(metrics: Iterable[Metric]) -> Iterator[tuple[_Part, bool]]:
    """Metrics in parts; whether a part is not the first of its metric."""
    for metric in metrics:
        # Samples of other names may be written apart from the first, so such a metric is not divided.
        if len(metric.samples) <= TOGETHER or len({one.name for one in metric.samples}) > 1:
            yield _Part(metric), False
            continue
        for first in range(0, len(metric.samples), TOGETHER):
            part = copy(metric)
            part.samples = metric.samples[first : first + TOGETHER]
            yield _Part(part), first > 0
