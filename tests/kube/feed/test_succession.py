"""New pods continue the instances of preempted ones once those are gone."""

from __future__ import annotations

from slacktide.kube.feed.succession import Succession


def test_as_many_wait_as_are_leaving() -> None:
    one = Succession()
    assert not one.must_wait("web", "early")  # nobody leaves
    one.told("web", "a")
    one.told("web", "b")
    assert one.must_wait("web", "c")
    assert one.must_wait("web", "d")
    assert one.must_wait("web", "c")  # asked again, it still waits
    assert not one.must_wait("web", "e")  # a further instance: scaled up
    assert not one.must_wait("other", "f")
    assert one.ended("web", "a") == "c"
    assert one.ended("web", "b") == "d"
    assert not one.leaving
    assert not one.held


def test_one_that_waited_and_is_gone_is_waited_for_no_more() -> None:
    one = Succession()
    one.told("web", "a")
    assert one.must_wait("web", "c")
    assert one.ended("web", "c") == ""
    assert one.must_wait("web", "d")
    assert one.ended("web", "a") == "d"
    assert one.ended("web", "d") == ""


def test_the_end_of_others_releases_nobody() -> None:
    one = Succession()
    one.told("web", "a")
    assert one.must_wait("web", "c")
    assert one.ended("web", "x") == ""
    assert one.ended("other", "a") == ""
    assert one.ended("web", "a") == "c"
