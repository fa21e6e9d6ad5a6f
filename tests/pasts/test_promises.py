"""Who is promised what: proposals from the data, and the file that people edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.pasts import promises
from slacktide.pasts.outcome import WorkloadLine

HEAD = "classes: [{name: gold, slo: 99%, rank: 1}]\n"


def line(name: str, delivered: float, priority: int = 0, namespace: str = "shop", **labels: str) -> WorkloadLine:
    shares = dict.fromkeys(("restart", "always", "never"), delivered)
    called = f"p{priority}" if priority else ""
    return WorkloadLine(1, namespace, "Deployment", name, called, priority, 1, 100.0, shares, 0, labels)  # type: ignore[arg-type]


WORKLOADS = [
    *(line(f"a{number}", 0.9993, 1000, tier="front") for number in range(9)), line("slow", 0.5, 1000, tier="front"),
    line("b", 0.991, 10, "data", tier="back"), line("c", 0.97, 10, "data", tier="back"), line("d", 0.2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("", {"p1000": (0.999, 1, 10), "p10": (0.95, 2, 2), "priority-0": (0.9, 3, 1)}),
        ("priority", {"p1000": (0.999, 1, 10), "p10": (0.95, 2, 2), "priority-0": (0.9, 3, 1)}),
        ("namespace", {"shop": (0.9, 1, 11), "data": (0.95, 2, 2)}),
        ("kind", {"deployment": (0.9, 1, 13)}),
        ("label=tier", {"front": (0.999, 1, 10), "back": (0.95, 2, 2), "none": (0.9, 3, 1)}),
        ("data", {"slo-999": (0.999, 1, 9), "slo-99": (0.99, 2, 1), "slo-95": (0.95, 3, 1), "slo-9": (0.9, 4, 2)}),
    ],
)
def test_a_proposal_is_what_most_reached(tmp_path: Path, way: str, expected: dict[str, tuple[float, int, int]]) -> None:
    """Nine of ten reached .9993: the next usual objective below is .999."""
    promises.write(promises.propose(WORKLOADS, way), tmp_path)
    found = promises.read(tmp_path / promises.FILE)
    counts = promises.summary(found, WORKLOADS)
    assert {one.name: (one.slo, one.rank, counts[one.name]) for one in found.classes} == expected


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    path = tmp_path / promises.FILE
    path.write_text(
        "classes:\n- {name: gold, slo: 99.9%, rank: 1}\n- {name: rest, slo: 0.9, rank: 2}\n"
        "workloads:\n- {class: gold, name: 'a*', namespace: shop}\n- {class: gold, label: tier=back, name: c}\n"
        "- {class: rest, priorityClass: p*}\n"
    )
    found = promises.read(path)
    of = {one.name: found.of(one) for one in WORKLOADS}
    assert of["a0"] is not None
    assert of["a0"].slo == 0.999
    assert [None if of[name] is None else of[name].name for name in ("c", "b", "slow", "d")] == [  # type: ignore[union-attr]
        "gold", "rest", "rest", None,
    ]  # fmt: skip


def test_another_way_is_refused() -> None:
    with pytest.raises(ConfigError, match="found 'tier', expected one of priority, namespace"):
        promises.propose(WORKLOADS, "tier")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("classes: [", "promises.yaml:[12]: "),
        ("[]", "classes and workloads"),
        (HEAD, "workloads"),
        (HEAD + "workloads: [{class: silver}]", r"yaml:2: .*\[0\].class: found 'silver', expected one of gold"),
        (HEAD + "workloads: [{class: gold, colour: red}]", "colour"),
        (
            HEAD + "workloads:\n- {class: gold}\n- {class: gold, namespce: shop}",
            r"yaml:4: workloads\[1\].namespce: unknown key, .*did you mean 'namespace'",
        ),
        (HEAD.replace("rank: 1", "rank: first") + "workloads: []", r"yaml:1: .*rank: found 'first', .*whole number"),
        ("classes: [{name: gold, slo: 2, rank: 1}]\nworkloads: []", r"classes\[0\]: .*slo"),
        ("classes: [{name: gold, slo: most, rank: 1}]\nworkloads: []", r"classes\[0\]: .*most"),
        (HEAD.replace("]", ", {name: gold, slo: 1, rank: 1}]") + "workloads: []", "twice"),
    ],
)
def test_a_broken_file_is_named_with_its_field(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / promises.FILE
    path.write_text(text)
    with pytest.raises(InputError, match=expected):
        promises.read(path)
