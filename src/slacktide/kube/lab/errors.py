"""What the lab raises."""

from __future__ import annotations

from slacktide.errors import SlacktideError


class LabError(SlacktideError):
    """The lab cannot be built, started, found or ended; the text says what to do."""


class ApiError(LabError):
    """The API server refused a request; ``status`` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)
