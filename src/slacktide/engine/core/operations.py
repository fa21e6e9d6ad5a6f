"""What an engine can be told: one struct for each operation, from which all that concerns a record works.

A struct's tag is the name of the engine's method, its fields are the method's arguments in order; as JSON it is the
list of both. So a record is written, read, replayed and made into a workload from these declarations alone. What an
operation means, and in which units, its method tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from slacktide.engine.core.types import Outcome
from slacktide.model import DisruptionLimits, ServiceClass
from slacktide.state import spec as specs


def _method(struct: str) -> str:
    """``HostGone`` is carried out by ``host_gone``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", struct).lower()


class Operation(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag=_method):
    """Anything that an engine is told."""

    @property
    def method(self) -> str:
        """Of the engine's method, and in the record."""
        return str(self.__struct_config__.tag)


Journal = Callable[[Operation], None]
"""Who is told of every operation before it is carried out, and of each outcome."""


class Begin(Operation):
    """A new engine."""


class Host(Operation):
    name: str
    amounts: dict[str, int]
    attributes: dict[str, str]
    up: bool


class HostGone(Operation):
    name: str


class Other(Operation):
    uid: str
    host: str
    amounts: dict[str, int]
    marks: tuple[str, ...]


class OtherGone(Operation):
    uid: str


class Network(Operation):
    places: tuple[str, ...]
    site_key: str
    changes: list[tuple[int, int, float]]


class Image(Operation):
    name: str
    seconds: float
    size: float


class Images(Operation):
    host: str
    names: list[str]


class Spec(Operation):
    """In a record as :mod:`slacktide.engine.journal.codec` writes specs."""

    number: int
    spec: specs.Spec


class SpecGone(Operation):
    number: int


class Budget(Operation):
    name: str
    left: int


class BudgetGone(Operation):
    name: str


class PodGroup(Operation):
    name: str
    least: int
    whole: bool = False


class PodGroupGone(Operation):
    name: str


class JoinGroup(Operation):
    uid: str
    group: str


class Controller(Operation):
    key: str
    service: ServiceClass
    approach: int
    batch: bool
    everything: bool = False
    at: float = 0.0


class Limits(Operation):
    key: str
    limits: DisruptionLimits | None
    at: float


class Displace(Operation):
    uid: str
    at: float


class Displaced(Operation):
    uid: str
    at: float
    told: bool


class Desired(Operation):
    key: str
    count: int
    at: float


class Retire(Operation):
    key: str
    at: float
    patience: float


class ControllerGone(Operation):
    key: str
    at: float


class Arrive(Operation):
    uid: str
    name: str
    key: str
    spec: int
    at: float
    budget: str


class Found(Operation):
    uid: str
    name: str
    key: str
    spec: int
    host: str
    since: float
    budget: str


class BoundElsewhere(Operation):
    uid: str
    host: str
    at: float


class Nominated(Operation):
    uid: str
    host: str
    at: float


class Prefer(Operation):
    uid: str
    host: str


class Restore(Operation):
    """Carried out by :func:`slacktide.engine.ledger.restore.restore`."""

    key: str
    saved: dict[str, Any] | None
    pods: list[dict[str, Any]]
    now: float


class Respec(Operation):
    uid: str
    spec: int


class Protect(Operation):
    uid: str
    budget: str


class Doomed(Operation):
    uid: str


class Wake(Operation):
    uid: str


class Sleep(Operation):
    uid: str


class Ready(Operation):
    uid: str
    at: float


class Unready(Operation):
    uid: str
    at: float


class Blame(Operation):
    uid: str
    cause: int
    at: float


class BlameVacant(Operation):
    key: str
    count: int
    cause: int
    at: float


class Drained(Operation):
    key: str
    until: float


class Suspend(Operation):
    key: str
    count: int
    at: float


class Bound(Operation):
    uid: str
    at: float


class Refused(Operation):
    uid: str
    at: float


class Spared(Operation):
    uid: str
    at: float


class Gone(Operation):
    uid: str
    at: float
    completed: bool
    cause: int = 0


class Turn(Operation):
    """Nothing happened but that calendar windows began, up to ``at``."""

    at: float


class Run(Operation):
    now: float


class Decided(Operation):
    """The outcome of the ``Run`` before; not carried out. In a record as the codec writes outcomes."""

    outcome: Outcome


OPERATIONS: dict[str, type[Operation]] = {_method(one.__name__): one for one in Operation.__subclasses__()}
"""All of them, by name."""
