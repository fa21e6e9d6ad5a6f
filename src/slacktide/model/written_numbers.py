"""Numbers in texts that anybody may write, such as annotations and labels: of bounded length, and within bounds.

Python refuses texts of more than 4,300 digits with an error of its own, and what is longer than a number of 64 bits
fits no table. Digits are those of ASCII.
"""

from __future__ import annotations

import re

SHOWN_CHARACTERS = 80
_WHOLE = re.compile(r"[0-9]{1,19}")


def shown(text: object) -> str:
    """A value as a message shows it, in quotes where it is a text, and shortened where it is long."""
    found = repr(text)
    return found if len(found) <= SHOWN_CHARACTERS else found[: SHOWN_CHARACTERS - 3] + "..."


def whole_number(text: str, least: int, most: int) -> int:
    """A whole number within bounds. Raises ``ValueError`` that says what was found and what would be right."""
    found = int(text) if _WHOLE.fullmatch(text) else None
    if found is None or not least <= found <= most:
        raise ValueError(f"found {shown(text)}, expected a whole number from {least} to {most}")
    return found
