"""``slacktide edge replay``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE, echo_json
from slacktide.cli.text import table

if TYPE_CHECKING:
    from slacktide.edge.replay import Line


@click.command()
@click.argument("folder", type=FILE, default=Path("examples/edge"))
@click.option("--seeds", type=click.IntRange(1, 10_000), default=20, show_default=True, help="So many draws of ties.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the tables.")
def replay(folder: Path, seeds: int, as_json: bool) -> None:
    """Replays the published scenarios with all six methods: where each puts its pods, what delay users see, and when
    the work is done.

    FOLDER has run.yaml and the scenarios (examples/edge, of this repository, by default). Placements are those of
    'slacktide simulate' under the policies of these names; what follows from them is computed by processor sharing
    (docs/edge.md). All delays are seconds, means over the pods and the draws.
    """
    from slacktide.edge.replay import replay as lines_of_all

    lines = lines_of_all(folder, seeds)
    if as_json:
        echo_json({"lines": [_plain(line) for line in lines]})
        return
    for scenario in dict.fromkeys(line.scenario for line in lines):
        click.echo(_text(scenario, [line for line in lines if line.scenario == scenario]))


def _plain(line: Line) -> dict[str, object]:
    pods = [{"pods": dict(zip(line.nodes, one, strict=True)), "runs": runs} for one, runs in line.pods.items()]
    loads = {
        load: {"processing": one.processing, "network": one.network, "completion": one.completion}
        for load, one in line.loads.items()
    }
    return {"scenario": line.scenario, "method": line.method, "placements": pods, "loads": loads}


def _text(scenario: str, lines: list[Line]) -> str:
    loads = list(lines[0].loads)
    head = (scenario, "pods on " + "/".join(lines[0].nodes))
    rows = []
    for line in lines:
        pods = ", ".join("/".join(map(str, one)) for one in line.pods)
        numbers = [f"{value:.2f}" for load in loads for value in _numbers(line, load)]
        rows.append((line.method, pods, *numbers))
    columns = [f"{load}: {name}" for load in loads for name in ("processing", "network", "done")]
    return table((*head, *columns), rows, left=2) + "\n"


def _numbers(line: Line, load: str) -> tuple[float, float, float]:
    column = line.loads[load]
    return column.processing, column.network, column.completion
