"""What ``slacktide explain`` and ``slacktide top`` write."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from slacktide.cli import app
from slacktide.cli.cluster.explain import explain as explaining
from slacktide.cli.cluster.top import Ledgers
from slacktide.cli.cluster.top_rows import Line
from slacktide.errors import ConfigError
from slacktide.for_people import slack_text
from slacktide.kube.publish.conditions import READ_WRITE_ONCE_POD, named_rule
from slacktide.kube.translate.selectors import NOTHING, PodSelection, TermEffect
from slacktide.model import Rule

BRONZE, GOLD = {"slacktide.io/class": "bronze"}, {"slacktide.io/class": "gold"}


def test_a_ledger_of_another_version_is_shown_as_it_was_written() -> None:
    from slacktide.kube.resources.objects import AVAILABILITY
    from support.made_objects import decoded

    status = {"class": "gold", "promised": 0.9, "delivered": 0.95, "slackSeconds": 12.0, "state": "Kept", "running": 1}
    body = {"metadata": {"name": "pod-a", "namespace": "n"}, "status": status | {"accumulators": {"version": 99}}}
    ledgers = Ledgers()
    ledgers.changed(decoded(AVAILABILITY, body))
    by = (0.0, 0.0, 0.0)
    assert ledgers.lines(2e9) == [Line("n", "pod-a", "gold", 0.9, 0.95, 12.0, "Kept", 1, 0, 0, lost_by=by)]


def test_slack_without_a_limit_has_no_number() -> None:
    assert (slack_text(None), slack_text(-1.26)) == ("unlimited slack", "-1.3s of slack")


NOBODY = (PodSelection(NOTHING, ("default",)),)


@pytest.mark.parametrize(
    ("kind", "mark", "text"),
    [
        ("away", "port:TCP/80", "node(s) didn't have free ports for the requested pod ports"),
        ("away", "claim:default/data", READ_WRITE_ONCE_POD),
        ("away", TermEffect("member", NOBODY).mark, "node(s) didn't match pod anti-affinity rules"),
        ("away", TermEffect("avoids", NOBODY, "zone").mark, "node(s) didn't satisfy existing pods anti-affinity rules"),
        ("near", TermEffect("member", NOBODY).mark, "node(s) didn't match pod affinity rules"),
        ("spread", TermEffect("counted", NOBODY).mark, "node(s) didn't match pod topology spread constraints"),
        ("near", "something", "node(s) had no 'something' near"),
    ],
)
def test_rules_have_the_names_that_users_know(kind: str, mark: str, text: str) -> None:
    assert named_rule(Rule(kind, mark)) == text  # type: ignore[arg-type]  # one of the kinds


@pytest.mark.parametrize(
    ("words", "command", "rest"),
    [
        (["web-1"], "pod", ["web-1"]),
        (["web-1", "-n", "shop"], "pod", ["web-1", "-n", "shop"]),
        (["po/web-1"], "pod", ["web-1"]),
        (["deploy/web"], "deployment", ["web"]),
        (["node", "a"], "node", ["a"]),
    ],
)
def test_what_is_explained_is_named_as_for_kubectl(words: list[str], command: str, rest: list[str]) -> None:
    assert explaining.resolve_command(click.Context(explaining), words)[::2] == (command, rest)


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(click.UsageError, match="deployment"):
        explaining.resolve_command(click.Context(explaining), ["deploymnt", "web"])


def test_an_address_where_nobody_answers_is_an_error(tmp_path: Path) -> None:
    config = {"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
              "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}],
              "users": [{"name": "x", "user": {}}]}  # fmt: skip
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    words = ["explain", "high", "--address", "http://127.0.0.1:9", "--kubeconfig", str(kubeconfig)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith("--address: http://127.0.0.1:9: ")
