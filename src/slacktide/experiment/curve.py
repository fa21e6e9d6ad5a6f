"""What a plan leaves beside its runs: the curve as a table and as a drawing."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slacktide import drawing, palette
from slacktide.drawing import Sheet
from slacktide.errors import ConfigError, fail
from slacktide.experiment.planning import FORMAT, VERSION, Plan, rows, summary
from slacktide.experiment.store import Store
from slacktide.metrics.penalties import ALL
from slacktide.palette import Look

JSON, TABLE, TEXT, DRAWING, PICTURE = "plan.json", "plan.parquet", "plan.csv", "plan.svg", "plan.png"
PENALTY = ""
"""Stands for the panel of penalties beside those of classes."""
TITLE = "Capacity against fulfilment and penalty"


def write(found: Plan, store: Store) -> None:
    """plan.parquet, plan.csv, plan.svg, plan.png, PDFs for papers, and last plan.json. Raises :class:`OutputError`."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    contents: dict[str, bytes] = {}
    table, about = pa.table(rows(found)), summary(found)
    marked = table.replace_schema_metadata({"format": FORMAT, "schema_version": str(VERSION)})
    for name, put in ((TABLE, pq.write_table), (TEXT, pyarrow.csv.write_csv)):
        content = io.BytesIO()
        put(marked, content)
        contents[name] = content.getvalue()
    figure = drawn(table.to_pylist(), about)
    contents[DRAWING] = drawing.alone(drawing.svg(figure, "plan", TITLE, str(found.question.goal)), modes=True).encode()
    contents[PICTURE] = drawing.png(figure)
    for sheet in drawing.PAPERS:
        contents[f"plan-{sheet.name}.pdf"] = drawing.pdf(drawn(table.to_pylist(), about, sheet))
    store.remove(JSON)  # an answer is there with its own curve, or not at all
    for name, data in contents.items():
        store.write(name, data)
    store.write_json(JSON, about)


def check_drawing() -> None:
    """Raises :class:`ConfigError` where drawing needs what is not installed; called before hours of runs."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"slacktide plan needs pip install 'slacktide[experiments]' ({error})") from error


def read(folder: Path) -> tuple[Any, dict[str, Any]]:
    """plan.parquet and plan.json. Raises :class:`InputError` for what :func:`write` has not written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = json.loads((folder / JSON).read_text(encoding="utf-8"))
        if (about["format"], about["schema_version"]) != (FORMAT, VERSION):
            raise fail(folder / JSON, f"format {FORMAT}, schema_version {VERSION}")
        return pq.ParquetFile(folder / TABLE).read(), about
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise fail(folder / JSON, f"what 'slacktide plan --out' writes ({error})") from error


Row = Mapping[str, Any]


def drawn(curve: Sequence[Row], about: Mapping[str, Any], sheet: Sheet = drawing.PAGE) -> Any:
    """Against the number of hosts the share of each class that reached its SLO, and penalties; a line for each policy.

    ``curve`` are the rows of the plan, ``about`` is its summary. A size that does not meet the goal is an empty mark;
    the answer is an upright line with its number.
    """
    shares = [one for one in curve if one["fulfilment"] is not None]
    every = [*dict.fromkeys(one["class"] for one in shares), PENALTY]
    looks = palette.policies(list(about["policies"]))
    with drawing.style(sheet):
        places = [every[at : at + 2] for at in range(0, len(every), 2)]
        made = drawing.panels(sheet, places, height=2.4, share=(True, False), below="hosts")
        for axes, name in made:
            here = [one for one in curve if one["class"] == (name or ALL)]
            for number, (policy, answer) in enumerate(about["policies"].items()):
                _line(axes, [one for one in here if one["policy"] == policy], name, looks[policy])
                _marked(axes, answer["hosts"], looks[policy], number)
            if name == PENALTY:
                axes.set_title("penalty, most of the seeds")
                axes.set_ylabel("cpu-seconds")
                axes.set_ylim(bottom=0.0)
                axes.yaxis.set_major_formatter("{x:,.0f}")
            else:
                _promised(axes, here[0])
        drawing.legend(sheet, made.figure, _handles(about, looks))
        return made.figure


def _line(axes: Any, rows: Sequence[Row], name: str, look: Look) -> None:
    sizes = [one["hosts"] for one in rows]
    values = [one["penalty"] if name == PENALTY else 100.0 * one["fulfilment"] for one in rows]
    axes.plot(sizes, values, color=look.colour, linestyle=look.dash, linewidth=1.4)
    for size, value, one in zip(sizes, values, rows, strict=True):
        fill = look.colour if one["meets"] else palette.GROUND.light
        axes.plot([size], [value], marker=look.marker, color=look.colour, markerfacecolor=fill, markersize=4.5)


def _marked(axes: Any, hosts: int | None, look: Look, number: int) -> None:
    """The answer, where there is one; answers of several policies are one below the other."""
    if hosts is None:
        return
    axes.axvline(hosts, color=look.colour, linewidth=1.0)
    axes.annotate(
        f"{hosts:,}", (hosts, 0.06 + 0.1 * number), xycoords=("data", "axes fraction"),
        xytext=(3, 0), textcoords="offset points", color=look.colour, fontsize="small", fontweight="bold",
    )  # fmt: skip


def _promised(axes: Any, one: Row) -> None:
    name, over, target = one["class"], one["window"], one["target"]
    axes.set_title(drawing.label(f"{name} ({over})" if over else name, 30))
    axes.set_ylabel("reached the SLO, %")
    if target is not None:
        axes.axhline(100.0 * target, color=palette.TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    bottom = max(-2.0, min(axes.get_ylim()[0], 95.0))
    axes.set_ylim(bottom=bottom, top=100.0 + 0.05 * (100.0 - bottom))


def _handles(about: Mapping[str, Any], looks: Mapping[str, Look]) -> list[Any]:
    from matplotlib.lines import Line2D

    ink = palette.TEXT.light
    made = [
        Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, markersize=5,
               label=drawing.label(name))
        for name, look in looks.items()
    ]  # fmt: skip
    made.append(Line2D([], [], color=ink, linewidth=1.0, label="the answer"))
    if about["goal"]["penalty"] is None:
        made.append(Line2D([], [], color=ink, linewidth=1.2, linestyle=(0, (1, 1)), label="goal"))
    empty = Line2D([], [], color=ink, label="empty: misses the goal", marker="o", linestyle="none", markersize=5)
    empty.set_markerfacecolor(palette.GROUND.light)
    return [*made, empty]
