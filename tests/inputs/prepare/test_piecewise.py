"""Preparations piece by piece: to the byte what the same functions make of the whole, however it is cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slacktide.errors import ConfigError
from slacktide.inputs import write, write_pieces, write_workload
from slacktide.inputs.prepare import AdmissionInPieces, peak, peak_of_pieces, scale, thin_pieces, window_pieces
from slacktide.inputs.rows import select
from slacktide.model import NO_CONSTRAINT, Constraint, Hosts, Term, Workload
from support import small
from support.preparing import admit, thin, window
from support.small import Request, workload

TERMS = (NO_CONSTRAINT, Term((Constraint("disk", "==", "ssd"),)), Term((Constraint("disk", "==", "tape"),)))
HOSTS = Hosts(
    ids=np.arange(3),
    names=("a", "b", "c"),
    capacity=np.array([[0.3, 4.0], [0.7, 2.0], [1.1, 1.0]]),
    attributes=({"disk": "ssd"}, {}, {}),
)

# Few instants, so that ends and beginnings meet; amounts of which sums depend on their order.
rows = st.tuples(
    st.sampled_from([0.0, 0.0, 0.1, 0.3, 1.0, 2.5, 2.6, 4.0, 1e9]),
    st.sampled_from([1e-12, 0.1, 0.2, 0.7, 1.5, 2.4, 9.0, np.inf]),
    st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.3]),
    st.sampled_from([0.0, 0.01, 0.1, 1.7, 3.0]),
    st.sampled_from([0, 0, 0, 1, 2]),
)


@st.composite
def cut_workloads(draw: st.DrawFn) -> tuple[Workload, list[Workload]]:
    """A workload in order of admission, and the same in pieces."""
    drawn = sorted(draw(st.lists(rows, min_size=1, max_size=40)), key=lambda row: row[0])
    made = workload([Request(small.GOLD, start, length) for start, length, *_ in drawn])
    made = replace(
        made,
        demand=np.array([row[2:4] for row in drawn], np.float64),
        term=np.array([row[4] for row in drawn], np.int32),
        terms=TERMS,
    )
    bounds = sorted({0, len(made), *draw(st.lists(st.integers(0, len(made)), max_size=10))})
    return made, [select(made, slice(low, high)) for low, high in pairwise(bounds)]


def equal(made: Iterable[Workload], expected: Workload) -> None:
    found = list(made)
    assert all(len(piece) for piece in found)
    for name in ("ids", "admission", "duration", "demand", "service_class", "job", "anti_affinity", "term"):
        columns = np.concatenate([getattr(piece, name) for piece in found])
        assert columns.tobytes() == getattr(expected, name).tobytes(), name
    assert all(piece.terms == expected.terms and piece.resources == expected.resources for piece in found)


def or_error(make: Any) -> Any:
    try:
        return make()
    except ConfigError as error:
        return str(error)


@given(cut_workloads(), st.sampled_from([0.001, 0.3, 0.5, 1.0]), st.integers(0, 3))
def test_thinning(cut: tuple[Workload, list[Workload]], share: float, seed: int) -> None:
    made, pieces = cut
    equal(thin_pieces(pieces, len(made), share, seed), thin(made, share, seed))


@given(
    cut_workloads(), st.sampled_from([0.0, 0.1, 0.25, 2.5, 5.0]), st.sampled_from([0.05, 1.0, np.inf]), st.booleans()
)
def test_windows(cut: tuple[Workload, list[Workload]], start: float, length: float, keep: bool) -> None:
    made, pieces = cut
    expected = or_error(lambda: window(made, start, start + length, keep_running=keep))
    found = or_error(lambda: list(window_pieces(pieces, start, start + length, keep_running=keep)))
    if isinstance(expected, str):
        assert found == expected
    else:
        equal(found, expected)


@given(cut_workloads())
def test_scaling_needs_nothing_of_other_rows(cut: tuple[Workload, list[Workload]]) -> None:
    made, pieces = cut
    factors = {"time": 1.1, "demand": 0.3, "rate": 1.7}
    equal((scale(piece, **factors) for piece in pieces), scale(made, **factors))


@given(cut_workloads())
def test_peaks_are_equal_to_the_last_digit(cut: tuple[Workload, list[Workload]]) -> None:
    made, pieces = cut
    found, expected = peak_of_pieces(pieces), peak(made)
    assert found.resources == expected.resources
    assert found.amount.tobytes() == expected.amount.tobytes()
    assert found.time.tobytes() == expected.time.tobytes()


@given(cut_workloads(), st.sampled_from([0.3, 0.5, 1.0, 1.5]), st.sampled_from([None, 0.2, 2.0]))
def test_admission(cut: tuple[Workload, list[Workload]], limit: float, first: float | None) -> None:
    made, pieces = cut
    expected = or_error(lambda: admit(made, HOSTS, limit=limit, first_limit=first))
    admission = AdmissionInPieces(pieces, HOSTS, limit=limit, first_limit=first)
    found = or_error(lambda: list(admission))
    if isinstance(expected, str):
        assert found == expected
        return
    equal(found, expected.workload)
    assert admission.admitted == len(expected.workload)
    for name in ("no_host", "too_large", "over_limit", "at_first"):
        assert getattr(admission.refused, name) == getattr(expected, name)
    assert admission.refused.refused == expected.refused


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut_workloads(), st.integers(1, 9), st.sampled_from([".parquet", ".csv"]))
def test_files_are_equal_to_the_byte(
    tmp_path: Path, cut: tuple[Workload, list[Workload]], group: int, suffix: str
) -> None:
    made, pieces = cut
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "ROW_GROUP", group)
        write_workload(made, tmp_path / f"whole{suffix}")
        write_pieces(pieces, tmp_path / f"pieces{suffix}")
    assert (tmp_path / f"pieces{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_of_pieces_that_break_off_nothing_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of before")
    piece = workload([Request(small.GOLD, 0, 1)])

    def broken() -> Iterator[Workload]:
        yield piece
        raise ConfigError("enough")

    with pytest.raises(ConfigError, match="enough"):
        write_pieces(broken(), tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "of before"


def test_what_cannot_be_set_is_refused_before_a_piece_is_asked_for() -> None:
    def never() -> Iterator[Workload]:
        pytest.fail("asked for")
        yield

    with pytest.raises(ConfigError, match="share"):
        thin_pieces(never(), 9, 2.0, 0)
    with pytest.raises(ConfigError, match="window"):
        window_pieces(never(), 5, 4)
    with pytest.raises(ConfigError, match="limit"):
        AdmissionInPieces(never(), HOSTS, limit=0.1)


def test_a_window_asks_for_nothing_that_comes_after_it() -> None:
    asked = []

    def pieces() -> Iterator[Workload]:
        for second in range(9):
            asked.append(second)
            yield workload([Request(small.GOLD, second, 1)])

    assert sum(map(len, window_pieces(pieces(), 1, 3))) == 2
    assert asked == [0, 1, 2, 3]
