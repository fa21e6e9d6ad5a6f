"""On random small clusters, placements allow exactly the nodes that Kubernetes' own filters allow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate import pod_constraints
from slacktide.kube.translate.nodes import NodeView, Ownership, view_of
from slacktide.kube.translate.pod_constraints import ConstraintIndex, PodConstraints
from support import filters, made_objects
from support.filters import Object, World
from support.tallies import Scene

_T = TypeVar("_T")
NAMESPACES = ("red", "blue")
KEYS = st.sampled_from(["zone", "rack", "host"])
LABELS = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("xy")})
# The API server lets nobody name a key of matchLabelKeys in the selector as well; so these have one of their own.
OWN_LABELS = st.builds(lambda labels, hash_: labels | {"hash": hash_}, LABELS, st.sampled_from("12"))


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


VALUED = st.tuples(
    st.sampled_from(["app", "tier"]), st.sampled_from(["In", "NotIn"]), st.sets(st.sampled_from("abxy"), min_size=1)
)
BARE: st.SearchStrategy[tuple[str, str, set[str]]] = st.tuples(
    st.sampled_from(["app", "tier"]), st.sampled_from(["Exists", "DoesNotExist"]), st.just(set[str]())
)
REQUIREMENT = st.one_of(VALUED, BARE).map(lambda one: {"key": one[0], "operator": one[1], "values": sorted(one[2])})
SELECTOR = some(matchLabels=LABELS, matchExpressions=st.lists(REQUIREMENT, max_size=2))
TERM = st.builds(
    lambda key, selector, rest: {"topologyKey": key, "labelSelector": selector} | rest,
    KEYS,
    st.none() | SELECTOR,
    some(
        namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=2),
        namespaceSelector=st.sampled_from([{}, {"matchLabels": {"team": "one"}}]),
        matchLabelKeys=st.just(["hash"]),
        mismatchLabelKeys=st.just(["hash"]),
    ),
)
SPREAD = st.builds(
    lambda key, action, skew, selector, rest: {
        "topologyKey": key, "whenUnsatisfiable": action, "maxSkew": skew, "labelSelector": selector,
    } | rest,
    KEYS,
    st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
    st.integers(1, 2),
    st.none() | SELECTOR,
    some(
        minDomains=st.integers(1, 3),
        nodeAffinityPolicy=st.sampled_from(["Honor", "Ignore"]),
        nodeTaintsPolicy=st.sampled_from(["Honor", "Ignore"]),
        matchLabelKeys=st.just(["hash"]),
    ),
)  # fmt: skip
NODE_REQUIREMENT = st.sampled_from(
    [
        {"key": "zone", "operator": "In", "values": ["z1", "z2"]},
        {"key": "zone", "operator": "NotIn", "values": ["z1"]},
        {"key": "rack", "operator": "Exists"},
        {"key": "rack", "operator": "DoesNotExist"},
        {"key": "size", "operator": "Gt", "values": ["3"]},
        {"key": "size", "operator": "Lt", "values": ["3"]},
    ]
)
NODE_TERM = some(
    matchExpressions=st.lists(NODE_REQUIREMENT, max_size=2),
    matchFields=st.sampled_from(["In", "NotIn"]).map(
        lambda operator: [{"key": "metadata.name", "operator": operator, "values": ["n0"]}]
    ),
)
PORT = st.builds(
    lambda port, protocol, address: {"hostPort": port, "protocol": protocol, "hostIP": address},
    st.integers(80, 81),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
)
TOLERATION = some(
    key=st.just("t"),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
    value=st.sampled_from(["", "v", "5"]),
    operator=st.sampled_from(["Equal", "Exists", "Lt", "Gt"]),
).filter(lambda one: "key" in one or one.get("operator") == "Exists")
POD = st.builds(
    lambda namespace, labels, rest: {"namespace": namespace, "labels": labels} | rest,
    st.sampled_from(NAMESPACES),
    OWN_LABELS,
    some(
        affinity=st.lists(TERM, min_size=1, max_size=2),
        antiAffinity=st.lists(TERM, min_size=1, max_size=2),
        spread=st.lists(SPREAD, min_size=1, max_size=2),
        ports=st.lists(PORT, min_size=1, max_size=2),
        tolerations=st.lists(TOLERATION, min_size=1, max_size=2),
        nodeSelector=st.just({"zone": "z1"}),
        nodeAffinity=st.lists(NODE_TERM, min_size=1, max_size=2),
        deleting=st.just(True),
    ),
)
TAINT = st.builds(
    lambda effect, value: {"key": "t", "effect": effect, "value": value},
    st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    st.sampled_from(["", "v", "3", "9"]),
)
NODE = st.builds(
    lambda labels, taints: {"labels": labels, "taints": taints},
    some(
        zone=st.sampled_from(["z1", "z2", "z3"]),
        rack=st.sampled_from(["r1", "r2"]),
        host=st.sampled_from(["h1", "h2", "h3"]),
        size=st.sampled_from(["2", "5", "big"]),
    ),
    st.lists(TAINT, max_size=1),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Object]:
    nodes = [one | {"name": f"n{k}"} for k, one in enumerate(draw(st.lists(NODE, min_size=1, max_size=4)))]
    pods = draw(st.lists(POD, max_size=6))
    places = [draw(st.sampled_from(nodes))["name"] for _ in pods]
    teams = {name: draw(some(team=st.sampled_from(["one", "two"]))) for name in NAMESPACES}
    return World(nodes, list(zip(pods, places, strict=True)), teams), draw(POD)


def as_pod(one: Object, uid: str, on: str = "") -> Pod:
    affinity: dict[str, Any] = {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for name, ours in (("podAffinity", "affinity"), ("podAntiAffinity", "antiAffinity")):
        if ours in one:
            affinity[name] = {required: one[ours]}
    if "nodeAffinity" in one:
        affinity["nodeAffinity"] = {required: {"nodeSelectorTerms": one["nodeAffinity"]}}
    return made_objects.pod(
        name=uid,
        uid=uid,
        namespace=one["namespace"],
        labels=one["labels"],
        deleting=one.get("deleting", False),
        nodeName=on,
        affinity=affinity,
        nodeSelector=one.get("nodeSelector", {}),
        tolerations=one.get("tolerations", []),
        topologySpreadConstraints=one.get("spread", []),
        containers=[{"name": "c", "ports": one.get("ports", [])}],
    )


class Dice:
    """Random worlds whose pods are about one matter; dense, unlike Hypothesis' own."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.random = random.Random(about)

    def maybe(self, chance: float, value: _T, other: _T) -> _T:
        return value if self.random.random() < chance else other

    def labels(self, chance: float = 0.9) -> dict[str, str]:
        choice = self.random.choice
        keys = (("app", "ab"), ("tier", "xy"), ("hash", "12"))
        return {key: choice(values) for key, values in keys if self.random.random() < chance}

    def selector(self) -> Object | None:
        choice = self.random.choice
        kind = self.random.randrange(10)
        if kind == 0:
            return choice([None, {}])
        if kind < 6:
            return {"matchLabels": {"app": choice("ab")}}
        operator = choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values = [choice("xy")] if operator.endswith("In") else []
        return {"matchExpressions": [{"key": choice(["app", "tier"]), "operator": operator, "values": values}]}

    def term(self) -> Object:
        found: Object = {"topologyKey": self.key(), "labelSelector": self.selector()}
        found |= self.maybe(0.2, {"namespaces": [self.random.choice(NAMESPACES)]}, {})
        found |= self.maybe(0.2, {"namespaceSelector": self.random.choice([{}, {"matchLabels": {"team": "one"}}])}, {})
        found |= self.maybe(0.2, {"matchLabelKeys": ["hash"]}, {})
        return found | self.maybe(0.2, {"mismatchLabelKeys": ["hash"]}, {})

    def key(self) -> str:
        return self.random.choice(["zone", "rack", "host"])

    def spread(self) -> Object:
        found = {"topologyKey": self.key(), "maxSkew": self.random.randint(1, 2), "labelSelector": self.selector()}
        found["whenUnsatisfiable"] = self.maybe(0.8, "DoNotSchedule", "ScheduleAnyway")
        found |= self.maybe(0.3, {"minDomains": self.random.randint(1, 3)}, {})
        found |= self.maybe(0.4, {"nodeAffinityPolicy": self.random.choice(["Honor", "Ignore"])}, {})
        found |= self.maybe(0.4, {"nodeTaintsPolicy": self.random.choice(["Honor", "Ignore"])}, {})
        return found | self.maybe(0.2, {"matchLabelKeys": ["hash"]}, {})

    def port(self) -> Object:
        address = self.random.choice(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"])
        return {"hostPort": self.random.randint(80, 83), "protocol": self.maybe(0.8, "TCP", "UDP"), "hostIP": address}

    def node_term(self) -> Object:
        operators = {"In": ["z1"], "NotIn": ["z1"], "Exists": [], "DoesNotExist": []}
        key, operator = self.maybe(0.7, "zone", "rack"), self.random.choice(list(operators))
        expression = {"key": key, "operator": operator, "values": operators[operator]}
        size = {"key": "size", "operator": self.random.choice(["Gt", "Lt"]), "values": ["3"]}
        return self.random.choice([{}, {"matchExpressions": [expression]}, {"matchExpressions": [expression, size]}])

    def pod(self) -> Object:
        pod: Object = {"namespace": self.maybe(0.7, *NAMESPACES), "labels": self.labels()}
        pod |= self.maybe(0.2, {"deleting": True}, {})
        several = range(self.random.randint(1, 2))
        if self.about in ("affinity", "antiAffinity") and self.random.random() < 0.8:
            pod[self.about] = [self.term() for _ in several]
        elif self.about == "spread":
            pod["spread"] = [self.spread() for _ in several]
        elif self.about == "ports":
            pod["ports"] = [self.port() for _ in several]
        if self.about in ("spread", "nodes"):
            pod |= self.maybe(0.4, {"nodeAffinity": [self.node_term() for _ in several]}, {})
            pod |= self.maybe(0.2, {"nodeSelector": {"zone": "z1"}}, {})
            toleration = {"key": "t"} | self.random.choice(
                [{"operator": "Exists"}, {"value": "v"}, {"effect": "NoExecute"}]
            )
            pod |= self.maybe(0.5, {"tolerations": [toleration]}, {})
        return pod

    def world(self) -> World:
        choice = self.random.choice
        nodes: list[Object] = []
        for k in range(self.random.randint(2, 5)):
            labels = {
                "zone": choice(["z1", "z2", "z3"]),
                "rack": choice(["r1", "r2"]),
                "host": f"h{k}",
                "size": choice("25"),
            }
            labels = {key: value for key, value in labels.items() if self.random.random() < 0.9}
            taint = {
                "key": "t",
                "value": choice(["", "v"]),
                "effect": choice(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
            }
            nodes.append({"name": f"n{k}", "labels": labels, "taints": self.maybe(0.3, [taint], [])})
        running = [(self.pod(), str(self.random.choice(nodes)["name"])) for _ in range(self.random.randint(0, 7))]
        return World(nodes, running, {"red": {"team": "one"}, "blue": {"team": choice(["one", "two"])}})


class Caller:
    """PodTerms the book as the live scheduler does: each pod when it comes, others when they are outdated."""

    def __init__(self, namespaces: dict[str, dict[str, str]]) -> None:
        self.book = ConstraintIndex()
        self.pods: dict[str, Pod] = {}
        self.placed: dict[str, PodConstraints] = {}
        for name, labels in namespaces.items():
            self.book.on_namespace_update(name, labels)

    def see(self, nodes: Sequence[NodeView]) -> None:
        """Nodes come one by one; terms over labels that none had before are in force with the first that has them."""
        for node in nodes:
            if self.book.on_node_update(None, node):
                for uid in self.book.outdated():
                    self.placed[uid] = self.book.constraints_of(self.pods[uid])

    def learn(self, pod: Pod) -> None:
        others = set(self.placed)
        changed = self.book.learn(pod)
        self.pods[pod.metadata.uid] = pod
        self.placed[pod.metadata.uid] = self.book.constraints_of(pod)
        outdated = self.book.outdated() if changed else ()  # as the scheduler does: else nobody looks
        assert changed == bool(others & set(outdated)), (pod.metadata.uid, outdated)
        for uid in outdated:
            self.placed[uid] = self.book.constraints_of(self.pods[uid])

    def forget(self, pod: Pod) -> None:
        self.book.forget(pod)
        del self.pods[pod.metadata.uid], self.placed[pod.metadata.uid]


def compared(world: World, pod: Object, gone: list[Object]) -> list[bool]:
    """Which nodes are feasible by Kubernetes' filters, and the same by the placements. ``gone`` came and went."""
    caller = Caller(world.namespaces)
    views = [
        view_of(made_objects.node(node["name"], node["labels"], node["taints"]), Ownership(all_nodes=True))
        for node in world.nodes
    ]
    caller.see(views[:2])
    running = [as_pod(one, f"r{k}", on) for k, (one, on) in enumerate(world.running)]
    passing = [as_pod(one, f"g{k}") for k, one in enumerate(gone)]
    for one in (*passing, *running):
        caller.learn(one)
    caller.see(views[2:])
    for one in passing:
        caller.forget(one)
    new = as_pod(pod | {"deleting": False}, "new")  # nobody schedules a pod that is being deleted
    caller.learn(new)
    hosts = {view.name: view.attributes for view in views}
    scene = Scene(hosts, [(caller.placed[f"r{k}"].placement, on) for k, (_, on) in enumerate(world.running)])
    expected = [filters.feasible(world, pod, node) for node in world.nodes]
    assert [scene.feasible(caller.placed["new"], node["name"]) for node in world.nodes] == expected, world
    return expected


@given(worlds(), st.lists(POD, max_size=2))
@settings(max_examples=50)
def test_who_has_many_labels_or_selects_many_is_placed_as_any(case: tuple[World, Object], gone: list[Object]) -> None:
    """They are not looked up by labels: here nobody is, nor has few."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pod_constraints, "MOST_LABELS", 1)
        patched.setattr(pod_constraints, "MOST_BUCKETS", 0)
        world, pod = case
        compared(world, pod, gone)


@given(worlds(), st.lists(POD, max_size=2))
@settings(max_examples=200)
def test_feasible_nodes_are_those_of_kubernetes(case: tuple[World, Object], gone: list[Object]) -> None:
    world, pod = case
    compared(world, pod, gone)


@pytest.mark.parametrize("about", ["affinity", "antiAffinity", "spread", "ports", "nodes"])
def test_feasible_nodes_are_those_of_kubernetes_for_pods_full_of_rules(about: str) -> None:
    dice = Dice(about)
    found = {False: 0, True: 0}
    for _ in range(500):
        world, pod = dice.world(), dice.pod()
        for feasible in compared(world, pod, [dice.pod()]):
            found[feasible] += 1
    assert min(found.values()) > 100, found  # neither answer is the rule


@given(st.lists(POD, min_size=1, max_size=8), st.permutations(range(8)))
@settings(max_examples=100)
def test_placements_do_not_depend_on_the_order_in_which_pods_came(pods: list[Object], order: list[int]) -> None:
    namespaces = {name: {"team": "one"} for name in NAMESPACES}
    first, second = Caller(namespaces), Caller(namespaces)
    for caller in (first, second):
        caller.see([view_of(made_objects.node("n", {"zone": "z1", "host": "n"}), Ownership(all_nodes=True))])
    made_pods = [as_pod(one, f"p{k}") for k, one in enumerate(pods)]
    for one in made_pods:
        first.learn(one)
    for k in order:
        if k < len(made_pods):
            second.learn(made_pods[k])
    assert first.placed == second.placed


@given(st.lists(POD, min_size=1, max_size=8))
@settings(max_examples=50)
def test_a_book_forgets_everything_when_all_pods_are_gone(pods: list[Object]) -> None:
    caller = Caller({})
    for key in ("zone", "rack", "host"):
        caller.book._domains._keys[key] = 1  # as if a node had them
    made_pods = [as_pod(one, f"p{k}") for k, one in enumerate(pods)]
    for one in made_pods:
        caller.learn(one)
    for one in made_pods:
        caller.forget(one)
    kept = {name: value for name, value in vars(caller.book).items() if isinstance(value, dict) and value}
    assert not kept
    assert not caller.book._groups
