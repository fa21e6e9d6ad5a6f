"""Features of kubelets that a pod needs and nodes declare, as kube-scheduler 1.36 infers them from the pod's spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from slacktide.kube.resources.objects import Pod
from slacktide.model.constraint import Condition, Constraint

RESTARTS_ALL = "RestartAllContainers"
DECLARED = "status.declaredFeatures:"
"""Attributes of hosts that begin so are declared features."""


def declared(features: Iterable[str]) -> dict[str, str]:
    """A node's features as attributes."""
    return {f"{DECLARED}{name}": "true" for name in features}


def needed_features(pod: Pod) -> tuple[str, ...]:
    """The features without which a node cannot run the pod as it is meant."""
    return tuple(_needed(pod))


def feature_conditions(pod: Pod) -> tuple[Condition, ...]:
    """The nodes that declare what the pod needs."""
    return tuple(Constraint(f"{DECLARED}{name}", "exists") for name in needed_features(pod))


def _needed(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    rules = (rule for one in (*spec.containers, *spec.init_containers) for rule in one.restart_policy_rules)
    if any(rule.action == RESTARTS_ALL for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"
