"""Settings from a preset, a file and ``SECTION.KEY=VALUE`` words, in this order; the last one wins.

What exists, with types, choices, ranges and defaults, is read off :mod:`slacktide.config`. Every error names the
place, the value and what is expected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slacktide import settings_file
from slacktide.config import Amount, Config, PresetName, Share, Text, live, preset
from slacktide.conversion import Kind, Node, Strict, given
from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.model import PenaltyTier, ServiceClass, Window, limit_fields
from slacktide.model.durations import EXPECTED as EXPECTED_DURATION
from slacktide.model.durations import parse_duration
from slacktide.settings_file import Place, SettingsFile

PRESETS: tuple[PresetName, ...] = get_args(PresetName)
FORMAT_VERSION = Config().version
SECTIONS = tuple(field.name for field in dataclasses.fields(Config) if field.name not in ("version", "classes"))
LIFETIME = "lifetime"
"""What a class says of its window that has none."""
MANIFEST_KEY = "configuration"
"""A manifest of results can be given as a settings file: what stands under this key is read."""
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Tier(Strict):
    """A penalty tier as a file gives it."""

    boundary: Share
    bonus: Amount


Duration = Annotated[float | str, Meta(description=EXPECTED_DURATION)]
Tiers = Annotated[
    list[Annotated[Tier, Meta(description="boundary, bonus")]], Meta(description="a list of boundary and bonus")
]


TimeOfDay = Annotated[str | int, Meta(description="a time of day from 00:00 to 24:00, such as 22:00")]


class Disruptions(Strict):
    """At most ``max`` disruptions in any ``per``."""

    max: int
    per: Duration


class PreemptionLimit(Strict, rename={"limit_window_seconds": "limitWindowSeconds"}):
    """The same by the names of Kueue's PreemptionLimit."""

    scope: Text
    limit: int
    limit_window_seconds: int

    def fields(self) -> dict[str, Any]:
        """By the names of the file."""
        return {"scope": self.scope, "limit": self.limit, "limitWindowSeconds": self.limit_window_seconds}


class Allowed(Strict, rename={"begin": "from", "end": "to"}):
    """Hours at which disruptions are allowed."""

    days: Annotated[list[Annotated[str, Meta(description="Mon, Tue, Wed, ...")]], Meta(description="a list of days")]
    begin: TimeOfDay
    end: TimeOfDay
    time_zone: Text = "UTC"

    def fields(self) -> dict[str, Any]:
        """By the names of the file."""
        return {"days": self.days, "from": self.begin, "to": self.end, "time_zone": self.time_zone}


Entries = Annotated[
    list[Annotated[Allowed, Meta(description="days, from, to")]], Meta(description="a list of days, from and to")
]


class Class(Strict):
    """A service class as a file gives it; :class:`ServiceClass` checks the ranges."""

    name: Text
    slo: Annotated[float, Meta(extra={"written": "share"})]
    rank: int
    margin: float | UnsetType = UNSET
    alpha: Duration | UnsetType | None = UNSET
    overhead_limit: float | UnsetType | None = UNSET
    tiers: Tiers | UnsetType | None = UNSET
    window: Any = UNSET
    disruptions: Disruptions | UnsetType | None = UNSET
    preemption_limit: PreemptionLimit | UnsetType | None = UNSET
    cooldown: Duration | UnsetType | None = UNSET
    hours: Entries | UnsetType | None = UNSET
    min_running: Duration | UnsetType | None = UNSET

    def made(self, window: Window | None) -> ServiceClass:
        """Raises :class:`ConfigError` for a number out of range."""
        fields = given(self) | {"window": window}
        if fields.get("tiers"):
            fields["tiers"] = tuple(PenaltyTier(one.boundary, one.bonus) for one in fields["tiers"])
        said = {name: fields.pop(name, None) for name in limit_fields.FIELDS}
        if said["disruptions"]:
            said["disruptions"] = {"max": said["disruptions"].max, "per": said["disruptions"].per}
        if said["preemption_limit"]:
            said["preemption_limit"] = said["preemption_limit"].fields()
        if said["hours"] is not None:
            said["hours"] = [one.fields() for one in said["hours"]]
        try:
            limits = limit_fields.limits_of(said)
        except ConfigError as error:
            raise ConfigError(f"service class {self.name!r}: {error}") from error
        if isinstance(fields.get("alpha"), str):
            try:
                fields["alpha"] = parse_duration(fields["alpha"])
            except ValueError as error:
                raise ConfigError(f"service class {self.name!r}: alpha: {error}") from error
        return ServiceClass(**fields, limits=limits)


def class_of(values: Mapping[str, Any]) -> ServiceClass:
    """A class from plain values, as :func:`to_mapping` made them."""
    window = values.get("window")
    return msgspec.convert(values, Class).made(
        None if window in (None, LIFETIME) else msgspec.convert(window, WindowFields).made()
    )


class WindowFields(Strict):
    """A window as a file gives it; :class:`Window` checks what fits together."""

    rolling: Duration | UnsetType | None = UNSET
    calendar: Text | UnsetType | None = UNSET
    budget: Text | UnsetType = UNSET
    time_zone: Text | UnsetType = UNSET
    start: Text | UnsetType | None = UNSET

    def made(self) -> Window:
        """Raises :class:`ConfigError` or ``ValueError`` for what cannot be."""
        fields = given(self)
        if fields.get("rolling") is not None:
            fields["rolling"] = parse_duration(fields["rolling"])
        return Window(**fields)


WindowField = Annotated[WindowFields, Meta(description="'lifetime', or rolling or calendar, such as 'rolling: 30d'")]
Classes = Annotated[
    list[Annotated[Class, Meta(description="name, slo, rank")]],
    Meta(min_length=1, description="a list of at least one class"),
]


@cache
def _sections() -> type[msgspec.Struct]:
    """What a settings file may hold: of every section any of its settings."""
    fields: list[tuple[str, Any, Any]] = []
    for section in SECTIONS:
        settings = [(key, kind | UnsetType, UNSET) for key, kind in types_of(section).items()]
        kind = msgspec.defstruct(section, settings, bases=(Strict,), namespace={"NOUN": "setting"})
        described = Annotated[kind | None, Meta(description="settings such as 'key: value'")]  # type: ignore[valid-type]
        fields.append((section, described | UnsetType, UNSET))
    fields += [("classes", Classes | UnsetType, UNSET), ("version", Any, UNSET)]
    return msgspec.defstruct("Sections", fields, bases=(Strict,), namespace={"NOUN": "section"})


def load_live(path: Path | None = None, preset_name: str | None = None, overrides: Sequence[str] = ()) -> Config:
    """As :func:`load`, from the settings that a live scheduler starts from."""
    found = _load(live(preset(_known_preset(preset_name))), path, overrides)
    if found.policy.equals != "admission":
        raise ConfigError(
            f"policy.equals: found {found.policy.equals!r}, expected 'admission': kube-scheduler's order of equals is "
            "for simulations of what it did; leave the setting out"
        )
    return found


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
    _check_together(config)
    return config


def _check_together(config: Config) -> None:
    """Refuse settings of which one would be without effect beside another."""
    optimize = config.optimize
    if optimize.relaxed_randomization < 1.0 and (optimize.shared_evaluations or optimize.equivalence_tolerance > 0.0):
        raise ConfigError(
            f"setting optimize.relaxed_randomization: found {optimize.relaxed_randomization:g} beside shared "
            "evaluations, which a search in random order does not share; add optimize.shared_evaluations=false and "
            "leave out optimize.equivalence_tolerance"
        )


def to_mapping(config: Config) -> dict[str, Any]:
    """All settings as nested mappings and lists, ready for JSON; :func:`load` reads them back unchanged."""
    mapping = dataclasses.asdict(config)
    mapping["classes"] = [class_mapping(one) for one in config.classes]
    return mapping


def class_mapping(one: ServiceClass) -> dict[str, Any]:
    """A class as a file has it; :func:`class_of` reads it back unchanged."""
    fields = dataclasses.asdict(one)
    for name in ("limits", "priority", "before_budgets", "before_limits"):  # which no file gives
        del fields[name]
    return {**fields, "tiers": list(fields["tiers"]), **limit_fields.fields_of(one.limits)}


def names() -> list[str]:
    """Every ``SECTION.KEY``, in the order of the sections."""
    return [f"{section}.{key}" for section in SECTIONS for key in types_of(section)]


def section_type(section: str) -> type:
    """The dataclass of a section."""
    return type(getattr(Config(), section))


def types_of(section: str) -> dict[str, Any]:
    """Key and type of each setting of a section; the type carries the range."""
    return get_type_hints(section_type(section), include_extras=True)


def _with_file(config: Config, file: SettingsFile) -> Config:
    top, values = sections_in(file)
    return with_sections(config, values, file, top)


def sections_in(file: SettingsFile) -> tuple[Place, dict[str, Any]]:
    """The sections of settings in a file, or in the manifest that it is, and where they stand."""
    if "format" not in file.values or MANIFEST_KEY not in file.values:
        return (), dict(file.values)
    top, values = (MANIFEST_KEY,), file.values[MANIFEST_KEY]
    if not isinstance(values, dict):
        raise ConfigError(f"{file.at(top)}: {MANIFEST_KEY}: found {values!r}, expected sections with settings")
    return top, _as_it_was(values)


def _as_it_was(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says, with the settings that were not yet there when it was written as things were then."""
    policy = values.get("policy")
    return (
        {**values, "policy": {"overload": "share", "cost": "default", "reprieve": False, **policy}}
        if isinstance(policy, dict)
        else dict(values)
    )


def with_sections(config: Config, values: Mapping[str, Any], file: SettingsFile, top: Place = ()) -> Config:
    """``config`` changed by sections of settings, ``values``, which stand in ``file`` under ``top``.

    Raises :class:`ConfigError` naming file, line, section and key.
    """
    node = Node(file, top, values, len(top), "[{}]")
    changes: dict[str, Any] = {}
    for section, said in given(node.convert(_sections())).items():
        if section == "version":
            if said != FORMAT_VERSION:
                node.child(section).fail(f"{FORMAT_VERSION}, the version this one reads")
        elif section == "classes":
            changes[section] = _classes(said, node.child(section))
        elif said is not None:
            changes[section] = dataclasses.replace(getattr(config, section), **given(said))
    return dataclasses.replace(config, **changes)


def _classes(said: Sequence[Class], node: Node) -> tuple[ServiceClass, ...]:
    found: list[ServiceClass] = []
    for index, one in enumerate(said):
        here = node.child(index)
        window = None if one.window is UNSET else _window(here)
        try:
            made = one.made(window)
        except ConfigError as error:
            raise ConfigError(f"{node.file.at(here.place)}: {error}") from error
        if any(made.name == other.name for other in found):
            raise ConfigError(f"{here.where}: name: found {made.name!r} twice, expected different names")
        found.append(made)
    return tuple(found)


def _window(of_class: Node) -> Window | None:
    node = of_class.child("window")
    if node.value in (None, LIFETIME):
        return None
    fields = node.convert(WindowField)
    try:
        return fields.made()
    except ValueError as error:
        raise ConfigError(f"{node.where}: rolling: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"{node.where.removesuffix('.window').removesuffix(': window')}: {error}") from error


def _with_word(config: Config, word: str) -> Config:
    name, equals, text = word.partition("=")
    section, _, key = name.strip().partition(".")
    if not equals or not section or not key:
        raise ConfigError(f"setting {word!r}: expected SECTION.KEY=VALUE, for example policy.patience=30")
    if section == "classes":
        raise ConfigError(f"setting {name}: classes are given in a settings file, under 'classes:'")
    if section not in SECTIONS or key not in types_of(section):
        raise ConfigError(f"setting {name}: unknown, expected {nearest(name)}")
    types = types_of(section)[key]
    kind = Kind.of(types)
    value = _read(text.strip(), kind)
    try:
        value = msgspec.convert(value, types)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: bytes of a command that are no UTF-8
        raise ConfigError(f"setting {name}: found {value!r}, expected {kind.words(value)}") from error
    return dataclasses.replace(config, **{section: dataclasses.replace(getattr(config, section), **{key: value})})


def nearest(name: str) -> str:
    """What may have been meant by a SECTION.KEY that there is not."""
    section, _, key = name.strip().partition(".")
    if section in SECTIONS:
        return f"{section}.KEY with KEY " + expected_name(key, list(types_of(section)))
    near = get_close_matches(name, names(), 1)
    owners = [f"{one}.{key}" for one in SECTIONS if key in types_of(one)]
    return (owners or near or [f"a section, {expected_name(section, SECTIONS)}"])[0]


def _read(text: str, kind: Kind) -> object:
    """The value that a word stands for; the text itself where it cannot be one of ``kind``, to be refused later."""
    if kind.optional and text.lower() == "none":
        return None
    if kind.plain is bool:
        return TRUTH.get(text.lower(), text)
    if kind.plain in (int, float) and text.isascii() and "_" not in text:
        with suppress(ValueError):
            return kind.plain(text)
    return kind.number(text)
