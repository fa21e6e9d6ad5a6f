"""What is decided in fixed cases is what was decided before: every decision, pass, event and book, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

import decision_hashes as hashes

CASES = {
    "validation": dict(hashes.validation_cases()),
    "clusters": dict(hashes.cluster_cases()),
    "session": dict(hashes.session_cases()),
    "hour": dict(hashes.hour_cases()),
}


def the_same(name: str, case: hashes.Case, folder: Path) -> None:
    found, recorded = case(folder), hashes.expected()[name]
    changed = [what for what in sorted(found.keys() | recorded.keys()) if found.get(what) != recorded.get(what)]
    assert not changed, f"{name}: {', '.join(changed)} changed; {found}, recorded {recorded}"


@pytest.mark.parametrize("name", CASES["validation"])
def test_validation_runs_are_decided_as_before(name: str, tmp_path: Path) -> None:
    the_same(name, CASES["validation"][name], tmp_path)


@pytest.mark.parametrize("kind", hashes.KINDS)
def test_random_clusters_are_decided_as_before(kind: str, tmp_path: Path) -> None:
    for seed in hashes.KINDS[kind][2]:
        (folder := tmp_path / str(seed)).mkdir()
        the_same(f"{kind} {seed}", CASES["clusters"][f"{kind} {seed}"], folder)


@pytest.mark.parametrize("name", CASES["session"])
def test_a_live_session_is_decided_as_before(name: str, tmp_path: Path) -> None:
    the_same(name, CASES["session"][name], tmp_path)


def test_a_live_session_is_decided_as_its_record_says() -> None:
    assert hashes.differences() == []


@pytest.mark.parametrize("name", CASES["hour"])
def test_the_published_hour_is_decided_as_before(name: str, tmp_path: Path) -> None:
    the_same(name, CASES["hour"][name], tmp_path)


def test_every_case_is_recorded_and_nothing_else() -> None:
    assert hashes.expected().keys() == {name for cases in CASES.values() for name in cases}


def test_what_is_recorded_reaches_every_kind_of_decision() -> None:
    """Hashes of runs in which nothing happens would prove little."""
    recorded = hashes.expected()
    column = hashes.COUNTS.index
    counts = [recorded[name]["counts"] for name in CASES["clusters"]]
    assert len(counts) == 200
    for what, least in (("preemptions", 60), ("resizes", 30), ("moves", 10), ("deferrals", 20)):
        assert sum(one[column(what)] > 0 for one in counts) >= least, what
    assert sum("gangs" in recorded[name] for name in CASES["clusters"]) >= 10
    # Where all are of one class, nobody is preempted by priority, nor under triage for as long as half an hour.
    calm = ("validation-2 priority", "validation-2 recommended")
    preempting = [name for name in (*CASES["validation"], *CASES["hour"]) if name not in calm]
    assert all(recorded[name]["counts"][column("preemptions")] > 0 for name in preempting)
    sessions = [recorded[name]["counts"] for name in CASES["session"]]
    operations, _, passes, decisions, victims = map(sum, zip(*sessions, strict=True))
    assert operations > 1000
    assert passes > 100
    assert decisions > 150
    assert victims > 20
