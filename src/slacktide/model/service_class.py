"""Service classes: what is promised, how important it is, what a miss costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from slacktide.errors import ConfigError
from slacktide.model.disruption_limits import DisruptionLimits
from slacktide.model.window import Window

SLO_TOLERANCE = 1e-9
"""An SLO counts as met from ``slo - SLO_TOLERANCE`` on, so that rounding breaks no promise."""

OWN = "@"
"""Between the name of a class and the SLO of a workload's own."""


def class_name(service: str) -> str:
    """The name of the class that a promise is of, whatever SLO the workload has of its own (``NAME@SLO``)."""
    return service.partition(OWN)[0]


@dataclass(frozen=True, slots=True)
class PenaltyTier:
    """Below ``boundary`` times the SLO the customer is owed ``bonus`` of the price."""

    boundary: float
    bonus: float


CERTAIN_TIERS = (PenaltyTier(0.9999, 0.10), PenaltyTier(0.99, 0.30), PenaltyTier(0.95, 1.00))
"""Of classes that promise 1: below 99.99, 99 and 95 % 10, 30 and 100 % are owed."""
DEFAULT_TIERS = (PenaltyTier(1.0, 0.10), PenaltyTier(0.99 / 0.9999, 0.30), PenaltyTier(0.95 / 0.9999, 1.00))
"""Of all others: the same ratios, with the SLO in place of 99.99 % (.9: below 90, 89.11 and 85.51 %)."""


def default_tiers(slo: float) -> tuple[PenaltyTier, ...]:
    """The penalty tiers of a class that names none."""
    return CERTAIN_TIERS if slo == 1.0 else DEFAULT_TIERS


LEAST_SLO = 0.001
"""Below, ``e / sigma`` would soon leave the grid of times, and metrics would no longer be exact (docs/semantics.md)."""


LONGEST_START = 3600.0
"""Seconds; a class that held more back for a start-up would decide by nothing else."""


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """A promise.

    ``slo`` is sigma, the promised availability in [0.001, 1]; ``rank`` the importance
    (1 = most important, equal ranks are equally important); ``margin`` is phi, the
    slack in seconds below which an instance counts as about to miss its promise;
    ``overhead_limit`` bounds the preemption overhead C (da Silva et al. 2020, equation 8), ``None`` meaning
    ``1 - slo``; ``tiers`` say what a miss costs, where none are named :func:`default_tiers`;
    ``window`` is the time over which the availability is promised, ``None`` meaning the whole life;
    ``limits`` say what its workloads may suffer, ``None``: whatever happens;
    ``priority`` orders, within a rank, workloads that a cluster gave a class because they name none: the
    priority of their pods, larger is more important (docs/semantics.md, 'Priority within a rank');
    ``alpha`` is the seconds that the start of one of its instances is expected to take, ``None``: those of the settings
    (``qos.alpha``);
    ``before_budgets`` and ``before_limits``: on a cluster it may take the place of less important ones whom disruption
    budgets, or limits, protect, where nobody else makes room (``kube.disruption_budgets``).

    Raises :class:`ConfigError` naming the class, the field and the value.
    """

    name: str
    slo: float
    rank: int
    margin: float = 10.0
    overhead_limit: float | None = None
    tiers: tuple[PenaltyTier, ...] = cast("tuple[PenaltyTier, ...]", None)  # never None afterwards
    window: Window | None = None
    limits: DisruptionLimits | None = None
    priority: int = 0
    alpha: float | None = None
    before_budgets: bool = False
    before_limits: bool = False

    def __post_init__(self) -> None:
        def refuse(field: str, value: object, expected: str) -> None:
            raise ConfigError(f"service class {self.name!r}: {field}: found {value!r}, expected {expected}")

        if not self.name:
            refuse("name", self.name, "a name")
        if not LEAST_SLO <= self.slo <= 1.0:
            refuse("slo", self.slo, f"a number from {LEAST_SLO:g} to 1")
        if self.rank < 1:
            refuse("rank", self.rank, "a whole number from 1 (most important)")
        if not 0.0 <= self.margin < float("inf"):
            refuse("margin", self.margin, "seconds, 0 or more")
        if self.alpha is not None and not 0.0 <= self.alpha <= LONGEST_START:
            refuse("alpha", self.alpha, f"seconds, from 0 to {LONGEST_START:g}")
        if self.overhead_limit is not None and not 0.0 <= self.overhead_limit <= 1.0:
            refuse("overhead_limit", self.overhead_limit, "a number from 0 to 1")
        if self.tiers is None:
            object.__setattr__(self, "tiers", default_tiers(self.slo))

    def limit_or(self, setting: float | None, added: float) -> float:
        """The largest preemption overhead C at which an instance may still be preempted by its peers.

        ``setting`` is that of classes that name none (``None``: ``1 - slo``), ``added`` comes on top of every one.
        """
        own = setting if self.overhead_limit is None else self.overhead_limit
        return min(max((1.0 - self.slo if own is None else own) + added, 0.0), 1.0)

    def alpha_or(self, setting: float) -> float:
        """Its ``alpha``, or that of the settings, which its own takes the place of."""
        return setting if self.alpha is None else self.alpha


DEFAULT_CLASSES = (
    ServiceClass("gold", 1.0, 1),
    ServiceClass("silver", 0.9, 2),
    ServiceClass("bronze", 0.5, 3),
)
