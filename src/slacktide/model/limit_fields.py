"""Limits on disruption as the fields of a class: ``disruptions``, ``cooldown``, ``hours`` and ``min_running``; and
``preemption_limit``, which says ``disruptions`` by the names of Kueue's PreemptionLimit.

Settings files, manifests and ServiceClass objects have them alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slacktide.errors import ConfigError
from slacktide.model import limit_texts
from slacktide.model.disruption_limits import LONGEST, MOST_DISRUPTIONS, DisruptionLimits
from slacktide.model.durations import parse_duration
from slacktide.model.hours import DAYS, Hours, clock, minutes_of
from slacktide.model.written_numbers import shown, whole_number

FIELDS = ("disruptions", "preemption_limit", "cooldown", "hours", "min_running")
OF_A_WORKLOAD = "PreemptedWorkload"
"""Of a PreemptionLimit the scope that limits what each workload suffers."""


def limits_of(fields: Mapping[str, Any]) -> DisruptionLimits | None:
    """The limits that the fields say, those of :data:`FIELDS` of them; ``None`` where they say none.

    ``disruptions`` has ``max`` and ``per``, ``hours`` a list of ``days``, ``from``, ``to`` and ``time_zone`` (default
    UTC). ``preemption_limit`` has ``scope``, ``limit`` and ``limitWindowSeconds`` (Kueue, v1alpha1, KEP 13396), and
    stands in place of ``disruptions``. Durations are seconds or text, times of day text or minutes since midnight, as
    YAML reads ``22:00``.
    Raises :class:`ConfigError` naming the field.
    """
    said = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
    if not said:
        return None
    values: dict[str, Any] = {name: _seconds(name, said[name]) for name in ("cooldown", "min_running") if name in said}
    if "disruptions" in said:
        values |= {"most": said["disruptions"]["max"], "per": _seconds("disruptions.per", said["disruptions"]["per"])}
    if "preemption_limit" in said:
        if "disruptions" in said:
            raise ConfigError("preemption_limit: found disruptions as well, expected one of them: they say the same")
        values |= _of_kueue(said["preemption_limit"])
    if "hours" in said:
        values["hours"] = tuple(_hours(one) for one in said["hours"])
    return DisruptionLimits(**values)


def _of_kueue(said: Mapping[str, Any]) -> dict[str, Any]:
    """How often in how long, of a PreemptionLimit's fields."""
    scope, limit, window = (said[name] for name in ("scope", "limit", "limitWindowSeconds"))
    if scope != OF_A_WORKLOAD:
        others = "limits of queues and of a whole cluster are not known here"
        raise ConfigError(f"preemption_limit.scope: found {scope!r}, expected {OF_A_WORKLOAD!r}; {others}")
    if not 0 <= limit <= MOST_DISRUPTIONS:
        raise ConfigError(f"preemption_limit.limit: found {limit!r}, expected 0 to {MOST_DISRUPTIONS}")
    if not 1 <= window <= LONGEST:
        raise ConfigError(f"preemption_limit.limitWindowSeconds: found {window!r}, expected seconds from 1 on")
    return {"most": limit, "per": float(window)}


def fields_of(limits: DisruptionLimits | None) -> dict[str, Any]:
    """The fields that :func:`limits_of` reads back; only those that say something."""
    if limits is None:
        return {}
    fields: dict[str, Any] = {}
    if limits.most is not None:
        fields["disruptions"] = {"max": limits.most, "per": limits.per}
    if limits.cooldown > 0.0:
        fields["cooldown"] = limits.cooldown
    if limits.hours is not None:
        fields["hours"] = [
            {"days": list(one.days), "from": clock(one.begin), "to": clock(one.end), "time_zone": one.time_zone}
            for one in limits.hours
        ]
    if limits.min_running is not None:
        fields["min_running"] = limits.min_running
    return fields


def limits_of_text(name: str, text: str) -> DisruptionLimits:
    """One limit as an annotation has it: ``disruptions`` (``1 per 2h``), ``cooldown``, ``hours``, ``min-running``.

    Raises :class:`ConfigError`.
    """
    if len(text) > limit_texts.LONGEST_TEXT:
        raise ConfigError(f"found {shown(text)}, expected at most {limit_texts.LONGEST_TEXT} characters")
    found = DisruptionLimits(hours=hours_of_text(text)) if name == "hours" else None
    if not limit_texts.is_written(name, text):
        raise ConfigError(f"found {shown(text)}, expected {limit_texts.EXPECTED[name]}")
    if found is not None:
        return found
    if name != "disruptions":
        return limits_of({name.replace("-", "_"): text}) or DisruptionLimits()
    most, _, per = text.split()
    try:
        return DisruptionLimits(most=whole_number(most, 0, MOST_DISRUPTIONS), per=_seconds("per", per))
    except ValueError as error:
        raise ConfigError(f"disruptions.max: {error}") from error


def hours_of_text(text: str) -> tuple[Hours, ...]:
    """Hours as an annotation has them: ``Mon,Tue 22:00-06:00 Europe/Berlin; Sat,Sun 00:00-24:00``.

    Days may be a range, ``Mon-Fri``. Without a time zone it is UTC. Raises :class:`ConfigError`.
    """
    found, entries = [], text.split(";")
    if len(entries) > limit_texts.MOST_HOURS:
        raise ConfigError(f"hours: found {len(entries)} entries, expected at most {limit_texts.MOST_HOURS}")
    for entry in entries:
        words = entry.split()
        if len(words) not in (2, 3) or words[1].count("-") != 1:
            raise ConfigError(
                f"hours: found {shown(entry.strip())}, expected such as 'Sat,Sun 00:00-24:00 Europe/Berlin'"
            )
        begin, end = words[1].split("-")
        days = [day for part in words[0].split(",") for day in _days(part)]
        found.append(_hours({"days": days, "from": begin, "to": end, "time_zone": "".join(words[2:]) or "UTC"}))
    return tuple(found)


def _days(text: str) -> Sequence[str]:
    first, dash, last = text.partition("-")
    if not dash or first not in DAYS or last not in DAYS or DAYS.index(last) < DAYS.index(first):
        return [text]
    return DAYS[DAYS.index(first) : DAYS.index(last) + 1]


def _hours(one: Mapping[str, Any]) -> Hours:
    begin, end = (_minutes(f"hours.{name}", one[name]) for name in ("from", "to"))
    return Hours(tuple(one["days"]), begin, end, one.get("time_zone") or "UTC")


def _minutes(field: str, value: str | int) -> int:
    if isinstance(value, int):
        return value
    try:
        return minutes_of(value)
    except ConfigError as error:
        raise ConfigError(f"{field}: {error}") from error


def _seconds(field: str, value: str | float) -> float:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ConfigError(f"{field}: {error}") from error
