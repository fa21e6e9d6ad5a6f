"""SLO documents of OpenSLO, Sloth and Pyrra: which one a document is, told by its version; and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from slacktide import settings_file
from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.inputs.problems import check_readable
from slacktide.openslo import pyrra, sloth
from slacktide.openslo.openslo_documents import V1, V2ALPHA
from slacktide.openslo.slos import Read, key_at
from slacktide.openslo.v1alpha import V1ALPHA

READERS: Mapping[str, Callable[[Node], Read]] = {
    V1.version: V1.read,
    V1ALPHA.version: V1ALPHA.read,
    V2ALPHA.version: V2ALPHA.read,
    sloth.API_VERSION: sloth.read_object,
    pyrra.API_VERSION: pyrra.read,
}
"""By ``apiVersion``."""


def read_files(paths: Iterable[Path]) -> tuple[list[Read], list[str]]:
    """The documents of YAML files, and what is wrong with those that are not as their project has them.

    Raises :class:`ConfigError` for a file that is no YAML at all.
    """
    found: list[Read] = []
    problems: list[str] = []
    for path in paths:
        check_readable(path)
        for one in settings_file.read_documents(path, "OpenSLO"):
            for node in _listed(Node(one, (), one.values, index="[{}]")):
                try:
                    read = read_document(node)
                    twice = next((other for other in found if read.key and other.key == read.key), None)
                    if twice is not None:
                        name = read.node.child("metadata").child("name")
                        name.fail(f"a name of its own: {twice.node.file.at(twice.node.place)} has it, too")
                    found.append(read)
                except ConfigError as error:
                    problems.append(str(error))
    return found, problems


def _listed(node: Node) -> Iterator[Node]:
    """A document; of a list as ``kubectl get -o yaml`` writes it, its items."""
    items = node.value.get("items")
    if not str(node.value.get("kind", "")).endswith("List") or not isinstance(items, list):
        yield node
        return
    listed = node.child("items")
    yield from (listed.child(index) for index, one in enumerate(items) if isinstance(one, dict))


def read_document(node: Node) -> Read:
    """One document. Raises :class:`ConfigError` with file, line, field, value and what would be right."""
    if "apiVersion" not in node.value and "version" in node.value:
        if node.value["version"] != sloth.FILE_VERSION:
            node.child("version").fail(f"{sloth.FILE_VERSION} in a file of Sloth; or apiVersion: {V1.version}")
        return sloth.read_file(node)
    expected = f"{', '.join(READERS)}, or version: {sloth.FILE_VERSION}"
    if "apiVersion" not in node.value:
        raise ConfigError(f"{key_at(node, 'apiVersion')}: apiVersion is missing, expected {expected}")
    found = node.value["apiVersion"]
    reader = READERS.get(found) if isinstance(found, str) else None
    if reader is None:
        raise ConfigError(f"{key_at(node, 'apiVersion')}: apiVersion: found {found!r}, expected {expected}")
    return reader(node)


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
