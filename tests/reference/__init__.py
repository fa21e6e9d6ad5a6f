"""The slow, obvious twin of the compiled core.

Written straight from ``docs/semantics.md``: sort lists, loop over all hosts and
all instances, remember nothing that can be computed again.  It shares only the
data model, the settings and the errors with ``slacktide``, so that a mistake in
the core is not repeated here; both must produce the same decisions to the bit.
"""
