"""Plain values of a file as typed ones, by msgspec; what is wrong is told with file, line and what would be right."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from types import NoneType
from typing import Annotated, Any, Literal, NoReturn, Self, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, UnsetType

from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.model.durations import parse_duration, parse_share
from slacktide.settings_file import Place, SettingsFile

T = TypeVar("T")
Name = Annotated[Annotated[str, Meta(min_length=1)] | int | float, Meta(description="text")]
"""A name; one that YAML takes for a number is a name as well."""
SHOWN = 80
"""Of a longer value this many characters are shown."""
_CONVERTING = Lock()
"""The first conversion to a struct takes its types apart. Two threads that do that at once end the process (msgspec
0.22: a struct that the one has begun and the other finds half done)."""
_WHERE = re.compile(r"`\$((?:\.\w+|\[\d+\])*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


PARSERS = {"duration": parse_duration, "share": parse_share}
WRITTEN_AS = {"duration": " of seconds or a duration such as 10m or 1h30m", "share": " or per cent such as 90%"}


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """Base of what a mapping of a file may hold: no other keys."""


def given(struct: msgspec.Struct) -> dict[str, Any]:
    """What a file said, by the names of the fields; not what it left out (``UNSET``)."""
    return {key: value for key, value in msgspec.structs.asdict(struct).items() if value is not msgspec.UNSET}


@dataclass(frozen=True, slots=True)
class Node:
    """What stands at one place of a file.

    top    so many parts of the place are not shown
    index  how a place in a list is shown
    """

    file: SettingsFile
    place: Place
    value: Any
    top: int = 0
    index: str = ".{}"

    @property
    def where(self) -> str:
        """``file:line: key.key``, as errors begin; the line is that of the nearest key whose line is known."""
        shown = "".join(self.index.format(one) if isinstance(one, int) else f".{one}" for one in self.place[self.top :])
        lines = self.file.lines
        at = next((self.place[:end] for end in range(len(self.place), 0, -1) if self.place[:end] in lines), ())
        return f"{self.file.at(at)}: {shown.removeprefix('.')}" if shown else self.file.name

    def fail(self, expected: str) -> NoReturn:
        """Raises :class:`ConfigError`: place, value, what would be right."""
        shown = repr(self.value)
        shown = shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "..."
        raise ConfigError(f"{self.where}: found {shown}, expected {expected}")

    def child(self, key: str | int) -> Self:
        return replace(self, place=(*self.place, key), value=self.value[key])

    def convert(self, kind: type[T]) -> T:
        """The value as ``kind``, a struct or an annotated type. Raises :class:`ConfigError` at the exact place."""
        try:
            with _CONVERTING:
                return msgspec.convert(Kind.of(kind).number(self.value), kind)
        except msgspec.ValidationError as error:
            found = _WHERE.search(str(error))
            node, expected = self, Kind.of(kind)
            for key, number in _STEP.findall(found[1] if found else ""):
                if expected.unknown(node.value):  # whose text may look like a place
                    break
                step = int(number) if number else key
                node, expected = node.child(step), expected.inside(step)
            node._refuse(expected)

    def _refuse(self, expected: Kind) -> NoReturn:
        if isinstance(self.value, dict) and expected.fields:
            noun = getattr(expected.plain, "NOUN", "key")
            for key in expected.unknown(self.value):
                right = expected_name(str(key), [one.encode_name for one in expected.fields])
                where = replace(self, place=(*self.place, str(key))).where
                raise ConfigError(f"{where}: unknown {noun}, expected {right}")
            needed = [one.encode_name for one in expected.fields if one.required]
            missing = next(key for key in needed if key not in self.value)
            raise ConfigError(f"{self.where}: {missing} is missing, expected {', '.join(needed)}")
        self.fail(expected.words(self.value))


@dataclass(frozen=True, slots=True)
class Kind:
    """An annotated type taken apart: ``plain`` without None, description and bounds, which ``meta`` has."""

    plain: Any
    meta: Meta
    optional: bool

    @classmethod
    def of(cls, kind: Any) -> Kind:
        """Unions are of one type with None or with being left out, or have a description."""
        meta, optional = Meta(), False
        while get_origin(kind) is Annotated or NoneType in get_args(kind) or UnsetType in get_args(kind):
            optional |= NoneType in get_args(kind)
            if get_origin(kind) is Annotated:
                kind, *found = get_args(kind)
                meta = meta if meta.description else found[-1]
            else:
                kind = next(one for one in get_args(kind) if one not in (NoneType, UnsetType))
        return cls(kind, meta, optional)

    @property
    def fields(self) -> tuple[msgspec.structs.FieldInfo, ...]:
        """Of a struct; of all else there are none."""
        struct = hasattr(get_origin(self.plain) or self.plain, "__struct_fields__")
        return msgspec.structs.fields(self.plain) if struct else ()

    def unknown(self, value: object) -> list[Any]:
        """Keys of a mapping that the struct has not."""
        names = [one.encode_name for one in self.fields]
        return [key for key in value if key not in names] if names and isinstance(value, dict) else []

    def inside(self, step: str | int) -> Kind:
        """The type of a list's elements, or of a struct's field."""
        if isinstance(step, int):
            return Kind.of(get_args(self.plain)[0])
        return Kind.of(next(one.type for one in self.fields if one.encode_name == step))

    @property
    def choices(self) -> tuple[Any, ...]:
        """Of a ``Literal``; of all else there are none."""
        return get_args(self.plain) if get_origin(self.plain) is Literal else ()

    def words(self, value: object) -> str:
        """What is expected instead of ``value``."""
        if self.meta.description:
            return self.meta.description
        if self.choices:
            return expected_name(str(value), self.choices)
        if self.fields:
            needed = [one.encode_name for one in self.fields if one.required]
            return f"a mapping with {', '.join(needed or [one.encode_name for one in self.fields])}"
        noun = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}[self.plain]
        return ", ".join(filter(None, (noun + WRITTEN_AS.get(self.written, ""), self.bounds)))

    @property
    def written(self) -> str:
        """In which other ways a number may be written: ``duration``, ``share`` or empty."""
        return str((self.meta.extra or {}).get("written", ""))

    def number(self, value: object) -> object:
        """``value`` with numbers in place of texts that stand for them, ``1h`` or ``90%``, at any depth of structs.

        All else is left as it is, to be refused later.
        """
        if isinstance(value, dict) and self.fields:
            kinds = {one.encode_name: one.type for one in self.fields}
            return {key: Kind.of(kinds[key]).number(one) if key in kinds else one for key, one in value.items()}
        if isinstance(value, str) and self.written:
            with suppress(ValueError):
                return PARSERS[self.written](value)
        return value

    @property
    def bounds(self) -> str:
        """``from 0 to 1``, ``0 or more``, ``above 0``; nothing where every value is allowed."""
        least, above = self.meta.ge, self.meta.gt
        most = None if self.meta.le == sys.float_info.max else self.meta.le
        end = _number(most) if most is not None else ""
        if above is not None:
            return f"above {_number(above)}" + (f", at most {end}" if end else "")
        if least is None:
            return ""
        return f"from {_number(least)} to {end}" if end else f"{_number(least)} or more"


def _number(value: float) -> str:
    """A bound as people read it: all of its digits, and no exponent where it is large."""
    if value == 2**63 - 1:
        return "2^63 - 1"
    if abs(value) >= 10**12 and value == 10 ** (len(f"{value:.0f}") - 1):
        return f"10^{len(f'{value:.0f}') - 1}"
    return f"{value:,.0f}" if abs(value) >= 10_000 and value == int(value) else f"{value:g}"
