"""What a ledger keeps of a promise is that promise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from engine.journal.test_codec import told
from slacktide.engine.core.operations import Operation
from slacktide.engine.core.types import Controller
from slacktide.engine.journal import codec
from slacktide.engine.ledger.promise import Promise, promise_in, promise_said
from slacktide.model import ServiceClass


def said(promise: Promise) -> str:
    one = Controller("k", 0, promise.service, 0, False, limits=promise.limits, everything=promise.everything)
    return promise_said(one)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(told("controller"), told("limits"))
def test_a_promise_is_read_as_it_was_kept(one: Any, other: Any) -> None:
    promise = Promise(plain(one).service, plain(other).limits, plain(one).everything)
    assert promise_in({"promise": said(promise)}) == promise


def plain(operation: Operation) -> Any:
    """As an engine is told when it is told again: numbers and texts are Python's own."""
    return codec.decode(codec.encode(operation))


def test_a_usual_one_is_short() -> None:
    assert said(Promise(ServiceClass("gold", 0.999, 1))) == (
        '{"service":{"name":"gold","slo":0.999,"rank":1,"margin":10.0},"everything":false}'
    )


@pytest.mark.parametrize(
    "books",
    [{}, {"promise": None}, {"promise": 1}, {"promise": "{}"}, {"promise": "gold"},
     {"promise": '{"service":{"name":"gold","slo":95,"rank":1}}'}],
)  # fmt: skip
def test_books_without_one_tell_of_none(books: dict[str, Any]) -> None:
    assert promise_in(books) is None
