"""The columns about what happens to requests when: ``resize``, ``lost`` and ``unready``.

::

    resize   600: cpu=2 memory=4; 1200: cpu=1     from then on they demand other amounts
    lost     -7200=120; -60=10                    outages before the run begins: when they ended, and the seconds lost
    unready  600=30; 1200=5                       spells in which those that run are not ready: begin, and seconds
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Codes, Floats, format_float, format_pairs, parse_float, parse_pairs
from slacktide.inputs.columns.instances import INSTANT, LATEST, RequestColumns
from slacktide.inputs.problems import Problems
from slacktide.model import Past, Resizing, Unreadiness
from slacktide.model.request_events import lost_in

RESIZE = (
    "seconds: resource=amount such as '600: cpu=2 memory=4; 1200: cpu=1', seconds increasing from 0, "
    "amounts 0 or more and at most 1e15, every resource once"
)
LATE = "seconds after those of the request's admission"
LOST = (
    "end=seconds such as '-7200=120; -60=10': ends of outages, 0 or less and increasing, and seconds above 0 lost in "
    "each, of which none reaches back to the one before"
)
EARLY = "outages since the request's admission, whose seconds lie after it"
ENDED = "seconds above those that it ran before the run begins; leave out what was over by then"
NO_PAST = "nothing: this request is admitted when the run has begun"
AT_ONCE = "seconds from 0 on: of a batch request with parallelism it is not known which instances ran before"
UNREADY = "begin=seconds such as '600=30; 1200=5': begins 0 or more and increasing, and seconds above 0 for each"
"""Both on the grid of times, on which less than half a microsecond is nothing."""
_SPECIAL = frozenset(" ;:=\"'\t\n")

Amounts = tuple[tuple[str, float], ...]


def parse_resizing(text: str) -> Resizing:
    """Changes written as ``600: cpu=2 memory=4; 1200: cpu=1``; nothing is none. Raises :class:`ValueError`."""
    if not text.strip():
        return ()
    parts = [part.partition(":") for part in text.split(";")]
    found = tuple((parse_float(time.strip()), parse_amounts(rest)) for time, _, rest in parts)
    if not all(0 <= time <= LATEST for time, _ in found):
        raise ValueError(text)
    if any(round(later / INSTANT) <= round(earlier / INSTANT) for (earlier, _), (later, _) in pairwise(found)):
        raise ValueError(text)
    return found


def parse_amounts(text: str) -> Amounts:
    """Amounts written as ``cpu=2 memory=4``, one at least. Raises :class:`ValueError`."""
    amounts = tuple(_parse_amount(word) for word in text.split())
    if not amounts or len({name for name, _ in amounts}) < len(amounts):
        raise ValueError(text)
    return amounts


def _parse_amount(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    number = parse_float(amount)
    if not name or _SPECIAL & set(name) or not 0 <= number <= LATEST:
        raise ValueError(text)
    return name, number


def format_resizing(resizing: Resizing) -> str:
    """Text from which :func:`parse_resizing` makes an equal one; :class:`ValueError` for names that it cannot read."""
    return "; ".join(f"{format_float(time)}: {format_amounts(amounts)}" for time, amounts in resizing)


def format_amounts(amounts: Amounts) -> str:
    """Text from which :func:`parse_amounts` makes equal ones. Raises :class:`ValueError` for names it cannot read."""
    for name, _ in amounts:
        if _SPECIAL & set(name):
            raise ValueError(f"found the resource {name!r}, expected a name without blanks, quotes, ';', ':' or '='")
    return " ".join(f"{name}={format_float(amount)}" for name, amount in amounts)


def check_resizings(
    resize: Codes,
    resizings: Sequence[Resizing],
    resources: Sequence[str],
    admission: Floats,
    lines: NDArray[np.int64] | None,
    problems: Problems,
) -> None:
    """Add to ``problems`` every cell with a resource that the workload has no column of, or with a time too early."""
    texts = [format_resizing(one) for one in resizings]
    first = np.array([one[0][0] if one else np.inf for one in resizings])[resize]
    early = np.rint(first / INSTANT) <= np.rint(admission / INSTANT)
    values = [texts[code] for code in resize.tolist()] if early.any() else ()
    problems.add_rows(early, lines, "resize", values, LATE)
    for code, one in enumerate(resizings):
        unknown = next((name for _, amounts in one for name, _ in amounts if name not in resources), None)
        if unknown is not None:
            expected = f"resources of this file ({', '.join(resources)}), not {unknown!r}"
            problems.add_rows(resize == code, lines, "resize", [texts[code]] * len(resize), expected)


def parse_past(text: str) -> Past:
    """Outages written as ``-7200=120; -60=10``; nothing is none. Raises :class:`ValueError`."""
    found = parse_pairs(text)
    before = -np.inf
    for end, seconds in found:
        if not (-LATEST <= end <= 0.0 and 0.0 < seconds <= LATEST and end - seconds >= before):
            raise ValueError(text)
        before = end
    return found


def format_past(past: Past) -> str:
    """Text from which :func:`parse_past` makes an equal one."""
    return format_pairs(past)


def check_losses(
    lost: Codes,
    losses: Sequence[Past],
    admission: Floats,
    duration: Floats,
    requests: RequestColumns | None,
    lines: NDArray[np.int64] | None,
    problems: Problems,
) -> None:
    """Add to ``problems`` every cell that does not go with the admission of its row, and admissions before the run
    that cannot be."""
    texts = [format_past(one) for one in losses]
    begins = np.array([one[0][0] - one[0][1] if one else np.inf for one in losses])[lost]
    present, before = admission >= 0.0, (admission < 0.0) & (admission >= -LATEST)
    for wrong, expected in ((present & (lost > 0), NO_PAST), (before & (begins < admission), EARLY)):
        values = [texts[code] for code in lost.tolist()] if wrong.any() else ()
        problems.add_rows(wrong, lines, "lost", values, expected)
    ran = -admission - np.array([lost_in(one) for one in losses])[lost]
    problems.add_rows(before & (duration <= ran), lines, "duration", duration, ENDED)  # type: ignore[arg-type]
    if requests is not None:
        limited = np.maximum(requests.parallelism, 1) < requests.completions
        wrong = before & limited
        problems.add_rows(wrong, lines, "admission", admission, AT_ONCE)  # type: ignore[arg-type]


def parse_unreadiness(text: str) -> Unreadiness:
    """Spells written as ``600=30; 1200=5``; nothing is none. Raises :class:`ValueError`."""
    found = parse_pairs(text)
    if not all(0.0 <= begin <= LATEST and 0.0 < seconds <= LATEST for begin, seconds in found):
        raise ValueError(text)
    if any(later < earlier for (earlier, _), (later, _) in pairwise(found)) or distinct(found) != found:
        raise ValueError(text)
    return found


def distinct(spells: Unreadiness) -> Unreadiness:
    """Without spells that take no time, as a run rounds times, or begin when the one before them does: of several the
    first one counts, as whoever is not ready cannot become so."""
    kept: list[tuple[float, float]] = []
    for begin, seconds in spells:
        later = not kept or round(begin / INSTANT) > round(kept[-1][0] / INSTANT)
        if later and round(seconds / INSTANT) > 0:
            kept.append((begin, seconds))
    return tuple(kept)


def format_unreadiness(spells: Unreadiness) -> str:
    """Text from which :func:`parse_unreadiness` makes equal ones."""
    return format_pairs(spells)
