"""The verdict on tables written by hand: who is judged, which word is chosen, which numbers are said."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.reporting.answer import answer
from slacktide.reporting.figure import Rows, Scene
from slacktide.reporting.verdict import verdict

CLASSES = {"gold": 1.0, "bronze": 0.5}


def scene(*policies: str, hosts: tuple[str, ...] = ("N",)) -> Scene:
    return Scene(
        ("w",), hosts, policies, tuple(CLASSES), CLASSES, "priority" if "priority" in policies else policies[0]
    )


def run(policy: str, gold: int, bronze: int, penalty: float, preemptions: int = 0, **more: Any) -> Rows:
    """A run of 100 requests of each class, of which so many kept their promise."""
    place = {"workload": "w", "hosts": "N", "replicate": 0, "policy": policy, "operations": 1000} | more
    return [
        {**place, "class": "gold", "requests": 100, "kept": gold, "penalty": 0.0, "preemptions": 0},
        {**place, "class": "bronze", "requests": 100, "kept": bronze, "penalty": penalty, "preemptions": preemptions},
    ]


def test_better_in_everything_is_better_and_every_number_is_said() -> None:
    rows = run("priority", 100, 60, 800.0, 10) + run("qos", 100, 90, 200.0, 50, operations=3000)
    found = verdict(rows, scene("priority", "qos"))
    kept, owed, price = found.sentences
    assert kept == (
        "qos does better than priority here: of the promises it kept 100 % of gold (under priority 100 %) "
        "and 90 % of bronze (under priority 60 %)."
    )
    assert owed == "Penalties sum up to 200 cpu-seconds under qos and 800 under priority (75.0 % less)."
    assert price == (
        "The price is preemptions: 50 a run under qos against 10, 5.0 times as many; "
        "it takes 3,000 operations a run against 1,000."
    )
    assert (
        found.basis
        == "Over 1 run of each policy (1 workload, 1 host set, 1 seed), on equal workloads, hosts and seeds."
    )


def test_a_policy_that_loses_is_said_to_lose_and_where() -> None:
    rows = run("priority", 100, 90, 100.0, 10) + run("qos", 99, 60, 400.0, 5)
    kept, owed, price = verdict(rows, scene("priority", "qos")).sentences
    assert kept.startswith("qos does worse than priority here")
    assert kept.endswith("it kept fewer in bronze on N (60 % instead of 90 %) and gold on N (99 % instead of 100 %).")
    assert "(300.0 % more)" in owed
    assert price.startswith("qos also preempts less: 5 times a run against 10")


@pytest.mark.parametrize(
    ("bronze", "penalty", "words"),
    [
        (70, 100.0, "does better than priority here"),  # more promises, equal penalty
        (60, 50.0, "does better than priority here"),  # equal promises, less penalty
        (60, 100.5, "does no different from priority here"),  # half a per cent of penalty is no difference
        (60, 102.0, "does worse than priority here"),
        (50, 50.0, "does better than priority in some respects and worse in others"),
        (70, 150.0, "does better than priority in some respects and worse in others"),
    ],
)
def test_the_word_follows_from_shares_and_penalties(bronze: int, penalty: float, words: str) -> None:
    rows = run("priority", 100, 60, 100.0) + run("qos", 100, bronze, penalty)
    assert verdict(rows, scene("priority", "qos")).sentences[0].startswith(f"qos {words}: ")


def test_the_policy_with_the_least_penalty_is_judged_and_the_others_are_mentioned() -> None:
    rows = run("priority", 100, 60, 800.0) + run("published", 100, 70, 500.0) + run("recommended", 100, 65, 100.0)
    found = verdict(rows, scene("priority", "published", "recommended"))
    assert found.sentences[0].startswith("recommended does better")
    assert found.sentences[1].endswith("(87.5 % less), 500 under published.")


def test_who_keeps_every_class_as_well_goes_before_who_owes_less() -> None:
    """Least penalties are bought with a class's promises: a policy that is better in every class is what counts."""
    rows = run("priority", 100, 78, 800.0) + run("cheap", 100, 66, 100.0, 270) + run("fair", 100, 85, 500.0, 20)
    names = ("priority", "cheap", "fair")
    found = verdict(rows, scene(*names))
    assert found.judged == "fair"
    assert found.sentences[0].startswith("fair does better than priority here")
    assert found.sentences[1].endswith("(37.5 % less), 100 under cheap.")
    rows = run("priority", 100, 90, 800.0) + run("cheap", 100, 66, 100.0, 270) + run("fair", 100, 85, 500.0, 20)
    assert verdict(rows, scene(*names)).judged == "cheap", "where all keep a class worse the least penalty decides"


def test_equal_penalties_are_decided_by_promises_then_by_preemptions_then_by_the_grid() -> None:
    names = ("priority", "a", "b")
    rows = run("priority", 100, 60, 0.0)
    assert verdict(rows + run("a", 100, 60, 0.0) + run("b", 100, 61, 0.0), scene(*names)).sentences[0][0] == "b"
    rows += run("a", 100, 60, 0.0, 7)
    assert verdict(rows + run("b", 100, 60, 0.0, 6), scene(*names)).sentences[0][0] == "b"
    assert verdict(rows + run("b", 100, 60, 0.0, 7), scene(*names)).sentences[0][0] == "a"
    assert verdict(rows + run("b", 100, 60, 0.0, 7), scene(*names)).sentences[1] == "No policy owes a penalty."


def test_only_places_that_every_policy_has_finished_are_compared() -> None:
    rows = run("priority", 100, 60, 800.0) + run("qos", 100, 90, 200.0)
    rows += run("priority", 0, 0, 1e9, hosts="half")  # qos has not finished here
    found = verdict(rows, scene("priority", "qos", hosts=("N", "half")))
    assert "200 cpu-seconds under qos and 800 under priority" in found.sentences[1]
    assert "1 host set" in found.basis


def test_nothing_in_common_is_said_in_one_sentence() -> None:
    rows = run("priority", 100, 60, 1.0) + run("qos", 100, 90, 1.0, hosts="half")
    (only,) = verdict(rows, scene("priority", "qos", hosts=("N", "half"))).sentences
    assert only.startswith("Nothing can be compared yet")


def test_one_policy_alone_is_described_and_not_compared() -> None:
    found = verdict(run("qos", 100, 87, 3.5, 12), scene("qos"))
    assert found.sentences == (
        "qos kept 100 % of gold and 87 % of bronze promises.",
        "Penalties sum up to 3.5 cpu-seconds under qos.",
        "Preemptions a run: 12 under qos.",
    )
    assert found.basis.endswith("Only qos has finished runs, so that nothing is compared.")


def test_a_reference_without_finished_runs_is_said() -> None:
    found = verdict(run("a", 100, 87, 3.5) + run("b", 100, 87, 3.5), scene("priority", "a", "b"))
    assert found.basis.endswith("The reference priority has no finished run.")


def test_a_share_is_never_rounded_to_all_or_nothing() -> None:
    rows = [
        {**row, "requests": 100_000, "kept": 99_999 if row["policy"] == "qos" else 100_000}
        for row in run("priority", 0, 0, 0.0) + run("qos", 0, 0, 0.0)
    ]
    assert "99.999 % of gold" in verdict(rows, scene("priority", "qos")).sentences[0]


def test_host_sets_are_told_apart_where_there_are_several() -> None:
    rows = []
    for hosts, owed in (("N", 0.0), ("0.8 N", 70.0)):
        rows += run("priority", 100, 60, owed + 30.0, hosts=hosts) + run("qos", 100, 60, owed, hosts=hosts)
    text = verdict(rows, scene("priority", "qos", hosts=("N", "0.8 N"))).sentences[1]
    assert text.endswith("(46.2 % less); by host set: 0 against 30 on N and 70 against 100 on 0.8 N.")


def test_of_many_policies_the_others_are_summed_up_and_not_listed() -> None:
    names = ["priority", *(f"patience {number}" for number in range(9))]
    rows = [row for number, name in enumerate(names) for row in run(name, 100, 60, 800.0 - 10 * number)]
    found = verdict(rows, scene(*names))
    assert found.judged == "patience 8"
    assert found.sentences[1] == (
        "Penalties sum up to 710 cpu-seconds under patience 8 and 800 under priority (11.3 % less), "
        "720 to 790 under the other 8."
    )


def test_a_loss_of_the_better_policy_is_not_hidden() -> None:
    rows = run("priority", 100, 10, 800.0) + run("qos", 100, 90, 100.0)
    rows += run("priority", 100, 60, 1.0, hosts="0.8 N") + run("qos", 100, 50, 2.0, hosts="0.8 N")
    kept = verdict(rows, scene("priority", "qos", hosts=("N", "0.8 N"))).sentences[0]
    assert kept.startswith("qos does better than priority here")
    assert kept.endswith("; but it kept fewer in bronze on 0.8 N (50 % instead of 60 %).")


def test_shares_over_several_host_sets_say_so() -> None:
    def on(hosts: str) -> list[dict[str, Any]]:
        kept = 100 if hosts == "N" else 90
        rows = run("priority", 100, 80, 5.0) + run("qos", 100, kept, 1.0)
        return [{**row, "hosts": hosts, "wasted_startup": 0.0} for row in rows]

    both = scene("priority", "qos", hosts=("N", "half"))
    assert ": of the promises over all host sets it kept " in verdict(on("N") + on("half"), both).sentences[0]
    assert "over all host sets" not in verdict(on("N"), both).sentences[0]
    assert "The verdict's shares are over all rows" in answer(on("N") + on("half"), both).reading
    assert "The verdict's shares" not in answer(on("N"), both).reading
    alone = [row for row in on("N") + on("half") if row["policy"] == "qos"]
    assert verdict(alone, scene("qos", hosts=("N", "half"))).sentences[0].endswith("promises over all host sets.")
