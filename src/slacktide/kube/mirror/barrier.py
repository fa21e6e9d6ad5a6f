"""A barrier around each object: what cannot be read, translated or fed is set aside, and everything else goes on.

kube-scheduler calls a pod that it cannot use unschedulable, and so do we. One exception of one object must not end the
process: the next leader would meet the same object while it takes over. An object that was set aside is looked at again
when it changes.

Of these exceptions none is an object's: cancellation and lost leadership are raised where decisions are made, and never
in a call that goes through here.
"""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from slacktide.errors import SlacktideError, StateError
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import HasMetadata, Identity, Kind, Malformed, Reference
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.owners import Target

LOG = logging.getLogger(__name__)


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


UNUSABLE, DEFECT = "unusable", "defect"
"""Why an object is set aside that could be decoded: it says what cannot be, or it shows a defect of slacktide."""
SHOWN_CHARACTERS = 300
HEARD = tuple(name for name, one in vars(Changes).items() if callable(one) and not name.startswith("_"))
"""All that followers hear."""

T = TypeVar("T", bound=HasMetadata)


class Followers(Changes):
    """Several followers as one; ``followers`` may become others."""

    def __init__(self, followers: Sequence[Changes]) -> None:
        for name in HEARD:
            setattr(self, name, partial(_tell_all, followers, name))


def _tell_all(followers: Sequence[Changes], name: str, *args: Any, **keywords: Any) -> None:
    for one in followers:
        getattr(one, name)(*args, **keywords)


class SetAside(NamedTuple):
    """An object that nobody can use, and why."""

    about: Reference
    reason: str
    problem: str

    def __str__(self) -> str:
        name = "/".join(filter(None, (self.about.namespace, self.about.name)))
        return f"{self.about.kind} {name or '(without a name)'} is ignored until it changes: {self.problem}"


class Barrier:
    """Keeps exceptions of one object from all others.

    ``counts``: objects set aside since the start, by kind and reason. ``aside``: those that are set aside now.
    ``tell`` hears of each, once for each problem; a leader tells people.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.aside: dict[tuple[str, str, str], SetAside] = {}
        self.on_set_aside: Callable[[SetAside], None] = lambda _: None
        self._about = Reference(kind="(none)")
        self._traced: set[tuple[str, str]] = set()

    @contextmanager
    def around(self, about: Reference) -> Iterator[None]:
        """An exception in here is about this object, unless one inside says that it is about another."""
        before, self._about = self._about, about
        try:
            yield
        except Exception as error:
            self.failed(about, error)
        finally:
            self._about = before

    def failed(self, about: Reference, error: Exception) -> SetAside:
        """An object could not be used, as this exception says. What shows a defect is logged with a traceback, once of
        each kind of object and place in the code."""
        refused = isinstance(error, SlacktideError) and not isinstance(error, StateError)
        text = " ".join(str(error).split())
        if not refused:
            text = f"{type(error).__name__}: {text}" if text else type(error).__name__
        place = about.kind, _place(error)
        is_new = not refused and place not in self._traced
        if is_new:
            self._traced.add(place)
        found = SetAside(about, UNUSABLE if refused else DEFECT, _short(text))
        self._set_aside(found, error if is_new else None)
        return found

    def of_pod(self, pod: Identity) -> SetAside | None:
        """Why a pod is set aside; None: it is not."""
        return self.aside.get(("Pod", pod.namespace, pod.name))

    def unreadable(self, kind: Kind[Any], problem: Malformed) -> None:
        """An object could not be decoded."""
        identity = problem.identity
        self._set_aside(SetAside(reference(kind, identity), problem.reason, _short(problem.problem)))

    def passes(self, about: Reference) -> None:
        """An object is new, another than before, or gone: what was wrong with it is so no more."""
        self.aside.pop(_key(about), None)

    def _set_aside(self, found: SetAside, trace: Exception | None = None) -> None:
        before = self.aside.get(_key(found.about))
        self.aside[_key(found.about)] = found
        if before is not None and before.problem == found.problem:
            return
        self.counts[found.about.kind, found.reason] += 1
        LOG.log(logging.WARNING if trace is None else logging.ERROR, "%s", found, exc_info=trace)
        self.on_set_aside(found)

    def follower(self, follower: Changes) -> Changes:
        """One who hears what ``follower`` hears; its exceptions are those of the object that the mirror was told of."""
        told = Changes()
        for name in HEARD:
            setattr(told, name, self._guarded(getattr(follower, name)))
        return told

    def _guarded(self, call: Callable[..., None]) -> Callable[..., None]:
        def guarded(*args: Any, **keywords: Any) -> None:
            try:
                call(*args, **keywords)
            except Exception as error:
                self.failed(self._about, error)

        return guarded


class ObjectHandler(Generic[T]):
    """A handler of two functions: one sees an object, new or changed, the other hears that one is gone."""

    def __init__(
        self, kind: Kind[T], barrier: Barrier, see: Callable[[T], None], drop: Callable[[Identity], None]
    ) -> None:
        self.kind, self.see, self.drop = kind, see, drop
        self._barrier = barrier

    def replaced(self, objects: Sequence[T]) -> None:
        for found in objects:
            self.changed(found)

    def changed(self, found: T) -> None:
        metadata = found.metadata
        self._pass(Identity(metadata.namespace, metadata.name, metadata.uid, ""), lambda: self.see(found))

    def deleted(self, identity: Identity, last: T | None) -> None:  # noqa: ARG002
        self._pass(identity, lambda: self.drop(identity))

    def malformed(self, problem: Malformed) -> None:
        self._barrier.unreadable(self.kind, problem)

    def _pass(self, identity: Identity, call: Callable[[], None]) -> bool:
        """Call with the barrier around; whether that went well."""
        about = reference(self.kind, identity)
        self._barrier.passes(about)
        with self._barrier.around(about):
            call()
            return True
        return False


def reference(kind: Kind[Any], identity: Identity) -> Reference:
    """Points at an object, for events about it."""
    return Reference(kind.api_version, kind.kind, identity.namespace, identity.name, identity.uid)


def _key(about: Reference) -> tuple[str, str, str]:
    return about.kind, about.namespace, about.name


def _place(error: Exception) -> str:
    """Where in the code an exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."
