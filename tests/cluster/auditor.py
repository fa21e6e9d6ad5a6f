"""Watches a cluster from a test's beginning to its end and says what was done there that must not be.

It shares no code with the scheduler: its own client, its own reading of quantities and rules
(:mod:`kube.judging`, :mod:`kube.replaying`). Revisions of one etcd are totally ordered, so objects of
all kinds are replayed in the order in which they were written; who wrote is known from the API
server's audit log.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cluster.audit_reading import SCHEDULER, whole_lines
from cluster.judging import Json, is_ours, is_over, told_by_us
from cluster.judging import seconds as seconds
from cluster.pulse import Pulse
from cluster.replaying import Replay, target

PATHS = {
    "nodes": "/api/v1/nodes",
    "budgets": "/apis/policy/v1/poddisruptionbudgets",
    "claims": "/api/v1/persistentvolumeclaims",
    "pods": "/api/v1/pods",
    "events": "/apis/events.k8s.io/v1/events",
    "ledgers": "/apis/slacktide.io/v1beta1/availabilities",
}
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "users": [SCHEDULER],
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
            "resources": [
                {"group": "", "resources": ["pods", "pods/*", "nodes", "nodes/*", "persistentvolumeclaims"]},
            ],
        },
        {"level": "None"},
    ],
}
"""What of the API server's work is to be written down: what the scheduler's account does to pods."""


OF_VICTIMS = ("Preempted", "ResizeMoved")
"""Reasons of the events by which the scheduler tells of a pod that it evicted."""
QUIET_SECONDS, LONGEST_SECONDS = 30.0, 120.0
"""What has not come after so long a silence is not on its way; and what never ends is not waited for any longer."""


@dataclass(slots=True)
class Seen:
    """One version of an object: when it came, the etcd revision that wrote it, and whether that was its end."""

    at: float
    revision: int
    kind: str
    gone: bool
    body: Json


@dataclass(slots=True)
class Life:
    """A pod by its own timestamps, seconds since 1970; ``ready`` are the spans in which it was."""

    namespace: str
    name: str
    uid: str
    created: float
    node: str = ""
    scheduled: float | None = None
    ready: list[tuple[float, float | None]] = field(default_factory=list)
    ended: float | None = None
    phase: str = ""
    owner: str = ""
    pulse: Pulse | None = None

    def late(self, at: float) -> float:
        """Seconds by which whoever watched may have been late to see something of it, until ``at``."""
        return 0.0 if self.pulse is None else self.pulse.late(self.created, at + 1.0)

    def running(self, at: float) -> float:
        """Seconds for which it was ready, until ``at``."""
        return sum(max(0.0, min(at if end is None else end, at) - begin) for begin, end in self.ready)

    def alive(self, at: float) -> float:
        """Seconds since its creation, until ``at`` or its end."""
        return max(0.0, min(at if self.ended is None else self.ended, at) - self.created)


class ClosingSocket(ssl.SSLSocket):
    """Closes itself when nobody holds it: Python leaves one open whose other end goes before the handshake."""

    def __del__(self) -> None:
        self.close()


class Auditor:
    """Watches from ``start`` to ``stop``; then ``findings`` says what was wrong.

    ``log`` is the API server's audit log.
    """

    def __init__(self, url: str, token: str, ca_file: Path, log: Path | None = None) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._token = parts.hostname or "", parts.port or 443, token
        self._trust = ssl.create_default_context(cafile=str(ca_file))
        self._trust.sslsocket_class = ClosingSocket
        self._log = log
        self._lock = threading.Lock()
        self._seen: list[Seen] = []
        self._threads: list[threading.Thread] = []
        self._open: dict[str, http.client.HTTPSConnection] = {}
        self._over = False
        self._kept: tuple[list[Seen], list[Json]] | None = None
        """What is judged, once the end was waited for: all that was seen, and what we did."""
        self._problems: list[str] = []
        self.pulse = Pulse()

    # -- watching --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; what exists already is known when this returns."""
        # Not from a cache: etcd has a part in all that is told.
        self.pulse.attend(f"https://{self._host}:{self._port}/api/v1/namespaces/default", self._headers(), self._trust)
        for kind, path in PATHS.items():
            listing = self._list(path)
            for body in listing["items"]:
                self._note(kind, False, body)
            revision = listing["metadata"]["resourceVersion"]
            thread = threading.Thread(
                target=self._follow, args=(kind, path, revision), daemon=True, name=f"audit {kind}"
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End, once everything that has happened so far was told, and what was begun is carried out."""
        if missing := _none_left(self._missing):
            self._problems.append(f"the auditor was not told of {missing}")
        _none_left(self._unfinished)  # of what never comes the judgement tells
        self.pulse.stop()
        self._over = True
        for connection in list(self._open.values()):
            with suppress(OSError):
                if (sock := connection.sock) is not None:  # its thread may close it meanwhile
                    sock.shutdown(2)
        for thread in self._threads:
            thread.join(5)

    def catch_up(self) -> None:
        """Wait until everything that has happened so far was told."""
        missing = _none_left(self._missing)
        assert not missing, f"the auditor was not told of {missing}"

    def late(self, begin: float, end: float) -> float:
        """Seconds by which anybody may have been late to see what happened between two instants."""
        return self.pulse.late(begin, end)

    def _unfinished(self) -> list[str]:
        """What is still to come of all that was seen. The scheduler works on: what is judged is what there was at the
        last look, no more."""
        self._kept = None
        acts = self.acts()  # first: of what is in the log the rest is waited for, if it is not on the tape by then
        self._kept = self.tape(), acts
        return self.under_way() + self._unlogged()

    def under_way(self) -> list[str]:
        """UIDs of who waits for a place that is kept for it, or for which we evicted somebody, and of who was evicted
        by us just now and has no event yet (one that its leader took along when it was killed does not come).

        A pod may be taken for another one just before the end; that one is bound when the victim is gone.
        """
        told = {
            one.body["regarding"].get("uid"): one.body
            for one in self.tape("events")
            if one.body["reason"] in OF_VICTIMS and told_by_us(one.body)
        }
        evicted = {target(act): self.now() - seconds(act["stageTimestamp"]) for act in self.evictions()}
        untold = {uid for uid, age in evicted.items() if uid not in told and age < QUIET_SECONDS}
        ours = {told[uid].get("related", {}).get("uid") for uid in evicted.keys() & told.keys()}
        given_up = {
            one.body["regarding"].get("uid")
            for one in self.tape("events")
            if "nomination of" in one.body.get("note", "")
        }
        waits = {
            uid
            for uid, one in self._last("pods").items()
            if is_ours(one.body) and not is_over(one.body) and not one.body["spec"].get("nodeName")
            and (one.body.get("status", {}).get("nominatedNodeName") or uid in ours - given_up)
        }  # fmt: skip
        return sorted(waits | untold)

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def _unlogged(self) -> list[str]:
        """UIDs of the pods that were bound without a line in the API server's audit log, which may be written late."""
        if self._log is None:
            return []
        logged = {
            (act.get("requestObject") or {}).get("metadata", {}).get("uid")
            for act in self.acts()
            if act["objectRef"].get("subresource") == "binding"
        }
        waited, bound = set[str](), set[str]()
        for one in self.tape("pods"):
            uid, spec = one.body["metadata"]["uid"], one.body["spec"]
            if not is_ours(one.body):
                continue
            if not spec.get("nodeName"):
                waited.add(uid)
            elif uid in waited:
                bound.add(uid)
        return sorted(bound - logged)

    def _missing(self) -> list[str]:
        found: list[str] = []
        for kind in ("nodes", "budgets", "claims", "pods"):
            listed = self._list(PATHS[kind])["items"]
            now = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in listed}
            known = {uid: one.body["metadata"]["resourceVersion"] for uid, one in self._last(kind).items()}
            if now != known:
                found.append(kind)
        return found

    def _last(self, kind: str) -> dict[str, Seen]:
        last: dict[str, Seen] = {}
        for one in self.tape(kind):
            last[one.body["metadata"]["uid"]] = one
        return {uid: one for uid, one in last.items() if not one.gone}

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=120, context=self._trust)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}

    def _list(self, path: str) -> Json:
        for _ in range(50):
            connection = self._connect()
            try:
                connection.request("GET", path, headers=self._headers())
                answer = connection.getresponse()
                body = json.loads(answer.read())
            finally:
                connection.close()
            if answer.status != http.client.TOO_MANY_REQUESTS:  # a new definition's storage takes a moment
                break
            time.sleep(0.2)
        assert answer.status == http.client.OK, f"GET {path}: {body}"
        return dict(body)

    def _follow(self, kind: str, path: str, revision: str) -> None:
        while not self._over:
            connection = self._open[kind] = self._connect()
            try:
                query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds=600"
                connection.request("GET", path + query, headers=self._headers())
                answer = connection.getresponse()
                if answer.status != http.client.OK:
                    time.sleep(0.2)
                    continue
                for line in answer:
                    told = json.loads(line)
                    if told["type"] == "ERROR":
                        self._problems.append(lost_watch(kind, told["object"]))
                        return
                    revision = told["object"]["metadata"]["resourceVersion"]
                    if told["type"] != "BOOKMARK":
                        self._note(kind, told["type"] == "DELETED", told["object"])
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)
            finally:
                connection.close()

    def _note(self, kind: str, gone: bool, body: Json) -> None:
        one = Seen(time.time(), int(body["metadata"]["resourceVersion"]), kind, gone, body)
        with self._lock:
            self._seen.append(one)

    # -- what was seen ---------------------------------------------------------------------------------------------

    def tape(self, kind: str = "") -> list[Seen]:
        """Everything seen so far, or until the end, in the order of its writing."""
        with self._lock:
            seen = self._kept[0] if self._kept else self._seen
            found = [one for one in seen if not kind or one.kind == kind]
        return sorted(found, key=lambda one: one.revision)

    def lives(self, namespace: str, prefix: str = "") -> list[Life]:
        """The pods of a namespace whose names begin so, those that are gone included, oldest first."""
        found: dict[str, Life] = {}
        for one in self.tape("pods"):
            meta = one.body["metadata"]
            if meta["namespace"] == namespace and meta["name"].startswith(prefix):
                _live_on(found, one)
        for life in found.values():
            life.pulse = self.pulse
        return sorted(found.values(), key=lambda life: (life.created, life.name))

    def events(self, namespace: str, reason: str = "", about: str = "") -> list[Json]:
        """The last version of each of slacktide's events in a namespace."""
        found: dict[str, Json] = {}
        for one in self.tape("events"):
            body = one.body
            if (
                told_by_us(body)
                and body["metadata"]["namespace"] == namespace
                and reason in ("", body["reason"])
                and about in ("", body["regarding"].get("name"))
            ):
                found[body["metadata"]["uid"]] = body
        return list(found.values())

    def acts(self) -> list[Json]:
        """What the scheduler's account did to pods, by the API server's audit log."""
        if self._kept:
            return self._kept[1]
        if self._log is None or not self._log.exists():
            return []
        every = whole_lines(self._log.read_text())
        return [act for act in every if act["stage"] == "ResponseComplete" and act["user"]["username"] == SCHEDULER]

    def evictions(self, namespace: str = "", code: int = 201) -> list[Json]:
        """The scheduler's evictions that were answered so."""
        return [
            act
            for act in self.acts()
            if act["objectRef"].get("subresource") == "eviction"
            and act["responseStatus"]["code"] == code
            and namespace in ("", act["objectRef"]["namespace"])
        ]

    # -- judgement -------------------------------------------------------------------------------------------------

    def findings(self, terms: Iterable[float] = ()) -> list[str]:
        """Everything that was wrong; empty where nothing was. Call it after ``stop``.

        ``terms``: when a scheduler began to decide, seconds since 1970, where it was not the same all the while.
        """
        return [*self._problems, *Replay(self, terms).judge()]


def lost_watch(kind: str, status: Json) -> str:
    """A watch ended with an error."""
    return f"the auditor lost its watch of {kind}: {status.get('code')} {status.get('message', '')}"


def _none_left(missing: Callable[[], list[str]]) -> list[str]:
    """What is still missing when nothing has come for ``QUIET_SECONDS``; empty as soon as nothing is."""
    began = since = looked = time.monotonic()
    found = missing()
    while found and (now := time.monotonic()) < min(since + QUIET_SECONDS, began + LONGEST_SECONDS):
        time.sleep(max(0.1, now - looked))  # no more than half of the time is for looks
        looked = time.monotonic()
        before, found = found, missing()
        if found != before:
            since = time.monotonic()
    return found


def _live_on(found: dict[str, Life], one: Seen) -> None:
    """Carry a pod's life on by one version of it."""
    meta, status = one.body["metadata"], one.body.get("status", {})
    life = found.get(meta["uid"])
    if life is None:
        owner = next((each["name"] for each in meta.get("ownerReferences", ()) if each.get("controller")), "")
        created = seconds(meta["creationTimestamp"])
        life = found[meta["uid"]] = Life(meta["namespace"], meta["name"], meta["uid"], created, owner=owner)
    life.node = one.body["spec"].get("nodeName", "")
    life.phase = status.get("phase", "")
    for condition in status.get("conditions") or []:
        since = seconds(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else one.at
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            life.scheduled = since
        if condition["type"] != "Ready":
            continue
        is_up = bool(life.ready) and life.ready[-1][1] is None
        if condition["status"] == "True" and not is_up:
            life.ready.append((since, None))
        elif condition["status"] != "True" and is_up:
            life.ready[-1] = (life.ready[-1][0], since)
    if life.ended is None and (one.gone or life.phase in ("Succeeded", "Failed")):
        life.ended = _end(one)
        if life.ready and life.ready[-1][1] is None:
            life.ready[-1] = (life.ready[-1][0], life.ended)


def _end(one: Seen) -> float:
    ends = [
        seconds(each["state"]["terminated"]["finishedAt"])
        for each in one.body.get("status", {}).get("containerStatuses") or []
        if "terminated" in each.get("state", {})
    ]
    return max(ends, default=one.at)
