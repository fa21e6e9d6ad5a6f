"""Traces made to their published schemas, and what is made of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.traces import TRACES, ClassMap, Converted
from slacktide.inputs.traces import convert as run_reader
from slacktide.model import Hosts, Workload

NAMES = ("gold", "silver", "bronze")


def convert(name: str, sources: Sequence[Path], folder: Path, mapping: str = "", **settings: object) -> Converted:
    """Runs the reader on the sources; the folder is made."""
    folder.mkdir(exist_ok=True)
    classes = ClassMap.parse(mapping or TRACES[name].mapping, NAMES)
    return run_reader(name, sources, folder, classes=classes, settings=settings)


def workload(folder: Path) -> Workload:
    return read_workload(folder / "workload.parquet")


def hosts(folder: Path) -> Hosts:
    return read_hosts(folder / "hosts.parquet")


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the workload as dictionaries, without those that say nothing."""
    import pyarrow.parquet as pq

    return [
        {key: value for key, value in row.items() if value is not None}
        for row in pq.read_table(folder / "workload.parquet").to_pylist()
    ]


def left_out(found: Converted) -> dict[str, int]:
    """What was left out, without reasons that never held."""
    return {why: count for why, count in found.dropped.items() if count}


def write_csv(path: Path, table: Sequence[Sequence[object]]) -> Path:
    """A CSV file without a header, compressed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(map(str, row)) + "\n" for row in table)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_json(path: Path, objects: Sequence[object]) -> Path:
    """A JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(one) + "\n" for one in objects)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path
