"""What is watched, and what of it nothing can be decided without."""

from __future__ import annotations

from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import ESSENTIAL, VOLUMES, subscriptions
from slacktide.kube.resources import objects
from slacktide.settings import load_live


def test_what_is_essential_is_watched_and_the_rest_is_known_to_be_dispensable() -> None:
    watched = [kind for kind, _ in subscriptions(ClusterMirror(load_live(), lambda: 0.0))]
    assert set(watched) >= ESSENTIAL | VOLUMES
    assert not ESSENTIAL & VOLUMES
    # A new kind needs a place in the table of docs/live.md, and perhaps in one of the two sets.
    dispensable = {objects.SERVICE_CLASS, objects.POD_DISRUPTION_BUDGET, objects.CRON_JOB}
    assert set(watched) - ESSENTIAL - VOLUMES == dispensable
