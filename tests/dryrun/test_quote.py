"""What a quote reads of a file; what it says of a cluster is looked at in ``cluster/test_explain_top.py``."""

from __future__ import annotations

import pytest

from slacktide.dryrun.quote import Asked, workloads
from slacktide.errors import InputError

TEMPLATE = "template: {metadata: {labels: {a: b}}, spec: {containers: []}}"


def asked(text: str) -> list[tuple[str, str, int]]:
    return [(one.namespace, one.name, one.count) for one in workloads(text, "file.yaml")]


def test_pods_and_templates_are_found_with_their_counts() -> None:
    text = f"""
{{kind: Namespace, metadata: {{name: shop}}}}
---
{{kind: Pod, metadata: {{name: one, namespace: shop}}, spec: {{containers: []}}}}
---
{{kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 3, {TEMPLATE}}}}}
---
{{kind: Job, metadata: {{name: once}}, spec: {{parallelism: 2, {TEMPLATE}}}}}
---
{{kind: CronJob, metadata: {{name: nightly}}, spec: {{jobTemplate: {{spec: {{{TEMPLATE}}}}}}}}}
"""
    assert asked(text) == [("shop", "one", 1), ("", "web", 3), ("", "once", 2), ("", "nightly", 1)]


def test_a_list_is_what_it_holds() -> None:
    text = f"{{kind: List, items: [{{kind: StatefulSet, metadata: {{name: db}}, spec: {{{TEMPLATE}}}}}]}}"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    assert workloads(text, "file.yaml") == [Asked("", "db", template, 1)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "file.yaml: kind: expected a Pod, or a workload with a pod template"),
        ("just text", "a Pod, or a workload"),
        ("kind: Deployment", "a Pod, or a workload"),
        ("kind: Deployment\nspec: [1]", "a Pod, or a workload"),
        ("a: [", "file.yaml:1"),
        (f"{{kind: Deployment, spec: {{replicas: three, {TEMPLATE}}}}}", "replicas: found 'three', expected a whole"),
    ],
)
def test_what_has_no_pods_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=r"file\.yaml") as refused:
        workloads(text, "file.yaml")
    assert says in str(refused.value)
