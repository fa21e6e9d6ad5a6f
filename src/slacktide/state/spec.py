"""What instances of one kind are like."""

from __future__ import annotations

from dataclasses import dataclass

from slacktide.model import NO_CONSTRAINT, NO_NEIGHBOURS, Access, Placement, ServiceClass, Term
from slacktide.model.network import NO_ACCESS


@dataclass(frozen=True, slots=True)
class Spec:
    """All that decides where an instance may go and what it is promised; equal ones are of one kind.

    ``demand`` names whole amounts (millicores of CPU, bytes, counts), each resource once
    and none of 0; ``never``: it preempts nobody (preemptionPolicy Never); ``spared``: nobody preempts it, once it runs
    (a pod of the system); ``grace``: seconds that an instance may take to end; ``bare``: nobody makes it again when it
    is gone. Only scores that ask where users are
    look at ``limit`` (as ``demand``: most that an instance may be granted; its demand where none is named),
    ``access``, and ``application``, by which ElasticFog knows instances that serve the same users.
    """

    demand: tuple[tuple[str, int], ...]
    service: ServiceClass
    term: Term = NO_CONSTRAINT
    placement: Placement = NO_NEIGHBOURS
    never: bool = False
    limit: tuple[tuple[str, int], ...] = ()
    access: Access = NO_ACCESS
    application: str = ""
    spared: bool = False
    grace: float = 0.0
    bare: bool = False
