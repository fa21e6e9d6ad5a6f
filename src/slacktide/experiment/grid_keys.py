"""The keys of a grid file (docs/experiments.md), with types and ranges. Those that are ``Any`` are looked at later."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from slacktide.config import Count, Instant, PresetName, SomeAmount, SomeShare, Text
from slacktide.conversion import Name, Strict

VERSION = 1
INTERVALS = 600.0
"""Seconds between two rows of a run's tables over time, as in the papers (da Silva et al. 2020)."""
Seeds = Annotated[int, Meta(ge=1, le=1_000_000)]


class Top(Strict, kw_only=True):
    """The file; ``variables`` are filled in before."""

    version: Any = VERSION
    title: Text | UnsetType = UNSET
    variables: Any = UNSET
    workloads: Any
    hosts: Any
    policies: Any
    seeds: Any = 1
    base_seed: Count = 0
    end: Instant | UnsetType = UNSET
    intervals: SomeAmount = INTERVALS
    settings: Any = None
    exclude: Any = UNSET


class Source(Strict):
    """Where a workload or hosts come from."""

    file: Text | UnsetType = UNSET
    generator: Any = UNSET
    parameters: (
        Annotated[dict[str, Any], Meta(description="parameters by name ('slacktide generate' lists them)")] | UnsetType
    ) = field(name="with", default=UNSET)
    seed: Count = 0


class Startup(Strict):
    """Start-up delays of a workload."""

    hot: Text | UnsetType = UNSET
    cold: Text | UnsetType = UNSET


class Workload(Source):
    """A workload."""

    group_by: Literal["job"] | UnsetType = UNSET
    kind: Literal["service", "batch"] = "service"
    approach: Literal["independent", "concurrent", "aggregated"] | UnsetType = UNSET
    startup: Startup | UnsetType = UNSET
    end: Instant | UnsetType = UNSET


class Hosts(Source):
    """A host set; which keys go together is told by :class:`Source`, :class:`Share` and :class:`Peak`."""

    of: Any = UNSET
    share: Any = UNSET
    resource: Any = UNSET
    peak_of: Any = UNSET
    origin: Any = field(name="from", default=UNSET)
    repeat: Any = UNSET


class Share(Strict):
    """Hosts: what remains of another set."""

    of: Name
    share: SomeShare
    resource: Text = "cpu"
    seed: Count = 0


class Peak(Strict):
    """Hosts: as many as a workload's peak needs."""

    peak_of: Name
    origin: Name = field(name="from")
    repeat: bool = False
    seed: Count = 0


class Policy(Strict):
    """A policy."""

    policy: Text | UnsetType = UNSET
    preset: PresetName = "recommended"
    settings: Any = None


class Axes(Strict):
    """A combination that is left out: one name or several on each axis."""

    workload: Any = UNSET
    hosts: Any = UNSET
    policy: Any = UNSET
