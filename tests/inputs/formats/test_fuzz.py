"""Whatever happens to a file, reading it ends in an InputError or in what an independent reading finds."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.readers import asked_of, csv_asked, csv_rows, erlang_rows, parquet_asked, parquet_rows, rows_of
from slacktide.errors import InputError
from slacktide.inputs import read_delays, read_host_events, read_hosts, read_workload, write_hosts, write_workload
from slacktide.model import Constraint, Hosts, Term, Workload
from slacktide.model.host_events import EVENT_KINDS

pytestmark = pytest.mark.filterwarnings("ignore::slacktide.errors.InputWarning")  # of further columns, which may be

T = TypeVar("T")

ERLANG = (
    b'{600,1,705004586,2503386,0.0937500,0.03198000,11,1,[{"Ql",">","4"},{"wN","==","2"}]}.\n'
    b"{600,2,705004586,60,0.0625,0.00776700,2,0,[]}.\n"
    b'{601,3,6251909587,85,0.5,0.25,0,0,[{"o/","/=","x"}]}.\n'
)
CSV = (
    b"id,admission,duration,cpu,memory,class,job,anti_affinity,constraints\n"
    b"1,0.5,60,0.5,0.25,gold,7,true,Ql > 4; wN == 2\n"
    b"2,0,,0.5,1e-3,silver,7,false,\n"
    b'3,7,1.5,0,10,bronze,,,"rs /= x"\n'
)
CSV_REQUESTS = (
    b"id,admission,duration,cpu,memory,class,kind,instances,completions,parallelism,approach,scale\n"
    b"1,0.5,60,0.5,0.25,gold,,2,,,concurrent,7=3; 9.5=1\n"
    b"2,0,,0.5,1,silver,service,1,,,,\n"
    b"3,7,1.5,0,10,bronze,batch,,5,2,aggregated,\n"
)
HOSTS = b'{1,"Host_1",0.5,0.25,[{"Ql","3"}]}.\n{2,"Host_2",1,1,[]}.\n'
HOSTS_CSV = b"id,name,cpu,memory,attributes\n1,a,1,1,Ql=3\n2,b,0.5,1,\n"
EVENTS = b"time,host,event,amounts,marks\n5,a,fail,,\n7,2,repair,,\n8,a,others,cpu=1,\n9,a,marks,,1 web; 0 port:80\n"
DELAYS = b"{9}.\n{5}.\n{2.5}.\n"

# Pieces that make a file wrong in an interesting way, or almost.
BITS = st.sampled_from(
    [
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x85",
        b"\r\n",
        b"",
        *b"nan inf -1 1e999 1e16 -0 0 00 1_0 0x1 1.5 . /= <".split(),
        b" ",
        b"\n",
        *"{ } [] ]}. \" , ; \\ % ' true null gold ٣ ü".encode().split(),
        b"99999999999999999999",
        b"9007199254740993",
    ]
)


@st.composite
def broken(draw: st.DrawFn, data: bytes) -> bytes:
    """``data`` after one to three accidents."""
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.integers(0, 8))
        kind = draw(st.sampled_from(["cut", "flip", "replace", "insert", "repeat", "number"]))
        if kind == "cut":
            data = data[:place]
        elif kind == "flip" and data:
            data = data[:place] + bytes([data[place] ^ (1 << draw(st.integers(0, 7)))]) + data[place + 1 :]
        elif kind == "replace":
            data = data[:place] + draw(BITS) + data[place + length :]
        elif kind == "insert":
            data = data[:place] + draw(BITS) + data[place:]
        elif kind == "repeat":
            data = data[: place + length] + data[place:]
        else:
            data = swap_number(data, draw(BITS), place)
    return data


def swap_number(data: bytes, by: bytes, place: int) -> bytes:
    """Put ``by`` in the place of the whole field around ``place``."""
    marks = b",{}[]\n"
    start = max((data.rfind(bytes([mark]), 0, place) for mark in marks), default=-1) + 1
    end = min((found for mark in marks if (found := data.find(bytes([mark]), place)) >= 0), default=len(data))
    return data[:start] + by + data[end:]


def attempt(read: Callable[[Path], T], path: Path) -> T | None:
    """What ``read`` finds, or ``None`` where it refuses the file with an explanation."""
    refusal = None
    try:
        return read(path)
    except InputError as error:
        refusal = error
    assert refusal.total >= len(refusal.problems) >= 1
    assert all(one.expected and one.file == str(path) for one in refusal.problems)
    return None


def agrees(path: Path, data: bytes, slow: Callable[[str], object]) -> None:
    path.write_bytes(data)
    workload = attempt(read_workload, path)
    if workload is not None:
        check_promises(workload)
        assert rows_of(workload) == slow(data.decode("utf-8-sig"))


def check_promises(workload: Workload) -> None:
    """What :class:`Workload` promises to everything behind the readers."""
    assert len(workload) > 0
    assert len(np.unique(workload.ids)) == len(workload if workload.requests is None else workload.requests)
    assert (workload.ids >= 0).all()
    assert (np.diff(workload.admission) >= 0).all()
    assert (workload.admission >= (0.0 if workload.lost is None else -1e15)).all()
    assert (workload.duration > 0).all()
    assert np.isfinite(workload.demand).all()
    assert (workload.demand >= 0).all()
    assert (workload.demand <= 1e15).all()
    assert workload.service_class.min() >= 0
    assert workload.service_class.max() < len(workload.classes)
    assert workload.term.max() < len(workload.terms)
    if workload.requests is not None and workload.request is not None:
        assert set(workload.request.tolist()) == set(range(len(workload.requests)))
        assert (np.diff(workload.requests.scale_time) >= 0).all()


fuzzed = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzzed
@given(data=broken(ERLANG))
def test_erlang_terms(tmp_path: Path, data: bytes) -> None:
    agrees(tmp_path / "w.erl", data, erlang_rows)


@fuzzed
@given(data=broken(CSV))
def test_csv(tmp_path: Path, data: bytes) -> None:
    agrees(tmp_path / "w.csv", data, csv_rows)


@fuzzed
@given(data=broken(CSV_REQUESTS))
def test_csv_of_requests_of_several_instances(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "w.csv"
    path.write_bytes(data)
    workload = attempt(read_workload, path)
    if workload is not None:
        check_promises(workload)
        assert asked_of(workload) == csv_asked(data.decode("utf-8-sig"))
        assert len(workload) > 10_000 or rows_of(workload) == csv_rows(data.decode("utf-8-sig"))


def parquet_bytes(folder: Path, several: bool) -> bytes:
    workload = Workload(
        ids=np.arange(50),
        admission=np.linspace(0, 9, 50),
        duration=np.full(50, np.inf),
        demand=np.random.default_rng(1).random((50, 2)),
        service_class=np.arange(50).astype(np.int16) % 3,
        job=np.arange(50) // 4,
        anti_affinity=np.arange(50) % 2 == 0,
        term=np.arange(50).astype(np.int32) % 2,
        terms=(Term(), Term((Constraint("a", "<", "3"),))),
    )
    if several:
        (folder / "some.csv").write_bytes(CSV_REQUESTS)
        workload = read_workload(folder / "some.csv")
    write_workload(workload, folder / "good.parquet")
    return (folder / "good.parquet").read_bytes()


@pytest.fixture(scope="module", params=[False, True], ids=["single", "several"])
def good_parquet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return parquet_bytes(tmp_path_factory.mktemp("good"), request.param)


@fuzzed
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_parquet(tmp_path: Path, good_parquet: bytes, place: float, bit: int, cut: bool) -> None:
    at = math.floor(place * len(good_parquet))
    data = good_parquet[:at] + (b"" if cut else bytes([good_parquet[at] ^ (1 << bit)]) + good_parquet[at + 1 :])
    path = tmp_path / "w.parquet"
    path.write_bytes(data)
    workload = attempt(read_workload, path)
    if workload is not None:
        check_promises(workload)
        assert asked_of(workload) == parquet_asked(path)
        assert rows_of(workload) == parquet_rows(path)


@fuzzed
@given(data=broken(HOSTS))
def test_erlang_hosts(tmp_path: Path, data: bytes) -> None:
    hosts_or_refusal(tmp_path / "h.erl", data)


@fuzzed
@given(data=broken(HOSTS_CSV))
def test_csv_hosts(tmp_path: Path, data: bytes) -> None:
    hosts_or_refusal(tmp_path / "h.csv", data)


def hosts_or_refusal(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    hosts = attempt(read_hosts, path)
    if hosts is None:
        return
    assert len(hosts) > 0
    assert len(set(hosts.names)) == len(set(hosts.ids.tolist())) == len(hosts) == len(hosts.attributes)
    assert np.isfinite(hosts.capacity).all()
    assert (hosts.capacity >= 0).all()
    again = path.with_name("again.csv")
    write_hosts(hosts, again)  # what was understood can be said again
    assert read_hosts(again).attributes == hosts.attributes


@fuzzed
@given(data=broken(EVENTS))
def test_host_events(tmp_path: Path, data: bytes) -> None:
    hosts = Hosts(np.array([1, 2]), ("a", "b"), np.ones((2, 2)), ({}, {}))
    path = tmp_path / "e.csv"
    path.write_bytes(data)
    found = attempt(lambda path: read_host_events(path, hosts), path)
    if found is None:
        return
    assert np.isfinite(found.times).all()
    assert (np.diff(found.times) >= 0).all()
    assert set(found.hosts.tolist()) <= {0, 1}
    assert set(found.kinds.tolist()) <= set(range(len(EVENT_KINDS)))
    assert np.isfinite(found.amounts[found.of_amounts]).any(axis=1).all()
    assert not np.isfinite(found.amounts[~found.of_amounts]).any()


@fuzzed
@given(data=broken(DELAYS), suffix=st.sampled_from(["erl", "txt"]))
def test_delays(tmp_path: Path, data: bytes, suffix: str) -> None:
    path = tmp_path / f"d.{suffix}"
    path.write_bytes(data if suffix == "erl" else data.replace(b"{", b"").replace(b"}.", b""))
    delays = attempt(read_delays, path)
    if delays is None:
        return
    assert len(delays) > 0
    assert np.isfinite(delays).all()
    assert (delays >= 0).all()
