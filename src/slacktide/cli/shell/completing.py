"""What completes the words of a command line. A shell asks at each press of a key, so nothing here fails or is slow.

Names of what is in a cluster are those that kubectl itself completes, with its rights and within its patience.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

Completions = list[CompletionItem]
PATIENCE = 5.0
"""Seconds that kubectl may take to answer."""


def _beginning(words: Iterable[tuple[str, str]], incomplete: str) -> Completions:
    """Those of the words, each with its help, that begin so."""
    return [CompletionItem(word, help=about) for word, about in words if word.startswith(incomplete)]


def policies(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """Policies by name; files, where a word looks like one (``mine.py:Mine``)."""
    from slacktide.policy import available

    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    return _beginning(((one.name, one.description) for one in available() if one.kind == "policies"), incomplete)


def policies_and_presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Completions:
    """Policies, and presets, which a plan and an experiment take as well."""
    return [*presets(ctx, param, incomplete), *policies(ctx, param, incomplete)]


def presets(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """Settings to start from."""
    from slacktide.settings import PRESETS

    return _beginning(((one, "") for one in PRESETS), incomplete)


def generators(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """Workloads that can be generated."""
    from slacktide.inputs.generators.registry import GENERATORS

    return _beginning(((name, one.summary) for name, one in GENERATORS.items()), incomplete)


def parameters(ctx: click.Context, _: click.Parameter, incomplete: str) -> Completions:
    """``KEY=`` of the generator that stands before."""
    from slacktide.inputs.generators.registry import GENERATORS

    return _parameters(GENERATORS, ctx, incomplete)


def _parameters(known: Mapping[str, Any], ctx: click.Context, incomplete: str) -> Completions:
    words = [str(ctx.params.get("name")), *ctx.args]  # behind an option without its value words are not parsed
    chosen = next((known[word] for word in words if word in known), None)
    if chosen is None:
        return []
    return _beginning(((f"{one.name}=", f"{one.help} [{one.default}]") for one in chosen.parameters), incomplete)


def formats(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """Published formats of traces."""
    return _beginning(((name, one.summary) for name, one in _traces().items()), incomplete)


def format_parameters(ctx: click.Context, _: click.Parameter, incomplete: str) -> Completions:
    """``KEY=`` of the format that stands before."""
    return _parameters(_traces(), ctx, incomplete)


def _traces() -> Mapping[str, Any]:
    """None where what reads them is not installed."""
    try:
        from slacktide.inputs.traces import TRACES
    except ImportError:
        return {}
    return TRACES


def settings(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """``SECTION.KEY=``, and behind it the values, where they can be listed."""
    from slacktide.conversion import Kind
    from slacktide.settings import SECTIONS, names, types_of

    key, equals, begun = incomplete.partition("=")
    if not equals:
        return _beginning(((f"{one}=", "") for one in names()), incomplete)
    section, _dot, name = key.partition(".")
    kind = types_of(section).get(name) if section in SECTIONS else None
    values = [] if kind is None else [str(one) for one in _values(Kind.of(kind), key)]
    return [CompletionItem(f"{key}={one}") for one in values if one.startswith(begun)]


def _values(kind: Any, key: str) -> Iterable[object]:
    from slacktide.policy import available

    named = {"policy.name": "policies", "policy.score": "scores", "policy.cost": "costs"}.get(key)
    if named is not None:
        return [one.name for one in available() if one.kind == named]
    return ("true", "false") if kind.plain is bool else kind.choices


def pods(ctx: click.Context, _: click.Parameter, incomplete: str) -> Completions:
    """Pods of the namespace that is named or the context's."""
    return _kubectl(ctx, "get", "pods", incomplete)


def namespaces(ctx: click.Context, _: click.Parameter, incomplete: str) -> Completions:
    """Namespaces of the cluster."""
    return _kubectl(ctx, "get", "namespaces", incomplete, everywhere=True)


def service_classes(ctx: click.Context, _: click.Parameter, incomplete: str) -> Completions:
    """Classes of the cluster."""
    return _kubectl(ctx, "get", "serviceclasses.slacktide.io", incomplete, everywhere=True)


def contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> Completions:
    """Contexts of the kubeconfig."""
    return _kubectl(ctx, "get", "--context", incomplete, everywhere=True)


def files(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """Files, where an argument is one or a dash."""
    return [CompletionItem(incomplete, type="file")]


def _kubectl(ctx: click.Context, *words: str, everywhere: bool = False) -> Completions:
    """What ``kubectl __complete`` offers for the last word, in the cluster that the words before it name; nothing
    where there is no kubectl, or it does not answer."""
    named = [one for one in ("kubeconfig", "context", "namespace") if ctx.params.get(one)]
    access = [f"--{one}={ctx.params[one]}" for one in named if not (everywhere and one == "namespace")]
    try:
        done = subprocess.run(
            ["kubectl", "__complete", *access, *words], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return []
    found = [line.partition("\t") for line in done.stdout.splitlines() if line and not line.startswith(":")]
    return [CompletionItem(word, help=about or None) for word, _, about in found]
