"""Pages of the site that are made from the program itself: its commands, and its custom resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from slacktide.cli import GROUPS, app

MANIFESTS = Path(__file__).parents[1] / "src/slacktide/kube/manifests"


def commands() -> str:
    """Every command with its help."""
    parts = [
        "# Commands",
        "Each command says this itself with `--help`. `slacktide --help` lists them.",
        f"```text\n{help_of(app, click.Context(app, info_name='slacktide', **app.context_settings))}\n```",
    ]
    context = click.Context(app, info_name="slacktide", **app.context_settings)
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            _, command, _ = app.resolve_command(context, [name])  # imports it
            assert command is not None, name
            parts += list(described(command, click.Context(command, info_name=name, parent=context), 3))
    return "\n\n".join(parts) + "\n"


def described(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """A command's part of the page, and those of the commands below it."""
    yield f"{'#' * level} {context.command_path}"
    yield f"```text\n{help_of(command, context)}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from described(below, click.Context(below, info_name=name, parent=context), level + 1)


def help_of(command: click.Command, context: click.Context) -> str:
    """The help as it is shown on a terminal of 100 columns."""
    context.terminal_width = 100
    return command.get_help(context).strip()


def resources() -> str:
    """Every custom resource with its fields, from the CustomResourceDefinitions of the manifests."""
    parts = [
        "# Custom resources",
        (
            "What the API server knows of slacktide's objects, made from CustomResourceDefinitions of the manifests. "
            "[On Kubernetes](kubernetes.md) says what each is for and how it is used. `kubectl explain KIND.spec` says "
            "the same as this page."
        ),
    ]
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if one and one["kind"] == "CustomResourceDefinition":
                parts += list(resource(one["spec"]))
    return "\n\n".join(parts) + "\n"


def resource(spec: dict[str, Any]) -> Iterator[str]:
    """The part of one kind: what it is, its columns, its fields."""
    version = next(one for one in spec["versions"] if one["storage"])
    schema = version["schema"]["openAPIV3Schema"]
    names = ", ".join(f"`{one}`" for one in [spec["names"]["plural"], *spec["names"].get("shortNames", [])])
    served = ", ".join(f"`{spec['group']}/{one['name']}`" for one in spec["versions"] if one["served"])
    yield f"## {spec['names']['kind']}"
    yield cell(schema.get("description", ""))
    yield f"{spec['scope']}; for kubectl {names}; served as {served}."
    rows = [row for part in ("spec", "status") for row in fields(schema["properties"].get(part, {}), part)]
    yield "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows)


def fields(schema: dict[str, Any], path: str, required: bool = False) -> Iterator[str]:
    """The rows of a field and of all below it."""
    if not schema:
        return
    kind = schema.get("format") or schema.get("type", "any")
    if schema.get("x-kubernetes-int-or-string"):
        kind = "integer or string"
    notes = [cell(schema.get("description", ""))]
    if "enum" in schema:
        notes.append("One of " + ", ".join(f"`{one}`" for one in schema["enum"]) + ".")
    bounds = [
        f"{word} {schema[key]}" for key, word in (("minimum", "at least"), ("maximum", "at most")) if key in schema
    ]
    if bounds:
        notes.append(", ".join(bounds).capitalize() + ".")
    if "default" in schema:
        notes.append(f"Default: `{schema['default']}`.")
    if required:
        notes.append("Required.")
    yield f"| `{path}` | {kind} | {' '.join(one for one in notes if one)} |"
    below = schema.get("items", {}) if kind == "array" else schema
    name = f"{path}[]" if kind == "array" else path
    for key, one in below.get("properties", {}).items():
        yield from fields(one, f"{name}.{key}", key in below.get("required", []))


def cell(text: str) -> str:
    """A text in one line that a table can hold."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


PAGES: dict[str, Callable[[], str]] = {"commands.md": commands, "resources.md": resources}
"""By name in the site, what makes it."""
