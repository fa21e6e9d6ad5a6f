"""What service classes become for OpenSLO, Sloth and Pyrra, and that nothing is lost on the way back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from slacktide.openslo.classes import class_document, read_classes
from slacktide.openslo.documents import read_files, yaml_text
from slacktide.openslo.exporting import export
from slacktide.openslo.importing import convert
from support.repository import REPOSITORY

Json = dict[str, Any]
CLASSES = REPOSITORY / "examples" / "openslo" / "classes.yaml"
GOLD = class_document("gold", {"slo": 0.999, "rank": 1, "window": {"rolling": "30d"}})


def again(classes: list[Json], folder: Path) -> list[Json]:
    """What the import makes of what the export wrote."""
    found = export(classes)
    assert found.left_out == []
    file = folder / "slos.yaml"
    file.write_text(yaml_text(found.documents), encoding="utf-8")
    documents, problems = read_files([file])
    imported = convert(documents)
    assert problems + imported.refused == []
    return imported.classes


def test_the_example_is_the_same_again(tmp_path: Path) -> None:
    classes = read_classes([CLASSES])
    assert [one["metadata"]["name"] for one in classes] == ["gold", "silver"]
    assert again(classes, tmp_path) == classes


CALENDARS = st.fixed_dictionaries(
    {"calendar": st.sampled_from(["1d", "1w", "1M", "1Q", "1Y"])},
    optional={
        "timeZone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
        "start": st.sampled_from(["2026-01-01T00:00:00", "2024-02-29T12:30:00", "2025-03-31T00:00:00"]),
        "budget": st.sampled_from(["accrued", "whole"]),
    },
)
ROLLING = st.fixed_dictionaries(
    {"rolling": st.sampled_from(["30d", "4w", "1h", "90m", "1h30m", "2w1d", "1.5h"])},
    optional={"budget": st.sampled_from(["accrued", "whole"])},
)
SPECS = st.fixed_dictionaries(
    {
        "slo": st.one_of(st.floats(0.001, 0.999999), st.sampled_from([0.9, 0.95, 0.999, 0.9995])),
        "rank": st.integers(1, 10**6),
    },
    optional={
        "window": st.one_of(CALENDARS, ROLLING),
        "marginSeconds": st.floats(0, 1e6),
        "overheadLimit": st.floats(0, 1),
        "approach": st.sampled_from(["independent", "concurrent", "aggregated"]),
        "default": st.booleans(),
        "namespaces": st.lists(st.sampled_from(["shop", "pay"]), unique=True),
        "tiers": st.just([{"boundary": 1.0, "bonus": 0.1}]),
        "counts": st.sampled_from(["cluster", "everything"]),
        "disruptions": st.just({"max": 2, "per": "1h"}),
        "cooldown": st.just("10m"),
        "hours": st.just([{"days": ["Sat"], "from": "22:00", "to": "06:00", "timeZone": "Europe/Berlin"}]),
        "minRunning": st.just("5m"),
        "alpha": st.just("3m"),
    },
)


@settings(max_examples=150)
@given(st.lists(SPECS, min_size=1, max_size=3))
def test_every_class_is_the_same_again(tmp_path_factory: pytest.TempPathFactory, specs: list[Json]) -> None:
    classes = [class_document(f"class-{number}", spec) for number, spec in enumerate(specs)]
    assert again(classes, tmp_path_factory.mktemp("again")) == classes


def test_classes_of_a_settings_file_are_exported_too(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "classes:\n- {name: gold, slo: 0.999, rank: 1, window: {rolling: 30d}}\n"
        "- {name: tin, slo: 0.9, rank: 2, window: {rolling: 30d, budget: accrued}}\n"
        "- {name: silver, slo: 0.9, rank: 2, margin: 20,\n"
        "   window: {calendar: 1M, time_zone: Europe/Berlin, start: '2026-02-03T00:00:00', budget: accrued}}\n"
        "- {name: bronze, slo: 0.5, rank: 3, window: lifetime}\n"
    )
    gold, tin, silver, bronze = again(read_classes([file]), tmp_path)
    assert gold["spec"]["window"] == {"rolling": "30d"}
    assert tin["spec"]["window"] == {"rolling": "30d", "budget": "accrued"}
    assert silver["spec"]["window"] == {
        "calendar": "1M", "timeZone": "Europe/Berlin", "start": "2026-02-03T00:00:00", "budget": "accrued",
    }  # fmt: skip
    assert silver["spec"]["marginSeconds"] == 20
    assert "window" not in bronze["spec"]


def test_what_kubectl_prints_can_be_exported(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [other, GOLD]}, sort_keys=False))
    assert read_classes([file]) == [GOLD]


HEAD = "apiVersion: slacktide.io/v1beta1\nkind: ServiceClass\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: slacktide.io/v1beta1\nkind: ServiceClass\nspec: {slo: 1, rank: 1}\n", ":3: expected a Serv"),
        (HEAD + "spec: {slo: 2, rank: 1}\n", ":4: service class 'a': slo: found 2"),
        (
            HEAD + "spec:\n  {slo: .9, rank: 1, window: {rolling: soon}}\n",
            ":4: service class 'a': window: rolling: found",
        ),
        (HEAD + "spec:\n  {slo: .9, rank: 1, window: {time_zone: UTC}}\n", "window: time_zone: unknown"),
        (HEAD + "spec: {slo: .9, rank: 1, window: 30d}\n", "window: found '30d', expected rolling or calendar"),
        (HEAD.replace("{name: a}", "a") + "spec: {slo: .9, rank: 1}\n", ":4: expected a ServiceClass with metadata"),
        ("apiVersion: v2\nkind: ServiceClass\n", ":1: apiVersion: found 'v2', expected slacktide.io/v1beta1"),
    ],
)
def test_a_class_that_cannot_be_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    from slacktide.errors import ConfigError

    file = tmp_path / "classes.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_classes([file])
    assert said in str(refused.value)


def test_a_promise_of_everything_is_left_out_and_told() -> None:
    certain = class_document("certain", {"slo": 1.0, "rank": 1})
    for form in ("openslo", "sloth", "pyrra"):
        found = export([certain, GOLD], form)
        assert [one.partition(":")[0] for one in found.left_out] == ["certain"]
        assert "no error budget" in found.left_out[0]
    assert export([certain]).documents == []


def test_seconds_are_no_window_of_openslo() -> None:
    odd = class_document("odd", {"slo": 0.9, "rank": 1, "window": {"rolling": "90s"}})
    (said,) = export([odd, GOLD]).left_out
    assert said == "odd: window: found '90s', expected whole minutes, hours, days or weeks"


def queries(document: Json) -> Json:
    ratio = document["spec"]["indicator"]["spec"]["ratioMetric"]
    return {key: ratio[key]["metricSource"]["spec"]["query"] for key in ("bad", "total")}


def test_only_what_the_cluster_lost_counts_unless_the_class_counts_everything() -> None:
    every = class_document("every", GOLD["spec"] | {"counts": "everything"})
    _, gold, other = export([GOLD, every]).documents
    assert queries(gold)["bad"] == 'sum(slacktide_class_lost_seconds_total{class="gold",cause="cluster"})'
    assert queries(other)["bad"] == 'sum(slacktide_class_lost_seconds_total{class="every"})'
    for one in (gold, other):
        name = one["metadata"]["name"]
        assert queries(one)["total"].count(f'{{class="{name}"}}') == 2


def test_windows_that_a_tool_does_not_know_are_left_out_or_taken_from_the_option() -> None:
    lifetime = class_document("ever", {"slo": 0.9, "rank": 1})
    month = class_document("month", {"slo": 0.9, "rank": 1, "window": {"calendar": "1M"}})
    for form in ("sloth", "pyrra"):
        found = export([GOLD, lifetime, month], form)
        assert len(found.documents) == 1
        assert ["found lifetime" in found.left_out[0], "found calendar 1M" in found.left_out[1]] == [True, True]
        assert all("--window 30d" in one for one in found.left_out)
        assert len(export([GOLD, lifetime, month], form, "28d").documents) == 3
    (one,) = export([lifetime], "sloth", "28d").documents
    assert one["spec"]["timeWindows"] == [{"count": 28, "unit": "Day", "isRolling": True}]
    (one,) = export([GOLD], "pyrra", "28d").documents
    assert (one["spec"]["window"], one["spec"]["target"]) == ("30d", "99.9")
    assert "whole days" in export([lifetime, GOLD], "sloth", "12h").left_out[0]


# -- what tools say ----------------------------------------------------------------------------------------------------

SLOTH, PYRRA = (shutil.which(os.environ.get(f"SLACKTIDE_{one.upper()}", one)) for one in ("sloth", "pyrra"))


def rules_are_right(file: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is not None:
        done = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(SLOTH is None, reason="sloth is not there: go install github.com/slok/sloth/cmd/sloth@latest")
def test_sloth_takes_what_is_exported_for_it(tmp_path: Path) -> None:
    slos, rules = tmp_path / "slos.yaml", tmp_path / "rules.yaml"
    slos.write_text(yaml_text(export(read_classes([CLASSES]), "sloth", "30d").documents))
    command = [str(SLOTH), "generate", "--no-color", "-i", str(slos), "-o", str(rules)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rules_are_right(rules)
    made = rules.read_text()
    groups = [one for part in yaml.safe_load_all(made) for one in part["groups"]]
    assert {one["name"].rsplit("-", 3)[1] for one in groups} >= {"class"}
    told = [rule for group in groups for rule in group["rules"] if rule["record"] == "slo:objective:ratio"]
    assert {(one["labels"]["sloth_slo"], one["expr"]) for one in told} == {
        ("class-gold-0", "vector(0.9990000000000001)"),
        ("class-silver-0", "vector(0.95)"),
    }
    assert made.count('cause="cluster"') > 10


@pytest.mark.skipif(PYRRA is None, reason="pyrra is not there: go install github.com/pyrra-dev/pyrra@latest")
def test_pyrra_takes_what_is_exported_for_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for number, one in enumerate(export(read_classes([CLASSES]), "pyrra", "30d").documents):
        (tmp_path / "in" / f"{number}.yaml").write_text(yaml_text([one]))
    command = [str(PYRRA), "generate", f"--config-files={tmp_path}/in/*.yaml", f"--prometheus-folder={tmp_path}/out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted((tmp_path / "out").iterdir())
    assert len(made) == 2
    for file in made:
        rules_are_right(file)
        assert "slacktide_class_lost_seconds" in file.read_text()
