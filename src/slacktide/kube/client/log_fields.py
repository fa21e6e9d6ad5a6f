"""What a line of the log is about, for who reads lines as objects (``slacktide run --log json``)."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

PASS: ContextVar[int] = ContextVar("pass", default=0)
"""The number of the pass that goes on; 0 between passes."""
FIELDS = ("pod", "node")


def about(pod: tuple[str, str] | None = None, node: str = "") -> dict[str, str]:
    """``extra`` of a log call: the pod, by namespace and name, and the node that the line is about."""
    found = {} if pod is None else {"pod": "/".join(pod)}
    return found | ({"node": node} if node else {})


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``time`` (RFC 3339), ``level``, ``logger``, ``message``; ``pod``, ``node``, ``pass`` and
    ``traceback`` where the line has them."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        said: dict[str, object] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        said["message"] = record.getMessage()
        said |= {name: getattr(record, name) for name in FIELDS if getattr(record, name, "")}
        if number := PASS.get():
            said["pass"] = number
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)
