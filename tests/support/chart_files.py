"""Writes what is made from the chart: the plain manifests, their Kustomizations, parts of its schema, a table of docs.

    python tests/support/chart_files.py          write everything (``make manifests``; needs helm, which the lab builds)
    python tests/support/chart_files.py --check  say what is not as it would be written

The chart (``charts/slacktide``) is the source. Helm's templates are what whoever runs clusters can read, and with the
values of ``charts/plain-values.yaml`` they give the plain manifests word for word, comments as well.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from slacktide import __version__
from slacktide.conversion import Kind
from slacktide.kube.resources.custom_resources import OwnLimitsSpec
from slacktide.model import limit_texts
from slacktide.settings import types_of
from slacktide.settings_page import describe

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts" / "slacktide"
PLAIN_VALUES = REPOSITORY / "charts" / "plain-values.yaml"
MANIFESTS = REPOSITORY / "src" / "slacktide" / "kube" / "manifests"
PAGE = REPOSITORY / "docs" / "install.md"
NAMESPACE = "slacktide-system"

HEADER = "# Made by 'make manifests' from charts/slacktide; change it there.\n"
MADE_ELSEWHERE = {"monitoring/20-alerts.yaml"}
"""Files that say themselves what makes them."""
KUSTOMIZATION = "Kustomization"
"""kustomize reads a file of this name, and 'kubectl apply -f DIRECTORY' passes over it: it does not end in .yaml."""
OF_THE_CHART = ("scheduler_name", "leader_election", "listen", "lease_namespace", "lease_name")
"""Settings of section kube that the chart decides."""
KEPT = {"type", "required", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems"}
KEPT |= {"minProperties", "uniqueItems", "anyOf"}
"""What OpenAPI and JSON Schema say alike."""
BEGIN, END = "<!-- values: made by 'make manifests' -->\n", "<!-- end of values -->\n"

Json = dict[str, Any]


# -- plain manifests ---------------------------------------------------------------------------------------------------


def rendered(helm: Path, *words: str) -> str:
    """What ``helm template`` gives for a release of the name slacktide."""
    command = [str(helm), "template", "slacktide", str(CHART), f"--namespace={NAMESPACE}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"helm template: {done.stderr}")
    return done.stdout


def manifests(helm: Path) -> dict[str, str]:
    """The plain manifests by their paths below ``MANIFESTS``, each with its text."""
    found = {file.name: HEADER + file.read_text() for file in sorted((CHART / "crds").glob("*.yaml"))}
    by_file: dict[str, list[str]] = {}
    for text in re.split(r"(?m)^---\n", rendered(helm, f"--values={PLAIN_VALUES}", "--skip-tests"))[1:]:
        first, _, rest = text.partition("\n")
        by_file.setdefault(first.removeprefix("# Source: slacktide/templates/"), []).append(rest.strip("\n") + "\n")
    for name, texts in sorted(by_file.items()):
        header = "" if name in MADE_ELSEWHERE else HEADER
        found[name] = header + "---\n".join(_as_written(name, texts))
    return found


def _as_written(name: str, texts: list[str]) -> Iterator[str]:
    """Helm puts objects in the order in which it installs them; this is the template's order."""
    left = {text: _kind(text) for text in texts}
    for kind in re.findall(r"(?m)^kind: (\S+)$", (CHART / "templates" / name).read_text()):
        found = next((text for text, its in left.items() if its == kind), None)
        if found is not None:
            del left[found]
            yield found
    assert not left, name


def _kind(text: str) -> str:
    found = re.search(r"(?m)^kind: (\S+)$", text)
    assert found is not None, text
    return found[1]


def kustomizations(files: list[str]) -> dict[str, str]:
    """A Kustomization for each folder of manifests."""
    folders: dict[str, list[str]] = {}
    for file in sorted(files):
        folder, _, name = file.rpartition("/")
        folders.setdefault(folder, []).append(name)
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
    return {
        f"{folder}/{KUSTOMIZATION}".lstrip("/"): HEADER + head + "".join(f"  - {name}\n" for name in names)
        for folder, names in folders.items()
    }


# -- the schema of values ----------------------------------------------------------------------------------------------


def schema() -> str:
    """``values.schema.json``, with what the definitions of custom resources and the list of settings say."""
    file = CHART / "values.schema.json"
    found: Json = json.loads(file.read_text())
    found["$defs"] |= {
        "serviceClass": _set_by_words(_converted(_spec("00-serviceclasses.yaml"))),
        "promiseQuota": _converted(_spec("04-promisequotas.yaml")),
        "settings": _settings(),
    }
    return json.dumps(found, indent=2) + "\n"


def _spec(file: str) -> Json:
    versions = yaml.safe_load((CHART / "crds" / file).read_text())["spec"]["versions"]
    (stored,) = [one for one in versions if one["storage"]]
    spec: Json = stored["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def _converted(one: Json) -> Json:
    """A schema of a custom resource as JSON Schema; unknown fields are refused."""
    found = {key: value for key, value in one.items() if key in KEPT}
    if "properties" in one:
        found["properties"] = {name: _converted(each) for name, each in one["properties"].items()}
        found["additionalProperties"] = False
    if "items" in one:
        found["items"] = _converted(one["items"])
    return found


def _set_by_words(one: Json) -> Json:
    """Numbers with a point may be texts as well, as which ``helm --set`` gives them; the template makes numbers."""
    fields = one["properties"]
    for name, each in fields.items():
        if each.get("type") == "number":
            fields[name] = {"anyOf": [each, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}]}
    return one


def _settings() -> Json:
    """Sections and keys, each with its type and range; the scheduler looks at what hangs together when it starts."""
    sections: dict[str, Json] = {}
    for one in describe():
        section, _, key = one.key.partition(".")
        if section != "kube" or key not in OF_THE_CHART:
            sections.setdefault(section, {})[key] = _typed(Kind.of(types_of(section)[key]))
    properties: Json = {
        name: {"type": "object", "properties": keys, "additionalProperties": False} for name, keys in sections.items()
    }
    return {"type": "object", "properties": properties | {"classes": {"type": "array"}}, "additionalProperties": False}


WRITTEN = {
    "duration": r"^\s*([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?[wdhms])+)\s*$",
    "share": r"^\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*%?\s*$",
}
"""Texts that may stand for a number."""
LARGEST_KEPT = 2**53
"""Bounds above are those of the machine's numbers, which no reader of JSON has exactly."""


def _typed(kind: Kind) -> Json:
    """A setting's type and range as JSON Schema."""
    if kind.choices:
        return {"enum": [*kind.choices, *([None] if kind.optional else [])]}
    found: Json = {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[kind.plain]}
    bounds = {
        "minimum": kind.meta.ge,
        "exclusiveMinimum": kind.meta.gt,
        "maximum": kind.meta.le,
        "minLength": kind.meta.min_length,
    }
    found |= {name: value for name, value in bounds.items() if value is not None and value <= LARGEST_KEPT}
    forms = [found]
    if kind.written:
        forms.append({"type": "string", "pattern": WRITTEN[kind.written]})
    if kind.optional:
        forms.append({"type": "null"})
    return found if len(forms) == 1 else {"anyOf": forms}


# -- bounds that the admission policies have from the scheduler --------------------------------------------------------


def limits() -> str:
    """``files/limits.yaml``: what is in the policies that the scheduler knows as well, so that both refuse the same."""
    own = OwnLimitsSpec()
    found = limit_texts.for_policies() | {"ownLongest": own.longest, "ownHoursAWeek": own.hours_a_week}
    return "# Made by 'make manifests' from what the scheduler knows of a workload's own limits.\n" + "".join(
        f"{name}: {json.dumps(value)}\n" for name, value in found.items()
    )


# -- the table of values -----------------------------------------------------------------------------------------------


def values() -> list[tuple[str, Any, str]]:
    """Path, default and meaning of every value that ``values.yaml`` says something about."""
    text = (CHART / "values.yaml").read_text()
    found, path, said = [], [(-1, "")], ""
    for line in text.splitlines():
        key = re.match(r"( *)([A-Za-z]+):", line)
        if line.lstrip().startswith("#"):
            said = f"{said} {line.lstrip()[1:].strip()}".strip()
        elif key is not None and "." not in line.partition(":")[0]:
            path = [one for one in path if one[0] < len(key[1])] + [(len(key[1]), key[2])]
            if said:
                names = [name for _, name in path[1:]]
                found.append((".".join(names), _at(yaml.safe_load(text), names), said))
            said = ""
        else:
            said = ""
    return found


def _at(one: Any, names: list[str]) -> Any:
    for name in names:
        one = one[name]
    return one


def page() -> str:
    """``docs/install.md``, with the table of values."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for path, default, meaning in values():
        shown = json.dumps(default) if default not in ("", None) else ""
        rows.append(f"| `{path}` | {f'`{shown}`' if shown else ''} | {meaning} |")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    return head + BEGIN + "\n".join(rows) + "\n" + END + rest.partition(END)[2]


# -- all together ------------------------------------------------------------------------------------------------------


def of_this_version() -> str:
    """``Chart.yaml``, with the version of the package, which stands in ``src/slacktide/__init__.py`` alone."""
    # A chart's version is semantic, with a hyphen before what comes before the release.
    found = re.sub(r"(?m)^appVersion: .*$", f"appVersion: {__version__}", (CHART / "Chart.yaml").read_text())
    return re.sub(r"(?m)^version: .*$", f"version: {__version__.replace('.dev', '-dev.')}", found)


def made_without_helm() -> dict[Path, str]:
    """Files that need no helm to be made, each with its text."""
    alerts = (REPOSITORY / "examples" / "openslo" / "alerts.yaml").read_text()
    dashboard = REPOSITORY / "src" / "slacktide" / "dashboard" / "grafana" / "slacktide.json"
    return {
        CHART / "Chart.yaml": of_this_version(),
        CHART / "dashboards" / "slacktide.json": dashboard.read_text(),
        CHART / "values.schema.json": schema(),
        CHART / "files" / "alerts.yaml": alerts,
        CHART / "files" / "limits.yaml": limits(),
        PAGE: page(),
    }


def made(helm: Path) -> dict[Path, str]:
    """All files, each with its text. What helm reads must be written before."""
    found = manifests(helm)
    return {MANIFESTS / name: text for name, text in (found | kustomizations(list(found))).items()}


def differing(files: dict[Path, str]) -> list[Path]:
    """Those that do not have their text."""
    return [file for file, text in files.items() if not file.exists() or file.read_text() != text]


def main(check: bool) -> int:
    """Writes all files, or says which ones differ; returns the exit code."""
    from slacktide.lab import Binaries

    found = _settled(made_without_helm(), check)  # Helm reads some of them
    helm = Binaries.find(["helm"], say=lambda text: print(text, file=sys.stderr))["helm"]  # noqa: T201
    return int(_settled(made(helm), check) + found > 0 and check)


def _settled(files: dict[Path, str], check: bool) -> int:
    """Names the files that differ and, unless it is a check, writes them; how many there are."""
    found = differing(files)
    for file in found:
        sys.stdout.write(f"{file.relative_to(REPOSITORY)}\n")
        if not check:
            file.write_text(files[file])
    return len(found)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
