"""The command line of each program, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slacktide.lab.errors import LabError

CONFIGURATION = Path(__file__).with_name("stages.yaml")
"""What KWOK is started with."""


USERS = ("admin", "kube-controller-manager", "kube-scheduler", "kwok")
"""Each with a token of its own and all rights, so that an object's history tells who changed it."""

GRACE_SECONDS = 900
"""After so long without a heartbeat (``stages.yaml``: every 300 to 330 s) a node counts as lost."""

QUERIES = "5000"


@dataclass(frozen=True, slots=True)
class Layout:
    """A lab's directory and ports."""

    directory: Path
    etcd_port: int
    peer_port: int
    secure_port: int

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.secure_port}"

    @property
    def certificate(self) -> Path:
        """The certificate that the API server makes for itself."""
        return self.directory / "pki" / "apiserver.crt"

    @property
    def signing_key(self) -> Path:
        """Signs tokens of ServiceAccounts."""
        return self.directory / "pki" / "service-account.key"

    @property
    def tokens(self) -> Path:
        """The tokens of ``USERS``."""
        return self.directory / "pki" / "tokens.csv"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of one of ``USERS``."""
        return self.directory / "kubeconfig" if user == "admin" else self.directory / "pki" / f"{user}.kubeconfig"

    def log(self, name: str) -> Path:
        """A program's log."""
        return self.directory / "logs" / f"{name}.log"

    def token(self, user: str) -> str:
        """The token of one of ``USERS``."""
        for row in self.tokens.read_text().splitlines():
            token, name, *_rest = row.split(",")
            if name == user:
                return token
        raise LabError(f"{self.tokens}: has no token of {user}")


def commands(layout: Layout) -> dict[str, list[str]]:
    """The arguments of each program, in the order in which they are started."""
    return {
        "etcd": _etcd(layout),
        "kube-apiserver": _api_server(layout),
        "kube-controller-manager": _controller_manager(layout),
        "kwok": _kwok(layout),
        "kube-scheduler": _scheduler(layout),
    }


def _etcd(layout: Layout) -> list[str]:
    client, peer = f"http://127.0.0.1:{layout.etcd_port}", f"http://127.0.0.1:{layout.peer_port}"
    return [
        f"--data-dir={layout.directory / 'data' / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a lab's data need not survive a power cut
        "--quota-backend-bytes=8589934592",
    ]


def _api_server(layout: Layout) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{layout.etcd_port}",
        f"--cert-dir={layout.certificate.parent}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # There is no network where a Service could lead to.
        "--endpoint-reconciler-type=none",
        f"--secure-port={layout.secure_port}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--authorization-mode=RBAC",
        # Pods need no ServiceAccount here, and new nodes are not tainted until a controller has looked at them.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        f"--token-auth-file={layout.tokens}",
        # Else it waits for its watchers before it ends, and they for its end.
        "--shutdown-watch-termination-grace-period=1s",
    ]


def _controller_manager(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig('kube-controller-manager')}",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.certificate}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--kube-api-qps={QUERIES}",
        f"--kube-api-burst={QUERIES}",
        f"--node-monitor-grace-period={GRACE_SECONDS}s",
    ]


def _kwok(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig('kwok')}",
        f"--config={CONFIGURATION}",
        "--manage-all-nodes=true",
        # No leases: KWOK forgets pods whose binding it hears of just before its lease of their node.
        "--node-lease-duration-seconds=0",
        "--cidr=10.128.0.0/9",
        "--server-address=",  # it shall listen nowhere
    ]


def _scheduler(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig('kube-scheduler')}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--kube-api-qps={QUERIES}",
        f"--kube-api-burst={QUERIES}",
    ]
