"""What is watched, and what of it nothing can be decided without."""

from __future__ import annotations

import asyncio

from slacktide.kube.client.credentials import Access, Fixed
from slacktide.kube.client.http import Connection
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import ESSENTIAL, VOLUMES, Watches, subscriptions
from slacktide.kube.resources import objects
from slacktide.kube.translate.pod_groups import COSCHEDULING, SOURCES
from slacktide.settings import load_live


def test_what_is_essential_is_watched_and_the_rest_is_known_to_be_dispensable() -> None:
    watched = [kind for kind, _ in subscriptions(ClusterMirror(load_live(), lambda: 0.0))]
    assert set(watched) >= ESSENTIAL | VOLUMES
    assert not ESSENTIAL & VOLUMES
    # A new kind needs a place in the table of docs/live.md, and perhaps in one of the two sets.
    dispensable = {objects.SERVICE_CLASS, objects.POD_DISRUPTION_BUDGET, objects.CRON_JOB}
    assert set(watched) - ESSENTIAL - VOLUMES == dispensable


def test_a_kind_that_the_api_server_does_not_serve_is_no_dead_watch() -> None:
    """Else an alert on dead watches would sound in every cluster without scheduler-plugins."""

    async def check() -> None:
        mirror = ClusterMirror(load_live(), lambda: 0.0)
        async with Connection(Access("http://127.0.0.1:9", Fixed(None))) as connection:  # it is not asked
            watches = Watches(connection, mirror)
            names = set(watches.by_name())
            assert set(SOURCES) < names
            assert len(names) == len(watches.every), "two kinds are called podgroups"
            for one in watches.every:
                one.is_absent = one.kind is SOURCES[COSCHEDULING]
            assert names - set(watches.by_name()) == {COSCHEDULING}

    asyncio.run(check())
