"""What an agent serves, and that its page tells of all of it."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

import aiohttp
import click
import pytest

from slacktide.cli.cluster.netprobe import netprobe
from slacktide.netprobe.agent import Agent
from slacktide.netprobe.http_server import AGENT, Server
from slacktide.netprobe.options import AgentIdentity, Options
from slacktide.netprobe.peers import Peer
from support.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "netprobe.md").read_text(encoding="utf-8")


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def asked(folder: Path, *paths: str) -> dict[str, tuple[int, str]]:
    """What an agent of two that measure each other answers, once it has measured."""
    (folder / "key").write_text("k" * 40)
    listen = f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"
    options = Options(interval=0.1)
    binds = [f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}" for _ in range(2)]
    second = Agent(AgentIdentity("n2", binds[1], "", key_file=folder / "key"), options)
    there = (("127.0.0.1", second.port),)
    first = Agent(AgentIdentity("n1", binds[0], listen, key_file=folder / "key"), options, peers=[Peer("n2", there)])
    tasks = [asyncio.ensure_future(one.run()) for one in (first, second)]
    try:
        while not first.row().peers:
            await asyncio.sleep(0.05)
        async with Server(first), aiohttp.ClientSession() as session:
            answers = {}
            for path in paths:
                async with session.get(f"http://{listen}{path}") as answer:
                    answers[path] = answer.status, await answer.text()
            return answers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    folder = tmp_path_factory.mktemp("agent")

    async def within_two_minutes() -> dict[str, tuple[int, str]]:
        async with asyncio.timeout(120):
            return await asked(folder, "/livez", "/readyz", "/metrics", "/row", "/other")

    return asyncio.run(within_two_minutes())


def test_an_agent_tells_of_its_health_and_its_row(answers: dict[str, tuple[int, str]]) -> None:
    assert answers["/livez"] == (200, "ok\n")
    assert answers["/readyz"] == (200, "ok\n")
    assert answers["/row"][0] == 200
    assert '"node": "n2"' in answers["/row"][1]
    assert answers["/other"][0] == 404


def test_an_agent_serves_every_metric_that_is_declared_and_no_other(answers: dict[str, tuple[int, str]]) -> None:
    declared = {one.exported for one in AGENT.declared}
    served = set(re.findall(r"^(slacktide_netprobe_\w+)", answers["/metrics"][1], re.M))
    served -= {name for name in served if name.endswith("_created")}
    on_a_cluster = {f"slacktide_netprobe_{one}" for one in ("publishes_total", "rows", "oldest_row_age_seconds")}
    assert served | on_a_cluster == declared
    assert not served & on_a_cluster


def test_the_page_names_options_with_their_defaults() -> None:
    command = netprobe.commands["run"]
    defaults = {name: one.default for one in command.params if isinstance(one, click.Option) for name in one.opts}
    named = re.findall(r"`(--[a-z-]+)` \((\d[\d.]*) ?(s|ms|%)?\)", PAGE)
    assert len(named) >= 6
    for option, value, unit in named:
        assert defaults[option] == pytest.approx(float(value) / {"%": 100.0, "ms": 1000.0}.get(unit, 1.0)), option
    of_helm = {"--set"}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) - of_helm <= {
        name for one in netprobe.commands.values() for param in one.params for name in param.opts
    }
