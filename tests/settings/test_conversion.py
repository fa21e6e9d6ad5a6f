"""Plain values of a file as typed ones: errors name the exact place, and nothing in the file can mislead them."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Literal

import pytest
from msgspec import UNSET, Meta, UnsetType, field

from slacktide.conversion import Kind, Node, Strict, given
from slacktide.errors import ConfigError
from slacktide.settings_file import SettingsFile


class Inner(Strict):
    size: Annotated[float, Meta(gt=0, le=1)]
    sort: Literal["small", "large"] | UnsetType | None = UNSET


class Outer(Strict):
    inner: Inner | UnsetType = UNSET
    many: list[Inner] | UnsetType = UNSET
    origin: Annotated[int, Meta(ge=1)] | UnsetType = field(name="from", default=UNSET)


LINES = {("inner",): 2, ("inner", "size"): 3, ("many",): 5, ("many", 1): 7, ("many", 1, "sort"): 8, ("from",): 9}


def node(value: object) -> Node:
    return Node(SettingsFile("a.yaml", {}, LINES), (), value)


def test_what_was_given_is_told_apart_from_what_was_not() -> None:
    found = node({"inner": {"size": 1, "sort": None}, "from": 3}).convert(Outer)
    assert given(found) == {"inner": Inner(1.0, None), "origin": 3}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"inner": {"size": 0}}, "a.yaml:3: inner.size: found 0, expected a number, above 0, at most 1"),
        ({"inner": {"size": True}}, "a.yaml:3: inner.size: found True, expected a number, above 0, at most 1"),
        ({"inner": {}}, "a.yaml:2: inner: size is missing, expected size"),
        ({"inner": 3}, "a.yaml:2: inner: found 3, expected a mapping with size"),
        ({"from": 0}, "a.yaml:9: from: found 0, expected a whole number, 1 or more"),
        ({"origin": 1}, "a.yaml: origin: unknown key, expected one of inner, many, from"),
        (
            {"many": [{"size": 1}, {"size": 1, "sort": "larg"}]},
            "a.yaml:8: many.1.sort: found 'larg', expected one of small, large (did you mean 'large'?)",
        ),
        ({"many": [{"size": 1}, {"siz": 1}]}, "a.yaml:7: many.1.siz: unknown key, expected one of size, sort"),
        ({"inner": {"size": 1, 5: 1}}, "a.yaml:2: inner.5: unknown key, expected one of size, sort"),
        # Keys and values that look like the place at the end of what msgspec says.
        ({"x` - at `$.inner": 1}, "a.yaml: x` - at `$.inner: unknown key, expected one of inner, many, from"),
        (
            {"inner": {"size": 1, "sort": "x` - at `$.many"}},
            "a.yaml:2: inner.sort: found 'x` - at `$.many', expected one of small, large",
        ),
    ],
)
def test_the_place_is_exact(value: object, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node(value).convert(Outer)
    assert str(caught.value).partition(" (did you mean 'size'?)")[0] == told


def test_a_type_is_taken_apart() -> None:
    kind = Kind.of(Annotated[float, Meta(ge=0, le=2)] | None | UnsetType)
    assert (kind.plain, kind.optional, kind.bounds) == (float, True, "from 0 to 2")
    assert Kind.of(Annotated[list[int], Meta(description="numbers")]).words(3) == "numbers"
    assert Kind.of(Literal["a", "b"]).choices == ("a", "b")


TOGETHER = """
import sys, threading
import msgspec
from slacktide.conversion import Node
from slacktide.settings_file import SettingsFile

sys.setswitchinterval(1e-6)
for _ in range(60):
    inner = msgspec.defstruct("Inner", [(f"a{number}", "int | None", None) for number in range(20)])
    fields = [(f"b{number}", dict[str, list[inner]], msgspec.field(default_factory=dict)) for number in range(20)]
    outer = msgspec.defstruct("Outer", fields)
    node = Node(SettingsFile("", {}), (), {"b1": {"key": [{"a1": 5}]}})
    start, found = threading.Barrier(3), []

    def convert():
        start.wait()
        found.append(node.convert(outer).b1["key"][0].a1)

    threads = [threading.Thread(target=convert) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [5, 5, 5]
"""


def test_threads_may_convert_to_a_new_struct_at_once() -> None:
    """Runs of an experiment are threads of one process, and each begins by reading its settings."""
    found = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
