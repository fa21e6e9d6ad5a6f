"""Light load, as other simulators are measured: equal hosts, memoryless arrivals and lives, no constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.generators.api import Generator, Parameter, Value
from slacktide.inputs.rows import equal_hosts
from slacktide.model import DEFAULT_CLASSES, Hosts, Workload

CORES = 8
MACHINE = {"cpu": CORES, "memory": 16.0}  # GB
MEMORY_PER_CORE = 1.5  # less than the hosts' 2 GB per core, so that CPU binds
LARGEST = 4  # cores of a request: 1 to 4, equally likely
CHUNK = 524_288


def _make(values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    count = int(values["hosts"])
    # Little's law: rate * life * mean demand = load * capacity.
    rate = float(values["load"]) * count * CORES / ((1 + LARGEST) / 2 * float(values["life"]))
    classes = class_indices(str(values["classes"]))
    return _chunks(int(values["requests"]), rate, float(values["life"]), classes, seed), equal_hosts(count, MACHINE)


def class_indices(text: str) -> list[int]:
    """Indices into the default classes of names separated by commas. Raises :class:`ConfigError`."""
    names = [one.name for one in DEFAULT_CLASSES]
    wanted = [word.strip() for word in text.split(",")]
    for word in wanted:
        if word not in names:
            raise ConfigError(f"classes: found {word!r}, expected {expected_name(word, names)}")
    return [names.index(word) for word in wanted]


def _chunks(requests: int, rate: float, life: float, classes: list[int], seed: int) -> Iterator[Workload]:
    rng = np.random.default_rng(seed)
    now = 0.0
    for first in range(0, requests, CHUNK):
        count = min(CHUNK, requests - first)
        admission = now + np.cumsum(rng.exponential(1 / rate, count))
        now = float(admission[-1])
        cores = rng.integers(1, LARGEST + 1, count).astype(np.float64)
        ids = np.arange(first + 1, first + count + 1)
        yield Workload(
            ids=ids,
            admission=admission,
            # An exponential draw can be 0, a duration cannot.
            duration=np.maximum(rng.exponential(life, count), 1e-9),
            demand=np.stack([cores, cores * MEMORY_PER_CORE], axis=1),
            service_class=rng.choice(np.array(classes, dtype=np.int16), count),
            job=ids,
            anti_affinity=np.zeros(count, dtype=np.bool_),
            term=np.zeros(count, dtype=np.int32),
        )


LIGHT = Generator(
    "light",
    "equal hosts of 8 cores; Poisson arrivals, exponential lives, 1 to 4 cores a request",
    (
        Parameter("hosts", 1000, "number of hosts, 8 cores and 16 GB each", 1),
        Parameter("requests", 1_000_000, "number of requests", 1),
        Parameter("load", 0.8, "mean CPU in use, as a share of all cores", 1e-6),
        Parameter("life", 3600.0, "mean duration of a request, seconds", 1e-3),
        Parameter("classes", "gold", "service classes, separated by commas and equally frequent"),
    ),
    _make,
)
