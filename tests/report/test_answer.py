"""The answer on the first screen: what its tiles say, what they tell apart, and who can tell them apart."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from matplotlib.colors import to_hex

from report.test_figures import SLOS, picture, scene, texts
from slacktide import palette
from slacktide.reporting import answer
from slacktide.reporting.figure import Scene


def test_a_name_is_whole_where_there_is_room_beside_it() -> None:
    slos = {"system-critical": 0.99, "batch": 0.5}
    about = Scene(("w",), ("n",), ("priority", "recommended"), tuple(slos), slos, "priority")
    rows = [
        {"workload": "w", "hosts": "n", "policy": policy, "replicate": 0, "class": name, "requests": 10, "kept": 10,
         "penalty": 0.0, "preemptions": 3, "operations": 5, "passes": 1, "wasted_startup": 0.0}
        for policy in about.policies for name in slos
    ]  # fmt: skip
    assert "system-critical" in texts(answer.answer(rows, about))


def test_the_answer_has_a_tile_for_each_class_and_policy_and_the_price() -> None:
    def run(policy: str, name: str, kept: int, hosts: str = "hosts 0") -> dict[str, Any]:
        place = {"workload": "workload 0", "hosts": hosts, "policy": policy, "replicate": 0, "class": name}
        return {**place, "requests": 10, "kept": kept, "penalty": 10.0 - kept, "preemptions": 3, "operations": 5,
                "passes": 1, "wasted_startup": 0.0}  # fmt: skip

    rows = [run(policy, name, kept) for policy, kept in (("policy 0", 10), ("policy 1", 9)) for name in SLOS]
    found = texts(answer.answer(rows, scene()))
    assert (found.count("\u2713 100 %"), found.count("\u2717 90 %")) == (2, 2)
    assert {"policy 0", "policy 1", "2", "6", "promise 50 %,", "kept by"} <= set(found)
    many = scene(hosts=8)
    rows = [run(policy, name, 10, one) for one in many.hosts for policy in many.policies for name in SLOS]
    figure = answer.answer(rows, many)
    assert figure.table["runs"].to_pylist() == [8, 8]  # all host sets together
    assert texts(figure).count("\u2713 100 %") == 4


def test_the_answer_tells_workloads_apart_as_long_as_there_is_room() -> None:
    def said(workloads: int, hosts: int) -> tuple[list[str], str]:
        about = scene(workloads, hosts)
        rows = [
            {"workload": workload, "hosts": one, "policy": policy, "replicate": 0, "class": name, "requests": 10,
             "kept": 10 if workload == "workload 0" else 9, "penalty": 0.0, "preemptions": 3, "operations": 5,
             "passes": 1, "wasted_startup": 0.0}
            for workload in about.workloads for one in about.hosts for policy in about.policies for name in SLOS
        ]  # fmt: skip
        figure = answer.answer(rows, about)
        return [one for one in texts(figure) if one.startswith(("workload", "hosts", "\u2717"))], figure.reading

    both, reading = said(2, 2)
    assert both[:2] == ["workload 0, hosts 0", "workload 0, hosts 1"]
    assert both.count("\u2717 90 %") == 8
    assert reading.endswith("All seeds together.")
    assert [one for one in said(2, 4)[0] if one[0] != "\u2717"] == ["workload 0", "workload 1"]
    assert said(2, 4)[1].endswith("All host sets and seeds together.")
    assert [one for one in said(8, 2)[0] if one[0] != "\u2717"] == ["hosts 0", "hosts 1"]


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_tiles_stand_out_by_their_misses_also_for_who_sees_no_red(ground: str) -> None:
    about = scene(policies=4)
    rows = [
        {"workload": "workload 0", "hosts": "hosts 0", "policy": policy, "replicate": 0, "class": name,
         "requests": 100, "kept": kept, "penalty": 0.0, "preemptions": 3, "operations": 5, "passes": 1,
         "wasted_startup": 0.0}
        for policy, kept in zip(about.policies, (100, 99, 80, 40), strict=True) for name in SLOS
    ]  # fmt: skip
    (axes,) = picture(answer.answer(rows, about)).axes
    inks = {one.light: getattr(one, ground) for one in palette.INKS}
    under = linear(getattr(palette.GROUND, ground))
    differ = []
    for tile in axes.patches[::2]:
        seen = linear(inks[to_hex(tile.get_facecolor())])
        mixed = [float(tile.get_alpha()) * one + (1.0 - float(tile.get_alpha())) * two
                 for one, two in zip(seen, under, strict=True)]  # fmt: skip
        differ.append(abs(deuteranope(mixed) - deuteranope(under)))
    assert len(differ) == 4
    assert all(later > 1.4 * before for before, later in itertools.pairwise(differ)), differ


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]


def deuteranope(colour: list[float]) -> float:
    """The luminance of a colour, of linear red, green and blue, without the middle cones (Machado et al. 2009)."""
    sees = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
    red, green, blue = (sum(part * one for part, one in zip(row, colour, strict=True)) for row in sees)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
