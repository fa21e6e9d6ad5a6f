"""What a run leaves behind: Parquet tables and a manifest from which it can be repeated bit for bit."""

from slacktide.results.directory import check_target, replaced_directory
from slacktide.results.manifest import file_hashes, manifest
from slacktide.results.tables import (
    write_delays,
    write_events,
    write_instances,
    write_intervals,
    write_passes,
    write_progress,
    write_requests,
    write_windows,
)

__all__ = [
    "check_target",
    "file_hashes",
    "manifest",
    "replaced_directory",
    "write_delays",
    "write_events",
    "write_instances",
    "write_intervals",
    "write_passes",
    "write_progress",
    "write_requests",
    "write_windows",
]
