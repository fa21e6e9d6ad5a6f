"""The auditor finds what it is there for: one story in which all is well, and each thing that may go wrong in it."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from cluster import judging
from cluster.auditor import Auditor, Seen
from cluster.judging import Json
from cluster.replaying import Replay

Story = dict[str, Json]
NOTE = "Preempted by pod default/high on node n1: its slack is 9.0 s, that of the preemptor -1.0 s"


class Taped(Auditor):
    """What would have been seen."""

    def __init__(self, story: list[tuple[str, Json, bool]], acts: list[Json]) -> None:
        self._told = [
            Seen(100.0 + 5 * i, i, kind, gone, copy.deepcopy(body)) for i, (kind, body, gone) in enumerate(story)
        ]
        self._done = acts

    def tape(self, kind: str = "") -> list[Seen]:
        return [one for one in self._told if kind in ("", one.kind)]

    def acts(self) -> list[Json]:
        return self._done

    def now(self) -> float:
        return 150.0

    def late(self, begin: float, end: float) -> float:  # noqa: ARG002  # this machine is never late
        return 0.0


def node(name: str, **labels: str) -> Json:
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"node-restriction.kubernetes.io/slacktide": "true", "zone": name, **labels},
        },
        "spec": {},
        "status": {
            "allocatable": {"cpu": "2", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, cpu: str, app: str) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"namespace": "default", "name": name, "uid": name, "labels": {"app": app}}
    spec = {"schedulerName": "slacktide", "containers": [container]}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def on(body: Json, where: str) -> Json:
    return body | {"spec": body["spec"] | {"nodeName": where}}


def act(what: str, uid: str, code: int = 201) -> Json:
    body: Json = {"metadata": {"uid": uid}} if what == "binding" else {"deleteOptions": {"preconditions": {"uid": uid}}}
    return {
        "verb": "create",
        "objectRef": {"resource": "pods", "subresource": what, "namespace": "default", "name": uid},
        "responseStatus": {"code": code},
        "requestObject": body,
        "stageTimestamp": "1970-01-01T00:02:24Z",  # a moment before "low" is seen to leave
    }


def played(change: Callable[[Story], None] = lambda _story: None, terms: Iterable[float] = ()) -> list[str]:
    """What is wrong in a story."""
    return Replay(taped(change), terms).judge()


def taped(change: Callable[[Story], None] = lambda _story: None) -> Taped:
    """ "low" and "beside" run; "low" makes room for "high"; "late" comes to the other node."""
    budget = {
        "metadata": {"namespace": "default", "name": "b", "uid": "b"},
        "spec": {"selector": {"matchLabels": {"app": "low"}}},
        "status": {"disruptionsAllowed": 1, "desiredHealthy": 1},
    }
    story: Story = {
        "n1": node("n1"), "n2": node("n2"), "budget": budget,
        "low": pod("low", "1500m", "low"), "beside": pod("beside", "200m", "low"),
        "high": pod("high", "1", "high"), "late": pod("late", "1", "late"), "other": pod("other", "1", "other"),
        "event": {
            "metadata": {"namespace": "default", "uid": "e"}, "reason": "Preempted", "note": NOTE,
            "reportingController": "slacktide", "regarding": {"uid": "low", "name": "low"},
            "related": {"uid": "high", "name": "high"},
        },
        "where": {"low": "n1", "beside": "n1", "high": "n1", "late": "n2"},
        "places": {"told": []},
        "order": {"high first": False, "twice": False, "moved": False, "vain": False, "other": False},
    }  # fmt: skip
    change(story)
    where, order = story["where"], story["order"]
    leaving = on(story["low"], where["low"])
    leaving = leaving | {"metadata": leaving["metadata"] | {"deletionTimestamp": "2026-11-21T15:00:00Z"}}
    tape: list[tuple[str, Json, bool]] = [("nodes", story["n1"], False), ("nodes", story["n2"], False)]
    tape.append(("budgets", story["budget"], False))
    for name in ("low", "beside"):
        tape += [("pods", story[name], False), ("pods", on(story[name], where[name]), False)]
    tape += [("pods", story["high"], False), ("pods", story["other"], False), ("pods", leaving, False)]
    if story["event"]:
        tape.append(("events", story["event"], False))
    for note, count in story["places"]["told"]:
        regarding = {"uid": "high", "name": "high"}
        event = {"metadata": {"uid": "w"}, "reason": "FailedScheduling", "note": note, "regarding": regarding}
        tape.append(("events", event | {"deprecatedCount": count}, False))
    last = [("pods", leaving, True), ("pods", on(story["high"], where["high"]), False)]
    if order["other"]:
        last.insert(1, ("pods", on(story["other"], "n1"), False))
    tape += last[::-1] if order["high first"] else last[: 1 if order["vain"] else None]
    tape += [("pods", story["late"], False), ("pods", on(story["late"], where["late"]), False)]
    if order["moved"]:
        tape.append(("pods", on(story["late"], "n1"), False))
    bound = [name for name in ("low", "beside", "high", "late") if not (order["vain"] and name == "high")]
    acts = [act("binding", name) for name in bound] + [act("eviction", "low"), act("eviction", "late", 429)]
    if "code" in story["event"].get("regarding", {}):
        acts.append(act("eviction", story["event"]["regarding"]["uid"], story["event"]["regarding"]["code"]))
    if order["other"]:
        acts.append(act("binding", "other"))
    if order["twice"]:
        acts.append(act("binding", "late"))
    return Taped(tape, acts)


def changed(*path: str, to: object) -> Callable[[Story], None]:
    def change(story: Story) -> None:
        inner: Json = story
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = to

    return change


CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
HOST_PORT = [{"name": "main", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "200m"}}}]


def clash(story: Story) -> None:
    for name in ("beside", "low"):
        story[name]["spec"]["containers"] = HOST_PORT


def apart(story: Story) -> None:
    terms = [{"labelSelector": {"matchLabels": {"app": "high"}}, "topologyKey": "zone"}]
    story["beside"]["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def together(story: Story) -> None:
    terms = [{"labelSelector": {"matchLabels": {"app": "high"}}, "topologyKey": "zone"}]
    story["late"]["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spread(story: Story) -> None:
    story["beside"]["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
         "labelSelector": {"matchLabels": {"app": "low"}}}
    ]  # fmt: skip


def with_group(story: Story) -> None:
    """Nobody of the group made room where the beneficiary is."""
    story["where"]["high"] = "n2"
    story["event"]["note"] = NOTE.replace(": its slack", " with its pod group default/g (x): its slack")


BESIDE = {"uid": "beside", "namespace": "default", "name": "beside"}


def test_a_story_in_which_all_is_well() -> None:
    assert played() == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (changed("n1", "status", "allocatable", "cpu", to="1600m"), "default/beside: bound to n1.* 1.7 of cpu on it"),
        (changed("n1", "status", "allocatable", "pods", to="1"), "default/beside: bound to n1.* 2 of pods on it"),
        (changed("order", "high first", to=True), "bound to n1.* 2.7 of cpu on it, 2 allocatable"),
        (changed("order", "twice", to=True), "pod default/late: 2 bindings went through"),
        (changed("order", "moved", to=True), "pod default/late: moved from n2 to n1"),
        (changed("order", "vain", to=True), "pod default/low: evicted for high, which is on no node"),
        (changed("where", "high", to="n2"), "pod default/low: evicted for high, which is on n2"),
        (with_group, "pod default/low: evicted for high, which is on n2"),
        (changed("where", "late", to="n3"), "pod default/late: bound to n3, which does not exist"),
        (changed("event", to={}), "pod default/low: evicted without an event"),
        (changed("event", "note", to="Preempted"), "does not tell both slacks"),
        (changed("event", "regarding", to=BESIDE), "of default/beside, which we did"),
        (changed("low", "spec", "schedulerName", to="other"), "low: eviction by us, though its scheduler is"),
        (changed("n2", "metadata", "labels", to={}), "pod default/late: bound to n2.*the node was not given to us"),
        (changed("n2", "spec", "unschedulable", to=True), "pod default/late: .*unschedulable is not tolerated"),
        (changed("n2", "spec", "taints", to=[{"key": "k", "effect": "NoExecute"}]), "taint k is not tolerated"),
        (changed("n2", "status", "conditions", to=[]), "the node is not ready"),
        (changed("late", "spec", "nodeSelector", to={"zone": "n1"}), "nodeSelector does not match"),
        (changed("late", "spec", "schedulingGates", to=[{"name": "g"}]), "bound while gated"),
        (changed("budget", "status", "desiredHealthy", to=2), "low: evicted: 1 healthy left of budget b, 2"),
        (changed("budget", "status", "disruptionsAllowed", to=-1), "budget b: less than no disruption allowed"),
        (changed("late", "spec", "volumes", to=CLAIM), "bound before its claim data was"),
        (clash, "a host port is taken by low"),
        (apart, "pod default/high: .*anti-affinity of beside"),
        (together, "pod default/late: .*nobody that its affinity asks for"),
        (spread, "pod default/beside: .*spread over zone"),
    ],
)
def test_each_thing_that_may_go_wrong_is_found(change: Callable[[Story], None], finding: str) -> None:
    found = played(change)
    assert any(re.search(finding, one) for one in found), found


def nominated(story: Story) -> None:
    """A place is kept, and nobody had to go."""
    story["other"]["status"]["nominatedNodeName"] = "n1"


def given_up(story: Story) -> None:
    story["order"]["vain"] = True
    story["places"]["told"] = [("nomination of node n1 withdrawn", 1)]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda _story: None, []),
        (nominated, ["other"]),
        (changed("order", "vain", to=True), ["high"]),
        (given_up, []),
        (changed("event", to={}), ["low"]),
    ],
    ids=["all is well", "a place is kept", "somebody went", "given up", "no event yet"],
)
def test_what_was_begun_is_waited_for(change: Callable[[Story], None], names: list[str]) -> None:
    assert taped(change).under_way() == names


def test_a_new_leader_is_not_held_to_what_a_former_one_meant() -> None:
    def roomy(story: Story) -> None:
        story["n1"]["status"]["allocatable"]["cpu"] = "4"
        story["order"]["high first"] = True

    def elsewhere(story: Story) -> None:
        story["where"]["high"] = "n2"

    def taken(story: Story) -> None:
        elsewhere(story)
        story["order"]["other"] = True

    before, between, after = 143.0, 147.0, 200.0
    for change, finding in (
        (roomy, "pod default/low: was still there when its beneficiary was bound"),
        (taken, "pod default/low: evicted for high, which is on n2"),
    ):
        assert played(change, [between]) == []
        assert played(change, [before, after]) == played(change) == [finding]
    # Nobody took the place.
    assert played(elsewhere, [between]) == ["pod default/low: evicted for high, which is on n2"]


@pytest.mark.parametrize(
    ("told", "is_right"),
    [
        ([], False),
        ([("nomination of node n1 withdrawn: n2 has room", 1)], True),
        ([("nomination of node n3 withdrawn: n2 has room", 1)], False),
        (
            [("nomination of node n1 withdrawn: n3 has room", 1), ("nomination of node n3 withdrawn: n2 has room", 2)],
            True,
        ),
        (
            [("nomination of node n3 withdrawn: n4 has room", 1), ("nomination of node n4 withdrawn: n2 has room", 2)],
            False,
        ),
        # The first note was replaced before it could be written.
        ([("nomination of node n3 withdrawn: n2 has room", 2)], True),
        (
            [("nomination of node n3 withdrawn: n4 has room", 1), ("nomination of node n4 withdrawn: n2 has room", 3)],
            True,
        ),
    ],
)
def test_a_place_may_be_given_up_if_that_is_told(told: list[tuple[str, int]], is_right: bool) -> None:
    def change(story: Story) -> None:
        story["where"]["high"] = "n2"
        story["places"]["told"] = told

    assert played(change) == ([] if is_right else ["pod default/low: evicted for high, which is on n2"])


def test_an_eviction_that_failed_may_have_been_carried_out() -> None:
    """An event may tell of it."""

    def failed(code: int) -> Callable[[Story], None]:
        return changed("event", "regarding", to=BESIDE | {"code": code})

    assert any("of default/beside, which we did not evict" in one for one in played(failed(429)))
    assert not any("which we did not evict" in one for one in played(failed(500)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("250m", Fraction(1, 4)),
        ("1Gi", 2**30),
        ("1e3", 1000),
        ("1E", 10**18),
        ("1.5k", 1500),
        ("5n", Fraction(5, 10**9)),
    ],
)
def test_quantities(text: str, expected: Fraction) -> None:
    assert judging.number(text) == expected


def test_effective_requests() -> None:
    def asking(cpu: str, **more: str) -> Json:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    one = pod("p", "100m", "a")
    one["spec"] |= {
        "initContainers": [asking("500m", restartPolicy="Always"), asking("1")],
        "overhead": {"cpu": "250m"},
    }
    assert judging.requests(one) == {"cpu": Fraction(7, 4), "pods": 1}
    one["spec"]["resources"] = {"requests": {"cpu": "3"}}
    assert judging.requests(one)["cpu"] == Fraction(13, 4)
