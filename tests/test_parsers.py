"""Whatever is written, each parser gives a value or refuses it as it says that it does (``support/parsers.py``)."""

from __future__ import annotations

import string
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slacktide.errors import InputWarning
from slacktide.kube.translate.unschedulable import Unschedulable
from support.parsers import BYTES, FOLDER, TEXTS, Parser

PIECES = (
    "", "-", "+", ".", "1", "0", "9" * 20, "9" * 4_400, "1e999", "e", "inf", "nan", "٣", "١٢", "\u0000", "\u2028",
    "é", "\U0001f600", " ", "\t", "\n", '"', "\\", "'", "(", ")", "[", "]", "{", "}", ",", ";", ":", "=", "==",
    "!=", "<", ">", "/", "%", "*", "&a", "*a", "!!python/object:os.system", "? ", "---\n", "null", "true", "w",
    "d", "h", "m", "s", "Mon-Fri", "22:00-06:00", "24:00", "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00", "2026-02-30", "Europe", "../etc/passwd", "a" * 300, "min", "if", "in", "near",
    "away", "spread", "Ki", "E", "1E", "[::1]", ":0", ":65536", "x" * 70_000, "=" * 5_000,
)  # fmt: skip
DEEP = ("[" * 5_000, "{" * 5_000, '{"a":' * 3_000, "(" * 5_000, "- " * 3_000, "a: " * 3_000)
FUZZED = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
LONG_PIECES = ("1", "a", " ", "-", "=", ";", ",", ":", '"', "\\", "(", "1h", "a=b;", "1 a in b ", "é")
MESSAGE = 1_000
LONG = 20_000
"""Characters: what takes quadratic time for a step that is not tiny does not come to its end in a test."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> None:
    FOLDER.path = tmp_path


@st.composite
def texts(draw: st.DrawFn, examples: tuple[str, ...]) -> str:
    """Anything, or what is right after some accidents."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.text(max_size=40) | st.text(string.printable, max_size=40) | st.sampled_from(PIECES))
    text = draw(st.sampled_from(examples))
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 4))
        piece = draw(st.sampled_from(PIECES) | st.characters() | st.sampled_from(examples))
        text = text[:at] + piece + text[at + length :]
    return text


def check(parser: Parser, said: object) -> None:
    try:
        with catch_warnings():
            simplefilter("ignore", InputWarning)
            parser.call(said)
    except parser.refuses as refusal:
        if isinstance(refusal, Unschedulable):
            assert len(str(refusal)) < MESSAGE, "people are to read it"  # noqa: PT017  # whether it is raised is open


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_what_is_right_is_taken(name: str) -> None:
    for example in TEXTS[name].examples:
        TEXTS[name].call(example)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_any_text_gives_a_value_or_the_error_that_is_documented(name: str) -> None:
    parser = TEXTS[name]

    @FUZZED
    @given(texts(parser.examples))
    def fuzz(text: str) -> None:
        check(parser, text)

    fuzz()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_half_a_surrogate_pair_is_read_or_refused(name: str) -> None:
    """Such text comes from a command whose bytes are no UTF-8, and from YAML."""
    for example in (*TEXTS[name].examples, ""):
        for at in {0, 1, len(example) // 2, len(example)}:
            for instead in (0, 1):
                check(TEXTS[name], example[:at] + "\udcff" + example[at + instead :])


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_long_text_is_read_or_refused(name: str) -> None:
    parser = TEXTS[name]
    for piece in {*LONG_PIECES, *parser.examples} - {""}:
        for end in ("", "!"):
            check(parser, piece * (LONG // len(piece)) + end)


@pytest.mark.parametrize("name", sorted(BYTES))
def test_any_bytes_give_a_value_or_the_error_that_is_documented(name: str) -> None:
    parser = BYTES[name]
    examples = tuple(one.decode("latin-1") for one in parser.examples)

    @FUZZED
    @given(texts(examples), st.booleans())
    def fuzz(text: str, plain: bool) -> None:
        check(parser, text.encode("latin-1", "replace") if plain else text.encode("utf-8", "surrogatepass"))

    fuzz()


@pytest.mark.parametrize("name", sorted(BYTES))
def test_what_is_nested_deeply_is_read_or_refused(name: str) -> None:
    for text in DEEP:
        check(BYTES[name], text.encode())
