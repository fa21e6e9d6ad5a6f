"""One object that nobody can use stops nobody: an exception in any handler, and everything else goes on."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest

from slacktide.kube.client import kinds
from slacktide.kube.client.kinds import (
    TOO_DEEP,
    UNREADABLE,
    HasMetadata,
    Identity,
    Malformed,
    identify,
    split_event,
    split_listing,
)
from slacktide.kube.client.metadata import Reference
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.feed.feed import Feed
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.mirror.barrier import DEFECT, HEARD, UNUSABLE, Barrier, Changes, ObjectHandler, SetAside
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.resources import objects
from slacktide.kube.resources.objects import POD, RESOURCE_CLAIM
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.settings import load_live
from support import made_objects
from support.least_objects import least


class Server:
    """Answers one list and one watch, which then says nothing more."""

    def __init__(self, listed: list[bytes], events: list[bytes]) -> None:
        self.listed, self.events = listed, events
        self.told = asyncio.Event()

    async def get_list(self, _path: str, _query: object = None) -> bytes:
        return b'{"kind":"List","metadata":{"resourceVersion":"3"},"items":[' + b",".join(self.listed) + b"]}"

    async def stream(self, _path: str, _query: object, _silence: float) -> AsyncIterator[list[bytes]]:
        yield self.events
        self.told.set()
        await asyncio.Event().wait()


def watches_of_everything() -> tuple[Watches, ClusterMirror]:
    """All watches there can be: also those that only some settings ask for."""
    config = load_live()
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]
    kube = replace(config.kube, default_spread=json.dumps(spread))
    config = replace(config, kube=kube, policy=replace(config.policy, name="delay-aware"))
    mirror = ClusterMirror(config, lambda: 0.0)
    return Watches(cast("Any", None), mirror), mirror


def test_there_are_watches_of_every_kind() -> None:
    watches, _ = watches_of_everything()
    kinds = {one.kind.plural for one in watches.every}
    assert {"services", "nodelatencies", "devicetaintrules", "podgroups", "promisequotas"} < kinds
    assert len(watches.every) == 29


@pytest.mark.parametrize("at", range(29))
def test_an_exception_in_any_handler_ends_nothing(at: int, defects: list[logging.LogRecord]) -> None:
    watches, mirror = watches_of_everything()
    kind = watches.every[at].kind
    handler: ObjectHandler[Any] = cast("Any", watches.every[at])._handler
    assert type(handler).changed.__module__.startswith("slacktide.kube.mirror"), "who is told has a barrier"
    seen: list[str] = []

    def see(found: HasMetadata) -> None:
        seen.append(f"{found.metadata.name} {found.metadata.resource_version}")
        if found.metadata.name == "bad":
            raise ZeroDivisionError("division by zero")

    def drop(identity: Identity) -> None:
        seen.append(f"{identity.name} gone")
        if identity.name == "worse":
            raise KeyError(identity.name)

    if kind is POD:
        vars(mirror)["on_pod_delete"] = lambda identity, _last: drop(identity)
    handler.see, handler.drop = see, drop

    def event(what: str, name: str, version: str) -> bytes:
        return json.dumps({"type": what, "object": least(kind, name, version)}).encode()

    async def check() -> None:
        listed = [json.dumps(least(kind, name, "1")).encode() for name in ("bad", "good", "worse")]
        broken = json.dumps(least(kind, "broken", "4") | {"metadata": {"name": 4}}).encode()
        events = [
            b'{"type":"ADDED","object":' + broken + b"}",
            event("MODIFIED", "bad", "5"), event("DELETED", "worse", "6"), event("MODIFIED", "good", "7"),
            event("DELETED", "bad", "8"),
        ]  # fmt: skip
        server = Server(listed, events)
        reflector = Reflector(cast("Any", server), kind, handler)
        task = asyncio.create_task(reflector.run())
        done, _ = await asyncio.wait([task, asyncio.create_task(server.told.wait())], return_when="FIRST_COMPLETED")
        assert task not in done, task.exception()
        assert reflector.synced.is_set()
        task.cancel()

    asyncio.run(check())
    assert seen == ["bad 1", "good 1", "worse 1", "bad 5", "worse gone", "good 7", "bad gone"]
    name = kind.kind
    assert mirror.barrier.counts == {(name, DEFECT): 3, (name, UNREADABLE): 1}
    assert len(defects) == 2, "of each place in the code there is one traceback"
    assert all(one.exc_info for one in defects)
    assert {key[2] for key in mirror.barrier.aside} == {"worse", ""}, "what is well again is not set aside any more"


class Deaf(Changes):
    """Raises whatever it hears."""


def _raise(*_: Any) -> None:
    raise RuntimeError("it hears nothing")


def test_an_exception_in_whatever_a_follower_hears_keeps_no_other_from_hearing(defects: list[Any]) -> None:
    assert set(HEARD) == {name for name, _ in inspect.getmembers(Changes, inspect.isfunction)}
    for one in (Feed, LiveFeed):
        theirs = {name for name, _ in inspect.getmembers(one, inspect.isfunction)}
        assert theirs >= set(HEARD)
    for name in HEARD:
        barrier, heard = Barrier(), list[Any]()
        first, second = Deaf(), Deaf()
        setattr(first, name, _raise)
        setattr(second, name, lambda *args, heard=heard: heard.append(args))
        about = Reference("v1", "Thing", "default", "bad")
        with barrier.around(about):
            for follower in (first, second):
                getattr(barrier.follower(follower), name)("x", 1)
        assert heard == [("x", 1)]
        assert barrier.counts == {("Thing", DEFECT): 1}
        assert [one.about for one in barrier.aside.values()] == [about]
    assert defects


def test_what_a_mirror_tells_comes_through_the_barrier(defects: list[logging.LogRecord]) -> None:
    mirror = ClusterMirror(load_live(), lambda: 0.0)
    deaf = Deaf()
    vars(deaf)["node"] = _raise
    mirror.follow(deaf)
    mirror.on_node_update(made_objects.node("a"))
    assert mirror.barrier.counts.total() == 1
    assert "it hears nothing" in defects[0].getMessage()


def test_cancellation_goes_through_the_barrier() -> None:
    barrier = Barrier()
    for error in (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), barrier.around(Reference("v1", "Pod", "default", "p")):
            raise error
    assert not barrier.counts


def test_each_problem_is_told_once_and_again_after_a_change() -> None:
    barrier, told = Barrier(), list[SetAside]()
    barrier.on_set_aside = told.append
    about = Reference("v1", "Pod", "default", "p", "u")
    for _ in range(3):
        with barrier.around(about):
            raise Unschedulable("annotation x: found 1, expected 2")
    assert [str(one) for one in told] == [
        "Pod default/p is ignored until it changes: annotation x: found 1, expected 2"
    ]
    assert barrier.counts == {("Pod", UNUSABLE): 1}
    barrier.passes(about)
    assert not barrier.aside
    with barrier.around(about):
        raise Unschedulable("annotation x: found 1, expected 2")
    assert barrier.counts == {("Pod", UNUSABLE): 2}


# -- objects that are nested deeper than can be read ---------------------------------------------------------------


def deep_claim(name: str, levels: int) -> bytes:
    parameters = b'{"a":' * levels + b"1" + b"}" * levels
    head = json.dumps({"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"}).encode()
    config = b'{"opaque":{"driver":"d","parameters":' + parameters + b"}}"
    return b'{"metadata":' + head + b',"spec":{"devices":{"config":[' + config + b"]}}}"


@pytest.mark.parametrize("levels", [1_100, 9_000])
def test_a_claim_that_is_nested_too_deeply_is_set_aside_and_its_neighbours_are_read(levels: int) -> None:
    watches, mirror = watches_of_everything()
    handler = next(cast("Any", one)._handler for one in watches.every if one.kind is RESOURCE_CLAIM)
    told: list[SetAside] = []
    mirror.barrier.on_set_aside = told.append

    async def check() -> None:
        listed = [deep_claim("deep", levels), deep_claim("flat", 3)]
        later = b'{"type":"MODIFIED","object":' + deep_claim("deeper", levels) + b"}"
        server = Server(listed, [later, b'{"type":"ADDED","object":' + deep_claim("last", 2) + b"}"])
        reflector = Reflector(cast("Any", server), RESOURCE_CLAIM, handler)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait([task, asyncio.create_task(server.told.wait())], return_when="FIRST_COMPLETED")
        assert not task.done()
        assert reflector.lists == reflector.watches == 1, "neither begins anew"
        task.cancel()

    asyncio.run(check())
    assert {(one.about.name, one.reason) for one in told} == {("deep", TOO_DEEP), ("deeper", TOO_DEEP)}
    assert ("default", "flat") in mirror.devices.claims
    assert ("default", "last") in mirror.devices.claims


def test_who_is_nested_too_deeply_is_known_by_name() -> None:
    assert identify(deep_claim("deep", 5_000)) == Identity("default", "deep", "uid-deep", "7")
    found = RESOURCE_CLAIM.decode(deep_claim("deep", 5_000))
    assert isinstance(found, Malformed)
    assert "levels" in found.problem
    assert found.name == "deep"


def test_lists_and_events_are_split_as_ever_where_they_are_nested_deeply() -> None:
    deep = b'{"a":[' + b"[" * 3_000 + b'"]}\\"",{}' + b"]" * 3_000 + b"]}"
    listing = split_listing(b' {"items": [1, ' + deep + b' ,{"b":"[,"}],"metadata":{"continue":"c"}} ')
    assert [bytes(one) for one in listing.items or ()] == [b"1", deep, b'{"b":"[,"}']
    assert listing.metadata.continue_ == "c"
    event = split_event(b'{"type":"ADDED", "object":' + deep + b"}\n")
    assert (event.type, bytes(event.object)) == ("ADDED", deep)


def test_what_is_no_object_and_no_list_is_refused() -> None:
    for body in (b"", b"[]", b'{"a":1', b"{1:2}", b'{"a" 1}', b'x{"a":1}'):
        with pytest.raises(ValueError, match=r"found|expected"):
            kinds.shallow_fields(body)
    for body in (b"{}", b"[1", b"7"):
        with pytest.raises(ValueError, match=r"found|expected"):
            kinds.shallow_elements(body)
    assert kinds.shallow_fields(b"{}") == {}
    assert kinds.shallow_elements(b" [ ]") == []


def test_malformed_objects_are_counted_by_kind() -> None:
    barrier = Barrier()
    handler = ObjectHandler(objects.NODE, barrier, lambda _: None, lambda _: None)
    handler.malformed(Malformed("", "n", "u", "1", "spec: no"))
    assert barrier.counts == {("Node", UNREADABLE): 1}
    handler.changed(made_objects.node("n"))
    assert not barrier.aside
