"""Tables of pages whose figures are the same on every machine; a test compares them with what is printed here.

python bench/pages.py grouped      docs/requests.md: rows of a job as one request
python bench/pages.py openb        docs/traces.md: the published pods of openb (needs them)
python bench/pages.py owed         docs/metrics.md: penalties of the published hour (needs the published inputs)
python bench/pages.py jobs         docs/generators.md: sizes of jobs, published (needs the inputs) and generated
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from measuring import (
    ALPHA,
    HOUR,
    announce,
    each,
    one_hour_files,
    options,
    overheads,
    published,
    read,
    settings,
    simulated,
    slacktide,
    table,
)
from numpy.typing import NDArray
from requests import GROUPED, Words

from slacktide.inputs.generators.registry import generated
from slacktide.metrics.penalties import penalties
from slacktide.results.tables import request_rows


def ran(*words: str | Path) -> dict[str, Any]:
    """What an hour's run says of itself."""
    found: dict[str, Any] = json.loads(slacktide("simulate", *words, "--end", "3600", "--json")[1])
    return found


def got(one: dict[str, Any]) -> str:
    """Mean and least availability of a class, and the share of its promises that were kept."""
    had = one["availability"]["restart"]
    return f"{had['mean']:.4f}, {had['min']:.4f}, {one['fulfilment']['restart']:.2%}"


def grouped() -> str:
    """A generated cell, its rows alone and together."""
    with tempfile.TemporaryDirectory() as folder:
        slacktide("generate", "cell", "--set", "hosts=62", "--set", "requests=2300", "--out", folder)
        files = (Path(folder, "workload.parquet"), Path(folder, "hosts.parquet"))

        def row(name: str, words: Words) -> list[str]:
            found = ran(*files, *words)
            counts = (f"{found['requests']:,}", f"{found['preemptions']:,}")
            return [name, *counts, *(got(found["classes"][one]) for one in ("silver", "bronze"))]

        head = ("", "requests", "preemptions", "silver: mean, min, fulfilled", "bronze: mean, min, fulfilled")
        return table(head, list(each(GROUPED, row)))


OPENB: dict[str, Words] = {
    "`--policy priority`": ("--policy", "priority"),
    "`--policy qos-driven`": (),
    "`--policy qos-driven --set policy.overload=share`": ("--set", "policy.overload=share"),
}


def openb() -> str:
    """The published pods on the nodes of their conversion."""
    with tempfile.TemporaryDirectory() as folder:
        sources = [published("openb", name) for name in ("pods-default.csv", "nodes.csv")]
        slacktide("trace", "convert", "openb", *sources, "--out", Path(folder, "openb"))
        files = [Path(folder, "openb", name) for name in ("workload.parquet", "hosts.parquet")]

        def row(name: str, words: Words) -> list[str]:
            found = json.loads(slacktide("simulate", *files, *words, "--end", "13000000", "--json")[1])
            classes = [got(found["classes"][one]) for one in ("gold", "silver", "bronze")]
            return [name, f"{found['preemptions']:,}", *classes]

        head = ("settings", "preemptions", *(f"{one}: mean, min, fulfilled" for one in ("gold", "silver", "bronze")))
        return table(head, list(each(OPENB, row)))


def jobs() -> str:
    """How many instances jobs have: of the published samples, and of the generator."""
    columns = {}
    for which in ("higher", "lower"):
        workload, _ = read(*one_hour_files(which))
        columns[f"sample, {which} contention"] = np.unique(workload.job, return_counts=True)[1]
    requests = generated("jobs", {"requests": 40_000}, 1)[0].request
    columns["jobs (seed 1, 40,000 requests)"] = np.unique(requests, return_counts=True)[1]
    rows = [
        ["mean", *(f"{one.mean():.1f}" for one in columns.values())],
        ["share of single ones", *(f"{(one == 1).mean():.0%}" for one in columns.values())],
        ["median, 75 %, 90 %, 95 %", *(quantiles(one, 0.5, 0.75, 0.9, 0.95) for one in columns.values())],
        ["99 %, 99.5 %, 99.8 %, largest", *(quantiles(one, 0.99, 0.995, 0.998, 1.0) for one in columns.values())],
    ]
    return table(("instances", *columns), rows)


def quantiles(values: NDArray[np.int64], *shares: float) -> str:
    """Some quantiles, as whole numbers that occur."""
    return ", ".join(f"{np.quantile(values, one, method='inverted_cdf'):,.0f}" for one in shares)


def owed() -> str:
    """Penalties of the published hour by priority, by which length of a request they count."""
    files = one_hour_files("higher")
    config = settings(
        "recommended", {"policy.name": "priority", "qos.alpha": ALPHA, "simulation.end": HOUR, **overheads()}
    )
    workload, hosts = read(*files)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "requests.parquet")
        request_rows(workload, simulated(workload, hosts, config).result.requests, config.qos.startup).write(path)
        requests = pq.read_table(path)
        lengths = ("due", "run", "lifetime", "asked")
        sums = [penalties(requests, workload.classes, config.qos.startup, HOUR, length=one) for one in lengths]
    return table(lengths, [[f"{one['penalty'][-1].as_py():,.0f}" for one in sums]])


TABLES = {"grouped": grouped, "openb": openb, "jobs": jobs, "owed": owed}


def main() -> None:
    """Print a table below the command that makes it."""
    parser = options(__doc__)
    parser.add_argument("table", choices=list(TABLES))
    name = parser.parse_args().table
    announce()
    print(TABLES[name]())


if __name__ == "__main__":
    main()
