"""``st.past`` and its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slacktide as st
from support.made_past import deployment, listed, node, pod


def test_a_dump_and_its_verdict(tmp_path: Path) -> None:
    dump, out = tmp_path / "now.json", tmp_path / "now"
    pods = [pod(f"web-{place}", "web", place, cpu="3", ready=-390.0) for place in "ab"]
    dump.write_text(json.dumps(listed(node("a"), node("b"), *deployment("web", 2), *pods)))
    found = st.past("objects", dump, out=out, horizon="1h")
    assert repr(found) == f"Past({str(out)!r})"
    assert found.workloads.select("namespace", "kind", "name").rows() == [("shop", "Deployment", "web")]
    assert found.pods["node"].to_list() == ["a", "b"]
    verdict = found.verdict(seeds=1)
    assert verdict["better"]
    assert verdict["seconds"] == 3600.0
    assert (out / "verdict.html").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"source": "tables"}, "source: found 'tables', expected one of cluster, objects, audit, prometheus"),
        ({"source": "audit"}, "files: found none"),
        ({"source": "audit", "horizon": None}, "horizon: found None"),
        ({"source": "audit", "promise": "luck"}, "expected one of priority"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, words: dict[str, Any], expected: str) -> None:
    with pytest.raises(st.ConfigError, match=expected):
        st.past(**words, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
