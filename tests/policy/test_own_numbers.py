"""A score of a user's own that asks for numbers of the host and of who is placed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slacktide.config import Config
from slacktide.engine.core.engine import Engine
from slacktide.errors import PluginError
from slacktide.model import Hosts
from slacktide.policy.loader import load
from slacktide.state import cluster
from support.runs import core
from support.small import BRONZE, GOLD, Request, machines, small

HEAD = "def score(capacity, free, demand{}):\n    return {}\n"


def score(folder: Path, parameters: str, expression: str) -> str:
    path = folder / "mine.py"
    path.write_text(HEAD.format("".join(f", {one}" for one in parameters.split()), expression))
    return f"{path}:score"


def hosts(*attributes: dict[str, str]) -> Hosts:
    return replace(machines(*[8.0] * len(attributes)), attributes=attributes)


def placed(one: Hosts, requests: list[Request], chosen: str, folder: Path, **more: object) -> list[int]:
    """Hosts on which these requests are at last."""
    result = core(small(requests, one, end=100.0, policy={"score": chosen}, **more), folder)  # type: ignore[arg-type]
    assert result.decisions is not None
    return [int(host) for host in result.decisions["host"]]


def test_what_a_score_asks_for_is_what_it_is_given(tmp_path: Path) -> None:
    found = hosts({"failure-rate": "0.5"}, {"example.com/failure-rate": "0.25"}, {}, {"failure_rate": "many"})
    chosen = score(tmp_path, "failure_rate slo", "-1e9 if failure_rate != failure_rate else failure_rate * (.9 - slo)")
    requests = [Request(kind, admission=float(at)) for at, kind in enumerate((GOLD, BRONZE, GOLD, BRONZE))]
    assert placed(found, requests, chosen, tmp_path) == [1, 0, 1, 0]
    chosen = score(tmp_path, "rank failure_rate", "-1e9 if failure_rate != failure_rate else failure_rate * (rank - 2)")
    assert placed(found, requests, chosen, tmp_path) == [1, 0, 1, 0]


def test_a_run_counts_how_often_a_host_went_down(tmp_path: Path) -> None:
    chosen = score(tmp_path, "failures age", "-failures - (age - 50) ** 2")
    events = [(10.0, 0, "fail"), (20.0, 0, "repair"), (30.0, 1, "fail"), (35.0, 1, "repair"), (40.0, 1, "fail")]
    events += [(45.0, 1, "repair")]
    requests = [Request(GOLD, admission=50.0)]
    assert placed(hosts({}, {}), requests, chosen, tmp_path, events=events) == [0]
    assert placed(hosts({}, {}), requests, score(tmp_path, "failures", "failures"), tmp_path, events=events) == [1]


def test_of_nodes_it_counts_from_when_they_are_known(tmp_path: Path) -> None:
    config = Config()
    config = replace(config, policy=replace(config.policy, score=score(tmp_path, "failures age level", "1.0")))
    engine = Engine(config)
    engine.host("a", {"cpu": 1000, "memory": 1000}, {"example.com/level": "3"}, True)
    engine.host("b", {"cpu": 1000, "memory": 1000}, {}, True)
    tb = engine.tables.tb
    h = engine.hosts["a"]
    assert tb["attributes"][h, 2] == 3.0
    assert tb["hosts"]["failures"][h] == 0
    for up in (False, False, True, False):
        engine.host("a", {"cpu": 1000, "memory": 1000}, {"example.com/level": "3"}, up)
    assert tb["hosts"]["failures"][h] == 2
    engine.host("a", {"cpu": 1000, "memory": 1000}, {"example.com/level": "4"}, True)
    engine.host("a", {"cpu": 1000, "memory": 1000}, {"example.com/level": "5"}, False)
    assert tb["hosts"]["failures"][h] == 3
    assert tb["attributes"][h, 2] == 5.0
    assert tb["hosts"]["failures"][engine.hosts["b"]] == 0


def test_the_exact_name_goes_before_a_label_that_ends_so() -> None:
    assert cluster.numbers_of(["a_b"], {"x/a-b": "1", "a_b": "2"}) == [2.0]
    assert cluster.numbers_of(["a_b"], {"y/a.b": "1", "x/a-b": "3"}) == [3.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def score(capacity, free): return 0.0", "found a function of 2 arguments, expected 3"),
        ("def score(capacity, free, demand, *, slo): return 0.0", "argument 'slo' is not positional"),
        ("score = 3", "found int, expected a function of 3 arguments"),
    ],
)
def test_a_function_of_other_arguments_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(text)
    config = Config()
    with pytest.raises(PluginError, match=said):
        load(replace(config, policy=replace(config.policy, score=f"{tmp_path}/mine.py:score")))


def test_a_cost_asks_for_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def cost(slack, rank, out, slo): out[0] = 1.0")
    config = Config()
    with pytest.raises(PluginError, match="found a function of 4 arguments, expected 3"):
        load(replace(config, policy=replace(config.policy, cost=f"{tmp_path}/mine.py:cost")))
