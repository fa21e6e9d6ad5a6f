"""A user: waits for a pod's result, then fetches it again and again, and says how long each took.

``python -m slacktide.edge.emulation.user ADDRESS PORT REQUESTS SECONDS`` (to wait for an answer at most).  It says
``ready``, begins after a line on stdin, and at the end prints JSON: ``delays``, seconds of each request but the first,
which waits for the computing, and ``finished``, on the machine's monotonic clock.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.client import HTTPConnection


def fetch(connection: HTTPConnection) -> float:
    """Seconds that one request takes, to the last byte. Raises OSError or HTTPException."""
    start = time.monotonic()
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise OSError(f"the pod answers {answer.status}")
    return time.monotonic() - start


def end_with_stdin() -> None:
    """Whoever started this has ended."""
    sys.stdin.read()
    os._exit(0)


def main(address: str, port: int, requests: int, seconds: float) -> None:
    """Wait for the result, fetch it so many times more, report."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if not sys.stdin.readline():
        return
    threading.Thread(target=end_with_stdin, daemon=True).start()
    connection = HTTPConnection(address, port, timeout=seconds)
    fetch(connection)
    delays = [fetch(connection) for _ in range(requests)]
    sys.stdout.write(json.dumps({"delays": delays, "finished": time.monotonic()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
