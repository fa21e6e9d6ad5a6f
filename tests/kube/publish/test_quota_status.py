"""What the status of a PromiseQuota says."""

from __future__ import annotations

import pytest

from slacktide.kube.client.quantities import NANO, cpu_text, memory_text
from slacktide.kube.publish.statuses import status_of
from slacktide.kube.resources.custom_resources import HardLimits, PromiseQuota, PromiseQuotaSpec
from slacktide.kube.resources.objects import Metadata
from slacktide.kube.translate.disruption_budgets import Quota, Quotas

GIB = 2**30 * NANO


def test_amounts_are_written_as_people_write_them() -> None:
    assert [cpu_text(one) for one in (0, NANO, 3 * NANO // 2, 1, 999 * NANO + 1)] == [
        "0",
        "1",
        "1500m",
        "1m",
        "999001m",
    ]
    assert [memory_text(one) for one in (0, 3 * GIB, GIB // 2, 2**10 * NANO, 1, 1000 * NANO)] == [
        *("0", "3Gi", "512Mi", "1Ki", "1", "1000"),
    ]  # fmt: skip


def quota(cpu: str, workloads: int | None = None) -> PromiseQuota:
    spec = PromiseQuotaSpec("gold", HardLimits(cpu=cpu, workloads=workloads))
    return PromiseQuota(Metadata("q", "shop", generation=7), spec)


@pytest.mark.parametrize(
    ("used", "refused", "expected"),
    [
        ((NANO, GIB, 1), 0, ("False", "WithinLimits", "all pods have their promise")),
        ((NANO, GIB, 1), 1, ("True", "PodsRefused", "1 pod is waiting without a promise, as the quota is used up")),
        ((NANO, GIB, 1), 3, ("True", "PodsRefused", "3 pods are waiting without a promise, as the quota is used up")),
        ((3 * NANO, GIB, 9), 0, ("True", "AboveLimit", "more cpu, workloads is used than the quota allows")),
    ],
)
def test_it_says_what_is_used_and_whether_that_is_all(
    used: tuple[int, int, int], refused: int, expected: tuple[str, str, str]
) -> None:
    found, limits = quota(cpu="2", workloads=4), Quota("q", 2 * NANO, None, 4)
    said = status_of(found, limits, used, refused, has_class=True)
    assert (said.observed_generation, said.hard) == (7, {"cpu": "2", "workloads": "4"})
    assert (said.used.memory, said.used.workloads, said.refused) == ("1Gi", used[2], refused)
    enforced, exhausted = said.conditions
    assert (enforced.type, enforced.status, enforced.reason) == ("Enforced", "True", "Enforced")
    assert (exhausted.type, exhausted.status, exhausted.reason) == ("Exhausted", *expected[:2])
    assert exhausted.message.startswith(expected[2])


def test_it_says_why_it_is_not_enforced() -> None:
    quotas = Quotas()
    assert quotas.see(quota(cpu="much"))
    (limits,) = quotas.of("shop", "gold")
    enforced = status_of(quota(cpu="much"), limits, (0, 0, 0), 0, has_class=True).conditions[0]
    assert (enforced.status, enforced.reason) == ("False", "UnreadableLimit")
    assert enforced.message.startswith("spec.hard.cpu: found 'much', expected a Kubernetes quantity")
    enforced = status_of(quota(cpu="1"), Quota("q", NANO), (0, 0, 0), 0, has_class=False).conditions[0]
    assert (enforced.status, enforced.reason) == ("False", "NoSuchClass")
    assert enforced.message == "service class 'gold' does not exist"


def test_a_status_that_is_written_is_no_news() -> None:
    quotas = Quotas()
    assert quotas.see(quota(cpu="1"))
    assert not quotas.see(quota(cpu="1"))
    assert quotas.see(quota(cpu="2"))
    quotas.drop("shop", "q")
    assert quotas.see(quota(cpu="2"))


def test_who_is_refused_reads_the_limit_as_its_author_wrote_it() -> None:
    quota = Quota("q", cpu=3 * NANO // 2, memory=64 * 2**30 * NANO, workloads=3)
    assert "allows 1500m cpu times promise" in quota.reason("cpu")
    assert "allows 64Gi memory times promise" in quota.reason("memory")
    assert "it allows 3 workloads" in quota.reason("workloads")
