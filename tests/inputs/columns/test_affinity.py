"""Marks, rules, preferences and budgets in CSV and Parquet: what they say, what is refused, round trips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.readers import rows_of
from slacktide.cli import main
from slacktide.errors import InputError, OutputError
from slacktide.inputs import WorkloadParquetWriter, join, read_workload, write_workload
from slacktide.inputs.columns.affinity_text import (
    format_budget,
    format_marks,
    format_preferences,
    format_rules,
    parse_budget,
    parse_marks,
    parse_preferences,
    parse_rules,
)
from slacktide.inputs.rows import select
from slacktide.inputs.statistics import describe_workload
from slacktide.model import (
    NO_NEIGHBOURS,
    Budget,
    Constraint,
    Placement,
    Preference,
    Rule,
    Term,
    Topology,
    Workload,
)
from slacktide.model.constraint import AnyOf
from slacktide.model.placement import CLUSTER, HOST
from support.clusters import cluster

HEADER = "id,admission,duration,cpu,memory,class"
NAMES = ("marks", "rules", "preferences", "budget")
SSD = Term((Constraint("disk", "==", "ssd"),))
ZONE = Topology("zone")


def read(folder: Path, *rows: dict[str, str], suffix: str = "csv", names: tuple[str, ...] = NAMES) -> Workload:
    """A workload of these cells; instances are admitted at 0 s."""
    path = folder / f"w.{suffix}"
    if suffix == "csv":
        lines = [
            f"{n},0,60,1,1,gold," + ",".join(f'"{quoted(row.get(k))}"' for k in names) for n, row in enumerate(rows)
        ]
        path.write_text("\n".join([f"{HEADER},{','.join(names)}", *lines]) + "\n", encoding="utf-8")
    else:
        count = len(rows)
        columns: dict[str, Any] = {"id": range(count), "class": ["gold"] * count, "duration": [60.0] * count}
        columns |= {"admission": [0.0] * count, "cpu": [1.0] * count, "memory": [1.0] * count}
        columns |= {name: pa.array([row.get(name) for row in rows], pa.string()) for name in names}
        pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return read_workload(path)


def quoted(text: str | None) -> str:
    return (text or "").replace('"', '""')


def asked_of(workload: Workload) -> list[tuple[Placement, Budget | None]]:
    """What every row has to do with its neighbours, and its budget."""
    placement = np.zeros(len(workload), int) if workload.placement is None else workload.placement
    budget = np.full(len(workload), -1) if workload.budget is None else workload.budget
    assert workload.placement is not None or workload.placements == (NO_NEIGHBOURS,)
    assert workload.budget is not None or workload.budgets == ()
    return [
        (workload.placements[p], workload.budgets[b] if b >= 0 else None)
        for p, b in zip(placement.tolist(), budget.tolist(), strict=True)
    ]


both = pytest.mark.parametrize("suffix", ["csv", "parquet"])


@both
def test_the_columns_by_example(tmp_path: Path, suffix: str) -> None:
    rules = "near web by zone; away web by host; spread web by zone 1 min 3; away port:8080 by host"
    wishes = "+10 web by zone; -5 batch by host; +20 if disk == ssd"
    first = {"marks": "web port:8080", "rules": rules, "preferences": wishes, "budget": "web max-unavailable 1"}
    workload = read(tmp_path, first, {"budget": "web"}, {}, {"budget": "b min-available 2"}, suffix=suffix)
    made = Placement(
        ("web", "port:8080"),
        (
            Rule("near", "web", ZONE),
            Rule("away", "web"),
            Rule("spread", "web", ZONE, 1, 3),
            Rule("away", "port:8080"),
        ),
        (Preference(10, "web", ZONE), Preference(-5, "batch"), Preference(20, term=SSD)),
    )
    budget = Budget("web", max_unavailable=1)
    assert asked_of(workload) == [
        (made, budget),
        (NO_NEIGHBOURS, budget),
        (NO_NEIGHBOURS, None),
        (NO_NEIGHBOURS, Budget("b", min_available=2)),
    ]
    assert workload.placement is not None
    assert workload.budget is not None
    assert workload.placement.dtype == workload.budget.dtype == np.int32
    assert len(workload.placements) == 2


@both
def test_columns_that_say_nothing_cost_nothing(tmp_path: Path, suffix: str) -> None:
    workload = read(tmp_path, {}, {"marks": " ", "rules": ""}, suffix=suffix)
    assert workload.placement is workload.budget is None
    assert read(tmp_path, {"marks": "web"}, suffix=suffix).budget is None
    assert read(tmp_path, {"budget": "b min-available 0"}, suffix=suffix).placement is None


@both
def test_one_of_the_columns_is_enough(tmp_path: Path, suffix: str) -> None:
    for name, text in (("marks", "a"), ("rules", "away a by host"), ("preferences", "1 a by host")):
        workload = read(tmp_path, {name: text}, {}, suffix=suffix, names=(name,))
        assert [made == NO_NEIGHBOURS for made, _ in asked_of(workload)] == [False, True]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("near web by host", Rule("near", "web", Topology(HOST))),
        ("near web by cluster;", Rule("near", "web", Topology(CLUSTER))),
        ('near "a web" by "host"', Rule("near", "a web", Topology("host"))),
        ("away by by within within (disk == ssd)", Rule("away", "by", Topology("within", SSD))),
        ("spread web by zone", Rule("spread", "web", ZONE)),
        ("spread web by zone min 2", Rule("spread", "web", ZONE, 1, 2)),
        ("spread web by zone 3 within (disk==ssd)", Rule("spread", "web", Topology("zone", SSD), 3)),
        (
            'away web by zone within (disk == ssd; "a)" /= "(;")',
            Rule("away", "web", Topology("zone", Term((*SSD.constraints, Constraint("a)", "/=", "(;"))))),
        ),
    ],
)
def test_rules_as_text(text: str, rule: Rule) -> None:
    assert parse_rules(text) == (rule,)
    assert parse_rules(f"{text.rstrip(';')}; {text}") == (rule, rule)
    assert parse_rules(format_rules((rule,))) == (rule,)


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("10 web by host", Preference(10, "web")),
        ("-3 web by zone within (disk == ssd)", Preference(-3, "web", Topology("zone", SSD))),
        ("+20 if disk == ssd", Preference(20, term=SSD)),
        ("+1 if (disk == ssd; speed > 4)", Preference(1, term=Term((*SSD.constraints, Constraint("speed", ">", "4"))))),
        ("+1 if ()", Preference(1)),
        ('+1 "if" by host', Preference(1, "if")),
    ],
)
def test_preferences_as_text(text: str, preference: Preference) -> None:
    assert parse_preferences(text) == (preference,)
    assert parse_preferences(f"{text}; {text} ;") == (preference, preference)
    assert parse_preferences(format_preferences((preference,))) == (preference,)


@both
@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("marks", "a b a"),
        ("marks", "a; b"),
        ("marks", "(a)"),
        ("marks", '""'),
        ("marks", '"a'),
        ("rules", "close web by zone"),
        ("rules", '"near" web by zone'),
        ("rules", "near web"),
        ("rules", "near web by"),
        ("rules", "near by zone"),
        ("rules", "near web by zone 2"),
        ("rules", "near web by zone; ; near web by zone"),
        ("rules", "near web by zone near web by zone"),
        ("rules", "near web by *"),
        ("rules", 'near web by ""'),
        ("rules", "spread web by zone 0"),
        ("rules", "spread web by zone 1 min 0"),
        ("rules", "spread web by zone 1 min"),
        ("rules", "spread web by zone -1"),
        ("rules", "spread web by zone 1.5"),
        ("rules", "spread web by zone 100000001"),
        ("rules", "spread web by zone 99999999999999999999"),
        ("rules", "away web by host within disk == ssd"),
        ("rules", "away web by host within (disk)"),
        ("rules", "away web by host within (disk == ssd"),
        ("preferences", "web by zone"),
        ("preferences", "1.5 web by zone"),
        ("preferences", "10001 web by zone"),
        ("preferences", "-10001 if disk == ssd"),
        ("preferences", "1 if"),
        ("preferences", "1 if disk"),
        ("preferences", "1 web"),
        ("budget", "web max-unavailable"),
        ("budget", "web max-unavailable -1"),
        ("budget", "web min-available 50%"),
        ("budget", "web at-least 1"),
        ("budget", "web max-unavailable 1 min-available 2"),
    ],
)
def test_broken_cells_are_explained(tmp_path: Path, suffix: str, column: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, {}, {column: text}, suffix=suffix)
    assert caught.value.total == 1
    problem = caught.value.problems[0]
    assert (problem.line, problem.column, problem.value) == (3 if suffix == "csv" else 2, column, text)
    assert "such as" in problem.expected or "each once" in problem.expected


@both
def test_a_budget_means_the_same_everywhere(tmp_path: Path, suffix: str) -> None:
    rows = [{"budget": "a max-unavailable 1"}, {"budget": "b"}, {"budget": "a min-available 1"}, {"budget": "a"}]
    with pytest.raises(InputError) as caught:
        read(tmp_path, *rows, suffix=suffix)
    named, other = sorted(caught.value.problems, key=lambda one: one.value)[::-1]
    assert caught.value.total == 2
    assert (named.value, named.expected) == ("b", "a bound in one of the rows, such as 'b max-unavailable 1'")
    assert {other.value, other.expected.split("'")[1]} == {"a max-unavailable 1", "a min-available 1"}
    assert [one.line for one in caught.value.problems] == sorted(one.line for one in caught.value.problems)


def test_instances_of_a_request_share_what_the_row_says(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(
        f"{HEADER},instances,scale,marks,rules,budget\n"
        "1,5,,1,1,gold,2,7=4,web,spread web by host,web\n2,0,,1,1,gold,,,,,web min-available 1\n"
    )
    workload = read_workload(path)
    web = Placement(("web",), (Rule("spread", "web"),))
    budget = Budget("web", min_available=1)
    assert workload.ids.tolist() == [2, 1, 1, 1, 1]
    assert asked_of(workload) == [(NO_NEIGHBOURS, budget), *[(web, budget)] * 4]
    for suffix in ("csv", "parquet"):
        write_workload(workload, tmp_path / f"again.{suffix}")
        again = read_workload(tmp_path / f"again.{suffix}")
        assert (rows_of(again), asked_of(again)) == (rows_of(workload), asked_of(workload))
        assert workload.placement is not None
        changed = workload.placement.copy()
        changed[-1] = 0
        with pytest.raises(OutputError, match="request 1: its instances differ in placement"):
            write_workload(replace(workload, placement=changed), tmp_path / f"x.{suffix}")


# Round trips

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6) | st.sampled_from(
    ["host", "cluster", "by", "if", "within", "min", "1", "+5", "a b", '"', "(", ");", "web"]
)
TERMS = st.lists(st.builds(Constraint, WORDS, st.sampled_from(["==", "/=", "<", ">"]), WORDS), max_size=2).map(
    lambda found: Term(tuple(found))
)
TOPOLOGIES = st.builds(Topology, st.sampled_from([HOST, CLUSTER]) | WORDS.filter(lambda word: word != "*"), TERMS)
NUMBERS = st.integers(1, 5)
RULES = st.builds(Rule, st.sampled_from(["near", "away"]), WORDS, TOPOLOGIES) | st.builds(
    Rule, st.just("spread"), WORDS, TOPOLOGIES, NUMBERS, NUMBERS
)
WEIGHTS = st.integers(-10_000, 10_000)
PREFERENCES = st.builds(Preference, WEIGHTS, WORDS, TOPOLOGIES) | st.builds(Preference, WEIGHTS, term=TERMS)
PLACEMENTS = st.builds(
    Placement,
    st.lists(WORDS, max_size=3, unique=True).map(tuple),
    st.lists(RULES, max_size=3).map(tuple),
    st.lists(PREFERENCES, max_size=3).map(tuple),
)
BUDGETS = st.lists(st.tuples(WORDS, st.booleans(), st.integers(0, 9)), max_size=3, unique_by=lambda one: one[0]).map(
    lambda found: tuple(
        Budget(name, max_unavailable=number) if most else Budget(name, min_available=number)
        for name, most, number in found
    )
)


def a_workload(placements: list[Placement], budgets: tuple[Budget, ...], drawn: np.random.Generator) -> Workload:
    """Ten rows with one of the placements each, and one of the budgets or none."""
    made = tuple(dict.fromkeys([*placements, NO_NEIGHBOURS]))
    return Workload(
        ids=np.arange(10),
        admission=np.arange(10.0),
        duration=np.full(10, np.inf),
        demand=np.ones((10, 2)),
        service_class=np.zeros(10, np.int16),
        job=np.arange(10),
        anti_affinity=np.zeros(10, np.bool_),
        term=np.zeros(10, np.int32),
        placement=drawn.integers(len(made), size=10).astype(np.int32),
        placements=made,
        budget=drawn.integers(-1, len(budgets), size=10).astype(np.int32),
        budgets=budgets,
    )


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PLACEMENTS, max_size=4), BUDGETS, st.integers(0, 99))
def test_what_is_written_reads_back_equal(
    tmp_path: Path, placements: list[Placement], budgets: tuple[Budget, ...], seed: int
) -> None:
    workload = a_workload(placements, budgets, np.random.default_rng(seed))
    for suffix in ("csv", "parquet"):
        write_workload(workload, tmp_path / f"w.{suffix}")
        again = read_workload(tmp_path / f"w.{suffix}")
        assert asked_of(again) == asked_of(workload)
        assert (again.placement is None) == (set(asked_of(workload)) <= {(NO_NEIGHBOURS, b) for b in (None, *budgets)})
        assert (again.budget is None) == all(budget is None for _, budget in asked_of(workload))


@both
def test_random_clusters_survive_their_files(tmp_path: Path, suffix: str) -> None:
    for seed in range(40):
        workload = cluster(seed, largest=4, neighbours=True).workload
        write_workload(workload, tmp_path / f"w.{suffix}")
        again = read_workload(tmp_path / f"w.{suffix}", classes=workload.classes)
        assert asked_of(again) == asked_of(workload)
        assert rows_of(again) == rows_of(workload)


@given(WORDS, st.integers(0, 9), st.booleans(), PLACEMENTS)
def test_texts_say_what_they_were_made_of(name: str, number: int, most: bool, made: Placement) -> None:
    budget = Budget(name, max_unavailable=number) if most else Budget(name, min_available=number)
    assert parse_budget(format_budget(budget)) == (name, ("max-unavailable" if most else "min-available", number))
    assert parse_marks(format_marks(made.marks)) == made.marks
    assert parse_rules(format_rules(made.rules)) == made.rules
    assert parse_preferences(format_preferences(made.preferences)) == made.preferences


@settings(max_examples=500)
@given(
    st.text(st.sampled_from(list('nearwybzo ;()"\\+-1if=<>')) | st.characters(exclude_categories=["Cs"]), max_size=30)
)
def test_any_text_is_understood_or_refused(text: str) -> None:
    for parse, form in (
        (parse_marks, format_marks),
        (parse_rules, format_rules),
        (parse_preferences, format_preferences),
    ):
        refused = False
        try:
            found: Any = parse(text)
        except ValueError:
            refused = True
        assert refused or parse(form(found)) == found


@both
@pytest.mark.parametrize(
    ("made", "part"),
    [
        (Placement(("",)), "marks: found"),
        (Placement(("a", "a")), "marks: found"),
        (Placement(rules=(Rule("near", "a", skew=2),)), "rules: found"),
        (Placement(rules=(Rule("spread", "a", skew=0),)), "rules: found"),
        (Placement(rules=(Rule("away", "a", Topology("zone", Term((AnyOf((SSD,)),)))),)), "rules: found"),
        (Placement(preferences=(Preference(1, "a", term=SSD),)), "preferences: found"),
        (Placement(preferences=(Preference(1, "", ZONE),)), "preferences: found"),
        (Placement(preferences=(Preference(10_001, "a"),)), "preferences: found"),
        (Placement(preferences=(Preference(1, term=Term((Constraint("a", "exists"),))),)), "preferences: found 'a ex"),
    ],
)
def test_what_a_file_cannot_say_is_refused(tmp_path: Path, suffix: str, made: Placement, part: str) -> None:
    path = tmp_path / f"w.{suffix}"
    with pytest.raises(OutputError, match=part):
        write_workload(a_workload([made], (), np.random.default_rng(0)), path)
    assert not list(tmp_path.iterdir())


@both
def test_terms_and_budgets_that_a_file_cannot_say_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w.{suffix}"
    workload = a_workload([], (Budget("a", min_available=1), Budget("a", min_available=2)), np.random.default_rng(0))
    with pytest.raises(OutputError, match="two named 'a'"):
        write_workload(workload, path)
    strange = replace(a_workload([], (), np.random.default_rng(0)), terms=(Term((AnyOf(()),)),))
    with pytest.raises(OutputError, match="constraints: found 'nowhere'"):
        write_workload(strange, path)


# Pieces, and what is said about them


def test_pieces_keep_placements_and_budgets(tmp_path: Path) -> None:
    web, b = Placement(("web",)), Budget("b", min_available=1)
    workload = a_workload([web], (b,), np.random.default_rng(3))
    halves = [select(workload, slice(0, 5)), select(workload, slice(5, None))]
    assert asked_of(join(halves)) == asked_of(workload)
    with WorkloadParquetWriter(tmp_path / "w.parquet") as writer:
        for half in halves:
            writer.append(half)
    assert asked_of(read_workload(tmp_path / "w.parquet")) == asked_of(workload)
    without = replace(halves[1], budget=None, budgets=())
    with pytest.raises(ValueError, match="all or none"):
        join([halves[0], without])
    with WorkloadParquetWriter(tmp_path / "x.parquet") as writer:
        writer.append(halves[0])
        with pytest.raises(OutputError, match="placements, budgets and resizings"):
            writer.append(without)


def test_counts(tmp_path: Path) -> None:
    rows = [
        {"marks": "a", "rules": "near a by host; near b by zone; away c by host"},
        {"budget": "b min-available 1"},
        {},
    ]
    assert describe_workload(read(tmp_path, *rows))["neighbours"] == {
        "placements": 1,
        "marks": 1,
        "near": 1,
        "away": 1,
        "spread": 0,
        "preferences": 0,
        "budgets": 1,
        "in_budgets": 1,
    }
    assert "neighbours" not in describe_workload(read(tmp_path, {}))


def test_inspect_shows_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read(tmp_path, {"marks": "a", "rules": "away a by host"}, {"budget": "b min-available 1"}, {"marks": "a"})
    assert main(["inspect", str(tmp_path / "w.csv")]) == 0
    shown = capsys.readouterr().out
    assert "instances with marks 2, near 0, away 1, spread 0, preferences 0; 2 distinct placements" in shown
    assert "instances in budgets 1; 1 budgets" in shown
