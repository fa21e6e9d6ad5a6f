"""A pod: computes FFT iterations, then serves its result over HTTP.

``python -m slacktide.edge.emulation.pod ADDRESS PORT WORK``.  It listens at once and says ``ready``, computes after a
line on stdin until it has had WORK seconds of a processor, says when it began (on the monotonic clock, which all
processes share), for how many seconds (and of a processor's) that was and how many iterations it came to, answers all
requests (those that came before, too), and ends when stdin does.

Work is counted in seconds of a processor, as a processor that sleeps most of the time, which is what a small quota
makes of it, may be slower each time it wakes: by a fourth on a virtual machine.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

SIZE = 4096
TRANSFORMS = 16
"""An iteration: so many FFTs there and back of so many numbers, about two milliseconds of a processor."""


def iterate(iterations: int) -> float:
    """Largest deviation of a signal from itself after so many iterations, a rounding error."""
    signal = np.random.default_rng(1).normal(size=SIZE) + 0j
    values = signal
    for _ in range(iterations * TRANSFORMS):
        values = np.fft.ifft(np.fft.fft(values))
    return float(np.abs(values - signal).max())


class Answers(BaseHTTPRequestHandler):
    """Every GET gets the result."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet
    result = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.result)))
        self.end_headers()
        self.wfile.write(self.result)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Server(ThreadingHTTPServer):
    """A connection each user, kept."""

    daemon_threads = True
    request_queue_size = 64


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def end_with_stdin() -> None:
    """Whoever started this has ended."""
    sys.stdin.read()
    os._exit(0)


def compute(work: float) -> tuple[int, float]:
    """Iterations, one at least, until they took so many seconds of a processor; how many, and those seconds."""
    begun, iterations = time.process_time(), 0
    while True:
        iterate(1)
        iterations += 1
        if (worked := time.process_time() - begun) >= work:
            return iterations, worked


def main(address: str, port: int, work: float) -> None:
    """Listen, wait, compute, serve."""
    iterate(1)
    server = Server((address, port), Answers)
    say("ready")
    if not sys.stdin.readline():
        return
    threading.Thread(target=end_with_stdin, daemon=True).start()
    start = time.monotonic()
    iterations, worked = compute(work)
    done = {"began": start, "processing": time.monotonic() - start, "cpu": worked, "iterations": iterations}
    Answers.result = json.dumps(done).encode()
    say(json.dumps(done))
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
