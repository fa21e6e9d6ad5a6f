"""The model of the API server on which the live scheduler is simulated answers as a real one, and tells of the same."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from cluster.labtools import new_namespace, remove_namespace, until
from simulated.api_model import ApiModel
from simulated.chance import Chance
from simulated.controllers import Disruption
from simulated.loop import EPOCH, WorldLoop
from simulated.resources import OURS, Json
from simulated.scripts import JSON, MERGE, PODS, Carry, Player, Step, essential, of_model, script
from simulated.store import Store
from slacktide.lab import ControlPlane

SCRIPTS = 40
AT_ONCE = 8
Told = dict[str, list[tuple[str, str, Any]]]
"""Of each kind the events, as their type, the namespace and the object."""
FOLLOWED_SECONDS = 1800
OK = 200
WATCHED = {
    "pods": "/api/v1/pods",
    "leases": "/apis/coordination.k8s.io/v1/leases",
    "availabilities": f"/apis/{OURS}/availabilities",
}
BUDGETED = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")


class Real:
    """A lab's API server."""

    def __init__(self, lab: ControlPlane) -> None:
        self._parts, self._token = urlsplit(lab.url), lab.token
        self._trust = ssl.create_default_context(cafile=str(lab.ca_file))

    def send(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, bytes]:
        host, port = self._parts.hostname or "", self._parts.port or 443
        connection = http.client.HTTPSConnection(host, port, timeout=90, context=self._trust)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "Accept": JSON}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def carry(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, str, Json]:
        code, data = self.send(method, path, body, content_type)
        found = json.loads(data) if data[:1] == b"{" else {}
        return code, found.get("reason", "") if found.get("status") == "Failure" else "", found

    def follow(self, path: str, version: str) -> list[tuple[str, Json]]:
        """What a watch tells of what happens from now on; the list grows."""
        told: list[tuple[str, Json]] = []
        host, port = self._parts.hostname or "", self._parts.port or 443

        def listen() -> None:
            connection = http.client.HTTPSConnection(host, port, timeout=FOLLOWED_SECONDS, context=self._trust)
            asked = f"{path}?watch=1&resourceVersion={version}&timeoutSeconds={FOLLOWED_SECONDS}"
            with closing(connection), suppress(OSError):  # the server ends before
                connection.request("GET", asked, None, {"Authorization": f"Bearer {self._token}", "Accept": JSON})
                for line in connection.getresponse():
                    found = json.loads(line)
                    told.append((found["type"], found["object"]))

        threading.Thread(target=listen, daemon=True).start()
        return told


def has_told(told: list[tuple[str, Json]], counts: Counter[str]) -> bool:
    """Whether there is so much at least of each namespace."""
    return Counter(one["metadata"].get("namespace") for _, one in tuple(told)) >= counts


class Model:
    """The model, and its disruption controller, which is asked to look after each step."""

    def __init__(self) -> None:
        self.store = Store(lambda: EPOCH + 1.0)
        self.api = ApiModel(self.store)
        self.disruption = Disruption(self.api, Chance(0))
        self.carry: Carry = of_model(self.api)

    def settle(self) -> None:
        for key in tuple(self.store.objects["poddisruptionbudgets"]):
            self.disruption.sync(key)


def budgets(carry: Carry, namespace: str) -> Json:
    """By name what each allows, and why; None for one that its controller has not looked at."""
    _, _, found = carry("GET", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", None, JSON)
    return {
        one["metadata"]["name"]: [one["status"].get(name, 0) for name in BUDGETED]
        if one["status"].get("observedGeneration") == one["metadata"]["generation"] else None
        for one in found["items"]
    }  # fmt: skip


def agrees(real: Real, namespace: str, wanted: Json) -> bool:
    return budgets(real.carry, namespace) == wanted


def has_account(real: Real, namespace: str) -> bool:
    return real.carry("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default", None, JSON)[0] == OK


def listed(player: Player, carry: Carry, namespace: str) -> None:
    """Learn the versions that a server has given out by now."""
    for plural in ("pods", "leases"):
        root = "/api/v1" if plural == "pods" else "/apis/coordination.k8s.io/v1"
        player.note(namespace, plural, carry("GET", f"{root}/namespaces/{namespace}/{plural}", None, JSON)[2])


def test_model_and_real_server_answer_alike_and_tell_of_the_same(lab: ControlPlane) -> None:
    real = Real(lab)
    until(lambda: all(real.carry("GET", path, None, JSON)[0] == OK for path in WATCHED.values()))
    versions = {
        name: real.carry("GET", path, None, JSON)[2]["metadata"]["resourceVersion"] for name, path in WATCHED.items()
    }
    # From the beginning on: on a busy machine the server does not know at the end any more what happened first.
    told_by_real = {name: real.follow(path, versions[name]) for name, path in WATCHED.items()}
    namespaces = [new_namespace(lab.api) for _ in range(SCRIPTS)]
    for name in namespaces:  # its account is made by a controller, without which no pod is taken
        until(partial(has_account, real, name))

    def play(seed: int) -> tuple[str, Told]:
        async def both() -> tuple[str, Told]:
            return played(real, namespaces[seed], seed)

        with asyncio.Runner(loop_factory=WorldLoop) as runner:
            return runner.run(both())

    with ThreadPoolExecutor(AT_ONCE) as threads:
        results = list(threads.map(play, range(SCRIPTS)))
    different = [one for one, _ in results if one]
    told = {name: [one for _, several in results for one in several[name]] for name in WATCHED}
    for name, events in told_by_real.items():
        counts = Counter(one[1] for one in told[name] if one[1] in namespaces)
        until(partial(has_told, events, counts), f"the server tells of {name}")
    for name in namespaces:
        cleared(real, name)
        remove_namespace(lab.api, name)
    assert not different, "\n".join(different)
    for name, events in told_by_real.items():
        seen = [(kind, one["metadata"].get("namespace"), essential(one)) for kind, one in tuple(events)]
        for namespace in namespaces:
            ours, theirs = ([one for one in several if one[1] == namespace] for several in (told[name], seen))
            # After the script the control plane removes pods whose node is not there.
            assert ours == theirs[: len(ours)], f"{name} of script {namespaces.index(namespace)}"


def played(real: Real, namespace: str, seed: int) -> tuple[str, Told]:
    """A script on both: where they differ, and what the model tells of."""
    model = Model()
    model.carry("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}, JSON)
    steps = script(seed, namespace)
    difference = "".join(
        f"script {seed}, step {number}: {steps[number]}\n  {difference}"
        for number, difference in compared(real, model, namespace, steps)
    )
    history = {name: model.store.history[name] for name in WATCHED}
    return difference, {
        name: [(one.type, one.key[0], essential(one.body)) for one in several] for name, several in history.items()
    }


def cleared(real: Real, namespace: str) -> None:
    """No pod waits for a finalizer, or for a kubelet that it does not have."""
    for name in PODS:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        real.send("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        real.send("DELETE", path, {"gracePeriodSeconds": 0}, JSON)


def compared(real: Real, model: Model, namespace: str, steps: list[Step]) -> list[tuple[int, str]]:
    """The first step after which they differ, and how; none where they never do."""
    players = {"real": Player(real.carry), "model": Player(model.carry)}
    for number, step in enumerate(steps):
        for name, player in players.items():
            listed(player, real.carry if name == "real" else model.carry, namespace)
        theirs, ours = players["real"].play(namespace, step), players["model"].play(namespace, step)
        if theirs != ours:
            return [(number, f"real  {theirs}\n  model {ours}")]
        model.settle()
        wanted = budgets(model.carry, namespace)
        if len(wanted) > 1:
            continue  # of several that select a pod, its controller looks at one of them when the pod goes
        try:
            until(partial(agrees, real, namespace, wanted), "budgets", 10.0)
        except AssertionError:
            return [(number, f"budgets: real {budgets(real.carry, namespace)}, model {wanted}")]
    return []
