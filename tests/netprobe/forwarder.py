"""Forwards UDP datagrams after a delay: ``forwarder.py PLAN``. Run by ``lanes.py`` in a namespace of its own.

The plan is a list of {listen, bind, to, seconds}: what comes in at ``listen`` leaves from ``bind`` for ``to``; what
comes back to ``bind`` leaves from ``listen`` for whom the last datagram came from.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import selectors
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SO_TIMESTAMPNS = 35
SHORTEST_SLEEP = 0.0002


@dataclass
class Side:
    """One socket of a lane; what comes in here leaves at ``other`` for ``to`` after ``seconds``."""

    made: socket.socket
    seconds: float
    to: Any = None
    learns: bool = False
    other: Side | None = None


def opened(address: list[Any]) -> socket.socket:
    host, port = address
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.bind((host, port))
    made.setblocking(False)
    return made


def main(plan: list[dict[str, Any]]) -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)  # it stands for the network, which does not wait for a processor
    looking = selectors.DefaultSelector()
    for one in plan:
        near = Side(opened(one["listen"]), one["seconds"], learns=True)
        far = Side(opened(one["bind"]), one["seconds"], to=tuple(one["to"]))
        near.other, far.other = far, near
        for side in (near, far):
            looking.register(side.made, selectors.EVENT_READ, side)
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    waiting: list[tuple[float, int, bytes, Side]] = []
    number = 0
    while True:
        left = waiting[0][0] - time.time() if waiting else None
        for key, _ in looking.select(None if left is None else max(left, 0.0)):
            here: Side = key.data
            data, ancillary, _, source = here.made.recvmsg(2048, 64)
            seconds, nanoseconds = struct.unpack("@ll", ancillary[0][2][:16])
            if here.learns:
                here.to = source
            number += 1
            assert here.other is not None
            heapq.heappush(waiting, (seconds + nanoseconds * 1e-9 + here.seconds, number, data, here.other))
        while waiting and waiting[0][0] - time.time() < SHORTEST_SLEEP:
            _, _, data, side = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # the link is down
                side.made.sendto(data, side.to)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
