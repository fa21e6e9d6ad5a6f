"""Several scheduler names in one process: whose pods are ours, and what each name adds to its pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.kube.client.kinds import Malformed
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import SERVICE
from slacktide.settings import load_live
from support.made_objects import decoded, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POOL = '{"%s": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["%s"]}]}]}}'
SPREAD = '[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]'
PROFILES = (
    '[{"schedulerName": "batch", "addedAffinity": ' + POOL % (REQUIRED, "batch") + '}, '
    '{"schedulerName": "wide", "defaultSpread": ' + SPREAD + "}, "
    '{"schedulerName": "system", "defaultSpread": "system"}]'
)  # fmt: skip


def settings(profiles: str, added: str | None = None) -> Config:
    found = load_live()
    return replace(found, kube=replace(found.kube, profiles=profiles, added_affinity=added))


def mirror() -> ClusterMirror:
    made = ClusterMirror(settings(PROFILES, POOL % (REQUIRED, "general")), lambda: 0.0)
    labels = dict.fromkeys(("kubernetes.io/hostname", "topology.kubernetes.io/zone"), "a")
    made.on_node_update(node("a", labels | {"node-restriction.kubernetes.io/slacktide": "true"}))
    body = {"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": {"app": "web"}}}
    made.on_service_update(decoded(SERVICE, body))
    return made


def test_pods_of_all_names_are_ours_and_get_what_their_name_adds() -> None:
    found = mirror()
    pools = {"slacktide": "general", "batch": "batch", "wide": "", "system": ""}
    rules = {"wide": "spread"}
    for name in (*pools, "default-scheduler"):
        one = pod(name=name, uid=name, namespace="n", labels={"app": "web"}, schedulerName=name)
        found.on_pod_update(one)
        assert found.pods[name].ours == (name in pools)
        if name not in pools:
            continue
        constraints = found.constraints.constraints_of(found.default_spread.applied(one))
        pool = pools[name]
        for label in ("general", "batch", "other"):
            assert constraints.term.holds({"pool": label, "zone": "z"}) == (pool in ("", label)), (name, label)
        assert [rule.kind for rule in constraints.placement.rules] == ([rules[name]] if name in rules else [])
        assert bool(constraints.placement.preferences) == (name == "system")


def test_a_malformed_pod_of_any_name_waits() -> None:
    found = mirror()
    found.on_malformed_pod_update(Malformed("n", "p", "uid", "", "spec: found 1", "batch", ""))
    assert found.pods["uid"].ours


@pytest.mark.parametrize(
    ("profiles", "problem"),
    [
        ("batch", "kube.profiles: found 'batch'"),
        ('[{"name": "batch"}]', "unknown field `name`"),
        ('[{"schedulerName": ""}]', r"kube.profiles\[0\].schedulerName: found ''"),
        ('[{"schedulerName": "slacktide"}]', r"kube.profiles\[0\].schedulerName: found 'slacktide'"),
        ('[{"schedulerName": "a"}, {"schedulerName": "a"}]', r"kube.profiles\[1\].schedulerName: found 'a'"),
        ('[{"schedulerName": "a", "addedAffinity": {"x": 1}}]', r"profiles\[0\].addedAffinity: .*unknown field `x`"),
        ('[{"schedulerName": "a", "defaultSpread": "mine"}]', r"kube.profiles\[0\].defaultSpread: found 'mine'"),
    ],
)  # fmt: skip
def test_profiles_that_are_none_are_refused(profiles: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ClusterMirror(settings(profiles), lambda: 0.0)
