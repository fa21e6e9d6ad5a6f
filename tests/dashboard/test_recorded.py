"""A recorded session at any instant, against an engine that was told as much of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slacktide.dashboard.recorded import Recording
from slacktide.dashboard.view import LEAVING, READY, STARTING, WAITING
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Decided, Run
from slacktide.engine.journal.record import Session, sessions
from slacktide.engine.journal.replay import carry_out
from slacktide.engine.ledger.slo_status import STATES, slo_status
from slacktide.errors import InputError, SlacktideError
from support.repository import REPOSITORY

RECORD = REPOSITORY / "tests" / "recorded"


@pytest.fixture(scope="module", params=[1, 2])
def session(request: pytest.FixtureRequest) -> Session:
    """Sessions of a real scheduler, in which pods are preempted, nodes cordoned, and it is killed and started anew."""
    return next(one for one in sessions(RECORD) if one.number == request.param)


@pytest.fixture(scope="module")
def recording(session: Session) -> Recording:
    return Recording(session, "recorded")


def told(session: Session, until: float) -> Engine:
    """An engine that was told all that was recorded before the first pass after an instant."""
    engine = Engine(session.config)
    for one in session.operations():
        match one.operation:
            case Run(now) if now >= until:
                return engine
            case Decided():
                continue
        try:
            carry_out(engine, one.operation)
        except (SlacktideError, KeyError):
            continue
    return engine


def instants(recording: Recording) -> Iterator[float]:
    assert recording.head.span is not None
    begin, end = recording.head.span
    for share in (0.13, 0.37, 0.62, 0.91):
        yield recording.at(begin + share * (end - begin)).at


def test_any_instant_is_what_an_engine_knew_then(session: Session, recording: Recording) -> None:
    for at in instants(recording):
        view, engine = recording.at(at), told(session, at)
        assert {one.name for one in view.pods} == {one.name for one in engine.pods.values()}
        nodes = {one.number: one.name for one in view.nodes}
        assert set(nodes.values()) == set(engine.hosts)
        state = {one.name: one for one in view.pods}
        for pod in engine.pods.values():
            row = state[pod.name]
            on_node = pod.state == types.LEAVING or (pod.state == types.PLACED and pod.bound)
            assert nodes.get(row.node, "") == (pod.host if on_node else "")
            expected = LEAVING if pod.state == types.LEAVING else READY if pod.ready else STARTING
            assert row.state == (expected if on_node else WAITING)
        shown = {(one.kind, one.namespace, one.name): one for one in view.workloads}
        assert len(shown) == len(engine.controllers)
        for key in engine.controllers:
            found, row_of = slo_status(engine, key, at), shown[tuple(key.split("/")[:3])]  # type: ignore[index]
            assert STATES[row_of.state] == found.state
            assert (row_of.running, row_of.waiting) == (found.running, found.waiting)
            assert row_of.delivered == pytest.approx(found.delivered, abs=1e-4)


def test_classes_count_all_workloads(recording: Recording) -> None:
    for at in instants(recording):
        view = recording.at(at)
        assert sum(sum(one.counts) for one in view.classes) == len(view.workloads)


def test_stories_name_who_made_room_for_whom(recording: Recording) -> None:
    view = recording.at(1e18)
    costly = next(one for one in view.decisions if one.victims)
    namespace, _, name = costly.victims[0].pod.partition("/")
    story = recording.story(namespace, name, 1e18)
    assert story is not None
    assert any(text.startswith(f"preempted on {costly.node}") and by == costly.workload for _, text, by in story)
    _, happened = recording.history(costly.victims[0].workload, 1e18, 100)
    assert any("preempted on" in text for _, text, _ in happened)
    assert recording.story(namespace, name, 0.0) == []
    assert recording.story("no", "body", 1e18) is None
    assert sum(recording.head.marks) >= len([one for one in view.decisions if one.victims])


def test_who_waits_is_told_why(recording: Recording) -> None:
    reasons = [one.reason for at in instants(recording) for one in recording.at(at).pods if one.state == WAITING]
    assert [one for one in reasons if "nodes are available: " in one]


def test_a_session_without_a_pass_is_refused(tmp_path: Path) -> None:
    from slacktide.engine.journal.record import Recorder
    from slacktide.settings import load

    with Recorder(tmp_path, load()) as recorder:
        Engine(load(), recorder)
    with pytest.raises(InputError, match="a session with a pass"):
        Recording(sessions(tmp_path)[0], "empty")
