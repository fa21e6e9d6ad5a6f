"""What a metric is, declared once: its samples for Prometheus and docs/metrics-reference.md are both made of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
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
    """What ``encode`` (of prometheus_client) makes of all metrics as they are now; others have their turn meanwhile: of
    thousands of workloads it takes long enough to hold up bindings."""
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


Kind = Literal["gauge", "counter", "histogram"]
Values = Mapping[Any, Any]
"""By label values, a tuple."""


class Buckets(Protocol):
    """What is asked of a histogram."""

    total: float

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated counts by bound."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name (of a counter without ``_total``), what it means, and its labels in their order."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...]

    @property
    def exported(self) -> str:
        """The name as it is asked for."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    def of(self, values: Values) -> Metric:
        """Its samples; of a histogram the values are :class:`Buckets`."""
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(self.name, self.meaning, labels=self.labels)
            for key, one in values.items():
                histogram.add_metric(key, one.buckets(), one.total)
            return histogram
        plain = GaugeMetricFamily if self.kind == "gauge" else CounterMetricFamily
        family = plain(self.name, self.meaning, labels=self.labels)
        for key, value in values.items():
            family.add_metric(key, float(value))
        return family


@dataclass(frozen=True, slots=True)
class Families:
    """Metrics that are exported together, in the order in which they are declared; ``when`` says when they are."""

    title: str
    when: str
    declared: list[Family] = field(default_factory=list)

    def gauge(self, name: str, meaning: str, *labels: str) -> Family:
        """Declare a gauge."""
        return self._add(Family(name, "gauge", meaning, labels))

    def counter(self, name: str, meaning: str, *labels: str) -> Family:
        """Declare a counter; ``_total`` is added to its name where it is exported."""
        return self._add(Family(name, "counter", meaning, labels))

    def histogram(self, name: str, meaning: str, *labels: str) -> Family:
        """Declare a histogram."""
        return self._add(Family(name, "histogram", meaning, labels))

    def _add(self, family: Family) -> Family:
        self.declared.append(family)
        return family
