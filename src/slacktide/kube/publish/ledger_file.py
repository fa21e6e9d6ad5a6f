"""Ledgers in a file, to be taken to another cluster: by namespace, kind and name of their workloads, whose UIDs differ.

The file is JSON, a ledger a line; read is also YAML of the same content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slacktide.engine.ledger.checkpoint import BrokenLedger, read
from slacktide.errors import InputError, OutputError, Problem
from slacktide.kube.client.kinds import Malformed, encode
from slacktide.kube.resources.objects import AVAILABILITY

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


def write(path: Path, text: str) -> None:
    """Write it, whole or not at all. Raises :class:`OutputError`."""
    aside = path.with_name(f".{path.name}.new")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


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
