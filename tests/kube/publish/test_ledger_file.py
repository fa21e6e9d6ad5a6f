"""The file of exported ledgers: read back as written, or refused with file, line, field and value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.workbench import KINDS, T0, Workbench
from slacktide.engine.ledger.checkpoint import VERSION, moved, read
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.errors import InputError, OutputError
from slacktide.kube.publish.ledger_transfer import Kept, load, text_of
from slacktide.whole_file import write_whole


def kept(name: str = "web", kind: str = "aggregated") -> Kept:
    """The ledger of a Deployment that ran for a minute."""
    bench = Workbench()
    bench.controller("c", kind)
    bench.arrive("p", "c", 0)
    bench.run(0)
    bench.engine.bound("p", T0)
    bench.ready("p", 10)
    books = json.loads(json.dumps(export(bench.engine, "c", T0 + 60)))
    status = {"class": "bronze", "promised": 0.5, "delivered": 0.833333, "state": "Kept", "accumulators": books}
    return Kept("shop", "apps/v1", "Deployment", name, status)


def text(*ledgers: Kept) -> str:
    return text_of(ledgers, "2026-11-24T20:00:00Z")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_was_written_is_read_back(kind: str, form: str, tmp_path: Path) -> None:
    ledgers = [kept("web", kind), kept("db", kind), Kept("a", "v1", "Pod", "Odd.name", kept().status)]
    file, said = tmp_path / f"ledgers.{form}", text(*ledgers)
    write_whole(file, said if form == "json" else yaml.safe_dump(json.loads(said)))
    assert load(file) == ledgers
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    assert len(said.splitlines()) == len(ledgers) + 2, "a ledger a line"


def test_an_empty_file_of_ledgers_is_one_too(tmp_path: Path) -> None:
    write_whole(tmp_path / "none.json", text())
    assert load(tmp_path / "none.json") == []


def test_what_cannot_be_written_leaves_the_former_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match=r"out: cannot be written: "):
        write_whole(tmp_path / "out", text(kept()))
    with pytest.raises(OutputError, match=r"nowhere.*: cannot be written: "):
        write_whole(tmp_path / "nowhere" / "file", text())
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def changed(way: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets a value of the second ledger; None takes it away."""

    def change(content: dict[str, Any]) -> None:
        *path, last = way.split(".")
        place: Any = content["ledgers"][1] if not way.startswith("/") else content
        for part in path:
            place = place[part]
        if value is None:
            del place[last.lstrip("/")]
        else:
            place[last.lstrip("/")] = value

    return change


BOOKS = "status.accumulators"
WRONG = [
    (changed("/format", "other"), 1, "format: found 'other', expected slacktide-ledgers"),
    (changed("/version", 2), 1, "version: found '2', expected 1: what 'slacktide ledger export' of this release"),
    (changed("/ledgers", "none"), 1, "ledgers: found 'none', expected a list of ledgers"),
    (changed("namespace", "Shop"), 3, "ledgers[1].namespace: found 'Shop', expected the name of a namespace"),
    (changed("name", None), 3, "ledgers[1].name: found 'null', expected the name of a workload"),
    (changed("name", "../web"), 3, "ledgers[1].name: found '../web', expected the name of a workload"),
    (changed("name", "web"), 3, "ledgers[1].name: found 'Deployment shop/web', expected each workload once"),
    (changed("kind", "a/b"), 3, "ledgers[1].kind: found 'a/b', expected a kind such as Deployment"),
    (changed("apiVersion", "apps"), 3, "ledgers[1].apiVersion: found 'apps', expected an API version such as apps/v1"),
    (changed("uid", "u"), 3, "ledgers[1].uid: found 'uid', expected one of namespace"),
    (changed("status", 7), 3, "ledgers[1].status: found '7', expected the status of an Availability"),
    (changed("status.promised", "half"), 3, "ledgers[1].status: expected the status of an Availability (Expected"),
    (changed("status.class", None), 3, "ledgers[1].status.class: found 'null', expected the name of a service class"),
    (changed(BOOKS, {}), 3, f"ledgers[1].{BOOKS}: found '{{}}', expected the scheduler's books"),
    (
        changed(f"{BOOKS}.version", VERSION + 1),
        3,
        f"ledgers[1].{BOOKS}.version: found '{VERSION + 1}', expected at most",
    ),
    (changed(f"{BOOKS}.counts.live", -1), 3, f"ledgers[1].{BOOKS}.counts.live: found '-1', expected a whole number"),
    (changed(f"{BOOKS}.sums.lifetime", "1"), 3, f"ledgers[1].{BOOKS}.sums.lifetime: found '1', expected seconds"),
]


@pytest.mark.parametrize(("change", "line", "message"), WRONG, ids=[message[:40] for *_, message in WRONG])
def test_what_is_malformed_is_refused_by_file_line_field_and_value(
    change: Callable[[dict[str, Any]], None], line: int, message: str, tmp_path: Path
) -> None:
    content = json.loads(text(kept("web"), kept("db")))
    change(content)
    ledgers, file = content.pop("ledgers"), tmp_path / "ledgers.json"
    rows = ",\n".join(map(json.dumps, ledgers)) if isinstance(ledgers, list) else ""
    shown = f"[\n{rows}\n]" if rows else json.dumps(ledgers)
    file.write_text(json.dumps(content)[:-1] + f', "ledgers": {shown}}}\n', encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load(file)
    assert str(raised.value).startswith(f"{file}:{line}: {message}"), raised.value


@pytest.mark.parametrize(
    ("content", "place"), [('{"format": \n"slacktide-ledgers",,}', ":2"), ("format: [\n- a: b: c", ":2"), ("- x", ":1")]
)
def test_what_is_no_such_file_is_refused(content: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / "ledgers"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load(file)
    assert str(raised.value).startswith(f"{file}{place}: "), raised.value
    with pytest.raises(InputError, match=r"absent: expected a file that can be read"):
        load(tmp_path / "absent")


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    content = json.loads(text(*(kept(f"w{i}") for i in range(13))))
    for one in content["ledgers"]:
        one["namespace"] = ""
    (tmp_path / "f").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"\.\.\. and 3 more \(13 problems in all\)"):
        load(tmp_path / "f")


@pytest.mark.parametrize("kind", KINDS)
def test_books_that_are_moved_say_the_same_at_another_instant(kind: str) -> None:
    books = kept(kind=kind).status["accumulators"]
    before, after = read(books), read(moved(books, T0 + 5000.0))
    assert (before.at, after.at) == (T0 + 60, T0 + 5000.0)
    assert (before.sums, before.counts, before.names) == (after.sums, after.counts, after.names)
    assert (before.records == after.records).all()
