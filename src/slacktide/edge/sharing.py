"""A run of the testbed computed: nodes share their CPU equally among pods, users wait for the network as well.

Delays and contention are those of Lai, Wang and Wei, whose equations are named by their numbers.
A pod starts, computes its FFT iterations, and its user then fetches the results,
one request after the other.  Times are seconds, CPU is vCPUs, work is
CPU-seconds.  Between two events (a start, an end, the onset of contention) all
speeds are constant, so the result is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from slacktide.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Contention:
    """What pods lose when more of them run on a node than it has vCPUs; ``z`` pods, ``x`` of them per vCPU.

    Every pod runs ``1 + competition * 2 ** (z - 1)`` times slower (equation 18, as a part of the work), and from
    ``onset`` seconds of competing on by ``sustained * growth ** (x - 1)`` more: long loads suffer more than short ones.
    """

    competition: float = 0.0
    sustained: float = 0.0
    growth: float = 2.0
    onset: float = 0.0

    def factor(self, pods: int, vcpus: float, is_felt: bool) -> float:
        """By how much ``pods`` running pods slow each other down, 1 or more."""
        if pods <= vcpus:
            return 1.0
        now = 1.0 + self.competition * 2.0 ** (pods - 1)
        return now + self.sustained * float(self.growth ** (pods / vcpus - 1)) if is_felt else now


@dataclass(frozen=True, slots=True)
class Load:
    """What every pod does: work in CPU-seconds to begin and per iteration, requests of its user, seconds to start."""

    iterations: int
    work: float
    first_work: float = 0.0
    requests: float = 0.0
    requests_per_iteration: float = 0.0
    startup: float = 0.0
    contention: Contention = Contention()

    @property
    def cpu_seconds(self) -> float:
        """What a pod computes."""
        return self.first_work + self.iterations * self.work

    @property
    def asked(self) -> float:
        """Requests of a pod's user."""
        return self.requests + self.iterations * self.requests_per_iteration

    def __post_init__(self) -> None:
        for name in ("iterations", "work", "first_work", "requests", "requests_per_iteration", "startup"):
            value = getattr(self, name)
            if not 0 <= value < inf:
                raise ConfigError(f"load.{name}: found {value!r}, expected a finite number, 0 or more")


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: its vCPUs, and how many of them its own daemons and the cluster's own pods take."""

    vcpus: float
    taken: float = 0.0

    @property
    def left(self) -> float:
        """What stays for pods, vCPUs."""
        return self.vcpus - self.taken


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod where it runs; ``network``: delay of one request of its user, seconds (equations 10 and 11)."""

    name: str
    node: str
    network: float = 0.0
    image: float = 0.0  # seconds to download the image
    limit: float = 1.0  # vCPUs


@dataclass(frozen=True, slots=True)
class Done:
    """One pod's run, seconds: computing from its start, all requests' network time, and the end of both."""

    name: str
    node: str
    processing: float
    network: float
    finished: float


@dataclass(frozen=True, slots=True)
class TestbedResult:
    """A run of the testbed."""

    pods: tuple[Done, ...]

    @property
    def completion(self) -> float:
        """Seconds until the last task is done; without any pod 0."""
        return max((pod.finished for pod in self.pods), default=0.0)

    @property
    def processing(self) -> float:
        """Mean processing delay, seconds."""
        return sum(pod.processing for pod in self.pods) / len(self.pods) if self.pods else 0.0

    @property
    def network(self) -> float:
        """Mean network delay of a user, all requests together, seconds."""
        return sum(pod.network for pod in self.pods) / len(self.pods) if self.pods else 0.0


def remote_delay(rtt: float | None, deviation: float) -> float:
    """One request's network delay, seconds: half of round trip and deviation, nothing on the user's own node."""
    return 0.0 if rtt is None else (rtt + deviation) / 2


def shares(limits: Sequence[float], vcpus: float) -> list[float]:
    """Equal shares up to each one's limit: what one cannot use goes to the others; O(k log k)."""
    granted = [0.0] * len(limits)
    left = vcpus
    for position, index in enumerate(sorted(range(len(limits)), key=limits.__getitem__)):
        granted[index] = min(limits[index], left / (len(limits) - position))
        left -= granted[index]
    return granted


def node_run(
    starts: Sequence[float], works: Sequence[float], limits: Sequence[float], machine: Machine, contention: Contention
) -> list[float]:
    """When each pod of one node has computed its work, seconds; the arguments are parallel, one entry a pod."""
    if works and machine.left <= 0:
        raise ConfigError(f"node with {machine.vcpus} vCPUs: its own daemons take {machine.taken}, nothing is left")
    remaining = list(works)
    ends = [start if work <= 0 else inf for start, work in zip(starts, works, strict=True)]
    now, competing = 0.0, inf  # competing: since when more pods run than there are vCPUs
    while inf in ends:
        running = [i for i, end in enumerate(ends) if end == inf and starts[i] <= now]
        competing = min(competing, now) if len(running) > machine.vcpus else inf
        felt = competing + contention.onset
        slower = contention.factor(len(running), machine.vcpus, now >= felt)
        speeds = [share / slower for share in shares([limits[i] for i in running], machine.left)]
        events = [start for i, start in enumerate(starts) if start > now and ends[i] == inf]
        events += [felt] if now < felt < inf else []
        done = [now + remaining[i] / speed for i, speed in zip(running, speeds, strict=True)]
        then = min([*events, *done])
        for i, speed, end in zip(running, speeds, done, strict=True):
            if end <= then:
                ends[i] = then
            else:
                remaining[i] -= speed * (then - now)
        now = then
    return ends


def run(placed: Iterable[Placed], machines: Mapping[str, Machine], load: Load) -> TestbedResult:
    """The run of a placement; raises ConfigError for a pod on a node that is none of ``machines``."""
    by_node: dict[str, list[Placed]] = {}
    for pod in placed:
        if pod.node not in machines:
            raise ConfigError(f"pod {pod.name!r}: found node {pod.node!r}, expected one of {', '.join(machines)}")
        by_node.setdefault(pod.node, []).append(pod)
    finished: list[Done] = []
    for node, pods in by_node.items():
        starts = [load.startup + pod.image for pod in pods]
        limits = [pod.limit for pod in pods]
        ends = node_run(starts, [load.cpu_seconds] * len(pods), limits, machines[node], load.contention)
        for pod, start, end in zip(pods, starts, ends, strict=True):
            network = load.asked * pod.network
            finished.append(Done(pod.name, node, end - start, network, end + network))
    return TestbedResult(tuple(finished))
