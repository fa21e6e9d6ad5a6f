"""Which file holds which table of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slacktide.errors import fail
from slacktide.inputs.problems import check_readable


def find(sources: Sequence[Path], tables: Mapping[str, bool], suffixes: Sequence[str]) -> dict[str, list[Path]]:
    """The files of each table, by name: a file belongs to a table if its name, or its folder's, begins with it.

    ``tables`` says of each whether there must be one. Folders are searched through; in them files with other names
    or suffixes are passed over, while a source that is such a file is an error. Raises :class:`InputError`.
    """
    found: dict[str, list[Path]] = {name: [] for name in tables}
    for source in sources:
        for path in _files(source, suffixes):
            table = _table(path, tables)
            if table is not None:
                found[table].append(path)
            elif path == source:
                raise fail(path, f"a name that begins with {' or '.join(tables)}", value=path.name)
    for name, needed in tables.items():
        if needed and not found[name]:
            places = ", ".join(map(str, sources))
            raise fail(places, f"a file {name}*{' or '.join(suffixes)}, or a folder {name} with such files")
        found[name] = sorted(dict.fromkeys(found[name]))
    return found


def one(sources: Sequence[Path], what: str) -> Path:
    """The only source, which must be a file. Raises :class:`InputError`."""
    if len(sources) != 1:
        raise fail(", ".join(map(str, sources)), f"one file: {what}", value=f"{len(sources)} sources")
    check_readable(sources[0])
    return sources[0]


def _files(source: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    if not source.is_dir():
        check_readable(source)
        yield source
        return
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name.endswith(tuple(suffixes)):
            yield path


def _table(path: Path, tables: Mapping[str, bool]) -> str | None:
    for text in (path.name, path.parent.name):
        for name in sorted(tables, key=len, reverse=True):
            if text.replace("-", "_").startswith(name):
                return name
    return None
