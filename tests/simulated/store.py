"""What etcd and the watch caches keep: objects, their versions, and what happened to them."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from simulated.resources import BY_NAME, SERVED, Json, Resource, decode, encode

Key = tuple[str, str]
FIRST = 1000
KEPT_EVENTS = 500
"""Objects about what happened (``Event``) are forgotten beyond so many: nobody watches them."""


class Change(NamedTuple):
    """One write. ``before`` is the object's state until then, None where it is new."""

    revision: int
    type: str
    resource: Resource
    key: Key
    body: Json
    data: bytes
    before: Json | None


class Store:
    """Objects by resource, namespace and name. Bodies must not be changed: whoever writes makes another one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.revision = FIRST
        self.objects: dict[str, dict[Key, Json]] = {one.plural: {} for one in SERVED}
        self.data: dict[str, dict[Key, bytes]] = {one.plural: {} for one in SERVED}
        self.history: dict[str, list[Change]] = {one.plural: [] for one in SERVED}
        self.forgotten: dict[str, int] = {one.plural: FIRST for one in SERVED}
        """Up to which version changes of a resource are not known any more."""
        self.followers: list[Callable[[Change], None]] = []
        self.watching: dict[str, list[Callable[[Change], None]]] = {one.plural: [] for one in SERVED}
        """Who hears of one resource alone, after the followers."""
        self.hash = hashlib.sha256()
        self._uids = 0

    def new_uid(self) -> str:
        self._uids += 1
        return f"{self._uids:08x}-0000-4000-8000-{self._uids:012x}"

    def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """An object as it is kept; copy it before you change it."""
        return self.objects[plural].get((namespace, name))

    def copy(self, plural: str, namespace: str, name: str) -> Json | None:
        """One to change."""
        data = self.data[plural].get((namespace, name))
        return None if data is None else decode(data)

    def every(self, plural: str) -> list[Json]:
        return list(self.objects[plural].values())

    def in_order(self, resource: Resource, namespace: str) -> list[tuple[Key, bytes]]:
        """Objects by namespace and name, as lists have them."""
        found = self.data[resource.plural].items()
        return sorted((key, data) for key, data in found if not namespace or key[0] == namespace)

    def write(self, resource: Resource, body: Json) -> Json:
        """Create or replace an object. One that is as it was has no new version."""
        metadata = body["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        before = self.objects[resource.plural].get(key)
        if before is not None:
            metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
            if body == before:
                return before
        return self._commit("ADDED" if before is None else "MODIFIED", resource, key, body, before)

    def remove(self, resource: Resource, key: Key, body: Json | None = None) -> Json:
        """Remove an object; ``body`` is its last state where that is a new one."""
        before = self.objects[resource.plural][key]
        last = body if body is not None else decode(self.data[resource.plural][key])
        return self._commit("DELETED", resource, key, last, before)

    def _commit(self, kind: str, resource: Resource, key: Key, body: Json, before: Json | None) -> Json:
        self.revision += 1
        body["metadata"]["resourceVersion"] = str(self.revision)
        data = encode(body)
        plural = resource.plural
        if kind == "DELETED":
            del self.objects[plural][key], self.data[plural][key]
        else:
            self.objects[plural][key], self.data[plural][key] = body, data
        change = Change(self.revision, kind, resource, key, body, data, before)
        self.hash.update(b"%a %b %b\n" % (round(self.now(), 6), kind.encode(), data))
        if plural == "events":
            self._forget_events()
        else:
            self.history[plural].append(change)
        for follower in (*self.followers, *self.watching[plural]):
            follower(change)
        return body

    def _forget_events(self) -> None:
        kept = self.objects["events"]
        while len(kept) > KEPT_EVENTS:
            oldest = next(iter(kept))
            del kept[oldest], self.data["events"][oldest]

    def since(self, resource: Resource, revision: int) -> list[Change] | None:
        """What happened after a version; None where that is not known any more."""
        if revision < self.forgotten[resource.plural]:
            return None
        history = self.history[resource.plural]
        return history[bisect_right(history, revision, key=lambda one: one.revision) :]

    def compact(self, plural: str, revision: int) -> None:
        """Forget what happened to a resource up to a version."""
        history = self.history[plural]
        del history[: bisect_right(history, revision, key=lambda one: one.revision)]
        self.forgotten[plural] = max(self.forgotten[plural], revision)

    def compact_all(self, kept: int) -> None:
        """Forget all but the newest so many versions."""
        for plural in BY_NAME:
            self.compact(plural, max(FIRST, self.revision - kept))
