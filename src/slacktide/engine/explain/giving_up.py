"""What a plan that gives somebody up has to say to people, in words that stay the same until the next plan."""

from __future__ import annotations

from datetime import UTC, datetime

from slacktide.engine.core.plans import Carried, GivenUp

TOLD_EXACTLY = 600.0
"""Seconds between two plans from which on it is said when the next one is made; more often, that it is soon."""
SOON = ((1.0, "1 s"), (10.0, "10 s"), (60.0, "a minute"))


def why(service: str, found: Carried | GivenUp) -> str:
    """Why somebody of a class is given up."""
    if not found.promises:
        return f"capacity does not carry all promises of class {service}"
    if found.promises == 1 and not found.carried:
        return f"capacity does not carry the only promise of class {service}"
    return f"capacity carries {found.carried} of the {found.promises} promises of class {service}"


def instant(at: float) -> str:
    """An instant, seconds since 1970, to the minute."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def next_plan(found: GivenUp) -> str:
    """When the next plan is made."""
    if found.every >= TOLD_EXACTLY:
        return f"next plan at {instant(found.next_plan)}"
    return f"next plan within {next((text for most, text in SOON if found.every <= most), '10 minutes')}"


def sentence(found: GivenUp, room: str = "") -> str:
    """All of it; ``room``: what those who are given up ask for, in words."""
    change = f"more room ({room}) or a lower promise would change that; " if room else ""
    return (
        f"given up by the plan since {instant(found.since)}: {why(found.service, found)}; it takes free room; "
        f"{change}{next_plan(found)}"
    )
