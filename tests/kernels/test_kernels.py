"""No kernel without a slow twin, and the leaves that have one of their own agree with it to the bit."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slacktide.engine.warm_up
import slacktide.inputs.prepare
import slacktide.policy
import slacktide.sim  # noqa: F401  imports every kernel
from reference import chance as slow_chance
from reference import metric as slow_metric
from reference import scores as slow_scores
from reference import times as slow_times
from reference.metric import Ledger
from slacktide.kernels import builtin
from slacktide.kernels.drive import scale
from slacktide.kernels.feasible import free_index
from slacktide.kernels.qos import metric, request_ledger
from slacktide.kernels.queue import request_heap
from slacktide.kernels.runtime import chance
from slacktide.kernels.runtime.compiling import KERNELS, callable_from_python
from slacktide.kernels.tables import request_records, schema
from support.called import BESIDE, code_of, twin_of
from support.clusters import cluster
from support.repository import TESTS
from support.runs import core, everything
from support.twins import TWINS

SMALL = range(4000, 4008)
importlib.import_module("slacktide.kernels.offline_admission")  # as who admits offline does
for score in builtin.SCORES.values():  # their modules are imported when a score is first named
    if score.module:
        importlib.import_module(score.module)

words = st.integers(0, 2**64 - 1)
whole = st.integers(0, 2**62)
seconds = st.integers(0, 2**45).map(lambda steps: steps / 2**20)
promises = st.sampled_from([1.0, 0.999, 0.95, 0.9, 0.7, 0.5, 1 / 3, 0.01])


def form(kernel: Any) -> Callable[..., Any]:
    """A kernel as Python can call it: compiled, or plain where compilation is off (``make uncompiled`` runs both)."""
    return callable_from_python(kernel)  # type: ignore[no-any-return]


mix, draw = form(chance.mix), form(chance.draw)
entitled, waiting_key, running = form(metric.entitled), form(metric.waiting_key), form(metric.running)
overhead, of_instance = form(metric.overhead), form(metric.metric)
fraction, first, second = form(free_index.fraction), form(free_index.first_part), form(free_index.second_part)

round_to_grid, stands_before = form(request_ledger.round_to_grid), form(request_heap.stands_before)
sort_excess = form(scale.sort_excess)


@pytest.mark.uncompiled
def test_every_kernel_has_a_twin() -> None:
    assert sorted(set(KERNELS) - set(TWINS)) == [], "kernels without an entry in twins.py"
    assert sorted(set(TWINS) - set(KERNELS)) == [], "entries of twins.py without a kernel"


@pytest.mark.parametrize("twin", sorted(set(TWINS.values())))
def test_every_twin_is_there(twin: str) -> None:
    assert twin.startswith(("reference.", "engine.naive:"))
    assert code_of(twin_of(twin)) is not None


@pytest.mark.parametrize("test", sorted(BESIDE))
def test_every_test_beside_twins_is_there_and_its_kernels_are(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (TESTS / file).read_text()
    assert set(BESIDE[test]) <= set(KERNELS)


@pytest.mark.uncompiled
@given(x=words)
def test_the_mixer_of_kernel_and_twin_are_equal(x: int) -> None:
    assert int(mix(np.uint64(x))) == slow_chance.mix(x)


@pytest.mark.uncompiled
@given(seed=words, stream=st.integers(1, 4), a=whole, b=whole)
def test_draws_of_kernel_and_twin_are_equal(seed: int, stream: int, a: int, b: int) -> None:
    assert int(draw(np.uint64(seed), stream, a, b)) == slow_chance.draw(seed, stream, a, b)


@pytest.mark.uncompiled
@given(e=seconds, slo=promises)
def test_entitlement_of_kernel_and_twin_are_equal(e: float, slo: float) -> None:
    assert float(entitled(e, slo)) == slow_metric.earned(e, slo)


@pytest.mark.uncompiled
@given(e=seconds, p=seconds, slo=promises, alpha=seconds, since=seconds)
def test_waiting_keys_of_kernel_and_twin_are_equal(e: float, p: float, slo: float, alpha: float, since: float) -> None:
    assert float(waiting_key(e, p, slo, alpha, since)) == slow_metric.waiting_key(Ledger(e, p), since, slo, alpha)


@pytest.mark.uncompiled
@given(
    books=st.tuples(seconds, seconds, seconds),
    since=seconds,
    startup=st.sampled_from([0.0, 0.5, 7.25]),
    passed=st.sampled_from([0.0, 0.25, 7.25, 7.5, 1e4]),
    pending=st.booleans(),
    slo=promises,
)
def test_metric_of_kernel_and_twin_are_equal(
    books: tuple[float, float, float], since: float, startup: float, passed: float, pending: bool, slo: float
) -> None:
    e, p, spent = books
    slot = np.zeros(1, schema.SLOT)[0]
    slot["e"], slot["p"], slot["overhead"], slot["since"] = e, p, spent, since
    slot["on"] = since + startup if pending else since
    now = since + passed
    ledger = slow_metric.running_ledger(Ledger(e, p), since, startup, pending, now)
    assert float(running(slot, now)) == ledger.e
    assert float(overhead(slot, now)) == slow_metric.overhead(spent, ledger.e)
    assert float(of_instance(slot, slo, 10.0, now)) == slow_metric.running_metric(ledger, slo, 10.0)


@pytest.mark.uncompiled
@given(
    free=st.tuples(st.integers(0, 2**50), st.integers(0, 2**50)),
    share=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    capacity=st.tuples(st.integers(0, 2**50), st.integers(0, 2**50)),
    name=st.sampled_from(["least-requested", "balanced", "mean"]),
)
def test_scores_of_kernel_and_twin_are_equal(
    free: tuple[int, int], share: tuple[float, float], capacity: tuple[int, int], name: str
) -> None:
    code = {"least-requested": builtin.LEAST_REQUESTED, "balanced": builtin.BALANCED, "mean": builtin.MEAN}[name]
    free = (min(free[0], capacity[0]), min(free[1], capacity[1]))
    demand = (int(free[0] * share[0]), int(free[1] * share[1]))
    left = [slow_scores.left_over(f, d, c) for f, d, c in zip(free, demand, capacity, strict=True)]
    expected = slow_scores.SCORES[name](*left)
    scale = [2.0**40 / c if c else 0.0 for c in capacity]
    x, y = (int(fraction(free[r], scale[r]) - fraction(demand[r], scale[r])) for r in range(2))
    assert min(int(first(code, x, y)), int(second(code, x, y))) == expected


@pytest.mark.uncompiled
@pytest.mark.parametrize("capacity", [1, 1000, 2**50])
@pytest.mark.parametrize("demand", [2**45, 2**51])
def test_a_demand_beyond_any_host_is_a_share_beyond_any_host(demand: int, capacity: int) -> None:
    share = int(fraction(demand, 2.0**40 / capacity))
    assert share == min(round(demand * (2.0**40 / capacity)), 2**44)


@pytest.mark.uncompiled
@given(v=st.one_of(seconds, st.floats(0, 2**32)))
def test_rounding_of_kernel_and_twin_are_equal(v: float) -> None:
    assert float(round_to_grid(v)) == slow_times.on_grid(v)


@pytest.mark.uncompiled
@given(
    live=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([0.0, 1.5, 1.5 + 2**-20, 9.0])), max_size=60
    )
)
def test_whom_a_scale_event_takes_first_is_as_the_twin_says(live: list[tuple[int, int, float]]) -> None:
    table = np.zeros(len(live) + 1, request_records.EXCESS)  # the last place is spare
    for row, (stage, siblings, at) in enumerate(live):
        table[row] = (row, stage, siblings, at)
    sort_excess(table, len(live))
    expected = sorted(((*one, row) for row, one in enumerate(live)), reverse=True)
    assert table["row"][: len(live)].tolist() == [row for *_, row in expected]


@pytest.mark.uncompiled
@given(
    one=st.tuples(st.integers(0, 3), st.sampled_from([-2.0, 0.0, 0.5, np.inf]), st.integers(0, 9)),
    other=st.tuples(st.integers(0, 3), st.sampled_from([-2.0, 0.0, 0.5, np.inf]), st.integers(0, 9)),
)
def test_requests_stand_in_the_order_of_the_queue(one: tuple[int, float, int], other: tuple[int, float, int]) -> None:
    table = np.zeros(2, request_records.WAITING)
    for place, (tier, metric_, row) in enumerate((one, other)):
        table[place]["tier"], table[place]["metric"], table[place]["row"] = tier, metric_, row
    assert bool(stands_before(table[0], table[1])) == (one < other)


def logs(folder: Path) -> list[Any]:
    """Decisions and passes of small clusters, as JSON has them."""
    found = []
    for seed in SMALL:
        for engine, several in product(("compiled", "stepwise"), (False, True)):
            one = cluster(seed, 3, 12, several).on(engine)
            found.append(everything(core(one, folder)))
    return list(json.loads(json.dumps(found)))


@pytest.mark.slow
def test_kernels_decide_alike_when_they_are_not_compiled(tmp_path: Path) -> None:
    program = (
        "import json, pathlib, sys, kernels.test_kernels as t; print(json.dumps(t.logs(pathlib.Path(sys.argv[1]))))"
    )
    path = os.pathsep.join([str(TESTS), *sys.path])
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    plain = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert plain.returncode == 0, plain.stderr
    assert json.loads(plain.stdout) == logs(tmp_path)
