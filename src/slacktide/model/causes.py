"""Who can be to blame where a workload delivers nothing (docs/causes.md)."""

from __future__ import annotations

from typing import Literal, get_args

Cause = Literal["cluster", "workload", "operator"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
CLUSTER, WORKLOAD, OPERATOR = range(3)
"""Numbers of :data:`CAUSES`."""
