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
    """``qos-driven``, ``priority``, ``hybrid``, an entry point's name, or ``file.py:Class``. ``delay-aware``,
    ``elastic-fog``, ``tsra``, ``nas``, ``kcss``, ``least-requested``: in order of admission, without preemption, by the
    score of that name."""
    preempt_when: Literal["needed", "better"] = "needed"
    """``better``: preempt whoever has the larger metric (the papers); ``needed``: only for one below its margin."""
    patience: Seconds = 60.0
    """Seconds of slack by which a swap between equally important violators must pay; a swap costs a start-up."""
    overload: Literal["share", "triage", "plan"] = "plan"
    """Where capacity does not suffice, as many promises as it can carry are kept and others given up, or what lacks
    is spread over all (``share``, the papers). ``plan``: for services, whom to give up is planned ahead, and others are
    as under ``triage``, in each pass (docs/overload.md). Of these two both orders must be ``importance``."""
    savable: Seconds = 40.0
    """``triage``: seconds by which a slack may be negative so that the promise counts as one that can still be kept."""
    overload_patience: Seconds = 400.0
    """``triage``: seconds above its margin from which on an instance gives its place to an equal that is lost. To one
    that can still be kept, and to a lost one that is more important, it does so from ``patience`` on; ``patience``
    where that is more."""
    recovery: Seconds = 3600.0
    """``triage``: a class recovers that is ``savable`` seconds behind and makes up for them by running for so many
    seconds at most. Of a class that does not, the lost may take the place of anybody less important."""
    floor: Share = 0.05
    """``triage``: share of its promise below which one that is given up counts as one that can still be kept, so that
    nobody starves; 0: some may get nothing. Of a class that does not recover, nobody is spared for it."""
    queue_order: Literal["importance", "metric"] = "importance"
    """Who is served first. ``importance``: those below their margin, the most important first, then the others by
    slack. ``metric``: all by slack."""
    victim_order: Literal["importance", "metric"] = "importance"
    """Who of a host's instances goes first: ``importance`` mirrors the queue's order (as the published simulator's log
    does), ``metric`` is by decreasing metric alone (as the papers say)."""
    victims: Literal["same-pass", "next-pass"] = "same-pass"
    """``same-pass``: victims may take free capacity at the end of the pass that preempted them."""
    reprieve: bool = True
    """Of the victims chosen on a host those stay without whom there is room as well, the last chosen asked first (as
    kube-scheduler does). ``False``: all go that were chosen until there was room (the papers)."""
    score: Text = "default"
    """Allocation score: ``default`` (``balanced``, but priority's is ``mean``, as kube-scheduler's is, and
    ``packed`` while a plan is in force), ``least-requested``, ``balanced``, ``mean``, ``packed``, ``delay-aware``,
    ``elastic-fog``, ``tsra``, ``nas``, ``kcss``, an entry point's name, or ``file.py:function``."""
    cost: Text = "fewest-victims"
    """Preemption cost: ``fewest-victims``, ``slack`` (the papers'), ``default`` (the policy's own: qos-driven's is
    ``slack``, priority's ``fewest-victims``), or as for ``score``."""
    overhead_scope: Literal["same-or-more-important", "same-class", "all", "none"] = "same-or-more-important"
    """Victims to which the overhead limit applies, seen from the one that preempts. (Farias's thesis; da Silva et al.
    2020 say ``same-class``.)"""
    overhead_limit: Share | None = None
    """Largest preemption overhead C at which an instance may still be preempted by its peers (equation 8), of classes
    that name none; ``None``: 1 - slo of each class (the papers)."""
    added_overhead: Annotated[float, Meta(ge=-1, le=1)] = 0.0
    """Added to the overhead limit of every class, as the thesis's simulator has it (``EXTRA_OVERHEAD``); what leaves 0
    to 1 is taken for 0 or 1."""
    min_running: Seconds = 0.0
    """Seconds from its start during which an instance is not preempted."""
    queue_limit: Count = 100
    """``hybrid``: QoS-driven while at most this many wait, by priority above."""
    gang: bool = False
    """Start the waiting instances of a concurrent request only when all of them can start in this pass, counting what
    preemption may free."""


@dataclass(frozen=True, slots=True)
class QosSettings:
    """The metric (docs/metric.md)."""

    alpha: Seconds = 22.37107
    """Expected maximum allocation time, seconds, of classes and workloads that say nothing of it. The default is the
    published simulator's; set it to the longest start you expect."""
    margin: Seconds | None = None
    """Safety margin phi of every class, seconds; ``None`` keeps each class's own."""
    startup: Accounting = "restart"
    """Accounting of start-up time that decisions use; results carry all three."""


@dataclass(frozen=True, slots=True)
class DelaySettings:
    """Delay-aware placement. Defaults: for tens of instances a host (docs/edge-cluster.md);
    the preset ``published`` has the paper's."""

    alpha: Share = 0.5
    """Weight of the processing delay against the network delay, 0 to 1 (equation 3)."""
    phi: SomeShare = 0.5
    """Share of a host's residual amount that one instance is granted at most (equation 9)."""
    tolerance: Seconds = 0.001
    """Seconds (lambda, equation 17): hosts whose delay is at most so much above the least are as good."""
    context_switch: Seconds = 2e-6
    """Seconds (beta_cs, equation 18) that a host which serves somebody already costs."""
    competition: Seconds = 0.0
    """Seconds (beta_rc, equation 18), doubled with each further instance on the host."""
    grants: bool = False
    """Score ``delay-aware``: take what is granted from a host (equations 14 to 16), not only what is demanded."""
    processing: Work = 1.0
    """CPU-seconds that a unit of data takes (equation 8)."""
    transfer: Work = 1.0
    """What a unit of data is of resource ``network`` times a second (equation 10)."""
    memory_per_cpu: Amount = 0.0
    """Memory that is worth one CPU where residuals are compared (algorithm 2, line 17), in the files' units; live in
    GiB a core. 0: as much as there is of it in all."""
    fetching: Amount = 0.001
    """Weight of the time to fetch an image, which is paid once, against delays that every exchange with a user has
    (1: as published; 0: it does not matter where the image is)."""
    keep_images: bool = True
    """An image that an instance needed is present on its host from then on."""
    network: Text | None = None
    """A file that says where hosts and users are, how far from each other, and what images there are
    (docs/formats.md). ``None``: in the simulator everybody is at one place; live, NodeLatencies say it."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """When passes happen."""

    watchdog: Instant = 10.0
    """A pass at the latest this many seconds after the previous one while somebody waits."""
    crossings: bool = False
    """A pass as well at the instant at which the slack of somebody who waits meets its margin (under a plan, 2 % of
    its budget and a start), from where on it may preempt. Of many in a row one in half of the least margin, which
    counts as a fifth of ``watchdog`` at least, and as all of it at most. A cluster's scheduler has it on, but for the
    papers' settings (docs/semantics.md)."""
    triggers: Text | None = None
    """Simulator: a file of seconds (as for start-up delays) at which passes happen, and at no other; to repeat those of
    a live run. ``None``: events and the watchdog call for them."""


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
    """A CSV file of failures, drains and repairs, of what hosts have, and of who else is there (docs/formats.md)."""
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
    """The instant that second 0 is, as RFC 3339 has it, for calendar windows and times of day and week."""
    ignore: Literal["nothing", "constraints"] = "nothing"
    """``constraints``: run as if no request had conditions on hosts, anti-affinity, or rules about neighbours, as the
    authors' simulator does with ``CHECK_CONSTRAINTS_FLAG`` false."""
    preempted_work: Literal["by-kind", "kept", "lost"] = "by-kind"
    """What a preempted or failed instance had done: ``by-kind`` keeps it for services and loses it for batch requests
    (a stateless job starts from nothing), ``kept`` and ``lost`` hold for all."""
    recreation: Seconds = 0.0
    """Seconds from an eviction to the arrival of the next incarnation, as controllers take to make a new pod."""
    grace: Text = "constant:1"
    """What a preempted instance takes of its grace period, as a share: a distribution, or a file of measured shares, as
    of start-ups. Decisions reckon with the whole."""


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """Published ways to do less work. The first never changes a decision, the others may."""

    shared_evaluations: bool = True
    """Within a pass, requests of equal demand and class share their host evaluations."""
    equivalence_tolerance: Seconds = 0.0
    """Seconds of metric within which equal requests count as one; above 0 changes results."""
    relaxed_randomization: SomeShare = 1.0
    """Stop looking once this fraction of hosts proved feasible, in random order; below 1 changes results, and is
    refused unless ``shared_evaluations`` is false and ``equivalence_tolerance`` 0."""
    queue_pruning: bool = False
    """After a failure skip later requests that ask for at least as much."""


@dataclass(frozen=True, slots=True)
class KubeSettings:
    """The live scheduler (``slacktide run``)."""

    scheduler_name: Text = "slacktide"
    """``schedulerName`` of the pods that it schedules. Change it where a cluster has several of these schedulers."""
    all_nodes: bool = False
    """Take every node, where no other scheduler preempts: two on the same nodes preempt each other's pods."""
    node_label: str = "node-restriction.kubernetes.io/slacktide=true"
    """Nodes with this label (``KEY=VALUE`` or ``KEY``) are managed. Change it where node pools have a label already; a
    kubelet cannot set one with this prefix."""
    node_taint: str = ""
    """So are nodes with a taint of this key, where pools are told apart by taints. A kubelet can give itself one
    when it registers. Empty: there is none."""
    qps: Amount = 0.0
    """Requests a second to the API server, leases and events apart; 0: no limit. Set it where the API server is
    small or its flow control does not protect others."""
    burst: Annotated[int, Meta(ge=1, le=2**31)] = 100
    """Requests beyond ``qps`` that may go out at once; set it with that."""
    bindings: Annotated[int, Meta(ge=1, le=4096)] = 64
    """Bindings and evictions under way at once. Lower it where the API server answers 429, raise it where it is far
    away."""
    pass_budget: Annotated[float, Meta(ge=0, le=LARGEST, extra={"written": "duration"})] = 0.005
    """Seconds of a pass after which everything else (leases, bindings, HTTP) has its turn; then the pass goes on. Raise
    it where thousands of pods wait and passes are to end sooner. 0: after each part of it, which is for tests."""
    event_qps: Amount = 0.0
    """Events written a second; 0: no limit. Set it where events of all components share a small etcd."""
    ledger_qps: SomeAmount = 100.0
    """Availability objects written a second, all together; each at most once a second. Raise it where thousands of
    workloads change every second and ``slacktide_ledger_pending`` grows."""
    watch_seconds: Annotated[float, Meta(ge=5, le=86_400, extra={"written": "duration"})] = 600.0
    """Longest time of a watch, after which the API server is asked to end it. Lower it where a proxy cuts
    connections sooner. One that receives nothing for 15 % longer has stopped; a replica that cannot decide without it
    gives the lease back (docs/live.md)."""
    leader_election: bool = True
    """Act only while holding the lease. Turn it off for a single replica under development."""
    lease_namespace: Text = "slacktide-system"
    """Namespace of the Lease by which replicas agree who acts. Change it with the namespace of the installation."""
    lease_name: Text = "slacktide"
    """Its name. Change it where a namespace has several of these schedulers."""
    lease_duration: Annotated[float, Meta(ge=3, le=LARGEST, extra={"written": "duration"})] = 15.0
    """Seconds after which others take a lease that is not renewed. Raise it where the API server is often slow to
    answer, and leaders change for that."""
    backoff_first: SomeAmount = 1.0
    """Seconds a pod waits after its first failed binding or eviction; doubled with each (kube-scheduler:
    ``podInitialBackoffSeconds``). Raise it where webhooks or quotas refuse many bindings."""
    backoff_longest: SomeAmount = 10.0
    """Seconds that it waits at most (kube-scheduler: ``podMaxBackoffSeconds``)."""
    victim_patience: Seconds = 30.0
    """Seconds beyond their grace period that victims may take to terminate, before a nomination is withdrawn. Raise it
    where kubelets are slow to unmount volumes."""
    resize_patience: Seconds | None = 60.0
    """Seconds for which a pod's resize may be Deferred or Infeasible before the pod is moved; ``None``: it never is,
    where workloads bear no restart for a resize."""
    disruption_budgets: Literal["hard", "last-resort", "best-effort"] = "hard"
    """A used-up PodDisruptionBudget protects its pods (``hard``); or not from critical pods of the system and from more
    important classes with ``beforeBudgets``, where nobody else makes room (``last-resort``); or from nobody. Pods that
    it forbids to evict are deleted then, for which the scheduler needs a right (docs/kubernetes.md)."""
    vacancy: Seconds = 60.0
    """Seconds after which an instance that nobody replaced counts no more, where its controller's wish is not known.
    Raise it for operators that take longer to replace a pod."""
    startup_allowance: Seconds = 300.0
    """Seconds that containers may take from their start until the pod is ready the first time; later than that it is
    the workload's doing (docs/causes.md). Raise it where applications start for longer."""
    learn_startup: bool = True
    """Measure how long the pods of each workload take from their binding until they are ready. Where that is more than
    its class holds back for a start, hold back that (docs/metric.md), up to ``kube.startup_allowance``. What a workload
    says itself holds. Turn it off to compare with a simulation that has one ``qos.alpha``."""
    creation_allowance: Seconds = 600.0
    """Seconds within which a node should have a pod's containers started (images, volumes, network); later than that it
    is the workload's doing. For as long a node is kept for a pod whose volumes are being made. Raise it where
    images are large, or registries or provisioners slow."""
    ledger_memory: Seconds = 2_592_000.0
    """Seconds for which the ledger of a workload that was deleted is kept (30 days), or as long as the longest window
    of any class, if that is longer: one of the same namespace, kind and name goes on from it. Lower it where many
    short-lived workloads have names of their own."""
    ledger_memories: Annotated[int, Meta(ge=0, le=1_000_000)] = 1000
    """So many ledgers of workloads that were deleted are kept in each namespace; beyond that the oldest go. Raise
    it where more workloads than that come and go under the same names."""
    metrics_workloads: Annotated[int, Meta(ge=0, le=1_000_000)] = 2000
    """So many workloads have metrics of their own; where there are more, each namespace has its share of them.
    Lower it to what your Prometheus bears."""
    priority_classes: str | None = None
    """Service classes of pods that name none, by PriorityClass: ``PRIORITY=CLASS,...``, for workloads whose templates
    should not change."""
    critical_namespaces: str | None = "kube-system"
    """Namespaces, separated by commas (``*``: all), whose pods of system-cluster-critical and system-node-critical that
    name no class go before every promise, and may preempt any other pod; ``None``: in none (docs/kubernetes.md)."""
    preempt_system_pods: bool = False
    """Whether pods of the system may be preempted like any other: static pods, those of DaemonSets, and those of
    system-cluster-critical and system-node-critical. Turn it on where DaemonSets that may be missed for a while
    fill nodes."""
    daemon_sets: Literal["system", "services"] = "system"
    """``services``: a DaemonSet is a service as a Deployment is, of as many instances as nodes that are to have one,
    and its pods are preempted like those (Farias's thesis, 7.2.2). ``system``: its pods are never preempted."""
    added_affinity: str | None = None
    """Node affinity, as JSON, that is added to that of all its pods (kube-scheduler: ``addedAffinity``), to keep
    them on some of the nodes."""
    default_spread: str | None = None
    """Topology spread of pods that ask for none, over those of the same services and ReplicaSet or StatefulSet: JSON of
    constraints without selectors, or ``system`` for those of kube-scheduler (``ScheduleAnyway``, 3 by hostname, 5 by
    zone). Not set: ``system`` where ``scheduler_name`` is ``default-scheduler``, else none; empty: none."""
    profiles: str | None = None
    """Further scheduler names whose pods it schedules, as JSON: a list of ``schedulerName``, each with an
    ``addedAffinity`` and a ``defaultSpread`` of its own (kube-scheduler: ``profiles``). Pods of all of them wait in
    one queue."""
    site_label: str = "topology.kubernetes.io/zone"
    """Label of nodes that names their place, for scores that ask where users are; nodes without it, or all where this
    is empty, are places of their own. Of more than 1,000 places no round-trip times are used."""
    network_resource: str = "slacktide.io/network"
    """Extended resource that is bandwidth, in Mbit/s, which these scores know as ``network``; change it where nodes
    offer bandwidth under another name."""
    latency_stale: SomeAmount = 900.0
    """Seconds after a node's latest measurement, as its NodeLatency has it, from which on that counts no more. Raise
    it with the agents' heartbeat (docs/netprobe.md)."""
    access_url: Text | None = None
    """Prometheus to ask where users of workloads log in whose pods do not say it (annotation slacktide.io/users)."""
    access_query: Text | None = None
    """Accesses by namespace, workload (name of the controller) and node (or place), such as ``sum by (namespace,
    workload, node) (increase(http_requests_total[10m]))``."""
    access_interval: Annotated[float, Meta(ge=1, le=LONGEST)] = 60.0
    """Seconds between two queries. Lower it where users move within minutes."""
    listen: str | None = "127.0.0.1:10359"
    """Address of /metrics, /livez, /readyz, /configz, /explain and the page, /dashboard/; ``None``: nothing."""
    http_access: Literal["delegated", "loopback"] = "delegated"
    """Who may ask there. ``delegated``: over TLS, whom the API server knows by a bearer token and lets get the path
    (health is told to everybody). ``loopback``: everybody on this machine, without TLS, for local development."""
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
