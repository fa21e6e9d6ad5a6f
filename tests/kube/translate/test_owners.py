"""Whose a ledger is, by its name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.takeover import by_owner, owner_of
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.resources.custom_resources import AvailabilityStatus, LedgerTarget
from slacktide.kube.resources.objects import POD, Availability
from slacktide.kube.translate.owners import Owners, Target, is_followed
from support import made_objects

ANY_TEXT = some.text(min_size=1, max_size=30) | some.integers(250, 3_000).map(lambda count: "n" * count)
ANY_KIND = some.tuples(
    some.sampled_from(["v1", "apps/v1", "batch/v1", "x/v1", "example.com/v1", "Not/a Valid"]) | ANY_TEXT,
    some.sampled_from(["Deployment", "deployment", "Job", "job", "Pod", "Not A Kind", "ReplicationController"])
    | ANY_TEXT,
)
"""What a pod may say of its owner, whether there is such an object or not."""
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


@given(ANY_KIND, ANY_TEXT, ANY_KIND, ANY_TEXT)
def test_whatever_a_pod_says_of_its_owner_its_ledger_has_a_name_of_its_own(
    one: tuple[str, str], name: str, other: tuple[str, str], its: str
) -> None:
    first, second = target(one, name), target(other, its)
    for found in (first, second):
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", found.ledger)
        assert len(found.ledger) <= 253
        assert all(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", part) for part in found.ledger.split("."))
    if (first.group, first.kind, name) != (second.group, second.kind, its):
        assert first.ledger != second.ledger or first.full_kind.lower() == second.full_kind.lower()


def test_nobody_is_called_so_that_he_has_the_ledger_of_another() -> None:
    deployment = target(("apps/v1", "Deployment"), "web")
    made_up = [("v1", "Deployment"), ("x/v1", "Deployment"), ("apps/v1", "deployment"), ("x/v1", "web")]
    names = {target(one, "web").ledger for one in made_up}
    assert len(names) == len(made_up)
    assert deployment.ledger == "deployment-web"
    assert deployment.ledger not in names
    long = target(("apps/v1", "Deployment"), "d" * 250)
    for hashed in (*names, long.ledger):
        kind, _, rest = hashed.partition("-")
        assert target(("apps/v1", kind.title()), rest).ledger != hashed


def test_an_owner_with_a_name_of_a_megabyte_has_a_short_one_of_its_own() -> None:
    owners = Owners()
    found = []
    for end in ("a", "b"):
        owner = {
            "apiVersion": "x/v1",
            "kind": "K",
            "name": "n" * 1_000_000 + end,
            "uid": "u" * 5_000,
            "controller": True,
        }
        body = {"metadata": {"name": "p", "namespace": "default", "uid": "p", "ownerReferences": [owner]}, "spec": {}}
        pod = Lightening()(made_objects.decoded(POD, body))
        assert len(pod.metadata.owner_references[0].name) <= 253
        one = owners.target_of(pod.metadata)
        assert one == owners.target_of(made_objects.decoded(POD, body).metadata)
        assert one is not None
        assert len(one.key) < 800
        found.append(one)
    assert found[0].key != found[1].key
    assert found[0].ledger != found[1].ledger


def test_names_that_differ_only_at_their_ends() -> None:
    first, second = (target(("apps/v1", "Deployment"), "d" * 250 + end) for end in ("a", "b"))
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


def test_a_ledger_is_known_by_its_name_and_what_it_says_of_its_workload() -> None:
    job = "training.example.com/v1", "Job"
    found, misnamed = (ledger(name, job, "train", "t") for name in ("job.training.example.com-train", "job-train"))
    batch = ledger("job-train", ("batch/v1", "Job"), "train", "b")
    assert owner_of(found) == target(job, "train", "t")
    assert owner_of(misnamed) is None
    assert by_owner([batch, misnamed, found]) == {"b": batch, "t": found}
