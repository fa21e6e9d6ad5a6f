"""What a plan leaves beside its runs: the curve as a table and as a drawing."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

from slacktide import drawing, palette
from slacktide.drawing import Sheet
from slacktide.errors import ConfigError
from slacktide.experiment.goals import Score
from slacktide.experiment.planning import Answer, Plan, rows, summary
from slacktide.experiment.store import Store
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
    table = pa.table(rows(found)).replace_schema_metadata({"format": "slacktide-plan", "schema_version": "1"})
    for name, put in ((TABLE, pq.write_table), (TEXT, pyarrow.csv.write_csv)):
        content = io.BytesIO()
        put(table, content)
        contents[name] = content.getvalue()
    figure = drawn(found)
    contents[DRAWING] = drawing.alone(drawing.svg(figure, "plan", TITLE, str(found.question.goal)), modes=True).encode()
    contents[PICTURE] = drawing.png(figure)
    for sheet in drawing.PAPERS:
        contents[f"plan-{sheet.name}.pdf"] = drawing.pdf(drawn(found, sheet))
    store.remove(JSON)  # an answer is there with its own curve, or not at all
    for name, data in contents.items():
        store.write(name, data)
    store.write_json(JSON, summary(found))


def check_drawing() -> None:
    """Raises :class:`ConfigError` where drawing needs what is not installed; called before hours of runs."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"slacktide plan needs pip install 'slacktide[experiments]' ({error})") from error


def drawn(found: Plan, sheet: Sheet = drawing.PAGE) -> Any:
    """Against the number of hosts the share of each class that reached its SLO, and penalties; a line for each policy.

    A size that does not meet the goal is an empty mark; the answer is an upright line with its number.
    """
    classes = [name for name, share in _first(found).fulfilment.items() if not math.isnan(share)]
    every = [*classes, PENALTY]
    looks = palette.policies([one.policy for one in found.answers])
    with drawing.style(sheet):
        places = [every[at : at + 2] for at in range(0, len(every), 2)]
        made = drawing.panels(sheet, places, height=2.4, share=(True, False), below="hosts")
        for axes, name in made:
            for number, answer in enumerate(found.answers):
                _line(axes, answer, name, looks[answer.policy])
                _marked(axes, answer, looks[answer.policy], number)
            if name == PENALTY:
                axes.set_title("penalty, most of the seeds")
                axes.set_ylabel("cpu-seconds")
                axes.set_ylim(bottom=0.0)
                axes.yaxis.set_major_formatter("{x:,.0f}")
            else:
                _promised(axes, found, name)
        drawing.legend(sheet, made.figure, _handles(found, looks))
        return made.figure


def _first(found: Plan) -> Score:
    answer = found.answers[0]
    return answer.scores[min(answer.scores)][0]


def _line(axes: Any, answer: Answer, name: str, look: Look) -> None:
    sizes = sorted(answer.scores)
    if name == PENALTY:
        values = [max(one.penalty for one in answer.scores[size]) for size in sizes]
    else:
        values = [100.0 * min(one.fulfilment[name] for one in answer.scores[size]) for size in sizes]
    axes.plot(sizes, values, color=look.colour, linestyle=look.dash, linewidth=1.4)
    for size, value in zip(sizes, values, strict=True):
        fill = look.colour if answer.does[size] else palette.GROUND.light
        axes.plot([size], [value], marker=look.marker, color=look.colour, markerfacecolor=fill, markersize=4.5)


def _marked(axes: Any, answer: Answer, look: Look, number: int) -> None:
    """The answer, where there is one; answers of several policies are one below the other."""
    if answer.bracket.meets is None:
        return
    axes.axvline(answer.bracket.meets, color=look.colour, linewidth=1.0)
    axes.annotate(
        f"{answer.bracket.meets:,}", (answer.bracket.meets, 0.06 + 0.1 * number), xycoords=("data", "axes fraction"),
        xytext=(3, 0), textcoords="offset points", color=look.colour, fontsize="small", fontweight="bold",
    )  # fmt: skip


def _promised(axes: Any, found: Plan, name: str) -> None:
    over, target = found.question.windows.get(name), found.question.goal.targets.get(name)
    axes.set_title(drawing.label(f"{name} ({over})" if over else name, 30))
    axes.set_ylabel("reached the SLO, %")
    if target is not None and found.question.goal.budget is None:
        axes.axhline(100.0 * target, color=palette.TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    bottom = max(-2.0, min(axes.get_ylim()[0], 95.0))
    axes.set_ylim(bottom=bottom, top=100.0 + 0.05 * (100.0 - bottom))


def _handles(found: Plan, looks: Mapping[str, Look]) -> list[Any]:
    from matplotlib.lines import Line2D

    ink = palette.TEXT.light
    made = [
        Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, markersize=5,
               label=drawing.label(name))
        for name, look in looks.items()
    ]  # fmt: skip
    made.append(Line2D([], [], color=ink, linewidth=1.0, label="the answer"))
    if found.question.goal.budget is None:
        made.append(Line2D([], [], color=ink, linewidth=1.2, linestyle=(0, (1, 1)), label="goal"))
    empty = Line2D([], [], color=ink, label="empty: misses the goal", marker="o", linestyle="none", markersize=5)
    empty.set_markerfacecolor(palette.GROUND.light)
    return [*made, empty]
