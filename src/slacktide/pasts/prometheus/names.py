"""Series of kube-state-metrics: their names, how they are selected, and what their labels and resources stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from slacktide.errors import InputError, Problem

_MATCHER = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(,|$)')
NAMESPACED = ("namespace", "exported_namespace")
TARGET = ("job", "instance", "service", "endpoint", "container", "pod")
"""Labels of whoever is scraped: kube-scheduler has others than kube-state-metrics."""
OF_NODES = "kube_node_"
OF_SCHEDULER = ("kube_pod_resource_request", "scheduler_preemption_victims_sum")
NEEDED = ("kube_pod_info", "kube_node_status_allocatable")
REQUESTS = ("kube_pod_container_resource_requests", "kube_pod_resource_request")
GIVES = {
    "kube_pod_created": "when pods were created: they count from their binding on, and waited for nothing",
    "kube_pod_status_scheduled_time": "when pods were bound, to the second: it is known to the interval of scrapes",
    "kube_pod_status_ready": "when pods were ready: a pod that is bound counts as delivered",
    "kube_pod_status_phase": "which pods ended, and how: they count until they are deleted",
    "kube_replicaset_owner": "which Deployment a ReplicaSet is of: each ReplicaSet is a workload of its own",
    "kube_deployment_spec_replicas": "how many pods a Deployment wanted: those that it had count",
    "kube_statefulset_replicas": "how many pods a StatefulSet wanted: those that it had count",
    "kube_node_status_condition": "when nodes were ready: they count as ready while they are listed",
    "kube_node_created": "when nodes were created, to the second",
    "kube_node_spec_taint": "taints of nodes",
    "kube_node_labels": "labels of nodes, such as their zones (--metric-labels-allowlist=nodes=[*])",
    "kube_pod_labels": "labels of pods, so no promise can be given by label (--metric-labels-allowlist=pods=[*])",
    "kube_pod_resource_request": "priorities (kube-scheduler's /metrics/resources is not scraped): they count as 0",
}
"""What is not known where a series is missing."""
_DOMAIN = re.compile(r"(?P<domain>(?:[a-z0-9]+_)+(?:io|com|org|net|dev|ai|cloud|sh))_(?P<name>.+)")
_NAMES = {
    one.replace("-", "_"): one
    for one in (
        "instance-type", "part-of", "managed-by", "pod-template-hash", "job-name", "controller-uid", "node-pool",
        "capacity-type", "pod-index", "controller-revision-hash",
    )
}  # fmt: skip
_PLAIN = {"pod_template_hash": "pod-template-hash", "ephemeral_storage": "ephemeral-storage"}


def scraped(metric: str) -> str:
    """Who is asked for a series."""
    return "kube-scheduler" if metric in OF_SCHEDULER else "kube-state-metrics"


def matchers(match: str) -> list[tuple[str, str]]:
    """Label matchers as (label, the whole matcher). Raises :class:`InputError`."""
    found, at = [], 0
    text = match.strip().removeprefix("{").removesuffix("}")
    while text[at:].strip():
        one = _MATCHER.match(text, at)
        if one is None:
            raise InputError([
                Problem("--match", 0, "", text[at:].strip(), 'matchers such as cluster="prod",namespace=~"team-.*"')
            ])  # fmt: skip
        found.append((one[1], f"{one[1]}{one[2]}{one[3]}"))
        at = one.end()
    return found


@dataclass(slots=True)
class Names:
    """How series are asked for: ``exported`` are labels that Prometheus renamed, as the target has some of that name;
    by job: kube-state-metrics' and kube-scheduler's. ``known`` are the series that there are."""

    match: list[tuple[str, str]]
    known: frozenset[str] = frozenset()
    exported: dict[str, frozenset[str]] = field(default_factory=dict)

    def has(self, metric: str) -> bool:
        """Whether there are such series."""
        return metric in self.known

    def label(self, metric: str, label: str) -> str:
        """What a label of a series is called there."""
        renamed = f"exported_{label}"
        return renamed if renamed in self.exported.get(scraped(metric), ()) else label

    def select(self, metric: str, *more: str) -> str:
        """The selector of a series, as ``--match`` restricts it."""
        said = [whole for label, whole in self.match if self._concerns(metric, label)]
        return f"{metric}{{{','.join(one for one in (*said, *more) if one)}}}"

    @staticmethod
    def _concerns(metric: str, label: str) -> bool:
        if metric.startswith(OF_NODES) and label in NAMESPACED:
            return False
        return not (metric in OF_SCHEDULER and label in TARGET)

    def by(self, metric: str, labels: Iterable[str], how: str = "max") -> str:
        """The beginning of an aggregation that leaves only these labels: no other leaves the server."""
        return f"{how} by({','.join(self.label(metric, one) for one in labels)})"

    def among(self, metric: str, label: str, values: Iterable[str]) -> str:
        """The matcher for one of these values."""
        said = "|".join(re.escape(one).replace("\\-", "-") for one in values).replace("\\", "\\\\").replace('"', '\\"')
        return f'{self.label(metric, label)}=~"{said}"'


def resource(name: str) -> str:
    """A resource by its name in kube-state-metrics, where all but letters, digits and _ became _."""
    if name.startswith("hugepages_"):
        return name.replace("_", "-", 1)
    return _PLAIN.get(name) or _with_domain(name)


def label_key(name: str) -> str:
    """A label's key by its name there, without the prefix; of what cannot be told apart the usual one."""
    return _PLAIN.get(name) or _with_domain(name)


def _with_domain(name: str) -> str:
    found = _DOMAIN.fullmatch(name)
    if found is None:
        return name
    rest = found["name"]
    return f"{found['domain'].replace('_', '.')}/{_NAMES.get(rest, rest)}"


def quantity_text(resource_name: str, value: float) -> str:
    """A value as a quantity of Kubernetes."""
    return f"{round(value * 1000)}m" if resource_name == "cpu" else f"{round(value)}"
