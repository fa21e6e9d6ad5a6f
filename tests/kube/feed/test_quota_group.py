"""Claims under quotas, one change at a time, against the same worked out from the beginning."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.quota_group import Claim, Group, Line, QueuePosition
from slacktide.kube.translate.disruption_budgets import Quota
from support.calls import calls_of

Row = dict[str, Any]


class Twin:
    """Pods with what they claim, and who gets it: slowly, one after the other."""

    def __init__(self, limits: list[Quota]) -> None:
        self.limits, self.rows = limits, dict[str, Row]()

    def refused(self) -> set[str]:
        ranks: dict[str, tuple[bool, float, str]] = {}
        for one in self.rows.values():
            rank = (not one["settled"], one["came"], one["workload"])
            ranks[one["workload"]] = min(rank, ranks.get(one["workload"], rank))
        number = {name: place for place, name in enumerate(sorted(ranks, key=ranks.__getitem__))}
        found, cpu, memory = set(), 0, 0
        in_order = sorted(self.rows.items(), key=lambda one: (not one[1]["settled"], one[1]["created"], one[0]))
        for uid, one in in_order:
            fits = all(
                number[one["workload"]] < (math.inf if quota.workloads is None else quota.workloads)
                and cpu + one["amounts"][0] <= (math.inf if quota.cpu is None else quota.cpu)
                and memory + one["amounts"][1] <= (math.inf if quota.memory is None else quota.memory)
                for quota in self.limits
            )
            if one["settled"] or fits:
                cpu, memory = cpu + one["amounts"][0], memory + one["amounts"][1]
            else:
                found.add(uid)
        return found


class Scene:
    """The same to both."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.limits = self.quotas()
        self.twin, self.group = Twin(self.limits), Group(self.limits, self._settled)

    def quotas(self) -> list[Quota]:
        def some(most: int) -> int | None:
            return self.chance.choice((None, self.chance.randrange(most)))

        return [Quota(f"q{i}", some(30), some(30), some(6)) for i in range(self.chance.randint(1, 2))]

    def _settled(self, pod: FedPod) -> bool:
        return bool(self.twin.rows[cast(Any, pod).name]["settled"])

    def claim(self, uid: str) -> Claim:
        one = self.twin.rows[uid]
        node = "node" if one["settled"] == "bound" else ""
        pod = SimpleNamespace(name=uid, pod=SimpleNamespace(spec=SimpleNamespace(node_name=node)))
        place, settled = QueuePosition(one["created"], uid), bool(one["settled"])
        return Claim(cast(FedPod, pod), one["workload"], one["came"], one["amounts"], place, settled)

    def step(self, number: int) -> Iterable[str]:
        """Change something; who is said to be another than before."""
        rows, chance, group = self.twin.rows, self.chance, self.group
        waiting = sorted(uid for uid in rows if not rows[uid]["settled"] and uid not in group.refused)
        match chance.choice(("new", "new", "new", "placed", "bound", "given up", "gone", "resized", "limits")):
            case "new":
                uid, settled = f"u{number}", chance.choice(("", "", "", "bound"))
                amounts = chance.randint(0, 9), chance.randint(0, 9)
                workload = f"w{chance.randrange(8)}"
                rows[uid] = {"created": float(chance.randrange(40)), "came": float(chance.randrange(5)),
                             "workload": workload, "amounts": amounts, "settled": settled}  # fmt: skip
                group.join(self.claim(uid))
            case "placed" if waiting:  # which nobody is told
                rows[chance.choice(waiting)]["settled"] = "placed"
                return ()
            case "bound" if waiting:
                rows[uid := chance.choice(waiting)]["settled"] = "bound"
                cast(Any, group.claims[uid].pod).pod.spec.node_name = "node"
                group.settle(uid, True)
            case "given up" if placed := sorted(uid for uid in rows if rows[uid]["settled"] == "placed"):
                rows[uid := chance.choice(placed)]["settled"] = ""
                group.settle(uid, False)
            case "gone" if rows:
                group.leave(uid := chance.choice(sorted(rows)))
                del rows[uid]
            case "resized" if rows:
                rows[uid := chance.choice(sorted(rows))]["amounts"] = chance.randint(0, 9), chance.randint(0, 9)
                group.leave(uid)
                group.join(self.claim(uid))
            case "limits" if chance.random() < 0.3:
                self.twin.limits = self.limits = self.quotas()
                return group.rebuild(list(group.claims.values()), self.limits)
        return group.decide()


@pytest.mark.parametrize("seed", range(60))
def test_each_change_leads_to_what_it_would_be_from_the_beginning(seed: int) -> None:
    scene, before, seen = Scene(seed), set[str](), 0
    for number in range(150):
        group, rows = scene.group, scene.twin.rows
        known = set(rows)
        changed = set(scene.step(number))
        refused = scene.twin.refused()
        assert set(group.refused) == refused, number
        both = known & rows.keys()
        assert changed & both == (before ^ refused) & both, number
        for uid in rows:
            assert bool(group.reason(uid)) == (uid in refused), uid
        accepted = [one for uid, one in rows.items() if uid not in refused]
        cpu, memory = (sum(one["amounts"][i] for one in accepted) for i in (0, 1))
        assert group.used[:2] == (cpu, memory)
        by_workload = {one["workload"] for uid, one in rows.items() if uid in refused}
        for name in {one["workload"] for one in rows.values()}:
            found = group.beyond(name)
            assert (found is not None) == (name in by_workload)
            assert found is None or found[1] == sum(rows[uid]["workload"] == name for uid in refused)
        before, seen = refused, seen + len(refused)
    assert seen > 30


def test_a_line_that_is_filled_is_as_one_by_one() -> None:
    chance = random.Random(3)
    drawn = [
        (QueuePosition(chance.randrange(9), f"{i}"), (chance.randrange(5), chance.randrange(5))) for i in range(400)
    ]

    def claims() -> list[Claim]:
        return [Claim(cast(FedPod, None), "w", 0.0, drawn[i][1], drawn[i][0], barred=i % 7 == 0) for i in range(400)]

    filled, grown = Line((90, 70)), Line((90, 70))
    filled.fill(claims())
    for claim in claims():
        grown.insert(claim)
        while (wrong := grown.first_wrong()) is not None:
            grown.put(wrong, taken=not wrong.taken)
    assert filled.first_wrong() is None
    assert [(one.position, one.taken) for one in filled] == [(one.position, one.taken) for one in grown]
    assert filled.taken == grown.taken


def test_ten_thousand_that_are_heard_of_in_the_worst_order_take_few_calls_each() -> None:
    """Each comes before all others, and takes the place of one: a hundredth of what deciding on all would cost."""
    group = Group([Quota("q", cpu=5_000)], lambda _pod: False)
    pod = cast(FedPod, SimpleNamespace(pod=SimpleNamespace(spec=SimpleNamespace(node_name=""))))
    changed = []

    def join_all() -> None:
        for number in range(10_000):
            group.join(Claim(pod, "w", 0.0, (1, 1), QueuePosition(-float(number), f"u{number}")))
            changed.extend(group.decide())

    assert calls_of(join_all) < 350 * 10_000
    assert len(group.refused) == 5_000
    assert len(changed) == 5_000
