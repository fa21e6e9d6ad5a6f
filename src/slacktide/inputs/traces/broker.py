"""Workloads of the papers' broker (da Silva et al. 2020; Farias's thesis, A.2): CSV, one file.

They name no hosts: those of the published validation runs have the size that the parameters have by default.
"""

from __future__ import annotations

from slacktide.errors import fail
from slacktide.inputs.columns.cells import format_float
from slacktide.inputs.formats import broker_csv, tables
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import only_source
from slacktide.inputs.write import write_workload


def read(job: Job) -> Converted:
    """Rows as requests; hosts of one size."""
    path = only_source(job.sources, "the broker's CSV file")
    if not broker_csv.recognises(path):
        expected = "a file of the broker: 11, 12 or 16 columns, the first a number, or a header that begins submitTime"
        raise fail(path, expected, line=1, value="another first line")
    job.tell("the broker's workload", 0.0)
    file = broker_csv.BrokerFile(path, broker_csv.Naming(dict(job.classes.rules)))
    workload = tables.workload_of(file, output.classes_of(job))
    write_workload(workload, job.folder / output.WORKLOAD)
    hosts = output.uniform_hosts(job, {"cpu": "host_cpu", "memory": "host_memory"})
    requests = len(workload) if workload.requests is None else len(workload.requests)
    notes = [
        *output.start(job, None),
        "the file names no hosts: all are of one size",
        *_promises(file.promised),
        *output.said_of_size(hosts, job),
    ]
    return Converted(requests, output.write_machines(hosts, job), {}, [path], notes)


def _promises(promised: dict[str, set[float]]) -> list[str]:
    """What the file promises, which a run must be told by its classes."""
    if not promised:
        return []
    told = [f"{name} {' and '.join(map(format_float, sorted(slos)))}" for name, slos in promised.items()]
    return [f"it promises {', '.join(told)}: where your classes promise something else, give others with --config"]


TRACE = Trace(
    "broker",
    "a workload of the papers' broker: CSV, with or without header",
    "userClass",
    ",".join(f"{word}={name}" for word, name in broker_csv.WORDS.items()),
    (
        Parameter("hosts", 0, "how many hosts; 0: as many as the peak demand takes"),
        Parameter("host_cpu", 3.75, "cores of a host", least=0),
        Parameter("host_memory", 3.75, "memory of a host, as the file counts it", least=0),
    ),
    read,
)
