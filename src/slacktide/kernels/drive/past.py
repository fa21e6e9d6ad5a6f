"""What the accounts of windows know of instances that were admitted before a simulation begins."""

from __future__ import annotations

from slacktide.kernels.qos import window_ledger
from slacktide.kernels.qos.metric import withheld
from slacktide.kernels.runtime.compiling import entry
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@entry
def lose(tb: State, row: int, cls: int, at: float, seconds: float, until: float) -> None:
    """An instance lost ``seconds`` up to ``until``, when it had received ``at``, later than any other; O(1)."""
    window_ledger.note_loss(tb, row, cls, at, seconds, until)


@entry
def go_on(tb: State, row: int, cls: int, before: float) -> None:
    """All that an instance lost was told, and its ledger holds what it received: of that ``before`` seconds before the
    present calendar window, or 0; O(outages)."""
    account = views.accounts(tb)[row]
    begins = views.classes(tb)[cls]["begins"]
    if window_ledger.is_calendar(tb, cls) and begins > views.admission(tb)[row]:
        account["base"] = before
        account["dropped"] = withheld(begins - views.admission(tb)[row], before)
    window_ledger.count_anew(tb, row, cls)
