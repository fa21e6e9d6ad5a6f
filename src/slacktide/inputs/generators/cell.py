"""A cell like the published Google sample, of any size and length, streamed.

Two groups of jobs share the cell. *Services* are admitted at 0 and never
complete. *Arrivals* come in bursts at whole seconds (Poisson), run for a
heavy-tailed time and complete; at 0 there are already as many of them, with
the remaining durations of the equilibrium (a duration is met with probability
proportional to its length, at a uniform place), as the rate implies. Expected
demand is therefore the same at all times, and by Little's law

    services * demand + rate * duration * demand = load * capacity

for the binding resource. The share of the services is given, the rate follows
from the number of requests; the scale of the durations is what remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.generators import cell_tables as tables
from slacktide.inputs.generators.api import Generator, Parameter, Value
from slacktide.inputs.generators.cell_templates import Templates, draw_templates
from slacktide.inputs.rows import join, select
from slacktide.model import DEFAULT_CLASSES, Hosts, Term, Workload


def cell_hosts(count: int, rng: np.random.Generator) -> Hosts:
    """``count`` hosts; CPU and memory relative to the biggest."""
    shares = np.array([shape[0] for shape in tables.SHAPES])
    # Shape by quota, so that a small cell has the proportions of a large one, then shuffled.
    bounds = np.rint(np.cumsum(shares) / shares.sum() * count).astype(np.int64)
    shape = rng.permutation(np.searchsorted(bounds, np.arange(count), side="right"))
    kernel = rng.choice(len(tables.KERNELS), count, p=_normalised([share for _, share in tables.KERNELS]))
    turbo, drained, reserved = (rng.random(count) < share for share in (tables.TURBO, tables.DRAINED, tables.RESERVED))
    rack = rng.integers(0, max(int(count / tables.HOSTS_PER_RACK), 1), count)
    board = rng.integers(0, max(int(count * 6 / tables.HOSTS_PER_BOARD), 1), count)
    attributes = []
    for row in range(count):
        _, cpu, _, generation = tables.SHAPES[shape[row]]
        found = {
            "platform": tables.PLATFORM[cpu],
            "sockets": tables.SOCKETS[cpu],
            "generation": generation,
            "kernel": tables.KERNELS[kernel[row]][0],
            "rack": f"r{rack[row]}",
            "board": f"b{board[row]}",
            "drained": str(int(drained[row])),
            "reserved": str(int(reserved[row])),
        }
        if turbo[row]:
            found["turbo"] = "2"
        attributes.append(found)
    return Hosts(
        ids=np.arange(1, count + 1),
        names=tuple(f"host-{number}" for number in range(1, count + 1)),
        capacity=np.array([tables.SHAPES[number][1:3] for number in shape], dtype=np.float64),
        attributes=tuple(attributes),
    )


def _normalised(shares: list[float]) -> list[float]:
    total = sum(shares)
    return [share / total for share in shares]


CHUNK = 400_000  # expected rows of a piece
QUANTILES = 20_000  # values that stand for the distribution of durations
Integers = NDArray[np.int64]

# Streams of random numbers, one for each purpose: a longer trace begins as the shorter one with the same rate does.
_HOSTS, _SERVICES, _ARRIVALS, _STANDING, _WINDOW = range(5)


@dataclass(frozen=True, slots=True)
class Balance:
    """What makes the expected demand right.

    services  expected number of standing services
    rate      submissions a second
    scale     factor on all durations of arrivals
    """

    services: float
    rate: float
    scale: float


@dataclass(frozen=True, slots=True)
class _Cell:
    """Everything the pieces are made from."""

    services: Templates
    arrivals: Templates
    balance: Balance
    durations: _Durations
    terms: tuple[Term, ...]
    end: float
    seed: int


class _Durations:
    """Relative durations within a template (median about 1), drawn and in equilibrium."""

    def __init__(self) -> None:
        # A fine set of quantiles instead of a formula: its mean is exact, and is the one used to balance.
        body = np.exp(tables.SPREAD * _normal_quantiles(QUANTILES))
        tail = int(QUANTILES * tables.TAIL_SHARE)
        chance = (np.arange(tail) + 0.5) / tail
        body[QUANTILES - tail :] = np.minimum((1 - chance) ** (-1 / tables.TAIL_POWER), tables.TAIL_LONGEST)
        self._values = body
        self._cumulated = np.cumsum(body) / body.sum()
        self.mean = float(body.mean())

    def whole(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return self._values[rng.integers(0, len(self._values), count)]

    def remaining(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        chosen = np.searchsorted(self._cumulated, rng.random(count), side="right")
        return np.asarray(self._values[np.minimum(chosen, len(self._values) - 1)] * rng.random(count))


def _normal_quantiles(count: int) -> NDArray[np.float64]:
    """The quantiles (k + 1/2) / count of the standard normal distribution, ascending."""
    from statistics import NormalDist  # slow to import, and only generating needs it

    inverse = NormalDist().inv_cdf
    return np.array([inverse((rank + 0.5) / count) for rank in range(count)])


def _make(values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    hosts = cell_hosts(int(values["hosts"]), np.random.default_rng([seed, _HOSTS]))
    vocabulary = tables.terms(max(int(len(hosts) / tables.HOSTS_PER_RACK), 4))
    services = draw_templates(tables.SERVICES, vocabulary, hosts, np.random.default_rng([seed, _SERVICES]))
    arrivals = draw_templates(tables.ARRIVALS, vocabulary, hosts, np.random.default_rng([seed, _ARRIVALS]))
    durations = _Durations()
    end = float(values["hours"]) * 3600.0
    balance = _balance(values, services, arrivals, hosts.capacity.sum(axis=0), durations.mean, end)
    terms = tuple(term for term, _ in vocabulary)
    cell = _Cell(services, arrivals, balance, durations, terms, end, seed)
    return _pieces(cell), hosts


def _balance(
    values: Mapping[str, Value],
    services: Templates,
    arrivals: Templates,
    capacity: NDArray[np.float64],
    mean_duration: float,
    end: float,
) -> Balance:
    """Solve the equation at the head of the module; raises :class:`ConfigError` where it has no solution."""
    standing = float(values["standing"])
    if standing > 1:
        raise ConfigError(f"standing: found {standing}, expected a share from 0 to 1")
    # Relative demand of a mean service task, and of a mean running arrival, on each resource.
    service = services.weighted(services.task_share())[:2] / capacity
    running = arrivals.weighted(arrivals.task_share() * arrivals.duration)[:2] / capacity
    mixed = standing * service / service[0] + (1 - standing) * running / running[0]
    factor = float(values["load"]) / mixed.max()
    service_tasks = factor * standing / service[0]
    # running[0] is the sum over templates of share * duration * demand: tasks a second times that is CPU in use.
    active_cpu = factor * (1 - standing)
    arrivals_in_equilibrium = active_cpu / running[0] * float(arrivals.task_share() @ arrivals.duration)
    coming = int(values["requests"]) - service_tasks - arrivals_in_equilibrium
    if coming < 1:
        least = int(service_tasks + arrivals_in_equilibrium) + 1
        raise ConfigError(
            f"requests: found {values['requests']}, expected more than the {least} that this load has running at once"
        )
    tasks_per_second = coming / end
    scale = active_cpu / (tasks_per_second * running[0] * mean_duration)
    return Balance(service_tasks, tasks_per_second / arrivals.mean_tasks(), scale)


def _pieces(cell: _Cell) -> Iterator[Workload]:
    """The standing load, then one piece for each window of time."""
    standing = _standing(cell)
    yield standing
    next_id, next_job = len(standing) + 1, int(standing.job.max(initial=0)) + 1
    expected = cell.balance.rate * cell.arrivals.mean_tasks() * cell.end
    windows = max(round(expected / CHUNK), 1)
    edges = np.linspace(0.0, cell.end, windows + 1)
    for window in range(windows):
        rng = np.random.default_rng([cell.seed, _WINDOW, window])
        piece = _arriving(cell, float(edges[window]), float(edges[window + 1]), next_id, next_job, rng)
        next_id, next_job = next_id + len(piece), int(piece.job.max(initial=next_job - 1)) + 1
        yield piece


def _standing(cell: _Cell) -> Workload:
    """What is there at 0: the services, and the arrivals of before."""
    rng = np.random.default_rng([cell.seed, _STANDING])
    services = cell.services
    tasks = _apportion(cell.balance.services * services.task_share(), rng)
    template, size = _jobs_of(tasks, services.size)
    arrivals = cell.arrivals
    submissions = cell.balance.rate * cell.balance.scale * cell.durations.mean
    expected = submissions * arrivals.weight * arrivals.size * arrivals.siblings * arrivals.duration
    residue, residue_size = _jobs_of(_apportion(expected, rng), arrivals.size)
    first = _tasks(cell, services, template, size, np.zeros(len(size)), 1, 1)
    second = _tasks(cell, arrivals, residue, residue_size, np.zeros(len(residue)), len(first) + 1, len(size) + 1)
    scale = np.repeat(arrivals.duration[residue], residue_size) * cell.balance.scale
    second.duration[:] = _seconds(scale * cell.durations.remaining(len(second), rng))
    # Standing jobs come in no particular order of class or shape.
    order = rng.permutation(len(size) + len(residue))
    jobs = np.concatenate([first.job, second.job]) - 1
    rows = np.argsort(order[jobs], kind="stable")
    both = select(join([first, second]), rows)
    both.ids[:] = np.arange(1, len(both) + 1)
    return both


def _arriving(cell: _Cell, start: float, end: float, next_id: int, next_job: int, rng: np.random.Generator) -> Workload:
    """All submissions of one window, at whole seconds."""
    arrivals = cell.arrivals
    # How often each template comes is its expectation rounded at random, so that totals vary little.
    times = _apportion(cell.balance.rate * (end - start) * arrivals.weight, rng)
    template = rng.permutation(np.repeat(np.arange(len(times)), times))
    instant = np.floor(np.sort(rng.uniform(start, end, len(template))))
    jobs = np.repeat(np.arange(len(template)), arrivals.siblings[template])
    size = arrivals.size[template[jobs]]
    piece = _tasks(cell, arrivals, template[jobs], size, instant[jobs], next_id, next_job)
    scale = np.repeat(arrivals.duration[template[jobs]], size) * cell.balance.scale
    piece.duration[:] = _seconds(scale * cell.durations.whole(len(piece), rng))
    return piece


def _tasks(
    cell: _Cell,
    templates: Templates,
    template: Integers,
    size: Integers,
    instant: NDArray[np.float64],
    next_id: int,
    next_job: int,
) -> Workload:
    """One row for every task of the jobs; they never complete unless the caller says so."""
    rows = np.repeat(template, size)
    return Workload(
        ids=np.arange(next_id, next_id + len(rows)),
        admission=np.repeat(instant, size),
        duration=np.full(len(rows), np.inf),
        demand=templates.demand[rows],
        service_class=templates.service_class[rows],
        job=np.repeat(np.arange(next_job, next_job + len(size)), size),
        anti_affinity=templates.apart[rows],
        term=templates.term[rows],
        classes=DEFAULT_CLASSES,
        terms=cell.terms,
    )


def _jobs_of(tasks: Integers, size: Integers) -> tuple[Integers, Integers]:
    """Split each template's tasks into jobs of its size, the last one smaller: template and size of each job."""
    jobs = -(-tasks // size)
    template = np.repeat(np.arange(len(tasks)), jobs)
    sizes = size[template]
    last = np.cumsum(jobs)[jobs > 0] - 1
    sizes[last] -= (jobs * size - tasks)[jobs > 0]
    return template, sizes


def _apportion(expected: NDArray[np.float64], rng: np.random.Generator) -> Integers:
    """Whole numbers with these expectations; their total differs from the expected one by less than 1."""
    cumulated = np.floor(np.concatenate([[0.0], np.cumsum(expected)]) + rng.random())
    return np.diff(cumulated).astype(np.int64)


def _seconds(duration: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(np.rint(duration), 1.0)


CELL = Generator(
    "cell",
    "like the published Google sample: host shapes, constraints, anti-affine jobs, standing load, bursts",
    (
        Parameter("hosts", 620, "number of hosts", 1),
        Parameter("hours", 1.0, "hours of arrivals (a month of a whole cell: 696)", 1e-3),
        Parameter("requests", 23_000, "number of requests aimed at, the standing load included", 1),
        Parameter("load", 0.95, "expected demand of the binding resource, as a share of the hosts' capacity", 1e-6),
        Parameter("standing", 0.75, "share of that demand that stands from the start and never completes"),
    ),
    _make,
)
