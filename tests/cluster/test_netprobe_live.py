"""Agents on a real API server: their rows, whose rows they may write, and what is read from them."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from cluster.installation import MANIFESTS, alone
from cluster.kubectl import Json, Kubectl
from cluster.labtools import until
from cluster.pulse import Pulse
from cluster.verdicts import each
from slacktide.cli import main
from slacktide.lab import Api, ApiError, Binaries, ControlPlane
from slacktide.lab.kubeconfig import write_kubeconfig
from slacktide.lab.manifests import apply_files

OURS = MANIFESTS / "netprobe"
HOME = ACCOUNT = "slacktide-netprobe"
ROWS = "/apis/slacktide.io/v1beta1/nodelatencies"
NODES = ("n1", "n2", "n3")
LEFT_OUT = frozenset({"DaemonSet"})
"""No kubelet here could start its pods; the agents run as processes with these pods' tokens."""


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    for plane in alone(binaries, tmp_path_factory.mktemp("plane")):
        plane.install()
        apply_files(plane.api, sorted(OURS.glob("*.yaml")), LEFT_OUT)
        for name in NODES:
            plane.create_nodes(1, prefix=name, labels={"site": "east" if name == "n3" else "west"})
        yield plane


@pytest.fixture(scope="module")
def nodes(plane: ControlPlane) -> dict[str, str]:
    """The nodes' real names."""
    found = sorted(one["metadata"]["name"] for one in plane.api.get("/api/v1/nodes")["items"])
    assert len(found) == len(NODES)
    return dict(zip(NODES, found, strict=True))


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    return Kubectl(binaries["kubectl"], plane.kubeconfig)


def agents_token(plane: ControlPlane, node: str) -> str:
    """The token of an agent's pod on a node, as its kubelet would ask for it."""
    name = f"agent-{node}"
    path = f"/api/v1/namespaces/{HOME}/pods"
    container = {"name": "netprobe", "image": "none"}
    spec = {"nodeName": node, "serviceAccountName": ACCOUNT, "containers": [container], "hostNetwork": True}
    with suppress(ApiError):
        plane.api.post(path, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    uid = plane.api.get(f"{path}/{name}")["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    request = {"expirationSeconds": 3600, "boundObjectRef": bound}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": request}
    answer = plane.api.post(f"/api/v1/namespaces/{HOME}/serviceaccounts/{ACCOUNT}/token", body)
    return str(answer["status"]["token"])


def agent(plane: ControlPlane, node: str) -> Api:
    """A client with exactly the rights of the agent on a node."""
    return Api(plane.url, agents_token(plane, node), plane.ca_file)


def row(plane: ControlPlane, node: str, owner: str = "", **status: Any) -> Json:
    """A NodeLatency that its node owns (or another one)."""
    uid = plane.api.get(f"/api/v1/nodes/{owner or node}")["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Node", "name": owner or node, "uid": uid}
    metadata = {"name": node, "ownerReferences": [reference]}
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "NodeLatency", "metadata": metadata, "status": status}


def refusal(user: Api, method: str, path: str, body: Json | None = None) -> str:
    """Why a user may not do this."""
    with pytest.raises(ApiError) as refused:
        user.request(method, path, body, "application/merge-patch+json" if method == "PATCH" else "application/json")
    assert refused.value.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY), refused.value
    return str(refused.value)


@pytest.fixture(scope="module")
def guarded(plane: ControlPlane, nodes: dict[str, str]) -> ControlPlane:
    """The control plane once the admission policy holds, which takes some seconds."""
    one, dry = agent(plane, nodes["n1"]), f"{ROWS}?dryRun=All"

    def holds() -> bool:
        try:
            one.post(dry, row(plane, nodes["n2"]))
        except ApiError as error:
            return "own node only" in str(error)
        return False

    until(holds, "the admission policy holds")
    return plane


# Whose rows an agent may write.


def test_an_agent_writes_its_own_row_and_no_other(guarded: ControlPlane, nodes: dict[str, str]) -> None:
    one, mine, others = agent(guarded, nodes["n1"]), nodes["n1"], nodes["n2"]
    status: Json = {
        "addresses": ["10.0.0.1:10360", "[fd00::1]:10360", "node-1.lan:10360"], "at": "2026-01-31T12:00:00.123456Z",
        "measured": 2, "reached": 1, "error": 0.1, "coordinate": {"point": [1.0, -2.0, 0.0], "height": 0.5},
        "peers": [PEER, {"node": "silent", "lost": 1, "samples": 0}],
    }  # fmt: skip
    made = one.post(f"{ROWS}?dryRun=All", row(guarded, mine, **status))
    assert made["status"]["peers"][0] == PEER
    try:
        one.post(ROWS, row(guarded, mine, measured=1))
        assert one.patch(f"{ROWS}/{mine}", {"status": {"measured": 2}})["status"]["measured"] == 2
        says = refusal(one, "POST", ROWS, row(guarded, others))
        assert f"row of node '{others}'" in says
        assert f"this token is of node '{mine}'" in says
        guarded.api.post(ROWS, row(guarded, others, measured=7))
        assert "own node only" in refusal(one, "PATCH", f"{ROWS}/{others}", {"status": {"measured": 0}})
        assert guarded.api.get(f"{ROWS}/{others}")["status"]["measured"] == 7
    finally:
        guarded.api.delete(ROWS)
    assert "ownerReferences" in refusal(one, "POST", ROWS, row(guarded, mine, owner=others)), "it goes with its node"
    without = row(guarded, mine)
    del without["metadata"]["ownerReferences"]
    assert "ownerReferences" in refusal(one, "POST", ROWS, without)
    loose = Api(guarded.url, guarded.service_account_token(HOME, ACCOUNT), guarded.ca_file)  # of no pod on a node
    assert "not bound to a pod" in refusal(loose, "POST", ROWS, row(guarded, mine))


def test_an_agent_may_do_nothing_else(guarded: ControlPlane, nodes: dict[str, str]) -> None:
    one, mine = agent(guarded, nodes["n1"]), nodes["n1"]
    assert one.get(f"/api/v1/nodes/{mine}")["metadata"]["name"] == mine
    for method, path, body in (
        ("GET", "/api/v1/nodes", None),
        ("PATCH", f"/api/v1/nodes/{mine}", {"metadata": {"labels": {"a": "b"}}}),
        ("GET", "/api/v1/pods", None),
        ("GET", f"/api/v1/namespaces/{HOME}/secrets", None),
        ("GET", f"/api/v1/namespaces/{HOME}/secrets/slacktide-netprobe", None),
        ("DELETE", f"{ROWS}/{mine}", None),
        ("DELETE", ROWS, None),
        ("GET", "/apis/slacktide.io/v1beta1/serviceclasses", None),
    ):
        assert "cannot" in refusal(one, method, path, body), path


# What a row may say.

PEER = {"node": "far", "lost": 0.0, "samples": 3, "meanMs": 5.0, "deviationMs": 0.1}


@each(
    ("status", "says"),
    [
        ({"peers": [PEER | {"meanMs": 0}]}, "must be above 0"),
        ({"peers": [PEER | {"meanMs": -5.0}]}, "must be above 0"),
        ({"peers": [PEER | {"meanMs": 1e9}]}, "at most 1000000 ms"),
        ({"peers": [PEER | {"deviationMs": -1}]}, "greater than or equal to 0"),
        ({"peers": [PEER | {"lost": 1.5}]}, "less than or equal to 1"),
        ({"peers": [{"node": "far", "lost": 0.0, "samples": 3, "meanMs": 5.0}]}, "come together"),
        ({"peers": [PEER | {"samples": 0}]}, "at least one sample"),
        ({"peers": [PEER, PEER]}, "Duplicate"),
        ({"peers": [PEER | {"node": "SELF"}]}, "must not name the node itself"),
        ({"peers": [{"node": "far"}]}, "Required"),
        ({"reached": 2, "measured": 1}, "reached must be at most measured"),
        ({"error": 1.5}, "less than or equal to 1"),
        ({"coordinate": {"point": []}}, "Required"),
        ({"coordinate": {"point": [1.0], "height": -1}}, "greater than or equal to 0"),
        ({"coordinate": {"point": [1e300], "height": 1}}, "should be less than or equal to 1e+06"),
        ({"addresses": ["10.0.0.1"]}, "must be HOST:PORT"),
        ({"addresses": ["fd00::1:10360"]}, "must be HOST:PORT"),
        ({"at": "yesterday"}, "date-time"),
    ],
)
def test_nonsense_is_refused(guarded: ControlPlane, nodes: dict[str, str], status: Json, says: str) -> None:
    text = json.dumps(status).replace("SELF", nodes["n1"])
    body = row(guarded, nodes["n1"], **json.loads(text))
    assert says in refusal(agent(guarded, nodes["n1"]), "POST", f"{ROWS}?dryRun=All", body)


# Agents at work.


class Agents:
    """An agent for each node, on loopback, each with the token of its own pod."""

    def __init__(self, plane: ControlPlane, nodes: dict[str, str], folder: Path) -> None:
        self.plane, self.nodes, self.folder = plane, nodes, folder
        (folder / "key").write_text("k" * 40)
        self.http: dict[str, int] = {}
        self.pulse = Pulse()

    def start(self, short: str, *words: str) -> None:
        node = self.nodes[short]
        kubeconfig = self.folder / f"kubeconfig-{short}"
        write_kubeconfig(
            kubeconfig, url=self.plane.url, token=agents_token(self.plane, node), ca_file=self.plane.ca_file, user=node
        )
        probes, http = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM)
        self.http[short] = http
        command = [
            sys.executable, "-m", "slacktide", "netprobe", "run", "--node", node, "--kubeconfig", str(kubeconfig),
            "--key-file", str(self.folder / "key"), "--bind", f"127.0.0.1:{probes}",
            "--advertise", f"127.0.0.1:{probes}", "--listen", f"127.0.0.1:{http}", "--interval", "0.3",
            "--timeout", "2", "--silent", "10", "--at-least-apart", "1", "--heartbeat", "3", "--stale-after", "12",
            *words,
        ]  # fmt: skip
        environment = {key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ}
        self.plane.add(f"netprobe-{short}", command, environment)

    def row(self, short: str) -> Json:
        try:
            return dict(self.plane.api.get(f"{ROWS}/{self.nodes[short]}"))
        except ApiError:
            return {}

    def reached(self, short: str) -> int:
        return int(self.row(short).get("status", {}).get("reached", 0))

    def get(self, short: str, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.http[short]}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def log(self, short: str) -> str:
        return self.plane.components[f"netprobe-{short}"].log.read_text(errors="replace")


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def agents(guarded: ControlPlane, nodes: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Agents:
    found = Agents(guarded, nodes, tmp_path_factory.mktemp("agents"))
    for short in NODES:
        found.start(short)
    for short in NODES:
        until(lambda short=short: found.reached(short) == 2, f"{short} reaches both others: {found.log(short)}")  # type: ignore[misc]
    return found


def test_agents_find_each_other_by_their_rows(agents: Agents) -> None:
    for short in NODES:
        found = agents.row(short)
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Node", agents.nodes[short])
        status = found["status"]
        assert {one["node"] for one in status["peers"]} == set(agents.nodes.values()) - {agents.nodes[short]}
        late = agents.pulse.late(0.0, time.time())  # so late answers may be on the same machine, too
        assert all(0.0 < one["meanMs"] < 100.0 + 1e3 * late for one in status["peers"])
        assert status["error"] < 1.0
        assert "coordinate" in status


def all_fresh(told: str) -> str:
    return told if 'slacktide_netprobe_rows{state="fresh"} 3.0' in told else ""


def shown(agents: Agents, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["netprobe", *words, "--kubeconfig", str(agents.plane.kubeconfig)]) == 0
    return capsys.readouterr().out


def test_what_agents_measure_is_told_wherever_one_looks(
    agents: Agents, kubectl: Kubectl, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In each agent's metrics, by kubectl, by the command, and as a network file."""
    assert agents.get("n1", "/livez") == "ok\n"
    until(lambda: agents.get("n1", "/readyz") == "ok\n", "n1 is ready")
    # On a busy machine a heartbeat may be late for a moment.
    told = until(lambda: all_fresh(agents.get("n1", "/metrics")), "all rows are fresh")
    assert 'slacktide_netprobe_rows{state="stale"} 0.0' in told
    assert float(re.findall(r'^slacktide_netprobe_publishes_total{result="written"} (\S+)$', told, re.M)[0]) >= 2.0
    assert re.search(r"^slacktide_netprobe_oldest_row_age_seconds \d", told, re.M)

    def lines() -> list[str]:
        head, *rows = kubectl.ok("get", "nodelat").splitlines()
        assert head.split() == ["NAME", "PEERS", "REACHED", "ERROR", "MEASURED", "AGE"]
        return rows

    assert len(lines()) == 3
    # An agent on a busy machine may publish before it has heard of both others, and again only after a while.
    until(lambda: all(re.search(r"\s2\s+2\s+\S+\s+\d+s\s", line) for line in lines()), "all reach two")

    head, *rows = shown(agents, capsys, "show").splitlines()
    assert head.split()[:3] == ["NODE", "PEERS", "REACHED"]
    assert [line.split()[0] for line in rows] == sorted(agents.nodes.values())
    assert all(line.endswith("fresh") for line in rows)
    assert set(json.loads(shown(agents, capsys, "show", "--json"))) == set(agents.nodes.values())

    out = tmp_path / "network.yaml"
    shown(agents, capsys, "export", "--out", str(out))
    found = yaml.safe_load(out.read_text())
    assert found["places"] == sorted(agents.nodes.values())
    rtt = found["rtt_ms"]
    assert all(rtt[a][a] == 0 and rtt[a][b] == rtt[b][a] > 0 for a in range(3) for b in range(3) if a != b)
    shown(agents, capsys, "export", "--out", str(out), "--site-label", "site")
    by_site = yaml.safe_load(out.read_text())
    assert (by_site["site"], by_site["places"]) == ("site", ["east", "west"])
    assert by_site["rtt_ms"][1][1] > 0


def test_a_row_that_somebody_deleted_is_written_again(agents: Agents) -> None:
    before = agents.row("n1")["metadata"]["uid"]
    agents.plane.api.delete(f"{ROWS}/{agents.nodes['n1']}")

    def back() -> bool:
        found = agents.row("n1")
        return bool(found) and found["metadata"]["uid"] != before and found["status"].get("reached") == 2

    until(back, "n1's row is back")
    until(lambda: all(agents.reached(short) == 2 for short in NODES), "the others measure it again")


def test_an_agent_that_ends_leaves_a_row_that_grows_stale_and_one_that_starts_again_carries_on(
    agents: Agents, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = agents.row("n2")
    agents.plane.components["netprobe-n2"].stop()
    until(lambda: agents.reached("n1") == 1, "n1 notices")
    until(lambda: f"row of node {agents.nodes['n2']} is stale" in agents.log("n1"), "n1 warns of it")

    def states() -> list[str]:
        return [line.split()[-1] for line in shown(agents, capsys, "show", "--stale-after", "12").splitlines()[1:]]

    # On a busy machine another's heartbeat may be late, too, for a moment.
    until(lambda: states() == ["fresh", "stale", "fresh"], "only n2's row is stale")
    out = tmp_path / "network.yaml"
    words = ["netprobe", "export", "--kubeconfig", str(agents.plane.kubeconfig), "--out", str(out)]

    def warning() -> str:
        capsys.readouterr()
        assert main([*words, "--stale-after", "12"]) == 0
        return capsys.readouterr().err

    until(lambda: "1 of 3 nodes have no fresh row and count as" in warning(), "only n2's row is left out")
    rtt = yaml.safe_load(out.read_text())["rtt_ms"]
    assert rtt[0][1] == rtt[1][2] == pytest.approx(2.0 * rtt[0][2], abs=0.002)
    agents.start("n2")
    # Until it has measured for itself, the row of the agent before it stays.

    def measured() -> Json | None:
        found = agents.row("n2")
        both = (found["status"]["reached"], found["status"]["measured"]) == (2, 2)
        return found if both and found["status"]["at"] > before["status"]["at"] else None

    after = until(measured, "n2 measures both again")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["addresses"] != before["status"]["addresses"]
    until(lambda: agents.reached("n1") == 2, "n1 measures n2 at its new address")


def test_an_agent_tells_others_the_addresses_of_its_node_with_which_its_row_goes(agents: Agents) -> None:
    agents.plane.create_nodes(1, prefix="n4")
    agents.nodes["n4"] = node = "n4-0"
    addresses = [{"type": "Hostname", "address": node}, {"type": "InternalIP", "address": "127.0.0.1"}]
    addresses.append({"type": "InternalIP", "address": "fd00::4"})
    agents.plane.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"addresses": addresses}})
    port = free_port(socket.SOCK_DGRAM)
    agents.start("n4", "--advertise", "", "--bind", f"0.0.0.0:{port}")
    try:
        until(lambda: agents.reached("n4") >= 2, "n4 reaches the others")
        until(lambda: agents.row("n1")["status"]["measured"] == 3, "n1 measures it")
        # Its socket is of IPv4.
        assert agents.row("n4")["status"]["addresses"] == [f"127.0.0.1:{port}"]
    finally:
        agents.plane.components["netprobe-n4"].stop()
        agents.plane.api.delete(f"/api/v1/nodes/{node}")
    until(lambda: not agents.row("n4"), "the garbage collector took the row")
    until(lambda: agents.row("n1")["status"]["measured"] == 2, "n1 forgets it")
