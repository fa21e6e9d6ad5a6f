"""Audit logs of an API server: who was created, bound, evicted and deleted, to the microsecond.

Each line is an event of ``audit.k8s.io/v1``. At level RequestResponse it has the whole object as it was then; at level
Request what was asked for, which is merged here; at level Metadata only who did what, which is not enough for pods.
"""

from __future__ import annotations

import gzip
import heapq
import io
import os
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from slacktide.errors import InputError, Problem
from slacktide.kube.client.kinds import Kind, Malformed, encode
from slacktide.kube.client.metadata import Condition, Instant, decode_special, rfc3339
from slacktide.kube.mirror.pod_record import grace
from slacktide.kube.resources.objects import NODE, POD, Pod
from slacktide.kube.translate.causes import BY_SCHEDULER, DISRUPTED
from slacktide.pasts.conditions import with_condition
from slacktide.pasts.kinds import BY_RESOURCE, kind_of
from slacktide.pasts.merging import merged
from slacktide.pasts.story import Change, Findings, Story

LONGEST_LINE = 16 << 20
"""Bytes of a line that are read; etcd keeps no object that large."""
REFUSED = 300
ABSENT = msgspec.Raw(b"null")
EVICTED = "EvictionByEvictionAPI"
ODD = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
"""What a request that has another form than its kind leads to."""
LEVELS = (
    "Request or RequestResponse for pods, pods/binding, pods/eviction, pods/status, nodes, nodes/status and workloads"
)


class _Ref(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    subresource: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Code(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    """A line of the log."""

    stage: str = ""
    verb: str = ""
    level: str = ""
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _Ref | None = None
    response_status: _Code | None = None
    request_object: msgspec.Raw = ABSENT
    response_object: msgspec.Raw = ABSENT
    request_received_timestamp: Instant | None = None
    stage_timestamp: Instant | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()


class _Header(msgspec.Struct, rename="camel"):
    """Of any object what tells whether it is still there."""

    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[msgspec.Raw] | None = None


class _Options(msgspec.Struct, rename="camel"):
    """Of a deletion: how long a pod may take."""

    grace_period_seconds: int | None = None


class _Target(msgspec.Struct):
    name: str = ""


class _Binding(msgspec.Struct):
    target: _Target = msgspec.field(default_factory=_Target)


_event = msgspec.json.Decoder(_Event, dec_hook=decode_special)
_header = msgspec.json.Decoder(_Header, dec_hook=decode_special)
_options = msgspec.json.Decoder(_Options)
_binding = msgspec.json.Decoder(_Binding)
WRITES = frozenset(("create", "update", "patch", "apply", "delete", "deletecollection"))
POD_KEY = ("", POD.plural)
Key = tuple[str, str, str, str]
"""API group, plural, namespace and name."""


class Lines:
    """The events of log files in order of time, those that wrote something; ``findings`` counts what cannot be read."""

    def __init__(self, files: Sequence[Path], findings: Findings) -> None:
        self._files, self._findings = files, findings

    def __iter__(self) -> Iterator[_Event]:
        """A file is open from its first event to its last: those of one API server follow each other, and of several
        the next event is that of the file that comes first then."""
        begins = [next(self._of(one, Findings()), (0.0, None))[0] for one in self._files]
        later = sorted(range(len(begins)), key=begins.__getitem__, reverse=True)
        now: list[tuple[float, int, _Event, Iterator[tuple[float, _Event]]]] = []
        while now or later:
            if later and (not now or begins[later[-1]] <= now[0][0]):
                number = later.pop()
                events = self._of(self._files[number], self._findings)
            else:
                _, number, event, events = heapq.heappop(now)
                yield event
            for at, event in events:
                heapq.heappush(now, (at, number, event, events))
                break

    def _of(self, path: Path, findings: Findings) -> Iterator[tuple[float, _Event]]:
        last = 0.0
        for line in _lines(path, findings):
            try:
                event = _event.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                findings.counts["lines that are no audit events"] += 1
                continue
            findings.counts["events"] += 1
            at = event.stage_timestamp or event.request_received_timestamp
            if event.stage != "ResponseComplete" or event.verb not in WRITES or event.object_ref is None or at is None:
                continue
            if event.response_status is not None and event.response_status.code >= REFUSED:
                continue
            if (event.object_ref.api_group, event.object_ref.resource) not in BY_RESOURCE:
                continue
            last = max(last, at)
            event.stage_timestamp = Instant(last)
            yield last, event


def _opened(path: Path) -> Any:
    try:
        if path.name.endswith(".gz"):
            return gzip.open(path, "rb")
        if path.name.endswith(".zst"):
            return _zstandard(path)
        return path.open("rb")
    except OSError as error:
        raise InputError([Problem(str(path), 0, "", "", f"an audit log: {error.strerror or error}")]) from None


def _zstandard(path: Path) -> Any:
    import pyarrow as pa

    return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))


def _lines(path: Path, findings: Findings) -> Iterator[bytes]:
    try:
        with _opened(path) as file:
            while line := file.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    findings.counts["lines that are too long"] += 1
                    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                elif line.strip():
                    yield line
    except (EOFError, OSError, zlib.error) as error:
        findings.note(f"{path} ends early: {error}; what came before was used")


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The log files in these files and folders."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(Path(root) / name for root, _, names in os.walk(path) for name in names)
        else:
            found.append(path)
    if not found:
        raise InputError([Problem(str(paths[0]), 0, "", "an empty folder", "audit logs, such as audit.log")])
    return found


def story(paths: Sequence[Path]) -> Story:
    """What these logs tell. They are read twice: first to find what was there before they begin.

    Raises :class:`InputError` where they have no event, or none that says what a pod asks for.
    """
    findings, files = Findings(), files_of(paths)
    place = str(paths[0])
    first = _Beginning(Lines(files, Findings()))
    if first.begin is None:
        raise InputError([Problem(place, 0, "", "no event that wrote something", "audit events of the API server")])
    if not first.pods:
        raise InputError([
            Problem(place, 0, "", f"pods at level {first.level or 'None'}", f"an audit policy with level {LEVELS}")
        ])  # fmt: skip
    reader = _Reader(Lines(files, findings), findings)
    return Story(place, first.begin, reader.known(first.found, first.begin), reader.changes(), findings)


class _Beginning:
    """What there was when the logs begin: objects that were not created in them, as they were when they were first told
    of, and with all that is known to have happened before."""

    def __init__(self, lines: Lines) -> None:
        self.begin: float | None = None
        self.pods = 0
        self.level = ""
        self.found: dict[Key, tuple[Kind[Any], msgspec.Raw]] = {}
        seen: set[Key] = set()
        for event in lines:
            at, ref = event.stage_timestamp or 0.0, event.object_ref
            assert ref is not None  # noqa: S101  # Lines has no others
            self.begin = at if self.begin is None else self.begin
            kind = BY_RESOURCE[ref.api_group, ref.resource]
            if kind is POD:
                self.level = event.level
                self.pods += _has(event.request_object) or _has(event.response_object)
            key = (ref.api_group, ref.resource, ref.namespace, ref.name)
            if key in seen or not ref.name:
                continue
            body = event.response_object
            if event.verb == "create" and not ref.subresource:
                seen.add(key)
            elif _has(body) and (header := _read(body)) is not None and header.kind in ("", kind.kind):
                seen.add(key)
                created = header.metadata.creation_timestamp
                if created is not None and created < self.begin:
                    self.found[key] = kind, msgspec.Raw(bytes(body))


class _Reader:
    """Makes changes of events."""

    def __init__(self, lines: Lines, findings: Findings) -> None:
        self._lines, self._findings = lines, findings
        self._now: dict[Key, Any] = {}
        """Objects as they are."""
        self._bodies: dict[Key, dict[str, Any]] = {}
        """The same as plain data, of those of which requests are merged."""
        self._versions: dict[Key, int] = {}
        self._made = 0
        self._preempted: dict[str, float] = {}
        """Pods that slacktide evicted, and when: the API server says of them that somebody did."""
        self._unnamed: dict[tuple[str, str], deque[Key]] = {}
        """Pods whose creation did not say their name, by namespace and the beginning of it."""

    def known(self, found: dict[Key, tuple[Kind[Any], msgspec.Raw]], begin: float) -> Iterator[Change]:
        """What was there at the beginning."""
        for key, (kind, raw) in found.items():
            decoded = kind.decode(raw)
            if isinstance(decoded, Malformed):
                continue
            if kind in (POD, NODE):
                decoded = _as_it_began(decoded, begin)
            self._now[key] = decoded
            yield Change(begin, kind, decoded)

    def changes(self) -> Iterator[Change]:
        for event in self._lines:
            ref = event.object_ref
            assert ref is not None  # noqa: S101
            kind = BY_RESOURCE[ref.api_group, ref.resource]
            self._findings.counts[f"{event.verb} {kind.plural}{'/' if ref.subresource else ''}{ref.subresource}"] += 1
            key = (ref.api_group, ref.resource, ref.namespace, ref.name)
            try:
                changes = list(self._told(event.stage_timestamp or 0.0, kind, key, event))
            except ODD:  # users write what is logged, and one that is odd ends no other
                self._findings.counts["events that cannot be used"] += 1
                continue
            yield from changes

    def _told(self, at: float, kind: Kind[Any], key: Key, event: _Event) -> Iterator[Change]:
        sub = event.object_ref.subresource if event.object_ref is not None else ""
        if kind is POD and sub == "binding":
            yield from self._bound(at, key, event)
        elif kind is POD and sub == "eviction":
            yield from self._evicted(at, key, event)
        elif event.verb in ("delete", "deletecollection"):
            yield from self._deleted(at, kind, key, event)
        else:
            yield from self._written(at, kind, key, event)

    def _written(self, at: float, kind: Kind[Any], key: Key, event: _Event) -> Iterator[Change]:
        body = event.response_object
        header = _read(body) if _has(body) else None
        if header is not None and header.kind in ("", kind.kind) and header.metadata.name:
            yield from self._is(at, kind, (*key[:3], header.metadata.name), header, body)
        elif _has(event.request_object) and event.level == "Request":
            yield from self._asked(at, kind, key, event)
        elif event.level == "Metadata":
            self._findings.counts[f"{kind.plural} at level Metadata"] += 1
            self._findings.note(f"{kind.plural} are logged at level Metadata: what changed is not known")

    def _is(self, at: float, kind: Kind[Any], key: Key, header: _Header, body: bytes | msgspec.Raw) -> Iterator[Change]:
        """An object is like this now; of two writes that were logged in another order the later counts."""
        version = int(header.metadata.resource_version) if header.metadata.resource_version.isdigit() else 0
        if version and version < self._versions.get(key, 0):
            return
        found = kind.decode(body)
        if isinstance(found, Malformed):
            self._findings.counts["objects that cannot be read"] += 1
            yield Change(at, kind, found)
            return
        if kind is POD and found.metadata.uid in self._preempted:
            found = _turned(found, DISRUPTED, self._preempted[found.metadata.uid], BY_SCHEDULER)
        before = self._now.get(key)
        if before is not None and before.metadata.uid != found.metadata.uid:
            yield Change(at, kind, before, deleted=True)
        self._versions[key] = version
        if _is_gone(header.metadata):
            yield from self._gone(at, kind, key, found)
        else:
            self._now[key] = found
            yield Change(at, kind, found)

    def _gone(self, at: float, kind: Kind[Any], key: Key, found: Any = None) -> Iterator[Change]:
        before = self._now.pop(key, None)
        self._bodies.pop(key, None)
        self._versions.pop(key, None)
        found = before if found is None else found
        if found is not None:
            yield Change(at, kind, found, deleted=True)

    def _deleted(self, at: float, kind: Kind[Any], key: Key, event: _Event) -> Iterator[Change]:
        body = event.response_object
        header = _read(body) if _has(body) else None
        if header is not None and header.items is not None:
            for item in header.items:
                one = _read(item)
                if one is not None:
                    yield from self._goes(at, kind, (*key[:3], one.metadata.name), one, item, event)
        elif not key[3]:
            for other in [one for one in self._now if one[:3] == key[:3]]:
                yield from self._goes(at, kind, other, None, None, event)
        elif header is not None and header.kind == kind.kind:
            yield from self._goes(at, kind, key, header, body, event)
        else:
            yield from self._goes(at, kind, key, None, None, event)

    def _goes(
        self, at: float, kind: Kind[Any], key: Key, header: _Header | None, body: msgspec.Raw | None, event: _Event
    ) -> Iterator[Change]:
        """An object was told to go; a pod on a node goes when its kubelet says so."""
        if header is not None and body is not None and not _is_gone(header.metadata):
            if header.metadata.deletion_timestamp is None:  # it was removed, and this is how it was
                yield from self._gone(at, kind, key)
                return
            yield from self._is(at, kind, key, header, body)
        else:
            self._named(key)
            pod = self._now.get(key) if kind is POD and header is None else None
            # Level Request has no answer: kubelets delete what has ended, all others tell it to go.
            if pod is None or pod.metadata.deletion_timestamp is not None or _at_once(event):
                yield from self._gone(at, kind, key)
                return
            yield from self._marked(at, key, pod, grace(pod))
        pod = self._now.get(key)
        if kind is POD and pod is not None and event.user.username.endswith(":kube-scheduler"):
            yield from self._disrupted(at, key, BY_SCHEDULER)

    def _marked(self, at: float, key: Key, pod: Any, grace: float) -> Iterator[Change]:
        if not pod.spec.node_name:
            yield from self._gone(at, POD, key)
            return
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=Instant(at + grace))
        self._now[key] = pod = msgspec.structs.replace(pod, metadata=metadata)
        yield Change(at, POD, pod)

    def _disrupted(self, at: float, key: Key, reason: str) -> Iterator[Change]:
        """Says why a pod goes, where nobody said it yet."""
        pod = self._now[key]
        if not any(one.type == DISRUPTED for one in pod.status.conditions):
            self._now[key] = pod = _turned(pod, DISRUPTED, at, reason)
            yield Change(at, POD, pod)

    def _evicted(self, at: float, key: Key, event: _Event) -> Iterator[Change]:
        """An eviction deletes the pod, which is not logged again; slacktide preempts so."""
        self._named(key)
        pod = self._now.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        reason = EVICTED
        if event.user.username.endswith(":slacktide"):
            self._preempted[pod.metadata.uid], reason = at, BY_SCHEDULER
        self._now[key] = pod = _turned(pod, DISRUPTED, at, reason)
        yield from self._marked(at, key, pod, grace(pod))

    def _bound(self, at: float, key: Key, event: _Event) -> Iterator[Change]:
        """The answer to a binding is no pod."""
        try:
            asked = _binding.decode(event.request_object)
        except (msgspec.DecodeError, RecursionError):
            return
        if not asked.target.name:
            self._findings.note("bindings do not say which node: log pods/binding at level Request or RequestResponse")
            return
        self._named(key)
        pod = self._now.get(key)
        if pod is None:
            self._findings.counts["bindings of pods that were not told of"] += 1
            return
        spec = msgspec.structs.replace(pod.spec, node_name=asked.target.name)
        self._now[key] = pod = _turned(msgspec.structs.replace(pod, spec=spec), "PodScheduled", at)
        if key in self._bodies:
            self._bodies[key].setdefault("spec", {})["nodeName"] = asked.target.name
        yield Change(at, POD, pod)

    # -- level Request ---------------------------------------------------------------------------------------------

    def _asked(self, at: float, kind: Kind[Any], key: Key, event: _Event) -> Iterator[Change]:
        """Only what was asked for is logged: it is merged into what was known."""
        try:
            asked = msgspec.json.decode(event.request_object)
        except (msgspec.DecodeError, RecursionError):
            self._findings.counts["requests that cannot be read"] += 1
            return
        self._findings.note(
            "the log has requests only (level Request): what the API server sets is not known, such as priorities"
        )
        if event.verb == "create" and isinstance(asked, dict):
            metadata = asked.setdefault("metadata", {})
            metadata.setdefault("creationTimestamp", rfc3339(_whole(at)))
            metadata["namespace"] = key[2]
            self._find_owners(metadata)
            name = key[3] or metadata.get("name", "")
            if not name:  # it is called so until somebody names it
                prefix = str(metadata.get("generateName", ""))
                self._made += 1
                name = f"{prefix}{self._made}"
                self._unnamed.setdefault((key[2], prefix), deque()).append((*key[:3], name))
            yield from self._set(at, kind, (*key[:3], name), asked)
            return
        self._named(key)
        if key not in self._bodies:
            if key in self._now:
                self._bodies[key] = msgspec.json.decode(encode(self._now[key]))
            elif isinstance(asked, dict) and event.verb in ("update", "apply"):
                self._bodies[key] = {}
            else:
                self._findings.counts[f"patches of {kind.plural} that were not told of"] += 1
                return
        uid = self._bodies[key].get("metadata", {}).get("uid")
        body = asked if event.verb == "update" else merged(self._bodies[key], asked)
        if uid is not None:
            body.setdefault("metadata", {})["uid"] = uid
        yield from self._set(at, kind, key, body)

    def _find_owners(self, metadata: dict[str, Any]) -> None:
        """Objects whose creation was logged as a request have another UID here than those that they own know."""
        for one in metadata.get("ownerReferences") or ():
            kind = kind_of(str(one.get("apiVersion")), str(one.get("kind")))
            if kind is not None:
                group = kind.api_version.rpartition("/")[0]
                owner = self._bodies.get((group, kind.plural, metadata["namespace"], str(one.get("name"))))
                one["uid"] = one.get("uid") if owner is None else owner["metadata"]["uid"]

    def _set(self, at: float, kind: Kind[Any], key: Key, body: Any) -> Iterator[Change]:
        metadata = body.setdefault("metadata", {})
        metadata.setdefault("uid", f"{key[2]}/{key[3]}/{at:.6f}")
        metadata.setdefault("name", key[3])
        self._bodies[key] = body
        raw = encode(body)
        header = _read(msgspec.Raw(raw))
        if header is not None:
            yield from self._is(at, kind, key, header, raw)

    def _named(self, key: Key) -> None:
        """A pod of this name, of which nobody was told, was created without it: it is the eldest that may be meant."""
        if key in self._now or key[:2] != POD_KEY:
            return
        prefixes = [one[1] for one in self._unnamed if one[0] == key[2] and one[1] and key[3].startswith(one[1])]
        if not prefixes:
            return
        waiting = self._unnamed[key[2], max(prefixes, key=len)]
        while waiting:
            called = waiting.popleft()
            if called in self._now:
                self._now[key], self._bodies[key] = self._now.pop(called), self._bodies.pop(called)
                return


def _as_it_began(found: Any, begin: float) -> Any:
    """A pod or a node that was told of later, without what has happened to it since the beginning."""
    metadata = msgspec.structs.replace(found.metadata, deletion_timestamp=None)
    status = found.status
    conditions = tuple(_before(one, begin, metadata.creation_timestamp) for one in status.conditions)
    if not isinstance(found, Pod):
        status = msgspec.structs.replace(status, conditions=conditions)
        return msgspec.structs.replace(found, metadata=metadata, status=status)
    if any(one.type == "PodScheduled" and one.status != "True" for one in conditions):
        spec = msgspec.structs.replace(found.spec, node_name="")
        return msgspec.structs.replace(found, metadata=metadata, spec=spec, status=type(status)())
    phase = "Running" if status.phase in ("Succeeded", "Failed") else status.phase
    status = msgspec.structs.replace(status, phase=phase, conditions=conditions)
    return msgspec.structs.replace(found, metadata=metadata, status=status)


def _before(one: Condition, begin: float, created: Instant | None) -> Condition:
    """A condition as it was before it turned."""
    if one.last_transition_time is None or one.last_transition_time < begin:
        return one
    return Condition(one.type, "False" if one.status == "True" else "True", "", "", created)


def _has(body: msgspec.Raw) -> bool:
    return bytes(memoryview(body)[:4]) != b"null"


def _read(body: msgspec.Raw) -> _Header | None:
    try:
        return _header.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _is_gone(metadata: _Meta) -> bool:
    """Whether an object that was written like this is removed by that."""
    if metadata.deletion_timestamp is None or metadata.finalizers:
        return False
    return not metadata.deletion_grace_period_seconds


def _at_once(event: _Event) -> bool:
    """Whether a deletion leaves no time to end."""
    try:
        asked = _options.decode(event.request_object)
    except (msgspec.DecodeError, RecursionError):
        asked = _Options()
    return asked.grace_period_seconds == 0 or event.user.username.startswith("system:node:")


def _whole(at: float) -> float:
    """As the API writes it: whole seconds, rounded down."""
    return float(int(at))


def _turned(pod: Any, name: str, at: float, reason: str = "") -> Any:
    return with_condition(pod, name, _whole(at), reason=reason)
