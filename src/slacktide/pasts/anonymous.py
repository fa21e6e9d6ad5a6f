"""A story without names: stable words in their place, so that its files can be given away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from slacktide.kube.client.kinds import Malformed, encode
from slacktide.pasts.story import Change, Findings, Story

NAMES = frozenset((
    "name", "namespace", "generateName", "nodeName", "nominatedNodeName", "claimName", "image", "volumeName",
    "storageClassName", "podGroupName", "resourceClaimName", "resourceClaimTemplateName", "driver", "pool",
    "provisioner", "attacher", "volumeHandle", "hostIP",
))  # fmt: skip
"""Fields that name something of the cluster's."""
LABELS = frozenset(("labels", "matchLabels", "nodeSelector", "selector"))
"""Fields that are labels by key."""
KEYS, LISTS_OF_KEYS = frozenset(("key", "topologyKey")), frozenset(("matchLabelKeys", "mismatchLabelKeys"))
PUBLIC = ("kubernetes.io", "k8s.io", "slacktide.io")
"""Labels of these domains mean the same everywhere, so that their keys stay."""


class Words:
    """One word for each text, the same wherever it is: selectors go on to fit."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def of(self, text: str) -> str:
        """Its word; numbers, which say nothing and are compared, stay as they are, and so does * for all."""
        if not text or text == "*" or text.isdigit() or text.startswith("system-"):
            return text
        return self._words.setdefault(text, f"w{len(self._words) + 1}")

    def key(self, text: str) -> str:
        """A label's key, without what names somebody."""
        return text if text.partition("/")[0].endswith(PUBLIC) else self.of(text)

    def within(self, value: Any, field: str = "") -> Any:
        """Plain data with words in place of names."""
        if isinstance(value, dict):
            if field in LABELS and all(isinstance(one, str) for one in value.values()):
                return {self.key(key): self.of(one) for key, one in value.items()}
            return {key: self.within(one, key) for key, one in value.items() if key not in ("message", "annotations")}
        if isinstance(value, list):
            if field in LISTS_OF_KEYS:
                return [self.key(one) for one in value]
            if field in ("values", "namespaces"):
                return [self.of(one) for one in value]
            return [self.within(one) for one in value]
        if not isinstance(value, str):
            return value
        if field in KEYS:
            return self.key(value)
        return self.of(value) if field in NAMES or field in ("value", "priorityClassName") else value


def anonymized(story: Story) -> Story:
    """The same story about others."""
    words, findings = Words(), Findings()
    findings.counts = story.findings.counts
    findings.note("all names are replaced")

    def told(changes: Iterator[Change]) -> Iterator[Change]:
        for change in changes:
            if not isinstance(change.found, Malformed):
                found = change.kind.decode(encode(words.within(msgspec.json.decode(encode(change.found)))))
                yield replace(change, found=found)

    return replace(
        story, source="a cluster", beginning=told(story.beginning), changes=told(story.changes), findings=findings
    )
