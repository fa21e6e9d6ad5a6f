"""The verdict as one page: self-contained, without scripts, in light and dark."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

from slacktide import __version__
from slacktide.for_people import counted, share
from slacktide.model.durations import write_duration
from slacktide.palette import css
from slacktide.verdict.judging import CALLED, Verdict
from slacktide.verdict.runs import KUBERNETES, SLACKTIDE
from slacktide.whole_file import write_whole

PAGE = "verdict.html"


def write(found: Verdict, path: Path) -> None:
    """The page, whole or not at all. Raises :class:`OutputError`."""
    write_whole(path, page(found))


def page(found: Verdict) -> str:
    """Its text. All names are escaped by the template, whatever they are."""
    from jinja2 import Environment, StrictUndefined

    here = resources.files("slacktide.verdict")
    colours = f":root{{{css('light')}}}@media (prefers-color-scheme: dark){{:root{{{css('dark')}}}}}"
    style = colours + here.joinpath("verdict.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(f"\n{style}\n".encode()).digest()).decode()
    template = Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined).from_string(
        here.joinpath("verdict.html.j2").read_text(encoding="utf-8")
    )
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return template.render(
        policy=policy, version=__version__, css=style, sentences=found.sentences(), found=found,
        lasted=write_duration(max(1, round(found.seconds))), sizes=_sizes(found), called=CALLED, whole=found.kept[-1],
        numbers=_numbers, counted=counted, share=share, sides=(KUBERNETES, SLACKTIDE),
    )  # fmt: skip


def _sizes(found: Verdict) -> list[dict[str, Any]]:
    """A row for each number of nodes tried: which part of the draws keeps all."""
    tried = sorted({size for one in found.sizes.values() for size in one.shares})
    return [{"nodes": size, **{name: one.shares.get(size) for name, one in found.sizes.items()}} for size in tried]


def _numbers(value: float | None) -> str:
    """A count, or a mean of counts."""
    if value is None:
        return "not known"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
