"""A story that finds something is cut down to a short one that finds the same."""

from __future__ import annotations

from collections.abc import Sequence

from simulated.shrinking import as_test, fewest, kind_of
from simulated.story import Outcome
from simulated.world import ALL_THE_WHILE, Cut, Part

EVERY = [Part("deed", number) for number in range(40)]


def test_as_few_parts_are_left_as_suffice() -> None:
    needed, asked = {EVERY[3], EVERY[17], EVERY[31]}, 0

    def still(parts: Sequence[Part]) -> bool:
        nonlocal asked
        asked += 1
        return needed <= set(parts)

    assert set(fewest(EVERY, still)) == needed
    assert asked < 60
    assert fewest(EVERY, lambda _: True) == []
    assert fewest(EVERY, lambda parts: len(parts) == len(EVERY)) == EVERY


def test_what_was_found_is_told_apart_without_its_names_and_instants() -> None:
    first, second = "46.320 s: app-91-10885cda-00000026 is bound to node-0", "9.1 s: app-7-2-0 is bound to node-12"
    assert kind_of(first) == kind_of(second) != kind_of("46.320 s: app-91-0 was rejected by node-0")


def test_what_is_left_is_a_test_that_says_what_happens() -> None:
    parts = ((Part("deed", 0), "   0.000 s: deploy"), (Part("incident", 2), "  45.493 s: kill"))
    found = Outcome(7, ("46.320 s: a is bound to b",), "", parts, 0.1, 1, 0, 1000)
    every = {
        *ALL_THE_WHILE,
        *(Part(name, 0) for name in ("slow", "lost", "unanswered", "busy", "conflict", "overloaded")),
    }
    text = as_test(Cut(frozenset({*every, parts[0][0]}), 50.0), found, found)
    assert "def test_what_seed_7_found() -> None:" in text
    assert "45.493 s: kill" in text
    assert "deploy" not in text
    assert "told_of(7, kept, ['lagging'], faults_seconds=50).findings == ()" in text
    compile(text, "it", "exec")
