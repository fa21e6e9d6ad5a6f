"""Of what the API server says only what is read is decoded, as each field is kept for every pod of a cluster."""

from __future__ import annotations

import re
from types import ModuleType

import msgspec
import pytest

from slacktide.kube.client import metadata
from slacktide.kube.resources import pods, volumes, workloads
from support.repository import REPOSITORY

SOURCE = REPOSITORY / "src" / "slacktide"
SPARED = {"LeaseSpec": {"strategy", "preferred_holder"}, "PodSpec": {"host_network"}}
"""A Lease is replaced as a whole, so that what others wrote into it must be known. ``host_network`` is about to be read
(features that nodes declare)."""


@pytest.mark.parametrize("module", [metadata, pods, volumes, workloads])
def test_every_field_that_is_decoded_is_read(module: ModuleType) -> None:
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.parent.name != "resources"]
    text = "\n".join(texts)
    read = set(re.findall(r"\.(\w+)", text)) | set(re.findall(r"\"(\w+)\"", text))
    unread = {
        f"{name}.{field}"
        for name, found in vars(module).items()
        if isinstance(found, type) and issubclass(found, msgspec.Struct) and found.__module__ == module.__name__
        for field in found.__struct_fields__
        if field not in read and field not in SPARED.get(name, ())
    }
    assert unread == set()
