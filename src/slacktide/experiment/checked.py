"""Values of a grid file with their places, checked where they are taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from slacktide import conversion, settings_file
from slacktide.config import Count, Instant, PresetName, SomeAmount, SomeShare, Text
from slacktide.conversion import Name, Strict
from slacktide.errors import ConfigError, remedy
from slacktide.inputs.columns.cells import expected_name

VERSION = 1
INTERVALS = 600.0
"""Seconds between two rows of a run's tables over time, as in the papers (da Silva et al. 2020)."""
Seeds = Annotated[int, Meta(ge=1, le=1_000_000)]


class Top(Strict, kw_only=True):
    """The file; ``variables`` are filled in before."""

    version: Any = VERSION
    title: Text | UnsetType = UNSET
    variables: Any = UNSET
    workloads: Any
    hosts: Any
    policies: Any
    seeds: Any = 1
    base_seed: Count = 0
    end: Instant | UnsetType = UNSET
    intervals: SomeAmount = INTERVALS
    passes: bool = False
    config: Text | UnsetType = UNSET
    settings: Any = None
    sweep: dict[str, Any] | UnsetType = UNSET
    exclude: Any = UNSET


class Source(Strict):
    """Where a workload or hosts come from."""

    file: Text | UnsetType = UNSET
    generator: Any = UNSET
    parameters: (
        Annotated[dict[str, Any], Meta(description="parameters by name ('slacktide generate' lists them)")] | UnsetType
    ) = field(name="with", default=UNSET)
    seed: Count = 0


class Startup(Strict):
    """Start-up delays of a workload."""

    hot: Text | UnsetType = UNSET
    cold: Text | UnsetType = UNSET


class Workload(Source):
    """A workload."""

    group_by: Literal["job"] | UnsetType = UNSET
    kind: Literal["service", "batch"] = "service"
    approach: Literal["independent", "concurrent", "aggregated"] | UnsetType = UNSET
    startup: Startup | UnsetType = UNSET
    end: Instant | UnsetType = UNSET


class Hosts(Source):
    """A host set; which keys go together is told by :class:`Source`, :class:`Share` and :class:`Peak`."""

    of: Any = UNSET
    share: Any = UNSET
    resource: Any = UNSET
    peak_of: Any = UNSET
    origin: Any = field(name="from", default=UNSET)
    repeat: Any = UNSET


class Share(Strict):
    """Hosts: what remains of another set."""

    of: Name
    share: SomeShare
    resource: Text = "cpu"
    seed: Count = 0


class Peak(Strict):
    """Hosts: as many as a workload's peak needs."""

    peak_of: Name
    origin: Name = field(name="from")
    repeat: bool = False
    seed: Count = 0


class Policy(Strict):
    """A policy."""

    policy: Text | UnsetType = UNSET
    preset: PresetName = "recommended"
    settings: Any = None


class Axes(Strict):
    """A combination that is left out: one name or several on each axis."""

    workload: Any = UNSET
    hosts: Any = UNSET
    policy: Any = UNSET


VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Node(conversion.Node):
    """What stands at one place of a grid file."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Node]:
        """The elements of a list."""
        return (self.child(index) for index in range(len(self.value)))

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def named(self, what: str) -> Iterator[tuple[str, Node]]:
        """Name and content of each entry: of a mapping by name, or of a list of mappings that have a ``name``.

        Raises :class:`ConfigError` where there is none, and for names given twice.
        """
        if not self.value or not isinstance(self.value, dict | list):
            self.fail(f"at least one of {what}, by name")
        if isinstance(self.value, dict):
            for key in self.value:
                self.child(key).check_name(key)
            yield from ((key, self.child(key)) for key in self.value)
            return
        seen: set[str] = set()
        for entry in self:
            if "name" not in entry:
                entry.fail("a mapping with a name")
            name = entry.child("name").name()
            entry.child("name").check_name(name)
            if name in seen:
                entry.child("name").fail("different names")
            seen.add(name)
            rest = {key: value for key, value in entry.value.items() if key != "name"}
            yield name, Node(self.file, entry.place, rest)

    def name(self) -> str:
        """A name; one that YAML takes for a number is a name as well."""
        return str(self.convert(Name))  # type: ignore[arg-type]  # a union, which is no type to mypy

    def check_name(self, name: str) -> None:
        """Raises :class:`ConfigError` for a name that cannot be shown or told from another."""
        if not name.isprintable() or name != name.strip() or not name:
            raise ConfigError(
                f"{self.where}: found {name!r}, expected a name that can be printed, without spaces at its ends"
            )

    def choice(self, names: Sequence[str]) -> str:
        if not isinstance(self.value, str | int | float) or str(self.value) not in names:
            self.fail(expected_name(str(self.value), names))
        return str(self.value)

    def path(self) -> Path:
        """A file's path, relative ones from the grid file's folder; raises :class:`ConfigError` where none is."""
        path = Path(self.file.name).parent / self.convert(Text)
        if not path.is_file():
            self.fail("an existing file (paths are relative to the grid file)")
        return path.resolve()


def read(path: Path, given: Mapping[str, str]) -> Node:
    """The grid file with its variables filled in.

    ``${NAME}`` in a text stands for what ``given`` says (from the command line), else for the default under
    ``variables``. Where it is all of the text, the value is read as YAML: ``end: ${end}`` may be a number. A text that
    begins with ``${NAME}/`` is a path: a relative ``NAME`` of the command line counts from the current directory.
    Raises :class:`ConfigError` for a file that cannot be read, and for a variable that is unknown or has no value.
    """
    file = settings_file.read(path)
    variables = file.values.get("variables", {}) or {}
    known = Node(file, ("variables",), variables)
    if not isinstance(variables, dict):
        known.fail("names with their defaults")
    for name in given:
        if name not in variables:
            listed = list(map(str, variables))
            right = expected_name(name, listed) if listed else "none: it has no variables"
            raise ConfigError(f"variable {name}: found nothing of this name in {path}, expected {right}")
    rest = {key: value for key, value in file.values.items() if key != "variables"}
    return Node(file, (), _filled(Node(file, (), rest), variables, given))


def _filled(node: Node, defaults: Mapping[str, Any], given: Mapping[str, str]) -> Any:
    """The value with variables filled in, and every key as text."""
    if isinstance(node.value, dict):
        for key in node.value:
            if isinstance(key, bool) or key is None:
                node.fail(f"names as text: write {str(key).lower()!r} in quotes")
        return {str(key): _filled(node.child(key), defaults, given) for key in node.value}
    if isinstance(node.value, list):
        return [_filled(node.child(index), defaults, given) for index in range(len(node.value))]
    if not isinstance(node.value, str):
        return node.value
    whole = VARIABLE.fullmatch(node.value)
    if whole:
        value = _value_of(whole[1], node, defaults, given)
        return _as_yaml(value, node) if isinstance(value, str) else value
    text = VARIABLE.sub(lambda found: str(_value_of(found[1], node, defaults, given)), node.value)
    first = VARIABLE.match(node.value)
    if first and first[1] in given and node.value[first.end() :].startswith("/"):
        return str(Path(text).expanduser().absolute())
    return text


def _value_of(name: str, node: Node, defaults: Mapping[str, Any], given: Mapping[str, str]) -> Any:
    if name not in defaults:
        listed = list(map(str, defaults))
        node.fail(f"a variable that 'variables' lists, {expected_name(name, listed)}" if listed else "no variables")
    if name in given:
        return given[name]
    if defaults[name] is None:
        way = remedy(f"--set {name}=VALUE", f"{name}=VALUE")
        node.fail(f"a value for {name}: give {way}, or a default under 'variables'")
    return defaults[name]


def _as_yaml(text: str, node: Node) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        node.fail(f"a value that can be read ({text!r})")
