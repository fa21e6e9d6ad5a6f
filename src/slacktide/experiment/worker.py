"""A process that carries out runs: a task a line on standard input, an outcome a line on standard output.

``python -m slacktide.experiment.worker [THREADS]``: so many at a time, in threads that share their inputs. It ends
when its input does, so that none is left when the program that started it is gone, however that ended.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Any

WARM = "warm"
"""Instead of a task: compile, so that others need not."""


def _listen(asked: IO[str], lines: queue.SimpleQueue[str]) -> None:
    for line in asked:
        lines.put(line)
    os._exit(0)  # not an exit of this thread alone: the run under way is of no use to anyone


def serve(asked: IO[str], answers: IO[str], threads: int) -> None:
    """Carry out what comes, for ever; the main thread is one of the threads."""
    from slacktide.experiment.run import Task, attempt, warm_up

    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    answering = threading.Lock()

    def answer(text: Any) -> None:
        with answering:
            answers.write(json.dumps(text) + "\n")
            answers.flush()

    def work() -> None:
        while True:
            task = json.loads(lines.get())
            if task == WARM:
                warm_up()
                answer(WARM)
            else:
                answer(asdict(attempt(Task(**task))))

    threading.Thread(target=_listen, args=(asked, lines), daemon=True).start()
    for _ in range(threads - 1):
        threading.Thread(target=_or_end, args=(work,), daemon=True).start()
    _or_end(work)


def _or_end(work: Callable[[], None]) -> None:
    """End the process with whatever ends ``work``: a thread that ended alone would leave its run unanswered."""
    try:
        work()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def main() -> None:
    """Listen and answer on what were standard input and output.

    A policy that reads finds nothing there, and what it prints goes to standard error.
    """
    asked = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    serve(asked, answers, int(sys.argv[1]) if len(sys.argv) > 1 else 1)


if __name__ == "__main__":
    main()
