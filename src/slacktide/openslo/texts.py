"""YAML for people and programs: keys in the order they are given, text of several lines as such."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def yaml_text(documents: Iterable[Any], comment: str = "") -> str:
    """Documents one after the other; ``comment`` stands above them."""
    import yaml  # here, because only these commands write YAML

    class Dumper(yaml.SafeDumper):
        """Writes text of several lines in a block, and nothing by an alias."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    parts = [
        yaml.dump(one, Dumper=Dumper, sort_keys=False, width=10_000, default_flow_style=False, allow_unicode=True)
        for one in documents
    ]
    return "".join(f"# {line}\n" for line in comment.splitlines()) + "---\n".join(parts)
