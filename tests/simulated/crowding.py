"""A workload of one pod that loses its node, and what waits then."""

from __future__ import annotations

from cluster.labtools import deployment
from simulated.resources import Json
from simulated.stage import Stage

HEARD_SECONDS = 0.1
"""After so long the scheduler has heard of what was written."""


def web(place: Stage, name: str = "web", labels: Json | None = None) -> str:
    """A Deployment whose only pod, of a whole core, is ready; that pod's name."""
    place.create("deployments", deployment(name, 1, cpu="1", labels=labels or {}))
    return place.ready(name)[0]


def crowd_out(place: Stage, name: str) -> str:
    """Its node takes nobody any more, and the pod is deleted: the one that replaces it waits. That one's name."""
    place.cordon(place.node_of(name))
    place.wait(HEARD_SECONDS)
    before = place.names(name.split("-")[0])
    place.delete("pods", name, 0)

    def other() -> str:
        return next((one for one in place.names(name.split("-")[0]) if one not in before), "")

    return place.until(other, "its replacement")


def make_room(place: Stage, prefix: str = "new") -> None:
    place.nodes(1, prefix=prefix, cpu="1")
