"""Pods told to an engine by hand: what nobody has is forgotten, who has ended is said to have."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.ledger.checkpoint import VERSION
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import GATED, HELD, UNSCHEDULABLE, FedPod, FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.observe.dashboard import PodHistory, PodStory, text_of
from slacktide.kube.resources.objects import (
    AVAILABILITY,
    CSI_NODE,
    DEPLOYMENT,
    POD,
    Availability,
    Identity,
    ServiceClass,
    ServiceClassSpec,
)
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": True}


class Heard(FeedListener):
    """Writes down what a feed says."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def work(self) -> None:
        self.said.append(("work", ""))

    def waits(self, pod: FedPod) -> None:
        self.said.append(("waits", pod.problem))

    def rival(self, pod: FedPod) -> None:
        self.said.append(("rival", pod.uid))

    def finished(self, key: str) -> None:
        self.said.append(("finished", key))


class Scene:
    """A mirror with one node of four cores and the class gold, and a feed with a new engine that follows it."""

    def __init__(self) -> None:
        config = load_live()
        self.operations: list[Operation] = []
        self.heard = Heard()
        self.mirror = ClusterMirror(config, lambda: NOW)
        self.engine = Engine(config, self.operations.append)
        self.feed = LiveFeed(self.mirror, self.engine, self.heard, lambda: NOW, lambda: 0.0)
        self.mirror.follow(self.feed)
        self.mirror.on_class_update(ServiceClass(Metadata("gold"), ServiceClassSpec(0.999, 1, namespaces=("*",))))
        self.on_node_update("a")

    def on_node_update(self, name: str, managed: bool = True) -> None:
        labels = {"node-restriction.kubernetes.io/slacktide": "true"} if managed else {}
        self.mirror.on_node_update(
            made_objects.node(name, labels=labels, allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"})
        )

    def see_owner(self, replicas: int) -> None:
        body = {"metadata": {"name": "web", "namespace": "default", "uid": "web"}, "spec": {"replicas": replicas}}
        self.mirror.on_controller_update(made_objects.decoded(DEPLOYMENT, body), "apps/v1", "Deployment", replicas)

    def see(
        self,
        name: str,
        node: str = "",
        cpu: str = "1",
        phase: str = "",
        service: str = "gold",
        scheduler: str = "slacktide",
        **spec: Any,
    ) -> None:
        labels = {"slacktide.io/class": service}
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels, "ownerReferences": [OWNER]}
        body: dict[str, Any] = {
            "metadata": metadata,
            "spec": {"schedulerName": scheduler, "nodeName": node, "containers": [made_objects.container(cpu=cpu)]}
            | spec,
            "status": {"phase": phase},
        }
        self.mirror.on_pod_update(made_objects.decoded(POD, body))

    def drop(self, name: str) -> None:
        self.mirror.on_pod_delete(Identity("default", name, name, ""), None)

    def names(self) -> list[str]:
        """Operations since this was last asked."""
        found = [one.method for one in self.operations]
        self.operations.clear()
        return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("node", ["", "a"])
def test_specs_of_pods_whose_owner_is_not_known_yet(scene: Scene, node: str) -> None:
    feed, engine = scene.feed, scene.engine
    scene.see("p", node)
    assert len(feed.specs) == 0
    assert (engine.room("a")["cpu"] == 3000) == bool(node)  # it takes its room all the same
    scene.see_owner(2)
    scene.see("q", node)
    assert len(feed.specs) == 1  # they share it
    assert len(engine.pods) == 2
    scene.see("q", node, cpu="2")
    assert len(feed.specs) == 2
    scene.drop("p")
    assert len(feed.specs) == 1
    scene.drop("q")
    assert len(feed.specs) == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_explained_as_such(scene: Scene, phase: str) -> None:
    """It may stay listed for long, as a Job's does."""
    scene.see_owner(1)
    stories = PodStory(scene.feed, PodHistory(lambda _uid: None), lambda: NOW)
    scene.see("p", "a")
    running = stories.document("default", "p")
    assert running is not None
    assert "is starting on a" in text_of(running)
    scene.see("p", "a", phase=phase)
    over = stories.document("default", "p")
    assert over is not None
    assert over["phase"] == phase
    assert text_of(over).splitlines()[:2] == ["Pod default/p", f"  has ended ({phase}) on a"]


def test_operations_of_a_pod_from_its_arrival_to_its_end(scene: Scene) -> None:
    scene.see_owner(1)
    scene.names()
    scene.see("p")
    assert scene.names() == ["spec", "controller", "desired", "arrive", "wake"]
    scene.see("p")
    assert scene.names() == []  # nothing changed
    scene.see("p", "a")
    assert scene.names() == ["bound_elsewhere"]
    scene.drop("p")
    assert scene.names() == ["gone", "spec_gone"]


def test_a_pod_that_no_host_can_help_waits_aside_until_its_class_is_there(scene: Scene) -> None:
    scene.see_owner(1)
    scene.see("p", service="silver")
    assert scene.feed.pods["p"].queue == UNSCHEDULABLE
    assert scene.heard.said[-1] == ("waits", "service class 'silver': does not exist")
    assert scene.engine.pods == {}
    scene.mirror.on_class_update(ServiceClass(Metadata("silver"), ServiceClassSpec(0.9, 2, namespaces=("*",))))
    assert types.STATES[scene.engine.pods["p"].state] == "waiting"
    assert scene.feed.pods["p"].problem == ""


def test_a_gated_pod_is_not_told(scene: Scene) -> None:
    scene.see_owner(1)
    scene.see("p", schedulingGates=[{"name": "later"}])
    assert (scene.feed.pods["p"].queue, scene.engine.pods) == (GATED, {})
    scene.see("p")
    assert list(scene.engine.pods) == ["p"]


def test_the_replacement_of_a_preempted_pod_waits_until_that_is_gone(scene: Scene) -> None:
    scene.see_owner(1)
    scene.see("p", "a")
    scene.feed.succession.told(scene.engine.pods["p"].key, "p")
    scene.see("q")
    assert (scene.feed.pods["q"].problem, list(scene.engine.pods)) == (HELD, ["p"])
    scene.drop("p")
    assert list(scene.engine.pods) == ["q"]


def test_so_it_does_where_its_binding_was_not_seen_as_yet(scene: Scene) -> None:
    """A watch that lags has not told of its node; that node is not lost."""
    scene.see_owner(1)
    scene.see("p")
    assert [one.uid for one in scene.engine.run(NOW).decisions] == ["p"]
    scene.feed.succession.told(scene.engine.pods["p"].key, "p")
    scene.see("q")
    assert (scene.feed.pods["q"].problem, list(scene.engine.pods)) == (HELD, ["p"])


def test_one_on_a_lost_node_leaves_what_it_asked_for_to_its_replacement(scene: Scene) -> None:
    """It was the last that asked for this, and counts no more just when its replacement comes."""
    scene.see_owner(1)
    scene.see("p", "a")
    scene.feed.succession.told(scene.engine.pods["p"].key, "p")
    scene.mirror.on_node_delete("a")
    scene.see("q")
    assert list(scene.engine.pods) == ["q"]
    assert len(scene.feed.specs) == 1


def test_pods_of_others_take_room_and_are_rivals_only_on_nodes_of_ours(scene: Scene) -> None:
    scene.on_node_update("theirs", managed=False)
    scene.see("s", "a", scheduler="default-scheduler")
    scene.see("t", "theirs", scheduler="default-scheduler")
    assert scene.engine.room("a")["cpu"] == 3000
    assert [one for one in scene.heard.said if one[0] == "rival"] == [("rival", "s")]
    scene.on_node_update("theirs")
    assert [one for one in scene.heard.said if one[0] == "rival"] == [("rival", "s")]  # its room was counted before
    scene.drop("s")
    assert scene.engine.room("a")["cpu"] == 4000


@pytest.mark.parametrize("why", ["no owner", "no class", "replaced"])
def test_pods_without_a_ledger_take_room_on_a_node_that_comes_back(scene: Scene, why: str) -> None:
    """Its name is another machine's now, and the API server counts them there until they are gone."""
    scene.mirror.on_node_delete("a")
    if why != "no owner":
        scene.see_owner(1)
    scene.see("p", "a", service="nobody's" if why == "no class" else "gold")
    if why == "replaced":
        scene.feed._replace(scene.feed.pods["p"])
    assert not scene.feed.pods["p"].key
    scene.on_node_update("a")
    assert scene.engine.room("a")["cpu"] == 3000
    scene.drop("p")
    assert scene.engine.room("a")["cpu"] == 4000


def test_a_controller_goes_with_its_last_pod(scene: Scene) -> None:
    scene.see_owner(1)
    scene.see("p", "a")
    key = scene.engine.pods["p"].key
    scene.mirror.on_controller_delete("web")
    assert key in scene.engine.controllers
    scene.drop("p")
    assert scene.engine.controllers == {}
    assert scene.heard.said[-2:] == [("finished", key), ("work", "")]


def test_a_feed_that_begins_later_knows_the_same(scene: Scene) -> None:
    """What the mirror has seen before is told at once, and what comes afterwards as it comes."""
    scene.see_owner(2)
    scene.see("p", "a")
    scene.see("q")
    scene.see("s", "a", scheduler="default-scheduler")
    engine = Engine(load_live())
    later = LiveFeed(scene.mirror, engine, FeedListener(), lambda: NOW, lambda: 0.0)
    take_over(later, {}, lambda _decision, _leaving: None)
    scene.mirror.follow(later)
    scene.see("r")
    found = [
        {uid: (types.STATES[one.state], one.host, one.key) for uid, one in each.pods.items()}
        for each in (scene.engine, engine)
    ]
    assert found[0] == found[1]
    assert [each.room("a")["cpu"] for each in (scene.engine, engine)] == [2000, 2000]


# -- ledgers of a later release ----------------------------------------------------------------------------------------


def ledger_of_web(**books: Any) -> Availability:
    """That of the Deployment of a scene, as :func:`.checkpoint_export.export` wrote it but for these."""
    former = Scene()
    former.see_owner(1)
    former.see("p", "a")
    key = former.engine.pods["p"].key
    owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web"}]
    metadata = {"name": "deployment-web", "namespace": "default", "ownerReferences": owners}
    status = {"class": "gold", "accumulators": export(former.engine, key, NOW - 1000.0) | books}
    return made_objects.decoded(AVAILABILITY, {"metadata": metadata, "status": status})


def test_a_ledger_of_a_later_release_is_left_alone(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.see_owner(1)
    scene.see("p", "a")
    later = LiveFeed(scene.mirror, Engine(load_live()), FeedListener(), lambda: NOW, lambda: 0.0)
    take_over(later, {"web": ledger_of_web(version=VERSION + 1, records=7)}, lambda _decision, _leaving: None)
    (key,) = later.engine.controllers
    assert later.controllers.left_alone == {key}
    assert later.engine.pods["p"].host == "a", "its pods are accounted for all the same"
    (said,) = [one.getMessage() for one in caplog.records]
    assert "ledger default/deployment-web is left alone" in said
    assert f"version: found {VERSION + 1}, expected at most {VERSION}" in said
    scene.mirror.follow(later)
    scene.mirror.on_controller_delete("web")
    scene.drop("p")
    assert later.controllers.left_alone == set(), "it is no more"


@pytest.mark.parametrize("version", [VERSION, "new", None])
def test_others_are_gone_on_from_or_begun_anew(scene: Scene, version: object) -> None:
    scene.see_owner(1)
    scene.see("p", "a")
    later = LiveFeed(scene.mirror, Engine(load_live()), FeedListener(), lambda: NOW, lambda: 0.0)
    take_over(later, {"web": ledger_of_web(version=version)}, lambda _decision, _leaving: None)
    assert later.controllers.left_alone == set()


def test_attached_volumes_are_room_like_any_other(scene: Scene) -> None:
    def using(claim: str) -> list[dict[str, Any]]:
        return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]

    volumes = scene.mirror.volumes
    for name in ("c", "d"):
        volumes.on_claim_update(made_objects.claim(name, f"disk-{name}"))
        volumes.on_volume_update(made_objects.volume(f"disk-{name}", csi={"driver": "disk", "volumeHandle": name}))
    scene.see_owner(3)
    scene.see("p", "a", volumes=using("c"))
    drivers = [{"name": "disk", "allocatable": {"count": 1}}]
    volumes.on_csi_node_update(
        made_objects.decoded(CSI_NODE, {"metadata": {"name": "a"}, "spec": {"drivers": drivers}})
    )
    assert scene.engine.room("a")["attachable-volumes-csi-disk"] == 0
    scene.see("q", volumes=using("d"))
    scene.see("r")
    assert [one.uid for one in scene.engine.run(NOW).decisions] == ["r"]
    scene.see("s", "a", scheduler="other", volumes=using("c"))  # the volume is attached once for both
    scene.drop("p")
    assert scene.engine.room("a")["attachable-volumes-csi-disk"] == 0
    scene.drop("s")
    assert [one.uid for one in scene.engine.run(NOW).decisions] == ["q"]


def test_more_pods_on_nodes_than_may_be_there_by_their_own_rule() -> None:
    """Somebody put both on the one node, whatever they ask for: nobody looks at them again and again."""
    scene = Scene()
    scene.see_owner(3)
    term = {
        "topologyKey": "node-restriction.kubernetes.io/slacktide",
        "labelSelector": {"matchLabels": {"slacktide.io/class": "gold"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("one", "two"):
        scene.see(name, "a", affinity=apart)
    scene.see("three", affinity=apart)
    assert scene.feed.pods["three"].queue == UNSCHEDULABLE
    scene.drop("one")
    scene.drop("two")
    assert [one.uid for one in scene.engine.run(NOW).decisions] == ["three"]
