"""Settings from a preset, a file and ``SECTION.KEY=VALUE`` words, in this order; the last one wins.

What exists, with types, choices and defaults, is read off :mod:`slacktide.config`; only the
ranges of numbers are added here. Every error names the place, the value and what is expected.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from slacktide import settings_file
from slacktide.config import Config, PresetName, live, preset
from slacktide.errors import ConfigError
from slacktide.inputs.cells import expected_name
from slacktide.model import PenaltyTier, ServiceClass
from slacktide.settings_file import Place, SettingsFile

PRESETS: tuple[PresetName, ...] = get_args(PresetName)
FORMAT_VERSION = Config().version
SECTIONS = tuple(field.name for field in dataclasses.fields(Config) if field.name not in ("version", "classes"))
MANIFEST_KEY = "configuration"
"""A manifest of results can be given as a settings file: what stands under this key is read."""
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """Allowed numbers: ``least`` to ``most``, both included unless ``above`` says that ``least`` is not."""

    least: float = 0.0
    most: float = math.inf
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether the number lies inside; infinity and NaN never do."""
        return math.isfinite(value) and self.least <= value <= self.most and not (self.above and value == self.least)

    def __str__(self) -> str:
        if self.above:
            end = "" if self.most == math.inf else f", at most {_round(self.most)}"
            return f"above {self.least:g}{end}"
        return f"{self.least:g} or more" if self.most == math.inf else f"from {self.least:g} to {_round(self.most)}"


def _round(bound: float) -> str:
    return "2^63 - 1" if bound == 2**63 - 1 else f"{bound:g}"


LONGEST = 2.0**33  # seconds; times are exact up to here (docs/semantics.md)
_SECONDS = Range(most=LONGEST)
RANGES: Mapping[str, Range] = {
    "policy.patience": _SECONDS,
    "policy.min_running": _SECONDS,
    "policy.queue_limit": Range(most=2**63 - 1),
    "qos.alpha": _SECONDS,
    "qos.margin": _SECONDS,
    "delay.alpha": Range(most=1.0),
    "delay.phi": Range(most=1.0, above=True),
    "delay.tolerance": _SECONDS,
    "delay.context_switch": _SECONDS,
    "delay.competition": _SECONDS,
    "delay.processing": Range(most=1e15),
    "delay.transfer": Range(most=1e15),
    "delay.memory_per_cpu": Range(),
    "delay.fetching": Range(),
    "scheduler.watchdog": Range(most=LONGEST, above=True),
    "simulation.end": Range(most=LONGEST, above=True),
    "simulation.recreation": _SECONDS,
    "simulation.seed": Range(most=2**63 - 1),
    "kube.qps": Range(),
    "kube.burst": Range(least=1, most=2**31),
    "kube.bindings": Range(least=1, most=4096),
    "kube.event_qps": Range(),
    "kube.ledger_qps": Range(above=True),
    "kube.lease_duration": Range(least=3.0),
    "kube.backoff_first": Range(above=True),
    "kube.backoff_longest": Range(above=True),
    "kube.latency_stale": Range(above=True),
    "kube.victim_patience": _SECONDS,
    "kube.resize_patience": _SECONDS,
    "kube.vacancy": _SECONDS,
    "kube.access_interval": Range(least=1.0, most=LONGEST),
    "kube.hard_pod_affinity_weight": Range(most=100),
    "optimize.equivalence_tolerance": _SECONDS,
    "optimize.relaxed_randomization": Range(most=1.0, above=True),
    "optimize.expiring_cache": _SECONDS,
}

MAY_BE_EMPTY = frozenset(
    {
        "kube.node_label",
        "kube.node_taint",
        "kube.priority_classes",
        "kube.listen",
        "kube.site_label",
        "kube.network_resource",
    }
)
"""Settings of text for which an empty one says something: there is none."""


def load_live(path: Path | None = None, preset_name: str | None = None, overrides: Sequence[str] = ()) -> Config:
    """As :func:`load`, from the settings that a live scheduler starts from."""
    return _load(live(preset(_known_preset(preset_name))), path, overrides)


def load(path: Path | None = None, preset_name: str | None = None, overrides: Sequence[str] = ()) -> Config:
    """The settings of a run: the preset (``recommended`` if none is named), then the file, then the overrides.

    ``overrides`` are words ``SECTION.KEY=VALUE``; ``none`` stands for no value where that is allowed.
    Raises :class:`ConfigError` for anything unknown, of the wrong type or out of range.
    """
    return _load(preset(_known_preset(preset_name)), path, overrides)


def _known_preset(preset_name: str | None) -> PresetName:
    name = preset_name or "recommended"
    if name not in PRESETS:
        raise ConfigError(f"preset: found {name!r}, expected {expected_name(name, PRESETS)}")
    return name


def _load(config: Config, path: Path | None, overrides: Sequence[str]) -> Config:
    if path is not None:
        config = _with_file(config, settings_file.read(path))
    for word in overrides:
        config = _with_word(config, word)
    return config


def to_mapping(config: Config) -> dict[str, Any]:
    """All settings as nested mappings and lists, ready for JSON; :func:`load` reads them back unchanged."""
    mapping = dataclasses.asdict(config)
    mapping["classes"] = [{**one, "tiers": list(one["tiers"])} for one in mapping["classes"]]
    return mapping


def names() -> list[str]:
    """Every ``SECTION.KEY``, in the order of the sections."""
    return [f"{section}.{key}" for section in SECTIONS for key in types_of(section)]


def section_type(section: str) -> type:
    """The dataclass of a section."""
    return type(getattr(Config(), section))


def types_of(section: str) -> dict[str, Any]:
    """Key and type of each setting of a section."""
    return get_type_hints(section_type(section))


def _with_file(config: Config, file: SettingsFile) -> Config:
    top: Place = ()
    values = file.values
    if "format" in values and MANIFEST_KEY in values:
        top, values = (MANIFEST_KEY,), values[MANIFEST_KEY]
        if not isinstance(values, dict):
            raise ConfigError(f"{file.at(top)}: {MANIFEST_KEY}: found {values!r}, expected sections with settings")
    return with_sections(config, values, file, top)


def with_sections(config: Config, values: Mapping[str, Any], file: SettingsFile, top: Place = ()) -> Config:
    """``config`` changed by sections of settings, ``values``, which stand in ``file`` under ``top``.

    Raises :class:`ConfigError` naming file, line, section and key.
    """
    for section, content in values.items():
        place = (*top, section)
        where = f"{file.at(place)}: {section}"
        if section == "version":
            if content is not FORMAT_VERSION and content != FORMAT_VERSION:
                raise ConfigError(f"{where}: found {content!r}, expected {FORMAT_VERSION}, the version this one reads")
        elif section == "classes":
            config = dataclasses.replace(config, classes=_classes(file, content, place))
        elif section in SECTIONS:
            config = _with_section(config, str(section), content, file, place)
        else:
            known = (*SECTIONS, "classes", "version")
            raise ConfigError(f"{where}: unknown section, expected {expected_name(str(section), known)}")
    return config


def _with_section(config: Config, section: str, content: object, file: SettingsFile, place: Place) -> Config:
    if content is None:
        return config
    if not isinstance(content, dict):
        raise ConfigError(f"{file.at(place)}: {section}: found {content!r}, expected settings such as 'key: value'")
    types = types_of(section)
    changes = {}
    for key, value in content.items():
        where = f"{file.at((*place, key))}: {section}.{key}"
        if key not in types:
            raise ConfigError(f"{where}: unknown setting, expected {expected_name(str(key), list(types))}")
        name = f"{section}.{key}"
        changes[key] = check(value, types[key], where, RANGES.get(name), empty=name in MAY_BE_EMPTY)
    return dataclasses.replace(config, **{section: dataclasses.replace(getattr(config, section), **changes)})


def _with_word(config: Config, word: str) -> Config:
    name, equals, text = word.partition("=")
    section, _, key = name.strip().partition(".")
    if not equals or not section or not key:
        raise ConfigError(f"setting {word!r}: expected SECTION.KEY=VALUE, for example policy.patience=30")
    if section == "classes":
        raise ConfigError(f"setting {name}: classes are given in a settings file, under 'classes:'")
    if section not in SECTIONS or key not in types_of(section):
        raise ConfigError(f"setting {name}: unknown, expected {_nearest(section, key, name)}")
    kind = types_of(section)[key]
    full = name.strip()
    value = check(_read(text.strip(), kind), kind, f"setting {name}", RANGES.get(full), empty=full in MAY_BE_EMPTY)
    return dataclasses.replace(config, **{section: dataclasses.replace(getattr(config, section), **{key: value})})


def _nearest(section: str, key: str, name: str) -> str:
    if section in SECTIONS:
        return f"{section}.KEY with KEY " + expected_name(key, list(types_of(section)))
    near = get_close_matches(name, names(), 1)
    owners = [f"{one}.{key}" for one in SECTIONS if key in types_of(one)]
    return (owners or near or [f"a section, {expected_name(section, SECTIONS)}"])[0]


def _read(text: str, kind: Any) -> object:
    """The value that a word stands for; the text itself where it cannot be one of ``kind``, to be refused later."""
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    if NoneType in kinds and text.lower() == "none":
        return None
    if bool in kinds:
        return TRUTH.get(text.lower(), text)
    for number in (int, float):
        if number in kinds and text.isascii() and "_" not in text:
            try:
                return number(text)
            except ValueError:
                continue
    return text


def check(value: object, kind: Any, where: str, allowed: Range | None = None, *, empty: bool = False) -> object:
    """``value`` as the annotated type ``kind``.

    Raises :class:`ConfigError` beginning with ``where`` for another type, no choice of a ``Literal``, a number that
    ``allowed`` excludes, or a text that is empty unless it may be ``empty``. Whole numbers are numbers; truth values
    are not.
    """
    if get_origin(kind) is UnionType:
        if value is None:
            return None
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ConfigError(f"{where}: found {value!r}, expected {expected_name(str(value), get_args(kind))}")
        return value
    words = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}[kind]
    expected = f"{words}, {allowed}" if allowed else words
    fits = isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is str and not value and not empty):
        raise ConfigError(f"{where}: found {value!r}, expected {expected}")
    if isinstance(value, (int, float)) and kind in (int, float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not (allowed or Range(-math.inf)).holds(number) or (kind is int and allowed and value > allowed.most):
            raise ConfigError(f"{where}: found {value!r}, expected {expected}")
        return number if kind is float else value
    return value


def _classes(file: SettingsFile, content: object, place: Place) -> tuple[ServiceClass, ...]:
    if not isinstance(content, list) or not content:
        raise ConfigError(f"{file.at(place)}: classes: found {content!r}, expected a list of at least one class")
    found: list[ServiceClass] = []
    for index, one in enumerate(content):
        here = (*place, index)
        where = f"{file.at(here)}: classes[{index}]"
        fields = _fields(file, one, here, where, get_type_hints(ServiceClass), ("name", "slo", "rank"))
        tiers = fields.get("tiers")
        if tiers is not None:
            fields["tiers"] = _tiers(file, tiers, (*here, "tiers"), where)
        try:
            made = ServiceClass(**fields)
        except ConfigError as error:
            raise ConfigError(f"{file.at(here)}: {error}") from error
        if any(made.name == other.name for other in found):
            raise ConfigError(f"{where}: name: found {made.name!r} twice, expected different names")
        found.append(made)
    return tuple(found)


def _tiers(file: SettingsFile, content: object, place: Place, where: str) -> tuple[PenaltyTier, ...]:
    if not isinstance(content, list):
        raise ConfigError(f"{file.at(place)}: {where}.tiers: found {content!r}, expected a list of boundary and bonus")
    tiers = []
    for index, one in enumerate(content):
        here = (*place, index)
        label = f"{where}.tiers[{index}]"
        tier = PenaltyTier(**_fields(file, one, here, label, get_type_hints(PenaltyTier), ("boundary", "bonus")))
        check(tier.boundary, float, f"{label}.boundary", Range(most=1.0))
        check(tier.bonus, float, f"{label}.bonus", Range())
        tiers.append(tier)
    return tuple(tiers)


def _fields(
    file: SettingsFile, content: object, place: Place, where: str, types: Mapping[str, Any], needed: Sequence[str]
) -> dict[str, Any]:
    """One class or tier: known keys, all of ``needed`` among them, scalar values checked."""
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: found {content!r}, expected {', '.join(needed)}")
    for key in content:
        if key not in types:
            spot = file.at((*place, key))
            raise ConfigError(f"{spot}: {where}.{key}: unknown, expected {expected_name(str(key), list(types))}")
    missing = [key for key in needed if key not in content]
    if missing:
        raise ConfigError(f"{where}: {missing[0]} is missing, expected {', '.join(needed)}")
    return {
        key: value if key == "tiers" else check(value, types[key], f"{file.at((*place, key))}: {where}.{key}")
        for key, value in content.items()
    }
