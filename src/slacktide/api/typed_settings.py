"""Settings as keywords, with their types; written by tests/support/typed_settings.py, do not edit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, SupportsIndex, TypedDict

import numpy as np

from slacktide.model import Network, ServiceClass


class Settings(TypedDict, total=False):
    """Every setting by section and key: ``policy_patience`` is ``policy.patience`` (docs/settings.md)."""

    classes: Sequence[ServiceClass | Mapping[str, Any]]
    policy_name: str | os.PathLike[str]
    policy_preempt_when: Literal["needed", "better"]
    policy_patience: float | str | timedelta | np.timedelta64 | np.number[Any]
    policy_overload: Literal["share", "triage", "plan"]
    policy_savable: float | str | timedelta | np.timedelta64 | np.number[Any]
    policy_overload_patience: float | str | timedelta | np.timedelta64 | np.number[Any]
    policy_recovery: float | str | timedelta | np.timedelta64 | np.number[Any]
    policy_floor: float | str | np.number[Any]
    policy_queue_order: Literal["importance", "metric"]
    policy_victim_order: Literal["importance", "metric"]
    policy_victims: Literal["same-pass", "next-pass"]
    policy_reprieve: bool | np.bool_
    policy_score: str | Callable[..., float]
    policy_cost: str | Callable[..., None]
    policy_overhead_scope: Literal["same-or-more-important", "same-class", "all", "none"]
    policy_overhead_limit: float | str | np.number[Any] | None
    policy_added_overhead: float | np.number[Any]
    policy_min_running: float | str | timedelta | np.timedelta64 | np.number[Any]
    policy_queue_limit: SupportsIndex
    policy_equals: Literal["admission", "kube-scheduler"]
    policy_gang: bool | np.bool_
    qos_alpha: float | str | timedelta | np.timedelta64 | np.number[Any]
    qos_margin: float | str | timedelta | np.timedelta64 | np.number[Any] | None
    qos_startup: Literal["restart", "always", "never"]
    delay_alpha: float | str | np.number[Any]
    delay_phi: float | str | np.number[Any]
    delay_tolerance: float | str | timedelta | np.timedelta64 | np.number[Any]
    delay_context_switch: float | str | timedelta | np.timedelta64 | np.number[Any]
    delay_competition: float | str | timedelta | np.timedelta64 | np.number[Any]
    delay_grants: bool | np.bool_
    delay_processing: float | np.number[Any]
    delay_transfer: float | np.number[Any]
    delay_memory_per_cpu: float | np.number[Any]
    delay_fetching: float | np.number[Any]
    delay_keep_images: bool | np.bool_
    delay_network: str | os.PathLike[str] | Network | None
    scheduler_watchdog: float | str | timedelta | np.timedelta64 | np.number[Any]
    scheduler_crossings: bool | np.bool_
    scheduler_triggers: str | os.PathLike[str] | None
    startup_hot: str | os.PathLike[str]
    startup_cold: str | os.PathLike[str]
    failures_file: str | os.PathLike[str] | None
    failures_uptime: str | os.PathLike[str] | None
    failures_downtime: str | os.PathLike[str]
    simulation_end: float | str | timedelta | np.timedelta64 | np.number[Any] | None
    simulation_seed: SupportsIndex
    simulation_epoch: str | os.PathLike[str]
    simulation_ignore: Literal["nothing", "constraints"]
    simulation_preempted_work: Literal["by-kind", "kept", "lost"]
    simulation_recreation: float | str | timedelta | np.timedelta64 | np.number[Any]
    simulation_batch_recreation: str | os.PathLike[str] | None
    simulation_grace: str | os.PathLike[str]
    optimize_shared_evaluations: bool | np.bool_
    optimize_equivalence_tolerance: float | str | timedelta | np.timedelta64 | np.number[Any]
    optimize_relaxed_randomization: float | str | np.number[Any]
    optimize_queue_pruning: bool | np.bool_
    kube_scheduler_name: str | os.PathLike[str]
    kube_all_nodes: bool | np.bool_
    kube_node_label: str | os.PathLike[str]
    kube_node_taint: str | os.PathLike[str]
    kube_qps: float | np.number[Any]
    kube_burst: SupportsIndex
    kube_bindings: SupportsIndex
    kube_pass_budget: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_event_qps: float | np.number[Any]
    kube_ledger_qps: float | np.number[Any]
    kube_watch_seconds: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_leader_election: bool | np.bool_
    kube_lease_namespace: str | os.PathLike[str]
    kube_lease_name: str | os.PathLike[str]
    kube_lease_duration: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_backoff_first: float | np.number[Any]
    kube_backoff_longest: float | np.number[Any]
    kube_victim_patience: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_resize_patience: float | str | timedelta | np.timedelta64 | np.number[Any] | None
    kube_disruption_budgets: Literal["hard", "last-resort", "best-effort"]
    kube_vacancy: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_startup_allowance: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_learn_startup: bool | np.bool_
    kube_creation_allowance: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_ledger_memory: float | str | timedelta | np.timedelta64 | np.number[Any]
    kube_ledger_memories: SupportsIndex
    kube_metrics_workloads: SupportsIndex
    kube_priority_classes: str | os.PathLike[str] | None
    kube_critical_namespaces: str | os.PathLike[str] | None
    kube_preempt_system_pods: bool | np.bool_
    kube_daemon_sets: Literal["system", "services"]
    kube_added_affinity: str | os.PathLike[str] | None
    kube_default_spread: str | os.PathLike[str] | None
    kube_profiles: str | os.PathLike[str] | None
    kube_site_label: str | os.PathLike[str]
    kube_network_resource: str | os.PathLike[str]
    kube_latency_stale: float | np.number[Any]
    kube_access_url: str | os.PathLike[str] | None
    kube_access_query: str | os.PathLike[str] | None
    kube_access_interval: float | np.number[Any]
    kube_listen: str | os.PathLike[str] | None
    kube_http_access: Literal["delegated", "loopback"]
    kube_tls_certificate: str | os.PathLike[str] | None
    kube_tls_key: str | os.PathLike[str] | None
