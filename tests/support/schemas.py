"""The structure of every kind that the scheduler watches, as the API server publishes it.

``kubernetes-schemas.json.gz`` is derived from the OpenAPI of Kubernetes 1.36.3 (``api/openapi-spec/v3``, Copyright The
Kubernetes Authors, Apache-2.0): of the kinds that are watched, without descriptions. After a change of the kinds, or of
the version of Kubernetes, make it anew from the sources that the lab's programs are built from, or a running server:

    slacktide lab binaries
    PYTHONPATH=tests .venv/bin/python -m support.schemas ~/go/pkg/mod/k8s.io/kubernetes@v1.36.3/api/openapi-spec/v3

Schemas of our own kinds are read from the chart; those of others' custom resources stand here.
"""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from slacktide.config import Config
from slacktide.kube.client.kinds import Kind
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.resources.objects import AVAILABILITY
from slacktide.settings import load_live
from support.repository import REPOSITORY

Json = dict[str, Any]

FILE = Path(__file__).with_name("kubernetes-schemas.json.gz")
SAID = ("type", "format", "enum", "required", "nullable", "minimum", "maximum", "maxLength", "maxItems", "pattern")
"""What is kept of a schema beside its structure."""
GROUP: Json = {"type": "object", "properties": {"minMember": {"type": "integer", "format": "int32"}}}
OTHERS: Json = {
    # scheduler-plugins' CRD: what the scheduler reads of it.
    "scheduling.x-k8s.io/v1alpha1 PodGroup": {"type": "object", "properties": {"spec": GROUP}},
    # Kubernetes 1.35 serves it, 1.36 does not any more.
    "scheduling.k8s.io/v1alpha1 Workload": {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "podGroups": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "policy": {
                                    "type": "object",
                                    "properties": {
                                        "gang": {
                                            "type": "object",
                                            "required": ["minCount"],
                                            "properties": {"minCount": {"type": "integer", "format": "int32"}},
                                        }
                                    },
                                },
                            },
                        },
                    }
                },
                "required": ["podGroups"],
            }
        },
        "required": ["spec"],
    },
}


def called(kind: Kind[Any]) -> str:
    """What names a kind here."""
    return f"{kind.api_version} {kind.kind}"


def everything() -> Config:
    """Settings with which all is watched that can be."""
    config = load_live()
    spread = [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]
    kube = replace(config.kube, default_spread=json.dumps(spread))
    return replace(config, kube=kube, policy=replace(config.policy, name="delay-aware"))


@cache
def watched() -> list[Kind[Any]]:
    """Every kind that is watched, and ledgers, which a new leader lists."""
    return [
        *(one.kind for one in Watches(cast("Any", None), ClusterMirror(everything(), lambda: 0.0)).every),
        AVAILABILITY,
    ]


@cache
def schemas() -> Json:
    """The schema of each kind by :func:`called`; in a schema, ``$ref`` names another one of ``definitions``."""
    found: Json = json.loads(gzip.decompress(FILE.read_bytes()))
    found |= OTHERS
    for file in sorted((REPOSITORY / "charts" / "slacktide" / "crds").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            spec = document["spec"]
            for version in spec["versions"]:
                name = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
                found[name] = compact(version["schema"]["openAPIV3Schema"])
    return found


def compact(schema: Any) -> Any:
    """What of a schema says of its structure."""
    kept: Json = {name: schema[name] for name in SAID if name in schema}
    if schema.get("x-kubernetes-int-or-string"):
        kept["format"] = "int-or-string"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        kept["format"] = "anything"
    if "$ref" in schema:
        kept["$ref"] = schema["$ref"].rpartition("/")[2]
    for each in schema.get("allOf", ()):
        kept |= compact(each)
    if options := [compact(each) for each in schema.get("oneOf", schema.get("anyOf", ())) if "type" in each]:
        kept["oneOf"] = options
    if "properties" in schema:
        kept["properties"] = {name: compact(each) for name, each in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            kept[name] = compact(schema[name])
    return kept


def derived(folder: Path, wanted: set[str]) -> Json:
    """Schemas of the wanted kinds, and all that these consist of."""
    definitions: Json = {}
    for file in sorted(folder.glob("api*_openapi.json")):
        definitions |= json.loads(file.read_text()).get("components", {}).get("schemas", {})
    found: Json = {"definitions": {}}
    for definition in definitions.values():
        for one in definition.get("x-kubernetes-group-version-kind", ()):
            name = f"{one['group']}/{one['version']} {one['kind']}".removeprefix("/")
            if name in wanted:
                found[name] = compact(definition)
    missing = [found[name] for name in sorted(found)]
    while missing:
        for name in sorted(_references(missing.pop())):
            if name not in found["definitions"]:
                found["definitions"][name] = compact(definitions[name])
                missing.append(found["definitions"][name])
    return found


def _references(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_references, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*map(_references, schema.values()))


if __name__ == "__main__":
    text = json.dumps(derived(Path(sys.argv[1]), {called(kind) for kind in watched()}), sort_keys=True)
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
    if missing := {called(kind) for kind in watched()} - set(schemas()):
        sys.exit(
            f"{sys.argv[1]}: has no schema of {', '.join(sorted(missing))}; expected the folder of Kubernetes 1.36"
        )
