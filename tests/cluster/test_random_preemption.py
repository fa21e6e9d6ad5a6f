"""Random full clusters: whom kube-scheduler could preempt for a pod, and whom we do.

kube-scheduler is the judge (:mod:`cluster.kube_judge`); no pod names a class, so that priorities decide. ``SCENES=300``
plays so many.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from cluster.kube_judge import Judge, Verdict
from cluster.made_scenes import GATES, Listed, Ours, control_plane, create, name_of
from slacktide.engine.core.types import Decision
from slacktide.lab import Binaries
from support.scenes import SCENE, Dice

SCENES = int(os.environ.get("SCENES", "25"))
FIRST = int(os.environ.get("FIRST_SCENE", "1"))
PRIORITIES = {f"p{value}": {"value": value} for value in (0, 10, 20, 30)}


def difference(theirs: Verdict, ours: Decision | None, names: dict[str, str]) -> str:
    """What kube-scheduler's candidates and our decision have not in common; empty where all is well."""
    said = {node: sorted(names[uid] for uid in victims) for node, victims in theirs.victims.items()}
    if ours is None:
        return f"we place it nowhere, kube-scheduler would on {said}" if said else ""
    victims = sorted(names[one.uid] for one in ours.victims)
    if ours.host not in said:
        return f"we place it on {ours.host} for {victims}, kube-scheduler would on {said}"
    return "" if victims == said[ours.host] else f"on {ours.host} we preempt {victims}, kube-scheduler {said}"


def test_we_preempt_where_kube_scheduler_would(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> None:
    scenes = [Dice(seed).full(list(PRIORITIES)) for seed in range(FIRST, FIRST + SCENES)]
    with control_plane(binaries, tmp_path_factory.mktemp("scenes") / "plane") as plane:
        waiting = create(plane, scenes, PRIORITIES)
        with Judge(plane, binaries, GATES) as judge:
            theirs = judge.verdicts(waiting)
        listed = Listed(plane)
    names, differences, counts = listed.pod_names(), list[str](), Counter[str]()
    for scene in scenes:
        for one in waiting:
            if one["spec"]["nodeSelector"][SCENE] != scene.name:
                continue
            verdict = theirs[one["metadata"]["uid"]]
            if verdict.allowed:
                continue
            ours, problem = Ours(listed, [scene], ["policy.name=priority"]).decided(one)
            counts.update(pods=1, theirs=bool(verdict.victims), ours=ours is not None)
            said = difference(verdict, ours, names)
            differences += [f"{name_of(one)}: {said} {problem}"] if said else []
    print(f"\n{SCENES} scenes: {dict(counts)}, {len(differences)} differences")  # noqa: T201  # what a long run came to
    assert not differences, "\n".join(differences)
