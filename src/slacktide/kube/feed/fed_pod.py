"""What the feed keeps of a pod: how the engine knows it, where it waits; and who acts on what the engine is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slacktide.engine.ledger.slo_status import SloStatus
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.owners import Target
from slacktide.kube.translate.service_classes import Promised
from slacktide.kube.translate.unschedulable import gated
from slacktide.kube.translate.volumes import NO_NEEDS, Needs

NOWHERE, GATED, ACTIVE, BACKOFF, UNSCHEDULABLE = "", "gated", "active", "backoff", "unschedulable"
"""Where a pod waits: by these names users of kube-scheduler know its queues."""
QUEUES = (ACTIVE, BACKOFF, UNSCHEDULABLE, GATED)
HELD, ORPHAN = "waiting for the pod that it replaces to terminate", "its owner does not exist, or is not seen yet"


@dataclass(slots=True, eq=False)
class FedPod:
    """One pod. ``key`` is its controller's in the engine, empty while the engine does not know the pod."""

    record: PodRecord
    key: str = ""
    spec: int = -1
    preferred: str = ""
    """The node for which the engine knows it to be nominated by others."""
    nominated: str = ""
    """The node for which we nominated it, as long as its status may say so."""
    unnominated: bool = False
    """That was taken out of its status again, which we may not have seen yet."""
    stranger_on: str = ""
    """Node on which the engine counts it as somebody else's."""
    target: Target | None = None
    promised: Promised | None = None
    needs: Needs = NO_NEEDS
    """Of its volumes."""
    budget: str = ""
    protected_as: tuple[str, bool] = ("", False)
    """Its phase, and whether it was ready, when that was found."""
    queue: str = NOWHERE
    problem: str = ""
    """Why it cannot be scheduled whatever the hosts look like."""
    awaited: str = ""
    """Whom it waits for though it has a place, and to do what: a provisioner, say."""
    awaited_since: float | None = None
    """Since when (0: not at all; None: what its condition says was not looked at yet)."""
    refusal: str = ""
    """Why it could not be bound where it was placed, while it is in backoff for that."""
    failures: int = 0
    avoids: frozenset[str] = frozenset()
    """Nodes for which its volumes could not be made; for a while it goes elsewhere."""
    doomed: bool = False
    followed: int = 0
    """The alterations of its record that the engine knows while it runs."""
    origin: int = 0
    """Whose doing it was that its predecessor ended (a number of :data:`slacktide.model.causes.CAUSES`)."""
    origin_until: float = 0.0
    """That of an operator holds until then, the end of a maintenance window."""
    bound: float = 0.0
    """When it was seen to be bound."""
    ready: float = 0.0
    """When it was seen to become ready last."""
    hot: bool = False
    """Its workload ran on its node before."""
    measured: bool = False
    """How long it took to start was noted."""
    ended_by: int | None = None
    """Whose doing it is that it ends, once it does."""
    ended_until: float = 0.0
    """Where that is an operator's: the end of the maintenance window."""
    successor: str = ""
    """Once it was told to go: the UID of the pod that came for it while it was still there."""
    is_successor: bool = False
    """It came for one that was told to go and was still there."""
    evicted: bool = False
    """We told it to go."""
    replaced: bool = False
    """Another pod goes on with its instance though it is not gone: it takes room, and nothing else."""

    @property
    def pod(self) -> Pod:
        return self.record.pod

    @property
    def ours(self) -> bool:
        return self.record.ours

    @property
    def uid(self) -> str:
        return self.record.uid

    @property
    def namespaced_name(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.record.namespaced_name

    @property
    def stands_aside(self) -> bool:
        """Whether it is on no node and is not to be placed: it is gated, or being deleted."""
        pending = not self.pod.spec.node_name
        return pending and (gated(self.pod) or self.pod.metadata.deletion_timestamp is not None)


class FeedListener:
    """Hears what follows from changes, besides operations of the engine. All calls are synchronous and short.

    This class does nothing; listeners override what they want to hear.
    """

    def work(self) -> None:
        """Something happened that may let somebody be placed."""

    def behind(self) -> None:
        """Some pods are to be looked at in their turn (:class:`.crowds.CatchingUp`)."""

    def confirmed(self, uid: str) -> None:
        """A pod is seen to be bound."""

    def taken(self, uid: str) -> None:
        """A pod that waited here, or was decided on, was bound by somebody else."""

    def ended(self, uid: str) -> None:
        """A pod is no more, or is over."""

    def withdrawn(self, uid: str, reason: str) -> None:
        """A pod that was decided on and is not bound must not start any more, for this reason."""

    def regrouped(self, uid: str) -> None:
        """A pod is of another pod group than before, or of none any more."""

    def changed(self, key: str) -> None:
        """A controller's ledger changed, or the engine knows a controller that it did not know."""

    def finished(self, key: str) -> None:
        """A controller is no more."""

    def buried(self, target: Target, books: dict[str, Any], status: SloStatus) -> None:
        """A workload was deleted; its ledger is kept as it was then."""

    def waits(self, pod: FedPod) -> None:
        """A pod cannot be scheduled whatever the hosts look like: ``pod.problem`` says why."""

    def overwritten(self, uid: str) -> None:
        """What a pod's condition said of why it waits was replaced by whom it is nominated for."""

    def only_keeps(self, target: Target, why: str) -> None:
        """A workload keeps a promise that it could not get anew, for this reason."""

    def rival(self, pod: FedPod) -> None:
        """A pod of another scheduler is on a node of ours."""
