"""One way to draw: matplotlib without a display, the same bytes for the same data, text that stays text."""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from slacktide.palette import AXIS, GRID, GROUND, INKS, MUTED, TEXT, css

PNG_DPI = 160
LONGEST_LABEL = 28
MM = 1 / 25.4
"""Inches of a millimetre."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a figure is drawn for.

    name     of its files: ``KEY-NAME.pdf``
    width    of the figure, inches
    font     size of its text, points
    tall     by how much a panel is as high as on the page
    columns  so many panels stand side by side at most
    letters  so many letters fit over the whole width
    """

    name: str
    width: float
    font: float
    tall: float
    columns: int
    letters: int

    @property
    def slim(self) -> bool:
        """Whether it is a single column."""
        return self.columns <= 2


PAGE = Sheet("page", 9.0, 9.0, 1.0, 6, 110)
"""The page of the report, on a screen and on paper."""
DOUBLE = Sheet("180mm", 180 * MM, 7.5, 0.8, 4, 100)
"""Both columns of a paper."""
SINGLE = Sheet("85mm", 85 * MM, 7.0, 0.72, 2, 50)
"""One column of a paper, and a phone."""
PAPERS = (SINGLE, DOUBLE)


def sheet_for(width: float | None) -> Sheet:
    """A sheet of this width, mm, made as the next of the three is; the page's if none is given."""
    if width is None:
        return PAGE
    near = min((SINGLE, DOUBLE, PAGE), key=lambda one: abs(math.log(width * MM / one.width)))
    scale = width * MM / near.width
    return replace(near, name=f"{width:g}mm", width=width * MM, letters=max(20, round(near.letters * scale)))


SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": "medium",
    "xtick.labelsize": 0.95,
    "ytick.labelsize": 0.95,
    "legend.fontsize": "medium",
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
    "pdf.fonttype": 42,  # text in a PDF stays text
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


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Panels(Generic[P]):
    """A figure being drawn and its panels, row by row: the axes of each, and what it shows; ``columns`` across."""

    figure: Any
    rows: list[list[tuple[Any, P]]]
    columns: int

    def __iter__(self) -> Iterator[tuple[Any, P]]:
        return (one for row in self.rows for one in row)

    @property
    def first(self) -> list[Any]:
        """The leftmost axes of each row, which name the y axis."""
        return [row[0][0] for row in self.rows]


@contextlib.contextmanager
def style(sheet: Sheet = PAGE) -> Iterator[None]:
    """Everything that draws runs in here: our settings and nobody else's."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A glyph that the measuring font lacks is drawn by the reader's browser with a font that has it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        settings: Any = mpl.rcParams  # its keys are typed one by one
        ticks = dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), sheet.font * 0.95)
        settings.update({**SETTINGS, **ticks, "font.size": sheet.font})
        yield


def panels(
    sheet: Sheet,
    places: Sequence[Sequence[P | None]],
    *,
    height: float,
    share: tuple[bool | str, bool | str],
    below: str = "",
    width: float | None = None,
) -> Panels[P]:
    """Small multiples, a panel for each of ``places``, each ``height`` inches high on the page.

    They stand as :func:`arranged` says. ``share`` says whether x and y are; the lowest panel of each column names its x
    axis ``below``.
    """
    from matplotlib.figure import Figure

    rows = arranged(places, sheet.columns)
    across = max(map(len, rows))
    size = min(sheet.width, width or sheet.width), height * sheet.tall * len(rows) + 0.083 * sheet.font
    figure: Any = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(rows), across, squeeze=False, sharex=share[0], sharey=share[1])
    shown: list[list[tuple[Any, P]]] = [[] for _ in rows]
    lowest: dict[int, Any] = {}
    for line, row, panels_of in zip(axes, rows, shown, strict=True):
        for at, (one, place) in enumerate(zip_longest(line, row)):
            if place is None:
                one.remove()
            else:
                panels_of.append((one, place))
                lowest[at] = one
        panels_of[0][0].tick_params(labelleft=True)
    for one in lowest.values():
        one.tick_params(labelbottom=True)
        one.set_xlabel(below)
    return Panels(figure, shown, across)


def arranged(places: Sequence[Sequence[P | None]], columns: int) -> list[list[P | None]]:
    """``places`` in rows of at most so many. What is one column there is one here, and None leaves its place empty; of
    more columns than fit the first ones stand above the others. A single column, or one in which most places would be
    empty, is none: its panels follow one another.
    """
    across = [column for column in zip_longest(*places) if any(one is not None for one in column)]
    rows = [list(row) for row in zip(*across, strict=True) if any(one is not None for one in row)]
    width = min(columns, 3)
    if len(across) > columns:
        parts = [[row[at : at + width] for row in rows] for at in range(0, len(across), width)]
        return [row for part in parts for row in arranged(part, columns)]
    used: list[P | None] = [one for row in rows for one in row if one is not None]
    if len(across) > 1 and 2 * len(used) > len(rows) * len(across):
        return rows
    return [used[at : at + width] for at in range(0, len(used), width)]


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    """A name as it fits into a drawing: one line, no control characters, the end cut off where it is long."""
    clean = _CONTROL.sub("\ufffd", name)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def legend(sheet: Sheet, figure: Any, handles: Sequence[Any], columns: int = 5) -> None:
    """Above all panels, to the left, whole: a figure of few panels is narrower than its sheet."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    longest = max((len(one.get_label()) for one in handles), default=0)
    wanted = min(columns, max(1, sheet.letters // (longest + 9)), max(len(handles), 1))
    canvas: Any = FigureCanvasAgg(figure)
    measured = canvas.get_renderer()
    for fit in range(wanted, 0, -1):
        made = figure.legend(
            handles=list(handles), loc="outside upper left", ncols=fit,
            handlelength=3.2, handleheight=1.1, columnspacing=1.6, borderaxespad=0.1,
        )  # fmt: skip
        width = made.get_window_extent(measured).width / figure.dpi
        if fit == 1 or width <= figure.get_figwidth():
            break
        made.remove()
    figure.set_figwidth(max(figure.get_figwidth(), width))
    more = -(-len(handles) // fit) - -(-len(handles) // wanted)
    figure.set_figheight(figure.get_figheight() + more * 1.7 * sheet.font / 72.0)


def nothing(axes: Any, text: str) -> None:
    """An empty panel that says why it is."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED.light)


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


def alone(svg_text: str, *, modes: bool = False) -> str:
    """A drawing of :func:`svg` as a file of its own, in the light colours, which every program understands.

    With ``modes`` it follows the reader's light or dark mode, as a page with pictures in it does.
    """
    if modes:
        dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {css('dark')} }} }}"
        text = svg_text.replace(">", f"><style>:root {{ {css('light')} }} {dark}</style>", 1)
    else:
        text = _VARIABLE.sub(r"\1", svg_text)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + text + "\n"


def png(figure: Any) -> bytes:
    """The drawing as PNG, in the light colours."""
    out = io.BytesIO()
    with style():
        figure.savefig(out, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return out.getvalue()


def pdf(figure: Any) -> bytes:
    """The drawing as PDF, in the light colours, its text as text."""
    out = io.BytesIO()
    with style():
        figure.savefig(out, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
    return out.getvalue()


def _rewritten(tag: str, key: str, used: set[str]) -> str:
    """A tag with shorter numbers, our font and colours; ids that are referred to carry the figure's key, others go."""
    tag = _ID.sub(lambda found: f' id="{key}-{found[1]}"' if found[1] in used else "", tag)
    tag = re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", tag)
    tag = _FONT.sub("system-ui, sans-serif", tag)
    tag = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag)
    tag = _PAINT.sub(r' style="\1: \2"', tag)
    return _COLOUR.sub(lambda one: _VARIABLES.get(one[0], one[0]), tag)
