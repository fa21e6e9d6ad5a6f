"""What the lab raises."""

from __future__ import annotations

from slacktide.errors import SlacktideError


class LabError(SlacktideError):
    """The lab cannot be built, started, found or ended; the text says what to do."""
