"""Requests of several instances at light load: sizes as of the jobs of the published sample, or all equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.columns.instances import MOST
from slacktide.inputs.generators.api import Generator, Parameter, Value
from slacktide.inputs.generators.light import CHUNK, CORES, LARGEST, MACHINE, MEMORY_PER_CORE, class_indices
from slacktide.inputs.rows import equal_hosts
from slacktide.model import AGGREGATED, APPROACHES, DEFAULT_CLASSES, Hosts, Requests, Workload

MIXED = "mixed"
# Jobs of the published one-hour samples (2,262 and 2,361): share of them up to this level, instances.
SIZE_LEVELS = (0.0, 0.64, 0.65, 0.70, 0.75, 0.80, 0.85, 0.88, 0.90, 0.99, 0.995, 0.998, 1.0)
SIZES = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0, 35.0, 52.0, 52.0, 135.0, 198.0, 640.0)
MEAN = 10.0
QUANTILES = 20_000

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Load:
    """Everything the pieces are made from. ``sizes`` are equally likely numbers of instances."""

    requests: int
    sizes: Integers
    rate: float
    life: float
    batch: float
    parallelism: int
    approaches: tuple[int, ...]
    classes: tuple[int, ...]
    seed: int


def _make(values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    hosts = int(values["hosts"])
    size, life = int(values["size"]), float(values["life"])
    sizes = np.array([size]) if size else _sizes(float(values["mean"]), hosts)
    if int(values["requests"]) * float(sizes.mean()) > MOST:
        raise ConfigError(f"requests: found {values['requests']}, expected at most {MOST:,} instances in all")
    approach = str(values["approach"])
    load = _Load(
        requests=int(values["requests"]),
        sizes=sizes,
        # Little's law: rate * instances * life * mean demand = load * capacity.
        rate=float(values["load"]) * hosts * CORES / (float(sizes.mean()) * (1 + LARGEST) / 2 * life),
        life=life,
        batch=float(values["batch"]),
        parallelism=int(values["parallelism"]),
        approaches=tuple(range(len(APPROACHES))) if approach == MIXED else (APPROACHES.index(approach),),
        classes=tuple(class_indices(str(values["classes"]))),
        seed=seed,
    )
    return _pieces(load), equal_hosts(hosts, MACHINE)


def _sizes(mean: float, hosts: int) -> Integers:
    """Quantiles of the sizes with this mean: those of the sample, what exceeds one instance stretched.

    No request has more instances than there are hosts, as half the cluster can then run all of it at once.
    Raises :class:`ConfigError` where that leaves no such mean.
    """
    level = (np.arange(QUANTILES) + 0.5) / QUANTILES
    beyond = np.interp(level, SIZE_LEVELS, SIZES) - 1
    most = max(hosts, 1)

    def stretched(factor: float) -> Integers:
        return np.minimum(np.rint(1 + beyond * factor), most).astype(np.int64)

    low, high = 0.0, float(most)
    if mean > stretched(high).mean():
        raise ConfigError(
            f"mean: found {mean:g}, expected at most {stretched(high).mean():.3g}: with {hosts} hosts no request has "
            f"more than {most} instances"
        )
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if stretched(middle).mean() < mean else (low, middle)
    return stretched(high)


def _pieces(load: _Load) -> Iterator[Workload]:
    rng = np.random.default_rng(load.seed)
    now = 0.0
    step = max(int(CHUNK / load.sizes.mean()), 1)
    for first in range(0, load.requests, step):
        piece = _piece(load, first, min(step, load.requests - first), now, rng)
        now = float(piece.admission[-1])
        yield piece


def _piece(load: _Load, first: int, count: int, now: float, rng: np.random.Generator) -> Workload:
    """Requests ``first`` and following, admitted from ``now`` on; all instances of a request are alike."""
    admission = now + np.cumsum(rng.exponential(1 / load.rate, count))
    size = load.sizes[rng.integers(0, len(load.sizes), count)]
    cores = rng.integers(1, LARGEST + 1, count).astype(np.float64)
    # An exponential draw can be 0, a duration cannot.
    duration = np.maximum(rng.exponential(load.life, count), 1e-9)
    service_class = rng.choice(np.array(load.classes, dtype=np.int16), count)
    batch = rng.random(count) < load.batch
    approach = np.where(batch, AGGREGATED, rng.choice(np.array(load.approaches), count)).astype(np.int8)
    ids = np.arange(first + 1, first + count + 1)
    request = np.repeat(np.arange(count, dtype=np.int32), size)
    return Workload(
        ids=ids[request],
        admission=admission[request],
        duration=duration[request],
        demand=np.stack([cores, cores * MEMORY_PER_CORE], axis=1)[request],
        service_class=service_class[request],
        job=ids[request],
        anti_affinity=np.zeros(len(request), dtype=np.bool_),
        term=np.zeros(len(request), dtype=np.int32),
        classes=DEFAULT_CLASSES,
        request=request,
        requests=Requests(
            ids=ids,
            batch=batch,
            approach=approach,
            parallelism=np.where(batch & (load.parallelism < size), load.parallelism, 0),
        ),
    )


JOBS = Generator(
    "jobs",
    "services and batch requests of several instances; sizes as in the published Google sample, the rest as in light",
    (
        Parameter("hosts", 1000, "number of hosts, 8 cores and 16 GB each", 1),
        Parameter("requests", 10_000, "number of requests", 1),
        Parameter("size", 0, "instances of every request; 0: heavy-tailed sizes"),
        Parameter("mean", MEAN, "mean of the heavy-tailed sizes", 1),
        Parameter("batch", 0.3, "share of batch requests; the others are services", most=1),
        Parameter("parallelism", 0, "instances of a batch request at work at once; 0: all"),
        Parameter(
            "approach",
            MIXED,
            f"how availability of services is measured: {', '.join(APPROACHES)}, or {MIXED}: each equally often",
            choices=(*APPROACHES, MIXED),
        ),
        Parameter("load", 0.8, "mean CPU in use, as a share of all cores", 1e-6),
        Parameter("life", 3600.0, "mean duration of a request, seconds", 1e-3),
        Parameter("classes", "gold", "service classes, separated by commas and equally frequent"),
    ),
    _make,
)
