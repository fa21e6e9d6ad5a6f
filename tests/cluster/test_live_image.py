"""The image's file system, run as a kubelet runs the shipped Deployment: its account, mounts, arguments and limits.

No container runtime is here, so the test does by hand what one does: mount namespace, root file system read-only, the
volumes, the user, no new privileges. Everything that it is told comes from the image and from the API server.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from cluster.helm import Helm
from cluster.installation import ACCOUNT
from cluster.kubectl import Json, Kubectl
from cluster.labtools import until
from cluster.running import service_class
from cluster.workloads import workload
from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.processes import Component
from support.chart_files import CHART

IMAGE = Path(os.environ.get("SLACKTIDE_IMAGE", ""))
pytestmark = pytest.mark.skipif(
    not IMAGE.is_absolute() or os.geteuid() != 0,
    reason="needs root, and SLACKTIDE_IMAGE, the directory of a built image: `make image` gives it",
)
ROOT = IMAGE / "root"
# Mounts that nobody else sees. Words before -- are the container's environment and volumes, the rest its program.
ENTER = """
root=$1 user=$2 environment=(); shift 2
mount --bind "$root" "$root"; mount --rbind /proc "$root/proc"
while [ "$1" != -- ]; do
    case $1 in
        env:*) environment+=("${1#env:}") ;;
        tmpfs:*) mount -t tmpfs none "$root${1#tmpfs:}"; chown "$user" "$root${1#tmpfs:}" ;;
        *) mount --bind "${1%%:*}" "$root${1#*:}" ;;
    esac
    shift
done; shift
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs env -i "${environment[@]}" "$(command -v chroot)" --userspec="$user" --groups= "$root" "$@"
"""


def config() -> Json:
    """What the image says of itself: its user, program and environment."""
    with tarfile.open(IMAGE / "slacktide.oci.tar") as archive:

        def read(name: str) -> Json:
            file = archive.extractfile(name)
            assert file is not None
            found: Json = json.load(file)
            return found

        def blob(digest: str) -> Json:
            return read(f"blobs/{digest.replace(':', '/')}")

        index = read("index.json")
        found: Json = blob(blob(index["manifests"][0]["digest"])["config"]["digest"])["config"]
        return found


def test_the_image_has_what_it_runs_and_nothing_to_break_in_with() -> None:
    said = config()
    assert said["User"] == "65532:65532"
    assert said["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    programs = {path.name for path in (ROOT / "usr/bin").iterdir()}
    assert {"python3", "python3.13"} <= programs
    assert not programs & {"sh", "bash", "dash", "apt", "dpkg", "perl", "pip", "su", "mount"}
    marked, writable = [], []
    for folder, _, files in os.walk(ROOT):
        for path in (Path(folder, name) for name in (*files, ".")):
            mode = path.lstat()
            if mode.st_mode & (stat.S_ISUID | stat.S_ISGID):
                marked.append(path)
            if not path.is_symlink() and (mode.st_uid != 0 or mode.st_mode & stat.S_IWOTH):
                writable.append(str(path.relative_to(ROOT)))
    assert marked == []
    assert sorted(writable) == ["tmp", "var/cache/slacktide"]


def test_the_list_of_what_is_in_it_is_complete() -> None:
    bom = json.loads((IMAGE / "sbom.json").read_text())
    assert bom["bomFormat"] == "CycloneDX"
    assert bom["metadata"]["component"]["name"] == "slacktide"
    listed = {one["purl"].split("@")[0] for one in bom["components"]}
    kept = (ROOT / "opt/slacktide/lib").glob("python3.*/site-packages/*.dist-info/METADATA")
    names = {re.search(r"^Name: (.*)$", path.read_text(), re.MULTILINE)[1].lower().replace("_", "-") for path in kept}  # type: ignore[index]
    assert {f"pkg:pypi/{name}" for name in names - {"slacktide"}} == {one for one in listed if "pypi" in one}
    assert not names & {"pip", "hatchling", "numba", "ziglang"}
    debian = {f"pkg:deb/debian/{path.name}" for path in (ROOT / "var/lib/dpkg/status.d").iterdir()}
    assert debian == {unquote(one) for one in listed if "deb" in one}


def test_it_trusts_nobody_whom_only_the_machine_trusts_that_built_it() -> None:
    bundle = (ROOT / "etc/ssl/certs/ca-certificates.crt").read_text()
    assert bundle.count("-----BEGIN CERTIFICATE-----") > 100
    own = [path for path in Path("/usr/local/share/ca-certificates").glob("**/*.crt") if path.is_file()]
    lines = {path: path.read_text().split("-----BEGIN CERTIFICATE-----")[1].split()[5] for path in own}
    assert [path.name for path, line in lines.items() if line in bundle] == []
    assert not (ROOT / "machine.crt").exists()


@pytest.fixture
def plane(binaries: Binaries, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of this test's own."""
    plane = ControlPlane.create(tmp_path / "lab", binaries)
    plane.start(guarded=True)
    yield plane
    plane.stop()


def started(plane: ControlPlane, directory: Path, spec: Json, settings: str) -> Component:
    """The scheduler, as a kubelet and its runtime start the container of a pod's ``spec``."""
    (one,) = spec["containers"]
    said = config()
    account = directory / "account"
    account.mkdir()
    (account / "token").write_text(plane.service_account_token(*ACCOUNT))
    (account / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    (account / "namespace").write_text(ACCOUNT[0])
    configured = directory / "config"
    configured.mkdir()
    (configured / "config.yaml").write_text(settings)
    volumes = {each["name"]: each for each in spec["volumes"]}
    mounts = {"/var/run/secrets/kubernetes.io/serviceaccount": account}
    tmpfs: list[str] = []
    for each in one["volumeMounts"]:
        if "configMap" in volumes[each["name"]]:
            mounts[each["mountPath"]] = configured
        else:
            tmpfs.append(each["mountPath"])
    assert one["securityContext"]["readOnlyRootFilesystem"]
    assert spec["securityContext"]["runAsUser"] == int(said["User"].partition(":")[0])
    for place in (*mounts, *tmpfs):
        os.makedirs(f"{ROOT}{place}", exist_ok=True)  # as a runtime does, in a layer above the image
    address = urlsplit(plane.url)
    environment = [*said["Env"], *(f"{each['name']}={each['value']}" for each in one["env"])]
    environment += [f"KUBERNETES_SERVICE_HOST={address.hostname}", f"KUBERNETES_SERVICE_PORT={address.port}"]
    words = [f"env:{each}" for each in environment] + [f"tmpfs:{place}" for place in tmpfs]
    words += [f"{source}:{place}" for place, source in mounts.items()]
    enter = ["unshare", "--mount", "--propagation", "private", "bash", "-euc", ENTER, "container", str(ROOT)]
    return plane.add("container", [*enter, said["User"], *words, "--", *said["Entrypoint"], *one["args"]])


def applied(kubectl: Kubectl, item: Json) -> bool:
    return kubectl("apply", "-f", "-", stdin=item).code == 0


def test_the_shipped_deployment_keeps_a_promise(plane: ControlPlane, binaries: Binaries, tmp_path: Path) -> None:
    """Installed with Helm, under its rights; only the address to listen at is this machine's loopback."""
    kubectl, home = Kubectl(binaries["kubectl"], plane.kubeconfig), ACCOUNT[0]
    classes = [service_class("gold", 0.8, 1), service_class("bronze", 0.1, 2)]
    values = {"classes": {one["metadata"]["name"]: one["spec"] for one in classes}}
    helm = Helm(binaries["helm"], plane.kubeconfig, tmp_path / "helm")
    helm.ok("install", "slacktide", str(CHART), "-n", home, "--create-namespace", values=values)
    shipped = kubectl.json("get", "configmap", "slacktide", "-n", home)["data"]["config.yaml"]
    pod = kubectl.json("get", "deployment", "slacktide", "-n", home)["spec"]["template"]["spec"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    plane.create_nodes(2, cpu="1", memory="2Gi")
    scheduler = started(plane, tmp_path, pod, shipped.replace("0.0.0.0:10359", f"127.0.0.1:{port}"))
    until(lambda: "leading as" in scheduler.log_tail() or not scheduler.running, "it leads")
    assert scheduler.running, scheduler.log_tail()
    # Two bronze pods have the cluster; gold takes from them what it needs.
    for name, chosen in (("low-0", "bronze"), ("low-1", "bronze"), ("high", "gold")):
        resources: dict[str, Any] = {"requests": {"cpu": "700m", "memory": "64Mi"}}
        main = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
        made = workload(
            "Deployment", service_class=chosen, name=name, containers=[main], terminationGracePeriodSeconds=1
        )
        until(partial(applied, kubectl, made), f"{name} is accepted")

        def ready(name: str = name) -> bool:
            status = kubectl.json("get", "deployment", name)["status"]
            return bool(status.get("readyReplicas"))

        until(ready, f"{name} runs")
    kept = until(
        lambda: (
            (found := kubectl("get", "availability", "deployment-high", "-o", "json")).code == 0
            and (status := json.loads(found.out)["status"]).get("state") == "Kept"
            and status
        ),
        "the promise is kept",
    )
    assert kept["delivered"] >= 0.8
    scheduler.stop()
    assert "Traceback" not in scheduler.log_tail()
