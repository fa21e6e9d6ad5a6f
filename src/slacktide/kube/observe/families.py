"""What a metric is, declared once: its samples for Prometheus and docs/metrics-reference.md are both made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

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
