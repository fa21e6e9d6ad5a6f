"""Alibaba's GPU cluster of 2023 (openb): CSV files of pods and of nodes, with a header.

CPU in cores, memory in GiB, GPUs as the resource ``gpu`` (a share of one counts as that share).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from slacktide.errors import ConfigError, fail
from slacktide.inputs.columns.terms import format_term
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.prepare import host_sets
from slacktide.inputs.read import read_workload
from slacktide.inputs.rows import align
from slacktide.inputs.statistics import homeless
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, find, spooled
from slacktide.inputs.write import write_hosts
from slacktide.model import Constraint, Hosts, Term

SUFFIXES = (".csv", ".csv.gz")
ALIASES = {"openb_pod_list": "pods", "openb_node_list": "nodes"}
PODS = (
    Field("name"),
    Field("cpu_milli", "whole", least=0),
    Field("memory_mib", "whole", least=0),
    Field("num_gpu", "whole", least=0),
    Field("gpu_milli", "whole", least=0, most=1000),
    Field("gpu_spec", needed=False),
    Field("qos"),
    Field("creation_time", "number", least=0, most=LONGEST),
    Field("deletion_time", "number", needed=False, least=0, most=LONGEST),
    Field("scheduled_time", "number", needed=False, least=0, most=LONGEST),
)
NODES = (
    Field("sn"),
    Field("cpu_milli", "whole", least=0),
    Field("memory_mib", "whole", least=0),
    Field("gpu", "whole", least=0),
    Field("model", needed=False),
)
REASONS = {
    "pods that never ran": pl.col("scheduled_time").is_null(),
    "pods that ran for less than a second, by which the list counts": pl.col("deletion_time")
    <= pl.col("scheduled_time"),
}


def read(job: Job) -> Converted:
    """Pods as requests, nodes as all-hosts.parquet, and of them a random part small enough for contention."""
    files = find(job.sources, dict.fromkeys((*ALIASES.values(), *ALIASES), False), SUFFIXES)
    for alias, name in ALIASES.items():
        files[name] += files.pop(alias)
        if len(files[name]) != 1:  # the published folder holds several lists of pods, of which one is a workload
            raise fail(", ".join(map(str, job.sources)), f"one file of {name}", value=f"{len(files[name])} files")
    (of_pods,), (of_nodes,) = files["pods"], files["nodes"]
    nodes = _nodes(of_nodes, pl.read_parquet(spooled(job, "nodes", [of_nodes], NODES)))
    table = pl.scan_parquet(spooled(job, "pods", [of_pods], PODS))
    pods, repeated, notes = output.told_apart(table, ["name"], "pod")
    pods, alive = output.still_there(pods, "deletion_time", job, "pod")
    notes += [*alive, *output.start(job, None)]
    kept, dropped = output.drop(pods, REASONS)
    count = output.write_requests(_requests(kept, job, nodes), job, ("name",))
    write_hosts(nodes, job.folder / output.ALL_HOSTS)
    chosen, said = _chosen(nodes, job)
    write_hosts(chosen, job.folder / output.HOSTS)
    return Converted(count, len(chosen), repeated | dropped, [of_pods, of_nodes], notes + said)


def _requests(pods: pl.LazyFrame, job: Job, nodes: Hosts) -> pl.LazyFrame:
    models = sorted({one["model"] for one in nodes.attributes if "model" in one})
    specs = [text for text in pods.select("gpu_spec").unique().collect()["gpu_spec"].to_list() if text]
    constraints = {text: _constraints(text, models) for text in specs}
    return pods.select(
        "name",
        pl.col(f"{job.values['admission']}_time").alias("admission"),
        (pl.col("deletion_time") - pl.col("scheduled_time")).alias("duration"),
        (pl.col("cpu_milli") / 1000).alias("cpu"),
        (pl.col("memory_mib") / 1024).alias("memory"),
        (pl.col("num_gpu") * pl.col("gpu_milli") / 1000).alias("resource:gpu"),
        job.classes.of(pods, "qos"),
        pl.col("gpu_spec").replace_strict(constraints, default=None, return_dtype=pl.String).alias("constraints"),
    )


def _constraints(spec: str, models: list[str]) -> str:
    """``A|B`` as constraints: one model is asked for by name, of several all others are excluded."""
    wanted = [model.strip() for model in spec.split("|") if model.strip()]
    if len(wanted) == 1:
        return format_term(Term((Constraint("model", "==", wanted[0]),)))
    return format_term(Term(tuple(Constraint("model", "/=", model) for model in models if model not in wanted)))


def _nodes(path: Path, nodes: pl.DataFrame) -> Hosts:
    capacity = {"cpu": nodes["cpu_milli"] / 1000, "memory": nodes["memory_mib"] / 1024, "gpu": nodes["gpu"]}
    return output.listed_hosts(path, nodes["sn"].to_list(), capacity, model=nodes["model"])


def _chosen(nodes: Hosts, job: Job) -> tuple[Hosts, list[str]]:
    """A host set of the wanted part of the workload's peak, and what is to be said of it."""
    wanted = str(job.values["capacity"])
    if wanted == "all":
        return nodes, []
    try:
        capacity = float(wanted)
    except ValueError:
        raise ConfigError(f"capacity: found {wanted!r}, expected a part of the peak such as 0.8, or all") from None
    workload = read_workload(job.folder / output.WORKLOAD, classes=output.classes_of(job))
    chosen = host_sets(workload, nodes, (capacity,), seed=job.seed, file="nodes")[capacity]
    nowhere, large = homeless(*align(workload, chosen))
    lost = len(nowhere) + len(large)
    notes = [f"{len(chosen)} of {len(nodes)} nodes have {capacity:g} of the peak demand; all are in {output.ALL_HOSTS}"]
    if lost:
        notes.append(f"{lost} requests fit on none of them: another --seed, or slacktide trace admit")
    return chosen, notes


TRACE = Trace(
    "openb",
    "Alibaba GPU cluster 2023: CSV files of pods and nodes",
    "qos",
    "LS=gold,Guaranteed=gold,Burstable=silver,BE=bronze",
    (
        Parameter("capacity", "0.8", "part of the peak demand that the nodes drawn for hosts.parquet have, or all"),
        output.last("alive"),
        Parameter("admission", "creation", "what counts as a pod's admission", choices=("creation", "scheduled")),
    ),
    read,
)
