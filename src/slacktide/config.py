"""One list of settings with their units and defaults, for the simulator and the live scheduler.

Sections are frozen dataclasses; :mod:`slacktide.settings` reads them from files
and from ``SECTION.KEY=VALUE`` words, refuses unknown keys, and has msgspec check types and ranges.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from msgspec import Meta

from slacktide.model import DEFAULT_CLASSES, ServiceClass
from slacktide.model.window import EPOCH

Accounting = Literal["restart", "always", "never"]
PresetName = Literal["recommended", "published", "published-tuned"]

LONGEST = 2.0**33  # seconds; times are exact up to here (docs/semantics.md)
LARGEST = sys.float_info.max  # a bound that excludes infinity only
# "written" says in which other ways a number may be written (slacktide.model.written).
Seconds = Annotated[float, Meta(ge=0, le=LONGEST, extra={"written": "duration"})]
Instant = Annotated[float, Meta(gt=0, le=LONGEST, extra={"written": "duration"})]
Share = Annotated[float, Meta(ge=0, le=1, extra={"written": "share"})]
SomeShare = Annotated[float, Meta(gt=0, le=1, extra={"written": "share"})]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
SomeAmount = Annotated[float, Meta(gt=0, le=LARGEST)]
Work = Annotated[float, Meta(ge=0, le=1e15)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Text = Annotated[str, Meta(min_length=1)]
"""Of settings of type ``str`` an empty text says something: there is none."""

TUNED_LIMIT = 0.02
"""The overhead limit of ``published-tuned``: the best one of bench/overhead_limit.py (docs/validation.md)."""


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """How decisions are taken. Defaults: the recommended settings."""

    name: Text = "qos-driven"
    """``qos-driven``, ``priority``, ``hybrid``, an entry point's name, or ``file.py:Class``; or a score
    (``delay-aware``, ``elastic-fog``, ``tsra``, ``nas``, ``kcss``, ``least-requested``): in order of admission, without
    preemption, by it."""
    preempt_when: Literal["needed", "better"] = "needed"
    """``better``: preempt whoever has the larger metric (the papers); ``needed``: only for one below its margin."""
    patience: Seconds = 60.0
    """How much slack a swap between equals below their margins must gain."""
    overload: Literal["share", "triage", "plan"] = "plan"
    """Where capacity does not suffice (docs/overload.md): spread what lacks over all (``share``, the papers), or give
    some promises up, in each pass (``triage``) or, for services, planned ahead (``plan``). The latter two need both
    orders to be ``importance``."""
    savable: Seconds = 40.0
    """``triage``: how far below 0 slack may be while the promise counts as one that can still be kept."""
    overload_patience: Seconds = 400.0
    """``triage``: how far above its margin (at least ``patience``) an instance gives its place to an equal that is
    lost."""
    recovery: Seconds = 3600.0
    """``triage``: within what time a class must make up for ``savable`` to count as one that recovers. In others the
    lost may take the place of anybody less important."""
    floor: Share = 0.05
    """``triage``: below this share of its promise one that is given up is served all the same, in a class that
    recovers; 0: some may get nothing."""
    queue_order: Literal["importance", "metric"] = "importance"
    """Who is served first: those below their margin, the most important first, then the others by slack
    (``importance``), or all by slack (``metric``)."""
    victim_order: Literal["importance", "metric"] = "importance"
    """Who goes first: ``importance`` mirrors the queue's order (as the published simulator's log), ``metric`` is by
    decreasing metric (as the papers say)."""
    victims: Literal["same-pass", "next-pass"] = "same-pass"
    """``same-pass``: victims may take free capacity at the end of the pass that preempted them."""
    reprieve: bool = True
    """Victims stay without whom there is room as well, the last chosen asked first, as in kube-scheduler."""
    score: Text = "default"
    """Allocation score: ``default`` (``balanced``; ``mean`` for priority; ``packed`` while a plan is in force),
    ``least-requested``, ``balanced``, ``mean``, ``packed``, ``delay-aware``, ``elastic-fog``, ``tsra``, ``nas``,
    ``kcss``, an entry point's name, or ``file.py:function``."""
    cost: Text = "fewest-victims"
    """Preemption cost: ``fewest-victims``, ``slack`` (the papers'), ``default`` (qos-driven's is ``slack``, priority's
    ``fewest-victims``), or as for ``score``."""
    overhead_scope: Literal["same-or-more-important", "same-class", "all", "none"] = "same-or-more-important"
    """Victims to which the overhead limit applies, seen from the one that preempts (da Silva et al. 2020:
    ``same-class``)."""
    overhead_limit: Share | None = None
    """Largest preemption overhead at which an instance may be preempted by its peers, of classes that name none;
    ``None``: 1 - slo (the papers)."""
    added_overhead: Annotated[float, Meta(ge=-1, le=1)] = 0.0
    """Added to the overhead limit of every class (``EXTRA_OVERHEAD`` of the thesis's simulator)."""
    min_running: Seconds = 0.0
    """How long after its start an instance is not preempted."""
    queue_limit: Count = 100
    """``hybrid``: QoS-driven while at most this many wait, by priority above."""
    equals: Literal["admission", "kube-scheduler"] = "admission"
    """``priority``: the order of equally important ones. ``admission``: who was admitted first is served first and
    preempted last (the papers). ``kube-scheduler``: those that wait take turns by backoff, and who started last is
    preempted first (docs/semantics.md)."""
    gang: bool = False
    """Start the waiting instances of a concurrent request all in one pass or not at all."""


@dataclass(frozen=True, slots=True)
class QosSettings:
    """The metric (docs/metric.md)."""

    alpha: Seconds = 22.37107
    """The longest start that you expect, of classes and workloads that say nothing of it (default: the published
    simulator's)."""
    margin: Seconds | None = None
    """Safety margin phi of every class; ``None``: each class's own."""
    startup: Accounting = "restart"
    """Accounting of start-up time that decisions use; results carry all three."""


@dataclass(frozen=True, slots=True)
class DelaySettings:
    """Delay-aware placement. Defaults: for tens of instances a host (docs/edge-cluster.md); the preset ``published``
    has the paper's."""

    alpha: Share = 0.5
    """Weight of the processing delay against the network delay, 0 to 1 (equation 3)."""
    phi: SomeShare = 0.5
    """Largest share of a host's residual amount that one instance is granted (equation 9)."""
    tolerance: Seconds = 0.001
    """Lambda (equation 17): hosts whose delay is at most so much above the least are as good."""
    context_switch: Seconds = 2e-6
    """Beta_cs (equation 18): what a host costs that serves somebody already."""
    competition: Seconds = 0.0
    """Beta_rc (equation 18), doubled with each further instance on the host."""
    grants: bool = False
    """Score ``delay-aware``: take what is granted from a host (equations 14 to 16), not only what is demanded."""
    processing: Work = 1.0
    """CPU-seconds that a unit of data takes (equation 8)."""
    transfer: Work = 1.0
    """What a unit of data is of resource ``network`` times a second (equation 10)."""
    memory_per_cpu: Amount = 0.0
    """Memory that is worth one CPU where residuals are compared (algorithm 2, line 17), in the files' units, live in
    GiB; 0: as all hosts have."""
    fetching: Amount = 0.001
    """Weight of the time to fetch an image, paid once, against delays of every exchange with a user."""
    keep_images: bool = True
    """An image that an instance needed is present on its host from then on."""
    network: Text | None = None
    """A file of places, distances and images (docs/formats.md); ``None``: all at one place, live as NodeLatencies
    say."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """When passes happen."""

    watchdog: Instant = 10.0
    """The longest time between two passes while somebody waits."""
    crossings: bool = False
    """A pass as well when the slack of somebody who waits meets its margin (docs/semantics.md). On a cluster on, but
    for the papers' settings."""
    triggers: Text | None = None
    """Simulator: a file of the only seconds at which passes happen, to repeat a live run."""


@dataclass(frozen=True, slots=True)
class StartupSettings:
    """Start-up delays: ``constant:S``, ``uniform:A,B``, ``normal:MEAN,SD``, ``lognormal:MEDIAN,SIGMA``,
    ``exponential:MEAN``, or a file of measured values."""

    hot: Text = "constant:2.5"
    """On a host where the instance ran before."""
    cold: Text = "constant:5.5"
    """On any other host."""


@dataclass(frozen=True, slots=True)
class FailureSettings:
    """What happens to hosts: from ``file``, or failures drawn (distributions as for start-up) where ``uptime`` is
    given."""

    file: Text | None = None
    """A CSV file of host events (docs/formats.md)."""
    uptime: Text | None = None
    """How long a host is up before it fails; ``None``: none fails but by the file."""
    downtime: Text = "constant:600"
    """How long a host that failed is down."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """What belongs to a run in the simulator only."""

    end: Instant | None = None
    """The run ends at this second; ``None``: when everything has completed."""
    seed: Count = 0
    """Of everything drawn; equal seeds give equal results."""
    epoch: Text = EPOCH
    """The instant of second 0, as RFC 3339 has it, for calendar windows and times of day and week."""
    ignore: Literal["nothing", "constraints"] = "nothing"
    """``constraints``: as if no request had conditions on hosts, anti-affinity, or rules about neighbours."""
    preempted_work: Literal["by-kind", "kept", "lost"] = "by-kind"
    """What a stopped instance had done is kept, or lost; ``by-kind``: kept for services, lost for batch requests."""
    recreation: Seconds = 0.0
    """From an eviction to the arrival of the next incarnation."""
    batch_recreation: Text | None = None
    """The same of batch requests, which a controller of Jobs holds back for longer and longer: a distribution as for
    start-up, or a file of measured seconds; ``None``: ``recreation``."""
    grace: Text = "constant:1"
    """Share of its grace period that a preempted instance takes: a distribution, or a file of measured shares.
    Decisions reckon with the whole."""


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """Published ways to do less work. The first never changes a decision, the others may."""

    shared_evaluations: bool = True
    """Within a pass, requests of equal demand and class share their host evaluations."""
    equivalence_tolerance: Seconds = 0.0
    """How near the metrics of equal requests must be to count as one."""
    relaxed_randomization: SomeShare = 1.0
    """Stop looking once this share of hosts proved feasible, in random order; below 1 only with ``shared_evaluations``
    false and ``equivalence_tolerance`` 0."""
    queue_pruning: bool = False
    """After a failure skip later requests that ask for at least as much."""


@dataclass(frozen=True, slots=True)
class KubeSettings:
    """The live scheduler (``slacktide run``)."""

    scheduler_name: Text = "slacktide"
    """``schedulerName`` of the pods that it schedules. Change it where a cluster has several of these schedulers."""
    all_nodes: bool = False
    """Take every node, where no other scheduler preempts."""
    node_label: str = "node-restriction.kubernetes.io/slacktide=true"
    """Take nodes with this label (``KEY=VALUE`` or ``KEY``). Change it where node pools have a label already."""
    node_taint: str = ""
    """Also take nodes with a taint of this key, which a kubelet can give itself; empty: none."""
    qps: Amount = 0.0
    """Requests a second to the API server, leases and events apart; 0: no limit. Set it where the API server is
    small."""
    burst: Annotated[int, Meta(ge=1, le=2**31)] = 100
    """Requests beyond ``qps`` that may go out at once; set it with that."""
    bindings: Annotated[int, Meta(ge=1, le=4096)] = 64
    """Bindings and evictions under way at once. Lower it where the API server answers 429."""
    pass_budget: Annotated[float, Meta(ge=0, le=LARGEST, extra={"written": "duration"})] = 0.005
    """How long a pass runs before leases, bindings and HTTP have their turn. Raise it where passes over thousands of
    pods are to end sooner."""
    event_qps: Amount = 0.0
    """Events written a second; 0: no limit. Set it where events of all components share a small etcd."""
    ledger_qps: SomeAmount = 100.0
    """Availability objects written a second, each at most once. Raise it where ``slacktide_ledger_pending`` grows."""
    watch_seconds: Annotated[float, Meta(ge=5, le=86_400, extra={"written": "duration"})] = 600.0
    """Longest time of a watch (docs/live.md). Lower it where a proxy cuts connections sooner."""
    leader_election: bool = True
    """Act only while holding the lease. Turn it off for a single replica under development."""
    lease_namespace: Text = "slacktide-system"
    """Namespace of the Lease by which replicas agree who acts: that of the installation."""
    lease_name: Text = "slacktide"
    """Its name. Change it where a namespace has several of these schedulers."""
    lease_duration: Annotated[float, Meta(ge=3, le=LARGEST, extra={"written": "duration"})] = 15.0
    """How long a lease holds that is not renewed. Raise it where leaders change because the API server is slow."""
    backoff_first: SomeAmount = 1.0
    """Seconds a pod waits after its first failed binding or eviction, doubled with each (``podInitialBackoffSeconds``).
    Raise it where webhooks or quotas refuse many bindings."""
    backoff_longest: SomeAmount = 10.0
    """Seconds that it waits at most (``podMaxBackoffSeconds``)."""
    victim_patience: Seconds = 30.0
    """How long beyond their grace period victims may take before a nomination is withdrawn. Raise it where kubelets are
    slow to unmount volumes."""
    resize_patience: Seconds | None = 60.0
    """How long a resize is Deferred or Infeasible before its pod is moved; ``None``: it never is."""
    disruption_budgets: Literal["hard", "last-resort", "best-effort"] = "hard"
    """A used-up PodDisruptionBudget protects its pods from everybody (``hard``), from all but critical pods of the
    system and classes with ``beforeBudgets`` that find no other room (``last-resort``), or from nobody. The latter two
    need the right to delete pods (docs/kubernetes.md)."""
    vacancy: Seconds = 60.0
    """How long an instance without a pod counts, where its controller's wish is not known. Raise it for operators that
    replace pods slowly."""
    startup_allowance: Seconds = 300.0
    """How long containers may run before the pod is ready the first time; more is the workload's doing
    (docs/causes.md). Raise it where applications start slowly."""
    learn_startup: bool = True
    """Measure how long the pods of each workload take to start, for its alpha (docs/metric.md). Turn it off to compare
    with a simulation that has one ``qos.alpha``."""
    creation_allowance: Seconds = 600.0
    """How long a node may take to start a pod's containers (images, volumes, network), or a provisioner to make its
    volumes; more is the workload's doing. Raise it where registries or provisioners are slow."""
    ledger_memory: Seconds = 2_592_000.0
    """How long (30 days), at least the longest window of any class, the ledger of a deleted workload is kept for one of
    its name. Lower it where many short-lived workloads have names of their own."""
    ledger_memories: Annotated[int, Meta(ge=0, le=1_000_000)] = 1000
    """Ledgers of deleted workloads kept in each namespace, the latest. Raise it where more come and go under the same
    names."""
    metrics_workloads: Annotated[int, Meta(ge=0, le=1_000_000)] = 2000
    """Workloads that have metrics of their own; of more, each namespace has its share. Lower it to what your Prometheus
    bears."""
    priority_classes: str | None = None
    """Service classes of pods that name none, by PriorityClass: ``PRIORITY=CLASS,...``."""
    critical_namespaces: str | None = "kube-system"
    """Namespaces (``*``: all) whose pods of system-cluster-critical and system-node-critical that name no class go
    before every promise (docs/kubernetes.md)."""
    preempt_system_pods: bool = False
    """Preempt static pods, pods of DaemonSets and system-critical pods like any other. Turn it on where DaemonSets that
    may be missed for a while fill nodes."""
    daemon_sets: Literal["system", "services"] = "system"
    """``services``: a DaemonSet is a service of as many instances as nodes that are to have one, its pods preempted
    like others. ``system``: they never are."""
    added_affinity: str | None = None
    """Node affinity, as JSON, that is added to that of all its pods (``addedAffinity``)."""
    default_spread: str | None = None
    """Topology spread of pods that ask for none: JSON of constraints without selectors, or ``system`` for
    kube-scheduler's (docs/kubernetes.md). Not set: ``system`` where ``scheduler_name`` is ``default-scheduler``, else
    none; empty: none."""
    profiles: str | None = None
    """Further scheduler names, as JSON: a list of ``schedulerName``, each with an ``addedAffinity`` and a
    ``defaultSpread`` of its own."""
    site_label: str = "topology.kubernetes.io/zone"
    """Label of nodes that names their place; nodes without it, or all where this is empty, are places of their own. Of
    more than 1,000 places no round-trip times are used."""
    network_resource: str = "slacktide.io/network"
    """Extended resource that is bandwidth, in Mbit/s."""
    latency_stale: SomeAmount = 900.0
    """Seconds after its latest measurement a NodeLatency counts no more. Raise it with the agents' heartbeat
    (docs/netprobe.md)."""
    access_url: Text | None = None
    """Prometheus to ask where users log in of workloads that do not say it (docs/netprobe.md)."""
    access_query: Text | None = None
    """Accesses by namespace, workload (name of the controller) and node (or place)."""
    access_interval: Annotated[float, Meta(ge=1, le=LONGEST)] = 60.0
    """Seconds between two queries. Lower it where users move within minutes."""
    listen: str | None = "127.0.0.1:10359"
    """Address of /metrics, /livez, /readyz, /configz, /explain and the page, /dashboard/; ``None``: nothing."""
    http_access: Literal["delegated", "loopback"] = "delegated"
    """Who may ask there: ``delegated``, over TLS, whom the API server knows and lets get the path (health is told to
    everybody); ``loopback``, everybody on this machine, without TLS, for local development."""
    tls_certificate: Text | None = None
    """File with the certificate that is shown there, PEM; ``None``: one that is made at each start."""
    tls_key: Text | None = None
    """File with its key, PEM."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a run. ``version`` is that of the file format."""

    version: int = 1
    policy: PolicySettings = field(default_factory=PolicySettings)
    qos: QosSettings = field(default_factory=QosSettings)
    delay: DelaySettings = field(default_factory=DelaySettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    startup: StartupSettings = field(default_factory=StartupSettings)
    failures: FailureSettings = field(default_factory=FailureSettings)
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    optimize: OptimizeSettings = field(default_factory=OptimizeSettings)
    kube: KubeSettings = field(default_factory=KubeSettings)
    classes: tuple[ServiceClass, ...] = DEFAULT_CLASSES


def live(config: Config) -> Config:
    """The settings as the live scheduler starts from them: a pod counts from its readiness on, and where only who must
    preempts, it does so as soon as it may."""
    scheduler = replace(config.scheduler, crossings=config.policy.preempt_when == "needed")
    return replace(config, qos=replace(config.qos, startup="always"), scheduler=scheduler)


def preset(name: PresetName) -> Config:
    """The named settings: ``recommended`` (the defaults), ``published`` (the papers'), ``published-tuned`` (the papers'
    with the best overhead limit that we found)."""
    config = Config()
    if name != "recommended":
        papers = replace(
            config.policy,
            preempt_when="better",
            patience=0.0,
            overload="share",
            victims="next-pass",
            reprieve=False,
            score="mean",
            cost="default",
        )
        delay = replace(config.delay, tolerance=0.005, competition=3e-6, grants=True, fetching=1.0)
        if name == "published-tuned":
            papers = replace(papers, overhead_limit=TUNED_LIMIT)
        config = replace(config, policy=papers, delay=delay, kube=replace(config.kube, learn_startup=False))
    return config
