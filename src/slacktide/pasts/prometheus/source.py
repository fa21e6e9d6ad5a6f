"""The series that a Prometheus keeps of a cluster: kube-state-metrics', and kube-scheduler's own.

Also Thanos and Mimir, by the same API. When pods were created, bound and ready, and when they completed, series say to
the second; what only changes of samples show is put in the middle between two of them.
"""

from __future__ import annotations

import asyncio
import shutil
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp

from slacktide.errors import InputError, Problem
from slacktide.kube.client.metadata import rfc3339
from slacktide.pasts.prometheus.client import access
from slacktide.pasts.prometheus.fetch import Fetched, fetch
from slacktide.pasts.prometheus.names import GIVES, matchers
from slacktide.pasts.prometheus.telling import Teller
from slacktide.pasts.story import Findings, Story

HOURS = 6.0
"""Of series that are asked for at once."""


def story(
    url: str, begin: float, end: float, *,
    match: str = "", token: str = "", user: str = "", password: str = "", tenant: str = "", ca: str = "",
    folder: Path | None = None, hours: float = HOURS, interval: float | None = None, timeout: float = 120.0,
    say: Callable[[str], None] = lambda _: None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Story:  # fmt: skip
    """What a Prometheus tells of a cluster between two instants, seconds since 1970.

    match      label matchers, such as ``cluster="prod",namespace=~"team-.*"``
    tenant     sent as X-Scope-OrgID, which Mimir asks for
    ca         a file with the certificates that are trusted; empty: those of the system
    folder     where what was fetched is kept, so that another call goes on with it; None: nowhere
    hours      of series that are asked for at once; halved where that is too much for the server
    interval   seconds between scrapes; None: as it looks

    Raises :class:`InputError` where the server refuses, has no such series or none of pods' requests, and
    :class:`OutputError`.
    """
    where = access(url, token=token, user=user, password=password, tenant=tenant, ca=ca, timeout=timeout, sleep=sleep)
    if not begin < end:
        raise InputError([Problem(where.shown, 0, "--from, --to", f"{begin:.0f}, {end:.0f}", "an end after it begins")])
    findings, wanted = Findings(), matchers(match)
    place = folder or Path(mkdtemp(prefix="slacktide-past-"))

    def fetched() -> Fetched:
        return asyncio.run(fetch(where, wanted, begin, end, place, findings, hours=hours, interval=interval, say=say))

    try:
        with ThreadPoolExecutor(1) as pool:  # a notebook has a loop of its own in this thread
            found = pool.submit(fetched).result()
    except BaseException:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
        raise
    if found.plan.begin > begin + 2 * found.plan.interval + (end - begin) / 1000:
        findings.note(f"there are samples from {rfc3339(found.plan.begin)} on only")
    _note_missing(found, findings, restricted=any(label.endswith("namespace") for label, _ in wanted))
    teller = Teller(found, findings)
    if folder is None:  # once the story is told, or nobody wants it any more
        weakref.finalize(teller, shutil.rmtree, place, ignore_errors=True)
    return Story(where.shown, found.plan.begin, teller.beginning(), teller.changes(), findings, until=found.plan.end)


def _note_missing(found: Fetched, findings: Findings, *, restricted: bool) -> None:
    known = set(found.plan.known)
    for metric, gives in GIVES.items():
        if metric not in known:
            findings.note(f"no {metric}: it would say {gives}")
    if restricted:
        findings.note("pods of other namespaces are not known: the room that they take counts as free")
    if "scheduler_preemption_victims_sum" not in known:
        findings.note(
            "whom kube-scheduler preempted is known only where kube_pod_status_reason says it, as new releases of "
            "kube-state-metrics do; how many it were kube-scheduler would say, which is not scraped"
        )
    findings.note(
        f"series are scraped every {found.plan.interval:g} s: what is shorter is not seen, and affinities, spread "
        "constraints, host ports and volumes are in none of them"
    )
