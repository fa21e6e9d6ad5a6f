"""Random clusters: on each node kube-scheduler and we say the same of every pod, and what can be placed we place.

kube-scheduler is the judge (:mod:`cluster.kube_judge`). ``SCENES=300`` plays so many.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from cluster.kube_judge import Judge
from cluster.made_scenes import GATES, Listed, Ours, control_plane, create, name_of
from slacktide.lab import Binaries
from support.scenes import SCENE, Dice

SCENES = int(os.environ.get("SCENES", "25"))
FIRST = int(os.environ.get("FIRST_SCENE", "1"))
NEVER = {"never": {"value": 0, "preemptionPolicy": "Never"}}


def difference(allowed: frozenset[str], fits: frozenset[str], host: str) -> str:
    """What kube-scheduler's nodes, ours, and where we placed the pod have not in common; empty where all is well."""
    if fits != allowed:
        return f"only kube-scheduler {sorted(allowed - fits)}, only we {sorted(fits - allowed)}"
    if (host not in allowed) if host else bool(allowed):
        return f"placed on {host or 'no node'}, kube-scheduler allows {sorted(allowed)}"
    return ""


def test_kube_scheduler_and_we_agree_on_every_node(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scenes = [Dice(seed).drawn() for seed in range(FIRST, FIRST + SCENES)]
    for one in (each for scene in scenes for each in scene.waiting):
        one["spec"]["priorityClassName"] = "never"
    with control_plane(binaries, tmp_path_factory.mktemp("scenes") / "plane") as plane:
        waiting = create(plane, scenes, NEVER)
        with Judge(plane, binaries, GATES) as judge:
            theirs = judge.verdicts(waiting)
        listed = Listed(plane)
    differences, counts = list[str](), Counter[str]()
    for scene in scenes:
        ours = Ours(listed, [scene])
        for one in waiting:
            if one["spec"]["nodeSelector"][SCENE] == scene.name:
                allowed = theirs[one["metadata"]["uid"]].allowed
                fits, host, problem = ours.judged(one)
                counts.update(pods=1, nodes=len(scene.nodes), allowed=len(allowed), placed=int(bool(host)))
                said = difference(allowed, fits, host)
                differences += [f"{name_of(one)}: {said} {problem}"] if said else []
    print(f"\n{SCENES} scenes: {dict(counts)}, {len(differences)} differences")  # noqa: T201  # what a long run came to
    assert not differences, "\n".join(differences)
    assert counts["allowed"] > counts["nodes"] / 10
    assert counts["placed"] < counts["pods"] * 0.95
