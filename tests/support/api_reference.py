"""The reference of docs/python.md, made from signatures and docstrings: ``python tests/support/api_reference.py``."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import slacktide as st

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
BEGIN, END = "<!-- reference: begin -->", "<!-- reference: end -->"
WIDTH = 110
NAMES = (
    *("generate", "simulate", "plot", "plan", "report", "compare", "load", "past"),
    *("list_policies", "list_generators", "list_settings"),
)
FUNCTIONS: dict[str, Any] = {name: getattr(st, name) for name in NAMES}
CLASSES = ("Generated", "Result", "Simulation", "State", "Experiment", "Comparison", "CapacityPlan", "Past")


def signature(name: str, function: Any, *, method: bool = False) -> str:
    """Names and defaults, as NumPy's reference has them: types of arguments stand in the docstring."""
    found = inspect.signature(function)
    parameters = list(found.parameters.values())[1 if method else 0 :]
    texts, starred = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            texts.append("*")
            starred = True
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        starred = starred or stars == "*"
        default = "" if one.default is one.empty else f"={one.default!r}"
        texts.append(f"{stars}{one.name}{default}")
        if one.kind is one.POSITIONAL_ONLY:
            texts.append("/")
    back = "" if found.return_annotation in (found.empty, "None") else f" -> {found.return_annotation}"
    line = f"{name}({', '.join(texts)}){back}"
    return textwrap.fill(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def told(of: Any) -> str:
    """A docstring without the marks of reStructuredText, without a type that the signature gives already, and without
    errors: the page says of which kinds they are.
    """
    text = inspect.getdoc(of) or ""
    text = re.sub(r":\w+:`[~.]?(?:slacktide\.)?([^`]+)`", r"\1", text)
    text = re.sub(r"\n\n(?:Raises|Warns)\n-+\n[^\n]+(\n(?! *\n)[^\n]+)*", "", text)
    text = re.sub(r"\n\nReturns\n-+\n[^\n]+(\n    Itself\.)?(?=\n\n|$)", "", text)
    return re.sub(r"^(\w+)\n-{4,}$", r"\1:", text.replace("``", ""), flags=re.MULTILINE)


def entry(name: str, shown: str, of: Any) -> str:
    """A heading, the signature, and the docstring."""
    return f"### {name}\n\n```text\n{shown}\n\n{told(of)}\n```\n"


def members(kind: type) -> list[str]:
    """Public properties and methods, in the order of the source."""
    found = []
    for name, one in vars(kind).items():
        if name.startswith("_"):
            continue
        text = told(one if not isinstance(one, classmethod) else one.__func__)
        if callable(one) or isinstance(one, classmethod):
            function = one.__func__ if isinstance(one, classmethod) else one
            shown = signature(f".{name}", function, method=True)
        else:
            shown = f".{name}"
        found.append(f"{shown}\n{text}")
    return found


def reference() -> str:
    """All public functions and classes."""
    parts = [entry(f"st.{name}", signature(f"st.{name}", one), one) for name, one in FUNCTIONS.items()]
    for name in CLASSES:
        kind = getattr(st, name)
        head = (
            signature(f"st.{name}", kind.__init__, method=True)
            if name in ("Experiment", "Simulation")
            else f"class st.{name}"
        )
        parts.append(
            entry(f"st.{name}", head, kind).removesuffix("```\n") + "\n" + "\n\n".join(members(kind)) + "\n```\n"
        )
    return "\n".join(parts)


def written(page: str) -> str:
    """The page with the reference as it is now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{reference()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
