"""Who acts on what the feed tells the engine."""

from __future__ import annotations

from typing import Any

from slacktide.engine.ledger.slo_status import SloStatus
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.translate.owners import Target


class FeedListener:
    """Hears what follows from changes, besides operations of the engine. All calls are synchronous and short.

    This class does nothing; listeners override what they want to hear.
    """

    def work(self) -> None:
        """Something happened that may let somebody be placed."""

    def behind(self) -> None:
        """Some pods are to be looked at in their turn (:mod:`.catching_up`)."""

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
