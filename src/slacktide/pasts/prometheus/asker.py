"""Asks a Prometheus about some hours: only for what is new or changed, and for no label that is not needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence

from slacktide.pasts.prometheus.client import Client, Series, TooMuchError
from slacktide.pasts.prometheus.names import Names

LOTS, BATCH = 1500, 250
"""Of more things than this the whole series is asked for; of fewer, so many at once."""
LONGEST_RANGE = 10_000
"""Points of a series in one answer; servers give 11,000."""
LOOKBACK = 300
"""Seconds for which a sample is shown where none follows."""
UID = ("uid",)
Turn = tuple[list[str], float, float | None, float | None]
"""A label set, from when on it has which value (None: it is not there any more), and the value before."""


class Asker:
    """Asks about a chunk ``begin`` < t <= ``end``, samples of which come every ``interval`` seconds.

    ``first``: what was there at its beginning is asked for as well. ``late``: for so long the newest sample was there
    at its end.
    """

    def __init__(
        self, client: Client, names: Names, begin: float, end: float, interval: float, *, first: bool, late: float
    ) -> None:
        self.client, self.names = client, names
        self.begin, self.end, self.first, self.interval, self.late = begin, end, first, interval, late
        self.alive: list[float] = []
        """When somebody scraped kube-state-metrics, of the steps."""
        self.span = f"{round(end - begin)}s"
        self.since = f"{round(end - begin + interval)}s"  # with the sample before
        # Of what ended without a word, as its scraper did, the last sample is shown for five minutes.
        self.longer = f"{round(end - begin) + LOOKBACK}s"

    def middle(self, step: float) -> float:
        """When it changed what the samples show at a step first."""
        return self.seen(step) - self.interval / 2

    def seen(self, step: float) -> float:
        """When the sample was taken that a step shows."""
        return step - self.late

    def best(
        self, metric: str, labels: Sequence[str], *more: str, over: str = "last_over_time", longer: bool = False
    ) -> str:
        """The values of a series in the chunk, by label; ``longer``: also a little before, of what ended in it."""
        span = self.longer if longer else self.since if over == "changes" else self.span
        return f"{self.names.by(metric, labels)}({over}({self.names.select(metric, *more)}[{span}]))"

    def now(self, metric: str, labels: Sequence[str], *more: str, before: bool = False) -> str:
        """Its values at the end, or at the beginning."""
        offset = f" offset {self.span}" if before else ""
        return f"{self.names.by(metric, labels)}({self.names.select(metric, *more)}{offset})"

    def new(self, metric: str, labels: Sequence[str], on: Sequence[str], *more: str) -> str:
        """Its values in the chunk, of those that were not there at the beginning."""
        query = self.best(metric, labels, *more)
        if self.first:
            return query
        names = ",".join(self.names.label(metric, one) for one in on)
        return f"{query} unless on({names}) {self.now(metric, on, *more, before=True)}"

    async def rows(self, query: str, metric: str, labels: Sequence[str]) -> list[tuple[list[str], float]]:
        """What a query gives at the end of the chunk: label values, and the value."""
        return rows_of(await self.client.instant(query, self.end), self.names, metric, labels)

    async def of(
        self, things: Collection[str], metric: str, label: str, query: Callable[[str], str], labels: Sequence[str]
    ) -> list[tuple[list[str], float]]:
        """What ``query(MATCHER)`` gives of things: by name, or all where there are many of them."""
        if not things or not self.names.has(metric):
            return []
        if len(things) > LOTS:
            try:
                at, wanted = labels.index(label), set(things)
                found = await self.rows(query(""), metric, labels)
                return [one for one in found if one[0][at] in wanted]
            except TooMuchError:
                pass
        found = []
        for some in batches(things):
            found += await self.rows(query(self.names.among(metric, label, some)), metric, labels)
        return found

    async def last(
        self, things: Collection[str], metric: str, label: str, labels: Sequence[str], *more: str,
        over: str = "last_over_time", longer: bool = False,
    ) -> list[tuple[list[str], float]]:  # fmt: skip
        """What a series said of things in the chunk, last."""

        def query(among: str) -> str:
            return self.best(metric, labels, *more, among, over=over, longer=longer)

        return await self.of(things, metric, label, query, labels)

    def steps(self, begin: float, end: float) -> Iterator[tuple[float, float]]:
        """Ranges of steps that are answered at once."""
        longest = self.interval * LONGEST_RANGE
        while begin <= end:
            yield begin, min(end, begin + longest)
            begin += longest + self.interval

    async def moments(self, metric: str, labels: Sequence[str], *more: str, anew: Collection[str] = ()) -> list[Turn]:
        """What changed of a series: which label sets came, went, or have another value, from when on. Of what was made
        ``anew``, by its first label, all that there is: its series may have come back as they were."""
        if not self.names.has(metric):
            return []
        found: list[Turn] = []
        if self.first:
            at_begin = self.now(metric, labels, *more)
            answer = await self.client.instant(at_begin, self.begin)
            found += [(key, self.begin, value, None) for key, value in rows_of(answer, self.names, metric, labels)]
        now, before = self.now(metric, labels, *more), self.now(metric, labels, *more, before=True)
        which = (
            f"({self.best(metric, labels, *more)} unless {before}) or ({before} unless {now}) or "
            f"({self.best(metric, labels, *more, over='changes')} > 0)"
        )
        keys = {tuple(key) for key, _ in await self.rows(which, metric, labels)}
        keys.update(tuple(key) for key, _ in await self.last(anew, metric, labels[0], labels, *more))
        for some in batches(sorted({one[0] for one in keys})):
            among = self.names.among(metric, labels[0], some)
            series: dict[tuple[str, ...], dict[float, float]] = {}
            for begin, end in self.steps(self.begin, self.end):
                query = self.now(metric, labels, *more, among)
                for one in await self.client.range(query, begin, end, self.interval):
                    key = tuple(one.metric.get(self.names.label(metric, label), "") for label in labels)
                    if key in keys:
                        series.setdefault(key, {}).update((at, float(value)) for at, value in one.values)
            for key in sorted(series):
                found += self._changes(list(key), series[key])
        return [one async for one in self._as_sampled(found, metric, labels, *more)]

    async def _as_sampled(
        self, turns: list[Turn], metric: str, labels: Sequence[str], *more: str
    ) -> AsyncIterator[Turn]:
        """Where no scrape said that a series ended, its last sample is shown for a while: it went after that."""
        query = f"{self.names.by(metric, labels)}(timestamp({self.names.select(metric, *more)}))"
        lasts: dict[tuple[float, tuple[str, ...]], float] = {}
        for step in {step for _, step, value, _ in turns if value is None}:
            answer = await self.client.instant(query, step - self.interval)
            lasts |= {(step, tuple(key)): at for key, at in rows_of(answer, self.names, metric, labels)}
        for key, step, value, before in turns:
            last = lasts.get((step, tuple(key)), step) if value is None else step
            yield key, min(step, last + self.interval + self.late), value, before

    def _changes(self, key: list[str], values: dict[float, float]) -> Iterator[Turn]:
        last = values.get(self.begin)
        for step in self.alive:
            value = values.get(step)
            if value != last:
                yield key, step, value, last
                last = value


async def first_samples(ask: Asker, metric: str, uids: Collection[str], *more: str) -> list[tuple[str, float]]:
    """When series of these pods were sampled first in the chunk."""
    return [(key[0], at) for key, at in await samples(ask, metric, uids, UID, "min", *more)]


async def last_samples(ask: Asker, metric: str, uids: Collection[str], *more: str) -> list[tuple[str, float]]:
    """When they were sampled last."""
    return [(key[0], at) for key, at in await samples(ask, metric, uids, UID, "max", *more)]


async def samples(
    ask: Asker, metric: str, things: Collection[str], labels: Sequence[str], how: str, *more: str, value: str = ""
) -> list[tuple[list[str], float]]:
    """When series, of which the first label names these things, were sampled first (min) or last (max) in the chunk,
    with this ``value``."""
    by = ask.names.by(metric, labels, how)

    def query(among: str) -> str:
        select = ask.names.select(metric, *more, among)
        sampled = f"timestamp({select})"
        if value:  # without its own instant: that of the step that shows it
            sampled = f"(timestamp({ask.names.by(metric, labels)}({select}) == {value}) - {ask.late:g})"
        return f"{by}({how}_over_time({sampled}[{ask.longer}:{ask.interval:g}s]))"

    return await ask.of(things, metric, labels[0], query, labels)


def value_of(one: Series) -> float:
    """Its value at the instant that was asked for."""
    return 0.0 if one.value is None else float(one.value[1])


def rows_of(
    answer: Iterable[Series], names: Names, metric: str, labels: Sequence[str]
) -> list[tuple[list[str], float]]:
    """An answer as the values of these labels, and the value."""
    called = [names.label(metric, one) for one in labels]
    return [([one.metric.get(label, "") for label in called], value_of(one)) for one in answer]


def batches(things: Iterable[str]) -> Iterator[list[str]]:
    """As many as are asked for at once."""
    listed = list(things)
    for first in range(0, len(listed), BATCH):
        yield listed[first : first + BATCH]
