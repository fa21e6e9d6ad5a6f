"""What is written onto claims: of the very object that was looked at, in the state in which it was."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slacktide.kube.act.binder import VolumeProvisioner
from slacktide.kube.client.http import ApiError
from slacktide.kube.resources.objects import PersistentVolumeClaim
from slacktide.kube.translate.volumes import SELECTED_NODE
from support import made_objects


class Server:
    """One claim, which may have changed, or be another one of the same name."""

    def __init__(self, uid: str, version: str) -> None:
        self.uid, self.version = uid, version
        self.selected = ""

    async def patch(self, _path: str, body: bytes, *_: Any, **__: Any) -> bytes:
        metadata = json.loads(body)["metadata"]
        if metadata["uid"] != self.uid:
            raise ApiError(422, "Invalid", "metadata.uid: field is immutable")
        if metadata["resourceVersion"] != self.version:
            raise ApiError(409, "Conflict", "the object has been modified")
        self.selected = metadata["annotations"][SELECTED_NODE]
        return json.dumps({"metadata": {"name": "data", "uid": self.uid, "resourceVersion": "8"}}).encode()


def select(server: Server, claim: PersistentVolumeClaim) -> int:
    storage = SimpleNamespace(claim=lambda _namespace, _name: claim)
    feed = SimpleNamespace(mirror=SimpleNamespace(storage=storage))
    term = SimpleNamespace(connection=server, feed=feed, recorder=None, clock=None, leading=lambda: True, gate=None)
    term.settings = SimpleNamespace(backoff_longest=1.0, creation_allowance=600.0)
    pod = SimpleNamespace(pod=made_objects.pod())
    return asyncio.run(VolumeProvisioner(cast("Any", term))._select(cast("Any", pod), "data", "node-1"))


def claim() -> PersistentVolumeClaim:
    return made_objects.claim("data", bound=False, metadata={"uid": "one", "resourceVersion": "7"})


def test_a_claim_is_told_its_node_in_the_state_that_was_looked_at() -> None:
    server = Server("one", "7")
    assert select(server, claim()) == 8
    assert server.selected == "node-1"


@pytest.mark.parametrize(("uid", "version", "status"), [("another", "7", 422), ("one", "9", 409)])
def test_another_claim_of_the_name_or_another_state_of_it_is_told_nothing(uid: str, version: str, status: int) -> None:
    server = Server(uid, version)
    with pytest.raises(ApiError) as refused:
        select(server, claim())
    assert refused.value.status == status
    assert server.selected == ""
