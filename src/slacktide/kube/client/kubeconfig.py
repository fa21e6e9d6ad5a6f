"""Kubeconfig files: the cluster and the user of one context.

This module reads them, and not a client library. Messages of a library may show a user's token, and importing one
takes a second and 40 MB for models that slacktide does not use.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from slacktide.errors import ConfigError
from slacktide.kube.client.exec_plugin import ExecPlugin


class _Part(msgspec.Struct, rename="kebab", frozen=True):
    pass


class _Cluster(_Part, frozen=True):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _Variable(_Part, frozen=True):
    name: str
    value: str


class _Exec(msgspec.Struct, rename="camel", frozen=True):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    provide_cluster_info: bool = False
    install_hint: str = ""


class _User(_Part, frozen=True):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: Any = None
    as_: str = msgspec.field(name="as", default="")


class _Context(_Part, frozen=True):
    cluster: str
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True):
    name: str
    cluster: _Cluster


class _NamedUser(_Part, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(_Part, frozen=True):
    name: str
    context: _Context


class _File(_Part, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """An API server; ``source`` says in messages where this was written."""

    source: str
    server: str
    authority: Path | None
    authority_data: str
    insecure: bool
    server_name: str
    proxy: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class UserEntry:
    """Who we are; ``source`` says in messages where this was written."""

    source: str
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    certificate: Path | None = None
    certificate_data: str = field(default="", repr=False)
    key: Path | None = None
    key_data: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | None = None


Named = TypeVar("Named", _NamedCluster, _NamedUser, _NamedContext)


def read_kubeconfig(paths: Sequence[Path], context: str | None = None) -> tuple[ClusterEntry, UserEntry]:
    """The cluster and user of a context, the current one unless named.

    Of several files the first that defines a name counts, as for kubectl; files that do not exist are passed over
    where there are several. Relative paths are relative to the file they stand in. Raises ``ConfigError``.
    """
    files = _files(paths)
    chosen = _chosen(files, context)
    cluster_path, cluster = _find(files, [file.clusters for _, file in files], chosen.context.cluster, "cluster")
    entry = _cluster_entry(cluster_path, cluster)
    if not chosen.context.user:
        return entry, UserEntry(f"{cluster_path}: context {chosen.name!r}")
    user_path, user = _find(files, [file.users for _, file in files], chosen.context.user, "user")
    return entry, _user_entry(user_path, user, cluster.cluster)


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


def _cluster_entry(path: Path, named: _NamedCluster) -> ClusterEntry:
    cluster = named.cluster
    return ClusterEntry(
        source=f"{path}: cluster {named.name!r}",
        server=cluster.server,
        authority=_beside(path, cluster.certificate_authority),
        authority_data=cluster.certificate_authority_data,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
    )


def _user_entry(path: Path, named: _NamedUser, cluster: _Cluster) -> UserEntry:
    source = f"{path}: user {named.name!r}"
    user = named.user or _User()
    if user.auth_provider is not None:
        raise ConfigError(
            f"{source}: auth-provider is no longer supported; expected an exec plugin, token or certificate"
        )
    if user.as_:
        raise ConfigError(f"{source}: as: impersonation is not supported; expected the user's own credentials")
    plugin = None
    if user.exec is not None:
        shown: dict[str, Any] | None = None
        if user.exec.provide_cluster_info:
            shown = {"server": cluster.server, "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify}
            if cluster.certificate_authority_data:
                shown["certificate-authority-data"] = cluster.certificate_authority_data
            if cluster.tls_server_name:
                shown["tls-server-name"] = cluster.tls_server_name
        command = user.exec.command
        plugin = ExecPlugin(
            # A bare name is looked for in PATH; a path is relative to the kubeconfig.
            command=command if os.sep not in command else str(path.parent / command),
            arguments=tuple(user.exec.args or ()),
            environment={variable.name: variable.value for variable in user.exec.env or ()},
            api_version=user.exec.api_version,
            cluster=shown,
            hint=user.exec.install_hint,
            source=source,
        )
    return UserEntry(
        source=source,
        token=user.token,
        token_file=_beside(path, user.token_file),
        certificate=_beside(path, user.client_certificate),
        certificate_data=user.client_certificate_data,
        key=_beside(path, user.client_key),
        key_data=user.client_key_data,
        username=user.username,
        password=user.password,
        plugin=plugin,
    )


def _beside(path: Path, name: str) -> Path | None:
    return path.parent / name if name else None
