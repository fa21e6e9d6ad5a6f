"""What can be said of the chart and of what is made from it without Helm and without an API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

import slacktide
from cluster.test_chart import EVERY
from slacktide.conversion import Kind
from slacktide.errors import ConfigError
from slacktide.model import Window
from slacktide.model.hours import OF_NO_REGION, REGIONS
from slacktide.settings import SECTIONS, load_live, types_of
from support import chart_files
from support.chart_files import CHART, KUSTOMIZATION, MANIFESTS


def leaves(one: Any, path: str = "") -> list[str]:
    """Paths of all values that are no map with content."""
    if not isinstance(one, dict) or not one:
        return [path]
    return [leaf for name, each in one.items() for leaf in leaves(each, f"{path}.{name}".lstrip("."))]


def test_what_needs_no_helm_is_as_it_would_be_made() -> None:
    assert chart_files.differing(chart_files.made_without_helm()) == [], "make manifests"


def test_definitions_are_the_charts() -> None:
    made = {file.name: file.read_text() for file in MANIFESTS.glob("0*.yaml")}
    assert made == {file.name: chart_files.HEADER + file.read_text() for file in (CHART / "crds").glob("*.yaml")}
    assert len(made) == 5


def test_a_window_has_the_same_budget_with_and_without_the_api_servers_default() -> None:
    for version in yaml.safe_load((CHART / "crds" / "00-serviceclasses.yaml").read_text())["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        assert spec["window"]["properties"]["budget"]["default"] == Window(rolling=3600.0).budget, version["name"]


def test_time_zones_of_classes_are_those_that_annotations_may_name() -> None:
    for version in yaml.safe_load((CHART / "crds" / "00-serviceclasses.yaml").read_text())["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        hours = spec["hours"]["items"]["properties"]["timeZone"]["x-kubernetes-validations"]
        assert hours == spec["window"]["properties"]["timeZone"]["x-kubernetes-validations"]
        pattern, _, names = hours[0]["rule"].partition(" || self in ")
        assert pattern == f"self.matches('^({'|'.join(REGIONS)})/[A-Za-z0-9_+/-]{{1,48}}$')"
        assert yaml.safe_load(names) == list(OF_NO_REGION), version["name"]


def test_every_file_is_in_its_kustomization() -> None:
    for folder in (MANIFESTS, *(one for one in MANIFESTS.iterdir() if one.is_dir())):
        named = yaml.safe_load((folder / KUSTOMIZATION).read_text())["resources"]
        assert named == sorted(file.name for file in folder.glob("*.yaml"))


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == slacktide.__version__
    # A chart's version is semantic, with a hyphen before what comes before the release.
    assert chart["version"] == slacktide.__version__.replace(".dev", "-dev.")


def test_every_value_is_described_and_known_to_the_schema() -> None:
    described = [path for path, _, _ in chart_files.values()]
    assert len(described) == len(set(described)) > 30
    every = leaves(yaml.safe_load((CHART / "values.yaml").read_text()))
    assert [one for one in every if not any(f"{one}.".startswith(f"{path}.") for path in described)] == []
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert [one for one in described if not _known(schema, one)] == []


def _known(schema: dict[str, Any], path: str) -> bool:
    for name in path.split("."):
        if name not in schema.get("properties", {}):
            return False
        schema = schema["properties"][name]
    return True


def test_a_setting_that_the_schema_knows_is_one(tmp_path: Path) -> None:
    known = json.loads((CHART / "values.schema.json").read_text())["$defs"]["settings"]["properties"]
    assert {"policy", "kube", "qos", "classes"} <= set(known)
    assert "scheduler_name" not in known["kube"]["properties"]
    file = tmp_path / "config.yaml"
    file.write_text("version: 1\nkube: {resize_patience: 30}\npolicy: {patience: 30}\n")
    assert load_live(file).kube.resize_patience == 30
    assert "resize_patience" in known["kube"]["properties"]


TRIED = (True, -1, 0, 1, 3, 0.5, 10**12, "abc", "10m", "90%", "", None, [1])


@pytest.mark.parametrize("section", SECTIONS)
def test_the_schema_takes_what_the_program_takes_and_no_number_that_it_refuses(tmp_path: Path, section: str) -> None:
    known = json.loads((CHART / "values.schema.json").read_text())["$defs"]["settings"]["properties"][section]
    file = tmp_path / "config.yaml"
    wrong = []
    for key, schema in known["properties"].items():
        numeric = Kind.of(types_of(section)[key]).plain in (int, float)
        for value in TRIED:
            file.write_text(yaml.safe_dump({"version": 1, section: {key: value}}))
            try:
                load_live(file)
                taken = True
            except ConfigError as error:
                # What does not go with another setting is the program's to refuse.
                taken = f"{section}.{key}: found" not in str(error) or " beside " in str(error)
            valid = Draft7Validator(schema).is_valid(value)
            if (taken and not valid) or (valid and not taken and numeric):
                wrong.append((key, value, taken))
    assert wrong == []


def test_definitions_one_after_the_other_are_documents_of_their_own() -> None:
    """Helm 3 writes them so (``helm show crds``), for kubectl to read."""
    files = sorted((chart_files.CHART / "crds").glob("*.yaml"))
    found = list(yaml.safe_load_all("".join(file.read_text() for file in files)))
    assert [one["kind"] for one in found] == ["CustomResourceDefinition"] * len(files)


def test_every_value_is_tried() -> None:
    """By Helm, on a real API server (``cluster/test_chart.py``)."""

    def known(path: str) -> bool:
        one: Any = EVERY
        for name in path.split("."):
            if not isinstance(one, dict) or name not in one:
                return False
            one = one[name]
        return True

    assert [path for path, _, _ in chart_files.values() if not known(path)] == []
