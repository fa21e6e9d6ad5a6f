"""kube-scheduler as a judge: on which nodes a pod could run, by its own filters, and whom it would preempt where, with
nothing ever bound and nobody evicted.

It asks an extender, which is this process, about the nodes that passed all of its filters, and about those on which
preemption would help, and is told that none will do. So its answers are those of the scheduler that runs elsewhere,
about the same objects, and change nothing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from cluster.labtools import HANG_SECONDS, condition, until
from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.processes import Component

NAME = "judge"
"""``schedulerName`` of the pods that are judged."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The nodes that pass all filters; and, by node, whom it would preempt there (UIDs). It asks about these where no
    node passes, and of a pod that may preempt."""

    allowed: frozenset[str] = frozenset()
    victims: dict[str, frozenset[str]] = field(default_factory=dict)


class Judge:
    """A kube-scheduler beside the others of a lab, with this process as its extender."""

    def __init__(self, plane: ControlPlane, binaries: Binaries, gates: str) -> None:
        self.plane = plane
        self._allowed, self._victims = dict[str, frozenset[str]](), dict[str, dict[str, frozenset[str]]]()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, name="extender", daemon=True).start()
        config = plane.directory / "judge.json"
        config.write_text(json.dumps(self._configuration()))
        command = [binaries["kube-scheduler"], f"--config={config}", "--secure-port=0", f"--feature-gates={gates}"]
        self.component: Component = plane.add(NAME, [str(word) for word in command])

    def _configuration(self) -> dict[str, Any]:
        port = self._server.server_address[1]
        extender: dict[str, Any] = {
            "urlPrefix": f"http://127.0.0.1:{port}",
            "filterVerb": "filter",
            "preemptVerb": "preempt",
        }
        extender |= {"nodeCacheCapable": True, "weight": 1, "httpTimeout": "60s"}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.plane.kubeconfig), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
            "profiles": [{"schedulerName": NAME}],
            "extenders": [extender],
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answers = {"/filter": self._filtered, "/preempt": self._preempting}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = {key.lower(): value for key, value in asked.items()}
                answer = json.dumps(answers[self.path](asked["pod"]["metadata"]["uid"], asked)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_words: Any) -> None:
                pass

        return Handler

    def _filtered(self, uid: str, asked: dict[str, Any]) -> dict[str, Any]:
        self._allowed[uid] = frozenset(asked["nodenames"])
        return {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(asked["nodenames"], "judged")}

    def _preempting(self, uid: str, asked: dict[str, Any]) -> dict[str, Any]:
        found = asked["nodenametometavictims"]
        self._victims[uid] = {name: frozenset(one["UID"] for one in on["Pods"]) for name, on in found.items()}
        return {"NodeNameToMetaVictims": {}}

    def verdicts(self, pods: Iterable[dict[str, Any]]) -> dict[str, Verdict]:
        """What it says of each pod, by UID; waits until each was judged."""
        uids = {one["metadata"]["uid"] for one in pods}

        def judged() -> bool:
            time.sleep(len(uids) / 1000)  # a list of many pods keeps the API server from other work
            listed = self.plane.api.get(f"/api/v1/pods?fieldSelector=spec.schedulerName={NAME}")["items"]
            said = {one["metadata"]["uid"] for one in listed if condition(one, "PodScheduled").get("reason")}
            return uids <= said

        until(judged, "kube-scheduler has said of every pod what it thinks", HANG_SECONDS + len(uids))
        return {uid: Verdict(self._allowed.get(uid, frozenset()), self._victims.get(uid, {})) for uid in uids}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
