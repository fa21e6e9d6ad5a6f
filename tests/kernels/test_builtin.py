"""Where built-in policies, scores and costs are registered, and where policies are told apart."""

from __future__ import annotations

import ast

import pytest

from slacktide.kernels import builtin
from slacktide.policy import available
from slacktide.settings_page import describe
from support.clusters import POLICIES_WITH_RULES
from support.repository import REPOSITORY

KERNELS = REPOSITORY / "src" / "slacktide" / "kernels"
TOLD_APART = {name.upper().replace("-", "_") for name in POLICIES_WITH_RULES}
MAY = {KERNELS / "builtin.py", KERNELS / "policies" / "in_force.py", KERNELS / "policies" / "hybrid.py"}


@pytest.mark.uncompiled
def test_kernels_tell_policies_apart_in_one_place_only() -> None:
    for path in sorted(KERNELS.rglob("*.py")):
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert path in MAY or not names & TOLD_APART, path


@pytest.mark.uncompiled
def test_a_score_that_asks_where_users_are_says_how_it_chooses() -> None:
    for score in builtin.SCORES.values():
        found = score.addresses()
        assert ("placer_choose" in found) == (score.name in builtin.AT_USERS), score.name
        assert 0 not in found.values()


@pytest.mark.uncompiled
def test_numbers_tell_scores_costs_and_policies_apart() -> None:
    for entries in (builtin.SCORES, builtin.COSTS):
        codes = [one.code for one in entries.values()]
        assert len(set(codes)) == len(codes)
        assert builtin.OWN not in codes
    assert len({builtin.POLICIES[name].code for name in POLICIES_WITH_RULES}) == len(POLICIES_WITH_RULES)
    assert all(isinstance(getattr(builtin, name), int) for name in TOLD_APART)
    brought = {name: one.score for name, one in builtin.POLICIES.items() if one.score}
    assert all(name == score and score in builtin.SCORES for name, score in brought.items())


@pytest.mark.uncompiled
def test_what_is_registered_can_be_named_in_the_settings() -> None:
    named = {(one.kind, one.name) for one in available() if one.source == "built in"}
    for kind, entries in (("policies", builtin.POLICIES), ("scores", builtin.SCORES), ("costs", builtin.COSTS)):
        assert {(kind, name) for name in entries} <= named


@pytest.mark.uncompiled
def test_the_settings_page_names_what_is_registered() -> None:
    meanings = {one.key: one.meaning for one in describe()}
    for key, entries in (("name", builtin.POLICIES), ("score", builtin.SCORES), ("cost", builtin.COSTS)):
        unnamed = [name for name in entries if f"`{name}`" not in meanings[f"policy.{key}"]]
        assert unnamed == [], f"policy.{key}, its docstring in config.py"
