"""The columns of CSV and Parquet inputs: which there are, which must be there, which is which."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from difflib import get_close_matches

from slacktide.errors import InputWarning, remedy
from slacktide.inputs.problems import Problems

WORKLOAD_REQUIRED = ("id", "admission", "duration", "cpu", "memory", "class")
REQUEST_COLUMNS = ("kind", "instances", "completions", "parallelism", "approach", "scale")
MEMBER_COLUMNS = ("request",)
LABEL_COLUMNS = ("namespace", "owner", "name")
"""What people call a request: they go through to results."""
UNREAD_COLUMNS = ("user",)
"""Columns that a workload may have, and that a run has no use for: ``slacktide trace sample`` has."""
WORKLOAD_OPTIONAL = (
    *("job", "anti_affinity", "constraints", *REQUEST_COLUMNS, *MEMBER_COLUMNS, "resize", "lost", "grace", "unready"),
    *("marks", "rules", "preferences", "budget", "users", "data", "image", "preferred", "deadline", *UNREAD_COLUMNS),
    *LABEL_COLUMNS,
)
HOSTS_REQUIRED = ("id", "name", "cpu", "memory")
HOSTS_OPTIONAL = ("attributes",)
EVENTS_REQUIRED = ("time", "host", "event")
EVENTS_OPTIONAL = ("amounts", "marks")
RESOURCE_PREFIX = "resource:"
LIMIT_PREFIX = "limit:"


def check_header(
    found: Sequence[str],
    required: Sequence[str],
    optional: Sequence[str],
    problems: Problems,
    resources: bool = True,
    stay: bool = True,
) -> list[str]:
    """The columns that are read; of others :class:`InputWarning` warns where they ``stay`` behind.

    Raises :class:`InputError` naming every column that is missing, there twice, or called almost like another one.
    """
    _check_kind(found, required, problems)
    known = (*required, *optional)
    limits = [LIMIT_PREFIX + name.removeprefix(RESOURCE_PREFIX) for name in demand_columns(found)]
    if "users" not in optional:  # hosts have no limits
        limits = []
    line = 1 if problems.file.endswith(".csv") else 0
    missing = [name for name in required if name not in found]
    further = []
    for position, name in enumerate(found):
        if name in found[:position]:
            problems.add(line, name, "the column twice", "every column once")
        elif name not in known and name not in limits and not (resources and is_resource(name)):
            hint = _hint(name, (*known, *limits), resources)
            if hint is None:
                further.append(name)
            else:
                problems.add(line, name or f"column {position + 1}", "an unknown column", hint)
    for name in missing:
        near = get_close_matches(name, [other for other in found if other not in known], 1)
        said = ""
        if required == WORKLOAD_REQUIRED and name == missing[0]:
            how = remedy("--columns of simulate, inspect or trace scale", "'columns' of simulate and Simulation")
            said = f"; where columns are called otherwise, {how} says how"
        problems.add(line, name, "", "this column" + (f" (is it {near[0]!r}?)" if near else "") + said)
    problems.raise_if_any()
    if further and stay:
        are = "column stays" if len(further) == 1 else "columns stay"
        text = f"{problems.file}: {len(further)} further {are} behind: {', '.join(further)}"
        text += " (constraints refer to the column attributes: 'zone=a; disk=ssd')" * (required == HOSTS_REQUIRED)
        warnings.warn(text, InputWarning, stacklevel=2)
    return [name for name in found if name not in further]


def _check_kind(found: Sequence[str], required: Sequence[str], problems: Problems) -> None:
    """Raises :class:`InputError` for a file of the other kind or with other separators: one problem for all columns."""
    if len(found) == 1 and (other := next((one for one in (";", "\t", "|") if one in found[0]), None)):
        shown, typed = ("a tab", "\\t") if other == "\t" else (other, other)
        command = f"sed 'y/{typed},/,./' {problems.file} > commas.csv"
        problems.add(1, "", "", f"commas between columns; the separator is {shown}: {command}")
    elif "admission" in required and "admission" not in found and {*HOSTS_REQUIRED} <= {*found}:
        problems.add(0, "", "", "a workload, but this looks like a hosts file; give the files as WORKLOAD HOSTS")
    elif required == HOSTS_REQUIRED and {"admission", "duration"} <= {*found}:
        problems.add(0, "", "", "hosts, but this looks like a workload; give the files as WORKLOAD HOSTS")
    problems.raise_if_any()


def is_resource(name: str) -> bool:
    """Whether a column holds a further resource: ``resource:gpu`` does, ``resource:cpu`` would be cpu twice."""
    resource = name.removeprefix(RESOURCE_PREFIX)
    return name.startswith(RESOURCE_PREFIX) and bool(resource.strip()) and resource not in ("cpu", "memory")


def demand_columns(found: Sequence[str]) -> tuple[str, ...]:
    """The columns that hold amounts: cpu, memory, then further resources in the order of the file."""
    return ("cpu", "memory", *(name for name in found if name.startswith(RESOURCE_PREFIX)))


def resource_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The resources that amount columns hold."""
    return tuple(name.removeprefix(RESOURCE_PREFIX) for name in columns)


def limit_columns(found: Sequence[str]) -> tuple[str, ...]:
    """By resource, in the order of :func:`demand_columns`, the column of limits; () where there is none of them."""
    wanted = tuple(LIMIT_PREFIX + name.removeprefix(RESOURCE_PREFIX) for name in demand_columns(found))
    return wanted if any(name in found for name in wanted) else ()


def column_name(resource: str) -> str:
    """The column that holds a resource: the opposite of :func:`resource_names`."""
    return resource if resource in ("cpu", "memory") else RESOURCE_PREFIX + resource


def _hint(name: str, known: Sequence[str], resources: bool) -> str | None:
    """What an unknown column may be meant to be; None: nothing that is read."""
    near = get_close_matches(name.lower(), known, 1)
    if near:
        return f"{near[0]!r}"
    if name and not name.startswith((RESOURCE_PREFIX, LIMIT_PREFIX)):
        return None
    return "one of " + ", ".join(known) + (f" or {RESOURCE_PREFIX}NAME" if resources else "")
