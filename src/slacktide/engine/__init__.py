"""A live cluster without its API server: what came in goes to the engine, decisions come out.

Whoever feeds the engine the same operations gets the same decisions: the live driver
(:mod:`slacktide.kube`) from watches, a replay from a record.
"""
