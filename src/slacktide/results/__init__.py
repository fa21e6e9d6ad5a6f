"""What a run leaves behind: Parquet tables and a manifest from which it can be repeated bit for bit."""

from slacktide.results.directory import check_target, file_hashes, manifest, replaced_directory

__all__ = ["check_target", "file_hashes", "manifest", "replaced_directory"]
