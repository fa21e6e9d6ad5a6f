"""Who is promised what, where nobody has said it yet: a proposal from the data, as a file to edit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from slacktide import settings_file
from slacktide.config import Accounting
from slacktide.conversion import Node
from slacktide.errors import ConfigError, InputError, Problem, RefusedError
from slacktide.kube.translate.service_classes import CLASS_LABEL, DEFAULT_CLASS, SYSTEM_CRITICAL
from slacktide.model.durations import parse_share
from slacktide.model.service_class import ServiceClass
from slacktide.pasts.outcome import WorkloadLine
from slacktide.settings_file import SettingsFile
from slacktide.whole_file import write_whole

FILE = "promises.yaml"
OBJECTIVES = (0.9, 0.95, 0.99, 0.995, 0.999)
"""Usual objectives, ascending."""
REACHED_BY = 0.9
"""A group is offered the highest objective that so much of its workloads reached so far."""
NO_LABEL = "none"
"""The group of workloads without the label by which they are grouped."""
CONTENT = "classes and workloads as slacktide past writes them"
"""What the file holds."""
WAYS = ("priority", "namespace", "kind", "data", "label=KEY")
"""How workloads can be grouped into classes."""
NO_CLASS = "no-class"
"""The least important class of a proposal from a cluster's ServiceClasses: of workloads that have none there."""
HEAD = """\
# Who is promised what. Edit it, then: slacktide verdict {folder}
# slo: the share of its life for which a workload is to run. rank: 1 is the most important.
# Of the rules the first that fits a workload counts; what a rule does not name may be anything, * stands for any text.
"""


class _Class(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    slo: Annotated[float | str, msgspec.Meta(description="a share such as 0.99 or 99%")]
    rank: int


class Rule(msgspec.Struct, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Workloads that get a class: all that it names must fit."""

    class_: str = msgspec.field(name="class")
    namespace: str = "*"
    kind: str = "*"
    name: str = "*"
    priority_class: str = "*"
    label: str = ""

    def fits(self, one: WorkloadLine) -> bool:
        """Whether a workload gets this class."""
        asked = (self.namespace, self.kind, self.name, self.priority_class)
        said = (one.namespace, one.kind, one.name, one.priority_class)
        if not all(fnmatchcase(value, pattern) for value, pattern in zip(said, asked, strict=True)):
            return False
        key, _, value = self.label.partition("=")
        return not key or fnmatchcase(one.labels.get(key, ""), value)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    classes: list[_Class]
    workloads: list[Rule]


@dataclass(frozen=True, slots=True)
class Promises:
    """Classes, and which workload gets which."""

    classes: tuple[ServiceClass, ...]
    rules: tuple[Rule, ...]

    def of(self, one: WorkloadLine) -> ServiceClass | None:
        """What a workload is promised; None: no rule fits it."""
        named = next((rule.class_ for rule in self.rules if rule.fits(one)), None)
        return next((found for found in self.classes if found.name == named), None)


def propose_in(
    folder: Path, workloads: Sequence[WorkloadLine], way: str = "", accounting: Accounting = "always"
) -> None:
    """The proposal as the folder's file, unless there is one already and no way is asked for: somebody edited it."""
    proposed = propose(workloads, way, accounting)
    if way or not (folder / FILE).exists():
        write(proposed, folder)


def check(way: str) -> None:
    """Raises :class:`ConfigError` where workloads cannot be grouped so."""
    if way not in ("", "data"):
        _grouping(way)


def propose(workloads: Sequence[WorkloadLine], way: str = "", accounting: Accounting = "always") -> Promises:
    """Classes of groups of workloads, each with the highest usual objective that most of the group reached so far.

    ``way``: one of :data:`WAYS`; empty: by PriorityClass where there are several, else by what each was delivered.
    Where ServiceClasses of the cluster promise somebody something, they are the proposal: with no way, and by their
    label. Raises :class:`ConfigError` for another way.
    """
    if way in ("", f"label={CLASS_LABEL}") and any(one.promised for one in workloads):
        return _by_service_class(workloads, accounting)
    way = way or ("priority" if len({one.priority_class for one in workloads}) > 1 else "data")
    if way == "data":
        return _by_data(workloads, accounting)
    rule_of = _grouping(way)
    groups: dict[str, list[WorkloadLine]] = {}
    for one in workloads:
        groups.setdefault(rule_of(one)[0], []).append(one)
    weights = {group: float(max(one.priority for one in some)) for group, some in groups.items()}
    if way.startswith("label=") and NO_LABEL in weights:
        weights[NO_LABEL] = -math.inf  # who is not named is not more important than who is
    ordered = sorted(groups, key=lambda group: (-weights[group], group))
    ranks = _ranks([weights[group] for group in ordered])
    classes, rules = [], []
    for group, rank in zip(ordered, ranks, strict=True):
        name = _class_name(group)
        classes.append(ServiceClass(name, _objective([one.delivered[accounting] for one in groups[group]]), rank))
        rules.append(Rule(class_=name, **rule_of(groups[group][0])[1]))
    return Promises(tuple(classes), tuple(rules))


def _grouping(way: str) -> Callable[[WorkloadLine], tuple[str, dict[str, Any]]]:
    """The group of a workload, and what a rule says of it."""
    if way == "priority":
        return lambda one: (one.priority_class or f"priority-{one.priority}", {"priority_class": one.priority_class})
    if way == "namespace":
        return lambda one: (one.namespace, {"namespace": one.namespace})
    if way == "kind":
        return lambda one: (one.kind.lower(), {"kind": one.kind})
    if way.startswith("label=") and len(way) > len("label="):
        key = way.removeprefix("label=")
        return lambda one: (one.labels.get(key, "") or NO_LABEL, {"label": f"{key}={one.labels.get(key, '')}"})
    raise ConfigError(f"--promise: found {way!r}, expected one of {', '.join(WAYS)}")


def _by_service_class(workloads: Sequence[WorkloadLine], accounting: Accounting) -> Promises:
    """What the cluster promises; an SLO of a workload's own makes a class of its own. Whoever has no class there is the
    least important. Critical pods of the system are promised no share there, so that they get what they reached."""
    groups: dict[ServiceClass | None, list[WorkloadLine]] = {}
    for one in sorted(workloads, key=lambda one: one.full_name):
        found = one.promised and ServiceClass(_class_name(one.promised.name), one.promised.slo, one.promised.rank)
        groups.setdefault(found, []).append(one)
    least = max(found.rank for found in groups if found is not None) + 1
    classes, of = [], dict[str, str]()
    for found, some in groups.items():
        promise = found or ServiceClass(NO_CLASS, OBJECTIVES[0], least)
        if found is None or found.name == _class_name(SYSTEM_CRITICAL.metadata.name):
            promise = replace(promise, slo=_objective([one.delivered[accounting] for one in some]))
        classes.append(promise)
        of |= dict.fromkeys((one.full_name for one in some), promise.name)
    rules = []
    for one in sorted(workloads, key=lambda one: one.full_name):
        named, gets = one.labels.get(CLASS_LABEL, ""), of[one.full_name]
        if gets != (named or NO_CLASS):  # by a default, an annotation, or a label that is of no use
            rules.append(Rule(class_=gets, namespace=one.namespace, kind=one.kind, name=one.name))
    labelled = {one.labels.get(CLASS_LABEL, "") for one in workloads}
    classes.sort(key=lambda one: (one.rank, one.name))
    rules += [Rule(class_=one.name, label=f"{CLASS_LABEL}={one.name}") for one in classes if one.name in labelled]
    if None in groups:
        rules.append(Rule(class_=NO_CLASS))
    return Promises(tuple(classes), tuple(rules))


def _by_data(workloads: Sequence[WorkloadLine], accounting: Accounting) -> Promises:
    of = {one.full_name: _objective([one.delivered[accounting]]) for one in workloads}
    used = sorted(set(of.values()), reverse=True)
    names = {slo: "slo-" + f"{slo:g}".partition(".")[2] for slo in used}
    classes = [ServiceClass(names[slo], slo, rank) for rank, slo in enumerate(used, 1)]
    rules = [
        Rule(class_=names[of[one.full_name]], namespace=one.namespace, kind=one.kind, name=one.name)
        for one in sorted(workloads, key=lambda one: one.full_name)
    ]
    return Promises(tuple(classes), tuple(rules))


def _objective(delivered: Sequence[float]) -> float:
    """The highest usual objective that most of them reached; the lowest, where they reached none."""
    reached = [slo for slo in OBJECTIVES if sum(one >= slo for one in delivered) >= REACHED_BY * len(delivered)]
    return max(reached, default=OBJECTIVES[0])


def _ranks(priorities: Sequence[float]) -> list[int]:
    """1 for the highest priority; equal ones are equally important."""
    known = sorted(set(priorities), reverse=True)
    return [known.index(one) + 1 for one in priorities]


def _class_name(group: str) -> str:
    """A name that a ServiceClass may have."""
    text = "".join(one if one.isascii() and (one.isalnum() or one in "-.") else "-" for one in group.lower())
    return text.strip("-.") or "none"


def write(promises: Promises, folder: Path) -> None:
    """The file that people edit. Raises :class:`OutputError`."""
    content = {
        "classes": [{"name": one.name, "slo": one.slo, "rank": one.rank} for one in promises.classes],
        "workloads": [msgspec.to_builtins(rule) for rule in promises.rules],
    }
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
    write_whole(folder / FILE, HEAD.format(folder=folder) + text)


def read(path: Path) -> Promises:
    """What people made of it. Raises :class:`InputError` naming the field and the value."""
    try:
        found = settings_file.read(path, "promises", CONTENT)
        said = Node(found, (), found.values, index="[{}]").convert(_File)
    except ConfigError as error:
        raise RefusedError([str(error)]) from None
    return Promises(_classes(found, said), _checked(found, said))


def ways(promises: Promises) -> list[str]:
    """How workloads come to the classes of a cluster as the rules say, a line each."""
    by_priority, lines = [], []
    for rule in promises.rules:
        said = msgspec.to_builtins(rule)
        name, asked = said.pop("class"), " and ".join(f"{field} {value}" for field, value in said.items())
        if set(said) == {"priorityClass"} and "*" not in rule.priority_class:
            by_priority.append(f"{rule.priority_class}={name}")
        elif set(said) == {"namespace"} and "*" not in rule.namespace:
            lines.append(f"kubectl label namespace {rule.namespace} {DEFAULT_CLASS}={name}")
        elif said != {"label": f"{CLASS_LABEL}={name}"}:  # whoever has the label needs it no more
            lines.append(f"label pod templates of {asked or 'all others'} with {CLASS_LABEL}: {name}")
    if by_priority:
        lines.append(f"slacktide run --set kube.priority_classes={','.join(by_priority)}")
    return lines


def _classes(file: SettingsFile, said: _File) -> tuple[ServiceClass, ...]:
    found: dict[str, ServiceClass] = {}
    for number, one in enumerate(said.classes):
        try:
            slo = parse_share(one.slo) if isinstance(one.slo, str) else one.slo
            if one.name in found:
                raise ConfigError(f"name: found {one.name!r} twice, expected each name once")
            found[one.name] = ServiceClass(one.name, slo, one.rank)
        except (ConfigError, ValueError) as error:
            line = file.lines.get(("classes", number), 0)
            raise _broken(file.name, line, f"classes[{number}]", str(error)) from None
    return tuple(found.values())


def _checked(file: SettingsFile, said: _File) -> tuple[Rule, ...]:
    names = [one.name for one in said.classes]
    for number, rule in enumerate(said.workloads):
        if rule.class_ not in names:
            where = f"workloads[{number}].class"
            line = file.lines.get(("workloads", number), 0)
            raise InputError([Problem(file.name, line, where, rule.class_, f"one of {', '.join(names) or 'no class'}")])
    return tuple(said.workloads)


def _broken(path: Path | str, line: int, field: str, expected: str) -> InputError:
    return InputError([Problem(str(path), line, field, "", expected)])


def summary(promises: Promises, workloads: Sequence[WorkloadLine]) -> Mapping[str, int]:
    """How many workloads get which class."""
    counts = dict.fromkeys((one.name for one in promises.classes), 0)
    for one in workloads:
        found = promises.of(one)
        if found is not None:
            counts[found.name] += 1
    return counts
