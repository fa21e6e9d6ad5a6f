"""Templates of jobs: the popular combinations of class, demand, size and constraints from which a cell is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.generators import cell_tables as tables
from slacktide.model import Hosts, Term
from slacktide.model.matching import matching_hosts

POPULARITY = 0.9
"""The task share of the k-th template of a population is proportional to k ** -POPULARITY."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Templates:
    """Arrays over templates.

    weight        share of submissions
    demand        shape (n, 2): CPU, memory of a task
    size          tasks of a job
    siblings      jobs of a submission
    apart         anti-affine
    duration      median duration of a task, seconds, before scaling
    """

    weight: Floats
    service_class: NDArray[np.int16]
    demand: Floats
    size: NDArray[np.int64]
    siblings: NDArray[np.int64]
    apart: NDArray[np.bool_]
    term: NDArray[np.int32]
    duration: Floats

    def mean_tasks(self) -> float:
        """Tasks of a mean submission."""
        return float(self.weight @ (self.size * self.siblings))

    def task_share(self) -> Floats:
        """Share of all tasks."""
        tasks = self.weight * self.size * self.siblings
        return np.asarray(tasks / tasks.sum())

    def weighted(self, weights: Floats) -> Floats:
        """Sum over templates of ``weights`` times demand."""
        return np.asarray(weights @ self.demand)


def draw_templates(
    populations: Sequence[tables.Population],
    vocabulary: Sequence[tuple[Term, float]],
    hosts: Hosts,
    rng: np.random.Generator,
) -> Templates:
    """Templates of all populations; every one of them fits on hosts that its term admits."""
    matching = matching_hosts([term for term, _ in vocabulary], hosts)
    frequency = np.array([weight for _, weight in vocabulary])
    parts = [_draw(population, frequency / frequency.sum(), rng) for population in populations]
    joined = Templates(*(np.concatenate([getattr(part, name) for part in parts]) for name in Templates.__slots__))
    _make_possible(joined, matching, hosts.capacity)
    weight = joined.weight / (joined.size * joined.siblings)  # from shares of tasks to shares of submissions
    return Templates(weight / weight.sum(), *(getattr(joined, name) for name in Templates.__slots__[1:]))


def _draw(population: tables.Population, frequency: Floats, rng: np.random.Generator) -> Templates:
    """Templates of one population; ``weight`` is their share of all tasks."""
    count = population.templates
    popularity: Floats = np.arange(1.0, count + 1) ** -POPULARITY
    popularity /= popularity.sum()

    def level() -> Floats:
        return _levels(popularity, rng)

    first = level()
    # Big in CPU is mostly big in memory.
    second = np.where(rng.random(count) < 0.6, first, level())
    cpu = np.interp(first, tables.LEVELS, population.cpu)
    memory = np.interp(second, tables.LEVELS, population.memory)
    if count > 1:  # users ask for round numbers
        cpu = np.maximum(np.rint(cpu / 0.00625) * 0.00625, 0.000625)
        memory = np.maximum(np.round(memory, 4), 0.0001)
    bounds = np.cumsum([share for _, share in population.sizes])
    size = np.array([tasks for tasks, _ in population.sizes])[np.searchsorted(bounds, level() * bounds[-1])]
    term = np.where(level() < population.constrained, rng.choice(len(frequency), count, p=frequency), 0)
    services = not population.duration
    duration = np.full(count, np.inf) if services else np.interp(level(), tables.LEVELS, population.duration)
    return Templates(
        weight=population.tasks * popularity,
        service_class=np.full(count, population.service_class, dtype=np.int16),
        demand=np.stack([cpu, memory], axis=1),
        size=size,
        siblings=np.full(count, population.siblings),
        apart=(level() < population.apart) & (size > 1),
        term=term.astype(np.int32),
        duration=duration,
    )


def _levels(popularity: Floats, rng: np.random.Generator) -> Floats:
    """Numbers of (0, 1), one for each template, that are evenly spread over the *tasks*.

    Each template takes an interval as long as its popularity, in random order, and gets the
    middle. Quantiles and shares of the tables are thus met whatever the seed.
    """
    order = rng.permutation(len(popularity))
    levels = np.empty(len(popularity))
    levels[order] = np.cumsum(popularity[order]) - popularity[order] / 2
    return levels


def _make_possible(templates: Templates, matching: NDArray[np.bool_], capacity: Floats) -> None:
    """Loosen what could never run: terms without host, demands above them, anti-affine jobs of too many tasks."""
    templates.demand[:] = np.minimum(templates.demand, capacity.max(axis=0))
    for row in range(len(templates.weight)):
        large_enough = (capacity >= templates.demand[row]).all(axis=1)
        if not (large_enough & matching[templates.term[row]]).any():
            templates.term[row] = 0
        if not large_enough.any():
            templates.demand[row] = np.minimum(templates.demand[row], capacity[0])
            large_enough = (capacity >= templates.demand[row]).all(axis=1)
        if templates.apart[row]:
            possible = int((large_enough & matching[templates.term[row]]).sum())
            # At most half of them: the others leave room.
            templates.size[row] = max(min(templates.size[row], possible // 2), 1)
            templates.apart[row] = templates.size[row] > 1
