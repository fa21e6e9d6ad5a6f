"""Records of marks, rules, preferences and budgets, of the arrays in :mod:`slacktide.kernels.tables.schema`."""

from __future__ import annotations

import numpy as np

# A mark counted by domains of a topology: ``tallies`` from ``first`` on, one for each domain.
COUNTER = np.dtype([("topology", "i8"), ("first", "i8"), ("domains", "i8"), ("total", "i8")], align=True)

# A rule of a kind (docs/semantics.md, 'Neighbours, preferences and budgets').
CONDITION = np.dtype(
    [
        ("rule", "i8"),  # one of those below
        ("counter", "i8"),
        ("mark", "i8"),  # the first counter of the same mark, by which rules about one mark are known
        ("skew", "i8"),
        ("min_domains", "i8"),
        ("carried", "i8"),  # 1 where instances of the kind carry the mark themselves
        ("least", "i8"),  # spread: the least tally of all domains, as of the last ``prepare``
    ],
    align=True,
)
NEAR_BY, AWAY, SPREAD = range(3)

# Points of a host: ``weight`` times its domain's tally, or where ``counter`` is -1, for hosts of ``term``.
PREFERENCE = np.dtype([("weight", "i8"), ("counter", "i8"), ("term", "i8")], align=True)

# How many of its instances may be disrupted.
BUDGET = np.dtype(
    [
        ("bounds", "i8"),  # what ``amount`` bounds, one of those below
        ("amount", "i8"),
        ("expected", "i8"),  # instances live
        ("healthy", "i8"),  # of these on a host and past their start-up
        ("tried", "i8"),  # scratch: disrupted by the choice that is looked at
    ],
    align=True,
)
UNAVAILABLE, AVAILABLE, GIVEN = range(3)  # GIVEN: ``amount`` is what is left, told from outside
