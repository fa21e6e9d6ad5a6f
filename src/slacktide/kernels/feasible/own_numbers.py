"""What a user's score may ask for beside amounts: numbers of the host and of the class of whom it is looked for."""

from __future__ import annotations

from slacktide.kernels.runtime.compiling import kernel
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

ATTRIBUTE, SLO, RANK, FAILURES, AGE = range(5)
NAMES = {"slo": SLO, "rank": RANK, "failures": FAILURES, "age": AGE}
"""By the name of a score's parameter. Any other is that of an attribute of the host (``ATTRIBUTE``)."""


@kernel
def fill(tb: State, h: int) -> None:
    """Write what the score asks for of host ``h`` into ``views.numbers(tb)``; O(numbers asked)."""
    one, host, control = views.classes(tb)[views.control(tb)["seeking"]], views.hosts(tb)[h], views.control(tb)
    for i in range(len(views.asked(tb))):
        asked, value = views.asked(tb)[i], views.attributes(tb)[h, i]
        if asked == SLO:
            value = one["slo"]
        elif asked == RANK:
            value = float(one["rank"])
        elif asked == FAILURES:
            value = float(host["failures"])
        elif asked == AGE:
            value = control["now"] - host["came"]
        views.numbers(tb)[i] = value
