"""More of a class than a namespace's quota allows: the latest wait without a promise, and are told why, whoever leads.

What the API server refuses, and the status of a quota as kubectl shows it: ``cluster/test_entry.py``.
"""

from __future__ import annotations

from cluster.labtools import deployment, pod
from simulated.crowding import HEARD_SECONDS
from simulated.stage import service_class, staged
from simulated.world import NAMESPACE

HALF = {"slacktide.io/class": "half"}


def test_beyond_a_quota_pods_wait_and_are_told_why_and_the_next_leader_says_the_same() -> None:
    said = "service class 'half': PromiseQuota 'half' exceeded: it allows 1 cpu times promise"
    with staged([service_class("half", 0.5, 2, namespaces=[NAMESPACE])]) as place:
        place.nodes(1, cpu="32")
        spec = {"class": "half", "hard": {"cpu": "1", "workloads": 9}}
        place.create("promisequotas", {"metadata": {"name": "half"}, "spec": spec})
        place.wait(HEARD_SECONDS)
        for name in ("first", "second"):
            place.create("pods", pod(name, cpu="1", labels=HALF))
            place.bound(name)
        place.wait(1.0)  # times of creation are whole seconds
        place.create("pods", pod("third", cpu="1", labels=HALF))
        place.waits("third", f"^{said}$")
        assert place.explained("third")["problem"] == said
        # Another leader: the two that run keep their promise, and the third waits.
        place.kill()
        place.until(lambda: place.explained("third").get("problem") == said, "the next leader says the same")
        place.wait(60.0)
        assert [name for name in place.names() if place.node_of(name)] == ["first", "second"]
        assert {one["metadata"]["name"] for one in place.world.store.every("availabilities")} == {
            "pod-first", "pod-second",
        }  # fmt: skip
        place.delete("pods", "first", 0)
        place.bound("third", 1.0)
        # Of a workload that has a ledger, that says so.
        place.delete("pods", "second", 0)
        place.create("deployments", deployment("web", 2, cpu="1", labels=HALF))
        more = "pods without a promise: 1 (PromiseQuota 'half' exceeded: it allows 1 cpu times promise)"
        place.status("deployment-web", lambda one: more in one["message"], "it says how many have none, and why")
