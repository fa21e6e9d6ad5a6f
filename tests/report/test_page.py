"""The page as a text: what is in it, whatever the names are, and the same bytes for the same folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

from report.conftest import one_of_a_kind
from report.made import Wanted, make
from slacktide.cli import main
from slacktide.errors import InputError, OutputError
from slacktide.reporting import write
from slacktide.reporting.content import _used
from slacktide.reporting.export import KEYS
from slacktide.results.experiment import read
from support.repository import REPOSITORY

VOID = {"meta", "link", "br", "path", "use"}


class Outline(HTMLParser):
    """Elements that are open, ids, headings, and scripts that would run."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.headings: list[int] = []
        self.scripts = 0
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.targets += [value[1:] for name, value in attrs if name == "href" and value and value.startswith("#")]
        self.targets += [one for name in ("aria-labelledby",) for one in (found.get(name) or "").split()]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.scripts += tag == "script" and found.get("type") is None
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    return found


def test_the_page_is_well_formed_and_its_links_lead_somewhere(page: Path) -> None:
    found = outline(page.read_text(encoding="utf-8"))
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert set(found.targets) <= set(found.ids)
    assert found.scripts == 1
    assert found.headings[0] == 1
    assert found.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(found.headings, found.headings[1:], strict=False))


def test_nothing_is_loaded_from_anywhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "@import" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)


def test_every_colour_of_a_drawing_follows_the_mode(page: Path) -> None:
    drawings = re.findall(r"<svg .*?</svg>", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(drawings) == 2 * (len(KEYS) + 1)  # wide and slim; two policies are paired with the reference
    for one in drawings:
        assert re.findall(r"(?<!, )#[0-9a-f]{6}\b", one) == []


@pytest.mark.slow
def test_equal_folders_give_equal_bytes_and_replace_all_earlier_figures(
    experiment: Path,
    page: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one_of_a_kind(monkeypatch)
    copy, out, figures = tmp_path / "elsewhere", tmp_path / "again.html", tmp_path / "figures"
    shutil.copytree(experiment, copy)
    expected = {one.name: one.read_bytes() for one in (page.parent / "figures").iterdir()}
    figures.mkdir()
    for name in (*expected, "pairs-3.svg"):
        (figures / name).write_text("of an earlier report")
    assert main(["report", str(copy), "--out", str(out), "--export", str(figures)]) == 0
    assert re.search(r"again\.html: \d+ figures, \d+\.\d MB\n", capsys.readouterr().out)
    assert out.read_bytes() == page.read_bytes()
    assert {one.name: one.read_bytes() for one in figures.iterdir()} == expected


def test_runs_without_results_are_listed_with_their_reason(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "2 of 12 runs have no results: 1 failed, 1 were not run yet." in text
    assert "the worker &lt;ran&gt; out of memory" in text
    assert "10 of 12 runs finished" in text


def test_settings_that_differ_are_shown_and_no_others(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    table = text[text.index('<table id="policies">') :].split("</table>")[0]
    shown = set(re.findall(r'<th scope="row">([^<]+)', table))
    assert shown == {"policy.name", "policy.preempt_when", "policy.patience", "policy.victims"}
    cells = [re.findall(r"<td[^>]*>([^<]*)", row) for row in table.split("</tr>") if ">policy.patience<" in row]
    assert cells == [["not used", "60", "0"]]  # the priority policy knows no patience, whatever its settings say


def test_what_penalties_follow_from_is_shown(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    table = text[text.index('<table id="classes">') :].split("</table>")[0]
    assert "0.9:\u00a010\u00a0%, 0.89109:\u00a030\u00a0%, 0.85509:\u00a0100\u00a0%" in table


def test_the_commands_are_those_of_this_experiment(page: Path) -> None:
    commands = "slacktide experiment run grid.yaml --out results\nslacktide report results --out report.html"
    assert commands in page.read_text(encoding="utf-8")


def test_names_are_only_names(hostile: Path) -> None:
    text = hostile.read_text(encoding="utf-8")
    found = outline(text)
    assert found.open == []
    assert found.scripts == 1
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "{{ 7*7 }}" in text
    assert "<title>&lt;script&gt;" in text
    assert "'=HYPERLINK" in (hostile.parent / "figures" / "penalties.csv").read_text(encoding="utf-8")
    drawings = list((hostile.parent / "figures").glob("*.svg"))
    assert len(drawings) >= 10
    for one in drawings:
        ElementTree.parse(one)


def test_one_policy_and_one_seed_are_enough(tmp_path: Path) -> None:
    wanted = Wanted(hosts={"N": 20}, policies=("qos-driven recommended",), seeds=(1,), end=300.0)
    write(make(tmp_path / "e", wanted), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "One policy only: no pairs, no increments." in text
    assert "One seed and one workload: there are no confidence intervals." in text
    assert "No contention classes" in text
    assert 'id="pairs-1"' not in text


def test_one_run_by_itself_has_a_page_that_names_who_got_least(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(
        "id,admission,duration,cpu,memory,class,namespace,name\n"
        "1,-3600,,6,6,gold,shop,web\n106,0,,6,6,silver,shop,cart\n3,0,600,1,1,bronze,,\n"
    )
    (tmp_path / "h.csv").write_text("id,name,cpu,memory\n1,a,8,8\n")
    files = [str(tmp_path / "w.csv"), str(tmp_path / "h.csv")]
    run, out = tmp_path / "run", tmp_path / "run.html"
    assert main(["simulate", *files, "--end", "1h", "--intervals", "10m", "--out", str(run)]) == 0
    assert main(["report", str(run), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert outline(text).open == []
    assert "1 of 1 runs finished" in text
    assert "experiment.json" not in text
    (least,) = re.findall(r"Requests that got least.*?</table>", text, re.DOTALL)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", least)
    assert ">106<" in least
    assert cells == ["shop/cart", "silver", "0.9", "0"]
    assert not re.search(r"<td[^>]*>-\d", text)  # the time before the run is nobody's demand
    again = tmp_path / "again"
    shutil.copytree(run, again)
    assert main(["report", str(again), "--out", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_bytes() == out.read_bytes()


def test_every_figure_is_described() -> None:
    text = (REPOSITORY / "docs" / "report.md").read_text(encoding="utf-8")
    names = [key.replace(r"\d+", "1") for key in KEYS]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_exported_figures_are_svg_png_and_csv(page: Path) -> None:
    figures = page.parent / "figures"
    names = {one.name for one in figures.iterdir()}
    keys = ("demand", "availability", "pairs-1", "pairs-2", "deficits", "penalties", "increments", "fairness", "queue")
    for key in keys:
        assert {f"{key}.svg", f"{key}.png", f"{key}.csv"} <= names
        assert (figures / f"{key}.png").read_bytes().startswith(b"\x89PNG")
        assert "var(--" not in (figures / f"{key}.svg").read_text()
        for width in ("85mm", "180mm"):
            assert (figures / f"{key}-{width}.pdf").read_bytes().startswith(b"%PDF")
            assert "var(--" not in (figures / f"{key}-{width}.svg").read_text()


@pytest.mark.parametrize("mine", ["thesis.tex", "holiday.png", "measured.csv", "pairs-1.csv.bak", "queue.png/mine"])
def test_figures_do_not_replace_what_is_no_figure(mine: str, experiment: Path, tmp_path: Path) -> None:
    path = tmp_path / "figures" / mine
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(OutputError, match=re.escape(mine.split("/")[0])):
        write(experiment, tmp_path / "r.html", tmp_path / "figures")
    assert not (tmp_path / "r.html").exists()
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["experiment.json", "grid.yaml", "runs/report.html"])
def test_a_report_does_not_replace_what_the_experiment_needs(name: str, experiment: Path) -> None:
    path = experiment / name
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(OutputError, match="belongs to the experiment"):
        write(experiment, path)
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_device_or_pipe_stays_what_it_is(experiment: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="a device or pipe"):
        write(experiment, pipe)
    assert pipe.is_fifo()


def broken_json(folder: Path) -> Path:
    (folder / "experiment.json").write_text("{")
    return folder / "experiment.json"


def no_experiment(folder: Path) -> Path:
    (folder / "experiment.json").unlink()
    return folder / "experiment.json"


def no_runs(folder: Path) -> Path:
    shutil.rmtree(folder / "runs")
    return folder


def first(folder: Path, file: str) -> Path:
    key = json.loads((folder / "experiment.json").read_text())["runs"][0]["key"]
    return Path(folder / "runs" / str(key) / file)


def no_intervals(folder: Path) -> Path:
    first(folder, "progress.parquet").unlink()
    return first(folder, "progress.parquet")


def lacking_column(folder: Path) -> Path:
    path = first(folder, "requests.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["duration"]), path)
    return path


def no_table(folder: Path) -> Path:
    first(folder, "requests.parquet").write_text("no Parquet")
    return first(folder, "requests.parquet")


def no_settings(folder: Path) -> Path:
    first(folder, "manifest.json").write_text('{"configuration": {"classes": 3}}')
    return first(folder, "manifest.json")


def unknown_class(folder: Path) -> Path:
    import pyarrow as pa

    path = first(folder, "requests.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("class")
    pq.write_table(table.set_column(place, "class", pa.array(["platinum"] * table.num_rows)), path)
    return path


def no_availability(folder: Path) -> Path:
    import pyarrow as pa

    path = first(folder, "requests.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("availability_restart")
    nothing = pa.nulls(table.num_rows, pa.float64())
    pq.write_table(table.set_column(place, "availability_restart", nothing), path)
    return path


def no_rows(folder: Path) -> Path:
    path = first(folder, "progress.parquet")
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    return path


def wrong_versions(folder: Path) -> Path:
    path = folder / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"versions": [1]}))
    return path


@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (broken_json, "not JSON"),
        (no_experiment, "an experiment's folder"),
        (no_runs, "0 of 12 finished"),
        (no_intervals, "runs with intervals write progress.parquet"),
        (lacking_column, "columns duration"),
        (no_table, "a Parquet table of results"),
        (no_settings, "configuration and totals of a run"),
        (unknown_class, "platinum"),
        (no_availability, "availability_restart: found a null"),
        (no_rows, "no interval"),
        (wrong_versions, "what 'slacktide experiment run' writes"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_written(
    breaking: Callable[[Path], Path], said: str, experiment: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "e"
    shutil.copytree(experiment, folder)
    path = breaking(folder)
    with pytest.raises(InputError) as caught:
        write(folder, tmp_path / "out" / "r.html", tmp_path / "figures")
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "figures").exists()


def test_the_command_says_what_it_cannot_read_or_write(
    experiment: Path, page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(page.parent / "figures"), "--out", str(tmp_path / "x.html")]) == 3
    assert "experiment.json" in capsys.readouterr().err
    assert main(["report", str(experiment), "--out", str(tmp_path)]) == 5
    assert "expected a file name" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_a_missing_library_is_named_with_what_installs_it(
    library: str, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    assert main(["report", str(experiment), "--out", str(tmp_path / "r.html")]) == 2
    assert f"a report needs {library}: pip install 'slacktide[experiments]'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two policies on two host sets, a run each."""
    return make(tmp_path_factory.mktemp("small") / "results", Wanted(seeds=(1,), end=300.0))


@pytest.mark.parametrize(
    ("hosts", "policy"), [("N", "priority"), ("0.9 N", "qos-driven recommended"), ("N", None), (None, "priority")]
)
def test_a_report_may_be_made_before_a_cell_has_a_run(
    small: Path, hosts: str | None, policy: str | None, tmp_path: Path
) -> None:
    folder = shutil.copytree(small, tmp_path / "results")
    gone = [run for run in read(folder).runs if hosts in (None, run.hosts) and policy in (None, run.policy)]
    for run in gone:
        shutil.rmtree(str(run.folder))
    assert write(folder, tmp_path / "report.html", None, lambda _: None) > 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{4 - len(gone)} of 4" in text


def test_a_policy_of_ones_own_may_use_any_setting_of_policies_or_none() -> None:
    assert _used({"policy.name": "mine.py:mine", "policy.patience": "60"}, "policy.patience").startswith("60 (if")


def test_two_folders_are_refused_with_the_way_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "a", "b", "--out", "page.html"]) == 2
    assert "found 2 folders, expected one: runs are compared that are of one experiment" in capsys.readouterr().err
