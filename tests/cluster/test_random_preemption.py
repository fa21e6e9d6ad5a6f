"""Random full clusters: whom kube-scheduler would preempt for a pod, and whom we do.

kube-scheduler is the judge (:mod:`cluster.kube_judge`); no pod names a class, so that priorities decide. Where we
preempt and it would not, the victims are deleted, and it is asked again. ``SCENES=300`` plays so many.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from cluster.kube_judge import Judge, Verdict
from cluster.made_scenes import GATES, Listed, Ours, control_plane, create, create_pods, for_the_judge, name_of
from slacktide.engine.core.types import Decision
from slacktide.lab import Binaries, ControlPlane
from support.scenes import SCENE, Dice

Json = dict[str, Any]
SCENES = int(os.environ.get("SCENES", "25"))
FIRST = int(os.environ.get("FIRST_SCENE", "1"))
PRIORITIES = {f"p{value}": {"value": value} for value in (0, 10, 20, 30)}


def difference(theirs: Verdict, ours: Decision | None, pods: dict[str, Json]) -> str:
    """What kube-scheduler's candidates and our decision have not in common; empty where all is well.

    Of victims of equal priority it takes who started last; that is not known of pods without a kubelet.
    """

    def listed(uids: Iterable[str]) -> list[tuple[int, str]]:
        return sorted((pods[uid]["spec"]["priority"], name_of(pods[uid])) for uid in uids)

    said = {node: listed(victims) for node, victims in theirs.victims.items()}
    if ours is None:
        return f"we place it nowhere, kube-scheduler would on {said}" if said else ""
    victims = listed(one.uid for one in ours.victims)
    same = ours.host in said and [priority for priority, _ in victims] == [priority for priority, _ in said[ours.host]]
    return "" if same else f"on {ours.host} we preempt {victims}, kube-scheduler {said}"


def is_near_somebody(body: Json) -> bool:
    """Whether a pod has to be near others. kube-scheduler asks first whether it fits once all that are less important
    are gone, also those near which it has to be."""
    return bool(body["spec"].get("affinity", {}).get("podAffinity"))


def without_victims(plane: ControlPlane, judge: Judge, decided: dict[str, tuple[Json, Decision]]) -> list[str]:
    """Of pods, each of another scene, those that kube-scheduler lets on their node no more than before once their
    victims are deleted."""
    where = {one["metadata"]["uid"]: one["metadata"] for one in plane.api.get("/api/v1/pods")["items"]}
    for victim in (one for _, decision in decided.values() for one in decision.victims):
        metadata = where[victim.uid]
        plane.api.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", 0)
    again = [for_the_judge(body, "-again") for body, _ in decided.values()]
    hosts = {name_of(one): decision.host for one, (_, decision) in zip(again, decided.values(), strict=True)}
    asked = create_pods(plane, again)
    verdicts = judge.verdicts(asked)
    return [name_of(one) for one in asked if hosts[name_of(one)] not in verdicts[one["metadata"]["uid"]].allowed]


def test_we_preempt_where_kube_scheduler_would(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> None:
    scenes = [Dice(seed).full(list(PRIORITIES)) for seed in range(FIRST, FIRST + SCENES)]
    bodies = {name_of(one): one for scene in scenes for one in scene.waiting}
    differences, counts, alone = list[str](), Counter[str](), dict[str, tuple[Json, Decision]]()
    with (
        control_plane(binaries, tmp_path_factory.mktemp("scenes") / "plane") as plane,
        Judge(plane, binaries, GATES) as judge,
    ):
        waiting = create(plane, scenes, PRIORITIES)
        theirs = judge.verdicts(waiting)
        listed = Listed(plane)
        pods = listed.pods()
        for scene in scenes:
            for one in (each for each in waiting if each["spec"]["nodeSelector"][SCENE] == scene.name):
                verdict = theirs[one["metadata"]["uid"]]
                if verdict.allowed:
                    continue
                ours, reason = Ours(listed, [scene], ["policy.name=priority"]).decided(one)
                counts.update(pods=1, theirs=bool(verdict.victims), ours=ours is not None)
                if ours is not None and ours.host not in verdict.victims and is_near_somebody(one):
                    counts["only ours"] += 1
                    alone[scene.name] = bodies[name_of(one)], ours
                    continue
                said = difference(verdict, ours, pods)
                differences += [f"{name_of(one)}: {said} {reason}"] if said else []
        differences += [f"{name}: its victims do not suffice" for name in without_victims(plane, judge, alone)]
    print(f"\n{SCENES} scenes: {dict(counts)}, {len(differences)} differences")  # noqa: T201  # what a long run came to
    assert not differences, "\n".join(differences)
    assert counts["theirs"] > counts["pods"] / 20
