"""Public names say in NumPy's form what they take and give."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import slacktide as st
from support.api_reference import CLASSES, FUNCTIONS


def public() -> Iterator[tuple[str, Any, str]]:
    """Name, what has the signature, and the docstring of all functions, methods and classes that one calls."""
    for name, one in FUNCTIONS.items():
        yield name, one, inspect.getdoc(one) or ""
    for kind in (getattr(st, name) for name in CLASSES):
        if kind in (st.Experiment, st.Simulation):
            yield kind.__name__, kind.__init__, inspect.getdoc(kind) or ""
        for name, one in vars(kind).items():
            function = one.__func__ if isinstance(one, classmethod) else one
            if inspect.isfunction(function) and not name.startswith("_"):
                yield f"{kind.__name__}.{name}", function, inspect.getdoc(function) or ""


PUBLIC = list(public())


def section(text: str, name: str) -> str:
    found = re.search(rf"(?m)^{name}\n-{{{len(name)}}}\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize(("name", "function", "text"), PUBLIC, ids=[name for name, _, _ in PUBLIC])
def test_parameters_and_returns_are_told(name: str, function: Any, text: str) -> None:
    found = inspect.signature(function)
    stars: dict[Any, str] = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    taken = [stars.get(one.kind, "") + one.name for one in found.parameters.values() if one.name not in ("self", "cls")]
    heads = [line.partition(" : ")[0] for line in section(text, "Parameters").splitlines() if line[:1].strip()]
    assert sorted(word for head in heads for word in head.split(", ")) == sorted(taken), name
    if found.return_annotation not in (inspect.Signature.empty, None, "None"):
        assert section(text, "Returns").strip(), name
    assert text.splitlines()[0].endswith("."), "the first line is a sentence"
