"""A model of the API server: what each request does, and what it answers, at one instant."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from simulated import pod_model
from simulated.patching import APPLY, MERGE, applied, kind_of, merged, strategic
from simulated.resources import (
    CREATED,
    MODIFIED,
    UNPROCESSABLE,
    Json,
    Refused,
    Resource,
    Target,
    conflict,
    decode,
    encode,
    not_found,
    target_of,
)  # fmt: skip
from simulated.store import Key, Store

SYSTEM = ("managedFields", "selfLink")
IMMUTABLE = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
"""What nobody but the API server writes of an object's metadata."""

EMPTY = ("finalizers", "annotations", "labels", "ownerReferences")
"""What is not kept where it is empty."""


class Request(NamedTuple):
    """What was sent."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"
    agent: str = ""
    """Who says to have sent it: by this it is noted who wrote a field."""


class Answer(NamedTuple):
    """What comes back, after ``wait`` seconds."""

    code: int
    body: bytes
    headers: Mapping[str, str] = {}
    wait: float = 0.0

    @property
    def ok(self) -> bool:
        return self.code < 300


class ApiModel:
    """Requests to a :class:`Store`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pages: dict[str, list[tuple[Key, bytes]]] = {}
        """The rest of lists that are read page by page, by what asks for the next."""
        self._applied: dict[tuple[str, Key, str], Json] = {}
        """What a manager applied last."""

    def forget_pages(self) -> None:
        """Versions that lists were made of are known no more."""
        self._pages.clear()

    def answer(self, request: Request) -> Answer:
        """Carry a request out."""
        target = target_of(request.path)
        if target is None:
            return Answer(404, b"404 page not found\n", {"Content-Type": "text/plain"})
        try:
            code, body = self._carry_out(request, target)
        except Refused as no:
            headers = {} if no.after is None else {"Retry-After": str(no.after)}
            return Answer(no.code, encode(no.status), headers, no.wait)
        return Answer(code, body)

    def _carry_out(self, request: Request, target: Target) -> tuple[int, bytes]:
        method, has_name = request.method, bool(target.name)
        if method == "GET":
            return 200, (self._one(target) if has_name else self._list(target, request.query))
        body = self._decoded(request)
        if method == "POST" and target.resource.plural == "pods" and target.sub in ("binding", "eviction"):
            done = pod_model.bind if target.sub == "binding" else pod_model.evict
            return CREATED, encode(done(self.store, target, body))
        if method == "POST" and not has_name:
            return CREATED, self._said(target.resource, self.create(target.resource, target.namespace, body))
        if method == "PUT" and has_name:
            return 200, self._said(target.resource, self._replace(target, body))
        if method == "PATCH" and has_name:
            manager = request.query.get("fieldManager", request.agent)
            return self._patch(target, body, kind_of(request.content_type), manager)
        if method == "DELETE" and has_name and not target.sub:
            return 200, encode(self.delete(target, body))
        raise Refused(405, "the server does not allow this method on the requested resource")

    def _decoded(self, request: Request) -> Json:
        try:
            found = decode(request.body or b"{}")
        except msgspec.DecodeError as error:
            raise Refused(400, f"the object provided is unrecognized: {error}") from None
        if not isinstance(found, dict):
            raise Refused(400, "the object provided is unrecognized")
        return found

    # -- reading ---------------------------------------------------------------------------------------------------

    def _one(self, target: Target) -> bytes:
        data = self.store.data[target.resource.plural].get((target.namespace, target.name))
        if data is None:
            raise not_found(target.resource, target.name)
        return data

    def _list(self, target: Target, query: Mapping[str, str]) -> bytes:
        token, limit = query.get("continue", ""), int(query.get("limit", "0"))
        if token:
            version = base64.b64decode(token).decode().split("/")[0]
            found = self._pages.pop(token, None)
            if found is None:
                raise Refused(410, "The provided continue parameter is too old to display a consistent list result.")
        else:
            version, found = str(self.store.revision), self.store.in_order(target.resource, target.namespace)
        rest = ""
        if limit and len(found) > limit:
            rest = base64.b64encode(f"{version}/{target.resource.plural}/{found[limit][0]}".encode()).decode()
            self._pages[rest] = found[limit:]
            found = found[:limit]
        resource = target.resource
        listing = {
            "kind": f"{resource.kind}List", "apiVersion": resource.version,
            "metadata": {"resourceVersion": version} | ({"continue": rest} if rest else {}),
            "items": [msgspec.Raw(data) for _, data in found],
        }  # fmt: skip
        return encode(listing)

    # -- writing ---------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        """A new object, with what the API server fills in."""
        metadata = body.setdefault("metadata", {})
        if resource.namespaced:
            if metadata.get("namespace", namespace) != namespace:
                raise Refused(
                    400, "the namespace of the provided object does not match the namespace sent on the request"
                )
            metadata["namespace"] = namespace
            space = self.store.get("namespaces", "", namespace)
            if space is None:
                raise Refused(404, f'namespaces "{namespace}" not found')
        uid = self.store.new_uid()
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise Refused(UNPROCESSABLE, f'{resource.kind} "" is invalid: metadata.name: Required value')
            metadata["name"] = f"{metadata['generateName']}{uid[:8]}"
        if metadata.get("resourceVersion"):
            raise Refused(500, "resourceVersion should not be set on objects to be created")
        if self.store.get(resource.plural, namespace if resource.namespaced else "", metadata["name"]) is not None:
            raise Refused(409, f'{resource.qualified} "{metadata["name"]}" already exists', "AlreadyExists")
        for name in (*SYSTEM, *IMMUTABLE):
            metadata.pop(name, None)
        metadata |= {"uid": uid, "creationTimestamp": pod_model.timestamp(self.store.now()), "generation": 1}
        body = {"apiVersion": resource.version, "kind": resource.kind, **body}
        if resource.status:
            body["status"] = {}
        if resource.plural == "pods":
            pod_model.set_defaults(body)
        elif resource.plural == "namespaces":
            body["status"] = {"phase": "Active"}
        return self.store.write(resource, body)

    def _found(self, target: Target) -> Json:
        """The object as it is."""
        before = self.store.get(target.resource.plural, target.namespace, target.name)
        if before is None:
            raise not_found(target.resource, target.name)
        return before

    def _said(self, resource: Resource, body: Json) -> bytes:
        """An object that was written, as it is sent."""
        key = body["metadata"].get("namespace", ""), body["metadata"]["name"]
        is_kept = self.store.objects[resource.plural].get(key) is body
        return self.store.data[resource.plural][key] if is_kept else encode(body)

    def _replace(self, target: Target, body: Json) -> Json:
        if body.get("metadata", {}).get("name", target.name) != target.name:
            raise Refused(400, "the name of the object does not match the name on the URL")
        before = self._found(target)
        if not body["metadata"].get("resourceVersion") and target.resource.fenced:
            message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise Refused(UNPROCESSABLE, f'{target.resource.kind} "{target.name}" is invalid: {message}')
        return self._update(target, before, body)

    def _patch(self, target: Target, patch: Json, kind: str, manager: str) -> tuple[int, bytes]:
        resource, key = target.resource, (target.namespace, target.name)
        if kind == APPLY:
            former = self._applied.get((resource.plural, key, manager))
            if self.store.get(resource.plural, *key) is None:
                made = self.create(resource, target.namespace, decode(encode(patch)))
                self._applied[resource.plural, key, manager] = patch
                return CREATED, self._said(resource, made)
            before = self._found(target)
            done = self._update(target, before, applied(before, patch, former))
            self._applied[resource.plural, key, manager] = patch
            return 200, self._said(resource, done)
        before = self._found(target)
        changed = (merged if kind == MERGE else strategic)(before, patch)
        return 200, self._said(resource, self._update(target, before, changed, manager))

    def _update(self, target: Target, before: Json, body: Json, manager: str = "") -> Json:
        """``body``, of which nothing but a copy of its metadata is changed, may share parts with what is kept."""
        body = {**body, "metadata": dict(body["metadata"])}
        resource, old, metadata = target.resource, before["metadata"], body["metadata"]
        if metadata.get("uid", old["uid"]) != old["uid"]:
            message = f'{resource.kind} "{target.name}" is invalid: metadata.uid: field is immutable'
            raise Refused(UNPROCESSABLE, message)
        if metadata.get("resourceVersion", old["resourceVersion"]) != old["resourceVersion"]:
            raise conflict(resource, target.name, MODIFIED)
        _keep_what_is_the_servers(metadata, old)
        body = {"apiVersion": resource.version, "kind": resource.kind, **body}
        if target.sub == "status":
            body = {**before, "metadata": dict(old), "status": body.get("status", {})}
            if resource.plural == "pods":
                pod_model.note_nominator(before, body, manager)
        elif resource.status:
            body["status"] = before.get("status", {})
        if resource.plural == "pods" and target.sub != "status":
            pod_model.refuse_changes(before, body)
        if body.get("spec") != before.get("spec"):
            body["metadata"]["generation"] = old["generation"] + 1
        is_stopped = resource.plural != "pods" or metadata.get("deletionGracePeriodSeconds") == 0
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and is_stopped:
            return self.store.remove(resource, (target.namespace, target.name), body)
        return self.store.write(resource, body)

    def delete(self, target: Target, options: Json) -> Json:
        """Delete an object, or begin to."""
        before = self._found(target)
        copy = decode(self.store.data[target.resource.plural][target.namespace, target.name])
        pod_model.check_preconditions(target.resource, before, options.get("preconditions") or {})
        key = target.namespace, target.name
        self._applied = {
            known: one for known, one in self._applied.items() if known[:2] != (target.resource.plural, key)
        }
        if target.resource.plural == "pods":
            return pod_model.delete(self.store, before, copy, options.get("gracePeriodSeconds"))
        if before["metadata"].get("finalizers"):
            copy["metadata"] |= {
                "deletionTimestamp": pod_model.timestamp(self.store.now()), "deletionGracePeriodSeconds": 0,
            }  # fmt: skip
            return self.store.write(target.resource, copy)
        self.store.remove(target.resource, key)
        details = {"name": target.name, "kind": target.resource.plural, "uid": before["metadata"]["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _keep_what_is_the_servers(metadata: Json, old: Json) -> None:
    """Of an object's metadata, whatever a user wrote."""
    for name in (*IMMUTABLE, *SYSTEM, "name", "namespace"):
        metadata.pop(name, None)
        if name in old:
            metadata[name] = old[name]
    for name in EMPTY:
        if not metadata.get(name):
            metadata.pop(name, None)
