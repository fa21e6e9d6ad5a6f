"""What a run leaves behind: Parquet tables and a manifest from which it can be repeated bit for bit."""

from slacktide.results.directory import check_target, replaced_directory
from slacktide.results.manifest import file_hashes, manifest

__all__ = ["check_target", "file_hashes", "manifest", "replaced_directory"]
