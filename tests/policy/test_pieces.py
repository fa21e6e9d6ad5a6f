"""A policy from pieces: the built-in ones written so decide as they do, and what is wrong with others is said."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.config import Config, preset
from slacktide.errors import ConfigError, PluginError
from slacktide.policy.loader import load
from slacktide.policy.pieces import Pieces
from support.clusters import Cluster, cluster
from support.following import followed, livable, simulated
from support.repository import REPOSITORY
from support.runs import compare, core, everything, first_difference, twin
from support.small import BRONZE, GOLD, SILVER, Request, machines, small

EXAMPLES = REPOSITORY / "examples"
PRIORITY: Pieces = runpy.run_path(str(EXAMPLES / "05_priority_from_pieces.py"))["priority"]
QOS_DRIVEN: Pieces = runpy.run_path(str(EXAMPLES / "06_qos_driven_from_pieces.py"))["qos_driven"]
SEEDS = range(46_000, 46_030)
KINDS: dict[str, Callable[[int], Cluster]] = {
    "rows": cluster,
    "requests": lambda seed: cluster(seed, several=True),
    "windows": lambda seed: cluster(seed).windowed(),
    "priorities and limits": lambda seed: cluster(seed).prioritised().limited(),
    "resizes": lambda seed: cluster(seed, resizes=True),
    "neighbours": lambda seed: cluster(seed, neighbours=True),
    "many": lambda seed: cluster(seed, largest=40, requests=300, several=seed % 2 == 1),
}


def by_priority(one: Cluster) -> tuple[Cluster, Pieces]:
    """The cluster under the built-in policy, and that from pieces."""
    return one.with_(policy={"cost": "default", "score": "mean", "name": "priority"}), PRIORITY


def as_published(one: Cluster) -> tuple[Cluster, Pieces]:
    """The same of the paper's policy."""
    paper = preset("published").policy
    names = ("preempt_when", "patience", "overload", "score", "cost", "queue_order", "victim_order", "overhead_scope")
    settings = {name: getattr(paper, name) for name in names}
    return one.with_(policy=settings | {"name": "qos-driven"}), QOS_DRIVEN


@pytest.mark.parametrize("both", [by_priority, as_published])
@pytest.mark.parametrize("kind", KINDS)
def test_the_built_in_policies_from_pieces_decide_as_they_do(kind: str, both: Any, tmp_path: Path) -> None:
    preempted = 0
    for seed in SEEDS if kind != "many" else SEEDS[:6]:
        built_in, pieces = both(KINDS[kind](seed))
        found = core(built_in, tmp_path, own=pieces)
        assert everything(found) == everything(core(built_in, tmp_path)), f"{kind}, seed {seed}"
        preempted += found.preemptions
        if kind in ("rows", "requests") and seed % 4 == 0:
            assert compare(found, twin(built_in)) is None, f"{kind}, seed {seed}"
    assert preempted > 0


def spends(out: Any, level: int, preemptions: int) -> None:
    out[level] -= 1.0 + preemptions


def lends(
    metric: float, margin: float, level: int, overhead: float, waiting_margin: float, waiting_level: int
) -> float:
    if overhead > 0.4:
        return -np.inf
    return metric - 3.0 if metric >= margin else waiting_margin if level > waiting_level else -np.inf


def lends_young(metric: float, age: float, waiting_slo: float) -> float:
    return metric if age < 40.0 else waiting_slo


ODD = {
    "the least important first": Pieces(
        lambda level, admitted: (-level, admitted), lambda level, waiting_level: level > waiting_level,
        lambda cpu, preemptions: (preemptions, -cpu), spends,
    ),
    "whoever was preempted least": Pieces(
        lambda admitted: -admitted,
        lambda preemptions, level, waiting_level: preemptions < 2 and level >= waiting_level,
        lambda memory: memory, spends,
    ),
    "the last first, by metric": Pieces(
        lambda admitted: -admitted, lends, lambda preemptions, metric: (preemptions, -metric), spends
    ),
    "by size and age": Pieces(lambda cpu, slack: (cpu, slack), lends_young, lambda age: age, spends),
    "always, by metric": Pieces(
        lambda metric: metric, lambda level, waiting_level: level > waiting_level,
        lambda overhead, metric: (overhead, metric), spends,
    ),
}  # fmt: skip
"""Whose order of the queue is not that of who may preempt whom, or of metrics."""


@pytest.mark.parametrize("kind", ["rows", "requests", "resizes", "windows", "priorities and limits", "many"])
@pytest.mark.parametrize("name", ODD)
def test_nothing_that_saves_work_changes_a_decision_by_pieces(name: str, kind: str, tmp_path: Path) -> None:
    preempted = 0
    for seed in SEEDS if kind != "many" else SEEDS[:6]:
        one = KINDS[kind](seed).with_(policy={"cost": "default"})
        found = core(one, tmp_path, own=ODD[name])
        assert everything(found) == everything(core(one.naively(), tmp_path, own=ODD[name])), f"{kind}, seed {seed}"
        preempted += found.preemptions
    assert preempted > 0


def own(folder: Path, text: str) -> str:
    """Pieces of a file: by class where the text says nothing else."""
    path = folder / "mine.py"
    path.write_text(
        "from slacktide.policy import Pieces\n\n\n"
        "def queue(admitted):\n    return admitted\n\n\n"
        "def gives_way(level, waiting_level):\n    return level > waiting_level\n\n\n"
        "def leaves(admitted):\n    return -admitted\n\n\n"
        "def cost(out):\n    out[-1] -= 1.0\n\n\n"
        f"{text}\n\nmine = Pieces(queue, gives_way, leaves, cost)\n"
    )
    return f"{path}:mine"


WRONG = [
    ("def queue(size):\n    return size", "queue: found the parameter 'size', expected names among metric, slack, slo"),
    ("def queue(waiting_rank):\n    return 1", "queue: found the parameter 'waiting_rank', expected"),
    ("def queue(overhead):\n    return 1", "queue: found the parameter 'overhead', expected"),
    ("def queue(rank):\n    return 1, 2, 3", r"queue: found \(1, 2, 3\), expected a number, or two, for rank = 1"),
    (
        "def gives_way(rank):\n    return 'yes'",
        "gives_way: found 'yes', expected True, False, or a number, for rank = 1",
    ),
    ("def leaves(rank):\n    return None", "leaves: found None, expected a number, or two, for rank = 1"),
    ("def leaves(rank):\n    return 1 / (rank - 1)", "leaves: ZeroDivisionError: division by zero, for rank = 1"),
    ("def cost(level):\n    pass", "cost: found no parameter 'out', expected one: the cost is added to it"),
    ("def cost(out):\n    return 1.0", "cost: found 1.0, expected nothing: the cost is added to 'out'"),
    ("cost = 3", "cost: found int, expected a function of numbers"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_is_no_piece_is_said(text: str, said: str, tmp_path: Path) -> None:
    config = Config()
    config = replace(config, policy=replace(config.policy, name=own(tmp_path, text)))
    with pytest.raises(PluginError, match=said):
        load(config)


def test_a_piece_that_raises_or_says_no_number_ends_the_run(tmp_path: Path) -> None:
    name = own(tmp_path, "def gives_way(level, cpu):\n    return 1.0 / (cpu - 2.0)")
    with pytest.raises(PluginError, match="raised an exception or gave no finite number before 10 s"):
        placed([Request(BRONZE, size=2.0), Request(GOLD, 10.0)], name, tmp_path)


def placed(requests: list[Request], policy: str, folder: Path, sizes: tuple[float, ...] = (2.0,)) -> list[Any]:
    """Time, row and victims of every decision of a run on machines of these sizes."""
    one = small(requests, machines(*sizes), end=100.0, policy={"name": policy})
    log = core(one, folder).decisions
    assert log is not None
    rows = zip(*(log[name].tolist() for name in ("time", "row", "first", "count")), strict=True)
    return [(time, row, log["victims"][first : first + count].tolist()) for time, row, first, count in rows]


def test_each_number_is_what_it_says(tmp_path: Path) -> None:
    """Four wait from the beginning for a host that has room for one at a time."""
    sizes = (1.5, 2.0, 1.0, 1.25)
    waiting = [Request(kind, 0.0, 5.0, size) for kind, size in zip((BRONZE, GOLD, SILVER, BRONZE), sizes, strict=True)]
    never = "def gives_way(level):\n    return False\n\n\n"
    for parameters, order, rows in ORDERS:
        name = own(tmp_path, f"{never}def queue({parameters}):\n    return {order}")
        assert [row for _, row, _ in placed(waiting, name, tmp_path)] == rows, order


ORDERS = [
    ("cpu", "-cpu", [1, 0, 3, 2]),
    ("memory", "memory", [2, 3, 0, 1]),
    ("rank, cpu", "rank, cpu", [1, 2, 3, 0]),
    ("slo", "-slo", [1, 2, 0, 3]),
    ("levels, level, admitted, cpu", "(levels - level) + admitted, -cpu", [0, 3, 2, 1]),
    ("age, cpu", "-cpu if age < 3.0 else cpu", [1, 2, 3, 0]),
    ("slack, metric, margin, cpu", "-cpu if slack == metric - margin and margin > 0.0 else cpu", [1, 0, 3, 2]),
]


def test_who_leaves_is_the_first_of_the_order_and_who_may(tmp_path: Path) -> None:
    """Two of bronze run, the second for a while longer than the first; both have lost their hosts before."""
    requests = [Request(BRONZE), Request(BRONZE, 1.0), Request(GOLD, 10.0), Request(GOLD, 20.0)]
    sizes = (2.0,)
    assert placed(requests, own(tmp_path, ""), tmp_path, sizes)[2:] == [(10.0, 2, [1]), (20.0, 3, [0])]
    first = own(tmp_path, "def leaves(admitted):\n    return admitted")
    assert placed(requests, first, tmp_path, sizes)[2:] == [(10.0, 2, [0]), (20.0, 3, [1])]
    once = own(tmp_path, "def gives_way(level, waiting_level, age):\n    return level > waiting_level and age < 15.0")
    assert placed(requests, once, tmp_path, sizes)[2:] == [(10.0, 2, [1])]
    fewer = own(tmp_path, "def cost(out, admitted):\n    out[0] -= admitted")
    two = [replace(one, size=2.0) for one in requests[:3]]
    assert placed(two, fewer, tmp_path, (2.0, 2.0))[2:] == [(10.0, 2, [0])]


def test_a_cost_of_its_own_beside_pieces_is_refused() -> None:
    config = Config()
    cost = f"{EXAMPLES / '03_own_cost.py'}:gentle"
    config = replace(config, policy=replace(config.policy, name=f"{EXAMPLES / '05_priority_from_pieces.py'}:priority"))
    config = replace(config, policy=replace(config.policy, cost=cost))
    with pytest.raises(ConfigError, match=r"policy.cost: found '.*:gentle' beside pieces, expected the piece 'cost'"):
        load(config)


@pytest.mark.parametrize(("both", "name"), [(by_priority, "05_priority_from_pieces.py:priority"),
                                            (as_published, "06_qos_driven_from_pieces.py:qos_driven")])  # fmt: skip
def test_a_live_engine_decides_by_pieces_as_by_the_built_in_policy(both: Any, name: str, tmp_path: Path) -> None:
    preempted = 0
    for seed in range(46_100, 46_104):
        built_in = livable(both(cluster(seed))[0])
        pieces = built_in.with_(policy={"name": f"{EXAMPLES / name}"})
        result, log = simulated(built_in, tmp_path)
        found = first_difference("decisions", log, followed(pieces, result).log)
        assert found is None, f"seed {seed}: {found}"
        preempted += result.preemptions
    assert preempted > 0


def test_a_file_with_a_policy_is_read_anew_for_each_run(tmp_path: Path) -> None:
    """What its module keeps of one run is none of the next one's."""
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    def decide(self, view, now):\n        return []\n")
    config = replace(Config(), policy=replace(Config().policy, name=f"{file}:Mine"))
    assert type(load(config).policy) is not type(load(config).policy)
