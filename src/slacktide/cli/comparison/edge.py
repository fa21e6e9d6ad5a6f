"""``slacktide edge``: the published testbed at the edge."""

from __future__ import annotations

from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE, echo_json
from slacktide.cli.shell.suggesting import HelpfulGroup
from slacktide.cli.text import table

if TYPE_CHECKING:
    from slacktide.edge.emulation.compare import Emulated
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
        echo_json({"lines": [_replayed(line) for line in lines]})
        return
    for scenario in dict.fromkeys(line.scenario for line in lines):
        click.echo(_replay_table(scenario, [line for line in lines if line.scenario == scenario]))


def _replayed(line: Line) -> dict[str, object]:
    loads = {load: asdict(one) for load, one in line.loads.items()}
    return {"scenario": line.scenario, "method": line.method, "placements": _placements(line), "loads": loads}


def _placements(line: Line | Emulated) -> list[dict[str, object]]:
    return [{"pods": dict(zip(line.nodes, one, strict=True)), "runs": runs} for one, runs in line.pods.items()]


def _pods(line: Line | Emulated) -> str:
    return ", ".join("/".join(map(str, one)) for one in line.pods)


def _replay_table(scenario: str, lines: list[Line]) -> str:
    loads = list(lines[0].loads)
    head = (scenario, "pods on " + "/".join(lines[0].nodes))
    rows = []
    for line in lines:
        numbers = [f"{value:.2f}" for load in loads for value in astuple(line.loads[load])]
        rows.append((line.method, _pods(line), *numbers))
    columns = [f"{load}: {name}" for load in loads for name in ("processing", "network", "done")]
    return table((*head, *columns), rows, left=2) + "\n"


COLUMNS = ("pods on", "processing", "network", "done", "from", "to", "place", "simulated", "place")


@click.command()
@click.argument("folder", type=FILE, default=Path("examples/edge"))
@click.option("--scenario", "number", type=click.IntRange(1), metavar="N", help="This one only.  [default: all]")
@click.option("--method", "names", multiple=True, metavar="NAME", help="As in 'edge replay'; may be given repeatedly.")
@click.option("--load", type=click.Choice(["low", "high"]), default="low", show_default=True)
@click.option("--iterations", type=click.IntRange(1), metavar="N", help="Whose work a pod has.  [default: the load's]")
@click.option(
    "--requests", type=click.IntRange(1), metavar="N", help="Of each pod's users.  [default: half of the load's]"
)
@click.option("--daemons/--no-daemons", default=True, show_default=True, help="Pods have what 'run.yaml' leaves.")
@click.option(
    "--deviation/--no-deviation",
    default=True,
    show_default=True,
    help="Answers to other nodes take the deviation of equation 11 longer.",
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True, help="Runs of each method.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the tables.")
def emulate(
    folder: Path,
    number: int | None,
    names: tuple[str, ...],
    load: str,
    iterations: int | None,
    requests: int | None,
    daemons: bool,
    deviation: bool,
    repeats: int,
    as_json: bool,
) -> None:
    """Runs the published scenarios with real work: nodes are network namespaces with a CPU quota, pods compute FFT
    iterations for the processor time of 'run.yaml', and users fetch their results over links with a delay.

    Needs Linux, root, the program 'ip' and control groups (version 1 or 2) that may be written. FOLDER is as for
    'edge replay', and so are placements. vCPUs are scaled down equally so that the machine holds them all. Times are
    seconds, means over the runs: processing of a pod, network delay of one request, and when the last user has
    everything; 'simulated' is what 'edge replay' says of the same placements (docs/edge.md).
    """
    from slacktide.edge.emulation.compare import Effort, compare, methods, placements, scenarios
    from slacktide.edge.emulation.run import Emulation
    from slacktide.edge.testbed import read_run

    wanted = methods(names)
    behaviour = read_run(folder / "run.yaml")
    effort = Effort(load, iterations or 0, requests or 0, repeats)
    told = []
    for path, testbed in scenarios(folder, number):
        # Says what is missing, before anything is computed.
        emulation = Emulation(testbed, behaviour if daemons else None, deviation=deviation)
        chosen = {method: placements(path, testbed, method, repeats) for method in wanted}
        with emulation:
            click.echo(f"{testbed.name}: a vCPU is {emulation.factor:.3f} of this machine's cores", err=True)
            lines = []
            for line in compare(emulation, chosen, behaviour, effort):
                click.echo(f"{testbed.name}: {line.method}: {line.completion:.2f} s", err=True)
                lines.append(line)
        told.append(
            {"scenario": testbed.name, "factor": emulation.factor, "lines": [_emulated(line) for line in lines]}
        )
        if not as_json:
            click.echo(_emulation_table(lines))
    if as_json:
        echo_json({"load": load, "scenarios": told})


def _emulated(line: Emulated) -> dict[str, object]:
    iterations = dict(zip(("least", "most"), line.iterations, strict=True))
    return {
        "method": line.method,
        "placements": _placements(line),
        "runs": line.runs,
        "completion": line.completion,
        "processing": line.processing,
        "network": line.network,
        "iterations": iterations,
        "simulated": line.simulated,
    }


def _emulation_table(lines: list[Emulated]) -> str:
    head = (lines[0].scenario, COLUMNS[0] + " " + "/".join(lines[0].nodes), *COLUMNS[1:])
    mine = sorted(line.completion for line in lines)
    simulated = sorted(line.simulated for line in lines)
    rows = [
        (
            line.method,
            _pods(line),
            f"{line.processing:.2f}",
            f"{line.network:.3f}",
            f"{line.completion:.2f}",
            f"{min(line.runs):.2f}",
            f"{max(line.runs):.2f}",
            str(1 + mine.index(line.completion)),
            f"{line.simulated:.2f}",
            str(1 + simulated.index(line.simulated)),
        )
        for line in lines
    ]
    return table(head, rows, left=2) + "\n"


@click.group(cls=HelpfulGroup)
def edge() -> None:
    """Delay-aware placement on the published edge testbed."""


edge.add_command(replay)
edge.add_command(emulate)
