"""Users who were counted: told to pods that do not say where theirs are, in steps."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.mirror.network import LoginPoller, NetworkMirror, in_steps
from slacktide.kube.resources.objects import Pod, PodSpec
from slacktide.kube.translate.user_access import USERS_AT, access_of


def network() -> NetworkMirror:
    config = Config()
    return NetworkMirror(replace(config, policy=replace(config.policy, score="delay-aware")))


def test_shares_come_in_twentieths_that_sum_to_one() -> None:
    assert in_steps((("n1", 0.74), ("n2", 0.25), ("n3", 0.01))) == (("n1", 0.75), ("n2", 0.25))
    assert in_steps((("n1", 0.5), ("n2", 0.5))) == (("n1", 0.5), ("n2", 0.5))
    many = tuple((f"n{i:03}", 0.01) for i in range(100))
    assert sum(share for _, share in in_steps(many)) == pytest.approx(1.0)
    assert in_steps(()) == ()


def test_what_a_pod_says_goes_before_what_was_counted() -> None:
    counted = (("n2", 1.0),)
    spec = PodSpec(containers=())
    silent, says = Pod(Metadata(name="p"), spec), Pod(Metadata(name="p", annotations={USERS_AT: "n1"}), spec)
    assert access_of(silent, "", counted).logins == counted
    assert access_of(says, "", counted).logins == (("n1", 1.0),)


def test_an_address_needs_a_query_and_a_query_an_address() -> None:
    settings = replace(Config().kube, access_url="http://127.0.0.1:9090")
    with pytest.raises(ConfigError, match=r"kube\.access_url: found it alone, expected kube\.access_query, too"):
        LoginPoller(settings, network())
    settings = replace(Config().kube, access_query="sum(x)")
    with pytest.raises(ConfigError, match=r"kube\.access_query: found it alone, expected kube\.access_url, too"):
        LoginPoller(settings, network())


def test_nobody_is_asked_where_no_score_looks_at_users() -> None:
    settings = replace(Config().kube, access_url="http://127.0.0.1:9", access_query="sum(x)")
    asyncio.run(LoginPoller(settings, NetworkMirror(Config())).run())  # ends at once
