"""Quantities mean what k8s.io/apimachinery 0.36 takes them to mean (expected values computed with it)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.kube.client.quantities import LARGEST, amount, nanos, quantity


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("0", 0, 0),
        ("1", 1000, 1),
        ("100m", 100, 1),
        ("0.5", 500, 1),
        ("0.1n", 1, 1),
        ("100u", 1, 1),
        ("0.5m", 1, 1),
        ("1.0000000001", 1001, 2),
        ("1.5Gi", 1610612736000, 1610612736),
        ("129M", 129000000000, 129000000),
        ("1e3", 1000000, 1000),
        ("1E3", 1000000, 1000),
        ("12e-1", 1200, 2),
        ("1.", 1000, 1),
        (".25", 250, 1),
        ("+3", 3000, 3),
        ("-0", 0, 0),
        ("007", 7000, 7),
        ("64Ki", 65536000, 65536),
    ],
)
def test_cpu_counts_in_millicores_and_all_else_in_units_rounded_up(text: str, milli: int, whole: int) -> None:
    assert (quantity("cpu", text), quantity("memory", text)) == (milli, whole)


@pytest.mark.parametrize("text", ["1E", "1Ei", "7Pi", "9223372036854775807"])
def test_large_amounts_are_exact_up_to_64_bits(text: str) -> None:
    expected = {"1E": 10**18, "1Ei": 2**60, "7Pi": 7 * 2**50, "9223372036854775807": 2**63 - 1}
    assert quantity("memory", text) == expected[text]


@pytest.mark.parametrize("text", ["8Ei", "1e40", "1e2000000000", "99999999999999999999"])
def test_what_is_larger_counts_as_the_largest(text: str) -> None:
    assert quantity("memory", text) == LARGEST


@pytest.mark.parametrize(
    "text",
    ["", ".", "+", "m", "Gi", "1K", "1mi", "1kib", "1.2.3", "1e", "1e+", "1Ki3", "-1", "-100m", "1_0", "1 0", "abc",
     "1e99999999999", "0x10", "१", "1" * 200],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected a Kubernetes quantity") as caught:
        nanos(text)
    assert repr(text)[1:60] in str(caught.value)


@given(st.integers(0, 10**12), st.sampled_from([("n", 1), ("u", 10**3), ("m", 10**6), ("", 10**9), ("k", 10**12)]))
def test_decimal_suffixes_are_powers_of_a_thousand(number: int, suffix: tuple[str, int]) -> None:
    assert nanos(f"{number}{suffix[0]}") == min(number * suffix[1], LARGEST * 10**9)


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert 0 <= quantity("cpu", text) <= LARGEST


def test_a_sum_is_rounded_once() -> None:
    assert amount("cpu", nanos("100u") + nanos("100u")) == 1
