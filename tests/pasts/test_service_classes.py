"""A cluster that has ServiceClasses already: they are what is proposed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slacktide.pasts import anonymous, object_files, outcome, promises
from support.made_past import Json, deployment, listed, node, pod

LABEL, DEFAULT = "slacktide.io/class", "slacktide.io/default-class"


def service_class(name: str, slo: float, rank: int, **more: Any) -> Json:
    spec = {"slo": slo, "rank": rank, "namespaces": ["*"], **more}
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name}, "spec": spec}


def workload(name: str, label: str = "", slo: str = "", namespace: str = "shop", **more: Any) -> list[Json]:
    one = pod(f"{name}-x", name, "a", ready=-390.0, cpu="100m", namespace=namespace, **more)
    if label:
        one["metadata"]["labels"][LABEL] = label
    if slo:
        one["metadata"]["annotations"]["slacktide.io/slo"] = slo
    return [*deployment(name, 1, namespace=namespace), one]


def cluster(*more: Json) -> list[Json]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data", "labels": {DEFAULT: "gold"}}},
        *workload("plain"), *workload("cart", "silver"), *workload("own", "silver", "0.9"),
        *workload("queue", namespace="data"), *workload("closed", "mine"), node("a"),
        service_class("silver", 0.95, 7), service_class("gold", 0.98, 3),
        service_class("mine", 0.97, 1, namespaces=["others"]), *more,
    ]  # fmt: skip


def proposed(tmp_path: Path, objects: list[Json], way: str = "", *, anonymize: bool = False) -> dict[str, Any]:
    """What the written file promises each workload."""
    path = tmp_path / "now.json"
    path.write_text(json.dumps(listed(*objects)))
    story = object_files.story([path])
    made = outcome.write(anonymous.anonymized(story) if anonymize else story, tmp_path / "out")
    promises.propose_in(tmp_path / "out", made.workloads, way)
    found = promises.read(tmp_path / "out" / promises.FILE)
    of = {one.name: found.of(one) for one in outcome.read_workloads(tmp_path / "out")}
    return {name: one and (one.name, one.slo, one.rank) for name, one in of.items()}


@pytest.mark.parametrize("way", ["", f"label={LABEL}"])
def test_service_classes_of_the_cluster_are_proposed(tmp_path: Path, way: str) -> None:
    """By label, own SLO and default of the namespace; who has no class, or may not use it, comes last."""
    last = ("no-class", 0.999, 8)
    assert proposed(tmp_path, cluster(), way) == {
        "plain": last, "cart": ("silver", 0.95, 7), "own": ("silver-0.9", 0.9, 7), "queue": ("gold", 0.98, 3),
        "closed": last,
    }  # fmt: skip


def test_whoever_has_the_label_is_not_told_to_set_it(tmp_path: Path) -> None:
    proposed(tmp_path, cluster())
    lines = promises.ways(promises.read(tmp_path / "out" / promises.FILE))
    assert "label pod templates of all others with slacktide.io/class: no-class" in lines
    assert not any("label slacktide.io/class=silver" in one for one in lines)


def test_a_default_class_of_the_cluster_is_for_all_others(tmp_path: Path) -> None:
    found = proposed(tmp_path, cluster(service_class("bronze", 0.9, 9, default=True)))
    assert (found["plain"], found["cart"]) == (("bronze", 0.9, 9), ("silver", 0.95, 7))


def test_critical_pods_of_the_system_stay_before_all(tmp_path: Path) -> None:
    system = workload("dns", namespace="kube-system", priority=2_000_000_000, priority_class="system-cluster-critical")
    assert proposed(tmp_path, cluster(*system))["dns"] == ("system-critical", 0.999, 1)


def test_another_way_is_by_the_data(tmp_path: Path) -> None:
    assert {one[0] for one in proposed(tmp_path, cluster(), "namespace").values()} == {"shop", "data"}


def test_anonymous_the_classes_are_the_same(tmp_path: Path) -> None:
    found = proposed(tmp_path, cluster(), anonymize=True)
    assert sorted(one[1:] for one in found.values()) == [(0.95, 7), (0.95, 7), (0.98, 3), (0.999, 8), (0.999, 8)]


def test_whoever_lacks_the_label_is_not_the_most_important(tmp_path: Path) -> None:
    objects = [*workload("plain", priority=1000), *workload("cart", "silver"), node("a")]
    found = proposed(tmp_path, objects, f"label={LABEL}")
    assert {name: (one[0], one[2]) for name, one in found.items()} == {"cart": ("silver", 1), "plain": ("none", 2)}
