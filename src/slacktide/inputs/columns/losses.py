"""The column ``lost``: what requests lost before the run begins, of those that were admitted before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import format_pairs, parse_pairs
from slacktide.inputs.columns.instances import LATEST, RequestColumns
from slacktide.inputs.problems import Problems
from slacktide.model import Past
from slacktide.model.request_events import lost_in

COLUMN = "lost"
EXPECTED = (
    "end=seconds such as '-7200=120; -60=10': ends of outages, 0 or less and increasing, and seconds above 0 lost in "
    "each, of which none reaches back to the one before"
)
EARLY = "outages since the request's admission, whose seconds lie after it"
ENDED = "seconds above those that it ran before the run begins, or it would be over"
NO_PAST = "nothing: this request is admitted when the run has begun"
AT_ONCE = "seconds from 0 on: of a batch request with parallelism it is not known which instances ran before"


def parse(text: str) -> Past:
    """Outages written as ``-7200=120; -60=10``; nothing is none. Raises :class:`ValueError`."""
    found = parse_pairs(text)
    before = -np.inf
    for end, seconds in found:
        if not (-LATEST <= end <= 0.0 and 0.0 < seconds <= LATEST and end - seconds >= before):
            raise ValueError(text)
        before = end
    return found


def format_past(past: Past) -> str:
    """Text from which :func:`parse` makes an equal one."""
    return format_pairs(past)


def check(
    lost: NDArray[np.int32],
    losses: Sequence[Past],
    admission: NDArray[np.float64],
    duration: NDArray[np.float64],
    requests: RequestColumns | None,
    lines: NDArray[np.int64] | None,
    problems: Problems,
) -> None:
    """Add to ``problems`` every cell that does not go with the admission of its row, and admissions before the run
    that cannot be."""
    texts = [format_past(one) for one in losses]
    begins = np.array([one[0][0] - one[0][1] if one else np.inf for one in losses])[lost]
    present = admission >= 0.0
    for wrong, expected in ((present & (lost > 0), NO_PAST), (~present & (begins < admission), EARLY)):
        values = [texts[code] for code in lost.tolist()] if wrong.any() else ()
        problems.add_rows(wrong, lines, COLUMN, values, expected)
    ran = -admission - np.array([lost_in(one) for one in losses])[lost]
    problems.add_rows(~present & (duration <= ran), lines, "duration", duration, ENDED)  # type: ignore[arg-type]
    if requests is not None:
        limited = np.maximum(requests.parallelism, 1) < requests.completions
        wrong = ~present & limited
        problems.add_rows(wrong, lines, "admission", admission, AT_ONCE)  # type: ignore[arg-type]
