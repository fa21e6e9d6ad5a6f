"""Decisions of a live cluster: operations in, decisions out, over the tables of :mod:`slacktide.state`."""
