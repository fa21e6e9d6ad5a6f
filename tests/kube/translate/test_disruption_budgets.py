"""Which PodDisruptionBudget a pod has."""

from __future__ import annotations

from slacktide.kube.resources.objects import POD_DISRUPTION_BUDGET, Pod, PodDisruptionBudget
from slacktide.kube.translate.disruption_budgets import SEVERAL, Budgets
from support.made_objects import decoded, pod


def budget(name: str, app: str, namespace: str = "default") -> PodDisruptionBudget:
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": 1},
    }
    return decoded(POD_DISRUPTION_BUDGET, body)


def web() -> Pod:
    return pod(name="web", uid="web", namespace="default", labels={"app": "web"})


def test_a_pod_of_two_budgets_has_neither() -> None:
    budgets = Budgets()
    assert budgets.of(web()) == ""
    budgets.see(budget("one", "web"))
    budgets.see(budget("other", "db"))
    budgets.see(budget("elsewhere", "web", "another"))
    assert budgets.of(web()) == "default/one"
    budgets.see(budget("two", "web"))
    assert budgets.of(web()) == SEVERAL
    assert budgets.left(None) == 0
    budgets.drop("default", "one")
    assert budgets.of(web()) == "default/two"
