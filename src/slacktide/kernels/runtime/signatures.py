"""The types of an entry's arguments and of what it returns, from its annotations.

A library is compiled for these types only. ``int`` (so ``State``), ``float`` and ``bool`` are numbers of 64, 64 and 8
bits. ``NDArray[np.int64]`` and the like are arrays in C order, of one axis. ``Annotated[NDArray[np.float64], 2]`` has
two axes. ``Annotated[Records, ACCRUED]`` are records of that type, one axis. ``tuple[float, float]`` may be returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

NUMBERS = {int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_)}


class Value(NamedTuple):
    """A number (0 axes), or an array in C order."""

    dtype: np.dtype[Any]
    axes: int = 0


class Signature(NamedTuple):
    """What a function is given and returns."""

    arguments: tuple[Value, ...]
    returns: tuple[np.dtype[Any], ...]
    """Numbers: none, one, or those of a tuple."""


def signature_of(function: Callable[..., object]) -> Signature:
    """That of an entry. Raises :class:`TypeError` for an annotation that has no place in a library."""
    hints = get_type_hints(function, include_extras=True)
    returned = hints.pop("return", type(None))
    several = get_args(returned) if get_origin(returned) is tuple else (returned,)
    returns = () if returned is type(None) else tuple(_number(one, function, "return") for one in several)
    return Signature(tuple(_value(hint, function, name) for name, hint in hints.items()), returns)


def _number(hint: Any, function: Callable[..., object], name: str) -> np.dtype[Any]:
    if hint not in NUMBERS:
        raise TypeError(f"{function.__module__}.{function.__name__}: {name}: found {hint}, expected int, float or bool")
    return NUMBERS[hint]


def _value(hint: Any, function: Callable[..., object], name: str) -> Value:
    axes = 1
    if get_origin(hint) is Annotated:
        hint, said = get_args(hint)
        if isinstance(said, np.dtype):
            return Value(said, 1)
        axes = said
    alias = getattr(get_origin(hint), "__value__", None)
    if alias is not None:  # NDArray is a `type` statement from NumPy 2.5 on, where Python has these
        hint = alias[get_args(hint)]
    if get_origin(hint) is np.ndarray:
        (element,) = get_args(get_args(hint)[1])
        if element is not Any:
            return Value(np.dtype(element), axes)
    return Value(_number(hint, function, name))
