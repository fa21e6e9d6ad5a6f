"""``slacktide trace`` as a user runs it: files whole or not at all, what is said, and what is refused."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slacktide.cli import main
from slacktide.cli.simulation.preparing import Parts
from slacktide.inputs import pieces, read_hosts, read_workload, write_workload
from slacktide.inputs.formats import csv_files, parquet_files
from slacktide.inputs.traces import TRACES
from support.on_terminal import GONE, plain, terminal

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str | Path) -> tuple[int, str, str]:
        code = main(["trace", *(str(word) for word in words)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Ten requests of 1 for 10 s, one each second, of two users; and eight hosts of 2."""
    workload, hosts = tmp_path / "workload.csv", tmp_path / "hosts.csv"
    rows = "".join(f"{number},{number},10,1,1,gold,{'ab'[number % 2]}\n" for number in range(10))
    workload.write_text("id,admission,duration,cpu,memory,class,user\n" + rows)
    hosts.write_text("id,name,cpu,memory\n" + "".join(f"{number},h{number},2,4\n" for number in range(8)))
    return workload, hosts


POD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


@pytest.fixture
def openb(tmp_path: Path) -> Path:
    folder = tmp_path / "openb"
    folder.mkdir()
    (folder / "pods.csv").write_text(
        POD + "p0,1000,1024,1,500,,LS,Running,0,60,0\np1,1000,1024,0,0,,BE,Pending,0,60,\n"
    )
    (folder / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,2000,4096,2,T4\n")
    return folder


def test_formats_and_their_parameters_are_listed(run: Run) -> None:
    code, out, _ = run("convert")
    assert code == 0
    assert len(TRACES) >= 6
    for name in TRACES:
        assert f"{name}:" in out
    assert "--map LS=gold,Guaranteed=gold,Burstable=silver,BE=bronze  (qos)" in out


def test_a_trace_is_converted_and_the_manifest_says_how(run: Run, openb: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, err = run("convert", "openb", openb, "--set", "capacity=1", "--out", out)
    assert code == 0, err
    assert "1 request in workload.parquet, 1 host in hosts.parquet" in said
    assert "left out: 1 pods that never ran" in said
    assert sorted(path.name for path in out.iterdir()) == [
        "all-hosts.parquet",
        "hosts.parquet",
        "manifest.json",
        "workload.parquet",
    ]
    about = json.loads((out / "manifest.json").read_text())
    assert about["settings"]["map"] == "LS=gold,Guaranteed=gold,Burstable=silver,BE=bronze"
    assert about["outcome"]["dropped"]["pods that never ran"] == 1
    assert set(about["inputs"]) == {str(openb / "pods.csv"), str(openb / "nodes.csv")}
    first = (out / "workload.parquet").read_bytes()
    assert run("convert", "openb", openb, "--set", "capacity=1", "--out", out)[0] == 0
    assert (out / "workload.parquet").read_bytes() == first


def test_a_broken_trace_leaves_earlier_results(run: Run, openb: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("convert", "openb", openb, "--set", "capacity=all", "--out", out)[0] == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    (openb / "pods.csv").write_text(POD + "p0,one,1024,1,500,,LS,Running,0,60,0\n")
    code, _, err = run("convert", "openb", openb, "--out", out)
    assert code == 3
    assert "pods.csv:2: cpu_milli: found 'one', expected a whole number, 0 or more" in err
    assert len(read_workload(out / "workload.parquet")) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["convert", "opneb", "x", "--out", "y"], 2, "'openb'"),
        (["convert", "openb", "--out", "y"], 2, "SOURCE is missing"),
        (["convert", "openb", "x"], 2, "--out is missing"),
        (["convert", "openb", "x", "--out", "y", "--map", "LS"], 2, "--map: found 'LS'"),
        (["convert", "openb", "x", "--out", "y", "--map", "LS=golf"], 2, "'gold'"),
        (["convert", "openb", "x", "--out", "y", "--set", "capacty=1"], 2, "'capacity'"),
        (["convert", "openb", "x", "--out", "y", "--set", "capacity"], 2, "KEY=VALUE"),
        (["convert", "openb", "missing.csv", "--out", "y"], 3, "missing.csv"),
        (["sample", "missing.parquet", "--out", "y"], 3, "missing.parquet"),
        (["hosts", "missing.csv", "h.csv", "--out", "y", "--capacities", "1,x"], 2, "found 'x'"),
        (["thin", "missing.csv", "--share", "2", "--out", "y.csv"], 3, "missing.csv"),
        (["window", "missing.csv", "--from", "0", "--out", "y.csv"], 2, "--to"),
    ],
)
def test_mistakes_are_one_message_and_the_right_exit_code(run: Run, words: list[str], code: int, part: str) -> None:
    ended, out, err = run(*words)
    assert (ended, out) == (code, "")
    assert part in err
    assert not Path("y").exists()


def test_a_sample_keeps_users_and_says_of_which_groups(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "sample"
    code, said, err = run("sample", files[0], "--share", "0.5", "--groups", "1", "--out", out)
    assert code == 0, err
    assert "5 requests of 1 of 2 users" in said
    assert len(read_workload(out / "workload.parquet")) == 5
    assert json.loads((out / "manifest.json").read_text())["outcome"] == {
        "users": 2,
        "drawn": 1,
        "requests": 5,
        "without user": 0,
    }


def test_host_sets_have_the_parts_of_the_peak(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    # At second 9 all ten are active: N = 10 of CPU, five hosts; 9 leaves four, 8 as many.
    code, said, err = run("hosts", *files, "--out", tmp_path / "sets")
    assert code == 0, err
    assert "The peak is 10 cpu, demanded at second 9" in said
    counts = [len(read_hosts(tmp_path / f"sets/hosts-{part}.parquet")) for part in ("1.0", "0.9", "0.8")]
    assert counts == [5, 4, 4]
    about = json.loads((tmp_path / "sets/manifest.json").read_text())
    assert about["outcome"]["capacity"]["0.9"] == {"cpu": 8, "memory": 16}
    code, _, err = run("hosts", *files, "--capacities", "2", "--out", tmp_path / "more")
    assert (code, (tmp_path / "more").exists()) == (3, False)
    assert "hosts.csv: cpu: found '16 in 8 hosts', expected 20 or more (4 more); draw hosts again (--replace)" in err
    assert run("hosts", *files, "--capacities", "2", "--replace", "--out", tmp_path / "more")[0] == 0
    assert len(read_hosts(tmp_path / "more/hosts-2.0.parquet")) == 10
    # Of the hosts themselves: 16, 14.4 and 12.8 of CPU.
    assert run("hosts", *files, "--of", "hosts", "--out", tmp_path / "parts")[0] == 0
    counts = [len(read_hosts(tmp_path / f"parts/hosts-{part}.parquet")) for part in ("1.0", "0.9", "0.8")]
    assert counts == [8, 7, 6]


def test_admission_says_who_was_refused_and_why(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    files[1].write_text("id,name,cpu,memory\n1,h,4,40\n")
    out = tmp_path / "admitted.parquet"
    code, said, err = run("admit", *files, "--out", out)
    assert code == 0, err
    # Four of 1 fill the host from 3 to 10.
    assert said.splitlines() == [f"{out}: 4 requests admitted, 6 refused", "refused: 6, over the limit of cpu"]
    assert json.loads((tmp_path / "admitted.parquet.manifest.json").read_text())["settings"] == {
        "limit": 1.0,
        "first_limit": 0.8,
    }


def test_thinning_windows_and_scaling_write_the_file_they_name(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "folder/out.csv"
    assert run("thin", files[0], "--share", "0.3", "--seed", "4", "--out", out)[1] == f"{out}: 3 of 10 requests\n"
    assert len(read_workload(out)) == 3
    assert run("window", files[0], "--from", "5", "--to", "7", "--out", out)[0] == 0
    assert read_workload(out).admission.tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert read_workload(out).duration.tolist() == [5, 6, 7, 8, 9, 10, 10]
    assert run("window", files[0], "--from", "5", "--to", "7", "--drop-running", "--out", out)[0] == 0
    assert read_workload(out).ids.tolist() == [5, 6]
    assert run("scale", files[0], "--demand", "2", "--rate", "0.5", "--out", out)[0] == 0
    assert read_workload(out).demand.max() == 2
    assert read_workload(out).admission.tolist()[-1] == 18
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.csv", "out.csv.manifest.json"]


def test_progress_says_what_is_read_and_how_much_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    with Parts(stream) as progress:
        progress.tell("task_events [1]", 0.25)
        progress.tell("task_events [2]", 0.5)
    assert "50% task_events [2] 0:00:0" in plain(stream)
    assert stream.getvalue().endswith(GONE)


def test_a_long_step_without_a_word_shows_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    now = [0.0]
    with Parts(stream, lambda: now[0]) as progress:
        now[0] = 30.0
        progress.tell("reading month.parquet")  # the last word; a thread goes on showing it
        now[0] = 72.0
        limit = time.monotonic() + 60
        while "reading month.parquet 0:00:42" not in plain(stream) and time.monotonic() < limit:
            time.sleep(0.01)
    assert "reading month.parquet 0:00:42" in plain(stream)
    assert stream.getvalue().endswith(GONE)


def test_progress_of_steps_is_silent_where_nobody_looks() -> None:
    stream = io.StringIO()
    with Parts(stream) as progress:
        progress.tell("task_events", 0.25)
    assert stream.getvalue() == ""


def test_every_command_says_what_it_is_at(
    run: Run, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(Parts, "tell", lambda _self, what, _part=0.0: told.append(what))
    out = tmp_path / "out.csv"
    for words, step in (
        (("thin", files[0], "--share", "0.3", "--out", out), "drawing requests"),
        (("window", files[0], "--from", "5", "--to", "7", "--out", out), "cutting the window"),
        (("scale", files[0], "--rate", "2", "--out", out), "multiplying"),
        (("admit", *files, "--out", out), "admitting requests"),
    ):
        told.clear()
        assert run(*words)[0] == 0
        assert told == ["reading workload.csv", step, "writing out.csv"]
    told.clear()
    assert run("hosts", *files, "--out", tmp_path / "sets")[0] == 0
    assert told == ["reading workload.csv", "looking for the peak", "writing"]


@pytest.mark.parametrize("name", ["out.txt", "", "file.csv/out.csv"])
def test_a_file_that_cannot_be_written_is_named_before_anything_is_read(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "file.csv").write_text("")
    code, _, err = run("thin", tmp_path / "nowhere.csv", "--share", "0.5", "--out", tmp_path / name)
    assert code == 5, err
    assert "nowhere" not in err


def test_a_window_without_an_end_leaves_a_manifest_that_is_json(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    assert run("window", files[0], "--from", "5e0", "--to", "inf", "--out", out)[0] == 0
    text = (tmp_path / "out.csv.manifest.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["settings"]["to"] is None


def test_host_sets_of_other_capacities_take_the_place_of_earlier_ones(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "sets"
    assert run("hosts", *files, "--capacities", "1,0.7", "--out", out)[0] == 0
    assert run("hosts", *files, "--capacities", "1,0.9", "--out", out)[0] == 0
    assert sorted(one.name for one in out.iterdir()) == ["hosts-0.9.parquet", "hosts-1.0.parquet", "manifest.json"]
    (out / "hosts-0.5.parquet").write_text("not of this command")
    assert run("hosts", *files, "--out", out)[0] == 5


def test_a_limit_too_low_for_the_first_instant_says_so(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    code, _, err = run("admit", *files, "--limit", "0.2", "--out", tmp_path / "out.csv")
    assert code == 2
    assert "limit: found 0.2, expected more than 0.2, by which it is lower at the first instant" in err
    words = ("--limit", "0.2", "--first-limit", "0.1", "--out", tmp_path / "out.csv")
    assert run("admit", *files, *words)[0] == 0


def test_without_the_extra_the_command_says_what_to_install() -> None:
    # A fresh process, in which Polars cannot be found; other commands do not need it.
    hidden = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'polars' else find(name, *more)\n"
        "from slacktide.cli import main\n"
        "assert main(['trace', '--help']) == 0 and 'polars' not in sys.modules\n"
        "sys.exit(main(['trace', 'convert']))"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "polars is not installed: this command needs pip install 'slacktide[experiments]'" in done.stderr


def test_requests_of_several_instances_pass_through_or_are_refused_by_name(run: Run, tmp_path: Path) -> None:
    workload, out = tmp_path / "several.csv", tmp_path / "out.csv"
    workload.write_text(
        "id,admission,duration,cpu,memory,class,kind,instances,completions,parallelism,approach,scale,job,"
        "anti_affinity,constraints,marks,rules\n"
        "4,0,,1,1,gold,service,2,,,concurrent,20=3,9,true,disk == ssd,web,away web by host\n"
        "7,0,10,1,1,silver,batch,,4,2,,,,,,,\n"
    )
    hosts = tmp_path / "hosts.csv"
    hosts.write_text("id,name,cpu,memory,attributes\n1,h,9,9,disk=ssd\n")
    assert run("thin", workload, "--share", "1", "--out", out)[0] == 0
    whole = out.read_text()
    assert run("admit", workload, hosts, "--out", out)[0] == 0
    assert out.read_text() == whole
    assert run("scale", workload, "--time", "2", "--out", out)[0] == 0
    assert "40=3" in out.read_text()
    assert run("window", workload, "--from", "10", "--to", "30", "--out", out)[0] == 0
    assert out.read_text().splitlines()[1:] == [
        "4,0,,1,1,gold,9,true,disk == ssd,service,2,,,concurrent,10=3,web,away web by host,",
        "7,0,10,1,1,silver,7,false,,batch,,2,2,aggregated,,,,",
    ]
    # At 5 s two instances of the job have 5 s left and two have 10: no row of a file can say so.
    code, _, err = run("window", workload, "--from", "5", "--to", "30", "--out", tmp_path / "none.csv")
    assert code == 5
    assert "request 7: its instances differ in duration" in err
    assert not (tmp_path / "none.csv").exists()


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Has even the smallest file read piece by piece, two rows at a time, or whole again."""

    def choose(wanted: bool) -> None:
        monkeypatch.setattr(pieces, "SMALL_BYTES", 0 if wanted else 10**9)
        monkeypatch.setattr(pieces, "SMALL_ROWS", 0 if wanted else 10**9)
        monkeypatch.setattr(csv_files, "BATCH_ROWS", 2 if wanted else 100)
        monkeypatch.setattr(parquet_files, "BATCH_ROWS", 2 if wanted else 100)

    return choose


COMMANDS = {
    "thin": ("thin", "WORKLOAD", "--share", "0.5", "--out", "OUT"),
    "window": ("window", "WORKLOAD", "--from", "5", "--to", "7", "--out", "OUT"),
    "new": ("window", "WORKLOAD", "--from", "5", "--to", "7", "--drop-running", "--out", "OUT"),
    "scale": ("scale", "WORKLOAD", "--rate", "3", "--demand", "0.3", "--out", "OUT"),
    "admit": ("admit", "WORKLOAD", "HOSTS", "--limit", "0.4", "--out", "OUT"),
    "hosts": ("hosts", "WORKLOAD", "HOSTS", "--out", "SETS"),
}


@pytest.mark.parametrize("source", [".csv", ".parquet"])
@pytest.mark.parametrize("target", [".csv", ".parquet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_piece_by_piece_all_files_and_words_are_equal(
    run: Run,
    files: tuple[Path, Path],
    tmp_path: Path,
    in_pieces: Callable[[bool], None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    command: str,
    source: str,
    target: str,
) -> None:
    workload = files[0].with_suffix(source)
    if source == ".parquet":
        write_workload(read_workload(files[0]), workload)
    told: list[str] = []
    monkeypatch.setattr(Parts, "tell", lambda _self, what, _part=0.0: told.append(what))
    found = []
    for wanted in (False, True):
        in_pieces(wanted)
        told.clear()
        places = {"WORKLOAD": workload, "HOSTS": files[1], "OUT": tmp_path / f"out{target}", "SETS": tmp_path / "sets"}
        code, said, err = run(*(places.get(word, word) for word in COMMANDS[command]))
        assert (code, err) == (0, "")
        assert (f"looking through {workload.name}" in told) == wanted
        written = [*tmp_path.glob("out*"), *tmp_path.glob("sets/*")]
        found.append((said, {path.name: path.read_bytes() for path in written if "manifest" not in path.name}))
        about = next(path for path in written if "manifest" in path.name)
        found[-1][1]["about"] = json.dumps({**json.loads(about.read_text()), "command": ""}).encode()
    assert found[0] == found[1]


def test_a_file_that_is_not_in_order_is_read_whole_and_the_user_is_told_what_to_do(
    run: Run, files: tuple[Path, Path], tmp_path: Path, in_pieces: Callable[[bool], None]
) -> None:
    lines = files[0].read_text().splitlines()
    unsorted, out = tmp_path / "unsorted.csv", tmp_path / "out.csv"
    unsorted.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    in_pieces(True)
    code, said, err = run("window", unsorted, "--from", "5", "--to", "7", "--out", out)
    assert (code, said) == (0, f"{out}: 7 of 10 requests\n")
    assert err == (
        f"slacktide: {unsorted}: is held in memory whole: its rows are not in order of admission; sort it once "
        "('slacktide trace scale FILE --out SORTED.parquet' does that), and give the sorted file\n"
    )
    # What it says is so.
    ordered = tmp_path / "sorted.parquet"
    assert run("scale", unsorted, "--out", ordered)[0] == 0
    whole = out.read_bytes()
    assert run("window", ordered, "--from", "5", "--to", "7", "--out", out) == (0, said, "")
    assert out.read_bytes() == whole


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_piece_by_piece_nothing_is_left_of_what_cannot_be_made(
    run: Run, files: tuple[Path, Path], tmp_path: Path, in_pieces: Callable[[bool], None], name: str
) -> None:
    in_pieces(True)
    out = tmp_path / "folder" / name
    for words, part in (
        (("window", files[0], "--from", "500", "--to", "700"), "found nothing admitted or running"),
        (("admit", *files, "--limit", "0.001", "--first-limit", "0.001"), "none of 10 was"),
        (("scale", files[0], "--rate", "0"), "rate: found 0"),
        (("thin", files[0], "--share", "2"), "share: found 2"),
    ):
        code, _, err = run(*words, "--out", out)
        assert (code, part in err) == (2, True), err
        assert not out.parent.exists()
