"""The text of /metrics in parts is what prometheus_client makes of it in one go; others have their turn meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client import Counter, Histogram, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from slacktide.kube.observe.families import TOGETHER, text_of

OPEN, TEXT = "application/openmetrics-text; version=1.0.0", "text/plain; version=0.0.4"
MANY = 3 * TOGETHER + 1


class Made(Collector):
    """A metric of no sample, one of many samples of each type, and names that have to be escaped."""

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("nothing", "No sample.", labels=("name",))
        gauge = GaugeMetricFamily("much", "Says # HELP\nin two lines.", labels=("name",))
        lost = CounterMetricFamily("lost", "By whose doing.", labels=("name", "cause"))
        took = HistogramMetricFamily("took", "Seconds.", labels=("name",))
        for number in range(MANY):
            gauge.add_metric((f'# TYPE "{number}"\n',), number / 7)
            lost.add_metric((f"w{number}", "cluster"), number)
            took.add_metric((f"w{number}",), [("1.0", number), ("+Inf", 2 * number)], float(number))
        yield from (gauge, lost, took)


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Made())
    counter = Counter("begun", "With the instant at which it began.", ["name"], registry=registry)
    for number in range(MANY):
        counter.labels(f"c{number}").inc()
    Histogram("each", "By itself.", registry=registry).observe(0.3)
    Info("built", "Of what.", registry=registry).info({"version": "1"})
    return registry


@pytest.mark.parametrize("accepted", [OPEN, TEXT, ""])
def test_parts_are_the_whole(registry: CollectorRegistry, accepted: str) -> None:
    encode, _ = choose_encoder(accepted)
    whole = encode(registry)
    assert whole.count(b"\n") > 8 * MANY
    assert asyncio.run(text_of(registry, encode)) == whole
    nothing = CollectorRegistry()
    assert asyncio.run(text_of(nothing, encode)) == encode(nothing)


def test_others_have_their_turn_after_some_lines(registry: CollectorRegistry) -> None:
    turns: list[int] = []
    written = 0

    def encode(part: Collector) -> bytes:
        nonlocal written
        written += sum(len(metric.samples) for metric in part.collect() if metric.type == "gauge")
        return b""

    async def others() -> None:
        while True:
            turns.append(written)
            await asyncio.sleep(0)

    async def both() -> None:
        beside = asyncio.create_task(others())
        await text_of(registry, encode)
        beside.cancel()

    asyncio.run(both())
    assert sorted(set(turns)) == [TOGETHER, 2 * TOGETHER, 3 * TOGETHER, MANY]
