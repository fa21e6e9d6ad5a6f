"""One way to draw: matplotlib without a display, the same bytes for the same data, text that stays text."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from slacktide.palette import AXIS, GRID, GROUND, INKS, MUTED, TEXT

PNG_DPI = 160
LONGEST_LABEL = 28
SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "text.parse_math": False,  # names are the user's: a dollar is a dollar
    "text.color": TEXT.light,
    "axes.labelcolor": TEXT.light,
    "axes.titlecolor": TEXT.light,
    "axes.edgecolor": AXIS.light,
    "xtick.color": AXIS.light,
    "ytick.color": AXIS.light,
    "xtick.labelcolor": TEXT.light,
    "ytick.labelcolor": TEXT.light,
    "axes.facecolor": GROUND.light,
    "figure.facecolor": GROUND.light,
    "savefig.facecolor": GROUND.light,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID.light,
    "grid.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "slacktide",
    "path.simplify": True,
    "axes.formatter.useoffset": False,
}
_TAG = re.compile(r"<[^>]+>")
_ID = re.compile(r' id="([^"]+)"')
_COLOUR = re.compile(r"(?<=: )#[0-9a-f]{6}\b")
_PAINT = re.compile(r' (fill|stroke)="(#[0-9a-f]{6})"')
"""Colours that are attributes, as in hatches; variables need a style."""
_FONT = re.compile(r"('DejaVu Sans'|DejaVu Sans)(, sans-serif)?")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_VARIABLES = {one.light: f"var(--{one.name}, {one.light})" for one in INKS}
_VARIABLE = re.compile(r"var\(--[\w-]+, (#[0-9a-f]{6})\)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Panels:
    """A figure being drawn and its axes, ``axes[row][column]``, all of one size."""

    figure: Any
    axes: list[list[Any]]


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Everything that draws runs in here: our settings and nobody else's."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A glyph that the measuring font lacks is drawn by the reader's browser with a font that has it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        settings: Any = mpl.rcParams  # its keys are typed one by one
        settings.update(SETTINGS)
        yield


def panels(
    rows: int, columns: int, *, width: float = 9.0, height: float = 2.2, share: tuple[bool | str, bool | str]
) -> Panels:
    """Small multiples, ``rows`` x ``columns``, each ``height`` inches high; ``share`` says whether x and y are."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width, height * rows + 0.75), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share[0], sharey=share[1])
    return Panels(figure, [list(row) for row in axes])


def trim(made: Panels, used: int, below: str) -> None:
    """Leaves the first ``used`` of the panels; the lowest of each column tells its x axis, named ``below``."""
    columns = len(made.axes[0])
    every = [one for line in made.axes for one in line]
    for one in every[used:]:
        one.remove()
    for one in every[max(used - columns, 0) : used]:
        one.tick_params(labelbottom=True)
        one.set_xlabel(below)


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    """A name as it fits into a drawing: one line, no control characters, the end cut off where it is long."""
    clean = _CONTROL.sub("\ufffd", name)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def legend(figure: Any, handles: Sequence[Any], columns: int = 5) -> None:
    """Above all panels, to the left."""
    figure.legend(
        handles=list(handles), loc="outside upper left", ncols=min(columns, max(len(handles), 1)), handlelength=3.2,
        handleheight=1.1, columnspacing=1.6, borderaxespad=0.1,
    )  # fmt: skip


def nothing(axes: Any, text: str) -> None:
    """An empty panel that says why it is."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED.light, fontsize=9)


def svg(figure: Any, key: str, title: str, description: str) -> str:
    """The drawing as SVG text for a page: named for screen readers, ids of its own, colours as CSS variables.

    ``key`` is unique within the page (letters, digits, hyphens).
    """
    out = io.StringIO()
    with style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        figure.set_layout_engine("none")  # it is laid out now, and stays so
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    head, body = text.split(">", 1)
    view = re.search(r'viewBox="([^"]+)"', head)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = _TAG.sub(lambda found: _rewritten(found[0], key, used), body)
    size = view[1] if view else "0 0 100 100"
    _, _, width, height = size.split()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{size}" '
        f'width="{float(width):g}" height="{float(height):g}" role="img" '
        f'aria-labelledby="{key}-t" aria-describedby="{key}-d">'
        f'<title id="{key}-t">{escape(_CONTROL.sub("", title))}</title>'
        f'<desc id="{key}-d">{escape(_CONTROL.sub("", description))}</desc>{body.strip()}'
    )


def alone(svg_text: str) -> str:
    """A drawing of :func:`svg` as a file of its own, in the light colours, which every program understands."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + _VARIABLE.sub(r"\1", svg_text) + "\n"


def png(figure: Any) -> bytes:
    """The drawing as PNG, in the light colours."""
    out = io.BytesIO()
    with style():
        figure.savefig(out, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return out.getvalue()


def _rewritten(tag: str, key: str, used: set[str]) -> str:
    """A tag with shorter numbers, our font and colours; ids that are referred to carry the figure's key, others go."""
    tag = _ID.sub(lambda found: f' id="{key}-{found[1]}"' if found[1] in used else "", tag)
    tag = re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", tag)
    tag = _FONT.sub("system-ui, sans-serif", tag)
    tag = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag)
    tag = _PAINT.sub(r' style="\1: \2"', tag)
    return _COLOUR.sub(lambda one: _VARIABLES.get(one[0], one[0]), tag)
