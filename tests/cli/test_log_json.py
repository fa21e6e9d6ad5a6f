"""``slacktide run --log json``: an object a line, with the pod, node and pass that it is about."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from slacktide.kube.client.log_fields import PASS, JsonFormatter, about


@pytest.fixture
def said() -> Any:
    """What a call of a logger writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log = logging.Logger("slacktide.kube.act.actor")
    log.addHandler(handler)

    def tell(call: Callable[[logging.Logger], None]) -> dict[str, Any]:
        stream.seek(0)
        stream.truncate()
        call(log)
        (line,) = stream.getvalue().splitlines()
        return dict(json.loads(line))

    return tell


def test_a_line_says_what_it_is_about(said: Any) -> None:
    extra = about(("shop", "web-0"), "node-1")
    found = said(lambda log: log.info("pod %s/%s goes back: %s", "shop", "web-0", 'a "reason"\nof two', extra=extra))
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "info", "logger": "slacktide.kube.act.actor", "pod": "shop/web-0", "node": "node-1",
        "message": 'pod shop/web-0 goes back: a "reason"\nof two',
    }  # fmt: skip


def test_a_line_within_a_pass_has_its_number_and_others_have_none(said: Any) -> None:
    token = PASS.set(17)
    assert said(lambda log: log.warning("late"))["pass"] == 17
    PASS.reset(token)
    assert set(said(lambda log: log.warning("late"))) == {"time", "level", "logger", "message"}


def test_a_traceback_is_in_its_line(said: Any) -> None:
    def fail(log: logging.Logger) -> None:
        try:
            raise ValueError("odd")
        except ValueError:
            log.exception("it failed")

    assert "ValueError: odd" in said(fail)["traceback"]
