"""The grid file: what it may say, and how clearly it is told when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import ConfigError
from slacktide.experiment import grid as grids
from slacktide.experiment.grid import Generated, Grid, Point, Share, derived_seed
from support.experiments import GRID, written


def read(folder: Path, text: str = GRID, **variables: str) -> Grid:
    return grids.read(written(folder, text), variables)


def test_every_combination_is_a_run_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = read(tmp_path, GRID.replace("seeds: 2", "seeds: [5, 6]"))
    assert found.points() == [
        Point("small", hosts, policy, seed)
        for hosts in ("all", "fewer")
        for seed in (5, 6)
        for policy in ("priority", "qos-driven")
    ]
    assert found.hosts["fewer"] == Share("all", 0.75, "cpu", 0)


def test_seeds_follow_from_base_and_workload_alone_so_that_runs_are_paired(tmp_path: Path) -> None:
    found = read(tmp_path, GRID + "base_seed: 7\n")
    by_axis: dict[tuple[str, str], list[int]] = {}
    for point in found.points():
        by_axis.setdefault((point.hosts, point.policy), []).append(point.seed)
    assert len(by_axis) == 4
    assert set(map(tuple, by_axis.values())) == {(derived_seed(7, "small", 0), derived_seed(7, "small", 1))}
    # python -c "import hashlib; print(int(hashlib.sha256(b'slacktide:7:small:0').hexdigest()[:8], 16))"
    assert derived_seed(7, "small", 0) == 1731030951
    assert len({derived_seed(0, name, number) for name in ("a", "b") for number in range(100)}) == 200


def test_settings_are_those_of_the_preset_then_the_common_ones_then_the_policys(tmp_path: Path) -> None:
    common = "settings:\n  qos: {alpha: 5, startup: always}\n  policy: {patience: 33}\n"
    text = GRID.replace(
        "  priority: {policy: priority}",
        "  one: {preset: published}\n  two: {settings: {qos: {startup: never}, policy: {patience: 1}}}",
    )
    found = read(tmp_path, text + common)
    one, two = found.policies["one"].config, found.policies["two"].config
    assert (one.qos.alpha, one.qos.startup, one.policy.patience) == (5, "always", 33)
    assert one.policy.victims == "next-pass"  # as published
    assert (two.qos.alpha, two.qos.startup, two.policy.patience) == (5, "never", 1)
    run = found.config_of(found.points()[0]).simulation
    assert (run.end, run.seed) == (600, found.points()[0].seed)


def test_a_settings_file_is_taken_as_simulate_takes_it_but_for_seed_and_end(tmp_path: Path) -> None:
    own = "classes: [{name: web, slo: 0.99, rank: 1}]\nsimulation: {seed: 4, end: 60}\n"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "delays.csv").write_text("1\n2\n", encoding="utf-8")
    (tmp_path / "mine" / "settings.yaml").write_text(own + "startup: {hot: delays.csv}\n", encoding="utf-8")
    found = read(tmp_path, GRID + "config: mine/settings.yaml\nsettings: {startup: {cold: 'constant:3'}}\n")
    for one in found.policies.values():
        assert [kind.name for kind in one.config.classes] == ["web"]
        assert one.config.startup.hot == str(tmp_path / "mine" / "delays.csv")
        assert one.config.startup.cold == "constant:3"
    run = found.config_of(found.points()[0]).simulation
    assert (run.end, run.seed) == (600, found.points()[0].seed)


def test_a_settings_file_of_a_grid_is_named_with_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("policy:\n  patiense: 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"settings\.yaml:2: policy\.patiense: unknown setting"):
        read(tmp_path, GRID + "config: settings.yaml\n")
    with pytest.raises(ConfigError, match=r"config: found 'none\.yaml', expected an existing file"):
        read(tmp_path, GRID + "config: none.yaml\n")


def test_a_workload_may_have_an_end_and_start_up_delays_of_its_own(tmp_path: Path) -> None:
    text = GRID.replace("small: small.csv", 'small: {file: small.csv, end: 60, startup: {hot: "constant:1"}}')
    found = read(tmp_path, text)
    config = found.config_of(found.points()[0])
    assert config.simulation.end == 60
    assert (config.startup.hot, config.startup.cold) == ("constant:1", "constant:5.5")


def test_names_may_stand_in_a_list_as_well(tmp_path: Path) -> None:
    text = GRID.replace("  priority: {policy: priority}", "  - {name: priority, policy: priority}").replace(
        "  qos-driven: {policy", "  - {name: qos-driven, policy"
    )
    assert read(tmp_path, text) == read(tmp_path)


def test_combinations_can_be_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, GRID + "exclude:\n  - {hosts: fewer, policy: [priority]}\n")
    assert {(one.hosts, one.policy) for one in found.points()} == {
        ("all", "priority"),
        ("all", "qos-driven"),
        ("fewer", "qos-driven"),
    }


def test_variables_are_filled_in_from_the_command_line_or_their_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "variables: {data: null, end: 60}\n" + GRID.replace("small: small.csv", "small: ${data}/small.csv").replace(
        "end: 600", "end: ${end}"
    )
    (tmp_path / "else").mkdir()
    grid = written(tmp_path / "grids", text)
    (tmp_path / "grids" / "small.csv").rename(tmp_path / "else" / "small.csv")
    monkeypatch.chdir(tmp_path)  # from which a path on the command line counts
    found = grids.read(grid, {"data": "else"})
    assert found.workloads["small"].origin == grids.FromFile(tmp_path / "else" / "small.csv")
    assert found.end == 60
    assert grids.read(grid, {"data": "else", "end": "70.5"}).end == 70.5


def test_a_generator_has_all_its_parameters_in_the_grid(tmp_path: Path) -> None:
    text = GRID.replace("small: small.csv", "small: {generator: light, with: {requests: 10}, seed: 3}")
    assert read(tmp_path, text).workloads["small"].origin == Generated(
        "light", {"hosts": 1000, "requests": 10, "load": 0.8, "life": 3600.0, "classes": "gold"}, 3
    )


def test_names_that_yaml_takes_for_numbers_are_names_everywhere(tmp_path: Path) -> None:
    text = GRID.replace("all: hosts.csv", "1: hosts.csv").replace("fewer: {of: all", "0.90: {of: 1")
    found = read(tmp_path, text + "exclude: [{hosts: 0.9}]\n")
    assert found.hosts["0.9"] == Share("1", 0.75, "cpu", 0)
    assert {one.hosts for one in found.points()} == {"1"}
    with pytest.raises(ConfigError, match=r"grid\.yaml:6: 0\.90: named twice"):
        read(tmp_path, text.replace("1: hosts.csv", "0.9: hosts.csv"))


BROKEN = [
    ("all: hosts.csv", '" all": hosts.csv', r"grid\.yaml:5: hosts\. all: found ' all', expected a name that can be"),
    ("all: hosts.csv", '"": hosts.csv', r"found '', expected a name that can be printed"),
    ("all: hosts.csv", '"a\\e[31m": hosts.csv', r"found 'a\\x1b\[31m', expected a name that can be printed"),
    ("intervals: 100", "exclude: [{hosts: []}]", r"exclude\.0\.hosts: found \[\], expected at least one name"),
    ("seeds: 2", "seedz: 2", r"grid\.yaml:10: seedz: unknown key.*did you mean 'seeds'"),
    ("seeds: 2", "seeds: 0", r"grid\.yaml:10: seeds: found 0, expected a whole number, from 1"),
    ("seeds: 2", "seeds: [1, 1]", r"grid\.yaml:10: seeds: found \[1, 1\].*different"),
    ("end: 600", "end: soon", r"grid\.yaml:11: end: found 'soon', expected a number"),
    ("end: 600", "end: -1", r"grid\.yaml:11: end: found -1, expected a number of seconds or a duration"),
    ("intervals: 100", "intervals: 0", r"grid\.yaml:12: intervals: found 0"),
    ("intervals: 100", "passes: some", r"grid\.yaml:12: passes: found 'some', expected true or false"),
    ("small: small.csv", "small: smal.csv", r"grid\.yaml:3: workloads\.small: found 'smal\.csv', expected an existing"),
    ("small: small.csv", "small: {file: small.csv, group: job}", r":3: workloads\.small\.group: .*'group_by'"),
    ("small: small.csv", "small: {file: small.csv, kind: batch}", r":3: workloads\.small\.kind: needs 'group_by"),
    ("small: small.csv", "small: {generator: cel}", r"workloads\.small\.generator: found 'cel'.*'cell'"),
    ("small: small.csv", "small: {generator: cell, with: {host: 2}}", r"with\.host: cell: unknown parameter.*'hosts'"),
    ("small: small.csv", "small: {generator: cell, with: {hosts: 0}}", r"with\.hosts: hosts: found 0, expected"),
    ("small: small.csv", "small: {seed: 1}", r"workloads\.small: found .* expected file or generator"),
    ("small: small.csv", "small: {file: small.csv, seed: 1}", r"small\.seed: belongs to a generator"),
    ("of: all", "of: al", r"grid\.yaml:6: hosts\.fewer\.of: found 'al', expected a host set.*'all'"),
    ("of: all", "of: fewer", r"hosts\.fewer\.of: found 'fewer', expected a host set that does not lead back"),
    ("all: hosts.csv", "all: {of: fewer, share: 1}", r":6: hosts\.fewer\.of: found 'all', .*lead back here$"),
    ("share: 0.75", "share: 1.5", r"hosts\.fewer\.share: found 1\.5, expected a number or per cent"),
    ("of: all, share: 0.75", "peak_of: x, from: all", r"hosts\.fewer\.peak_of: found 'x', expected a workload"),
    ("of: all, share: 0.75", "file: hosts.csv, share: 1", r"hosts\.fewer\.share: goes with 'of'"),
    ("{policy: priority}", "{}", r"grid\.yaml:8: policies\.priority: .*expected policy, preset or settings"),
    ("{policy: priority}", "", r"grid\.yaml:8: policies\.priority: found None, expected a mapping with policy"),
    ("{policy: priority}", "{preset: publishd}", r"priority\.preset: found 'publishd'.*'published'"),
    ("{policy: priority}", "{settings: {polcy: {}}}", r":8: polcy: unknown section.*'policy'"),
    ("{policy: priority}", "{settings: {policy: {patence: 1}}}", r":8: policy\.patence: unknown setting.*'patience'"),
    ("{policy: priority}", "{settings: {simulation: {seed: 1}}}", r"simulation\.seed: a grid says this.*'seeds'"),
    ("{policy: priority}", "{policy: no.py:Mine}", r"priority\.policy: found 'no\.py', expected an existing file"),
    ("{policy: priority}", "{policy: prority}", r":8: policies\.priority: policy\.name: found 'prority'.*'priority'"),
    ("policies:", "policiez:", r"policiez: unknown key"),
    ("workloads:\n  small: small.csv", "workloads: {}", r"workloads: found \{\}, expected at least one of workloads"),
    ("intervals: 100", "exclude: [{hosts: fwer}]", r"exclude\.0\.hosts: found 'fwer'.*'fewer'"),
    ("intervals: 100", "exclude: [{workload: small}]", r"exclude: .*expected at least one run that is left"),
    ("intervals: 100", "version: 2", r"version: found 2, expected 1"),
    ("small: small.csv", "small: ${data}/small.csv", r":3: workloads\.small: .*expected no variables"),
    ("small: small.csv", "small: small.csv\n  small: hosts.csv", r"grid\.yaml:4: small: named twice"),
    ("all: hosts.csv", "no: hosts.csv", r"hosts: .*expected names as text: write 'false' in quotes"),
]


@pytest.mark.parametrize(("right", "wrong", "told"), BROKEN, ids=[wrong for _, wrong, _ in BROKEN])
def test_what_is_wrong_is_told_with_its_place_and_what_would_be_right(
    tmp_path: Path, right: str, wrong: str, told: str
) -> None:
    assert right in GRID
    with pytest.raises(ConfigError, match=told):
        read(tmp_path, GRID.replace(right, wrong, 1))


def test_variables_that_lack_a_value_or_are_unknown_are_told(tmp_path: Path) -> None:
    text = "variables: {data: null}\n" + GRID.replace("small: small.csv", "small: ${data}/small.csv")
    with pytest.raises(ConfigError, match=r"workloads\.small.*give --set data=VALUE"):
        read(tmp_path, text)
    with pytest.raises(ConfigError, match=r"variable dta: found nothing of this name.*'data'"):
        read(tmp_path, text, dta=".")


def test_what_is_common_is_checked_under_its_own_lines(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"grid\.yaml:14: qos\.alhpa: unknown setting.*'alpha'"):
        read(tmp_path, GRID + "settings:\n  qos: {alhpa: 1}\n")
    with pytest.raises(ConfigError, match=r"grid\.yaml:14: settings\.startup\.hot: found 'hot\.erl'"):
        read(tmp_path, GRID + "settings:\n  startup: {hot: hot.erl}\n")
