"""What a plan leaves beside its runs: the curve as a table and as a drawing."""

from __future__ import annotations

import io
import math
from typing import Any

from slacktide.errors import ConfigError
from slacktide.experiment.planning import Plan, rows, summary
from slacktide.experiment.store import Store

JSON, TABLE, TEXT, DRAWING, PICTURE = "plan.json", "plan.parquet", "plan.csv", "plan.svg", "plan.png"
MARKS = "osD^vP*X"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Told apart with any colour vision (Okabe and Ito); classes are told apart by marks as well."""


def write(found: Plan, store: Store) -> None:
    """plan.parquet, plan.csv, plan.svg, plan.png, and last plan.json. Raises :class:`OutputError`."""
    import matplotlib
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
    for name in (DRAWING, PICTURE):
        content = io.BytesIO()
        form = name.rpartition(".")[2]
        about = {"Title": "Capacity against fulfilment and penalty", "Date": None} if form == "svg" else {}
        with matplotlib.rc_context({"svg.hashsalt": "slacktide"}):  # the same names of parts every time
            figure.savefig(content, format=form, dpi=150, metadata=about)
        contents[name] = content.getvalue()
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


def drawn(found: Plan) -> Any:
    """Fulfilment of each class above, penalties below, against the number of hosts; a colour a policy, a mark a class.

    The answer is an upright line; a size that does not do is an empty mark.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for number, answer in enumerate(found.answers):
        colour = COLOURS[number % len(COLOURS)]
        sizes = sorted(answer.scores)
        for place, name in enumerate(answer.scores[sizes[0]][0].fulfilment):
            shares = [min(one.fulfilment[name] for one in answer.scores[size]) for size in sizes]
            if math.isnan(shares[0]):
                continue  # the workload has none of this class
            above.plot(sizes, shares, "-", color=colour, alpha=0.5)
            over = found.question.windows.get(name)
            label = _plain(f"{answer.policy}: {name}" + (f" ({over})" if over else ""))
            above.plot(sizes, shares, MARKS[place % len(MARKS)], color=colour, label=label, markersize=5)
        owed = [max(one.penalty for one in answer.scores[size]) for size in sizes]
        below.plot(sizes, owed, "-", color=colour, alpha=0.5, label=_plain(answer.policy))
        for size, value in zip(sizes, owed, strict=True):
            fill = colour if answer.does[size] else "white"
            below.plot([size], [value], "o", color=colour, markerfacecolor=fill, markersize=5)
        if answer.bracket.meets is not None:
            for axes in (above, below):
                axes.axvline(answer.bracket.meets, color=colour, linestyle="--", linewidth=1)
            below.annotate(
                f"{answer.bracket.meets} hosts",
                (answer.bracket.meets, 1 - 0.08 * (number + 1)),
                xycoords=("data", "axes fraction"),
                color=colour,
                xytext=(4, 0),
                textcoords="offset points",
            )
    above.set(
        ylabel="share that reached its SLO\n(least of the seeds)", ylim=(-0.02, 1.02), title=str(found.question.goal)
    )
    below.set(xlabel="hosts", ylabel="penalty, cpu-seconds\n(most of the seeds)")
    above.legend(fontsize="small")
    below.legend(fontsize="small", title="filled: meets the goal", title_fontsize="small")
    return figure


def _plain(text: str) -> str:
    """For a legend, which would read $ as mathematics and leave out what begins with _."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
