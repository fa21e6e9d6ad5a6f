"""The folder of a generated workload: what ``slacktide generate --out`` leaves behind."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slacktide import __version__, settings
from slacktide.config import Config
from slacktide.inputs import WorkloadParquetWriter, write_hosts
from slacktide.inputs.formats.network_file import network_text
from slacktide.inputs.generators.api import Generator
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass
from slacktide.results.directory import check_target, replaced_directory

WORKLOAD, HOSTS, SETTINGS, NETWORK = "workload.parquet", "hosts.parquet", "settings.yaml", "network.yaml"
GENERATED_FILES = frozenset({WORKLOAD, HOSTS, SETTINGS, NETWORK, "manifest.json"})


@dataclass(frozen=True, slots=True)
class Saved:
    """What was written: numbers of ``requests`` and of their ``instances``, the hosts, and the service classes."""

    requests: int
    instances: int
    hosts: Hosts
    classes: tuple[ServiceClass, ...]


def save(generator: Generator, parameters: Mapping[str, object], seed: int, out: Path) -> Saved:
    """Generates into the folder ``out``, which is there whole or not at all.

    A workload with service classes of its own comes with settings.yaml, which names them; hosts at places come with
    network.yaml. Raises :class:`ConfigError` for a parameter, and :class:`OutputError`.
    """
    check_target(out, GENERATED_FILES)
    pieces, hosts = generator.generate(parameters, seed)
    instances = 0
    classes: tuple[ServiceClass, ...] = DEFAULT_CLASSES
    about = {
        "format": "slacktide-input",
        "slacktide": __version__,
        "generator": generator.name,
        "parameters": dict(parameters),
        "seed": seed,
    }
    with replaced_directory(out, GENERATED_FILES) as aside:
        with WorkloadParquetWriter(aside / WORKLOAD) as writer:
            for piece in pieces:
                writer.append(piece)
                instances, classes = instances + len(piece), piece.classes
        write_hosts(hosts, aside / HOSTS)
        if hosts.network is not None:
            (aside / NETWORK).write_text(network_text(hosts.network), encoding="utf-8")
        if classes != DEFAULT_CLASSES:
            (aside / SETTINGS).write_text(_settings_text(classes), encoding="utf-8")
        (aside / "manifest.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return Saved(writer.rows, instances, hosts, classes)


def _settings_text(classes: tuple[ServiceClass, ...]) -> str:
    """A settings file with these classes and nothing else; what of a class is as ever is left out."""
    import yaml

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
