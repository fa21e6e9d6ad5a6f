"""Who is let in, on a real API server: over HTTP, with quotas, as a node, and before others when it is busy."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import aiohttp
import pytest
from click.testing import CliRunner

from cluster.installation import ACCOUNT, installed
from cluster.kubectl import Json, Kubectl, cells
from cluster.labtools import condition, pod, pods_path, until
from cluster.running import Running
from cluster.workloads import workload
from slacktide.cli import app
from slacktide.cli.cluster.dashboard import Relay
from slacktide.cli.cluster.scheduler_pages import Trust
from slacktide.kube.client.credentials import Access, Fixed, load_access
from slacktide.kube.client.http import Connection
from slacktide.kube.observe.access import ANSWER_SECONDS, Reviews
from slacktide.kube.observe.http_site import Site
from slacktide.lab import Binaries, ControlPlane
from slacktide.settings import load_live
from support.authority import Authority

HOME = ACCOUNT[0]


@pytest.fixture(scope="module")
def clients() -> Authority:
    """By which the cluster knows clients."""
    return Authority("clients")


@pytest.fixture(scope="module")
def fronts() -> Authority:
    """By which the cluster knows proxies in front."""
    return Authority("fronts")


@pytest.fixture(scope="module")
def plane(
    binaries: Binaries, tmp_path_factory: pytest.TempPathFactory, clients: Authority, fronts: Authority
) -> Iterator[ControlPlane]:
    """A control plane whose API server restricts nodes and knows client certificates, as clusters do."""
    folder = tmp_path_factory.mktemp("plane")
    for name, one in (("clients", clients), ("fronts", fronts)):
        (folder / name).write_text(one.pem)
    flags = [
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={folder / 'clients'}",
        f"--requestheader-client-ca-file={folder / 'fronts'}",
        "--requestheader-allowed-names=front",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]
    plane = ControlPlane.create(folder / "lab", binaries, flags={"kube-apiserver": flags})
    plane.start(guarded=True)
    yield plane
    plane.stop()


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    """An administrator on a cluster with our manifests, and with accounts that may read different things."""
    found = installed(plane, binaries)
    for role in ("metrics", "explain"):
        found.ok("create", "serviceaccount", role)
        bound = (f"--clusterrole=slacktide-{role}-reader", f"--serviceaccount=default:{role}")
        found.ok("create", "clusterrolebinding", f"test-{role}", *bound)
    return found


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, kubectl: Kubectl) -> Iterator[Running]:
    """The scheduler as the manifests have it: delegated, with a certificate of its own making."""
    assert kubectl.ok("get", "clusterrole", "slacktide-metrics-reader")
    running = Running(plane, kube__http_access="delegated").wait_until_leading()
    yield running
    running.stop()
    assert not running.complaints()


def asked(
    running: Running, path: str, token: str = "", files: tuple[str, str] | None = None, **headers: str
) -> tuple[int, str]:
    """Status and body of a page; ``files`` have a client certificate. The server's own is looked at elsewhere."""
    unverified = ssl._create_unverified_context()
    if files is not None:
        unverified.load_cert_chain(*files)
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urlopen(
            Request(f"https://127.0.0.1:{running.port}{path}", headers=sent | headers), timeout=60, context=unverified
        ) as answer:
            return int(answer.status), answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_health_is_told_to_everybody_and_nothing_else_to_strangers(scheduler: Running) -> None:
    assert [asked(scheduler, path)[0] for path in ("/livez", "/healthz", "/readyz")] == [HTTPStatus.OK] * 3
    for path in ("/metrics", "/configz", "/explain?name=p"):
        status, text = asked(scheduler, path)
        assert (status, "found no bearer token, nor a client certificate" in text) == (HTTPStatus.UNAUTHORIZED, True)
        assert asked(scheduler, path, "made-up")[0] == HTTPStatus.UNAUTHORIZED
        assert asked(scheduler, path, Authorization="Basic YTpi")[0] == HTTPStatus.UNAUTHORIZED


def test_the_page_is_given_to_everybody_and_its_data_to_who_may_explain(
    plane: ControlPlane, scheduler: Running
) -> None:
    status, text = asked(scheduler, "/dashboard/")
    assert (status, "<title>slacktide</title>" in text) == (HTTPStatus.OK, True)
    assert asked(scheduler, "/dashboard/app.js")[0] == HTTPStatus.OK
    assert asked(scheduler, "/view")[0] == HTTPStatus.UNAUTHORIZED
    assert asked(scheduler, "/view", "made-up")[0] == HTTPStatus.UNAUTHORIZED
    status, text = asked(scheduler, "/view", plane.service_account_token("default", "metrics"))
    assert (status, "may not get /view" in text) == (HTTPStatus.FORBIDDEN, True)
    token = plane.service_account_token("default", "explain")
    request = Request(f"https://127.0.0.1:{scheduler.port}/view", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=60, context=ssl._create_unverified_context()) as stream:
        assert stream.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert b'"source":"scheduler"' in stream.readline()


def test_the_command_passes_data_on_with_a_token_that_the_browser_does_not_see(
    plane: ControlPlane, scheduler: Running, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(plane.service_account_token("default", "explain"))
    fingerprint = scheduler.log.partition("SHA-256 fingerprint ")[2].split()[0]
    address = f"127.0.0.1:{scheduler.port}"

    def relayed(trust: Trust) -> tuple[int, bytes]:
        async def ask() -> tuple[int, bytes]:
            async with (
                Site("test", "127.0.0.1:0", Relay(address, trust).routes()) as site,
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{site.port}/view") as got,
            ):
                return got.status, await got.content.readline()

        return asyncio.run(ask())

    status, line = relayed(Trust(token, None, fingerprint))
    assert (status, b'"source":"scheduler"' in line) == (HTTPStatus.OK, True)
    assert token.read_bytes() not in line
    status, line = relayed(Trust(token, None, "0" * 64))  # somebody else's certificate: no token is shown
    assert (status, b"does not answer" in line) == (HTTPStatus.BAD_GATEWAY, True)


def test_who_may_read_metrics_reads_them_and_nothing_else(plane: ControlPlane, scheduler: Running) -> None:
    token = plane.service_account_token("default", "metrics")
    status, text = asked(scheduler, "/metrics", token)
    assert (status, "slacktide_leader" in text) == (HTTPStatus.OK, True)
    status, text = asked(scheduler, "/explain?name=p", token)
    assert status == HTTPStatus.FORBIDDEN
    assert "system:serviceaccount:default:metrics may not get /explain: a ClusterRole with nonResourceURLs" in text
    assert asked(scheduler, "/configz", token)[0] == HTTPStatus.FORBIDDEN


def test_a_token_for_another_audience_is_not_taken(plane: ControlPlane, scheduler: Running) -> None:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["elsewhere"]}}
    made = plane.api.post("/api/v1/namespaces/default/serviceaccounts/metrics/token", request)
    assert asked(scheduler, "/metrics", made["status"]["token"])[0] == HTTPStatus.UNAUTHORIZED


def test_who_has_a_certificate_of_the_clusters_needs_no_token(
    kubectl: Kubectl, scheduler: Running, clients: Authority, tmp_path: Path
) -> None:
    said = "client certificates: accepting those of 1 authorities, and of 1 for proxies"
    until(lambda: said in scheduler.log, "it read them")
    kubectl.ok("create", "clusterrolebinding", "by-group", "--clusterrole=slacktide-metrics-reader", "--group=watchers")
    kubectl.ok("create", "clusterrolebinding", "by-name", "--clusterrole=slacktide-explain-reader", "--user=ann")
    ann = clients.written(tmp_path, "ann", "watchers")
    until(lambda: asked(scheduler, "/metrics", files=ann)[0] == HTTPStatus.OK, "the right of its group is known")
    until(lambda: asked(scheduler, "/configz", files=ann)[0] == HTTPStatus.OK, "its own right is known")
    status, text = asked(scheduler, "/metrics", files=clients.written(tmp_path, "bob", "cooks"))
    assert (status, "bob may not get /metrics" in text) == (HTTPStatus.FORBIDDEN, True)
    assert asked(scheduler, "/livez", files=ann)[0] == HTTPStatus.OK


def test_a_certificate_of_somebody_elses_ends_the_connection(scheduler: Running, tmp_path: Path) -> None:
    stranger = Authority("clients").written(tmp_path, "ann", "system:masters")
    with pytest.raises(OSError, match=r"alert|reset|closed|EOF"):
        asked(scheduler, "/metrics", files=stranger)


def test_a_proxy_in_front_says_for_whom_it_asks(
    scheduler: Running, clients: Authority, fronts: Authority, tmp_path: Path
) -> None:
    for_ann: dict[str, Any] = {"X-Remote-User": "ann", "X-Remote-Group": "watchers"}
    for_carl: dict[str, Any] = {"X-Remote-User": "carl"}
    front = fronts.written(tmp_path, "front")
    assert asked(scheduler, "/metrics", files=front, **for_ann)[0] == HTTPStatus.OK
    status, text = asked(scheduler, "/metrics", files=front, **for_carl)
    assert (status, "carl may not get /metrics" in text) == (HTTPStatus.FORBIDDEN, True)
    assert asked(scheduler, "/metrics", files=front)[0] == HTTPStatus.UNAUTHORIZED
    assert asked(scheduler, "/metrics", files=fronts.written(tmp_path, "back"), **for_ann)[0] == HTTPStatus.UNAUTHORIZED
    status, text = asked(scheduler, "/metrics", files=clients.written(tmp_path, "dora"), **for_ann)
    assert (status, "dora may not get /metrics" in text) == (HTTPStatus.FORBIDDEN, True)
    assert asked(scheduler, "/metrics", **for_ann)[0] == HTTPStatus.UNAUTHORIZED


def test_the_clusters_client_works_with_a_certificate_and_so_does_explain(
    kubectl: Kubectl, scheduler: Running, clients: Authority, tmp_path: Path
) -> None:
    kubectl.ok("create", "clusterrolebinding", "eve", "--clusterrole=view", "--user=eve")
    kubectl.ok("create", "clusterrolebinding", "eve-too", "--clusterrole=slacktide-explain-reader", "--user=eve")
    certificate, key = clients.written(tmp_path, "eve")
    found = json.loads(kubectl.ok("config", "view", "--raw", "-o", "json"))
    in_place = {"client-certificate": certificate, "client-key": key}
    inline = {f"{name}-data": base64.b64encode(Path(file).read_bytes()).decode() for name, file in in_place.items()}
    fingerprint = scheduler.log.partition("SHA-256 fingerprint ")[2].split()[0]
    for user in (in_place, inline):
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(found | {"users": [{"name": one["name"], "user": user} for one in found["users"]]}))

        async def pods(file: Path = file) -> bytes:
            async with Connection(await load_access(file)) as connection:
                return await connection.get("/api/v1/namespaces/default/pods")

        assert b"PodList" in asyncio.run(pods())
        known = ("--address", f"127.0.0.1:{scheduler.port}", "--fingerprint", fingerprint)
        says("pod default/p not found", *known, "--kubeconfig", str(file))
        assert "pod default/p" not in says("", *known[:3], "0" * 64, "--kubeconfig", str(file))


def test_it_speaks_tls_only(scheduler: Running) -> None:
    with pytest.raises(OSError, match=r"reset|closed"):
        urlopen(f"http://127.0.0.1:{scheduler.port}/livez", timeout=60)


def says(words: str, *options: str) -> str:
    """What ``slacktide explain`` says of a pod that is not there: it fails, with these words."""
    result = CliRunner().invoke(app, ["explain", "p", *options])
    text = f"{result.output}{result.exception or ''}"
    assert (result.exit_code != 0, words in text) == (True, True), text
    return text


def test_explain_shows_a_token_to_a_certificate_that_it_knows(
    plane: ControlPlane, scheduler: Running, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(plane.service_account_token("default", "explain"))
    address = ("--address", f"127.0.0.1:{scheduler.port}")
    fingerprint = scheduler.log.partition("SHA-256 fingerprint ")[2].split()[0]
    shown = ("--token-file", str(token))
    known = ("--fingerprint", fingerprint)
    says("pod default/p not found", *address, *shown, *known)
    says("certificate is known: give --fingerprint or --ca-file", *address, *shown)
    assert "pod default/p" not in says("", *address, *shown, "--fingerprint", "0" * 64)
    token.write_text(plane.service_account_token("default", "metrics"))
    says("may not get /explain", *address, *shown, *known)
    # The kubeconfig's own token: the administrator's.
    says("pod default/p not found", *address, *known, "--kubeconfig", str(plane.kubeconfig))


def authority(directory: Path, name: str) -> tuple[str, str]:
    """A certificate for this machine and its key, in files."""
    from slacktide.kube.observe.certificates import self_signed

    certificate, key = self_signed(name)
    files = directory / "tls.crt", directory / "tls.key"
    for file, content in zip(files, (certificate, key), strict=True):
        file.with_suffix(".new").write_bytes(content)
        file.with_suffix(".new").rename(file)
    return str(files[0]), str(files[1])


def test_a_certificate_of_files_is_shown_and_read_again_when_it_is_renewed(
    plane: ControlPlane, kubectl: Kubectl, tmp_path: Path
) -> None:
    assert kubectl.ok("get", "namespace", HOME)
    certificate, key = authority(tmp_path, "first")
    named: dict[str, Any] = {"kube__tls_certificate": certificate, "kube__tls_key": key}
    running = Running(plane, name="files", kube__http_access="delegated", kube__leader_election=False, **named)
    try:
        running.wait_until_leading()
        token = plane.service_account_token("default", "metrics")
        request = Request(f"https://127.0.0.1:{running.port}/metrics", headers={"Authorization": f"Bearer {token}"})

        def verified() -> bool:
            with urlopen(request, timeout=60, context=ssl.create_default_context(cafile=certificate)) as answer:
                return bool(answer.status == HTTPStatus.OK)

        assert verified()
        old = Path(certificate).read_text()
        authority(tmp_path, "second")
        assert Path(certificate).read_text() != old
        assert verified()
        Path(key).write_text("broken")  # half of a renewal
        assert verified()
        assert "the last certificate stays in use" in running.log
    finally:
        running.stop()


class Watch:
    """A clock that somebody moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_answers_are_remembered_for_some_seconds_and_no_longer(plane: ControlPlane, kubectl: Kubectl) -> None:
    kubectl.ok("create", "serviceaccount", "guest")
    kubectl.ok("create", "clusterrolebinding", "guest", "--clusterrole=slacktide-metrics-reader",
               "--serviceaccount=default:guest")  # fmt: skip
    shown = f"Bearer {plane.service_account_token('default', 'guest')}"
    clock = Watch()

    async def main() -> None:
        access = await load_access(plane.service_account_kubeconfig(*ACCOUNT))
        async with Connection(access) as connection, Connection(access) as another:
            reviews = Reviews(connection, clock)

            async def status(reviews: Reviews = reviews) -> int:
                return (await reviews.verdict("GET", "/metrics", shown)).status

            while await status(Reviews(another)) != 0:  # the API server hears of a new role a moment later
                await asyncio.sleep(0.05)
            assert await status() == 0
            await asyncio.to_thread(kubectl.ok, "delete", "clusterrolebinding", "guest")
            while await status(Reviews(another)) == 0:
                await asyncio.sleep(0.05)
            clock.now += ANSWER_SECONDS - 0.1
            assert await status() == 0, "the answer is remembered"
            clock.now += 0.2
            assert await status() == HTTPStatus.FORBIDDEN
            await asyncio.to_thread(kubectl.ok, "delete", "serviceaccount", "guest")
            while await status(Reviews(another)) != HTTPStatus.UNAUTHORIZED:
                await asyncio.sleep(0.05)
            assert await status() == HTTPStatus.FORBIDDEN, "who he is is remembered"
            clock.now += ANSWER_SECONDS
            assert await status() == HTTPStatus.UNAUTHORIZED

    asyncio.run(main())


def test_an_account_without_the_right_to_ask_lets_nobody_in(plane: ControlPlane, kubectl: Kubectl) -> None:
    kubectl.ok("create", "serviceaccount", "powerless")
    token = plane.service_account_token("default", "powerless")

    async def main() -> None:
        access = await load_access(plane.kubeconfig)
        weak = Access(access.server, Fixed(f"Bearer {token}"), access.context)
        async with Connection(weak) as connection:
            found = await Reviews(connection).verdict("GET", "/metrics", f"Bearer {plane.token}")
            assert found.status == HTTPStatus.INTERNAL_SERVER_ERROR
            assert "the API server cannot review the token" in found.reason
            assert "tokenreviews" in found.reason

    asyncio.run(main())


# -- classes and quotas ------------------------------------------------------------------------------------------------


def test_a_class_without_namespaces_may_be_used_by_none(kubectl: Kubectl) -> None:
    def named(name: str, **spec: Any) -> Json:
        head = {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name}}
        return head | {"spec": {"slo": 0.5, "rank": 5, **spec}}

    kubectl.ok("apply", "-f", "-", stdin=[named("nobody"), named("all", namespaces=["*"])])
    pods = {name: workload("Pod", service_class=name) for name in ("nobody", "all")}
    until(lambda: kubectl.refuses(pods["nobody"]), "the policy knows the class")
    said = " ".join(kubectl.try_apply(pods["nobody"]).error.split())
    assert "may not be used in namespace 'default': its spec.namespaces lists none; '*' stands for all" in said
    assert not kubectl.refuses(pods["all"])
    kubectl.ok("delete", "svcclass", "nobody", "all")


@pytest.fixture(scope="module")
def bounded(plane: ControlPlane, kubectl: Kubectl) -> str:
    """A namespace in which two pods of a CPU each may be promised, and a class that promises half."""
    kubectl.ok("create", "namespace", "bounded")
    half = {"slo": 0.5, "rank": 2, "namespaces": ["bounded"]}
    kubectl.ok("apply", "-f", "-", stdin=[_own("ServiceClass", "half", half), _quota("half", cpu="1", workloads=9)])
    plane.create_nodes(1, prefix="entry", cpu="32", memory="32Gi")
    return "bounded"


def _own(kind: str, name: str, spec: Json, **metadata: str) -> Json:
    version = "slacktide.io/v1beta1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def _quota(service: str, **hard: Any) -> Json:
    return _own("PromiseQuota", service, {"class": service, "hard": hard}, namespace="bounded")


def test_the_status_of_a_quota_says_what_is_used_and_how_many_wait(
    plane: ControlPlane, kubectl: Kubectl, scheduler: Running, bounded: str
) -> None:
    assert scheduler.leads
    kubectl.ok("apply", "-f", "-", stdin=[_quota("shared", cpu="1", workloads=9)])
    path, quota = pods_path(bounded), f"/apis/slacktide.io/v1beta1/namespaces/{bounded}/promisequotas/shared"

    def says(kind: str) -> tuple[str, str]:
        one: Json = plane.api.get(quota)
        found = condition(one, kind) if one.get("status") else {}
        return found.get("status", ""), found.get("reason", "")

    def status() -> Json:
        found: Json = plane.api.get(quota)["status"]
        return found

    until(lambda: says("Enforced") == ("False", "NoSuchClass"), "its class does not exist")
    kubectl.ok("apply", "-f", "-", stdin=_own("ServiceClass", "shared", {"slo": 0.5, "rank": 2, "namespaces": ["*"]}))
    for name in ("s1", "s2", "s3"):
        labels = {"slacktide.io/class": "shared"}
        plane.api.post(path, pod(name, cpu="1", labels=labels, schedulerName="slacktide"))
    until(lambda: says("Exhausted") == ("True", "PodsRefused"), "one is refused")
    assert (status()["refused"], status()["hard"]) == (1, {"cpu": "1", "workloads": "9"})
    assert status()["used"] == {"cpu": "1", "memory": "64Mi", "workloads": 3}
    columns = cells(kubectl.ok("-n", bounded, "get", "pquota", "shared"))
    assert (columns["CPU"], columns["USED-CPU"], columns["REFUSED"]) == (["1"], ["1"], ["1"])
    until(lambda: says("Enforced") == ("True", "Enforced"), "its class exists")
    plane.api.delete(f"{path}/s1", 0)
    until(lambda: says("Exhausted") == ("False", "WithinLimits"), "nobody is refused any more")
    until(lambda: plane.api.get(f"{path}/s3")["spec"].get("nodeName"), "the third has a node")
    plane.api.patch(quota, {"spec": {"hard": {"cpu": "500m"}}})
    until(lambda: says("Exhausted") == ("True", "AboveLimit"), "more is used than is allowed")
    assert status()["observedGeneration"] == plane.api.get(quota)["metadata"]["generation"]
    scheduler.stop()
    scheduler.restart()
    plane.api.delete(f"{path}/s2", 0)
    until(lambda: status()["used"]["cpu"] == "500m", "the next leader writes it on")
    assert says("Exhausted") == ("False", "WithinLimits")
    plane.api.delete(f"{path}/s3", 0)
    plane.api.delete(quota)


def test_what_a_quota_forbids_whatever_is_there_is_refused_at_once(kubectl: Kubectl, bounded: str) -> None:
    kubectl.ok("apply", "-f", "-", stdin=[_quota("never", cpu="0")])
    never = workload("Deployment", service_class="never", namespace=bounded)
    until(lambda: kubectl.refuses(never), "the policy knows the quota")
    said = " ".join(kubectl.try_apply(never).error.split())
    assert "may not be used in namespace 'bounded': PromiseQuota 'never' allows no cpu" in said
    placed = workload("Pod", service_class="half", namespace=bounded, nodeName="entry-0")
    said = " ".join(kubectl.try_apply(placed).error.split())
    assert "spec.nodeName: found 'entry-0', expected nothing: PromiseQuota 'half' limits class 'half' in this" in said
    # Of these only the scheduler knows the class, and it takes nothing from what has a node.
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": True}
    for service_class, owners in ((None, [owner]), ("other", [owner]), (None, [])):
        hidden = workload("Pod", service_class=service_class, namespace=bounded, nodeName="entry-0")
        hidden["metadata"]["ownerReferences"] = owners
        said = " ".join(kubectl.try_apply(hidden).error.split())
        assert "spec.nodeName: found 'entry-0', expected nothing: PromiseQuota '" in said, (service_class, owners)
        assert "those whose class only the scheduler knows" in said, "whichever of the quotas says it first"
        hidden["spec"]["schedulerName"] = "default-scheduler"
        assert not kubectl.refuses(hidden), "others' pods are none of this quota's business"
    allowed: list[tuple[str | None, dict[str, Any]]]
    allowed = [("half", {}), (None, {}), ("other", {"nodeName": "entry-0"})]
    for service_class, node in allowed:
        assert not kubectl.refuses(workload("Pod", service_class=service_class, namespace=bounded, **node))
    for wrong in ({"cpu": "much"}, {"memory": "-1"}, {"workloads": -1}, {}):
        assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=_quota("wrong", **wrong)).code != 0, wrong
    for right in ({"cpu": 2}, {"cpu": "500m", "memory": "64Gi", "workloads": 0}):
        assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=_quota("right", **right)).code == 0, right


# -- nodes -------------------------------------------------------------------------------------------------------------


def test_a_kubelet_cannot_give_its_node_to_us(plane: ControlPlane, kubectl: Kubectl) -> None:
    kubectl.ok("create", "clusterrolebinding", "kubelets", "--clusterrole=system:node", "--group=system:nodes")
    (name,) = plane.create_nodes(1, prefix="hostile", managed=False)
    acts = ("--as", f"system:node:{name}", "--as-group", "system:nodes")
    ours, others = load_live().kube.node_label, "slacktide.io/managed=true"
    assert load_live().kube.node_taint == ""
    # What it may set: so the kubelet's identity and rights are as they are.
    until(lambda: kubectl("label", "node", name, others, *acts).code == 0, "it may set labels of its own")
    answer = kubectl("label", "node", name, ours, *acts)
    assert answer.code != 0
    assert f"is not allowed to modify labels: {ours.partition('=')[0]}" in answer.error
    fresh: Json = {"apiVersion": "v1", "kind": "Node"}
    fresh |= {"metadata": {"name": "fresh", "labels": dict([ours.split("=")])}}
    acts = ("--as", "system:node:fresh", "--as-group", "system:nodes")
    answer = kubectl("create", "-f", "-", *acts, stdin=fresh)
    assert "is not allowed to set the following labels" in answer.error, "not when it registers either"
    answer = kubectl("taint", "node", name, "slacktide.io/only=:NoSchedule", "--as", f"system:node:{name}", *acts[2:])
    assert "is not allowed to modify taints" in answer.error
    plane.api.delete(f"/api/v1/nodes/{name}")


# -- before others -----------------------------------------------------------------------------------------------------

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"
PODS = "/api/v1/namespaces/default/pods"


def flow(plane: ControlPlane, token: str, method: str, path: str) -> str:
    """The name of the FlowSchema that a request was served by, whatever became of it."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = Request(f"{plane.url}{path}", b"{}" if method == "POST" else None, headers, method=method)
    try:
        with urlopen(request, timeout=60, context=ssl.create_default_context(cafile=str(plane.ca_file))) as answer:
            found = answer.headers
    except HTTPError as error:
        found = error.headers
    schemas = plane.api.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")["items"]
    uid = found["X-Kubernetes-PF-FlowSchema-UID"]
    return next(str(one["metadata"]["name"]) for one in schemas if one["metadata"]["uid"] == uid)


def test_lease_bindings_and_watches_are_served_before_other_workloads(plane: ControlPlane, kubectl: Kubectl) -> None:
    token = plane.service_account_token(*ACCOUNT)
    until(lambda: flow(plane, token, "GET", f"{LEASES}/slacktide") == "slacktide-leader", "the schemas are in force")
    assert flow(plane, token, "POST", LEASES) == "slacktide-leader"
    ledgers = "/apis/slacktide.io/v1beta1/namespaces/default/availabilities"
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    for method, path in (
        ("POST", f"{PODS}/none/binding"),
        ("POST", f"{PODS}/none/eviction"),
        ("GET", "/api/v1/pods?watch=true&timeoutSeconds=1"),
        ("GET", "/api/v1/nodes?limit=1"),
        ("POST", ledgers),
        ("POST", reviews),
    ):
        assert flow(plane, token, method, path) == "slacktide", path
    kubectl.ok("create", "serviceaccount", "anybody")
    assert flow(plane, plane.service_account_token("default", "anybody"), "GET", PODS) == "service-accounts"
    levels = plane.api.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")["items"]
    of = {one["metadata"]["name"]: one["spec"]["priorityLevelConfiguration"]["name"] for one in levels}
    assert (of["slacktide-leader"], of["slacktide"], of["service-accounts"]) == (
        "leader-election", "slacktide", "workload-low",
    )  # fmt: skip
    dangling = [one for one in levels for each in one["status"]["conditions"] if each["status"] == "True"]
    assert not [one["metadata"]["name"] for one in dangling], "every schema has its level"
