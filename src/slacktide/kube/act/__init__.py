"""Decisions carried out: bindings, evictions, volumes, nominations, moves."""
