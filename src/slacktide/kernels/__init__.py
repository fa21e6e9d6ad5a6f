"""Compiled leaves of the core: arrays in, arrays out; no clock, no I/O, no hidden randomness.

They come as a library with the wheel (:mod:`slacktide.kernels.ahead_of_time`), or are compiled here by Numba, which
keeps machine code per user under a name that holds a hash of this package's sources: a kernel inlines helpers of its
neighbours, and Numba's own check would not notice an edit there. :mod:`slacktide.kernels.runtime.mode` has the choice.
"""
