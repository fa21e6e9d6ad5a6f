"""How a workload's own limits are written, in annotations, and what they may be at the most.

The one source of both: the scheduler reads these texts, and the admission policies of the manifests, which ``make
manifests`` writes from here, refuse what it would refuse. So the patterns are regular expressions that RE2 knows too.
"""

from __future__ import annotations

import re

from slacktide.model.disruption_limits import LONGEST, MOST_DISRUPTIONS
from slacktide.model.hours import DAYS, OF_NO_REGION, REGIONS

LONGEST_TEXT = 1024
"""Characters of one annotation."""
MOST_HOURS = 32
"""Entries of hours, as a class has at most."""

_NUMBER = "[0-9]{1,12}([.][0-9]{1,9})?"
_UNITS = "wdhms"


def _duration(units: str = _UNITS) -> str:
    """A number of seconds, or numbers with units, each once and the longest first."""
    found = []
    for i, unit in enumerate(units):
        rest = "".join(f"({_NUMBER}{one})?" for one in units[i + 1 :])
        found.append(f"{_NUMBER}{unit}{rest}" if rest else f"{_NUMBER}{unit}?")
    return f"({'|'.join(found)})"


def _days() -> str:
    """A day, or the first and last of some that follow each other within a week."""
    found = [f"{day}(-({'|'.join(DAYS[i:])}))?" for i, day in enumerate(DAYS)]
    return f"({'|'.join(found)})"


_ZONE = f"(({'|'.join(REGIONS)})/[A-Za-z0-9_+/-]{{1,48}}|{'|'.join(one.replace('+', '[+]') for one in OF_NO_REGION)})"
"""What may be the name of a time zone: whether there is one of that name, an admission policy cannot ask."""
_ENTRY = f"{_days()}(,{_days()})* +([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)( +{_ZONE})?"
DURATION = f"^ *{_duration()} *$"
DISRUPTIONS = f"^ *[0-9]{{1,2}} +per +{_duration()} *$"
HOURS = f"^ *{_ENTRY} *(; *{_ENTRY} *)*$"
SLO = "^([0-9]|[0-9]?[.][0-9]{1,18})$"
PATTERNS = {"disruptions": DISRUPTIONS, "cooldown": DURATION, "min-running": DURATION, "hours": HOURS}
"""By the annotation's name behind the slash."""
EXPECTED = {
    "disruptions": "such as '1 per 2h'",
    "cooldown": "a duration such as 10m or 1h30m",
    "min-running": "a duration such as 10m or 1h30m",
    "hours": "such as 'Sat,Sun 00:00-24:00 Europe/Berlin'",
}


def is_written(name: str, text: str) -> bool:
    """Whether a text is one that says a limit of this name; whether it is within bounds it does not say."""
    return len(text) <= LONGEST_TEXT and re.fullmatch(PATTERNS[name][1:-1], text) is not None


def is_slo(text: str) -> bool:
    """Whether a text is a promise of a workload's own."""
    return len(text) <= LONGEST_TEXT and re.fullmatch(SLO[1:-1], text) is not None


def for_policies() -> dict[str, object]:
    """What the admission policies are made with, by the names that their template has for it."""
    return {
        "duration": DURATION,
        "disruptions": DISRUPTIONS,
        "hours": HOURS,
        "slo": SLO,
        "mostDisruptions": MOST_DISRUPTIONS,
        "longestSeconds": f"{LONGEST:.1f}",
        "longestText": LONGEST_TEXT,
        "mostHours": MOST_HOURS,
    }
