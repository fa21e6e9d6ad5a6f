"""Having records on their way to the processor before they are needed; nothing where kernels are plain Python."""

from __future__ import annotations

from slacktide.kernels.runtime.compiling import compiles
from slacktide.kernels.tables.schema import Records

if compiles():
    from slacktide.kernels.runtime.intrinsics import prefetch
else:

    def prefetch(array: Records, at: int) -> None:
        """The record at this place of an array of one axis is read later."""
