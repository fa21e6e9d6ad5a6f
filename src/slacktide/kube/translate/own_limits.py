"""What a class lets its workloads say of disruptions themselves, by annotations: nobody makes himself untouchable.

A limit of a workload's own takes it out of the reach of others for a time. How long that may be the class says, and by
default no workload can keep every disruption away.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from slacktide.errors import ConfigError
from slacktide.kube.resources.objects import OwnLimitsSpec
from slacktide.model import DisruptionLimits
from slacktide.model.disruption_limits import LONGEST
from slacktide.model.durations import parse_duration, write_duration
from slacktide.model.hours import DAY
from slacktide.model.limit_fields import limits_of_text
from slacktide.model.written_numbers import shown

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
