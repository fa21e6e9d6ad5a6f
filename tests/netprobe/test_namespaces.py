"""Real agents on nodes that are network namespaces: what they measure, and what does not disturb them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from netprobe.lanes import KEY, PROBES, Lanes, needs_namespaces

pytestmark = [needs_namespaces, pytest.mark.slow]

# The published testbed's times between workers, and from the master: milliseconds.
PUBLISHED = {
    ("master", "n1"): 0.200,
    ("master", "n2"): 0.150,
    ("master", "n3"): 0.160,
    ("n1", "n2"): 0.050,
    ("n1", "n3"): 0.060,
    ("n2", "n3"): 0.010,
}
SMALL = {("a", "b"): 0.040, ("a", "c"): 0.080, ("b", "c"): 0.020}
WINDOW = 40


def close(measured_ms: float, seconds: float) -> bool:
    """Within 2 ms or 5 % of what was set."""
    return abs(measured_ms - 1e3 * seconds) <= max(2.0, 0.05 * 1e3 * seconds)


def delay(lanes: Lanes, a: str, b: str) -> float:
    return lanes.delays.get((a, b)) or lanes.delays[b, a]


def all_close(lanes: Lanes) -> bool:
    """Whether every node's means are right; one that is not may have been measured while the machine was busy."""
    return all(close(one["meanMs"], delay(lanes, node, peer)) for node in lanes.nodes
               for peer, one in lanes.until_measured(node, WINDOW).items())  # fmt: skip


def few_lost(lanes: Lanes, node: str) -> bool:
    return all(one["lost"] < 0.1 for one in lanes.peers(node).values())


def steady(lanes: Lanes, node: str) -> bool:
    return all(one["deviationMs"] < 10.0 for one in lanes.peers(node).values())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    """Three nodes with an agent on each, which every test leaves running."""
    with Lanes(tmp_path_factory.mktemp("small"), SMALL) as lanes:
        for node in lanes.nodes:
            lanes.start(node, "--silent", "5", "--skew", "30")
        yield lanes


def test_agents_measure_the_published_testbed(tmp_path: Path) -> None:
    with Lanes(tmp_path, PUBLISHED) as lanes:
        for node in lanes.nodes:
            lanes.start(node)
        lanes.until(lambda: all_close(lanes), "means within 2 ms or 5 %", 180)
        for node in lanes.nodes:
            # The first probes went out before the others were there.
            lanes.until(partial(few_lost, lanes, node), "few are lost")
            lanes.until(partial(steady, lanes, node), "deviations are small")
            # Four points in three dimensions: the coordinates come near to what was measured.
            lanes.until(lambda node=node: lanes.row(node)["error"] < 0.5, "it knows where it is")
            assert lanes.metric(node, "packets_dropped_total", reason="forged") == 0


def test_agents_measure_over_ipv6(tmp_path: Path) -> None:
    with Lanes(tmp_path, {("a", "b"): 0.030}, ipv6=True) as lanes:
        for node in lanes.nodes:
            lanes.start(node)
        lanes.until(lambda: all_close(lanes), "means within 2 ms or 5 %", 180)


def test_a_node_that_is_cut_off_is_counted_as_lost_and_its_row_grows_old(small: Lanes) -> None:
    small.until_measured("a", WINDOW)
    small.cut("c")
    lost = small.until(lambda: (one := small.peers("a")["c"])["lost"] == 1.0 and one, "c does not answer any more")
    assert "meanMs" not in lost
    small.until(lambda: "meanMs" not in small.peers("c")["a"], "c reaches nobody")
    assert small.metric("c", "row_age_seconds") > 4.0
    at = small.row("c")["at"]
    assert small.metric("a", "probes_total", result="lost") > 10
    # The others go on as if nothing were.
    small.until(lambda: close(small.peers("a")["b"]["meanMs"], 0.040), "a and b are not affected")
    small.until(lambda: small.metric("a", "row_age_seconds") < 4.0, "a goes on measuring")
    small.cut("c", down=False)
    small.until(lambda: "meanMs" in small.peers("a")["c"], "c answers again")
    small.until(lambda: small.row("c")["at"] > at, "c measures again")


def test_an_agent_that_is_restarted_is_measured_on(small: Lanes) -> None:
    small.until_measured("b", 10)
    small.stop("a")
    small.until(lambda: small.peers("b")["a"]["lost"] > 0.1, "b notices")
    small.start("a")
    small.until(lambda: close(small.peers("a")["b"]["meanMs"], 0.040), "a measures anew")
    small.until(lambda: close(small.peers("b")["a"]["meanMs"], 0.040), "b measures on")
    assert small.metric("b", "packets_dropped_total", reason="replayed") == 0


FLOOD = """
import os, socket, struct, sys, time
sys.path[:0] = sys.argv[4:]
from slacktide.model.latency import Coordinate
from slacktide.netprobe.packets import Packet, Sort, identity, sealed
me, to, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, number = time.time() + 12.0, 0
while time.time() < end:
    number += 1
    sort = Sort.ANSWER if number % 2 else Sort.PROBE
    packet = Packet(sort, identity("b"), identity(me), 1, number, os.urandom(16), time.time_ns() // 1000, 0,
                    Coordinate((9.0, 9.0, 9.0), 1.0), 0.0)
    for data in (sealed(packet, os.urandom(32)), os.urandom(136), b"SLKP", os.urandom(1400)):
        made.sendto(data, (to, port))
    time.sleep(0.002)
print(number)
"""


def test_forged_packets_are_counted_and_change_nothing(small: Lanes) -> None:
    small.until_measured("a", WINDOW)

    def dropped(reason: str) -> float:
        return small.metric("a", "packets_dropped_total", reason=reason)

    def withstood() -> bool:
        """A flood, after which means and losses are what they were; the machine may have had other things to do."""
        small.until(partial(few_lost, small, "a"), "few are lost")
        small.script(small.middle, FLOOD, "a", small.address("a"), str(PROBES), *source_path())
        return all(close(one["meanMs"], delay(small, "a", peer)) and one["lost"] < 0.2
                   for peer, one in small.peers("a").items())  # fmt: skip

    already = {reason: dropped(reason) for reason in ("forged", "format", "size")}
    small.until(withstood, "a flood changes nothing", 240)
    # The kernel may drop some of a flood itself, before the agent.
    for reason, count in already.items():
        small.until(lambda reason=reason, count=count: dropped(reason) >= count + 100, f"{reason} packets are counted")
    assert sum(map(abs, small.row("a")["coordinate"]["point"])) < 1000.0


REPLAY = """
import socket, sys, time
sys.path[:0] = sys.argv[4:]
from slacktide.model.latency import Coordinate
from slacktide.netprobe.agent import read_keys
from slacktide.netprobe.packets import Packet, Sort, identity, sealed
from pathlib import Path
key = read_keys(Path(sys.argv[3]))[0]
to = (sys.argv[1], int(sys.argv[2]))
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
made.settimeout(10.0)
def packet(receiver, sent, sequence):
    return sealed(Packet(Sort.PROBE, identity("b"), identity(receiver), 7, sequence, bytes(16), sent, 0,
                         Coordinate((0.0, 0.0, 0.0), 0.001), 0.5), key)
now = time.time_ns() // 1000
right = packet("a", now, 1)
made.sendto(right, to)
answer = made.recv(4096)
assert len(answer) == len(right), "an answer is as large as its probe"
for _ in range(20):
    made.sendto(right, to)
    made.sendto(answer, to)
    made.sendto(packet("c", now, 2), to)
    made.sendto(packet("a", now - 120_000_000, 3), to)
made.settimeout(2.0)
try:
    made.recv(4096)
    print("answered")
except TimeoutError:
    print("silent")
"""


def test_recorded_and_misdirected_packets_are_worth_nothing(small: Lanes) -> None:
    small.until_measured("a", 10)
    reasons = {"replayed": 20, "misdirected": 40, "stale": 20}
    before = {one: small.metric("a", "packets_dropped_total", reason=one) for one in reasons}
    key = str(small.folder / "key")
    assert small.script(small.middle, REPLAY, small.address("a"), str(PROBES), key, *source_path()) == "silent\n"

    def dropped() -> dict[str, float]:
        return {one: small.metric("a", "packets_dropped_total", reason=one) - before[one] for one in reasons}

    small.until(lambda: dropped() == reasons, f"exactly these are dropped: {reasons}")


def test_an_agent_with_another_key_is_not_believed(tmp_path: Path) -> None:
    with Lanes(tmp_path, {("a", "b"): 0.010}) as lanes:
        lanes.start("a", "--silent", "5")
        (tmp_path / "other").write_text(KEY[::-1])
        lanes.start("b", "--silent", "5", "--key-file", str(tmp_path / "other"))
        lanes.until(lambda: lanes.metric("a", "packets_dropped_total", reason="forged") >= 10, "a refuses b's probes")
        lanes.until(lambda: lanes.metric("b", "packets_dropped_total", reason="forged") >= 10, "b refuses a's probes")
        assert lanes.metric("a", "answers_total") == 0
        lanes.until(lambda: lanes.peers("a")["b"]["lost"] == 1.0, "b's answers do not count")


def source_path() -> list[str]:
    """Where the program under test is, for scripts in namespaces."""
    import slacktide

    return [str(Path(slacktide.__file__).parent.parent)]


def test_agents_measure_what_the_kernel_delays(tmp_path: Path) -> None:
    """The same with netem instead of the forwarder, where the kernel has it."""
    if shutil.which("tc") is None:
        pytest.skip("needs the program 'tc' of iproute2")
    with Lanes(tmp_path, {("a", "b"): 0.0}) as lanes:
        link = f"{lanes._mark}n0"
        words = ["tc", "qdisc", "add", "dev", link, "root", "netem", "delay", "35ms"]
        done = subprocess.run(lanes.inside(lanes.space("a"), *words), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"this kernel has no netem: {done.stderr.strip()}")
        for node in lanes.nodes:
            lanes.start(node)
        # Both ways cross a's link once: 35 ms a round.
        lanes.until(lambda: close(lanes.until_measured("a", WINDOW)["b"]["meanMs"], 0.035), "a's mean is right", 180)
        lanes.until(lambda: close(lanes.until_measured("b", WINDOW)["a"]["meanMs"], 0.035), "b's mean is right", 180)
