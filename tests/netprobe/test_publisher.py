"""What is written when, and from whom peers are learned."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from pathlib import Path

import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.kube.client.addresses import split_address
from slacktide.kube.client.credentials import Access, Fixed
from slacktide.kube.client.http import Connection
from slacktide.kube.resources.custom_resources import NODE_LATENCY, NodeLatency, NodeLatencyStatus, as_row
from slacktide.kube.resources.objects import Instant, Metadata, encode
from slacktide.model.latency import Coordinate, Measured, Row
from slacktide.netprobe.options import Options
from slacktide.netprobe.peers import Peer, peers_of
from slacktide.netprobe.publisher import Publisher, news, status_of
from slacktide.netprobe.rows import Rows

OPTIONS = Options()
PLACE = Coordinate((0.010, 0.0, 0.0), 0.002)
BEFORE = Row("n1", 100.0, {"n2": Measured(0.050, 0.001, 0.0, 64), "n3": Measured(0.005, 0.0, 0.0, 64)}, PLACE, 0.1)


def changed(**peers: Measured) -> Row:
    return dataclasses.replace(BEFORE, peers={**BEFORE.peers, **peers})


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (BEFORE, ""),
        (dataclasses.replace(BEFORE, at=500.0, error=0.9), ""),
        (changed(n2=Measured(0.0549)), ""),
        (changed(n2=Measured(0.0551)), "mean"),
        (changed(n2=Measured(0.0449)), "mean"),
        (changed(n3=Measured(0.0059)), ""),  # 18 %, but less than a millisecond
        (changed(n3=Measured(0.0061)), "mean"),
        (changed(n2=Measured(0.050, lost=0.09)), ""),
        (changed(n2=Measured(0.050, lost=0.11)), "lost"),
        (changed(n2=Measured(math.nan, math.nan, 1.0, 0)), "silent"),
        (changed(n4=Measured(0.050)), "peers"),
        (dataclasses.replace(BEFORE, coordinate=Coordinate((0.012, 0.0, 0.0), 0.002)), ""),
        (dataclasses.replace(BEFORE, coordinate=Coordinate((0.016, 0.0, 0.0), 0.002)), "coordinate"),
        (dataclasses.replace(BEFORE, coordinate=None), "coordinate"),
    ],
)
def test_only_what_passes_both_thresholds_is_news(row: Row, why: str) -> None:
    assert news(BEFORE, row, OPTIONS) == why
    assert news(None, row, OPTIONS) == "first"


def test_a_row_comes_back_from_the_resource_as_it_went_in() -> None:
    row = changed(n4=Measured(math.nan, math.nan, 1.0, 0))
    body = encode({"metadata": {"name": "n1"}, "status": status_of(row, ("10.0.0.1:10360",))})
    found = NODE_LATENCY.decode(body)
    assert isinstance(found, NodeLatency)
    back = as_row(found)
    assert dataclasses.replace(back, peers={}) == dataclasses.replace(row, peers={})
    assert back.peers.keys() == row.peers.keys()
    assert back.peers["n2"] == row.peers["n2"]
    assert math.isnan(back.peers["n4"].mean)
    assert (found.status.measured, found.status.reached) == (3, 2)
    assert found.status.addresses == ("10.0.0.1:10360",)


def test_a_row_without_a_measurement_is_older_than_any_and_has_no_coordinate() -> None:
    row = Row("n1", -math.inf, {}, None, 1.0)
    found = NODE_LATENCY.decode(encode({"metadata": {"name": "n1"}, "status": status_of(row, ())}))
    assert isinstance(found, NodeLatency)
    assert as_row(found) == row


def test_a_heartbeat_comes_when_something_was_measured_also_by_a_clock_that_was_set_back() -> None:
    async def publishing() -> Publisher:
        async with Connection(Access("http://127.0.0.1:9", Fixed(None))) as connection:  # it is not asked
            return Publisher(connection, "n1", OPTIONS)

    publisher = asyncio.run(publishing())
    found = NODE_LATENCY.decode(encode({"metadata": {"name": "n1"}, "status": status_of(BEFORE, ())}))
    assert isinstance(found, NodeLatency)
    publisher.carry_on(found)
    assert publisher.due(BEFORE, (), 1e6) == ""  # nothing was measured since
    for at in (BEFORE.at + 10.0, BEFORE.at - 3600.0):
        assert publisher.due(dataclasses.replace(BEFORE, at=at), (), 1e6) == "heartbeat"
    assert publisher.due(BEFORE, ("10.0.0.1:1",), 1e6) == "addresses"


# Rows of the others.


def node_latency(name: str, address: str = "", at: float | None = None) -> NodeLatency:
    addresses = (address,) if address else ()
    return NodeLatency(Metadata(name), NodeLatencyStatus(addresses, None if at is None else Instant(at)))


def test_peers_are_told_when_an_agent_comes_moves_or_goes_and_not_when_it_measures() -> None:
    told: list[list[Peer]] = []
    rows = Rows("n1", told.append, 900.0)
    rows.replaced([node_latency("n1", "10.0.0.1:1"), node_latency("n2", "10.0.0.2:1")])
    assert [one.name for one in told[-1]] == ["n1", "n2"]
    rows.changed(node_latency("n2", "10.0.0.2:1", at=5.0))
    assert len(told) == 1
    rows.changed(node_latency("n2", "[fd00::2]:1"))
    assert told[-1][1] == Peer("n2", (("fd00::2", 1),))
    rows.changed(node_latency("n2"))
    assert [one.name for one in told[-1]] == ["n1"]
    assert rows.own is not None


def test_a_stale_row_is_warned_of_once_until_it_is_fresh_again(caplog: pytest.LogCaptureFixture) -> None:
    rows = Rows("n1", lambda _peers: None, 900.0)
    rows.replaced([node_latency("n2", at=5.0)])
    for _ in range(3):
        rows.warn(["n1", "n2"])
    warnings = [one for one in caplog.records if "row of node n2 is stale" in one.getMessage()]
    assert len(warnings) == 1
    assert rows.ages(now=1005.0) == {"n2": 1000.0}


def test_a_row_from_a_clock_far_ahead_is_stale_too() -> None:
    rows = Rows("n1", lambda _peers: None, 900.0)
    rows.replaced([node_latency("n2", at=5000.0)])
    assert rows.ages(now=1000.0) == {"n2": 4000.0}


def test_a_new_agent_is_given_time_before_its_row_counts_as_stale(caplog: pytest.LogCaptureFixture) -> None:
    rows = Rows("n1", lambda _peers: None, 900.0)
    rows.replaced([node_latency("n2", "10.0.0.2:1")])
    rows.warn(["n2"])
    assert not caplog.records
    assert rows.ages()["n2"] < 800.0
    rows.changed(node_latency("n2", "10.0.0.2:2"))
    assert rows.ages(now=rows.at["n2"] + 901.0)["n2"] > 900.0


# Peers of a file or the command line.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1:10360", ("10.0.0.1", 10360)),
        ("[fd00::1]:1", ("fd00::1", 1)),
        ("node-1.lan:65535", ("node-1.lan", 65535)),
    ],
)
def test_addresses_have_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert split_address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1", "10.0.0.1:", ":1", "fd00::1:1", "[10.0.0.1", "h:0", "h:65536", "h:1x", "h:²"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        split_address(text)


def test_peers_of_a_file_and_of_options_are_one_list(tmp_path: Path) -> None:
    file = tmp_path / "peers"
    file.write_text("# ours\nn2=10.0.0.2:1 # near\n\nn3 = [fd00::3]:2\n")
    found = peers_of(["n1=10.0.0.1:1"], file)
    assert [one.name for one in found] == ["n1", "n2", "n3"]
    assert found[2].addresses == (("fd00::3", 2),)


def test_every_wrong_line_of_a_file_of_peers_is_named(tmp_path: Path) -> None:
    file = tmp_path / "peers"
    file.write_text("n2=10.0.0.2:1\nn3\nn2=10.0.0.3:1\n")
    with pytest.raises(InputError) as refused:
        peers_of([], file)
    assert f"{file}:2: found 'n3', expected NAME=HOST:PORT" in str(refused.value)
    assert f"{file}:3: found 'n2', expected each name once" in str(refused.value)
    with pytest.raises(InputError, match="No such file"):
        peers_of([], tmp_path / "none")
    with pytest.raises(ConfigError, match="--peer: found 'n1'"):
        peers_of(["n1"], None)
