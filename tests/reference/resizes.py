"""Demands that change (docs/semantics.md, Resizes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reference import placing
from reference.amounts import fits, minus
from reference.budgets import spares
from reference.groups import in_company
from reference.limits import permits
from reference.wanted import Wanted
from slacktide.config import Config

if TYPE_CHECKING:
    from reference.policies import Pass
    from reference.state import Host, Instance


def asks_for_no_more(j: Instance, wanted: Wanted) -> bool:
    return fits(wanted.amounts, j.demand)


def fits_in(j: Instance, wanted: Wanted) -> bool:
    """Case 1 of the paper: r >= c' - c for every resource, c what it takes of its host."""
    assert j.host is not None
    more = minus(wanted.amounts, j.takes())
    return all(r <= free for r, free in zip(more, j.host.free(), strict=True))


def take(j: Instance, wanted: Wanted, config: Config) -> None:
    """It demands this from now on; its host's contents change, of which it takes as one that comes now."""
    (j.demand, j.bandwidth), j.wanted = wanted, None
    if j.host is not None and not j.leaving:
        place = j.host.instances.index(j)
        j.host.instances.remove(j)
        j.taken = placing.taken(j, j.host, config)
        j.host.instances.insert(place, j)
        j.host.changes += 1


def may_move(j: Instance, t: float) -> bool:
    return permits(j, (), t) and spares(j, (), t) and not in_company(j)


def another_host(this: Pass, j: Instance, wanted: Wanted, hosts: Sequence[Host]) -> Host | None:
    """Where ``j`` would be placed without preempting anybody, were it not on its host: that has no room."""
    own, had = j.host, (j.demand, j.bandwidth)
    assert own is not None
    place = own.instances.index(j)
    own.instances.remove(j)
    j.demand, j.bandwidth = wanted
    choice = this.choose_free(j, hosts)
    own.instances.insert(place, j)
    j.demand, j.bandwidth = had
    return None if choice is None else choice.host
