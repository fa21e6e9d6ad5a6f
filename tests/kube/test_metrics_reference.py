"""docs/metrics-reference.md is current, has all that is exported, and pages name no metric that it lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kube.test_http_server import two_on_one_core
from slacktide.kube.observe.families import Family
from support import metrics_reference
from support.blocks import PAGES

DECLARED = {one.exported: one for group in metrics_reference.GROUPS for one in group.declared}
PROMTOOL = shutil.which("promtool")
REQUIRED = os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1"
NAMED = re.compile(r"(?<!\w)(?:slacktide|scheduler)_[a-z_]*[a-z](?![\w{*])")


def series(family: Family) -> set[str]:
    """The names under which Prometheus has it."""
    endings = ("_bucket", "_sum", "_count", "") if family.kind == "histogram" else ("",)
    return {f"{family.exported}{ending}" for ending in endings}


def test_the_page_is_current() -> None:
    text = metrics_reference.PAGE.read_text(encoding="utf-8")
    assert text == metrics_reference.page(), "PYTHONPATH=tests python tests/support/metrics_reference.py"


def test_what_a_scheduler_exports_is_declared_with_its_labels() -> None:
    exported = [
        one for one in two_on_one_core().families().values() if not one.name.startswith(("process_", "python_"))
    ]
    assert len(exported) > 40
    for family in exported:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert DECLARED[name].kind == family.type
        assert DECLARED[name].meaning == family.documentation
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(DECLARED[name].labels), name


@pytest.mark.skipif(PROMTOOL is None and not REQUIRED, reason="promtool is not there: apt-get install prometheus")
def test_prometheus_finds_no_fault_with_what_a_scheduler_exports() -> None:
    _, text = two_on_one_core().get("/metrics")
    done = subprocess.run([str(PROMTOOL), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_metric_is_declared_twice() -> None:
    assert len(DECLARED) == sum(len(group.declared) for group in metrics_reference.GROUPS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_metric_that_is_named_is_there(page: Path) -> None:
    known = {name for one in DECLARED.values() for name in series(one)}
    settings = {"scheduler_name"}
    assert set(NAMED.findall(page.read_text(encoding="utf-8"))) - known - settings == set()
