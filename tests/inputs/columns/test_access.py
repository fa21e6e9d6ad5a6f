"""Columns about users, data, images and limits, and the network file: read, refused with the place, written back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.inputs import read_hosts, read_workload, write_workload
from slacktide.inputs.formats.network_file import network_text, read_network
from slacktide.inputs.generators.registry import generated
from slacktide.inputs.prepare import scale
from slacktide.model import Access
from support.preparing import window

HEAD = "id,admission,duration,cpu,memory,class,resource:network,limit:cpu,users,data,image,preferred,deadline\n"
NETWORK = """
places: [master, n1, n2]
rtt_ms:
  - [0, 200, 150]
  - [200, 0, 50.5]
  - [150, 50.5, 0]
images:
  fft: {seconds: 0.617}
  web: {size: 120, present: [n1]}
"""


def test_columns_become_limits_and_accesses(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(
        HEAD
        + "1,0,9,0.5,1,gold,2,1.5,n1:0.75 master:0.25,0.25,fft,n1,3\n"
        + "2,1,9,0.5,1,gold,2,,n2,,,,\n"
        + "3,2,9,0.5,1,gold,2,,,,,,\n"
    )
    found = read_workload(path)
    assert found.limit is not None
    assert found.access is not None
    assert found.limit.tolist() == [[1.5, 1, 2], [0.5, 1, 2], [0.5, 1, 2]]
    accesses = [found.accesses[number] for number in found.access]
    assert accesses == [
        Access(0.25, "fft", (("n1", 0.75), ("master", 0.25)), "n1", 3.0),
        Access(logins=(("n2", 1.0),)),
        Access(),
    ]


def test_a_file_without_these_columns_has_neither(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("id,admission,duration,cpu,memory,class,limit:cpu,users\n1,0,9,0.5,1,gold,0.5,\n")
    found = read_workload(path)
    assert found.limit is None, "nobody's is above its demand"
    assert found.access is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_reads_back(suffix: str, tmp_path: Path) -> None:
    workload, _ = generated("edge", {"nodes": 20, "sites": 4, "requests": 600})
    write_workload(workload, tmp_path / f"w{suffix}")
    found = read_workload(tmp_path / f"w{suffix}")
    assert found.limit is not None
    assert workload.limit is not None
    assert np.array_equal(found.limit, workload.limit)
    assert found.access is not None
    assert workload.access is not None
    before = [workload.accesses[number] for number in workload.access]
    assert [found.accesses[number] for number in found.access] == before
    again = replace(found, access=None, accesses=workload.accesses, limit=None)
    assert np.array_equal(again.demand, workload.demand)


LIMITED = """id,admission,duration,cpu,memory,class,limit:cpu,users,deadline,resize
1,0,90,0.5,1,gold,0.7,n:1:1,3,5: cpu=2
"""


def test_what_is_scaled_or_cut_still_reads_back(tmp_path: Path) -> None:
    """Limits go with demands and are never below them, deadlines with times; a name may hold a colon."""
    path = tmp_path / "w.csv"
    path.write_text(LIMITED)
    whole = read_workload(path)
    for changed, limit, deadline in (
        (scale(whole, demand=4.0), 2.8, 3.0),
        (scale(whole, time=2.0), 0.7, 6.0),
        (scale(whole, rate=2.0), 0.7, 3.0),
        (window(whole, 10.0, 100.0), 2.0, 3.0),
    ):
        assert changed.limit is not None
        assert (changed.limit >= changed.demand).all()
        write_workload(changed, path)
        found = read_workload(path)
        assert found.access is not None
        access = found.accesses[found.access[0]]
        assert (access.logins, access.deadline) == ((("n:1", 1.0),), deadline)
        if found.limit is not None:
            assert found.limit[0, 0] == pytest.approx(limit)


@pytest.mark.parametrize(
    ("cells", "column", "value"),
    [
        ("0.2,n1,0.1,,,", "limit:cpu", "0.2"),
        ("x,n1,0.1,,,", "limit:cpu", "x"),
        ("nan,n1,0.1,,,", "limit:cpu", "nan"),
        (",n1:0.5 n1:0.5,0.1,,,", "users", "n1:0.5 n1:0.5"),
        (",n1:0.5 n2:0.4,0.1,,,", "users", "n1:0.5 n2:0.4"),
        (",n1 n2,0.1,,,", "users", "n1 n2"),
        (",n1,-1,,,", "data", "-1"),
        (",n1,many,,,", "data", "many"),
        (",n1,1,two words,,", "image", "two words"),
        (",n1,1,,,0", "deadline", "0"),
    ],
)
def test_a_broken_cell_is_named(cells: str, column: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(HEAD + f"1,0,9,0.5,1,gold,2,{cells}\n")
    with pytest.raises(InputError) as caught:
        read_workload(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (2, column)
    assert problem.value.removesuffix(".0") == value


def test_a_limit_of_something_that_is_no_resource_is_an_unknown_column(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("id,admission,duration,cpu,memory,class,limit:gpu\n1,0,9,1,1,gold,1\n")
    with pytest.raises(InputError, match="limit:gpu: found 'an unknown column'"):
        read_workload(path)
    hosts = tmp_path / "h.csv"
    hosts.write_text("id,name,cpu,memory,limit:cpu\n1,n1,1,1,1\n")
    with pytest.raises(InputError, match="limit:cpu: found 'an unknown column'"):
        read_hosts(hosts)


def test_the_network_file(tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    path.write_text(NETWORK)
    network = read_network(path)
    assert network.places == ("master", "n1", "n2")
    assert network.rtt[1, 2] == pytest.approx(0.0505)
    assert [(one.name, one.seconds, one.size, one.present) for one in network.images] == [
        ("fft", 0.617, 0.0, ()),
        ("web", 0.0, 120.0, ("n1",)),
    ]
    path.write_text(network_text(network))
    again = read_network(path)
    assert again.places == network.places
    assert np.allclose(again.rtt, network.rtt, rtol=0, atol=1e-12)
    assert again.images == network.images


@pytest.mark.parametrize(
    ("old", "new", "place", "expected"),
    [
        ("places: [master, n1, n2]", "places: [master, n1, n1]", "places[2]", "once"),
        ("places: [master, n1, n2]", "places: []", "places", "at least one"),
        ("[200, 0, 50.5]", "[200, 0]", "rtt_ms[1]", "3 numbers"),
        ("[200, 0, 50.5]", "[200, 0, -1]", "rtt_ms[1][2]", "0 or more"),
        ("[200, 0, 50.5]", "[200, 0, 51]", "rtt_ms[2][1]", "as long from either end"),
        ("images:", "image:", "image", "did you mean 'images'"),
        ("{seconds: 0.617}", "{second: 1}", "images.fft.second", "did you mean 'seconds'"),
        ("{seconds: 0.617}", "{seconds: 1, size: 2}", "images.fft", "one of the two"),
        ("{seconds: 0.617}", "{seconds: soon}", "images.fft.seconds", "a number"),
        ("present: [n1]", "present: [[n1]]", "images.web.present", "a list of names of hosts"),
        ("present: [n1]", "present: [1]", "images.web.present", "in quotes"),
        ("places: [master, n1, n2]", "places: [master, 1, n2]", "places[1]", "in quotes"),
        ("fft:", "'a b':", "images.a b", "a name without blanks"),
        ("fft:", "7:", "images.7", "in quotes"),
        (NETWORK, "- master", "network.yaml", "places:"),
    ],
)
def test_a_broken_network_file_is_refused_with_the_place(
    old: str, new: str, place: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "network.yaml"
    assert old in NETWORK
    path.write_text(NETWORK.replace(old, new))
    with pytest.raises((InputError, ConfigError)) as caught:
        read_network(path)
    assert place in str(caught.value)
    assert expected in str(caught.value)


def test_an_image_is_present_on_hosts_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    path.write_text(NETWORK)
    hosts = tmp_path / "h.csv"
    hosts.write_text("id,name,cpu,memory,resource:network\n1,n2,1,1,1\n")
    with pytest.raises(InputError, match=r"images\.web\.present: found .*n1.*, expected a host of the host file"):
        read_network(path, read_hosts(hosts))


def test_an_image_of_some_size_needs_hosts_with_bandwidth(tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    path.write_text(NETWORK)
    hosts = tmp_path / "h.csv"
    hosts.write_text("id,name,cpu,memory\n1,n1,1,1\n")
    with pytest.raises(
        InputError, match=r"network\.yaml:9: images\.web\.size: found '120', expected seconds"
    ) as caught:
        read_network(path, read_hosts(hosts))
    assert "resource:network" in str(caught.value)


def test_a_network_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: found 'no such file', expected an existing file"):
        read_network(tmp_path / "none.yaml")
