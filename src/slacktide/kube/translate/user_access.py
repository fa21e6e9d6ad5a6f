"""What workloads say by annotations of their users (docs/live.md) and of disruptions, and the most that they may have.

A limit of a workload's own takes it out of the reach of others for a time. How long that may be its class says, and by
default no workload can keep every disruption away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from slacktide.errors import ConfigError
from slacktide.inputs.columns.access import DATA, DEADLINE, NAME, parse_data, parse_deadline, parse_name, parse_users
from slacktide.kube.client.quantities import amount, nanos
from slacktide.kube.resources.objects import Container, OwnLimitsSpec, Pod
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import Access, DisruptionLimits
from slacktide.model.disruption_limits import LONGEST
from slacktide.model.durations import parse_duration, write_duration
from slacktide.model.hours import DAY
from slacktide.model.limit_fields import limits_of_text
from slacktide.model.logins import EXPECTED as USERS
from slacktide.model.logins import Logins
from slacktide.model.network import NO_ACCESS
from slacktide.model.written_numbers import shown

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


HOUR, WEEK = 3600.0, 7 * DAY
WEEKS = 4
SEASONS = tuple(datetime(2026, month, 5, tzinfo=UTC).timestamp() for month in (1, 7))
"""Of so many weeks from then on hours of a week are the mean: time zones differ by other hours in winter than in
summer."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """``longest`` (s): so long after another disruption, or after its start, a workload may keep the next one away.
    ``open`` (s): of each week it must be open to disruption for as long. ``untouchable``: neither holds."""

    longest: float
    open: float
    untouchable: bool


def allowance(spec: OwnLimitsSpec | None) -> Allowance:
    """As a class says. Raises :class:`ConfigError` naming the field."""
    spec = spec or OwnLimitsSpec()
    try:
        longest = parse_duration(spec.longest)
    except ValueError as error:
        raise ConfigError(f"ownLimits: longest: {error}") from error
    if longest > LONGEST:
        raise ConfigError(f"ownLimits: longest: found {shown(spec.longest)}, expected {LONGEST:g} s at most")
    if not 0 <= spec.hours_a_week <= 168:
        raise ConfigError(f"ownLimits: hoursAWeek: found {spec.hours_a_week}, expected 0 to 168")
    return Allowance(longest, spec.hours_a_week * HOUR, spec.untouchable)


def stricter(of_class: DisruptionLimits, allowed: Allowance, name: str, text: str) -> DisruptionLimits:
    """The limits of a class, and of one annotation beside it, by its name behind the slash.

    Raises :class:`ConfigError` where that says more, or less, than the class allows.
    """
    own = limits_of_text(name, text)
    found = of_class.stricter(own)
    if not allowed.untouchable:
        _check(of_class, allowed, own, found)
    return found


def _check(of_class: DisruptionLimits, allowed: Allowance, own: DisruptionLimits, both: DisruptionLimits) -> None:
    if own.most == 0 and of_class.most != 0:
        _refuse("disruptions", "0", "at least 1 within some time")
    for name, said, its in (
        ("disruptions.per", own.per, of_class.per),
        ("cooldown", own.cooldown, of_class.cooldown),
        ("min_running", own.min_running or 0.0, of_class.min_running or 0.0),
    ):
        longest = max(allowed.longest, its)
        if said > longest:
            _refuse(name, write_duration(said), f"{write_duration(longest)} at most")
    if own.hours is not None:
        least = min(allowed.open, _open(of_class))
        if (found := _open(both)) < least:
            _refuse(
                "hours", f"{found / HOUR:.1f} of each week", f"{least / HOUR:.1f} at least, with those of the class"
            )


def _open(limits: DisruptionLimits) -> float:
    """Seconds of a week in which disruptions are allowed, in the season in which these are fewer."""
    found = []
    for begin in SEASONS:
        end = begin + WEEKS * WEEK
        intervals = limits.intervals(begin, end)
        if intervals is None:
            return WEEK
        found.append(sum(min(closes, end) - max(opens, begin) for opens, closes in intervals) / WEEKS)
    return min(found)


def _refuse(name: str, found: str, expected: str) -> None:
    raise ConfigError(
        f"{name}: found {found}, expected {expected}: the class allows a workload no more protection from disruptions"
    )
