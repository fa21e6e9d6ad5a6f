"""Our manifests on a control plane, as a user installs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import slacktide
from cluster.kubectl import Kubectl
from cluster.labtools import until
from slacktide.lab import Api, Binaries, ControlPlane
from support.repository import REPOSITORY

MANIFESTS = Path(slacktide.__file__).parent / "kube" / "manifests"
EXAMPLES = REPOSITORY / "examples" / "kubernetes"
PAGE = REPOSITORY / "docs" / "kubernetes.md"
ACCOUNT = ("slacktide-system", "slacktide")
"""Namespace and name of the scheduler's ServiceAccount."""


def alone(binaries: Binaries, directory: Path) -> Iterator[ControlPlane]:
    """A control plane for one module's tests, because classes and policies hold for all of a cluster."""
    plane = ControlPlane.create(directory / "lab", binaries)
    plane.start(guarded=True)
    yield plane
    plane.stop()


def applied(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    """kubectl as administrator, after it applied the manifests as a user does."""
    kubectl = Kubectl(binaries["kubectl"], plane.kubeconfig, plane.api)
    kubectl.ok("apply", "-f", str(MANIFESTS))
    for definitions in sorted(MANIFESTS.glob("0*.yaml")):
        kubectl.ok("wait", "--for=condition=Established", "--timeout=60s", "-f", str(definitions))
    return kubectl


def installed(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    """kubectl as administrator, after it applied the manifests and the example classes as a user does."""
    kubectl = applied(plane, binaries)
    # The API server may serve a definition a moment after it says so.
    classes = str(EXAMPLES / "01-classes.yaml")
    until(lambda: kubectl("apply", "-f", classes).code == 0, "the example classes are accepted")
    return kubectl


def as_scheduler(plane: ControlPlane) -> Api:
    """A client with a token of the scheduler's ServiceAccount, and so with exactly its rights."""
    return Api(plane.url, plane.service_account_token(*ACCOUNT), plane.ca_file)
