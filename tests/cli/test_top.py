"""The table that ``slacktide top`` draws on a terminal."""

from __future__ import annotations

import pytest

from slacktide.cli.cluster import keys
from slacktide.cli.cluster.keys import View
from slacktide.cli.cluster.top import Classes, Ledgers, draw, on_screen
from slacktide.cli.cluster.top_rows import HEAD, ORDERS, Line
from slacktide.cli.cluster.without_class import PodsWithoutClass
from slacktide.engine.ledger.checkpoint import VERSION
from slacktide.kube.resources.objects import AVAILABILITY, POD, SERVICE_CLASS, Identity, Pod
from slacktide.kube.translate.service_classes import Classes as ServiceClasses
from slacktide.kube.translate.service_classes import concerns_class
from slacktide.kube.translate.unschedulable import Unschedulable
from support import made_objects
from support.made_objects import decoded
from support.on_terminal import plain, terminal

ELSEWHERE = {"slo": 0.9, "rank": 1, "namespaces": ["shop"]}


def test_the_table_has_as_many_lines_as_the_terminal_and_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setattr("sys.stdout", stream)
    lines = [Line("ns", f"[web-{n}]", "gold", 1.0, 0.9, 1.5, "Missed", 1, 2, 3) for n in range(20)]
    with on_screen() as screen:
        draw(lines, [], screen)
        shown = plain(stream).splitlines()
    assert shown[0] == "20 workloads: 20 missed, 0 atrisk, 0 kept, 0 unknown"
    assert shown[1].split()[:3] == ["NAMESPACE", "WORKLOAD", "CLASS"]
    assert [line.split()[1] for line in shown[2:-1]] == [f"[web-{n}]" for n in range(6)]
    assert shown[-1] == "... and 14 more"
    assert max(map(len, shown)) <= 60


# -- who is lost -------------------------------------------------------------------------------------------------------


def ledgers_of(*classes: tuple[str, int]) -> Ledgers:
    """Of a cluster with classes of these names and ranks."""
    ledgers = Ledgers()
    watch = Classes(ledgers)
    for name, rank in classes:
        watch.changed(decoded(SERVICE_CLASS, {"metadata": {"name": name}, "spec": {"slo": 0.9, "rank": rank}}))
    return ledgers


def line(name: str, service: str, waiting: int, lost: int = 0, starving: int = 0) -> Line:
    return Line("ns", name, service, 0.9, 0.5, -60.0, "Missed", 1, waiting, 0, lost, starving)


def test_a_sentence_tells_each_overloaded_class_and_how_many_of_it_are_late() -> None:
    ledgers = ledgers_of(("gold", 1), ("silver", 2), ("bronze", 3), ("basic", 4))
    lines = [
        line("a", "bronze", 7, lost=2),
        line("b", "bronze@0.4", 5, lost=1, starving=4),
        line("c", "silver", 3, lost=1),
        line("d", "basic", 9, starving=1),
        line("e", "gold", 4),
    ]
    assert ledgers.overloaded(lines) == [
        "silver is overloaded: 1 of 3 waiting instances is lost",
        "bronze is overloaded: 3 of 12 waiting instances are lost, 4 starve",
        "basic is overloaded: 1 of 9 waiting instances starves",
    ]
    assert ledgers.overloaded([line("e", "gold", 4)]) == []


def test_a_class_of_the_same_rank_is_overloaded_too() -> None:
    ledgers = ledgers_of(("web", 2), ("api", 2), ("idle", 2), ("gold", 1))
    lines = [line("a", "web", 2, lost=2), line("b", "api", 1), line("c", "gold", 1)]
    assert ledgers.overloaded(lines) == [
        "api is overloaded: it has the rank of web",
        "web is overloaded: 2 of 2 waiting instances are lost",
    ]
    gone = [line("a", "forgotten", 2, lost=1), line("b", "also-forgotten", 1)]
    assert ledgers.overloaded(gone) == ["forgotten is overloaded: 1 of 2 waiting instances is lost"]


def test_rows_say_how_many_are_late_and_may_be_sorted_by_that() -> None:
    lost, starving, none = line("a", "b", 3, lost=2, starving=1), line("s", "b", 3, starving=1), line("n", "b", 3)
    shown = [dict(zip(HEAD, one.cells(), strict=True)) for one in (lost, starving, none)]
    assert [(one["LOST"], one["STARVING"]) for one in shown] == [("2", "1"), ("-", "1"), ("-", "-")]
    assert sorted([none, starving, lost], key=ORDERS["lost"]) == [lost, starving, none]


def test_a_ledger_says_who_is_late_and_one_of_before_does_not() -> None:
    ledgers = ledgers_of(("bronze", 3))
    status = {"class": "bronze", "promised": 0.9, "delivered": 0.5, "state": "Missed", "waiting": 3}
    for name, more in (("now", {"lost": 2, "starving": 1}), ("before", {})):
        body = {"metadata": {"name": name, "namespace": "n"}, "status": status | more}
        ledgers.changed(decoded(AVAILABILITY, body))
    assert [(one.name, one.lost, one.starving) for one in ledgers.lines(2e9)] == [("now", 2, 1), ("before", 0, 0)]


def test_lines_about_classes_take_their_room_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setattr("sys.stdout", stream)
    lines = [line(f"[web-{n}]", "bronze", 2, lost=1) for n in range(20)]
    with on_screen() as screen:
        draw(lines, ledgers_of(("bronze", 3)).overloaded(lines), screen)
        shown = plain(stream).splitlines()
    assert shown[1] == "bronze is overloaded: 20 of 40 waiting instances are lost"
    assert "LOST" in shown[2].split(), "what is most urgent is there in 80 columns"
    assert shown[-1] == "... and 15 more"
    assert len(shown) <= 10


# -- who is not accounted for ------------------------------------------------------------------------------------------


def test_a_ledger_of_a_later_release_is_counted_and_shown_as_written() -> None:
    ledgers = ledgers_of(("gold", 1))
    status = {"class": "gold", "promised": 0.9, "delivered": 0.95, "slackSeconds": 12.0, "state": "Kept"}
    for name, version in (("web", VERSION + 1), ("api", VERSION + 7), ("broken", "one")):
        body = {"metadata": {"name": name, "namespace": "n"}, "status": status | {"accumulators": {"version": version}}}
        ledgers.changed(decoded(AVAILABILITY, body))
    assert ledgers.of_a_later_release() == ["2 ledgers are of a later release, and shown as written: n/api, n/web"]
    assert [(one.name, one.delivered, one.state) for one in ledgers.lines(2e9)] == [
        (name, 0.95, "Kept") for name in ("web", "api", "broken")
    ]
    ledgers.deleted(Identity("n", "web", "", ""), None)
    assert ledgers.of_a_later_release() == ["1 ledger is of a later release, and shown as written: n/api"]


def waiting_pod(name: str, message: str, owner: str = "", service: str = "") -> Pod:
    """A pod that waits, and what the scheduler says of it; ``owner`` as KIND/NAME."""
    kind, _, of = owner.partition("/")
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": of, "controller": True}] if owner else []
    labels = {"pod-template-hash": "5d8f"} | ({"slacktide.io/class": service} if service else {})
    metadata = {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": owners}
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    return decoded(POD, {"metadata": metadata, "spec": {}, "status": {"conditions": conditions}})


def test_pods_without_a_class_are_listed_by_workload_with_the_reason() -> None:
    pods = PodsWithoutClass()
    unknown = "service class 'platinum': does not exist"
    none = "label slacktide.io/class: found none, and neither its namespace nor the cluster has a default class"
    pods.replaced(
        [
            waiting_pod("web-5d8f-a", unknown, "ReplicaSet/web-5d8f", "platinum"),
            waiting_pod("web-5d8f-b", unknown, "ReplicaSet/web-5d8f", "platinum"),
            waiting_pod("db-0", none, "StatefulSet/db"),
            waiting_pod("alone", none),
            waiting_pod("fine", "0/2 nodes are available: 2 Insufficient cpu", service="gold"),
        ]
    )
    assert [(one.name, one.service, one.waiting, one.state) for one in pods.lines()] == [
        ("deployment-web", "platinum", 2, "Unknown"),
        ("statefulset-db", "-", 1, "Unknown"),
        ("pod-alone", "-", 1, "Unknown"),
    ]
    assert pods.sentences() == [
        f"2 pods wait without a class: {none} (shop/alone, shop/db-0)",
        f"2 pods wait without a class: {unknown} (shop/web-5d8f-a, shop/web-5d8f-b)",
    ]
    row = dict(zip(HEAD, pods.lines()[0].cells(), strict=True))
    assert (row["PROMISED"], row["DELIVERED"], row["SLACK"], row["WAITING"]) == ("-", "-", "-", "2")
    for order in ORDERS.values():
        assert len(sorted([*pods.lines(), line("a", "gold", 1)], key=order)) == 4
    pods.changed(waiting_pod("alone", "0/2 nodes are available: 2 Insufficient cpu", service="gold"))
    pods.deleted(Identity("shop", "db-0", "", ""), None)
    assert [one.name for one in pods.lines()] == ["deployment-web"]


def test_what_the_scheduler_says_of_a_class_is_recognised() -> None:
    """By the words that it says itself."""
    classes = ServiceClasses()
    spoken = []
    for labels in ({}, {"slacktide.io/class": "platinum"}, {"slacktide.io/class": "elsewhere"}):
        classes.see(decoded(SERVICE_CLASS, {"metadata": {"name": "elsewhere"}, "spec": ELSEWHERE}))
        with pytest.raises(Unschedulable) as raised:
            classes.of(made_objects.pod(labels=labels), batch=False)
        spoken.append(raised.value.reason)
    assert len(set(spoken)) == 3
    assert all(map(concerns_class, spoken)), spoken


# -- keys --------------------------------------------------------------------------------------------------------------


def test_q_ends_s_sorts_and_w_widens() -> None:
    view = View("slack", False, ("slack", "name"))
    view.take("s")
    assert view.order == "name"
    view.take("Sw?")
    assert (view.order, view.wide, view.ended) == ("slack", True, False)
    view.take("q")
    assert view.ended


def test_keys_come_without_enter_and_the_terminal_is_as_before_afterwards() -> None:
    import asyncio
    import os
    import pty
    import termios

    controller, terminal_side = pty.openpty()

    async def typed() -> list[str]:
        with open(terminal_side, closefd=False) as stream, keys.pressed(stream) as pressed:
            assert not termios.tcgetattr(terminal_side)[3] & termios.ICANON  # of each key at once
            found = [await pressed(0.01)]
            os.write(controller, b"s")
            found.append(await pressed(60.0))
            os.write(controller, b"q")
            found.append(await pressed(60.0))
            return found

    try:
        before = termios.tcgetattr(terminal_side)
        assert asyncio.run(typed()) == ["", "s", "q"]
        assert termios.tcgetattr(terminal_side) == before
    finally:
        os.close(controller)
        os.close(terminal_side)


def test_the_last_line_says_which_keys_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setenv("LINES", "20")
    monkeypatch.setattr("sys.stdout", stream)
    with on_screen() as screen:
        draw([line("web", "bronze", 1)], [], screen, View("name", False, tuple(ORDERS)))
        shown = plain(stream).splitlines()
    assert shown[-1].startswith("q ends, s sorts (by name), w shows all columns")
    assert "\x1b[31" in stream.getvalue().replace("1;31", "31"), "what is missed is in colour"
