"""The longest step of the scheduler's event loop for any object that somebody may send.

    PYTHONPATH=src:tests:bench python bench/worst_step.py                       10,000 pods on 1,000 nodes
    PYTHONPATH=src:tests:bench python bench/worst_step.py --pods 100000

Without a server: so many pods run, and then some objects of one shape of ``hostile_namespace.py`` come, one by one, as
lines of a watch; for each shape in a process that is forked for it. After each comes what the scheduler does between
two turns of its event loop: what is behind is looked at one pod at a time, and a pass goes on part by part. Prints
the longest of each kind of step, and how long it took until nothing was left to do after one object, in milliseconds
of processor time; at last all are deleted, one by one.
A step holds up everybody. Garbage is collected before, as a scheduler does when it is idle.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from hostile_namespace import SHAPES, SPACE, Json

from slacktide.engine.core.engine import Engine
from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.mirror.watches import device_subscriptions, subscriptions
from slacktide.kube.resources.objects import NAMESPACE, NODE, POD, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live

T0 = 1_790_000_000.0
TOLD, BEHIND, PART, GONE, ALL = "told of it", "one that is behind", "a part of a pass", "told that it is gone", "in all"
KINDS = TOLD, BEHIND, PART, GONE
REFUSED = ("a claim of 5,000 levels",)
"""What the API server does not take."""


class Loop:
    """A mirror, feed and engine as a leader has them, and how long their steps took."""

    def __init__(self, nodes: int, pods: int) -> None:
        config = load_live()
        self.now = T0
        self.mirror = ClusterMirror(config, lambda: self.now)
        self.mirror.on_class_update(ServiceClass(Metadata("low"), ServiceClassSpec(0.5, 3, namespaces=("*",))))
        self.handlers = dict((*subscriptions(self.mirror), *device_subscriptions(self.mirror)))
        self.lighten = Lightening()
        self.longest: dict[str, float] = {}
        for name in ("default", SPACE):
            self.see(NAMESPACE, {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}})
        for number in range(nodes):
            self.see(NODE, _node(f"n{number}"))
        for number in range(pods):
            self.see(POD, _running(number, f"n{number % nodes}"))
        self.engine = Engine(config)
        self.feed = LiveFeed(self.mirror, self.engine, FeedListener(), lambda: self.now, lambda: 0.0)
        self.feed.catching_up.in_turn = True
        take_over(self.feed, {}, lambda _decision, _leaving: None)
        self.mirror.follow(self.feed)
        self.go_on()

    def see(self, kind: Any, body: Json) -> None:
        """As a watch's line comes: decoded and told."""
        found = kind.decode(json.dumps(body).encode())
        if isinstance(found, Malformed):
            self.handlers[kind].malformed(found)
        else:
            self.handlers[kind].changed(self.lighten(found) if kind is POD else found)

    def step(self, kind: str, began: float) -> None:
        self.longest[kind] = max(self.longest.get(kind, 0.0), 1000 * (time.process_time() - began))

    def go_on(self) -> None:
        """All that a leader does until nothing is left to do, step by step."""
        self.now += 1.0
        while not self.feed.catching_up.is_over:
            began = time.process_time()
            self.feed.catching_up.one()
            self.step(BEHIND, began)
        parts = self.engine.run_in_parts(self.now, lambda: 10_000)
        while True:
            began = time.process_time()
            try:
                next(parts)
            except StopIteration as over:
                self.step(PART, began)
                decisions = over.value.decisions
                break
            self.step(PART, began)
        for one in decisions:
            self.engine.refused(one.uid, self.now)


def _node(name: str) -> Json:
    labels = {"node-restriction.kubernetes.io/slacktide": "true", "kubernetes.io/hostname": name}
    status = {
        "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def _running(number: int, node: str) -> Json:
    """Pods of workloads of ten, each with labels of its own."""
    labels = {"slacktide.io/class": "low", "app": f"a{number // 10}"}
    container = {"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "metadata": {"name": f"r{number}", "namespace": "default", "uid": f"r{number}", "labels": labels},
        "spec": {"schedulerName": "slacktide", "nodeName": node, "containers": [container]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=5, help="so many objects of each shape")
    parser.add_argument("--shape", action="append", help="only this one, by its name")
    options = parser.parse_args()
    print(f"| {options.pods:,} pods on {options.nodes:,} nodes | {' | '.join(KINDS)} | in all |")
    print("|---" * (len(KINDS) + 2) + "|")
    loop = Loop(options.nodes, options.pods)
    gc.disable()
    for name in SHAPES:
        if name not in REFUSED and (not options.shape or name in options.shape):
            found = forked(partial(measured, loop, name, options.each))
            print(f"| {name} | {' | '.join(f'{found.get(one, 0.0):.1f}' for one in (*KINDS, ALL))} |", flush=True)
    return 0


def forked(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What work gives in a process of its own, which begins as this one is."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=lambda: answers.put(work()))
    process.start()
    found: dict[str, float] = answers.get()
    process.join()
    return found


def measured(loop: Loop, name: str, count: int) -> dict[str, float]:
    """The longest steps with some objects of a shape."""
    kind, make = SHAPES[name]
    gc.collect()  # writes to most pages, which are copied by that before anything is measured
    gc.freeze()
    loop.longest.clear()
    objects = []
    for number in range(count):
        body = make()
        own = {"name": f"h{number}", "uid": f"h{number}", "resourceVersion": f"{number}"}
        body["metadata"] |= own | {"namespace": SPACE}
        found = kind.decode(json.dumps(body).encode())
        began = time.process_time()
        loop.handlers[kind].changed(loop.lighten(found) if kind is POD else found)
        loop.step(TOLD, began)
        loop.go_on()
        loop.step(ALL, began)
        objects.append(found)
    for found in objects:
        began = time.process_time()
        loop.handlers[kind].deleted(Identity(SPACE, found.metadata.name, found.metadata.uid, ""), found)
        loop.step(GONE, began)
        loop.go_on()
        loop.step(ALL, began)
    return loop.longest


if __name__ == "__main__":
    sys.exit(main())
