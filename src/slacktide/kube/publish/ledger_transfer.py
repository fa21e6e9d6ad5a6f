"""Ledgers out of a cluster, and into a restored one, whose workloads have the same names and other UIDs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slacktide.engine.ledger.checkpoint import BrokenLedger, NewerLedger, moved, read
from slacktide.errors import ConfigError, InputError, Problem, StateError
from slacktide.kube.client.http import APPLY_PATCH, FORBIDDEN, NOT_FOUND, ApiError, Connection
from slacktide.kube.feed.takeover import by_owner, owner_of
from slacktide.kube.publish.availability import MANAGER
from slacktide.kube.publish.state_events import identity_of, metadata_of
from slacktide.kube.resources import objects
from slacktide.kube.resources.custom_resources import API_VERSION, AVAILABILITY, Availability
from slacktide.kube.resources.objects import LEASE, Kind, Malformed, encode, rfc3339
from slacktide.kube.translate.owners import Target

FORMAT, VERSION = "slacktide-ledgers", 1
HEAD = {"format": FORMAT, "version": VERSION}
LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
FORMS = {
    "namespace": (LABEL, "the name of a namespace"),
    "apiVersion": (rf"({LABEL}([.]{LABEL})*/)?v[a-z0-9]+", "an API version such as apps/v1"),
    "kind": ("[A-Za-z][A-Za-z0-9]{0,62}", "a kind such as Deployment"),
    "name": ("[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?", "the name of a workload"),
}
"""Of each text of an entry the form, and what is expected."""
Way = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """The ledger of one workload; ``status`` as the Availability had it, without its ``target``."""

    namespace: str
    api_version: str
    kind: str
    name: str
    status: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def entry(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {
            "namespace": self.namespace,
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "status": self.status,
        }


def text_of(kept: Iterable[Kept], exported: str) -> str:
    """The file of these ledgers; ``exported`` says when, in RFC 3339."""
    head = json.dumps(HEAD | {"exported": exported})[:-1]
    lines = ",\n".join(json.dumps(one.entry(), ensure_ascii=False) for one in kept)
    return f'{head}, "ledgers": [\n{lines}\n]}}\n'


def load(path: Path) -> list[Kept]:
    """The ledgers of a file, all of them well-formed. Raises :class:`InputError` with all that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(path), 0, "", "", f"a file that can be read ({error})")]) from error
    return _Reader(str(path), text).ledgers()


class _Wrong(Exception):  # noqa: N818  # never leaves this module
    """Something at ``way`` is not as expected."""

    def __init__(self, way: Way, value: object, expected: str) -> None:
        self.way, self.value, self.expected = way, value, expected


class _Reader:
    """Reads one file."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text

    def ledgers(self) -> list[Kept]:
        content = self._content()
        try:
            entries = _entries(content)
        except _Wrong as wrong:
            raise InputError([self._problem(wrong)]) from None
        found: dict[tuple[str, str, str], Kept] = {}
        wrongs: list[_Wrong] = []
        for number, entry in enumerate(entries):
            try:
                one = _kept(("ledgers", number), entry)
                key = one.namespace, f"{one.api_version.rpartition('/')[0]}/{one.kind}", one.name
                if key in found:
                    raise _Wrong(("ledgers", number, "name"), str(one), "each workload once")
                found[key] = one
            except _Wrong as wrong:
                wrongs.append(wrong)
        if wrongs:
            raise InputError([self._problem(one) for one in wrongs[:10]], len(wrongs))
        return list(found.values())

    def _content(self) -> Any:
        if self.text.lstrip().startswith("{"):
            try:
                return json.loads(self.text)
            except (ValueError, RecursionError) as error:
                line = getattr(error, "lineno", 0)
                raise InputError([Problem(self.file, line, "", "", f"JSON or YAML ({error})")]) from error
        import yaml  # here, because what is exported is JSON

        try:
            return yaml.safe_load(self.text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            line, said = (mark.line + 1 if mark else 0), getattr(error, "problem", None) or error
            raise InputError([Problem(self.file, line, "", "", f"JSON or YAML ({said})")]) from error

    def _problem(self, wrong: _Wrong) -> Problem:
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in wrong.way).lstrip(".")
        value = wrong.value if isinstance(wrong.value, str) else json.dumps(wrong.value, default=str)
        return Problem(self.file, self._line(wrong.way), text, value, wrong.expected)

    def _line(self, way: Way) -> int:
        """The line of what is there, or of what should have it. JSON is YAML, whose nodes know their lines."""
        import yaml

        node = yaml.compose(self.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for part in way:
            if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part]
            elif isinstance(node, yaml.MappingNode):
                below = [value for key, value in node.value if key.value == part]
                if not below:
                    break
                node = below[0]
            else:
                break
        return node.start_mark.line + 1 if node is not None else 0


def _entries(content: Any) -> list[Any]:
    if not isinstance(content, dict):
        raise _Wrong((), content, f"a mapping with format: {FORMAT}")
    for name, value in HEAD.items():
        if content.get(name) != value or isinstance(content.get(name), bool):
            known = "what 'slacktide ledger export' of this release, or of one before, wrote"
            raise _Wrong((name,), content.get(name), f"{value}: {known}")
    entries = content.get("ledgers")
    if not isinstance(entries, list):
        raise _Wrong(("ledgers",), entries, "a list of ledgers")
    return entries


def _kept(way: Way, entry: Any) -> Kept:
    """One entry. Raises :class:`_Wrong`."""
    if not isinstance(entry, dict):
        raise _Wrong(way, entry, f"a mapping with {', '.join(FORMS)} and status")
    for name in entry:
        if name not in (*FORMS, "status"):
            raise _Wrong((*way, name), name, f"one of {', '.join(FORMS)} and status")
    for name, (form, expected) in FORMS.items():
        value = entry.get(name)
        if not isinstance(value, str) or not re.fullmatch(form, value):
            raise _Wrong((*way, name), value, expected)
    for one in _wrong_in_status((*way, "status"), entry.get("status")):
        raise one
    return Kept(entry["namespace"], entry["apiVersion"], entry["kind"], entry["name"], entry["status"])


def _wrong_in_status(way: Way, status: Any) -> Iterator[_Wrong]:
    if not isinstance(status, dict):
        yield _Wrong(way, status, "the status of an Availability")
        return
    decoded = AVAILABILITY.decode(encode({"metadata": {"name": "any"}, "status": status}))
    if isinstance(decoded, Malformed):
        yield _Wrong(way, "", f"the status of an Availability ({decoded.problem})")
        return
    if not decoded.status.class_:
        yield _Wrong((*way, "class"), status.get("class"), "the name of a service class")
    books = status.get("accumulators")
    if not isinstance(books, dict) or not books:
        yield _Wrong((*way, "accumulators"), books, "the scheduler's books")
        return
    try:
        read(books)
    except BrokenLedger as error:
        yield _Wrong((*way, "accumulators", *error.field.split(".")), error.value, error.expected)


AT_ONCE = 8
STALE = ("target", "slackSeconds", "breaksAt", "message", "lost", "starving", "deletedAt")
"""Fields of a ledger that are about the instant at which it was written, or about the other cluster."""
KNOWN: tuple[Kind[Any], ...] = (
    objects.POD, objects.DEPLOYMENT, objects.REPLICA_SET, objects.STATEFUL_SET, objects.JOB, objects.CRON_JOB,
)  # fmt: skip


@dataclass
class Outcome:
    """Of an import: what was written; whose workload is not there; whose ledger counts already."""

    written: list[Kept] = field(default_factory=list)
    missing: list[Kept] = field(default_factory=list)
    counting: list[Kept] = field(default_factory=list)


async def kept_in(connection: Connection, namespace: str) -> tuple[list[Kept], list[str]]:
    """The ledgers of a namespace, or of all where it is empty; and what is said of those that cannot be read.

    One of a later release is kept as it is, for that release. Raises ``ApiError`` and ``Unreachable``.
    """
    found: list[Kept] = []
    broken: list[str] = []
    bodies = json.loads(await connection.get_list(AVAILABILITY.path(namespace)))["items"]
    listed = [AVAILABILITY.decode(encode(body)) for body in bodies]
    known = by_owner(one for one in listed if isinstance(one, Availability))
    for body, one in zip(bodies, listed, strict=True):
        name = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        if isinstance(one, Malformed):
            broken.append(f"{name}: {one.problem}")
            continue
        owner = owner_of(one)
        try:
            if owner is None or not one.status.accumulators:
                raise StateError("it names no workload, or has no books")
            read(one.status.accumulators)
        except NewerLedger:
            pass
        except StateError as error:
            broken.append(f"{name}: {error}")
            continue
        assert owner is not None  # noqa: S101  # asked before
        if known[owner.uid] is not one:
            continue  # it is the former one of a workload whose ledger has another name by now
        status = {key: value for key, value in body["status"].items() if key != "target"}
        found.append(Kept(owner.namespace, owner.api_version, owner.kind, owner.name, status))
    return sorted(found, key=lambda one: (one.namespace, one.kind, one.name)), broken


async def nobody_leads(connection: Connection, namespace: str, name: str, now: float) -> None:
    """Raises :class:`ConfigError` where a scheduler leads by this lease: it would write its own books over others'."""
    try:
        lease = LEASE.decode(await connection.get(LEASE.path(namespace, name)))
    except ApiError as error:
        if error.status in (NOT_FOUND, FORBIDDEN):
            return
        raise
    if isinstance(lease, Malformed) or not lease.spec.holder_identity or lease.spec.renew_time is None:
        return
    if now < lease.spec.renew_time + (lease.spec.lease_duration_seconds or 0):
        raise ConfigError(
            f"lease {namespace}/{name}: found held by {lease.spec.holder_identity}, expected held by nobody: a "
            "scheduler that leads writes its own books over these; stop it (kubectl -n slacktide-system scale "
            "deployment slacktide --replicas=0), import, and start it again"
        )


async def put(connection: Connection, kept: Sequence[Kept], now: float, replace: bool) -> Outcome:
    """Write ledgers of workloads that exist, as of ``now``: the time since the export counts neither way.

    One that counts already is written over only with ``replace``. Raises ``ApiError`` and ``Unreachable``.
    """
    transfer = _Transfer(connection, now, replace)
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(one: Kept) -> str:
        async with turns:
            return await transfer.put(one)

    found = await asyncio.gather(*map(in_turn, kept))
    became = {name: [one for one, what in zip(kept, found, strict=True) if what == name] for name in set(found)}
    return Outcome(**became)


class _Transfer:
    """Writes ledgers into one cluster."""

    def __init__(self, connection: Connection, now: float, replace: bool) -> None:
        self._connection, self._now, self._replace = connection, now, replace
        self._paths = {(kind.api_version, kind.kind): f"{kind.root}/namespaces/{{}}/{kind.plural}" for kind in KNOWN}
        self._asking = asyncio.Lock()

    async def put(self, one: Kept) -> str:
        """The field of :class:`Outcome` that tells what became of it."""
        workload = await self._found(await self._path(one))
        if workload is None:
            return "missing"
        target = Target(one.api_version, one.kind, one.namespace, one.name, workload["metadata"]["uid"])
        path = AVAILABILITY.path(target.namespace, target.ledger)
        there = await self._found(path)
        if there is not None and not self._replace and _counts(there, target):
            return "counting"
        body = self._document(one, target)
        if there is not None:  # whoever writes meanwhile makes this fail
            body["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        await self._connection.patch(path, encode(body), APPLY_PATCH, query=MANAGER)
        return "written"

    def _document(self, one: Kept, target: Target) -> dict[str, Any]:
        status = {key: value for key, value in one.status.items() if key not in STALE}
        books = moved(status["accumulators"], self._now)
        status |= {"target": identity_of(target), "at": rfc3339(self._now), "accumulators": books}
        return {"apiVersion": API_VERSION, "kind": "Availability", "metadata": metadata_of(target), "status": status}

    async def _found(self, path: str) -> Any:
        if not path:
            return None
        try:
            return json.loads(await self._connection.get(path))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def _path(self, one: Kept) -> str:
        """Where a workload lives; empty where the cluster has no such kind, in a namespace."""
        key = one.api_version, one.kind
        async with self._asking:
            if key not in self._paths:
                root = f"/apis/{one.api_version}" if "/" in one.api_version else f"/api/{one.api_version}"
                served = await self._found(root) or {"resources": ()}
                names = [
                    known["name"]
                    for known in served["resources"]
                    if known["kind"] == one.kind and known["namespaced"] and "/" not in known["name"]
                ]
                self._paths[key] = f"{root}/namespaces/{{}}/{names[0]}" if names else ""
        return f"{self._paths[key].format(one.namespace)}/{one.name}" if self._paths[key] else ""


def _counts(there: dict[str, Any], target: Target) -> bool:
    """Whether a ledger has books of this very workload."""
    found = AVAILABILITY.decode(encode(there))
    if not isinstance(found, Availability):
        return True  # of a form that is not known here: not ours to write over
    owner = owner_of(found)
    return bool(found.status.accumulators) and owner is not None and owner.uid == target.uid
