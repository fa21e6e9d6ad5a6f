"""Packets that are not ours, not for us, not asked for or not new."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from slacktide.errors import ConfigError
from slacktide.model.latency import Coordinate
from slacktide.netprobe.agent import VARIABLE, read_keys
from slacktide.netprobe.packets import FORM, SIZE, WINDOW, Packet, Refused, Replays, Sort, identity, opened, sealed

KEY, OTHER = bytes(range(32)), bytes(32)
PROBE = Packet(
    Sort.PROBE, identity("n1"), identity("n2"), 7, 3, bytes(16), 1_700_000_000_000_000, 0,
    Coordinate((0.001, -0.002, 0.003), 0.0005), 0.25,
)  # fmt: skip
ANSWER = dataclasses.replace(PROBE, sort=Sort.ANSWER, turnaround=123)


@pytest.mark.parametrize("packet", [PROBE, ANSWER])
def test_a_packet_comes_out_as_it_went_in(packet: Packet) -> None:
    found = opened(sealed(packet, KEY), (KEY,))
    assert dataclasses.replace(found, coordinate=packet.coordinate, error=packet.error) == packet
    assert found.coordinate.point == pytest.approx(packet.coordinate.point, rel=1e-6)
    assert (found.coordinate.height, found.error) == pytest.approx((0.0005, 0.25), rel=1e-6)


def test_an_answer_is_as_large_as_its_probe() -> None:
    assert len(sealed(PROBE, KEY)) == len(sealed(ANSWER, KEY)) == SIZE == FORM.size + 32


def test_every_byte_is_authenticated() -> None:
    right = sealed(PROBE, KEY)
    for place in range(SIZE):
        wrong = bytearray(right)
        wrong[place] ^= 0x01
        with pytest.raises(Refused):
            opened(bytes(wrong), (KEY,))


def test_noise_and_packets_of_other_sizes_are_refused_before_anything_is_hashed() -> None:
    right, chance = sealed(PROBE, KEY), random.Random(1)
    for data, reason in (
        (b"", "size"),
        (right[:-1], "size"),
        (right + b"\0", "size"),
        (chance.randbytes(SIZE), "format"),
        (right[:5] + b"\x03" + right[6:], "format"),
    ):
        with pytest.raises(Refused) as refused:
            opened(data, ())  # no key to hash with
        assert refused.value.reason == reason


def test_another_key_is_a_forgery_and_an_older_one_is_accepted_beside_the_new() -> None:
    with pytest.raises(Refused) as refused:
        opened(sealed(PROBE, OTHER), (KEY,))
    assert refused.value.reason == "forged"
    assert opened(sealed(PROBE, OTHER), (KEY, OTHER)).sequence == 3


@pytest.mark.parametrize(
    ("point", "height", "error"),
    [
        ((float("nan"), 0.0, 0.0), 0.1, 0.1),
        ((1e30, 0.0, 0.0), 0.1, 0.1),
        ((0.0,) * 3, -0.1, 0.1),
        ((0.0,) * 3, 0.1, -1.0),
    ],
)
def test_an_absurd_coordinate_is_refused_whoever_sealed_it(
    point: tuple[float, ...], height: float, error: float
) -> None:
    absurd = dataclasses.replace(PROBE, coordinate=Coordinate(point, height), error=error)
    with pytest.raises(Refused) as refused:
        opened(sealed(absurd, KEY), (KEY,))
    assert refused.value.reason == "format"


# Replays.

SENDER, EPOCH, NOW = b"sender", 1, 1000.0


def heard(replays: Replays, sequence: int, *, sent: float = NOW, now: float = NOW, epoch: int = EPOCH) -> str:
    return replays.why_not(SENDER, epoch, sequence, sent, now)


def test_a_probe_is_new_once() -> None:
    replays = Replays(60.0, 0.0)
    order = list(range(1, 200))
    random.Random(2).shuffle(order)
    assert [heard(replays, one) for one in order] == [""] * len(order)
    assert [heard(replays, one) for one in order] == ["replayed"] * len(order)


def test_a_probe_before_the_window_counts_as_seen() -> None:
    replays = Replays(60.0, 0.0)
    assert heard(replays, 10_000) == ""
    assert heard(replays, 10_000 - WINDOW + 1) == ""
    assert heard(replays, 10_000 - WINDOW) == "replayed"
    assert heard(replays, 10**12) == ""
    assert heard(replays, 10_001) == "replayed"


def test_a_restarted_prober_begins_anew_and_its_old_probes_stay_seen() -> None:
    replays = Replays(60.0, 0.0)
    assert heard(replays, 5) == ""
    assert heard(replays, 1, epoch=2) == ""
    assert heard(replays, 5) == "replayed"


@pytest.mark.parametrize("sent", [NOW - 61.0, NOW + 61.0])
def test_a_probe_far_from_our_clock_is_stale(sent: float) -> None:
    assert heard(Replays(60.0, 0.0), 1, sent=sent) == "stale"


def test_a_probe_from_before_our_start_is_stale_because_we_may_have_seen_it_then() -> None:
    replays = Replays(60.0, NOW - 10.0)
    assert heard(replays, 1, sent=NOW - 10.1) == "stale"
    assert heard(replays, 2, sent=NOW - 9.9) == ""


def test_a_clock_that_is_set_back_deafens_nobody_and_what_was_seen_stays_seen() -> None:
    replays = Replays(60.0, NOW + 86_400.0)  # the agent started with a clock a day ahead
    assert heard(replays, 1, now=NOW + 86_400.0) == "stale"
    assert heard(replays, 1) == ""
    assert heard(replays, 1) == "replayed"
    assert heard(replays, 2, sent=NOW - 1.0) == "stale"


def test_a_forgotten_prober_cannot_be_replayed() -> None:
    replays = Replays(60.0, 0.0)
    assert heard(replays, 1) == ""
    # Others go on, so that the first is forgotten; its recorded probe is too old by then.
    for later in range(10, 400, 10):
        assert heard(replays, 1, epoch=2 + later, sent=NOW + later, now=NOW + later) == ""
        assert heard(replays, 1, now=NOW + later) in ("replayed", "stale")


# Keys.


def test_keys_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("\n" + "a" * 32 + " \n" + "b" * 40 + "\n")
    monkeypatch.setenv(VARIABLE, "a" * 32)
    found = read_keys(file)
    assert len(found) == 2
    assert read_keys(None) == found[:1]
    assert "a" * 32 not in str(found)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "found 0 keys"), ("short", ":1: found a key of 5 characters"),
     ("x" * 40 + "\nsecret", ":2: found a key of 6"), ("\n".join("abcde"[i] * 32 for i in range(5)), "found 5 keys")],
)  # fmt: skip
def test_a_weak_key_is_refused_and_never_shown(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_keys(file)
    assert says in str(refused.value)
    assert str(file) in str(refused.value)
    assert not text or text.splitlines()[-1] not in str(refused.value)


def test_a_missing_key_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=VARIABLE):
        read_keys(None)
    with pytest.raises(ConfigError, match="No such file"):
        read_keys(tmp_path / "none")
