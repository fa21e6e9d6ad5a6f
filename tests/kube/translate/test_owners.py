"""Whose a ledger is, by its name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.takeover import by_owner, owner_of
from slacktide.kube.resources.custom_resources import AvailabilityStatus, LedgerTarget
from slacktide.kube.resources.objects import Availability
from slacktide.kube.translate.owners import Target, is_followed

NAMES = some.from_regex(r"[a-z]([-a-z0.]{0,3}[a-z0])?", fullmatch=True)
LONG = some.integers(200, 253).map(lambda count: "n" * count)
KINDS = some.sampled_from(
    [("v1", "Pod"), ("apps/v1", "Deployment"), ("batch/v1", "Job"), ("batch/v1", "CronJob"), ("apps/v1", "DaemonSet"),
     ("training.example.com/v1", "Job"), ("example.com/v1", "Job"), ("flow.example.com/v1", "Deployment"),
     ("flow.example.com/v1", "Pod")]
)  # fmt: skip


def target(of: tuple[str, str], name: str, uid: str = "u") -> Target:
    return Target(*of, "default", name, uid)


@given(KINDS, NAMES | LONG, KINDS, NAMES | LONG)
def test_no_two_workloads_share_a_ledger(one: tuple[str, str], name: str, other: tuple[str, str], its: str) -> None:
    first, second = target(one, name), target(other, its)
    assert (first.ledger == second.ledger) == ((one, name) == (other, its))
    assert len(first.ledger) <= 253
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", first.ledger)


def test_names_that_differ_only_at_their_ends() -> None:
    first, second = (target(("apps/v1", "Deployment"), "d" * 250 + end) for end in ("a", "b"))
    assert first.former_ledger == second.former_ledger  # as it was
    assert first.ledger != second.ledger


@pytest.mark.parametrize(
    ("of", "ledger", "kind"),
    [
        (("batch/v1", "Job"), "job-train", "Job"),
        (("apps/v1", "DaemonSet"), "daemonset-train", "DaemonSet"),
        (("v1", "Pod"), "pod-train", "Pod"),
        (("training.example.com/v1", "Job"), "job.training.example.com-train", "Job.training.example.com"),
    ],
)
def test_kubernetes_own_kinds_are_called_as_before(of: tuple[str, str], ledger: str, kind: str) -> None:
    assert (target(of, "train").ledger, target(of, "train").full_kind) == (ledger, kind)


def test_an_end_is_heard_of_only_where_it_is_watched() -> None:
    assert is_followed(target(("batch/v1", "Job"), "train"))
    assert is_followed(target(("v1", "Pod"), "train"))
    assert not is_followed(target(("flow.example.com/v1", "Pod"), "train"))
    assert not is_followed(target(("training.example.com/v1", "Job"), "train"))


def ledger(name: str, of: tuple[str, str], workload: str, uid: str) -> Availability:
    return Availability(Metadata(name, "default"), AvailabilityStatus(target=LedgerTarget(*of, workload, uid)))


def test_ledgers_with_names_of_before_are_found() -> None:
    job = "training.example.com/v1", "Job"
    before, now = (ledger(name, job, "train", "t") for name in ("job-train", "job.training.example.com-train"))
    batch = ledger("job-train", ("batch/v1", "Job"), "train", "b")
    assert owner_of(before) == owner_of(now) == target(job, "train", "t")
    assert by_owner([before]) == {"t": before}
    assert by_owner([now, before]) == by_owner([before, now]) == {"t": now}
    assert by_owner([batch, now]) == {"b": batch, "t": now}
    assert by_owner([ledger("else", job, "train", "t")]) == {}
