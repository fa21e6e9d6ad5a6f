"""``slacktide generate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json, key_values
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.inputs.generators.api import Generator


@click.command()
@click.argument("name", required=False, shell_complete=completing.generators)
@click.option("--out", type=FILE, help="The directory to write workload.parquet and hosts.parquet into.")
@click.option(
    "--set", "words", multiple=True, metavar="KEY=VALUE", shell_complete=completing.parameters,
    help="A parameter; may be repeated.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, metavar="N", help="Equal seeds give equal files.")
@AS_JSON
def generate(name: str | None, out: Path | None, words: tuple[str, ...], seed: int, as_json: bool) -> None:
    """Generates a workload and its hosts. Without NAME: lists what there is, and its parameters.

    \b
      slacktide generate
      slacktide generate cell --out cell
      slacktide generate validation-1 --seed 7 --out run1
      slacktide generate light --out light --set hosts=1000
      slacktide generate edge --out edge --set nodes=1000 --set sites=50
      slacktide generate validation-3 --out run3 --set approach=concurrent
      slacktide simulate run3/workload.parquet run3/hosts.parquet --config run3/settings.yaml --end 3600

    A workload with service classes of its own comes with settings.yaml, which names them; hosts at places come with
    network.yaml, for --network.
    """
    from slacktide.inputs.generators.registry import GENERATORS

    if name is None and as_json:
        echo_json({one.name: _as_plain(one) for one in GENERATORS.values()})
        return
    if name is None:
        click.echo("\n\n".join(map(_described, GENERATORS.values())))
        return
    if name not in GENERATORS:
        from slacktide.inputs.columns.cells import expected_name

        raise click.UsageError(f"NAME: found {name!r}, expected {expected_name(name, list(GENERATORS))}")
    if out is None:
        raise click.UsageError(f"--out is missing: name the directory to write into, such as --out {name}")
    _generate(GENERATORS[name], out, words, seed, as_json)


def _as_plain(generator: Generator) -> dict[str, object]:
    parameters = {one.name: {"default": one.default, "help": one.help} for one in generator.parameters}
    return {"summary": generator.summary, "parameters": parameters}


def _described(generator: Generator) -> str:
    lines = [f"{generator.name}: {generator.summary}"]
    lines += [f"    {one.name}={one.default}  {one.help}" for one in generator.parameters]
    return "\n".join(lines)


def _generate(generator: Generator, out: Path, words: tuple[str, ...], seed: int, as_json: bool) -> None:
    from slacktide.for_people import count, counted
    from slacktide.model import DEFAULT_CLASSES
    from slacktide.results.generated import HOSTS, NETWORK, SETTINGS, WORKLOAD, save

    made = save(generator, key_values(words), seed, out)
    if as_json:
        counts = {"requests": made.requests, "instances": made.instances, "hosts": len(made.hosts)}
        written = sorted(one.name for one in out.iterdir())
        about = {"generator": generator.name, "parameters": key_values(words), "seed": seed}
        echo_json({"folder": str(out), "files": written, **counts, **about})
        return
    requests = f"{counted(made.requests, 'request')}"
    requests += f" of {counted(made.instances, 'instance')}" * (made.instances > made.requests)
    click.echo(f"{out}: {requests} in {WORKLOAD}, {counted(len(made.hosts), 'host')} in {HOSTS}")
    if made.hosts.network is not None:
        network = made.hosts.network
        places = f"{count(len(network.places))} places, {count(len(network.images))} images"
        click.echo(f"{places} in {NETWORK}: give --network {out / NETWORK} to simulate.")
    if made.classes != DEFAULT_CLASSES:
        names = ", ".join(one.name for one in made.classes)
        click.echo(f"Its service classes are {names}: give --config {out / SETTINGS} to simulate and inspect.")
