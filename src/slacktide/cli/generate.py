"""``slacktide generate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json, key_values
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.inputs.generators.registry import Generator
    from slacktide.model import ServiceClass

GENERATED_FILES = frozenset({"workload.parquet", "hosts.parquet", "settings.yaml", "network.yaml", "manifest.json"})


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
    import json

    from slacktide import __version__
    from slacktide.cli.text import count
    from slacktide.inputs import WorkloadParquetWriter, write_hosts
    from slacktide.inputs.formats.network_file import network_text
    from slacktide.model import DEFAULT_CLASSES
    from slacktide.results.directory import check_target, replaced_directory

    parameters = key_values(words)
    check_target(out, GENERATED_FILES)
    pieces, hosts = generator.generate(parameters, seed)
    instances = 0
    classes: tuple[ServiceClass, ...] = DEFAULT_CLASSES
    about = {
        "format": "slacktide-input",
        "slacktide": __version__,
        "generator": generator.name,
        "parameters": parameters,
        "seed": seed,
    }
    with replaced_directory(out, GENERATED_FILES) as aside:
        with WorkloadParquetWriter(aside / "workload.parquet") as writer:
            for piece in pieces:
                writer.append(piece)
                instances, classes = instances + len(piece), piece.classes
        write_hosts(hosts, aside / "hosts.parquet")
        if hosts.network is not None:
            (aside / "network.yaml").write_text(network_text(hosts.network), encoding="utf-8")
        if classes != DEFAULT_CLASSES:
            (aside / "settings.yaml").write_text(_settings_text(classes), encoding="utf-8")
        (aside / "manifest.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    if as_json:
        written = sorted(one.name for one in out.iterdir() if one.name in GENERATED_FILES)
        counts = {"requests": writer.rows, "instances": instances, "hosts": len(hosts)}
        echo_json({"folder": str(out), "files": written, **counts, **about})
        return
    requests = f"{count(writer.rows)} requests" + (f" of {count(instances)} instances" * (instances > writer.rows))
    click.echo(f"{out}: {requests} in workload.parquet, {count(len(hosts))} hosts in hosts.parquet")
    if hosts.network is not None:
        places = f"{count(len(hosts.network.places))} places, {count(len(hosts.network.images))} images"
        click.echo(f"{places} in network.yaml: give --network {out / 'network.yaml'} to simulate.")
    if classes != DEFAULT_CLASSES:
        names = ", ".join(one.name for one in classes)
        click.echo(f"Its service classes are {names}: give --config {out / 'settings.yaml'} to simulate and inspect.")


def _settings_text(classes: tuple[ServiceClass, ...]) -> str:
    """A settings file with these classes and nothing else; what of a class is as ever is left out."""
    import dataclasses

    import yaml

    from slacktide import settings
    from slacktide.config import Config
    from slacktide.model import ServiceClass

    plain = tuple(ServiceClass(one.name, one.slo, one.rank) for one in classes)
    listed, usual = (
        settings.to_mapping(dataclasses.replace(Config(), classes=some))["classes"] for some in (classes, plain)
    )
    needed = ("name", "slo", "rank")
    said = [
        {key: value for key, value in one.items() if key in needed or value != other[key]}
        for one, other in zip(listed, usual, strict=True)
    ]
    return "# For --config: the classes of workload.parquet.\n" + str(
        yaml.safe_dump({"classes": said}, sort_keys=False, allow_unicode=True)
    )
