"""A pass that is left and resumed, however often, decides what it decides undivided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from engine.workbench import T0, engine_with
from slacktide.config import Config
from slacktide.engine.core.engine import Engine, Journal
from slacktide.engine.core.operations import Decided, Operation, Run
from slacktide.engine.core.types import Outcome
from slacktide.engine.journal import codec
from slacktide.engine.journal.record import Recorder
from slacktide.engine.journal.replay import replay
from slacktide.errors import StateError
from support.churning import Churn, live_config
from support.clusters import POLICIES_WITH_RULES, cluster
from support.following import Following, livable, simulated
from support.runs import first_difference

ALLOWANCES = (1, 2, 3, 7, 20, 100)


class InParts(Engine):
    """An engine whose passes are cut into parts of so much work; ``cuts`` counts where they were left."""

    def __init__(self, config: Config, allowances: Iterator[int], journal: Journal | None = None) -> None:
        self.cuts = 0
        self._next: Callable[[], int] = allowances.__next__
        super().__init__(config, journal)

    def run(self, now: float) -> Outcome:
        asked = 0

        def allowance() -> int:
            nonlocal asked
            asked += 1
            return self._next()

        parts = self.run_in_parts(now, allowance)
        while True:
            try:
                next(parts)
            except StopIteration as over:
                self.cuts += asked - 1
                outcome: Outcome = over.value
                return outcome


def lines_of(engine: Engine, seed: int, steps: int) -> list[bytes]:
    """The record of an invented cluster."""
    lines: list[bytes] = []
    engine.journal = lambda operation: lines.append(codec.encode(operation))
    churn = Churn(engine, seed)
    for _ in range(steps):
        churn.step(float(churn.random.exponential(3.0)))
    return lines


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
@pytest.mark.parametrize("seed", range(2))
def test_records_of_whole_and_divided_passes_are_equal(seed: int, policy: str) -> None:
    """Down to the last operation that a pass counts."""
    config = live_config(name=policy, preempt_when="better", patience=5.0, gang=bool(seed % 2), min_running=seed % 3)
    whole = lines_of(Engine(config), seed, 50)
    cuts = 0
    for allowances in [*([one] for one in ALLOWANCES), ALLOWANCES]:
        engine = InParts(config, cycle(allowances))
        assert lines_of(engine, seed, 50) == whole
        cuts += engine.cuts
    assert cuts > 300


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("neighbours", [False, True])
def test_divided_passes_decide_as_the_simulator_does(several: bool, neighbours: bool, tmp_path: Path) -> None:
    cuts = 0
    for seed in range(7000, 7012):
        one = livable(cluster(seed, several=several, neighbours=neighbours))
        result, log = simulated(one, tmp_path)
        engine = InParts(one.config, cycle([1 + seed % 3]))
        found = first_difference("decisions", log, Following(one, result, engine).run())
        assert found is None, f"seed {seed}: {found}"
        cuts += engine.cuts
    assert cuts > 100


def test_a_record_of_divided_passes_is_replayed(tmp_path: Path) -> None:
    config = live_config(preempt_when="better", patience=5.0)
    with Recorder(tmp_path, config) as recorder:
        churn = Churn(InParts(config, cycle([1]), recorder), 5, load=1.5)
        for _ in range(80):
            churn.step(1.0)
    report = replay(tmp_path)
    assert report.differences == []
    assert report.decisions == len(churn.decisions) > 50


def crowd(journal: Journal | None = None) -> Engine:
    """Thirty pods wait on three hosts of four cores."""
    engine = engine_with()
    engine.journal = journal
    for number in range(30):
        engine.controller(f"c{number}", engine.specs[number % 3].service, 0, False)
        engine.arrive(f"p{number}", "p", f"c{number}", number % 3, T0)
        engine.wake(f"p{number}")
    return engine


def test_nothing_is_told_between_two_parts() -> None:
    told: list[Operation] = []
    engine = crowd(told.append)
    before = len(told)
    parts = engine.run_in_parts(T0 + 1, lambda: 1)
    next(parts)
    with pytest.raises(StateError, match=r"^sleep: found pass 1 under way, expected none$"):
        engine.sleep("p29")
    assert [type(one) for one in told[before:]] == [Run]
    parts.close()
    engine.sleep("p29")


def test_a_pass_that_is_closed_is_over() -> None:
    told: list[Operation] = []
    engine, whole = crowd(told.append), crowd().run(T0 + 1)
    parts = engine.run_in_parts(T0 + 1, lambda: 1)
    for _ in range(3):
        next(parts)
    assert engine.tables.tb.control["phase"] == 1
    parts.close()
    assert engine.tables.tb.control["phase"] == 0
    assert isinstance(told[-1], Decided)
    assert told[-1].outcome == whole
    assert len(engine.waiting()) == whole.waiting == 18


def parts_of(allowance: int) -> list[int]:
    """The work of each part of a pass over a crowd."""
    engine = crowd()

    def work() -> int:
        control = engine.tables.tb.control
        return int(control["operations"] + control["bounds"])

    done, before = [], work()
    for _ in engine.run_in_parts(T0 + 1, lambda: allowance):
        done.append(work() - before)
        before = work()
    return done


def test_a_part_does_no_more_than_its_allowance_and_one_turn() -> None:
    turns, parts = parts_of(1), parts_of(5)
    assert len(turns) > len(parts) > 5
    assert max(parts) <= 5 + max(turns)
