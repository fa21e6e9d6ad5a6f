"""What a follower of the mirror hears."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.owners import Target


class Changes:
    """A follower of :class:`slacktide.kube.mirror.cluster.ClusterMirror`.

    Every call comes after the mirror has changed. Calls are synchronous and short. This class does
    nothing; followers override what they want to hear.
    """

    def node(self, view: NodeView, before: NodeView | None) -> None:
        """A node is new, or another than before."""

    def node_gone(self, name: str) -> None:
        """A node is gone."""

    def images_listed(self, node: str, images: tuple[str, ...]) -> None:
        """A node has these images."""

    def image_sizes(self, images: Iterable[str]) -> None:
        """The sizes of these images are others than before."""

    def replicas(self, target: Target, desired: int, finished: bool) -> None:
        """How many pods a controller wants (-1: not known); ``finished``: it makes no more."""

    def controller_state(self, target: Target, suspended: int, fails: bool) -> None:
        """So many instances of a controller are suspended; ``fails``: it is not allowed to make its pods."""

    def template(self, uid: str) -> None:
        """A controller makes its pods from another template than before, as far as their promise is concerned."""

    def owner_known(self, uid: str) -> None:
        """A controller, new or changed, is known now; pods may have waited for that."""

    def controller_gone(self, target: Target) -> None:
        """A controller object is gone; it may have pods yet."""

    def classes(self, names: Sequence[str], namespace: str) -> None:
        """These classes (all, where none is named) are others than before; with ``namespace``, in there only."""

    def quotas(self, namespace: str) -> None:
        """The promise quotas of a namespace are others than before."""

    def pod_groups(self, source: str, namespace: str, name: str) -> None:
        """A pod group is other than before, or where no name is given all that are said in the way ``source``."""

    def budget(self, name: str, left: int) -> None:
        """How many pods of a budget (NAMESPACE/NAME) may be disrupted."""

    def budget_gone(self, name: str) -> None:
        """A budget (NAMESPACE/NAME) is gone."""

    def budgets_cover(self, namespace: str) -> None:
        """Budgets of a namespace are about other pods than before."""

    def constraints(self, uids: Sequence[str], *, by: str = "", at_once: bool = False) -> None:
        """Where these pods may run, or how many volumes they attach, changed through other pods, namespaces, taints,
        claims or limits.

        ``by``: through the terms of a pod on no node, of which :meth:`pod` tells next. ``at_once``: through terms of
        whomever, that were without effect or about others before, so nobody may be placed before all know it.
        """

    def pod(self, record: PodRecord) -> None:
        """A pod is new, has another version, or something that it depends on changed."""

    def pod_gone(self, record: PodRecord, succeeded: bool) -> None:
        """A pod is no more."""
