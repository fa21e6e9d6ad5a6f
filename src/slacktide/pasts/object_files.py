"""Objects in files, as ``kubectl get -o json`` (or yaml), must-gather and backups write them: what a cluster is now."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import yaml

from slacktide.errors import InputError, Problem
from slacktide.kube.client.kinds import Kind, Malformed, encode
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.resources.objects import POD
from slacktide.pasts.kinds import NEEDED, kind_of
from slacktide.pasts.story import Change, Findings, Story

JSON, YAML = (".json",), (".yaml", ".yml")
LARGEST_FILE = 4 << 30
"""Bytes of one file that are read at most."""
BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises of an object that is none."""
CUT = (OSError, EOFError, zlib.error)
"""What reading raises, also of compressed files that are cut or damaged."""
DEEPEST_LIST = 3
"""Lists of lists that are looked into."""


class _Object(msgspec.Struct, rename="camel"):
    """Of an object or a list what says which it is."""

    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_object = msgspec.json.Decoder(_Object)
Found = tuple[Kind[Any], Any]


def story(paths: Iterable[Path]) -> Story:
    """What these files, folders and archives (tar, also gz) say.

    Raises :class:`InputError` where they cannot be read, or have no nodes or no pods. In a folder or an archive a file
    that cannot be read is left out, and said.
    """
    findings, found, lighten = Findings(), list[Found](), Lightening()
    paths = list(paths)
    for path in paths:
        found += ((kind, lighten(one) if kind is POD else one) for kind, one in _in(path, findings))
    for kind in NEEDED:
        if not any(one is kind for one, _ in found):
            there = ", ".join(sorted({one.kind for one, _ in found})) or "nothing"
            expected = "nodes and pods: kubectl get nodes,pods,deployments,replicasets -A -o json"
            raise InputError([Problem(str(paths[0]), 0, "", f"{there}, but no {kind.kind}", expected)])
    for kind, _ in found:
        findings.counts[kind.kind] += 1
    at = newest(one for _, one in found) or max(path.stat().st_mtime for path in paths)
    return Story(", ".join(map(str, paths)), at, changes_of(found, at), iter(()), findings, snapshot=True)


def changes_of(found: list[Found], at: float) -> Iterator[Change]:
    """Objects as they are ``at`` an instant; the list is empty then, so that each is there once."""
    found.reverse()
    while found:
        yield Change(at, *found.pop())


def newest(objects: Iterable[Any]) -> float:
    """The newest instant of which objects speak, seconds since 1970; 0 where none speaks of any."""
    latest = 0.0
    for one in objects:
        if isinstance(one, Malformed):
            continue
        status = getattr(one, "status", None)
        said = [one.metadata.creation_timestamp]
        said += [condition.last_transition_time for condition in getattr(status, "conditions", ())]
        latest = max([latest, *(at for at in said if at is not None)])
    return latest


def _in(path: Path, findings: Findings) -> Iterator[Found]:
    if path.is_dir():
        names = sorted(Path(root) / name for root, _, names in os.walk(path) for name in names)
        for name in names:
            if _format(name.name):
                yield from _some(str(name), lambda one=name: one.open("rb"), findings)
    elif path.name.endswith((".tar", ".tar.gz", ".tgz")):
        yield from _archived(path, findings)
    elif path.name.endswith(".sktrace"):
        expected = "nodes and pods, which it does not have: slacktide past audit, of the logs of its cluster"
        raise InputError([Problem(str(path), 0, "", "a trace of SimKube", expected)])
    else:
        try:
            with path.open("rb") as file:
                yield from _documents(str(path), _content(path.name, file), findings)
        except CUT as error:
            said = getattr(error, "strerror", None) or error
            raise InputError([Problem(str(path), 0, "", "", f"a file that is whole: {said}")]) from None


def _archived(path: Path, findings: Findings) -> Iterator[Found]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and _format(member.name):
                    yield from _some(f"{path}:{member.name}", lambda one=member: archive.extractfile(one), findings)
    except (tarfile.TarError, *CUT) as error:
        raise InputError([Problem(str(path), 0, "", "", f"a whole tar archive: {error}")]) from None


def _some(name: str, opened: Any, findings: Findings) -> Iterator[Found]:
    """One file of many: where it cannot be read it is left out."""
    try:
        with opened() as file:
            found = list(_documents(name, _content(name, file), findings))
    except (InputError, *CUT) as error:
        findings.counts["files that cannot be read"] += 1
        findings.note(f"left out: {str(error).splitlines()[0]}")
        return
    yield from found


def _format(name: str) -> str:
    plain = name.removesuffix(".gz")
    return next((kind for kind, ends in (("json", JSON), ("yaml", YAML)) if plain.endswith(ends)), "")


def _content(name: str, file: IO[bytes]) -> tuple[str, bytes]:
    content = file.read(LARGEST_FILE + 1)
    if content[:2] == b"\x1f\x8b":
        with gzip.open(io.BytesIO(content)) as unpacked:
            content = unpacked.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise InputError([Problem(name, 0, "", "", f"at most {LARGEST_FILE:,} bytes; split it by namespace")])
    is_json = _format(name) == "json" or content.lstrip()[:1] in (b"{", b"[")
    return ("json" if is_json else "yaml"), content


def _documents(name: str, told: tuple[str, bytes], findings: Findings) -> Iterator[Found]:
    format_, content = told
    if format_ == "json":
        try:
            yield from _one(msgspec.Raw(content), findings)
        except BROKEN as error:
            raise InputError([
                Problem(name, 0, "", "", f"an object or a list of the API server, whole: {error}; write it anew")
            ]) from None  # fmt: skip
        return
    try:
        for document in yaml.load_all(content, Loader=yaml.CSafeLoader):
            if document is not None:
                yield from _one(msgspec.Raw(encode(document)), findings)
    except (yaml.YAMLError, *BROKEN, ValueError, TypeError, OverflowError, NotImplementedError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError([Problem(name, line, "", "", f"YAML of the API server: {what}; write it anew")]) from None


def _one(raw: msgspec.Raw, findings: Findings, of: tuple[str, str] = ("", ""), depth: int = 0) -> Iterator[Found]:
    """An object, or those of a list; items of a list of one kind may not say which it is."""
    said = _object.decode(raw)
    if said.items is not None:
        if depth < DEEPEST_LIST:
            within = said.api_version, said.kind.removesuffix("List")
            for item in said.items:
                try:
                    yield from _one(item, findings, within, depth + 1)
                except BROKEN:
                    findings.counts["items that are no objects"] += 1
        return
    kind = kind_of(said.api_version or of[0], said.kind or of[1])
    if kind is None:
        return
    found = kind.decode(raw)
    if isinstance(found, Malformed):
        findings.counts["objects that cannot be read"] += 1
        findings.note(f"left out: {kind.kind} {found.namespace}/{found.name}: {found.problem}")
    else:
        yield kind, found
