"""A plugin of pytest for runs with compilation off (``make twins``): which kernels and twins each test called.

At the end it fails where a kernel was called by no passed test that called its twin of ``twins.py``, too. Worked out of
code that ran, not of names: a test that no longer reaches a kernel is no evidence for it.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Generator
from functools import reduce
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

FOLDER = "SLACKTIDE_CALLED"
"""Environment variable: the folder into which workers write what they saw. Emptied at the start."""

BESIDE: dict[str, tuple[str, ...]] = {
    "engine/core/test_disruptions.py::test_a_move_is_a_disruption_until_it_is_refused": (
        "disruption_limits.limit_in_force",
        "live_events.disrupt",
        "live_events.stays",
    ),
    "kube/feed/test_last_resort.py::test_at_last_it_goes_before_the_budgets_of_the_less_important": (
        "disruption_budgets.any_protection",
        "scheduling_cycle.find_at_last",
        "scheduling_cycle.protect_again",
    ),
    "engine/core/test_disruptions.py::test_what_is_counted_is_what_happened": ("disruption_limits.take_back",),
    "engine/core/test_engine.py::test_promises_that_change_while_pods_wait_hold_from_then_on": (
        "live_events.weigh_queue",
    ),
    "engine/ledger/test_windows.py::test_a_class_that_gets_a_window_begins_it_then": (
        "live_events.classes_changed",
        "window_ledger.begin_anew",
    ),
    "engine/ledger/test_windows.py::test_the_slack_of_a_calendar_window_is_what_it_means": ("live_events.turn",),
    "engine/core/test_engine.py::test_the_engine_decides_as_the_simulator_does": (
        "apply_plan.host_changed",
        "instance_ledger.tell_to_leave",
        "live_events.bring_up_to",
        "live_events.depart",
        "live_events.dequeue",
        "live_events.enqueue",
        "live_events.forget",
        "live_events.gone",
        "live_events.join",
        "live_events.place",
        "live_events.put_back",
        "live_events.ready",
        "live_events.spare",
        "live_events.unready",
        "live_events.weigh",
        "live_events.write_slot",
        "request_ledger.goes_on_leaving",
    ),
    "engine/core/test_engine.py::test_what_is_told_late_changes_no_decision": ("live_events.change_kind",),
    "engine/core/test_relocation.py::test_a_pod_is_not_in_its_own_way_but_others_are": ("resize.welcoming_elsewhere",),
    "kube/act/test_second_look.py::test_preferences_and_the_score_choose_among_nodes_that_are_free": (
        "resize.best_of",
    ),
    "engine/explain/test_reasons.py::test_every_way_of_not_being_preempted_is_counted_apart": (
        "preemption_obstacles.metric_now",
        "preemption_obstacles.obstacle",
        "preemption_obstacles.obstacles",
    ),
    "engine/ledger/test_causes.py::test_losses_by_cause_are_exact": (
        "live_events.charge",
        "live_events.excuse",
        "live_events.give_back",
    ),
    "engine/ledger/test_extrapolate.py::test_carried_on_is_what_the_engine_says": (
        "slo_status.carry_on",
        "slo_status.received_in",
    ),
    "engine/ledger/test_ledger.py::test_random_histories_agree_with_slow_books": (
        "slo_status.least_of",
        "slo_status.metric_at",
        "slo_status.share",
        "slo_status.stand",
        "slo_status.stand_one",
    ),
    "engine/ledger/test_ledger.py::test_states_are_those_of_the_plain_rule": (
        "slo_status.is_missed",
        "slo_status.is_risky",
        "slo_status.state_of",
    ),
    "engine/explain/test_reasons.py::test_one_that_can_still_wait_says_how_long": ("preemption_obstacles.held",),
    "equality/test_edge.py::test_core_and_twin_agree_on_clusters_at_the_edge": ("delay_aware.choose",),
    "equality/test_request_windows.py::test_core_and_twin_agree_where_outages_become_one": (
        "window_outages.unite_nearest",
    ),
    "equality/test_switches.py::test_nothing_that_saves_work_changes_a_decision": ("search_free.find_free_one_by_one",),
    "equality/test_switches.py::test_an_inexact_switch_breaks_no_invariant": ("search.look_at_random",),
    "equality/test_switches.py::test_stepwise_and_compiled_runs_are_the_same": (
        "apply_plan.bind",
        "apply_plan.close_pass",
        "apply_plan.mark_done",
        "apply_plan.metric_in_queue",
        "apply_plan.open_pass",
        "apply_plan.lacking_capacity",
    ),
    "inputs/prepare/test_admission.py::test_admission_of_kernel_and_twin_are_equal": (
        "offline_admission.within_limits",
    ),
    "kernels/test_growth.py::test_more_restarts_on_other_hosts_than_the_set_of_visits_holds": (
        "instance_ledger.copy_visits",
    ),
    "state/test_layout.py::test_combinations_of_kernel_and_twin_are_equal": (
        "combinations.enter",
        "combinations.number",
        "combinations.place_of",
    ),
    "policy/test_contract.py::test_a_cost_of_ones_own_chooses_the_victims": ("plugin_calls.cost_of",),
    "policy/test_contract.py::test_a_policy_of_ones_own_must_respect_rules_and_budgets": (
        "apply_plan.spared",
        "apply_plan.welcoming",
    ),
    "policy/test_contract.py::test_a_score_of_ones_own_decides_like_the_built_in_one": (
        "free_index.score_by_user",
        "plugin_calls.score_of",
    ),
    "policy/test_own_numbers.py::test_what_a_score_asks_for_is_what_it_is_given": ("own_numbers.fill",),
}
"""By test: kernels that no small run with compilation off reaches together with their twin. The test compares them with
the simulator, a switch or an equation, which others compare with the twin."""


def code_of(function: Any) -> CodeType:
    """The code of a kernel, a twin or a class, of which the constructor counts."""
    function = getattr(function, "py_func", function)
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    if isinstance(function, property):
        function = function.fget
    return function.__code__  # type: ignore[no-any-return]


def twin_of(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return reduce(getattr, attribute.split("."), importlib.import_module(module))


class Seen:
    """What the tests of one process called."""

    def __init__(self, folder: Path) -> None:
        from slacktide import kernels
        from slacktide.kernels.runtime.compiling import KERNELS
        from support.twins import TWINS

        for module in pkgutil.walk_packages(kernels.__path__, "slacktide.kernels."):
            importlib.import_module(module.name)
        self.kernels = {code_of(kernel): name for name, kernel in KERNELS.items()}
        self.twins = {code_of(twin_of(name)): name for name in set(TWINS.values())}
        self.file = folder / f"{os.getpid()}.jsonl"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        codes: set[CodeType] = set()

        def called(frame: FrameType, _event: str, _: object) -> None:
            codes.add(frame.f_code)

        before = sys.gettrace()
        sys.settrace(called)
        try:
            yield
        finally:
            sys.settrace(before)
        found = {
            "test": item.nodeid,
            "kernels": sorted(self.kernels[one] for one in codes if one in self.kernels),
            "twins": sorted(self.twins[one] for one in codes if one in self.twins),
        }
        with self.file.open("a") as file:
            file.write(json.dumps(found) + "\n")


def without_evidence(folder: Path) -> list[str]:
    """Kernels that no test called together with their twin, each with its twin."""
    from slacktide.kernels.runtime.compiling import KERNELS
    from support.twins import TWINS

    beside = {name for names in BESIDE.values() for name in names}
    left = {name: TWINS.get(name, "none") for name in KERNELS if name not in beside}
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            one = json.loads(line)
            twins = set(one["twins"])
            for name in one["kernels"]:
                if left.get(name) in twins:
                    del left[name]
    return [f"{name} ({twin})" for name, twin in sorted(left.items())]


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ.setdefault(FOLDER, "build/called"))
    if not hasattr(config, "workerinput"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.jsonl"):
            old.unlink()
    config.pluginmanager.register(Seen(folder), "called-kernels")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput") or exitstatus != 0:
        return
    if left := without_evidence(Path(os.environ[FOLDER])):
        sys.stderr.write("\nkernels that no test called together with their twin:\n  " + "\n  ".join(left) + "\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
