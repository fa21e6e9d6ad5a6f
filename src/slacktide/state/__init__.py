"""The state of a cluster as arrays, written to by kernels and by :mod:`slacktide.state.cluster` only."""
