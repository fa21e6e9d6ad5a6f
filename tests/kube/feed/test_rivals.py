"""Of which schedulers the log says that their pods are on our nodes."""

from __future__ import annotations

import pytest

from slacktide.kube.feed.rivals import Rivals
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
    placed = {"nodeName": "n", "schedulerName": "default-scheduler"}
    rivals.see(made_objects.pod("slacktide-0", OWN[0], RELEASE, **placed))
    assert not caplog.records
    rivals.see(made_objects.pod("web", "shop", RELEASE, **placed))
    assert "pod shop/web of scheduler default-scheduler" in caplog.text
