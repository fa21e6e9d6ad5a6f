"""A Kubernetes control plane on this machine: real etcd, API server and controllers, played kubelets (KWOK).

``binaries`` finds the programs or builds them, ``control_plane`` starts and ends them, ``stages.yaml`` says
how KWOK plays nodes and pods, ``nodes`` makes nodes. Used by ``slacktide lab`` and by the tests.
"""

from __future__ import annotations

from slacktide.kube.client.http import ApiError
from slacktide.lab.api import Api
from slacktide.lab.binaries import Binaries
from slacktide.lab.control_plane import ControlPlane
from slacktide.lab.errors import LabError

__all__ = ["Api", "ApiError", "Binaries", "ControlPlane", "LabError"]
