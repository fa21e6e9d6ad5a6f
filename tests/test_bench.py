"""The programs of bench/: all can be imported, those of the tables run with tiny sizes, and no table is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.config import TUNED_LIMIT
from slacktide.inputs.generators.registry import generated
from support.benches import loaded
from support.repository import REPOSITORY

BENCH = REPOSITORY / "bench"
PAGES = ("docs/benchmarks.md", "docs/optimisations.md")


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    """A program of bench/, or python with other words, with bench/ and tests/ to import from."""
    paths = [str(BENCH), str(REPOSITORY / "src"), str(REPOSITORY / "tests")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def importing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_every_program_can_be_imported() -> None:
    names = sorted(path.stem for path in BENCH.glob("*.py"))
    done = ran("-c", f"import importlib\nfor name in {names!r}: importlib.import_module(name)")
    assert "tables" in names
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("importing")
def test_every_table_has_its_place_and_every_place_its_table() -> None:
    tables = loaded("tables").TABLES
    for page in {one.page for one in tables}:
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        begun, ended = (re.findall(rf"<!-- (\S+): {word} -->", text) for word in ("begin", "end"))
        assert begun == ended
        mine = {one.name for one in tables if one.page == page}
        assert mine <= set(begun)
        if page in PAGES:
            assert mine == set(begun)
            outside = re.sub(r"<!-- (\S+): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
            assert not re.findall(r"^\|---", outside, flags=re.MULTILINE), f"{page}: a table that nothing measures"


@pytest.mark.slow
def test_tables_are_measured_and_put_into_copies_of_their_pages() -> None:
    pages = {page: (REPOSITORY / page).read_bytes() for page in (*PAGES, "docs/requests.md")}
    done = ran("bench/tables.py", "--small", "light", "least", "growth", "requests-large")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("others used") == 4 or sys.platform != "linux"
    assert {page: (REPOSITORY / page).read_bytes() for page in pages} == pages


@pytest.mark.usefixtures("importing")
def test_where_nobody_was_measured_tables_have_a_dash() -> None:
    measuring = loaded("measuring")
    assert [measuring.share(value) for value in (None, 0.5)] == ["-", "0.5000"]
    assert [measuring.per_cent(value) for value in (None, 0.5)] == ["-", "50.00%"]


def test_the_tuned_limit_is_the_best_one_of_the_search_in_docs() -> None:
    text = (REPOSITORY / "docs" / "validation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (1 - slo|[0-9.]+) \|.*\| ([0-9.]+)% \| ([0-9.]+) \| [0-9,]+ \|$", text, flags=re.MULTILINE)
    assert len(rows) > 10
    fair = {limit: float(kept) for limit, kept, owed in rows if float(owed) <= 1.0}
    assert max(fair, key=fair.__getitem__) == f"{TUNED_LIMIT:g}"


def test_the_search_tells_the_best_limit() -> None:
    done = ran("bench/overhead_limit.py", "--kind", "short", "--seed", "101", "--limit", f"{TUNED_LIMIT:g}", "0.5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"The best: {TUNED_LIMIT:g}\n")
    kept = dict(re.findall(r"^\| (\S+|1 - slo) \| ([0-9.]+)% \|", done.stdout, flags=re.MULTILINE))
    assert float(kept[f"{TUNED_LIMIT:g}"]) > float(kept["1 - slo"]) >= float(kept["0.5"])


@pytest.mark.usefixtures("importing")
def test_growth_of_cases_is_told_from_the_smallest_size_on() -> None:
    cases = loaded("sized_cases")
    small, large = cases.Point(100, 2.0), cases.Point(400, 32.0)
    assert (cases.exponent(small, small), cases.exponent(small, large)) == ("", "2.0")


@pytest.mark.usefixtures("importing")
def test_settings_that_come_out_as_earlier_ones_are_named_below_the_table() -> None:
    options = loaded("options")
    rows = [["**p** = a, b", "5"], ["`x`", "6"], ["`y`", "5"], ["**recommended**", "1"], ["recommended, `x`", "1"]]
    shown, same = options.distinct([*rows, ["`z`", "6"]])
    assert shown == [rows[0], rows[1], rows[3]]
    assert same == "- The same as **p** = a, b: `y`\n- The same as **recommended**: `x`\n- The same as `x`: `z`"


@pytest.mark.usefixtures("importing")
def test_a_table_is_put_between_its_marks_with_what_it_was_measured_on(tmp_path: Path) -> None:
    tables = loaded("tables")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- month: begin -->\nold\n<!-- month: end -->\nafter\n")
    one = tables.Table("month", "page.md", "least.py", "--repeats 1 --requests 200 --hosts 10")
    tables.measured(one, True, str(tmp_path), page, "the state")
    text = page.read_text()
    assert text.startswith("before\n<!-- month: begin -->\n*the state; 2")
    assert "| 10 | 200 |" in text
    assert "old" not in text
    assert text.endswith("\n<!-- month: end -->\nafter\n")


@pytest.mark.usefixtures("importing")
def test_a_program_that_fails_is_named_and_its_table_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = loaded("tables")
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- month: begin -->\nold\n<!-- month: end -->\n<!-- light: begin -->\nold\n<!-- light: end -->\n"
    )
    broken = tables.Table("month", "page.md", "month.py --fraction nothing", "")
    silent = tables.Table("light", "page.md", "light.py --help", "")
    absent = tables.Table("peer", "page.md", "peer.py", "", programs=("no-such-program",))
    monkeypatch.setattr(tables, "TABLES", (broken, silent, absent))
    monkeypatch.setattr(tables, "REPOSITORY", tmp_path)
    monkeypatch.setattr(tables.library, "obstacle", lambda: "")
    (tmp_path / "bench").symlink_to(BENCH)
    monkeypatch.setattr(sys, "argv", ["tables.py"])
    with pytest.raises(SystemExit) as stopped:
        tables.main()
    assert "not measured: month light peer" in str(stopped.value.code)
    assert page.read_text().count("old") == 2
    assert "no-such-program is absent" in capsys.readouterr().err


@pytest.mark.usefixtures("importing")
def test_measuring_for_the_pages_asks_for_the_library_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba in the process would cost 100 MB and a third of a second in each table."""
    tables = loaded("tables")
    monkeypatch.setattr(tables.library, "obstacle", lambda: "there is none")
    monkeypatch.setattr(sys, "argv", ["tables.py", "least"])
    with pytest.raises(SystemExit, match=r"Kernels are to come from their library.*there is none"):
        tables.main()


@pytest.mark.usefixtures("importing")
def test_the_floor_places_as_a_plain_loop_over_hosts_does() -> None:
    least = loaded("least")
    for hosts in (3, 8, 100):  # what places is compiled once
        places_alike(least, hosts)


def places_alike(least: Any, hosts: int) -> None:
    workload, _ = generated("light", {"hosts": hosts, "requests": 2000})
    _, turned_away = least.least(workload, hosts)
    free, without = np.full(hosts, 8), 0
    running: list[tuple[float, int, int]] = []
    for admission, duration, cores in zip(workload.admission, workload.duration, workload.demand[:, 0], strict=True):
        for one in [one for one in running if one[0] <= admission]:
            free[one[1]] += one[2]
            running.remove(one)
        host = int(free.argmax())
        if free[host] < cores:
            without += 1
            continue
        free[host] -= int(cores)
        running.append((admission + duration, host, int(cores)))
    assert turned_away == without
    assert turned_away > 0 or hosts == 100


@pytest.mark.usefixtures("importing")
def test_the_figure_of_growth_is_drawn_from_the_table_that_is_kept(tmp_path: Path) -> None:
    growth = loaded("growth")
    points = [
        growth.Point(curve, name, hosts, requests, requests * micro * 1e-6, 1.0, 2.0)
        for name, micro in ((growth.LIGHT, 4.0), (growth.FLOOR, 0.5))
        for curve, hosts, requests in (
            *(("requests", 10, 100), ("requests", 10, 10_000)),
            *(("hosts", 10, 1000), ("hosts", 1000, 1000)),
        )
    ]
    growth.keep(tmp_path / "growth.csv", points)
    assert growth.kept(tmp_path / "growth.csv") == points
    done = ran("bench/growth.py", "--drawn-only", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    svg = (tmp_path / "growth.svg").read_text()
    assert "Against hosts, light, priority: 4 at 10 and 4 at 1,000." in svg
    assert "prefers-color-scheme: dark" in svg
    assert svg.count("<circle") == len(points)


@pytest.mark.slow
@pytest.mark.usefixtures("importing")
def test_the_peer_gets_the_same_requests(tmp_path: Path) -> None:
    peer = loaded("peer")
    try:
        classes = peer.classpath(tmp_path)
    except SystemExit as stopped:
        pytest.skip(str(stopped.code))
    workload, _ = generated("light", {"hosts": 10, "requests": 300})
    peer.written(workload, tmp_path / "requests")
    assert peer.cloudsim(classes, tmp_path / "requests", 10).completed == 300
