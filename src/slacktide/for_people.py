"""Numbers and times as people read them: the one formatter of commands, report, scheduler and live page.

``dashboard/assets/format.js`` is the same in JavaScript; a test holds both together.
"""

from __future__ import annotations

import math
import re

_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|ms|h|M|k|million)(?:\W|$))|(?<=<) (?=\d)")
NINES = (0.9999, 0.99999, 0.999999, 0.9999999)
"""From each of these on a share has a digit more, so that it still says how far from all it is."""


def count(value: float) -> str:
    """A number of things: ``23,201``, ``30.2 M``."""
    return f"{value / 1e6:,.1f} M" if value >= 10_000_000 else f"{value:,.0f}"


def counted(value: float, one: str, many: str = "") -> str:
    """So many of a thing: ``1 request``, ``2 requests``, ``3 passes``."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def unbroken(text: str) -> str:
    """A text for a page: no line ends between a number and its unit."""
    return _UNIT.sub("\u00a0", text)


def share(value: float | None, digits: int = 4) -> str:
    """An availability or share, cut and not rounded up, so that 1 means all: ``0.9999``; ``-`` for none."""
    if value is None or math.isnan(value):
        return "-"
    scale = 10**digits
    return f"{math.floor(value * scale + 1e-7) / scale:.{digits}f}"


def percent(value: float) -> str:
    """A share as per cent, cut, too: ``77.87 %``, ``99.995 %``, ``< 0.01 %``."""
    if math.isnan(value):
        return "-"
    if 0.0 < value < 0.0001:
        return "< 0.01 %"
    digits = 2 + sum(value >= one for one in NINES) if value < 1.0 else 2
    return f"{share(100.0 * value, digits).rstrip('0').rstrip('.')} %"


def duration(value: float) -> str:
    """A length of time as options take it, too: ``12.3s``, ``1h2m3s``, from a day on ``4d1h``; ``-`` for none."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    if size < 99.95:
        size = math.floor(10.0 * size + 0.5) / 10.0
        return f"{'-' if value < 0.0 < size else ''}{size:.1f}s"
    whole = math.floor(size + 0.5)
    if whole >= 86_400:
        whole = math.floor(size / 3600.0 + 0.5) * 3600
    parts = ((whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return ("-" if value < 0.0 else "") + "".join(f"{number}{unit}" for number, unit in parts if number)


def slack_text(slack: float | None) -> str:
    """Slack in a sentence; None, or infinite: as things stand the promise cannot break."""
    return "unlimited slack" if slack is None or math.isinf(slack) else f"{duration(slack)} of slack"


def clock(at: float, epoch: bool) -> str:
    """An instant: the time of day (UTC), or hours, minutes and seconds of a simulation."""
    whole = math.floor(at % 86_400 if epoch else at)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
