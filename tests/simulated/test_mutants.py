"""Rules of the live path that are broken on purpose stand where they are said to.

Whether seeds find them takes minutes: ``make soak-mutants``.
"""

from __future__ import annotations

import pytest

from simulated import mutants


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda one: one.rule)
def test_a_rule_that_is_broken_on_purpose_stands_where_it_is_said_to(mutant: mutants.Mutant) -> None:
    assert mutants.mutated(mutant, mutants.ROOT)  # ends the program where the text is not there once


def test_there_are_thirty() -> None:
    assert len({(one.file, one.text) for one in mutants.MUTANTS}) >= 30
