"""What a policy is shown, without a way to change it: what kernels and results go by is the run's own.

Memory is shared: nothing is copied.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.schema import Records

Shown = TypeVar("Shown")


class ReadOnlyTables(Tables):
    """Those of a run as they are at the time: an array that grows is another one."""

    def __init__(self, tables: Tables) -> None:
        self._tables, self._address = tables, tables.state

    def put(self, name: str, array: NDArray[Any]) -> None:  # noqa: ARG002
        """Refused."""
        raise TypeError(f"{name}: a policy changes nothing in its view")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return _array(self._tables[name])

    @property
    def rules(self) -> Records:
        return self._tables.rules.copy()

    @property
    def control(self) -> Records:
        return self._tables.control.copy()


def read_only(given: Shown) -> Shown:
    """The same rows with arrays and mappings that cannot be written to."""
    return cast(Shown, _shown(given, {}))


def _shown(given: Any, known: dict[int, Any]) -> Any:
    """``known`` has what was seen before, by identity: hosts share their attributes."""
    if isinstance(given, np.ndarray):
        return _array(given)
    if isinstance(given, dict):
        return known.setdefault(id(given), MappingProxyType(given))
    if isinstance(given, tuple):
        found = tuple(_shown(one, known) for one in given)
        return given if all(one is other for one, other in zip(found, given, strict=True)) else found
    if not is_dataclass(given) or isinstance(given, type):
        return given
    if id(given) not in known:
        known[id(given)] = _fields(given, known)
    return known[id(given)]


def _fields(given: Any, known: dict[int, Any]) -> Any:
    """A dataclass as it is where nothing in it can be written to, else one like it; not checked anew."""
    values = {one.name: getattr(given, one.name) for one in fields(given)}
    shown = {name: _shown(value, known) for name, value in values.items()}
    if all(shown[name] is value for name, value in values.items()):
        return given
    found = object.__new__(type(given))
    for name, value in shown.items():
        object.__setattr__(found, name, value)
    return found


def _array(given: NDArray[Any]) -> NDArray[Any]:
    found = given.view()
    found.flags.writeable = False
    return found
