"""A settings file as plain mappings, with the line of every key where the format gives it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slacktide.errors import ConfigError

SUFFIXES = (".yaml", ".yml", ".toml", ".json")
Place = tuple[str | int, ...]
"""The way to a value: names of keys and positions in lists."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file says. ``lines`` counts from 1 and is empty for formats that do not give lines."""

    name: str
    values: Mapping[str, Any]
    lines: Mapping[Place, int] = field(default_factory=dict)

    def at(self, place: Place) -> str:
        """``file:line`` of a key, or the file where the line is not known."""
        return f"{self.name}:{self.lines[place]}" if place in self.lines else self.name


SETTINGS = "sections such as 'policy:' with settings in them"


def read(path: Path, kind: str = "settings", content: str = SETTINGS) -> SettingsFile:
    """The mappings of a file of this kind, by its suffix: YAML, TOML or JSON; ``content`` is what it should hold.

    Raises :class:`ConfigError` for a file that cannot be read, is not of its format, names a
    key twice, or holds something else than sections.
    """
    readers = {".yaml": _yaml, ".yml": _yaml, ".toml": _toml, ".json": _json}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise ConfigError(f"{path}: found {suffix or path.name!r}, expected a name ending in {', '.join(SUFFIXES)}")
    text = _text(path, kind)
    try:
        values, lines = readers[suffix](text, str(path))
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply, expected {content}") from error
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: found {_short(values)}, expected {content}")
    return SettingsFile(str(path), values, lines)


def read_documents(path: Path, kind: str) -> list[SettingsFile]:
    """The documents of a YAML file of this kind, in their order, without empty ones; instants stay the text they are.

    A list counts as the documents in it. The line at ``()`` is that on which a document begins. Raises
    :class:`ConfigError` for a file that cannot be read, is no YAML, names a key twice, or has a document that is no
    mapping.
    """
    found = []
    text = _text(path, kind)
    try:
        for whole, lines in _documents(text, str(path)):
            listed = isinstance(whole, list)
            for index, values in enumerate(whole if listed else [whole]):
                own = {place[1:]: line for place, line in lines.items() if place[:1] == (index,)} if listed else lines
                if not isinstance(values, dict):
                    where = f"{path}:{own[()]}"
                    raise ConfigError(f"{where}: found {_short(values)}, expected a document of keys and values")
                found.append(SettingsFile(str(path), values, own))
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply, expected documents of keys and values") from error
    return found


def _text(path: Path, kind: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}, expected a readable {kind} file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start}: expected text in UTF-8") from error


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _json(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigError(f"{name}: {key}: named twice")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once), {}
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}: not JSON: {error.msg}") from error
    except ValueError as error:  # a number of more digits than Python converts
        raise ConfigError(f"{name}: not JSON: {error}") from error


def _toml(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    import tomllib  # here, because most runs read no settings file

    try:
        return tomllib.loads(text), {}
    except ValueError as error:
        raise ConfigError(f"{name}: not TOML: {error}") from error


def _yaml(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    import yaml  # here, because most runs read no settings file

    lines: dict[Place, int] = {}
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _walk(root, (), lines, name, set())
        return yaml.safe_load(text), lines
    except (yaml.YAMLError, ValueError) as error:  # a date that does not exist, a number of too many digits
        raise _no_yaml(name, error) from error


def _documents(text: str, name: str) -> Iterator[tuple[Any, dict[Place, int]]]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Gives instants as the text they are: they may be local times of a time zone that stands beside."""

    def as_text(own: Any, node: Any) -> Any:
        return own.construct_yaml_str(node)

    Loader.add_constructor("tag:yaml.org,2002:timestamp", as_text)
    loader = None
    try:
        loader = Loader(text)  # which refuses some characters
        while loader.check_node() and (root := loader.get_node()) is not None:
            lines: dict[Place, int] = {(): root.start_mark.line + 1}
            _walk(root, (), lines, name, set())
            values = loader.construct_document(root)
            if values is not None:
                yield values, lines
    except (yaml.YAMLError, ValueError) as error:
        raise _no_yaml(name, error) from error
    finally:
        if loader is not None:
            loader.dispose()


def _no_yaml(name: str, error: Exception) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    place = f"{name}:{mark.line + 1}" if mark else name
    return ConfigError(f"{place}: not YAML: {getattr(error, 'problem', None) or error}")


def _name(key: Any) -> str:
    """A key as text; 0.9 and 0.90 are the same number, of which one would go unnoticed."""
    from yaml.constructor import SafeConstructor

    if key.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
        return str(SafeConstructor().construct_object(key))
    return str(key.value)


def _walk(node: Any, place: Place, lines: dict[Place, int], name: str, seen: set[int]) -> None:
    """Notes the line of every key; refuses keys named twice, and aliases, which could stand for endless text."""
    if id(node) in seen:
        raise ConfigError(f"{name}:{node.start_mark.line + 1}: repeated by an alias, expected values written out")
    seen.add(id(node))
    if node.id == "mapping":
        for key, value in node.value:
            here = (*place, _name(key))
            if here in lines:
                raise ConfigError(f"{name}:{key.start_mark.line + 1}: {key.value}: named twice")
            lines[here] = key.start_mark.line + 1
            _walk(value, here, lines, name, seen)
    elif node.id == "sequence":
        for index, value in enumerate(node.value):
            lines[(*place, index)] = value.start_mark.line + 1
            _walk(value, (*place, index), lines, name, seen)
