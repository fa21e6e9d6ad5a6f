"""Settings as keywords: ``policy_patience=30`` is ``--set policy.patience=30``."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from slacktide import settings
from slacktide.config import Config
from slacktide.errors import SPOKEN, ConfigError
from slacktide.experiment.local import cores
from slacktide.model import Network, ServiceClass
from slacktide.model.durations import parse_duration
from slacktide.policy import Pieces, Policy
from slacktide.policy.loader import GIVEN
from slacktide.settings_file import SettingsFile

PolicyChoice: TypeAlias = str | Policy | type[Policy] | Pieces
"""A name as on the command line (also ``file.py:Class``), a class with ``decide``, an object of one, or pieces."""
Duration: TypeAlias = float | str | timedelta | np.timedelta64 | np.number[Any]
"""Seconds, a text such as ``"1h30m"``, or a ``timedelta``, also of numpy."""


IN_PROCESS = ("simulate", "Simulation", "set")
"""What runs in this process, so that it finds what only this process has."""
P = ParamSpec("P")
R = TypeVar("R")
KEYWORDS: dict[str, tuple[str, ...]] = {}
"""By function its own keywords, beside settings."""


def in_python(where: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For functions that users call, ``where``: errors say what to type in Python, and which keywords there are."""

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        given = inspect.signature(function).parameters.values()
        own = (one.name for one in given if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))
        KEYWORDS.setdefault(where, tuple(name for name in own if name != "self"))

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            spoken = SPOKEN.set("python")
            try:
                return function(*args, **kwargs)
            finally:
                SPOKEN.reset(spoken)

        return call

    return wrapped


def seconds(name: str, value: Duration | None) -> float | None:
    """Raises :class:`ConfigError` naming the argument for what is no duration."""
    try:
        return None if value is None else parse_duration(plain(value))
    except (ValueError, ConfigError) as error:
        raise ConfigError(f"{name}: {error}") from error


def plain(value: Any) -> Any:
    """What a settings file would hold: numbers of numpy, lengths of time, paths and service classes as plain values."""
    if isinstance(value, np.timedelta64):
        try:
            return float(value / np.timedelta64(1, "s"))
        except TypeError as error:
            raise ConfigError(f"found {value!r}, expected a length of time that is told in days or less") from error
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, ServiceClass):
        return settings.class_mapping(value)
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def configured(
    where: str,
    preset: str | None,
    file: str | os.PathLike[str] | None,
    keywords: Mapping[str, object],
    named: Mapping[str, object],
) -> Config:
    """Settings from preset, file, keywords, and ``named`` ones (SECTION.KEY), in this order; the last one wins.

    None under a name says nothing. Raises :class:`ConfigError`, beginning with ``where``, the function that was called.
    """
    if file is not None and not isinstance(file, str | os.PathLike):
        raise ConfigError(
            f"{where}: config: found {type(file).__name__}, expected a path; settings are keywords: policy_patience=30"
        )
    if preset is not None and not isinstance(preset, str):
        raise ConfigError(f"{where}: preset: found {preset!r}, expected {', '.join(settings.PRESETS)}")
    config = settings.load(None if file is None else Path(file), preset)
    mapping = sections(where, keywords)
    for name, value in named.items():
        if value is not None:
            only_once(where, name.partition(".")[2], name, keywords)
            section, _, key = name.partition(".")
            mapping.setdefault(section, {})[key] = plain(value)
    return settings.with_sections(config, mapping, SettingsFile(where, mapping))


def only_once(where: str, argument: str, name: str, keywords: Mapping[str, object]) -> None:
    """Raises :class:`ConfigError` where a setting is given by its argument and as a keyword: one would be ignored."""
    keyword = name.replace(".", "_", 1)
    if keyword in keywords:
        raise ConfigError(f"{where}: {keyword}: found beside {argument!r}, which says the same; give one of the two")


def switch(name: str, value: object) -> bool:
    """True or False, also of numpy. Raises :class:`ConfigError` naming the argument for anything else."""
    found = plain(value)
    if not isinstance(found, bool):
        raise ConfigError(f"{name}: found {value!r}, expected True or False")
    return found


def folder_at(name: str, value: object) -> Path:
    """A path. Raises :class:`ConfigError` naming the argument for anything else."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{name}: found {value!r}, expected a path")
    return Path(value)


def sections(where: str, keywords: Mapping[str, object]) -> dict[str, Any]:
    """Keywords as sections of a settings file; ``classes`` is one by itself."""
    found: dict[str, Any] = {}
    for name, value in keywords.items():
        if name == "classes":
            found[name] = plain(value)
            continue
        section = next((one for one in settings.SECTIONS if name.startswith(f"{one}_")), None)
        key = name.removeprefix(f"{section}_")
        if section is None or key not in settings.types_of(section):
            raise ConfigError(f"{where}: {name}: unknown, expected {_keyword(where, name)}")
        said = (
            code_by_name(where, value) if name in ("policy_score", "policy_cost") and callable(value) else plain(value)
        )
        found.setdefault(section, {})[key] = said
    return found


def _keyword(where: str, name: str) -> str:
    """The keywords of a function, and the nearest one."""
    own, listed = KEYWORDS.get(where, ()), [one.replace(".", "_", 1) for one in settings.names()]
    ends = [one for one in listed if one.endswith(f"_{name}")]
    near = ends or get_close_matches(name, [*own, *listed], 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    classes = () if where == "set" else ("classes",)
    return f"{', '.join([*own, *classes])}, or a setting as SECTION_KEY, such as policy_patience{meant}"


def without_network(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], Network | None]:
    """Settings as keywords, and ``delay_network`` where it is not a path but what :func:`generate` made."""
    network = keywords.get("delay_network")
    if not isinstance(network, Network):
        return dict(keywords), None
    return {name: value for name, value in keywords.items() if name != "delay_network"}, network


def with_policy(config: Config, policy: PolicyChoice | None) -> tuple[Config, object]:
    """The settings with the policy's name, and the policy itself where it is not given by name."""
    own: object = None
    if policy is None or isinstance(policy, str):
        name = policy or config.policy.name
    elif not inspect.isclass(policy) and not isinstance(policy, Pieces | Policy):
        raise ConfigError(f"policy: found {policy!r}, expected a name, a class with decide(view, now), or pieces")
    elif isinstance(policy, Pieces):
        name, own = policy.name, policy
    else:
        kind = policy if inspect.isclass(policy) else type(policy)
        name, own = f"{kind.__module__}.{kind.__qualname__}", policy
    return replace(config, policy=replace(config.policy, name=name)), own


def listed(where: str, policies: object) -> None:
    """Raises :class:`ConfigError` where policies are not several, in a list or a mapping."""
    if not isinstance(policies, Iterable) or isinstance(policies, str):
        raise ConfigError(f"{where}: policies: found {policies!r}, expected a list of names, or a mapping")


def called(policy: PolicyChoice) -> str:
    """How a policy is called beside others: a class as in its file."""
    if isinstance(policy, Pieces):
        return policy.name
    return policy if isinstance(policy, str) else str(getattr(policy, "__name__", type(policy).__name__))


def by_name(where: str, policies: Iterable[PolicyChoice]) -> dict[str, PolicyChoice]:
    """Policies by what they are called. Raises :class:`ConfigError` where two that differ are called the same."""
    found: dict[str, PolicyChoice] = {}
    for one in policies:
        if found.setdefault(called(one), one) is not one and found[called(one)] != one:
            raise ConfigError(
                f"{where}: policies: found two called {called(one)!r}, expected different names; "
                "give a mapping {'a': ..., 'b': ...}"
            )
    return found


def whole_number(name: str, value: object, least: int = 1) -> int:
    """A whole number, also of numpy. Raises :class:`ConfigError` naming the argument for anything else."""
    found = plain(value)
    if isinstance(found, bool) or not isinstance(found, int) or found < least:
        raise ConfigError(f"{name}: found {value!r}, expected a whole number from {least} on")
    return found


def at_once(where: str, jobs: object) -> int:
    """How many runs go on at a time, as joblib counts: None and -1 are all processors, -2 all but one."""
    found, most = plain(jobs), cores()
    if found is None:
        return most
    if isinstance(found, bool) or not isinstance(found, int) or found == 0:
        raise ConfigError(
            f"{where}: jobs: found {jobs!r}, expected a whole number: how many runs at a time, or -1 for all "
            "processors, -2 for all but one"
        )
    return found if found > 0 else max(most + 1 + found, 1)


def code_by_name(where: str, function: Any) -> str:
    """A score or cost that is given as a function, by the name under which a run finds it."""
    name = getattr(function, "__qualname__", type(function).__name__)
    if where in IN_PROCESS:
        text, number = f"{getattr(function, '__module__', '')}.{name}", 1
        base = text
        while GIVEN.setdefault(text, function) is not function:  # another of this name, which one paused may still need
            number += 1
            text = f"{base}-{number}"
        return text
    return _in_file(function, f"the function {name}")


def policy_by_name(policy: PolicyChoice) -> str:
    """A name by which another process finds the policy: ``file.py:Class`` of a class that stands in a file."""
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Pieces):
        return _pieces_by_name(policy)
    if not inspect.isclass(policy):
        raise ConfigError(
            f"policy: found an object of {type(policy).__name__}, expected its class: every run makes one of its own"
        )
    return _in_file(policy, f"the class {policy.__qualname__}")


def _in_file(given: Any, what: str) -> str:
    """``file.py:NAME`` of a class or function. Raises :class:`ConfigError` where other processes cannot read it."""
    try:
        file = inspect.getsourcefile(given)
    except (TypeError, OSError):  # one of a notebook, whose module __main__ has no file
        file = None
    if file is None or not file.endswith(".py") or not Path(file).is_file() or given.__qualname__ != given.__name__:
        raise ConfigError(
            f"policy: found {what}, expected one at the top of a .py file, which other processes can read: in a "
            f"notebook write it with %%writefile mine.py, and give 'mine.py:{given.__name__}'. simulate() takes it "
            "itself"
        )
    return f"{file}:{given.__name__}"


def _pieces_by_name(policy: Pieces) -> str:
    """``file.py:NAME`` of pieces that stand in a file, as another process finds them."""
    module = inspect.getmodule(policy.queue)
    file = getattr(module, "__file__", None) or ""
    names = [name for name, value in vars(module).items() if value is policy] if file.endswith(".py") else []
    if not names:
        raise ConfigError(
            f"policy: found the pieces {policy.name!r}, expected some with a name at the top of the .py file in which "
            "'queue' stands, which other processes can read; simulate() takes the pieces themselves"
        )
    return f"{file}:{names[0]}"
