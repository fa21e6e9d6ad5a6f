"""Fetches a cluster's series chunk by chunk into a folder; what is there already is not fetched again."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from slacktide.errors import InputError, OutputError, Problem
from slacktide.pasts.prometheus import owners, pods
from slacktide.pasts.prometheus.asker import LONGEST_RANGE, Asker
from slacktide.pasts.prometheus.chunk import INFO, NODES, WISHES, Chunk
from slacktide.pasts.prometheus.client import Access, Client, TooMuchError
from slacktide.pasts.prometheus.names import GIVES, NEEDED, OF_SCHEDULER, REQUESTS, Names, scraped
from slacktide.pasts.story import Findings
from slacktide.whole_file import write_whole

FORMAT = 1
PLAN = "plan.json"
INSTALL = "install kube-state-metrics 2 (Helm chart kube-state-metrics), and look at its --metric-denylist"
SHORTEST_STEPS = 4
"""A chunk of so many scrapes is not halved any more."""
LOOK_STEPS, LOOKED_AT = 1000, 899
"""Instants at which it is looked whether there is something; seconds in which samples are counted."""
FASTEST, SLOWEST = 5.0, 300.0
"""Seconds between scrapes; beyond five minutes Prometheus does not show a sample any more."""
USUAL, ALIKE = (5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0), 0.12
"""Scrapes that seem to come every 31 seconds come every 30, but for those that failed."""
READS = tuple(
    dict.fromkeys((
        *GIVES, *NEEDED, *REQUESTS, *NODES, *OF_SCHEDULER, *(said[0] for said in WISHES.values()),
        *(said[2] for said in WISHES.values()),
        "kube_node_info", "kube_pod_owner", "kube_pod_init_container_resource_requests", "kube_pod_init_container_info",
        "kube_pod_tolerations", "kube_pod_nodeselectors", "kube_pod_status_ready_time", "kube_pod_completion_time",
        "kube_pod_deletion_timestamp", "kube_pod_status_reason", "kube_job_owner", "kube_job_spec_parallelism",
        "kube_job_status_completion_time", "kube_job_failed", "kube_job_created", owners.BUDGETS,
    ))
)  # fmt: skip
"""Every series that is asked for; no other is."""


class Plan(msgspec.Struct):
    """What was asked for, so that a second call goes on with it."""

    key: str
    begin: float
    end: float
    interval: float
    known: list[str]
    exported: dict[str, list[str]]


@dataclass(slots=True)
class Fetched:
    """What is in the folder."""

    folder: Path
    plan: Plan

    def chunks(self) -> Iterator[Chunk]:
        """One after the other, as they follow in time."""
        at = self.plan.begin
        while (found := _next(self.folder, at)) is not None:
            try:
                chunk = msgspec.msgpack.decode(found.read_bytes(), type=Chunk)
            except (OSError, msgspec.DecodeError) as error:
                raise InputError([
                    Problem(str(found), 0, "", "", f"what was fetched ({error}): remove the file and begin anew")
                ]) from None  # fmt: skip
            yield chunk
            at = chunk.end


def _next(folder: Path, at: float) -> Path | None:
    return next(iter(sorted(folder.glob(f"{at:.0f}-*.chunk"))), None)


async def fetch(
    where: Access, match: list[tuple[str, str]], begin: float, end: float, folder: Path, findings: Findings, *,
    hours: float, interval: float | None, say: Callable[[str], None],
) -> Fetched:  # fmt: skip
    """Fetch what is not there yet. Raises :class:`InputError` where nothing can be had, and :class:`OutputError`."""
    said = (str(FORMAT), where.shown, where.tenant, *(whole for _, whole in match))
    key = hashlib.sha256("\0".join(said).encode()).hexdigest()[:16]
    async with Client(where, findings) as client:
        plan = _planned(folder, key, begin, end, hours * 3600.0)
        if plan is None:
            try:
                plan = await _plan(client, where, Names(match), key, begin, end, interval)
            except TooMuchError as problem:
                raise _too_much(client, problem) from None
            try:  # not before there is something to keep
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"{folder}: cannot be written: {error}") from error
            write_whole(folder / PLAN, msgspec.json.encode(plan))
        elif (plan.begin, plan.end) != (begin, end):
            findings.note(f"goes on with what was fetched into {folder} before; remove that folder to begin anew")
        names = Names(match, frozenset(plan.known), {key: frozenset(one) for key, one in plan.exported.items()})
        await _all(client, names, plan, folder, hours * 3600.0, say)
    return Fetched(folder, plan)


def _planned(folder: Path, key: str, begin: float, end: float, chunk: float) -> Plan | None:
    """What an earlier call fetched a part of, where that is what is asked for now: within the last chunk, as `the last
    week` is another one with every minute."""
    try:
        plan = msgspec.json.decode((folder / PLAN).read_bytes(), type=Plan, strict=False)
    except (OSError, msgspec.DecodeError):
        return None
    near = abs(plan.begin - begin) <= chunk and abs(plan.end - end) <= chunk
    if plan.key == key and near:
        return plan
    raise InputError([
        Problem(str(folder), 0, "", "what was fetched from another server, with another --match or of another time",
                "an empty folder: remove it, or name another")
    ])  # fmt: skip


def _too_much(client: Client, problem: TooMuchError) -> InputError:
    limits = "--query.max-samples, --query.timeout"
    expected = f"an answer for some minutes at least: restrict it by --match, or raise the server's limits ({limits})"
    return InputError([Problem(client.shown, 0, "", problem.said, expected)])


async def _plan(
    client: Client, where: Access, names: Names, key: str, begin: float, end: float, interval: float | None
) -> Plan:
    """What there is, and how often it is scraped."""
    which = "|".join(READS)
    found = await client.values("__name__", f'{{__name__=~"{which}"}}', begin, end)
    names.known = frozenset(found) & frozenset(READS)
    _refuse_missing(where, names)
    for metric in (INFO, REQUESTS[0], OF_SCHEDULER[0]):
        if names.has(metric):
            labels = await client.labels(names.select(metric), begin, end)
            if labels and metric not in OF_SCHEDULER and "uid" not in labels:
                expected = "the label uid, by which pods of one name are told apart: look at metric_relabel_configs"
                raise InputError([Problem(where.shown, 0, metric, ", ".join(labels), expected)])
            names.exported[scraped(metric)] = frozenset(one for one in labels if one.startswith("exported_"))
    pulse = _pulse(names)
    step = max(FASTEST, (end - begin) / LOOK_STEPS)
    alive = await client.range(f"count({pulse})", begin, end, step)
    times = [at for one in alive for at, _ in one.values]
    if not times:
        raise InputError([
            Problem(where.shown, 0, "--match", ",".join(whole for _, whole in names.match),
                    f"samples of {INFO} at that time: look at --from and --to, --match and the server's retention")
        ])  # fmt: skip
    clusters = await client.instant(f"group by(cluster)({pulse})", times[-1])
    if len(clusters) > 1:
        some = sorted(one.metric.get("cluster", "") for one in clusters)
        raise InputError([
            Problem(where.shown, 0, "cluster", ", ".join(some[:10]), f"one cluster: --match 'cluster=\"{some[-1]}\"'")
        ])  # fmt: skip
    if interval is None:
        # As often as in the best quarter of an hour: in others some failed.
        every = max(step, LOOKED_AT)
        first = end - (end - begin) // every * every  # so that the end is among them, also of a past of minutes
        counted = await client.range(f"max(count_over_time({pulse}[{LOOKED_AT}s]))", first, end, every)
        samples = max((float(value) for one in counted for _, value in one.values), default=1.0)
        interval = min(LOOKED_AT, max(60.0, end - begin)) / samples
        interval = next((one for one in USUAL if abs(math.log(one / interval)) < ALIKE), max(1, math.floor(interval)))
    interval = min(SLOWEST, max(FASTEST, float(round(interval))))
    begin, end = math.ceil(max(begin, times[0]) / interval) * interval, math.floor(end / interval) * interval
    exported = {key: sorted(one) for key, one in names.exported.items()}
    return Plan(key, begin, max(end, begin + interval), interval, sorted(names.known), exported)


def _refuse_missing(where: Access, names: Names) -> None:
    problems = [
        Problem(where.shown, 0, one, "no such series", f"kube-state-metrics 2 that is scraped: {INSTALL}")
        for one in NEEDED
        if not names.has(one)
    ]
    if not any(map(names.has, REQUESTS)):
        problems.append(
            Problem(where.shown, 0, REQUESTS[0], "no such series", f"what pods ask for: {INSTALL}; or scrape "
                    f"kube-scheduler's /metrics/resources ({REQUESTS[1]})")
        )  # fmt: skip
    if problems:
        raise InputError(problems)


def _pulse(names: Names) -> str:
    """A series of few that is there whenever kube-state-metrics was scraped."""
    return names.select("kube_node_info" if names.has("kube_node_info") else "kube_node_status_allocatable")


async def _all(
    client: Client, names: Names, plan: Plan, folder: Path, length: float, say: Callable[[str], None]
) -> None:
    begin, size = plan.begin, max(1, round(length / plan.interval)) * plan.interval
    reach = size
    while begin < plan.end:
        found = _next(folder, begin)
        if found is not None:
            begin = float(found.stem.partition("-")[2])
            continue
        end = min(plan.end, begin + reach)
        first = begin == plan.begin
        try:
            chunk = await _chunk(client, names, plan, begin, end, first=first)
        except TooMuchError as problem:
            steps = round((end - begin) / plan.interval)
            if steps <= SHORTEST_STEPS:
                raise _too_much(client, problem) from None
            reach = size = math.ceil(steps / 2) * plan.interval
            say(f"too much at once: {problem.said}; from here on {size / 3600:.2g} h at a time")
            continue
        if chunk is None:  # nobody scraped until then
            if end >= plan.end:
                return
            reach += size
            continue
        write_whole(folder / f"{begin:.0f}-{chunk.end:.0f}.chunk", msgspec.msgpack.encode(chunk))
        begin, reach = chunk.end, size
        say(f"{(begin - plan.begin) / 3600:.1f} of {(plan.end - plan.begin) / 3600:.1f} h fetched")


async def _chunk(client: Client, names: Names, plan: Plan, begin: float, end: float, *, first: bool) -> Chunk | None:
    pulse = _pulse(names)
    step = plan.interval
    alive: list[float] = []
    at = begin + step
    while at <= end:
        upto = min(end, at + step * LONGEST_RANGE)
        for one in await client.range(f"count({pulse})", at, upto, step):
            alive += [float(when) for when, _ in one.values]
        at = upto + step
    if not alive:
        return None
    end = alive[-1]
    newest = await client.instant(f"max(timestamp({pulse}))", end)
    late = max((end - float(one.value[1]) for one in newest if one.value), default=0.0)
    ask = Asker(client, names, begin, end, step, first=first, late=min(max(0.0, late), step))
    ask.alive = alive
    chunk = Chunk(begin, end, unseen=list(_gaps([begin, *alive], step)))
    await pods.pods(ask, chunk)
    await _together(
        pods.readiness(ask, chunk),
        pods.endings(ask, chunk),
        owners.controllers(ask, chunk),
        owners.nodes(ask, chunk),
    )
    return chunk


async def _together(*parts: Coroutine[Any, Any, None]) -> None:
    """All of them; where one fails the others need not go on."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _gaps(alive: Sequence[float], step: float) -> Iterator[tuple[float, float]]:
    for before, after in pairwise(alive):
        if after - before > 1.5 * step:
            yield before, after
