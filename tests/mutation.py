"""``python tests/mutation.py [WORD...]``: breaks one rule at a time in a copy of the tree, and shows that a test fails.

Without words all mutants are tried, else those whose rule or file has one of them. Kernels run as plain Python, so that
nothing is compiled. A mutant whose text is not in its file, or whose tests fail without it, is an error. It says which
test finds which mutant. Exit code 1 where one survives.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "docs", "examples", "bench", "pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile")
PATIENCE = 600
"""Seconds. A mutant whose tests take longer is not decided, which counts as surviving."""

FEW = "tests/equality/test_equality.py::test_core_and_twin_agree_on_a_few_small_clusters"
OVERLOADED = "tests/equality/test_equality.py::test_core_and_twin_agree_under_triage"
PLANNED = "tests/equality/test_plan.py::test_core_and_twin_agree_on_small_shortages"
KNOWN = "tests/equality/test_plan.py::test_core_and_twin_know_the_same"
MATHEMATICS = "tests/kernels/test_plan.py"
RESIZES = "tests/sim/test_resizes.py"
REQUESTS = "tests/equality/test_requests.py"
LEAVES = "tests/kernels/test_kernels.py"
SIMULATOR = "tests/sim/test_simulator.py"
BUDGETED = "tests/sim/test_budgets.py"
LIMITED = "tests/sim/test_limits.py"
SPARED = "tests/equality/test_spared.py"
BOOKS = "tests/engine/ledger/test_ledger.py"
TRANSLATE = "tests/kube/translate"
DEMANDS = f"{TRANSLATE}/test_pod_resources.py"
TERMS = f"{TRANSLATE}/test_pod_constraints.py"
FILTERS = f"{TRANSLATE}/test_pod_constraints_random.py"


class Mutant(NamedTuple):
    """One rule broken: in ``file`` (below src/slacktide) ``text``, which stands there once, becomes ``instead``."""

    rule: str
    file: str
    text: str
    instead: str
    tests: str


GIVING_UP = "kernels/plan/giving_up.py"
QOS, BUDGETS = "kernels/policies/qos_driven.py", "kernels/feasible/disruption_budgets.py"
LIMITS = "kernels/feasible/disruption_limits.py"
LEDGER, RESIZE = "kernels/drive/instance_ledger.py", "kernels/drive/resize.py"
AFFINITY, BOOK = "kernels/feasible/affinity.py", "kube/translate/pod_constraints.py"
METRIC, SCALE, PODS = "kernels/qos/metric.py", "kernels/drive/scale.py", "kube/translate/nodes.py"

MUTANTS = (
    Mutant("eligibility: a victim has more slack", QOS, "if not q_j < q_k or (", "if (", FEW),
    Mutant(
        "eligibility: less important classes only, below the margin",
        QOS,
        'if not below or j["rank"] > k["rank"]:',
        "if not below:",
        FEW,
    ),
    Mutant(
        "patience between equals",
        QOS,
        'if j["rank"] == k["rank"] and not q_j < gives_way_below(j, q_k):',
        'if j["rank"] == k["rank"] and not q_j < q_k:',
        FEW,
    ),
    Mutant(
        "margin: who is below it",
        QOS,
        "    below = q_j < phi_j\n",
        "    below = q_j <= phi_j\n",
        f"{SIMULATOR}::test_who_is_at_its_margin_is_not_below_it",
    ),
    Mutant(
        "overhead limit of victims",
        QOS,
        'return not applies or request_ledger.overhead_of(tb, slot, now) <= k["limit"]',
        "return True",
        FEW,
    ),
    Mutant("queue order: by metric", QOS, 'return a["key"] < b["key"]', 'return a["key"] > b["key"]', FEW),
    Mutant(
        "queue order: ties by row",
        QOS,
        '    return a["row"] < b["row"]\n\n\n@leaf\ndef can_wait',
        '    return a["row"] > b["row"]\n\n\n@leaf\ndef can_wait',
        FEW,
    ),
    Mutant(
        "triage: the lost take only what is much",
        "state/cluster.py",
        '"overload_patience": max(policy.overload_patience, policy.patience),',
        '"overload_patience": policy.patience,',
        "tests/sim/test_overload.py",
    ),
    Mutant(
        "triage: who asks for twice as much makes room for two",
        "kernels/policies/triage.py",
        "and makes_room_for_two(tb, slot, whole(SAVABLE - stands))",
        "and False",
        OVERLOADED,
    ),
    Mutant(
        "triage: the lost do not take the place of the less important that can be kept",
        "kernels/policies/triage.py",
        '    if k["rank"] > j["rank"] and (stands < LOST or not recovers(tb, cls)):',
        '    if k["rank"] > j["rank"]:',
        OVERLOADED,
    ),
    Mutant(
        "triage: the lost of a class that does not recover take the place of the less important",
        "kernels/policies/triage.py",
        '    if k["rank"] > j["rank"] and (stands < LOST or not recovers(tb, cls)):',
        '    if k["rank"] > j["rank"] and stands < LOST:',
        OVERLOADED,
    ),
    Mutant(
        "triage: what a host can give is kept apart for the lost that recover and for others",
        "kernels/feasible/lendable.py",
        "1 if triage.recovers(tb, cls) else 2",
        "1",
        "tests/sim/test_overload.py",
    ),
    Mutant(
        "triage: the lost take the place of the less important that are lost",
        "kernels/policies/triage.py",
        "    return spare or is_given_up(",
        "    return spare or stands < LOST and is_given_up(",
        OVERLOADED,
    ),
    Mutant(
        "triage: what a host can give grows as its instances run on",
        "kernels/feasible/lendable.py",
        "    views.lendable_until(tb)[h, at] = until",
        "    views.lendable_until(tb)[h, at] = np.inf",
        OVERLOADED,
    ),
    Mutant(
        "triage: a large one that makes room for two is counted",
        "kernels/feasible/lendable.py",
        "    return not enough and not room_for_two",
        "    return not enough",
        "tests/sim/test_overload.py::test_one_that_takes_the_place_of_several_is_given_up_for_them",
    ),
    Mutant(
        "triage: who has less than the floor is not given up",
        "kernels/policies/triage.py",
        "    return is_late(tb, cls, q) and not (recovers(tb, cls) and starves(tb, row, cls, q, now))",
        "    return is_late(tb, cls, q)",
        OVERLOADED,
    ),
    Mutant(
        "triage: nobody is spared for a floor whose promise does not recover",
        "kernels/policies/triage.py",
        "and not (recovers(tb, cls) and starves(tb, row, cls, q, now))",
        "and not starves(tb, row, cls, q, now)",
        OVERLOADED,
    ),
    Mutant(
        "triage: nobody whose promise does not recover is given up for the work that stopping it would discard",
        "kernels/policies/triage.py",
        "        q_k = request_ledger.metric_keeping_work(tb, slot, q_k, now)",
        "        pass",
        "tests/sim/test_overload.py::test_a_job_that_has_its_promise_is_not_given_up_for_the_work_it_would_lose",
    ),
    Mutant(
        "triage: twice of everything",
        "kernels/policies/triage.py",
        "ROOMS = 2 ",
        "ROOMS = 3 ",
        OVERLOADED,
    ),
    Mutant(
        "triage: the nearest to its promise goes first",
        "kernels/queue/waiting_queue.py",
        "        if triage.turns_round(tb, whole(c)):",
        "        if False:",
        OVERLOADED,
    ),
    Mutant(
        "triage: the furthest from its promise gives way first",
        "kernels/policies/qos_driven.py",
        "return (q_a < q_b) != turned",
        "return q_a < q_b",
        OVERLOADED,
    ),
    Mutant(
        "plan: a part of the budget is held back",
        "kernels/plan/members.py",
        "slack + out[i] - reserve * budget - startup",
        "slack + out[i] - startup",
        KNOWN,
    ),
    Mutant(
        "plan: whoever is given up comes last",
        GIVING_UP,
        "units = np.rint((AWAY - ",
        "units = -np.rint((AWAY - ",
        PLANNED,
    ),
    Mutant(
        "plan: outside, too, whoever has most slack comes first",
        GIVING_UP,
        "(AWAY - 2.0 * max(",
        "(AWAY + 2.0 * max(",
        PLANNED,
    ),
    Mutant(
        "plan: nobody is taken back without a turn to spare",
        GIVING_UP,
        "    if before > count:\n",
        "    if False:\n",
        PLANNED,
    ),
    Mutant(
        "plan: who can run elsewhere lends nothing in a pool",
        "kernels/plan/pools.py",
        "    if pool == 0:\n        return True\n",
        "    if True:\n        return True\n",
        PLANNED,
    ),
    Mutant(
        "plan: the more important who could run elsewhere take room of a pool all the same",
        "kernels/plan/choosing.py",
        "        total -= others[level]\n",
        "        pass\n",
        PLANNED,
    ),
    Mutant(
        "plan: a short record stands for the whole horizon",
        GIVING_UP,
        "    stretch = horizon / over  #",
        "    stretch = 1.0  #",
        MATHEMATICS,
    ),
    Mutant(
        "plan: what those hold that are given up is no room for those kept",
        "kernels/plan/record.py",
        '            if is_given_up(tb, whole(slot["row"])):\n',
        "            if False:\n",
        KNOWN,
    ),
    Mutant(
        "plan: an outage comes back when it leaves the window",
        "kernels/plan/members.py",
        "        if leaves <= ladder[i]:\n",
        "        if True:\n",
        MATHEMATICS,
    ),
    Mutant(
        "plan: a ring that becomes coarser keeps its order",
        "kernels/plan/record.py",
        "samples[(oldest + 2 * i + 1) % SAMPLES]",
        "samples[2 * i + 1]",
        MATHEMATICS,
    ),
    Mutant(
        "priority: only less important classes are preempted",
        "kernels/policies/priority.py",
        '["rank"] > views.classes(tb)[cls]["rank"]',
        '["rank"] >= views.classes(tb)[cls]["rank"]',
        FEW,
    ),
    Mutant(
        "priority: the youngest goes first",
        "kernels/policies/priority.py",
        '        return a["admitted"] < b["admitted"]\n    return a["tie"] < b["tie"]',
        '        return a["admitted"] > b["admitted"]\n    return a["tie"] < b["tie"]',
        f"{SIMULATOR}::test_by_priority_the_youngest_of_a_class_goes_first",
    ),
    Mutant(
        "victims: only until there is room",
        "kernels/place/victims.py",
        "        if release(tb, slot):\n            return number\n    return -1\n\n\n@kernel\ndef choose_by_priority",
        "        release(tb, slot)\n    return number\n\n\n@kernel\ndef choose_by_priority",
        FEW,
    ),
    Mutant(
        "hosts that are down take nobody",
        "kernels/place/victims.py",
        '    if views.hosts(tb)[h]["down"]:\n        return -1\n',
        "",
        FEW,
    ),
    Mutant(
        "ties between hosts",
        "kernels/place/ranking.py",
        'return views.hosts(tb)[h]["tie"] > views.hosts(tb)[best]["tie"]',
        'return views.hosts(tb)[h]["tie"] < views.hosts(tb)[best]["tie"]',
        FEW,
    ),
    Mutant(
        "cost before score",
        "kernels/place/ranking.py",
        "return views.shared_cost(tb)[at, h, m] > views.shared_cost(tb)[at, best, m]",
        "return views.shared_cost(tb)[at, h, m] < views.shared_cost(tb)[at, best, m]",
        FEW,
    ),
    Mutant(
        "metric: alpha",
        METRIC,
        "return entitled(e, sigma) - (e + p) - alpha + since",
        "return entitled(e, sigma) - (e + p) + since",
        LEAVES,
    ),
    Mutant("metric: pending time counts", METRIC, 'p = slot["p"] + (now - slot["since"])', 'p = slot["p"]', LEAVES),
    Mutant("overhead: of what was received", METRIC, "return c / (running(slot, now) + c)", "return c", LEAVES),
    Mutant(
        "ledger after an eviction: running time is kept",
        LEDGER,
        '        instance["running"] += useful\n',
        '        instance["running"] = useful\n',
        FEW,
    ),
    Mutant(
        "ledger after an eviction: a batch request loses its work",
        LEDGER,
        'return q >= 0 and views.requests(tb)[q]["batch"] != 0',
        "return False",
        REQUESTS,
    ),
    Mutant(
        "ledger after an eviction: lost work",
        LEDGER,
        '        instance["running"] = 0.0\n',
        "        pass\n",
        f"{BOOKS}::test_a_job_loses_what_it_did_before_it_was_unready_as_well",
    ),
    Mutant(
        "ledger after an eviction: start-up is its overhead",
        LEDGER,
        '        instance["overhead"] += spent\n        instance["preemptions"] += 1\n',
        '        instance["preemptions"] += 1\n',
        FEW,
    ),
    Mutant(
        "start-up: hot where it ran before",
        LEDGER,
        '    if instance["first_host"] == h:\n        return True\n',
        "",
        FEW,
    ),
    Mutant(
        "budget: those chosen already count",
        BUDGETS,
        "    return used > left_of(tb, b)",
        "    return left_of(tb, b) < 1",
        BUDGETED,
    ),
    Mutant("budget: nobody beyond it", BUDGETS, "    return used > left_of(tb, b)", "    return False", FEW),
    Mutant(
        "budget: who leaves is none of the healthy",
        LEDGER,
        "        disruption_budgets.change(tb, row, whole(0), whole(-1))\n    host_slots.remove",
        "        pass\n    host_slots.remove",
        BUDGETED,
    ),
    Mutant(
        "limits: those chosen already count",
        LIMITS,
        '        used += account_of(tb, whole(views.slots(tb)[h, views.taken(tb)[v]]["row"])) == a\n',
        "        pass\n",
        LIMITED,
    ),
    Mutant(
        "limits: a disruption ages out of its window",
        LIMITS,
        'if now < views.disruptions(tb)[at] + limits["per"]:',
        'if now <= views.disruptions(tb)[at] + limits["per"]:',
        LIMITED,
    ),
    Mutant("limits: a cooldown waits for readiness", LIMITS, 'or account["recovering"] > 0 ', "", LIMITED),
    Mutant("limits: hours close", LIMITS, "return low < at + count and hours[low, 0] <= now", "return True", LIMITED),
    Mutant("limits: a move is a disruption", RESIZE, "    disruption_limits.begin(tb, row, now)\n", "", LIMITED),
    Mutant(
        "limits: a trial leaves no trace",
        "kernels/drive/gang.py",
        "            disruption_limits.try_one(tb, row, whole(-1))\n",
        "",
        LIMITED,
    ),
    Mutant(
        "limits: what failed by rank is looked at again as they loosen",
        LIMITS,
        "    if any_limits(tb) or pod_groups.any_whole(tb):\n",
        "    if False:\n",
        LIMITED,
    ),
    Mutant(
        "limits: within a pass what was evaluated is looked at again as they tighten",
        LIMITS,
        '    if account["several"]:  # else',
        "    if False:  # else",
        LIMITED,
    ),
    Mutant("order of victims: one that goes may keep another", BUDGETS, "victim_order.note(tb, h)", "pass", SPARED),
    Mutant(
        "order of victims: one that goes may take a rule with it",
        "kernels/place/search_with_rules.py",
        "    if number > 0:\n        victim_order.note(tb, h)\n",
        "",
        SPARED,
    ),
    Mutant(
        "order of victims: where it decided, a failure says nothing of larger metrics",
        "kernels/feasible/victim_order.py",
        "return marked == 0 or",
        "return True or",
        SPARED,
    ),
    Mutant(
        "least running time of a victim",
        BUDGETS,
        '    until = slot["put_at"] + views.classes(tb)[slot["cls"]]["min_running"]',
        '    until = slot["put_at"]',
        FEW,
    ),
    Mutant("spread: skew", AFFINITY, '- least <= condition["skew"]', '- least <= condition["skew"] + 1', FEW),
    Mutant("affinity: near a carrier", AFFINITY, "        return here > 0 or (", "        return True or (", FEW),
    Mutant(
        "anti-affinity: away from carriers",
        AFFINITY,
        'if tally(tb, whole(condition["counter"]), h) > 0:',
        'if tally(tb, whole(condition["counter"]), h) > 1:',
        FEW,
    ),
    Mutant(
        "resize room: what it has counts as free",
        RESIZE,
        'room = views.free(tb)[instance["host"], r] + grants.taken(tb, row, had, whole(r))',
        'room = views.free(tb)[instance["host"], r]',
        RESIZES,
    ),
    Mutant(
        "resize room: no more than the host has",
        RESIZE,
        "        if views.demand(tb)[wanted, r] > room:",
        "        if False:",
        RESIZES,
    ),
    Mutant(
        "resize: budgets hold for moves",
        RESIZE,
        "    return not disruption_budgets.spared(tb, h, host_slots.slot_of(tb, h, row), whole(0), now)",
        "    return True",
        RESIZES,
    ),
    Mutant(
        "batch: no more at once than its parallelism",
        SCALE,
        '    if request["window"] == 0 or request["live"] < request["window"]:',
        "    if True:",
        REQUESTS,
    ),
    Mutant(
        "scale-down: as many as are too many", SCALE, "        if excess > 0:\n", "        if excess > 1:\n", REQUESTS
    ),
    Mutant(
        "engine: a vacant place is taken again",
        "engine/core/instances.py",
        "            controller.vacant.append(row)\n            if cause:",
        "            if cause:",
        f"{BOOKS}::test_a_victim_runs_on_in_the_books_until_its_grace_period_is_over",
    ),
    Mutant(
        "engine: a scaled-down request has no more rows",
        "engine/core/instances.py",
        "        if 0 <= controller.desired < len(controller.rows):",
        "        if False:",
        f"{BOOKS}::test_scaled_down_and_up",
    ),
    Mutant(
        "late: who starves is not lost",
        "kernels/queue/lateness.py",
        "return LOST if triage.is_lost(tb, row, cls, q, now) else STARVING",
        "return LOST",
        "tests/engine/ledger/test_lateness.py",
    ),
    Mutant(
        "bounds of triage: one that starts may be lost by then",
        "kernels/qos/metric_dynamics.py",
        ' or slot["on"] == np.inf:',
        ":",
        "tests/engine/core/test_engine.py::test_one_that_is_lost_while_it_starts_gives_its_place_to_one_that_is_not",
    ),
    Mutant(
        "extrapolate: lifetimes grow",
        "kernels/qos/slo_status.py",
        "    lifetime = request_ledger.lifetime_of(request, now)\n    delivered,",
        '    lifetime = request["total"]\n    delivered,',
        "tests/engine/ledger/test_extrapolate.py::test_what_runs_receives_all_of_its_lifetime_and_what_waits_nothing",
    ),
    Mutant(
        "concurrent: together only where all are up",
        "kernels/qos/request_ledger.py",
        'if request["approach"] == CONCURRENT and up < request["live"]:',
        "if False:",
        REQUESTS,
    ),
    Mutant(
        "explain: each node once",
        "engine/explain/feasibility.py",
        "                left &= ~fails\n",
        "                pass\n",
        "tests/engine/explain",
    ),
    Mutant("pods: sidecars count beside containers", PODS, "            _add(running, own)\n", "", DEMANDS),
    Mutant("pods: overhead counts", PODS, '    _add(running, _parsed("spec.overhead", spec.overhead))\n', "", DEMANDS),
    Mutant("pods: init containers stand beside sidecars", PODS, "            _add(own, sidecars)\n", "", DEMANDS),
    Mutant(
        "pods: host ports of init containers are free",
        PODS,
        '(one for one in spec.init_containers if one.restart_policy == "Always")',
        "spec.init_containers",
        DEMANDS,
    ),
    Mutant(
        "nodes: a cordoned one is tainted",
        "kube/translate/nodes.py",
        "    if node.spec.unschedulable:\n",
        "    if False:\n",
        f"{TRANSLATE}/test_nodes.py",
    ),
    Mutant(
        "nodes: the label has a value",
        "kube/translate/nodes.py",
        "(not equals or found == value)",
        "True",
        f"{TRANSLATE}/test_nodes.py",
    ),
    Mutant(
        "selectors: NotIn selects what lacks the label",
        "kube/translate/selectors.py",
        "holds = found is None or not _has(values, found)",
        "holds = found is not None and not _has(values, found)",
        f"{TRANSLATE}/test_selectors.py",
    ),
    Mutant(
        "budgets: two of them let nobody go",
        "kube/translate/disruption_budgets.py",
        "        if len(found) > 1:\n            return SEVERAL\n",
        "",
        f"{TRANSLATE}/test_disruption_budgets.py",
    ),
    Mutant(
        "classes: the label before the PriorityClass",
        "kube/translate/service_classes.py",
        'template.metadata.labels.get(CLASS_LABEL) or self._by_priority.get(template.spec.priority_class_name, "")',
        'self._by_priority.get(template.spec.priority_class_name) or template.metadata.labels.get(CLASS_LABEL, "")',
        f"{TRANSLATE}/test_service_classes.py",
    ),
    Mutant(
        "placements: others are told when they change",
        BOOK,
        "            self._leave(before, uid)\n        return grew",
        "            self._leave(before, uid)\n        return False",
        FILTERS,
    ),
    Mutant(
        "placements: the deleted are not spread over",
        BOOK,
        'one.role == "counted" and not template.deleting',
        'one.role == "counted"',
        TERMS,
    ),
    Mutant(
        "quantities: rounded up",
        "kube/client/quantities.py",
        "min(-(-nano // unit), LARGEST)",
        "min(nano // unit, LARGEST)",
        "tests/kube/client",
    ),
)


def copied(folder: Path) -> Path:
    """The tree, without what a run leaves in it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy(source, folder / name)
    return folder


def mutated(mutant: Mutant, folder: Path) -> str:
    """The file with its rule broken. Ends the program where the text is not there, or more than once."""
    text = (folder / "src" / "slacktide" / mutant.file).read_text()
    if (times := text.count(mutant.text)) != 1:
        raise SystemExit(f"{mutant.rule}: {mutant.file} has this {times} times, expected once:\n{mutant.text}")
    return text.replace(mutant.text, mutant.instead)


def first_failure(folder: Path, tests: str) -> str:
    """The first of the tests that fails in the copy; empty where all pass."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder / "src")}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=no"]
    words += ["-W", "ignore::RuntimeWarning"]  # plain Python remarks on inf - inf
    # What the compiled kernels need time for is left out: tests of hundreds of clusters.
    words += ["-m", "uncompiled" if tests in (FEW, RESIZES, REQUESTS, LEAVES) else "not slow"]
    try:
        done = subprocess.run([*words, *tests.split()], cwd=folder, env=environment, capture_output=True, text=True,
                              check=False, timeout=PATIENCE)  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode == 0:
        return ""
    found = re.search(r"^FAILED (?:tests/)?(\S+)", done.stdout, re.MULTILINE)
    if done.returncode != 1 or found is None:
        raise SystemExit(f"{tests} could not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found[1]


def tried(mutant: Mutant) -> str:
    """The test that finds the mutant; empty where none does."""
    with tempfile.TemporaryDirectory() as folder:
        text = mutated(mutant, copied(Path(folder)))
        (Path(folder) / "src" / "slacktide" / mutant.file).write_text(text)
        found = first_failure(Path(folder), mutant.tests)
    sys.stderr.write(f"{mutant.rule}: {found or 'SURVIVES'}\n")
    return found


def main(words: list[str]) -> int:
    """Try the mutants; the table, and 1 where one survives."""
    chosen = [one for one in MUTANTS if not words or any(word in one.rule or word in one.file for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        for one in chosen:
            mutated(one, ROOT)  # before any of them takes time
        copied(Path(folder))
        for tests in sorted({one.tests for one in chosen}):
            if failure := first_failure(Path(folder), tests):
                raise SystemExit(f"without a mutant: {failure} fails")
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        found = list(workers.map(tried, chosen))
    sys.stdout.write("| rule that is broken | in | found by |\n|---|---|---|\n")
    for one, test in zip(chosen, found, strict=True):
        sys.stdout.write(f"| {one.rule} | `{one.file}` | {f'`{test}`' if test else 'nothing'} |\n")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
