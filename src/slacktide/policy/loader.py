"""Policies, scores and costs by name: built in, from an entry point, or ``file.py:Name``.

Entry points: the groups ``slacktide.policies``, ``slacktide.scores`` and
``slacktide.costs``. A score is a function ``score(capacity, free, demand, ...) -> float``
of three float arrays (resources,), larger is better; ``free`` is what is free before
the request is placed, its victims gone. Further parameters ask by their names for numbers
of the host and of who is placed (:mod:`slacktide.kernels.feasible.own_numbers`). A cost is a function
``cost(slack, rank, out) -> None`` of the victims' slack above their margins (seconds)
and ranks; it fills ``out`` (levels + 1 floats, compared from the left, larger is
better). Both are compiled with Numba (the extra ``plugins``), so they may use what Numba can compile.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from slacktide.config import Config, PresetName
from slacktide.errors import ConfigError, PluginError, SlacktideError
from slacktide.kernels.builtin import COSTS, DEFAULT, POLICIES, SCORES, offers
from slacktide.kernels.runtime.compiling import PLAIN
from slacktide.kernels.runtime.mode import INSTALL, Mode, has_numba, mode
from slacktide.policy.api import Policy
from slacktide.policy.piece_code import compiled
from slacktide.policy.pieces import Pieces
from slacktide.policy.raised import not_compiled, told
from slacktide.state.cluster import OwnCode

AS_MODULE = "The file is read as a module: what it runs itself belongs under: if __name__ == '__main__':"
"""For a program that runs simulations and has a policy in it, which other processes read."""
SETTINGS = {"policies": "name", "scores": "score", "costs": "cost"}
"""Of each kind, the setting under ``policy`` that names one."""


GIVEN: dict[str, Callable[..., Any]] = {}
"""Scores and costs that a program of this process gave itself, by the names that settings have for them."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A user's own code for a run; ``keep`` holds the compiled functions alive."""

    code: OwnCode = field(default_factory=OwnCode)
    policy: Policy | None = None
    keep: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be named in the settings."""

    name: str
    kind: str
    description: str
    source: str


def _from_file(text: str, kind: str) -> Any:
    path, _, name = text.rpartition(":")
    if not Path(path).is_file():
        raise ConfigError(f"policy.{SETTINGS[kind]}: found {text!r}, expected an existing file before the colon")
    module_name = f"slacktide_own_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{kind}: {path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        hint = f". {AS_MODULE}" if isinstance(problem, SlacktideError) else ""
        raise PluginError(f"{kind}: {path}: {told(problem)}{hint}") from problem
    if not hasattr(module, name):
        own = [one for one, value in vars(module).items() if getattr(value, "__module__", None) == module_name]
        raise PluginError(f"{kind}: {path} has no {name!r}" + (f", expected one of {', '.join(own)}" if own else ""))
    return getattr(module, name)


def _find(text: str, kind: str) -> Any:
    """A user's own object by name. Raises :class:`ConfigError` for a name that nobody offers, and a missing file."""
    if text in GIVEN:
        return GIVEN[text]
    if ".py:" in text:
        return _from_file(text, kind)
    for point in entry_points(group=f"slacktide.{kind}"):
        if point.name == text:
            try:
                return point.load()
            except Exception as problem:
                raise PluginError(f"{kind}: {text}: {told(problem)}") from problem
    raise ConfigError(f"policy.{SETTINGS[kind]}: {unknown(text, kind)}")


def unknown(text: str, kind: str) -> str:
    """What is said of a name that nobody offers: what was found, and what may have been meant.

    That is a wrong setting; a :class:`PluginError` is for code of one's own that is there.
    """
    if kind == "policies" and text in get_args(PresetName):
        return (
            f"found {text!r}, which is a preset, not a policy: give it as --preset {text} (in Python "
            f"preset={text!r}, in a file of an experiment preset: {text})"
        )
    names = [one.name for one in available() if one.kind == kind]
    near = get_close_matches(text, names, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"found {text!r}, expected one of {', '.join(names)}, an entry point's name, or file.py:NAME{meant}"


def _further_arguments(function: Any, count: int, text: str) -> tuple[str, ...]:
    """Names of the arguments after the first ``count``."""
    if not callable(function):
        raise PluginError(f"{text}: found {type(function).__name__}, expected a function of {count} arguments")
    given = inspect.signature(function).parameters.values()
    if len(given) < count:
        raise PluginError(f"{text}: found a function of {len(given)} arguments, expected {count}")
    further = list(given)[count:]
    if odd := [one.name for one in further if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]:
        raise PluginError(f"{text}: argument {odd[0]!r} is not positional: write it without * before it")
    return tuple(one.name for one in further)


def _address(function: Callable[..., Any], kind: str, text: str, further: int) -> tuple[int, Any]:
    """Machine code for a user's function and what keeps it alive."""
    if mode() is Mode.PLAIN:
        PLAIN[id(function)] = function
        return id(function), function
    if not has_numba():
        raise PluginError(f"{text}: a score or cost of your own is compiled by Numba, which is absent; {INSTALL}")
    from slacktide.policy import own_code

    try:
        compiled = own_code.score(function, further) if kind == "scores" else own_code.cost(function)
    except own_code.NumbaError as problem:
        raise PluginError(f"{text}: Numba cannot compile it: {not_compiled(problem)}") from problem
    return int(compiled.address), compiled


def _own(text: str, kind: str) -> tuple[int, Any, tuple[str, ...]]:
    """A user's function: its machine code, what keeps that alive, and which numbers it asks for beside its arrays."""
    function = _find(text, kind)
    further = _further_arguments(function, 3, text)
    if further and kind == "costs":
        raise PluginError(f"{text}: found a function of {3 + len(further)} arguments, expected 3")
    return *_address(function, kind, text, len(further)), further


def _first(numbers: Any, shape: tuple[int]) -> Any:
    return np.asarray(numbers)[: shape[0]]


@lru_cache(64)
def _piece(function: Callable[..., Any], source: str) -> tuple[int, Any]:
    """Machine code of a wrapper around a piece of a policy, and what keeps it alive; kept for further runs."""
    if mode() is Mode.PLAIN:
        known = {"own": function, "array": _first, "nan": math.nan, "inf": math.inf}
        exec(source, known)  # as own_code.piece
        call: Any = known["call"]
        PLAIN[id(call)] = call
        return id(call), call
    if not has_numba():
        raise PluginError(f"a policy from pieces is compiled by Numba, which is absent; {INSTALL}")
    from slacktide.policy import own_code

    try:
        made = own_code.piece(function, source)
    except own_code.NumbaError as problem:
        first = str(problem).strip().splitlines()[0]
        name = getattr(function, "__name__", "piece")
        raise PluginError(f"{name}: Numba cannot compile it: {first}") from problem
    return int(made.address), made


def has_own_code(config: Config) -> bool:
    """Whether the settings name a score or cost that is compiled for them."""
    return config.policy.score not in (DEFAULT, *SCORES) or config.policy.cost not in (DEFAULT, *COSTS)


def load(config: Config, own: object = None) -> Loaded:
    """A user's own policy, score and cost of these settings; raises :class:`PluginError`, and
    :class:`ConfigError` for a name that nobody offers.

    ``own`` is a policy, or its class, that is to decide, and ``policy.name`` then what errors call it.
    """
    score = cost = 0
    keep: list[Any] = []
    numbers: tuple[str, ...] = ()
    if config.policy.score not in (DEFAULT, *SCORES):
        score, alive, numbers = _own(config.policy.score, "scores")
        keep.append(alive)
    if config.policy.cost not in (DEFAULT, *COSTS):
        cost, alive, _ = _own(config.policy.cost, "costs")
        keep.append(alive)
    if own is None and config.policy.name not in POLICIES:
        own = _find(config.policy.name, "policies")
    if isinstance(own, Pieces):
        if cost:
            raise ConfigError(
                f"policy.cost: found {config.policy.cost!r} beside pieces, expected the piece 'cost' alone"
            )
        pieces, alive = compiled(own, config.policy.name, _piece)
        return Loaded(OwnCode(score, cost, numbers, pieces), None, (*keep, alive))
    return Loaded(OwnCode(score, cost, numbers), None if own is None else _instance(own, config), tuple(keep))


def _instance(found: Any, config: Config) -> Policy:
    """A policy from a class (given the settings where it takes them) or an object."""
    name = config.policy.name
    if inspect.isclass(found):
        try:
            given = inspect.signature(found).parameters.values()
            takes = any(
                one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
                for one in given
            )
            found = cast(Any, found)(config) if takes else found()
        except Exception as problem:
            raise PluginError(f"{name}: cannot be created: {told(problem)}") from problem
    if not isinstance(found, Policy):
        raise PluginError(f"{name}: found {type(found).__name__}, expected Pieces, or something with decide(view, now)")
    return found


def available() -> list[Offer]:
    """Everything that can be named in the settings: policies, scores and costs, built in and installed."""
    found = [Offer(name, kind, text, "built in") for kind, name, text in offers()]
    for kind in SETTINGS:
        for point in entry_points(group=f"slacktide.{kind}"):
            source = point.dist.name if point.dist is not None else point.value
            found.append(Offer(point.name, kind, point.value, source))
    return found
