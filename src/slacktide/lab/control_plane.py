"""Starts, restarts and ends a control plane in a directory of its own.

Everything listens on loopback only. The API server makes its own certificate, which every client of the lab
verifies. Files in the directory::

    lab.json      what runs: processes, ports, commands       kubeconfig    the administrator's
    logs/         one file per program                        data/, pki/   etcd's data, certificate, keys, tokens
"""

from __future__ import annotations

import http.client
import platform
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from slacktide.errors import ConfigError
from slacktide.kube.client.http import ApiError, Unreachable
from slacktide.lab import state
from slacktide.lab.api import Api
from slacktide.lab.binaries import NEEDED, Binaries
from slacktide.lab.errors import LabError
from slacktide.lab.kubeconfig import write_kubeconfig, write_private, write_signing_key
from slacktide.lab.manifests import CLASSES, apply_files, own_manifests
from slacktide.lab.nodes import create_nodes
from slacktide.lab.processes import POLL_SECONDS, Component, locked, undisturbed
from slacktide.lab.programs import USERS, Layout, commands

START_SECONDS = 120
KWOK_STARTS, KWOK_BEGINS_SECONDS = 3, 3.0
PORTS = range(20_000, 30_000)
"""Neither where systems take ports for outgoing connections, so that a restart finds its port free, nor NodePorts."""


class ControlPlane:
    """A control plane in ``directory``: etcd, kube-apiserver, kube-controller-manager, kwok, perhaps kube-scheduler.

    Methods block; from a coroutine call them by ``asyncio.to_thread``. ``components`` has each program by name.
    """

    def __init__(self, layout: Layout, components: dict[str, Component]) -> None:
        self.layout = layout
        self.components = components
        self._guard: subprocess.Popen[bytes] | None = None
        self._api: Api | None = None

    @classmethod
    def create(
        cls,
        directory: Path,
        binaries: Binaries,
        *,
        with_kube_scheduler: bool = False,
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> ControlPlane:
        """Prepares a directory, which must be new, empty, or one where a lab ended; starts nothing.

        ``flags`` adds to programs' command lines, by program; the last of a flag counts.

        Raises:
            LabError: if a lab runs there, or something that is no lab's is in there.
        """
        directory = directory.absolute()
        clear(directory)
        for part in ("logs", "data", "pki"):
            (directory / part).mkdir(parents=True, mode=0o700, exist_ok=True)
        directory.chmod(0o700)
        etcd, peer, secure = free_ports(3)
        layout = Layout(directory, etcd, peer, secure)
        write_signing_key(layout.signing_key)
        users = {name: secrets.token_urlsafe(24) for name in USERS}
        rows = [f'{token},{name},{name},"system:masters"' for name, token in users.items()]
        write_private(layout.tokens, "\n".join(rows) + "\n")
        names = [*NEEDED, *(["kube-scheduler"] if with_kube_scheduler else [])]
        components = {
            name: Component(name, [str(binaries[name]), *arguments, *(flags or {}).get(name, ())], layout.log(name))
            for name, arguments in commands(layout).items()
            if name in names
        }
        machine = platform.machine().lower()
        # etcd 3.4 starts on ARM only if it is told that this is meant.
        components["etcd"].environment["ETCD_UNSUPPORTED_ARCH"] = {"aarch64": "arm64"}.get(machine, machine)
        return cls(layout, components)

    @classmethod
    def attach(cls, directory: Path) -> ControlPlane:
        """The control plane that was started in ``directory``, by this process or another.

        Raises:
            LabError: if there is none.
        """
        layout, components = state.read(directory.absolute())
        return cls(layout, components)

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self.layout.directory

    @property
    def url(self) -> str:
        """The API server's address."""
        return self.layout.url

    @property
    def ca_file(self) -> Path:
        """The certificate by which clients verify the API server."""
        return self.layout.certificate

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.layout.directory / "kubeconfig"

    @property
    def token(self) -> str:
        """The administrator's token."""
        return self.layout.token("admin")

    @property
    def api(self) -> Api:
        """A client with the administrator's rights."""
        if self._api is None:
            self._api = Api(self.url, self.token, self.ca_file)
        return self._api

    def start(self, *, guarded: bool = False, say: Callable[[str], None] = lambda _text: None) -> None:
        """Starts everything and returns when the API server answers; about 4 seconds.

        ``guarded`` ends it with this process, however that ends; else it stays until ``stop``.

        Raises:
            LabError: if a program does not start; its log's end is in the text, and nothing is left running.
        """
        try:
            self._start("etcd")
            self._until("etcd", self._etcd_answers)
            if guarded:
                self._guard = _guard(self.directory)
            self._start("kube-apiserver")
            self._until("kube-apiserver", self._api_server_is_ready)
            say(f"the API server answers at {self.url}")
            for user in USERS:
                write_kubeconfig(
                    self.layout.kubeconfig(user),
                    url=self.url,
                    token=self.layout.token(user),
                    ca_file=self.ca_file,
                    user=user,
                )
            for name in self.components:
                if not self.components[name].running:
                    self._start(name)
        except BaseException:
            self.kill()
            raise

    def add(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Component:
        """Starts one more program (a scheduler, for example) as part of the lab; it is ended before the others."""
        component = Component(name, list(command), self.layout.log(name), dict(environment or {}))
        self.components[name] = component
        self._start(name)
        return component

    def stop(self) -> None:
        """Ends all programs and waits for them; the directory's data goes, its logs stay."""
        *others, etcd = sorted(self.components.values(), key=lambda one: one.name == "etcd")
        for component in others:
            component.signal(signal.SIGTERM)
        for component in (*others, etcd):
            component.stop()
        self._ended()

    def kill(self) -> None:
        """Like ``stop``, at once and by SIGKILL."""
        with undisturbed():
            for component in self.components.values():
                component.kill()
            self._ended()

    def restart_api_server(self, *, kill: bool = False, down_seconds: float = 0) -> None:
        """Ends the API server (by SIGKILL if ``kill``), leaves it down so long, starts it, waits until it answers.

        KWOK is started again, too: unlike kubelets it forgets what it was doing when a request fails.
        """
        server = self.components["kube-apiserver"]
        server.kill() if kill else server.stop()
        time.sleep(down_seconds)
        self._start("kube-apiserver")
        self._until("kube-apiserver", self._api_server_is_ready)
        self.restart_kwok()

    def restart_kwok(self) -> None:
        """Ends KWOK and starts it; all kubelets are away for a moment.

        Where nodes and pods are there already, KWOK 0.8 now and then dies while it begins ("concurrent map writes", a
        data race of its own); then it is started again.
        """
        kwok = self.components["kwok"]
        kwok.kill()
        for _ in range(KWOK_STARTS):
            self._start("kwok")
            if not kwok.wait(KWOK_BEGINS_SECONDS):
                return
        raise LabError(f"kwok ended {KWOK_STARTS} times while it began; the end of its log:\n{kwok.log_tail()}")

    def restart(self, name: str, *, kill: bool = False) -> None:
        """Ends and starts one program; the API server's and KWOK's own methods know more."""
        component = self.components[name]
        component.kill() if kill else component.stop()
        self._start(name)

    def create_nodes(self, count: int, **settings: Any) -> list[str]:
        """Creates nodes (see ``nodes.create_nodes``); returns their names."""
        return create_nodes(self.api, count, **settings)

    def install(self, *, classes: bool = False) -> list[str]:
        """Applies slacktide's own manifests, except what only real kubelets could run, and the examples' ``classes``;
        returns what it applied."""
        return apply_files(self.api, [*own_manifests(), *([CLASSES] if classes else [])])

    def service_account_token(self, namespace: str, name: str, seconds: int = 3600) -> str:
        """A token of a ServiceAccount, made by the TokenRequest API; valid ``seconds``, at least 600."""
        path = f"/api/v1/namespaces/{quote(namespace)}/serviceaccounts/{quote(name)}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        return str(self.api.post(path, request)["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path | None = None) -> Path:
        """Writes a kubeconfig that acts as a ServiceAccount, valid for a day; returns its path."""
        return write_kubeconfig(
            path or self.directory / f"kubeconfig-{namespace}-{name}",
            url=self.url,
            token=self.service_account_token(namespace, name, 86_400),
            ca_file=self.ca_file,
            user=f"system:serviceaccount:{namespace}:{name}",
            namespace=namespace,
        )

    def _start(self, name: str) -> None:
        self.components[name].start()
        state.write(self.layout, self.components)

    def _until(self, name: str, ready: Callable[[], bool]) -> None:
        component = self.components[name]
        end = time.monotonic() + START_SECONDS
        while not ready():
            if not component.running:
                raise LabError(f"{name} ended instead of starting; the end of its log:\n{component.log_tail()}")
            if time.monotonic() > end:
                raise LabError(f"{name} not ready after {START_SECONDS} s; the end of its log:\n{component.log_tail()}")
            time.sleep(5 * POLL_SECONDS)

    def _etcd_answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.layout.etcd_port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _api_server_is_ready(self) -> bool:
        if not self.ca_file.exists():
            return False
        try:
            self.api.get("/readyz")
            self.api.get("/api/v1/namespaces/default")
        except ApiError as error:
            if error.status == http.client.UNAUTHORIZED:
                raise
            return False
        except ConfigError:  # its certificate may be half written
            return False
        except Unreachable as error:
            if "certificate" in str(error).lower():
                self._forget_api()  # of a certificate that was half written only a part was read
            return False
        return True

    def _forget_api(self) -> None:
        """End the client; another is made when it is needed."""
        if self._api is not None:
            self._api.close()
            self._api = None

    def _ended(self) -> None:
        self._forget_api()
        state.forget(self.directory)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None


@contextmanager
def reserved(directory: Path) -> Iterator[None]:
    """Keeps other processes from starting or ending a lab in ``directory`` meanwhile.

    Raises:
        LabError: if something that is no lab's is in there.
    """
    _refuse_foreign(directory)
    with locked(directory / state.LOCK):
        yield


def clear(directory: Path) -> None:
    """Makes ``directory`` ready for a new lab: removes what a lab that has ended left there.

    Raises:
        LabError: if one still runs there, or if something else is in there.
    """
    _refuse_foreign(directory)
    if (directory / state.FILE).exists():
        _place, components = state.read(directory)
        running = [component.name for component in components.values() if component.running]
        if running:
            end = f"slacktide lab down --dir {directory}"
            raise LabError(f"a lab runs in {directory} ({', '.join(running)}); end it first: {end}")
    shutil.rmtree(directory / "logs", ignore_errors=True)
    state.forget(directory)


def _refuse_foreign(directory: Path) -> None:
    if not directory.exists() or (directory / state.FILE).exists():
        return
    if not directory.is_dir():
        raise LabError(f"{directory}: is no directory; expected a new or empty one")
    foreign = sorted(entry.name for entry in directory.iterdir() if entry.name not in ("logs", state.LOCK))
    if foreign:
        raise LabError(f"{directory}: holds {foreign[0]!r}, which is no lab's; expected a new or empty directory")


def _guard(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "slacktide.lab.guard", str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def free_ports(count: int) -> list[int]:
    """Ports of the loopback on which nobody listens, from :data:`PORTS`."""
    ports: list[int] = []
    chance = random.SystemRandom()
    while len(ports) < count:
        port = chance.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports
