"""Where an alert leads: its section of docs/runbooks.md."""

from __future__ import annotations

RUNBOOKS = "https://slacktide.io/runbooks.html"
"""The page, as `make docs` builds it; each alert's section is anchored by its name in small letters."""


def annotated(alert: str, summary: str, description: str) -> dict[str, str]:
    """The annotations of an alert."""
    return {"summary": summary, "description": description, "runbook_url": f"{RUNBOOKS}#{alert.lower()}"}
