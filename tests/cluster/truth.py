"""The ledger once more: worked out from what a watch showed of the pods, and nothing else.

An instant is the one at which a version of a pod was seen, or the end of the second that the pod's own timestamp
names (they are whole seconds, rounded down), whichever is first; where the test was late by far, the middle of it.
"""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass, field
from typing import Any

from cluster.auditor import PATHS, Auditor, Seen, lost_watch, seconds
from cluster.labtools import until
from slacktide.lab import Api

TIMESTAMP_SECONDS = 1.0
LATE_SECONDS = 1.5
ALONE_SECONDS = 2.5
"""Ledgers are written at most once a second. What a later one says was not wrong in an earlier one."""


class PatientAuditor(Auditor):
    """One that lists anew where an API server that was restarted does not know where the watch was."""

    def _follow(self, kind: str, path: str, revision: str) -> None:
        while not self._over:
            super()._follow(kind, path, revision)
            expired = lost_watch(kind, {"code": int(http.client.GONE)})
            lost = [one for one in self._problems if one.startswith(expired)]
            if not lost:
                return
            for one in lost:
                self._problems.remove(one)
            revision = self._catch_up(kind)

    def _catch_up(self, kind: str) -> str:
        listing = self._list(PATHS[kind])
        known = self._last(kind)
        for body in listing["items"]:
            before = known.pop(body["metadata"]["uid"], None)
            if before is None or before.body["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
                self._note(kind, False, body)
        for one in known.values():
            self._note(kind, True, one.body)
        return str(listing["metadata"]["resourceVersion"])


@dataclass(slots=True)
class Course:
    """A pod's life, seconds since 1970; ``up`` are the spans in which it was ready."""

    name: str
    uid: str
    created: float
    up: list[list[float]] = field(default_factory=list)
    ended: float = float("inf")
    owner: str = ""
    late: float = 0.0
    """Seconds by which whoever watched was late to see what happened to it, all in all: here, and so elsewhere."""

    def running(self, at: float) -> float:
        """Seconds for which it was ready until ``at``."""
        return sum(max(0.0, min(end, at, self.ended) - min(begin, at)) for begin, end in self.up)

    def alive(self, at: float) -> float:
        """Seconds since its creation until ``at`` or its end."""
        return max(0.0, min(at, self.ended) - self.created)


def instant(said: str | None, seen: float) -> float:
    """When something happened of which a timestamp and the moment of seeing it are known."""
    if not said:
        return seen
    at = seconds(said)
    return min(seen, at + TIMESTAMP_SECONDS) if at <= seen < at + LATE_SECONDS else at + TIMESTAMP_SECONDS / 2


def lateness(said: str | None, seen: float) -> float:
    """Seconds after the end of a timestamp's second at which somebody saw what it tells of."""
    return max(0.0, seen - seconds(said) - TIMESTAMP_SECONDS) if said else 0.0


def settled_ledger(api: Api, namespace: str, name: str, running: int) -> dict[str, Any]:
    """A ledger's status once it says that so many run and nobody waits, and has been left alone."""
    path = f"/apis/slacktide.io/v1beta1/namespaces/{namespace}/availabilities"
    seen: tuple[str, float] = "", 0.0
    said: dict[str, Any] = {}

    def found() -> dict[str, Any] | None:
        nonlocal seen, said
        one = next((one for one in api.get(path)["items"] if one["metadata"]["name"] == name), None)
        status = said = (one or {}).get("status", {})
        if one is None or (status.get("running"), status.get("waiting")) != (running, 0):
            return None
        if one["metadata"]["resourceVersion"] != seen[0]:
            seen = one["metadata"]["resourceVersion"], time.monotonic()
        return dict(status) if time.monotonic() - seen[1] > ALONE_SECONDS else None

    try:
        return dict(until(found, f"ledger {namespace}/{name} says that {running} run"))
    except AssertionError as error:
        raise AssertionError(f"{error}; it says {said}") from None


def courses(auditor: Auditor, namespace: str, prefix: str = "") -> list[Course]:
    """The pods of a namespace whose names begin so, in the order of their creation."""
    found: dict[str, Course] = {}
    for one in auditor.tape("pods"):
        meta = one.body["metadata"]
        if meta["namespace"] == namespace and meta["name"].startswith(prefix):
            _on(found, one)
    return list(found.values())


def _on(found: dict[str, Course], one: Seen) -> None:
    meta: dict[str, Any] = one.body["metadata"]
    course = found.get(meta["uid"])
    if course is None:
        owner = next((each["name"] for each in meta.get("ownerReferences", ()) if each.get("controller")), "")
        created = instant(meta["creationTimestamp"], one.at)
        course = found[meta["uid"]] = Course(meta["name"], meta["uid"], created, owner=owner)
        course.late = lateness(meta["creationTimestamp"], one.at)
    status = one.body.get("status", {})
    ready: dict[str, Any] = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), {})
    is_up = bool(course.up) and course.up[-1][1] == float("inf")
    if bool(ready) and (ready["status"] == "True") != is_up:
        course.late += lateness(ready.get("lastTransitionTime"), one.at)
    if ready.get("status") == "True" and not is_up:
        course.up.append([instant(ready.get("lastTransitionTime"), one.at), float("inf")])
    elif ready and ready["status"] != "True" and is_up:
        course.up[-1][1] = instant(ready.get("lastTransitionTime"), one.at)
    if course.ended == float("inf") and (one.gone or status.get("phase") in ("Succeeded", "Failed")):
        course.ended = one.at


def together(every: list[Course], instances: int, at: float) -> tuple[float, float]:
    """Seconds run and lived until ``at`` by a controller that wants so many ``instances`` from its first pods on."""
    first = sorted(every, key=lambda one: one.created)[:instances]
    return sum(one.running(at) for one in every), sum(at - one.created for one in first if one.created < at)
