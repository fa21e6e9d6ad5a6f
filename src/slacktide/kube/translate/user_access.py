"""What a pod says of its users, and the most that it may be granted: annotations and limits (docs/live.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.inputs.columns.access import DATA, DEADLINE, NAME, parse_data, parse_deadline, parse_name, parse_users
from slacktide.kube.client.quantities import amount, nanos
from slacktide.kube.resources.objects import Container, Pod
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import Access
from slacktide.model.logins import EXPECTED as USERS
from slacktide.model.logins import Logins
from slacktide.model.network import NO_ACCESS

USERS_AT = "slacktide.io/users"
DATA_OF = "slacktide.io/data"
PREFERRED = "slacktide.io/preferred-node"
DEADLINE_OF = "slacktide.io/deadline"
ANNOTATIONS = (USERS_AT, DATA_OF, PREFERRED, DEADLINE_OF)
LIMITED = ("cpu", "memory")
"""Resources of which a pod may be granted more than it asks for; of all others limit and request are equal."""
MOST_KNOWN = 10_000
MOST_VOLUME = 1e15
MOST_PLACES = 1_000
"""At which users of one pod log in."""
LONGEST_NUMBER = 64
"""Characters."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What a pod asks beyond its demand. ``application``: its controller, where the score is ElasticFog's."""

    limit: tuple[tuple[str, int], ...] = ()
    access: Access = NO_ACCESS
    application: str = ""


NO_WANTS = Wants()


def access_of(pod: Pod, image: str, counted: Logins = ()) -> Access:
    """What the annotations say; users who were ``counted`` where they say nothing of users.

    Raises :class:`Unschedulable` naming the annotation, its value and what is right.
    """
    said = pod.metadata.annotations
    return Access(
        data=_read(said, DATA_OF, _volume, DATA),
        image=image,
        logins=_read(said, USERS_AT, _users, USERS) or counted,
        preferred=_read(said, PREFERRED, parse_name, NAME),
        deadline=_read(said, DEADLINE_OF, _seconds, DEADLINE),
    )


def _read(said: Mapping[str, str], name: str, parse: Callable[[str], Any], expected: str) -> Any:
    text = said.get(name, "")
    try:
        return parse(text)
    except ValueError:
        shown = text if len(text) <= 80 else text[:77] + "..."
        raise Unschedulable(f"annotation {name}: found {shown!r}, expected {expected}") from None


def _volume(text: str) -> float:
    found = parse_data(_short(text))
    if not 0.0 <= found <= MOST_VOLUME:
        raise ValueError(text)
    return found


def _seconds(text: str) -> float:
    found = parse_deadline(_short(text))
    if not found > 0.0:
        raise ValueError(text)
    return found


def _users(text: str) -> Logins:
    if text.count(":") > MOST_PLACES:
        raise ValueError(text)
    return parse_users(text)


def _short(text: str) -> str:
    """A number's text; one of a quarter of a MiB is none."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(text)
    return text


def limit_of(pod: Pod) -> tuple[tuple[str, int], ...]:
    """Limits of CPU (millicores) and memory (bytes): of the containers and sidecars together, or the pod's own.

    A container without a limit counts with its request; only what is named is there. Raises :class:`Unschedulable`.
    """
    spec = pod.spec
    together = [*spec.containers, *(one for one in spec.init_containers if one.restart_policy == "Always")]
    found = {}
    for name in LIMITED:
        own = None if spec.resources is None else spec.resources.limits.get(name)
        nano = sum(_limit(one, name) for one in together) if own is None else _nanos("spec.resources", name, own)
        if nano:
            overhead = spec.overhead.get(name)
            nano += 0 if overhead is None else _nanos("spec.overhead", name, overhead)
            found[name] = amount(name, nano)
    return tuple(found.items())


def _limit(container: Container, name: str) -> int:
    if container.resources is None:
        return 0
    text = container.resources.limits.get(name) or container.resources.requests.get(name)
    return 0 if text is None else _nanos(f"container {container.name}", name, text)


def _nanos(where: str, name: str, text: str) -> int:
    try:
        return nanos(text)
    except ValueError as error:
        raise Unschedulable(f"{where}: limit of {name}: {error}") from None


class Accesses:
    """What pods ask, worked out once for all that are alike."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[tuple[tuple[str, int], ...], Access] | str] = {}

    def of(self, pod: Pod, image: str, application: str, counted: Logins = ()) -> Wants:
        """What a pod asks; ``counted`` as for :func:`access_of`. Raises :class:`Unschedulable`."""
        said, spec = pod.metadata.annotations, pod.spec
        containers = (*spec.containers, *spec.init_containers)
        key = (
            image,
            counted,
            *map(said.get, ANNOTATIONS),
            *((one.restart_policy, _key(one.resources)) for one in containers),
            _key(spec.resources),
            tuple(spec.overhead.items()),
        )
        found = self._known.get(key)
        if found is None:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            try:
                found = limit_of(pod), access_of(pod, image, counted)
            except Unschedulable as problem:
                found = problem.reason
            self._known[key] = found
        if isinstance(found, str):
            raise Unschedulable(found)
        return Wants(found[0], found[1], application)


def _key(resources: Any) -> Any:
    return None if resources is None else (tuple(resources.limits.items()), tuple(resources.requests.items()))
