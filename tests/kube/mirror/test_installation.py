"""Whether the admission policies of a release are there, as a scheduler looks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import yaml

from cluster.installation import MANIFESTS
from slacktide.kube.client.http import ApiError, Unreachable
from slacktide.kube.mirror.watches import ADMISSION, LOOKS_PASSED_OVER, POLICIES, Installation

PLURAL = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
SHIPPED = [one for one in yaml.safe_load_all((MANIFESTS / "30-admission.yaml").read_text()) if one]
PATHS = {f"{ADMISSION}/{PLURAL[one['kind']]}/{one['metadata']['name']}" for one in SHIPPED}


class Server:
    """An API server that has these paths, and answers others with a status (0: not at all)."""

    def __init__(self, has: set[str], otherwise: int = 404) -> None:
        self.has, self.otherwise, self.asked = has, otherwise, list[str]()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:  # noqa: ARG002
        self.asked.append(path)
        if path in self.has:
            return b"{}"
        if not self.otherwise:
            raise Unreachable("nobody answers")
        raise ApiError(self.otherwise, "No", path)


def looked(server: Server, times: int = 1) -> Installation:
    installation = Installation(cast("Any", server), "slacktide")
    for _ in range(times):
        asyncio.run(installation.look_for_policies())
    return installation


def test_all_that_is_shipped_is_looked_for() -> None:
    server = Server(PATHS)
    assert looked(server).policies_missing == 0
    assert set(server.asked) == PATHS
    assert len(PATHS) == 2 * len(POLICIES)


def test_what_is_missing_is_counted() -> None:
    gone = {path for path in PATHS if path.endswith("-quota")}
    assert looked(Server(PATHS - gone)).policies_missing == 2


def test_where_nobody_answers_nothing_is_said() -> None:
    assert looked(Server(set(), otherwise=0)).policies_missing is None


def test_who_may_not_look_does_not_ask_again_for_a_while() -> None:
    """The chart without its policies gives no right to look for them: nothing is missing, and no log fills with 403."""
    server = Server(set(), otherwise=403)
    assert looked(server, 1 + LOOKS_PASSED_OVER).policies_missing is None
    assert len(server.asked) == 1
    assert looked(server, 2 + LOOKS_PASSED_OVER).policies_missing is None
    assert len(server.asked) == 3
