"""What pages that are run on a lab are compared by (``cluster/test_pages.py``)."""

from __future__ import annotations

from cluster.test_pages import alike


def test_what_differs_between_runs_is_not_compared_and_everything_else_is() -> None:
    shown = "front-6ccffbd5d6-6w5q7   1/1   Running   0   13s\nreports-7c85968c7b-wx6gd   0/1   Pending   0   3s\n"
    other = "reports-7c85968c7b-aaaaa   0/1   Pending   0   1m2s\nfront-6ccffbd5d6-bbbbb   1/1   Running   0   4s\n"
    assert alike(shown, other)
    assert not alike(shown, other.replace("1/1", "0/1"))
    assert not alike(shown, other + "front-6ccffbd5d6-ccccc   1/1   Running   0   4s\n")
    assert alike(shown + "...\n", other + "and more\n")
    assert not alike(shown + "...\n", "and more\n")
