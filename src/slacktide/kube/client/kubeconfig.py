"""Kubeconfig files: the cluster and the user of one context, and programs that print credentials
(client.authentication.k8s.io), as cloud providers' kubeconfigs name one.

This module reads them, and not a client library. Messages of a library may show a user's token, and importing one
takes a second and 40 MB for models that slacktide does not use.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from slacktide.errors import ConfigError
from slacktide.kube.client.metadata import unix_seconds
from slacktide.kube.clock import monotonic_seconds, wall_seconds

PLUGIN_SECONDS = 60.0
RENEW_BEFORE_SECONDS = 60.0
"""Credentials are renewed this long before they expire, or at half of their life where that is shorter."""
SHOWN_CHARACTERS = 200
SHOWN_OF_CLUSTERS = ("server", "insecure-skip-tls-verify", "certificate-authority-data", "tls-server-name")
"""What a plugin that asks for it is told of the cluster."""


class _Part(msgspec.Struct, rename="kebab", frozen=True):
    pass


class Cluster(_Part, frozen=True):
    """An API server."""

    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _Variable(_Part, frozen=True):
    name: str
    value: str


class Exec(msgspec.Struct, rename="camel", frozen=True):
    """A program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    provide_cluster_info: bool = False
    install_hint: str = ""


class User(_Part, frozen=True):
    """Who we are; shown without its secrets."""

    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    as_: str = msgspec.field(name="as", default="")

    def __repr__(self) -> str:
        return "User()"


class _Context(_Part, frozen=True):
    cluster: str
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True):
    name: str
    cluster: Cluster


class _NamedUser(_Part, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(_Part, frozen=True):
    name: str
    context: _Context


class _File(_Part, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A cluster or a user; ``source`` says in messages where this was written. Paths are relative to the ``folder``."""

    source: str
    folder: Path
    said: T = field(repr=False)

    def beside(self, name: str) -> Path | None:
        """The file of this name; None where there is no name."""
        return self.folder / name if name else None


Named = TypeVar("Named", _NamedCluster, _NamedUser, _NamedContext)


def read_kubeconfig(paths: Sequence[Path], context: str | None = None) -> tuple[Entry[Cluster], Entry[User]]:
    """The cluster and user of a context, the current one unless named.

    Of several files the first that defines a name counts, as for kubectl; files that do not exist are passed over
    where there are several. Raises ``ConfigError``.
    """
    files = _files(paths)
    chosen = _chosen(files, context)
    path, cluster = _find(files, [file.clusters for _, file in files], chosen.context.cluster, "cluster")
    entry = Entry(f"{path}: cluster {cluster.name!r}", path.parent, cluster.cluster)
    if not chosen.context.user:
        return entry, Entry(f"{path}: context {chosen.name!r}", path.parent, User())
    path, user = _find(files, [file.users for _, file in files], chosen.context.user, "user")
    found = Entry(f"{path}: user {user.name!r}", path.parent, user.user or User())
    if found.said.auth_provider is not None:
        raise ConfigError(
            f"{found.source}: auth-provider is no longer supported; expected an exec plugin, token or certificate"
        )
    if found.said.as_:
        raise ConfigError(f"{found.source}: as: impersonation is not supported; expected the user's own credentials")
    return entry, found


def namespace_in(paths: Sequence[Path], context: str | None = None) -> str:
    """The namespace of a context, the current one unless named; empty where it names none. Raises ``ConfigError``."""
    return _chosen(_files(paths), context).context.namespace


def _files(paths: Sequence[Path]) -> list[tuple[Path, _File]]:
    files = [(path, _read(path)) for path in paths if len(paths) == 1 or path.exists()]
    if not files:
        raise ConfigError(f"KUBECONFIG: none of {os.pathsep.join(map(str, paths))} exists")
    return files


def _chosen(files: Sequence[tuple[Path, _File]], context: str | None) -> _NamedContext:
    name = context or next((file.current_context for _, file in files if file.current_context), "")
    if not name:
        raise ConfigError(f"{files[0][0]}: current-context: expected the name of a context, found none")
    return _find(files, [file.contexts for _, file in files], name, "context")[1]


def _read(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise ConfigError(f"{path}: {reason}; expected a kubeconfig file") from None
    try:
        return msgspec.convert({} if (found := yaml.safe_load(text)) is None else found, _File)
    except yaml.MarkedYAMLError as error:
        # The parser's own message shows the line, which may hold a token.
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ConfigError(f"{path}:{line}: {error.problem or 'no YAML'}; expected a kubeconfig in YAML") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError):  # also a date that does not exist, and endless nesting
        raise ConfigError(f"{path}: no YAML; expected a kubeconfig file") from None


def _find(
    files: Sequence[tuple[Path, _File]], lists: Sequence[list[Named] | None], name: str, what: str
) -> tuple[Path, Named]:
    for (path, _), entries in zip(files, lists, strict=True):
        for entry in entries or ():
            if entry.name == name:
                return path, entry
    known = sorted({entry.name for entries in lists for entry in entries or ()})
    raise ConfigError(
        f"{files[0][0]}: {what}: found no {name!r}, expected one of {', '.join(known) or 'none: none is defined'}"
    )


class Obtained(msgspec.Struct, rename="camel"):
    """What a plugin gave: a token, or a certificate with its key (PEM); shown without them."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""

    def __repr__(self) -> str:
        return "Obtained()"


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    status: Obtained | None = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials; it runs without a terminal. ``source`` says in messages where it was named."""

    said: Exec = field(repr=False)
    cluster: Cluster = field(repr=False)
    folder: Path
    source: str

    @property
    def command(self) -> str:
        """A bare name is looked for in PATH; a path is relative to the kubeconfig."""
        return self.said.command if os.sep not in self.said.command else str(self.folder / self.said.command)

    async def run(self) -> tuple[Obtained, float]:
        """Runs the program: what it gave, and until which monotonic time that is good.

        Raises ``ConfigError`` where it is missing, fails, or prints no credentials.
        """
        spec: dict[str, Any] = {"interactive": False}
        if self.said.provide_cluster_info:
            shown = msgspec.to_builtins(self.cluster)
            spec["cluster"] = {name: shown[name] for name in SHOWN_OF_CLUSTERS if shown[name] != ""}
        request = {"apiVersion": self.said.api_version, "kind": "ExecCredential", "spec": spec}
        environment = os.environ | {one.name: one.value for one in self.said.env or ()}
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(request).decode()
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *(self.said.args or ()),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
            )
        except OSError as error:
            hint = f" {self.said.install_hint}" if self.said.install_hint else ""
            raise ConfigError(f"{self.source}: exec {self.command}: {error.strerror}.{hint}") from None
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                output, complaint = await process.communicate()
        except TimeoutError:
            raise ConfigError(f"{self.source}: exec {self.command}: no answer within {PLUGIN_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            said = f": {_harmless(complaint)}" if complaint.strip() else ""
            raise ConfigError(f"{self.source}: exec {self.command} ended with {process.returncode}{said}")
        return self._obtained(output)

    def _obtained(self, output: bytes) -> tuple[Obtained, float]:
        expected = f"expected an ExecCredential of {self.said.api_version} with a token or a certificate and key"
        try:
            found = msgspec.json.decode(output, type=_ExecCredential)
            expiry = found.status.expiration_timestamp if found.status else ""
            expires = unix_seconds(expiry) if expiry else float("inf")
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            # The cause is left out: it may show what was printed.
            raise ConfigError(f"{self.source}: exec {self.command}: {expected}") from None
        status = found.status or Obtained()
        pair = bool(status.client_certificate_data), bool(status.client_key_data)
        if found.api_version != self.said.api_version or not (status.token or all(pair)) or any(pair) != all(pair):
            raise ConfigError(f"{self.source}: exec {self.command}: {expected}")
        life = max(expires - wall_seconds(), 0.0)
        return status, monotonic_seconds() + max(life - RENEW_BEFORE_SECONDS, life / 2, 1.0)


def _harmless(complaint: bytes) -> str:
    """The last line of what a program complained about, without anything that could be a token."""
    line = complaint.decode("utf-8", "replace").strip().splitlines()[-1]
    return re.sub(r"[\w\-.~+/=]{32,}", "...", line)[:SHOWN_CHARACTERS]
