"""A process that carries out runs: a task a line on standard input, an outcome a line on standard output.

It ends when its input does, so that none is left when the program that started it is gone, however that ended.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from dataclasses import asdict
from typing import IO

WARM = "warm"
"""Instead of a task: compile, so that others need not."""


def _listen(asked: IO[str], lines: queue.SimpleQueue[str]) -> None:
    for line in asked:
        lines.put(line)
    os._exit(0)  # not an exit of this thread alone: the run under way is of no use to anyone


def serve(asked: IO[str], answers: IO[str]) -> None:
    """Carry out what comes, for ever."""
    from slacktide.experiment.run import Task, attempt, warm_up

    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked, lines), daemon=True).start()
    while True:
        task = json.loads(lines.get())
        if task == WARM:
            warm_up()
            answers.write(json.dumps(WARM) + "\n")
        else:
            answers.write(json.dumps(asdict(attempt(Task(**task)))) + "\n")
        answers.flush()


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
    serve(asked, answers)


if __name__ == "__main__":
    main()
