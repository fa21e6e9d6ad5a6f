"""The table of kube-scheduler's plugins names tests that there are."""

from __future__ import annotations

import re

from support.repository import REPOSITORY

TABLE = re.compile(r"^## Plugin by plugin.*?\n(?=##)", re.DOTALL | re.MULTILINE)
TEST = re.compile(r"`([a-z_/]+\.py)(?:::(test_\w+))?`")


def test_every_plugin_is_proved_by_a_test_or_not_done() -> None:
    found = TABLE.search((REPOSITORY / "docs" / "kubernetes.md").read_text())
    assert found
    rows = [line.strip("|").split("|") for line in found[0].splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for plugin, done, _, tests in rows:
        named = TEST.findall(tests)
        assert named or done.strip() == "no", plugin
        assert done.strip() in ("yes", "partly", "no"), plugin
        for path, test in named:
            text = (REPOSITORY / "tests" / path).read_text()
            assert not test or f"def {test}(" in text, (plugin, path, test)
