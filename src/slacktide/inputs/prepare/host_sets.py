"""Host sets of a wanted capacity, drawn from a population of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError, fail
from slacktide.inputs.prepare.peak import Peak, peak
from slacktide.model import Hosts, Workload

SLACK = 1e-9
"""Relative: sums of the same capacities in another order may differ by so much."""


def binding_resource(needed: Peak, hosts: Hosts, *, file: str = "hosts") -> str:
    """The resource of which the peak is the largest share of what all hosts have together.

    The first of equal ones. Raises :class:`InputError` naming ``file`` for a resource that is demanded and no host has.
    """
    total = hosts.capacity.sum(axis=0)
    shares = []
    for name, amount in zip(needed.resources, needed.amount.tolist(), strict=True):
        having = float(total[hosts.resources.index(name)]) if name in hosts.resources else 0.0
        if amount > 0 and having == 0:
            raise fail(file, f"{amount:g}, which the workload demands at once", column=name, value="0 in all")
        shares.append(amount / having if having else 0.0)
    return needed.resources[int(np.argmax(shares))]


def draw_hosts(
    hosts: Hosts, amount: float, resource: str, seed: int, *, repeat: bool = False, file: str = "hosts"
) -> Hosts:
    """Hosts drawn at random, without replacement, until together they have ``amount`` of ``resource``.

    They stand in the order drawn, which depends on the seed alone: a larger amount adds hosts to a smaller one's.
    With ``repeat``, once every host is drawn all are drawn from again, in another order; the second of a name is
    called ``NAME.2``, and all get new numbers. Otherwise raises :class:`InputError` naming ``file`` and what is
    missing where the population is too small.
    """
    column = hosts.capacity[:, _index(hosts, resource)]
    total = float(column.sum())
    if total < amount * (1 - SLACK) and not (repeat and total > 0):
        raise fail(
            file,
            f"{amount:g} or more ({amount - total:g} more); draw hosts again (--replace), or take parts "
            "of these: --of hosts",
            column=resource,
            value=f"{total:g} in {len(hosts)} hosts",
        )
    rounds = max(int(np.ceil(amount / total * (1 - SLACK))), 1) if total > 0 else 1
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(hosts)) for _ in range(rounds)])
    reached = np.cumsum(column[order])
    wanted = min(int(np.searchsorted(reached, amount * (1 - SLACK))) + 1, len(order))
    return _numbered(hosts, order[:wanted])


def remove_hosts(hosts: Hosts, amount: float, resource: str, seed: int) -> Hosts:
    """``hosts`` without randomly chosen ones, so that the others have at most ``amount`` of ``resource`` together.

    They are removed one by one, in an order that depends on the seed alone, until the rest has no more: a smaller
    amount removes more of the same. The rest keeps its order. Raises :class:`ConfigError` where no host would be left.
    """
    column = hosts.capacity[:, _index(hosts, resource)]
    order = np.random.default_rng([seed, 1]).permutation(len(hosts))  # apart from the order in which hosts are drawn
    # What is left when the first k of the order are gone.
    left = np.append(np.cumsum(column[order][::-1])[::-1], 0.0)
    gone = int(np.argmax(left <= amount * (1 + SLACK)))
    if gone == len(hosts):
        raise ConfigError(f"capacity: found {amount:g} of {resource}, expected as much as a host of the set has")
    return _rows(hosts, np.sort(order[gone:]))


def keep_share(hosts: Hosts, share: float, seed: int, resource: str = "cpu") -> Hosts:
    """Hosts that have at most ``share`` (0 to 1) of what all have of ``resource``: :func:`remove_hosts` of the rest."""
    if not 0 < share <= 1:
        raise ConfigError(f"share: found {share:g}, expected a number above 0 and at most 1")
    return remove_hosts(hosts, share * float(hosts.capacity[:, _index(hosts, resource)].sum()), resource, seed)


def host_sets(
    workload: Workload | Peak,
    population: Hosts,
    capacities: Sequence[float] = (1.0, 0.9, 0.8),
    *,
    of: Literal["peak", "hosts"] = "peak",
    seed: int = 0,
    repeat: bool = False,
    file: str = "hosts",
) -> dict[float, Hosts]:
    """Host sets for each of ``capacities``, in parts of N of the binding resource.

    ``of`` says what N is: the workload's ``peak`` (or give that instead of it), or what all ``hosts`` of the
    population have; then the set of N is the population as it is. For 1 (and more) hosts are drawn until they reach
    the part (:func:`draw_hosts`); those for less than 1 are the set of N without randomly removed hosts, so that
    they have at most the part (:func:`remove_hosts`). A smaller set of the same seed is part of a larger one.
    Raises :class:`ConfigError` for a part that is not above 0 and :class:`InputError` where the population is too
    small.
    """
    for capacity in capacities:
        if not 0 < capacity <= 1000:
            raise ConfigError(f"capacities: found {capacity:g}, expected parts of the peak, above 0 and at most 1000")
    needed = workload if isinstance(workload, Peak) else peak(workload)
    resource = binding_resource(needed, population, file=file)
    if of == "hosts":
        amount, whole = float(population.capacity[:, _index(population, resource)].sum()), population
    else:
        amount = needed.of(resource)
        whole = draw_hosts(population, amount, resource, seed, repeat=repeat, file=file)

    def part(capacity: float) -> Hosts:
        if capacity == 1:
            return whole
        if capacity < 1:
            return remove_hosts(whole, capacity * amount, resource, seed)
        return draw_hosts(population, capacity * amount, resource, seed, repeat=repeat, file=file)

    return {capacity: part(capacity) for capacity in capacities}


def _index(hosts: Hosts, resource: str) -> int:
    if resource not in hosts.resources:
        raise ConfigError(f"resource: found {resource!r}, expected one of {', '.join(hosts.resources)}")
    return hosts.resources.index(resource)


def _rows(hosts: Hosts, rows: NDArray[np.int64]) -> Hosts:
    chosen = rows.tolist()
    return replace(
        hosts,
        ids=hosts.ids[rows],
        names=tuple(hosts.names[row] for row in chosen),
        capacity=hosts.capacity[rows],
        attributes=tuple(hosts.attributes[row] for row in chosen),
    )


def _numbered(hosts: Hosts, rows: NDArray[np.int64]) -> Hosts:
    """The rows in this order; names and ids stay unique where a row comes again."""
    found = _rows(hosts, rows)
    if len(np.unique(rows)) == len(rows):
        return found
    taken = set(hosts.names)
    seen: set[str] = set()
    names = []
    for name in found.names:
        own, number = name, 1
        while own in seen or (number > 1 and own in taken):
            number += 1
            own = f"{name}.{number}"
        seen.add(own)
        names.append(own)
    return replace(found, ids=np.arange(1, len(rows) + 1, dtype=np.int64), names=tuple(names))
