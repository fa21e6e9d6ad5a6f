"""From workloads and hosts to the workloads and hosts of an experiment; pure functions, a concept a file.

Functions take a :class:`Workload`, its pieces, or :class:`Hosts`, and return a new one; equal seeds give equal results.
What a setting may not be is refused with :class:`ConfigError`. docs/traces.md says what each is for.
"""

from slacktide.inputs.activity import Spans, spans
from slacktide.inputs.prepare.admission import FIRST_REDUCTION, AdmissionInPieces, Refusals, first_limit_of
from slacktide.inputs.prepare.changes import scale, thin_pieces, window_pieces
from slacktide.inputs.prepare.host_sets import binding_resource, draw_hosts, host_sets, keep_share, remove_hosts
from slacktide.inputs.prepare.peak import Peak, peak, peak_of_pieces

__all__ = [
    "FIRST_REDUCTION",
    "AdmissionInPieces",
    "Peak",
    "Refusals",
    "Spans",
    "binding_resource",
    "draw_hosts",
    "first_limit_of",
    "host_sets",
    "keep_share",
    "peak",
    "peak_of_pieces",
    "remove_hosts",
    "scale",
    "spans",
    "thin_pieces",
    "window_pieces",
]
