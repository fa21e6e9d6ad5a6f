"""Which version of our own resources an API server serves: the newest, or an older one until it is upgraded.

All versions have one structure. So a request may name any of them, in its path and in its body.
"""

from __future__ import annotations

import msgspec

from slacktide.kube.client.kinds import decode_status
from slacktide.kube.client.metadata import Part
from slacktide.kube.client.status_codes import NOT_FOUND

GROUP = "slacktide.io"
NEWEST = f"{GROUP}/v1beta1"
OLDER = (f"{GROUP}/v1alpha1",)
"""The newest of them first."""
ROOT = f"/apis/{NEWEST}/"
GROUP_PATH = f"/apis/{GROUP}"


class _Version(Part, frozen=True):
    group_version: str = ""


class _Group(Part, frozen=True):
    versions: tuple[_Version, ...] = ()


_group = msgspec.json.Decoder(_Group)


class ServedVersion:
    """Paths and bodies of :data:`NEWEST` as requests in the ``version`` that a server has."""

    def __init__(self) -> None:
        self.version = NEWEST

    def path(self, path: str) -> str:
        """The path; O(1)."""
        if self.version is NEWEST or not path.startswith(ROOT):
            return path
        return f"/apis/{self.version}/{path.removeprefix(ROOT)}"

    def body(self, path: str, body: bytes | None) -> bytes | None:
        """The body of a request to the path: an object of ours, or a patch of one."""
        if body is None or self.version is NEWEST or not path.startswith(ROOT):
            return body
        # The first one is the object's own: those of the objects it refers to stand within it.
        return body.replace(f'"apiVersion":"{NEWEST}"'.encode(), f'"apiVersion":"{self.version}"'.encode(), 1)

    @staticmethod
    def is_missing(path: str, status: int, answer: bytes) -> bool:
        """Whether an answer says that the path's version is not served, rather than that there is no such object."""
        return status == NOT_FOUND and path.startswith(ROOT) and decode_status(answer).code == 0

    def choose(self, group: bytes) -> bool:
        """Take the best version of those in the server's answer for :data:`GROUP_PATH`; whether it is another one."""
        try:
            found = {one.group_version for one in _group.decode(group).versions}
        except msgspec.DecodeError:
            return False
        best = next((one for one in (NEWEST, *OLDER) if one in found), self.version)
        changed, self.version = best != self.version, best
        return changed
