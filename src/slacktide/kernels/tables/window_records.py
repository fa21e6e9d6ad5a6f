"""Records of promises over a window (docs/semantics.md, 'Windows'), of the arrays in :mod:`..tables.arrays`."""

from __future__ import annotations

from typing import Any

import numpy as np

_KINDS: tuple[Any, ...] = tuple(np.int64(i) for i in range(3))  # not literals, so that kernels are compiled once
LIFETIME, ROLLING, CALENDAR = _KINDS
"""Of ``windowed`` of a class."""

_OPEN: tuple[Any, ...] = tuple(np.int64(i) for i in range(3))
NOT_YET, OPEN, HELD = _OPEN
"""Of a request's stretch: nothing was admitted yet; it goes on; a live cluster is about to say how it went on."""

MOST_OUTAGES = 28
"""Outages that an account keeps apart; when there are more, two neighbours become one."""

# Of an instance whose own ledger decides, or of a request of several: what a window needs beside the ledger. All zero
# where nothing was lost yet. Outages are a chain, oldest first; 0 is none.
ACCOUNT = np.dtype(
    [
        ("base", "f8"),  # e at the beginning of the calendar window, or of what is known, seconds
        ("spent", "f8"),  # overhead then, seconds
        ("forgiven", "f8"),  # what is not counted of the seconds that were lost, and what the budget grants
        ("booked", "f8"),  # seconds lost that are in the chain, or were
        ("dropped", "f8"),  # those that are not any more
        ("begun", "f8"),  # when what is known began, where that is after the admission
        ("due", "f8"),  # the instant of the event that is to come
        ("short", "f8"),  # the largest share of a full window that was lost
        ("head", "i4"),
        ("tail", "i4"),
        ("cursor", "i4"),  # the oldest outage that counts
        ("count", "i4"),
        ("cls", "i4"),  # one more than the class of which it is; 0: it was not opened yet
        ("kind", "i4"),  # ``windowed`` of that class then
        ("flat", "i8"),  # the metric does not grow while it runs: the budget is that of a full window
    ],
    align=True,
)

# Of ``length`` seconds, when the account had received ``at`` seconds; of several that became one the last of these, and
# how far before it the first was. Of a request: ``length`` seconds were lost while ``width`` were received.
OUTAGE = np.dtype([("at", "f8"), ("length", "f8"), ("width", "f8"), ("next", "i4")], align=True)

# The present stretch of a request: a time in which the same share of it counts.
STRETCH = np.dtype(
    [
        ("begun", "f8"),  # its first admission, s
        ("since", "f8"),  # when the stretch began, s
        ("received", "f8"),  # E then, seconds
        ("up", "i8"),  # the share: so many
        ("live", "i8"),  # of so many
        ("open", "i8"),  # NOT_YET, OPEN or HELD
        ("told", "i8"),  # the operation of a live cluster that changed its counts last
    ],
    align=True,
)
