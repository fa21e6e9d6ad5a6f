"""Where users log in, as pod templates and counts say it."""

from __future__ import annotations

import math

import pytest

from slacktide.model.logins import parse_logins, shares_of


def test_a_place_alone_has_all_users() -> None:
    assert parse_logins("n3") == (("n3", 1.0),)


def test_places_have_shares_in_their_order() -> None:
    assert parse_logins(" n3:0.5  n2:0.25 n1:.25 ") == (("n3", 0.5), ("n2", 0.25), ("n1", 0.25))
    assert parse_logins("a:0.3333333 b:0.3333333 c:0.3333334")[0][1] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    ["", " ",
     "n3:0.5", "n3:0.5 n2:0.6", "n3 n2", "n3:0.5 n3:0.5", "n3:-1 n2:2", "n3:nan", ":1", "n3:", "n3:0 n2:1", "n3:1e0x"],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected PLACE, or .*such as n3:0\.5 n2:0\.5"):
        parse_logins(text)


def test_counts_become_shares_and_places_without_accesses_are_left_out() -> None:
    assert shares_of({"n2": 1.0, "n1": 3.0, "n3": 0.0, "n4": math.nan}) == (("n1", 0.75), ("n2", 0.25))
    assert shares_of({}) == ()
