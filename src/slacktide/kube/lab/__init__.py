"""A Kubernetes control plane on this machine: real etcd, API server and controllers, played kubelets (KWOK).

``binaries`` finds the programs or builds them, ``control_plane`` starts and ends them, ``stages`` says how
KWOK plays nodes and pods, ``nodes`` makes nodes. Used by ``slacktide lab`` and by the tests.
"""

from __future__ import annotations

from slacktide.kube.lab.api import Api
from slacktide.kube.lab.binaries import Binaries
from slacktide.kube.lab.control_plane import ControlPlane
from slacktide.kube.lab.errors import ApiError, LabError

__all__ = ["Api", "ApiError", "Binaries", "ControlPlane", "LabError"]
