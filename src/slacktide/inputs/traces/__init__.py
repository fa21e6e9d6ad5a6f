"""Published traces as workloads and hosts: a file for each format (docs/traces.md describes them).

These modules need Polars, which comes with ``slacktide[experiments]``; nothing but ``slacktide trace`` imports them.
"""

from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.mapping import ClassMap
from slacktide.inputs.traces.registry import TRACES, convert

__all__ = ["TRACES", "ClassMap", "Converted", "Job", "Trace", "convert"]
