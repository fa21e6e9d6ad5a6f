"""Deciding once more what a record says was decided, and comparing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec.structs import astuple

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Begin, Decided, Operation, Restore, Run
from slacktide.engine.core.types import Decision, Outcome
from slacktide.engine.journal.record import Recorded, Session, sessions
from slacktide.engine.ledger.restore import restore
from slacktide.errors import SlacktideError


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a session was decided otherwise; the rest of it is not compared, as its state is another one."""

    session: int
    place: str
    number: int
    time: float
    what: str

    def __str__(self) -> str:
        return f"session {self.session}, pass {self.number} at {self.time!r} s ({self.place}):\n{self.what}"


@dataclass(slots=True)
class Report:
    """What was compared. ``refused``: operations that the engine refused, now as then."""

    sessions: int = 0
    operations: int = 0
    passes: int = 0
    decisions: int = 0
    victims: int = 0
    refused: int = 0
    differences: list[Difference] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    """Places where a session was cut off."""
    versions: set[str] = field(default_factory=set)
    """Of slacktide, that recorded."""

    @property
    def equal(self) -> bool:
        """Whether everything was decided as recorded."""
        return not self.differences


def replay(directory: Path | str) -> Report:
    """Decide again what a record says was decided.

    Raises :class:`InputError` for a record that cannot be read.
    """
    report = Report()
    for session in sessions(directory):
        report.sessions += 1
        report.versions.add(session.slacktide)
        found = _replay_session(session, report)
        if found is not None:
            report.differences.append(found)
        if session.torn:
            report.torn.append(session.torn)
    return report


def _replay_session(session: Session, report: Report) -> Difference | None:
    engine = Engine(session.config)
    ours: Outcome | None = None
    run_at, now = "", 0.0
    for one, outcome in retrace(partial(carry_out, engine), session, report):
        match one.operation:
            case Run(at):
                ours, run_at, now = outcome, one.place, at
            case Decided(recorded):
                if ours is None:
                    return Difference(session.number, one.place, recorded.number, 0.0, "decided without a pass")
                if what := difference(recorded, ours):
                    return Difference(session.number, run_at, recorded.number, now, what)
                report.passes += 1
                report.decisions += len(recorded.decisions)
                report.victims += sum(len(one.victims) for one in recorded.decisions)
                ours = None
    return None


def carry_out(engine: Engine, operation: Operation) -> Outcome | None:
    """Tell an engine of an operation; the outcome of a pass."""
    match operation:
        case Begin() | Decided():
            return None
        case Restore(key, saved, pods, now):
            restore(engine, key, saved, pods, now)
            return None
    found: Outcome | None = getattr(engine, operation.method)(*astuple(operation))
    return found


def retrace(
    carry_out: Callable[[Operation], Outcome | None], session: Session, report: Report
) -> Iterator[tuple[Recorded, Outcome | None]]:
    """Carry out what was recorded: each operation when it is done, with the outcome of a pass.

    What the engine refused when it was recorded it refuses again.
    """
    for one in session.operations():
        outcome = None
        report.operations += not isinstance(one.operation, Begin | Decided)
        try:
            outcome = carry_out(one.operation)
        except (SlacktideError, KeyError):
            report.refused += 1
        yield one, outcome


def difference(recorded: Outcome, ours: Outcome) -> str:
    """In which way two outcomes of a pass differ, empty where they do not."""
    pairs = zip(recorded.decisions, ours.decisions, strict=False)
    for place, (theirs, mine) in enumerate(pairs, 1):
        if theirs != mine:
            return f"decision {place}\n  recorded  {_shown(theirs)}\n  replayed  {_shown(mine)}"
    for name, more, fewer in (("recorded", recorded, ours), ("replayed", ours, recorded)):
        if len(more.decisions) > len(fewer.decisions):
            shown = _shown(more.decisions[len(fewer.decisions)])
            return f"decision {len(fewer.decisions) + 1}\n  {name} only  {shown}"
    if recorded.waiting != ours.waiting:
        return f"pods that wait on\n  recorded  {recorded.waiting}\n  replayed  {ours.waiting}"
    return ""


def _shown(one: Decision) -> str:
    victims = ", ".join(f"{victim.uid} (slack {victim.metric:g} s)" for victim in one.victims)
    return f"{one.uid} to {one.host} (slack {one.metric!r} s)" + (f", preempting {victims}" if victims else "")
