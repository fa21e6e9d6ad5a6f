"""What an experiment is given, in the words of a grid file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from slacktide.api.configuring import (
    PolicyChoice,
    by_name,
    listed,
    plain,
    policy_by_name,
    sections,
    whole_number,
)
from slacktide.api.sources import Source, hosts_given
from slacktide.errors import ConfigError
from slacktide.experiment import grid
from slacktide.settings import PRESETS, SECTIONS

WHERE = "Experiment"
PolicyEntry: TypeAlias = PolicyChoice | Mapping[str, Any]
"""A policy or preset by name, a class that stands in a file, or ``{"preset": ..., "policy": ..., "settings": ...}``."""
HostsEntry: TypeAlias = Source | Mapping[str, Any]
"""Hosts, or ``{"of": NAME, "share": 0.9}`` and the like, as in a grid file."""


Drawn: TypeAlias = Source | Callable[[int], Source]
"""A workload, or a function that makes that of a seed."""


def by_their_names(given: Any, name: str) -> dict[str, Any]:
    """One by itself, under ``name``, or several by name."""
    return dict(given) if isinstance(given, Mapping) else {name: given}


def swept(given: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """By SECTION.KEY the values."""
    found: dict[str, Any] = {}
    for name, values in given.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ConfigError(f"{WHERE}: sweep: {name}: found {values!r}, expected a list of values")
        for section, keys in sections(WHERE, {name: None}).items():
            if section == "classes":
                raise ConfigError(f"{WHERE}: sweep: found classes, expected settings as SECTION_KEY")
            found.update({f"{section}.{key}": plain(list(values)) for key in keys})
    return found


def host_sets(workloads: Any, hosts: Any) -> dict[str, Any] | None:
    """Host sets by name; None: those of the first workload that a function makes."""
    if hosts is not None:
        one = isinstance(hosts, Mapping) and not {"of", "peak_of", "file", "generator"}.isdisjoint(hosts)
        return {"hosts": hosts} if one else by_their_names(hosts, "hosts")
    made = list(by_their_names(workloads, "workload").values())
    if any(callable(one) for one in made):
        return None
    return {"hosts": hosts_given(made[0] if len(made) == 1 else made, None)}


def policies_by_name(given: Sequence[PolicyChoice] | Mapping[str, PolicyEntry]) -> dict[str, Any]:
    """Policies by name, each as a grid file says it."""
    listed(WHERE, given)
    named = given if isinstance(given, Mapping) else by_name(WHERE, given)
    return {str(name): _policy(one) for name, one in named.items()}


def seeds_of(given: object) -> int | list[int]:
    """How many, or the very seeds."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    if several and np.ndim(given) > 0:  # type: ignore[arg-type]
        return [whole_number(f"{WHERE}: seeds", one, 0) for one in given]  # type: ignore[attr-defined]
    return whole_number(f"{WHERE}: seeds", given)


def excluded(given: object) -> Any:
    """Combinations, each a mapping."""
    listed_ones = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not listed_ones or not all(isinstance(one, Mapping) for one in given):  # type: ignore[attr-defined]
        raise ConfigError(
            f"{WHERE}: exclude: found {given!r}, expected a list of combinations: [{{'policy': 'priority'}}]"
        )
    return plain([dict(one) for one in given])  # type: ignore[attr-defined]


def _policy(one: PolicyEntry) -> dict[str, Any]:
    if isinstance(one, Mapping):
        words = {name: value for name, value in one.items() if name in ("policy", "preset", "settings")}
        flat = {name: value for name, value in one.items() if name not in words}
        said = dict(words.get("settings") or {})
        flat |= {name: said.pop(name) for name in list(said) if name not in SECTIONS and name != "classes"}
        for section, keys in sections(WHERE, flat).items():
            said[section] = {**said.get(section, {}), **keys} if section != "classes" else keys
        words |= {"settings": said} if said else {}
        words |= {"policy": policy_by_name(one["policy"])} if "policy" in one else {}
        return plain(words)  # type: ignore[no-any-return]
    name = policy_by_name(one)
    return {"preset": name} if name in PRESETS else {"policy": name}


def origin_words(origin: grid.FromFile | grid.Generated) -> dict[str, Any]:
    """As a grid file says it."""
    if isinstance(origin, grid.FromFile):
        return {"file": str(origin.path)}
    return {"generator": origin.generator, "with": dict(origin.parameters), "seed": origin.seed}
