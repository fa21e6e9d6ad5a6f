"""From files and generators to :class:`Workload` and :class:`Hosts`: everything is checked here, nothing behind.

Formats are described in docs/formats.md. Generators are in :mod:`slacktide.inputs.generators.registry`, statistics in
:mod:`slacktide.inputs.statistics`.
"""

from slacktide.inputs.formats.erlang_exact import DEFAULT_PRIORITIES
from slacktide.inputs.formats.host_events import read_host_events
from slacktide.inputs.grouping import group_by_job
from slacktide.inputs.read import read_delays, read_hosts, read_workload
from slacktide.inputs.rows import align, join
from slacktide.inputs.write import WorkloadParquetWriter, write_hosts, write_pieces, write_workload

__all__ = [
    "DEFAULT_PRIORITIES",
    "WorkloadParquetWriter",
    "align",
    "group_by_job",
    "join",
    "read_delays",
    "read_host_events",
    "read_hosts",
    "read_workload",
    "write_hosts",
    "write_pieces",
    "write_workload",
]
