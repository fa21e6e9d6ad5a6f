"""Requests in the version of our resources that a server has."""

from __future__ import annotations

import pytest

from slacktide.kube.client.kinds import encode
from slacktide.kube.client.served_version import NEWEST, OLDER, ServedVersion
from slacktide.kube.resources.objects import AVAILABILITY, POD, SERVICE_CLASS


def group(*versions: str) -> bytes:
    """What an API server says of our group."""
    listed = [{"groupVersion": one, "version": one.partition("/")[2]} for one in versions]
    return encode({"kind": "APIGroup", "name": "slacktide.io", "versions": listed, "preferredVersion": listed[:1]})


OLD = OLDER[0]
MISSING = b"404 page not found\n"
NO_SUCH = encode({"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such class"})


def test_the_newest_is_asked_for_first_and_an_older_one_where_it_is_all_there_is() -> None:
    served = ServedVersion()
    path = AVAILABILITY.path("n", "pod-a")
    assert served.path(path) == f"/apis/{NEWEST}/namespaces/n/availabilities/pod-a"
    assert served.choose(group(OLD))
    assert served.path(path) == f"/apis/{OLD}/namespaces/n/availabilities/pod-a"
    assert served.choose(group(OLD, NEWEST))
    assert served.path(path) == path


@pytest.mark.parametrize("answer", [group(), group("slacktide.io/v7"), b"404 page not found", b"{}", b"[]"])
def test_a_server_without_any_changes_nothing(answer: bytes) -> None:
    served = ServedVersion()
    assert not served.choose(answer)
    assert served.version == NEWEST


def test_bodies_of_our_objects_follow_and_nothing_within_them() -> None:
    served = ServedVersion()
    served.choose(group(OLD))
    target = {"apiVersion": NEWEST, "kind": "Odd", "name": "x"}
    body = encode({"apiVersion": NEWEST, "kind": "Availability", "status": {"target": target}})
    sent = served.body(AVAILABILITY.path("n", "a"), body)
    assert sent == encode({"apiVersion": OLD, "kind": "Availability", "status": {"target": target}})
    assert served.body(POD.path("n"), body) is body
    assert served.body(AVAILABILITY.path("n"), None) is None
    assert served.path(POD.path("n", "p")) == POD.path("n", "p")


def test_only_a_missing_version_is_looked_for_and_not_a_missing_object() -> None:
    path = SERVICE_CLASS.path(name="gold")
    assert ServedVersion.is_missing(path, 404, MISSING)
    assert not ServedVersion.is_missing(path, 404, NO_SUCH)
    assert not ServedVersion.is_missing(path, 503, MISSING)
    assert not ServedVersion.is_missing(POD.path("n", "p"), 404, MISSING)
