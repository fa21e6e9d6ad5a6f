"""Of which schedulers the log says that their pods are on our nodes."""

from __future__ import annotations

from functools import partial

import pytest

from slacktide.kube.feed.hosts import Rivals
from support import made_objects

OWN = ("slacktide-system", "slacktide")
RELEASE = {"app.kubernetes.io/name": "slacktide"}


def test_another_scheduler_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    rivals = Rivals(OWN)
    for name in ("a", "b"):
        rivals.see(made_objects.pod(name, nodeName="n", schedulerName="other"))
    assert [one.getMessage().startswith("pod default/a of scheduler other") for one in caplog.records] == [True]


def test_the_pods_of_this_release_are_no_rivals_and_others_of_its_scheduler_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rivals = Rivals(OWN)
    placed = partial(made_objects.pod, nodeName="n", schedulerName="default-scheduler")
    rivals.see(placed("slacktide-0", OWN[0], RELEASE))
    assert not caplog.records
    rivals.see(placed("web", "shop", RELEASE))
    assert "pod shop/web of scheduler default-scheduler" in caplog.text
