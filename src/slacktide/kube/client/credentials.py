"""How to reach an API server and who we are there: kubeconfig files, exec plugins, a pod's service account.

No message and no ``repr`` of this module holds a token, a password or a key.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import logging
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from slacktide.errors import ConfigError
from slacktide.kube.client.kubeconfig import Cluster, Entry, ExecPlugin, User, namespace_in, read_kubeconfig
from slacktide.kube.clock import monotonic_seconds

LOG = logging.getLogger(__name__)
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
FILE_CHECK_SECONDS = 10.0
"""A token file is looked at this often at most; the kubelet renews it long before it expires."""
FOREVER = float("inf")

Pair = tuple[bytes, bytes]
"""A client certificate and its key, PEM."""


class Credentials:
    """Where the Authorization header comes from.

    ``header()`` is its value, ``None`` for none. ``valid_until`` is the monotonic time at which to call ``renew``.
    ``renew`` says whether client certificates changed as well; call ``renew(force=True)`` after an answer 401.
    """

    def __init__(self, header: str | None, valid_until: float) -> None:
        self._header, self.valid_until = header, valid_until

    def header(self) -> str | None:
        return self._header

    async def renew(self, context: ssl.SSLContext | None, *, force: bool) -> bool:  # noqa: ARG002  # others need them
        return False


class Fixed(Credentials):
    """A header that never changes; none for client certificates."""

    def __init__(self, header: str | None) -> None:
        super().__init__(header, FOREVER)


class TokenFile(Credentials):
    """A token in a file that somebody renews. Raises ``ConfigError`` where it cannot be read at first."""

    def __init__(self, path: Path) -> None:
        super().__init__(None, 0.0)
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        try:
            self._read()
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; expected a file with a token") from None

    async def renew(self, context: ssl.SSLContext | None, *, force: bool) -> bool:  # noqa: ARG002  # as of others
        if force:
            self._stamp = None
        try:
            self._read()
        except (OSError, ConfigError):
            # The old token may be valid for another hour, and the file may come back.
            LOG.warning("cannot read the token file %s; the last token stays in use", self.path)
            self.valid_until = monotonic_seconds() + FILE_CHECK_SECONDS
        return False

    def _read(self) -> None:
        found = self.path.stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if stamp != self._stamp:
            token = self.path.read_text(encoding="utf-8").strip()
            if not token:
                raise ConfigError(f"{self.path}: found an empty file, expected a token")
            self._header = f"Bearer {_plain(token, str(self.path))}"
            self._stamp = stamp
        self.valid_until = monotonic_seconds() + FILE_CHECK_SECONDS


class Executed(Credentials):
    """Credentials from an exec plugin, asked again before they expire and after an answer 401."""

    def __init__(self, plugin: ExecPlugin) -> None:
        super().__init__(None, 0.0)
        self.plugin = plugin
        self.pair: Pair | None = None

    async def renew(self, context: ssl.SSLContext | None, *, force: bool) -> bool:
        if not force and monotonic_seconds() < self.valid_until:
            return False
        found, self.valid_until = await self.plugin.run()
        self._header = f"Bearer {_plain(found.token, 'the exec plugin')}" if found.token else None
        pair = found.client_certificate_data.encode(), found.client_key_data.encode()
        if not pair[0] or (self.pair is not None and pair[0] == self.pair[0]) or context is None:
            return False
        load_client_certificate(context, *pair, "the exec plugin")
        self.pair = pair
        return True


@dataclass(slots=True)
class Access:
    """Everything needed to talk to one API server; shown without its secrets."""

    server: str
    credentials: Credentials = field(repr=False)
    context: ssl.SSLContext | None = field(default=None, repr=False)
    server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    written: Pair | None = field(default=None, repr=False)
    """The client certificate of a kubeconfig, which ``context`` shows."""

    @property
    def pair(self) -> Pair | None:
        """The client certificate that we show now."""
        return self.credentials.pair if isinstance(self.credentials, Executed) else self.written

    def __post_init__(self) -> None:
        self.server = self.server.rstrip("/")
        parts = urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"server: found {self.server!r}, expected an address such as https://10.0.0.1:6443")


async def load_access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """Who we are and where: from ``kubeconfig``, else $KUBECONFIG, else the pod we run in, else ~/.kube/config.

    ``context`` names one of the kubeconfig's contexts instead of its current one. Raises ``ConfigError`` where
    nothing usable is found.
    """
    paths = _paths(kubeconfig)
    if not paths:
        return in_cluster(SERVICE_ACCOUNT)
    cluster, user = read_kubeconfig(paths, context)
    access = _access(cluster, user)
    await access.credentials.renew(access.context, force=False)
    if access.context is None and access.credentials.header() and not _loopback(access.server):
        raise ConfigError(f"server: found {access.server!r}, expected https: a token must not travel in the clear")
    return access


def namespace_of(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """The namespace that commands go by which name none: the context's, in a pod its own, else default.

    Raises ``ConfigError`` as :func:`load_access`.
    """
    paths = _paths(kubeconfig)
    if paths:
        return namespace_in(paths, context) or "default"
    return (SERVICE_ACCOUNT / "namespace").read_text().strip()


def _paths(kubeconfig: Path | None) -> list[Path]:
    """The kubeconfig's files; none in a pod that has no kubeconfig."""
    paths = [kubeconfig] if kubeconfig is not None else paths_of_environment()
    if not paths and os.environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        return []
    if not paths:
        paths = [Path.home() / ".kube" / "config"]
        if not paths[0].exists():
            raise ConfigError("no cluster: expected --kubeconfig FILE, $KUBECONFIG, ~/.kube/config or to run in a pod")
    return paths


def in_cluster(folder: Path) -> Access:
    """The access of the pod we run in; ``folder`` is where its service account is mounted."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    try:
        authority = (folder / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigError(f"{folder / 'ca.crt'}: {error.strerror}; expected the cluster's certificate") from None
    context = tls_context(authority, str(folder / "ca.crt"))
    return Access(f"https://{host}:{port}", TokenFile(folder / "token"), context)


def tls_context(authority: bytes | None, where: str) -> ssl.SSLContext:
    """Verifies the server against ``authority`` (PEM), or the system's authorities where it is ``None``."""
    if authority is None:
        return ssl.create_default_context()
    if not authority.strip():  # without a word Python would take the system's authorities
        raise ConfigError(f"{where}: found nothing; expected a certificate in PEM")
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}; expected a certificate in PEM") from None
    # Python 3.13 wants a key identifier in every certificate; clusters' own authorities often have none.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes, where: str) -> None:
    """Makes connections of ``context`` show this certificate (both PEM). Raises ``ConfigError``."""
    # OpenSSL reads only files. Nobody else can read this one, and it is removed at once.
    descriptor, name = tempfile.mkstemp(prefix="slacktide-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(name)
    except (ssl.SSLError, OSError):
        raise ConfigError(f"{where}: expected a client certificate and its key in PEM, not encrypted") from None
    finally:
        os.unlink(name)


def _access(cluster: Entry[Cluster], user: Entry[User]) -> Access:
    context = pair = None
    said, who = cluster.said, user.said
    if said.server.startswith("https"):
        authority = _content(said.certificate_authority_data, said.certificate_authority, cluster)
        context = tls_context(authority, cluster.source)
        if said.insecure_skip_tls_verify:
            LOG.warning("%s: insecure-skip-tls-verify: the API server's certificate is not checked", cluster.source)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = _content(who.client_certificate_data, who.client_certificate, user)
        key = _content(who.client_key_data, who.client_key, user)
        if (certificate is None) != (key is None):
            raise ConfigError(f"{user.source}: expected both client-certificate and client-key, or neither")
        if certificate is not None and key is not None:
            pair = certificate, key
            load_client_certificate(context, *pair, user.source)
    names = said.tls_server_name or None, said.proxy_url or None
    return Access(said.server, _credentials(user, said), context, *names, pair)


def _credentials(user: Entry[User], cluster: Cluster) -> Credentials:
    who = user.said
    if who.token:
        return Fixed(f"Bearer {_plain(who.token, user.source)}")
    if (file := user.beside(who.token_file)) is not None:
        return TokenFile(file)
    if who.username:
        pair = base64.b64encode(f"{who.username}:{who.password}".encode()).decode()
        return Fixed(f"Basic {pair}")
    if who.exec is not None:
        return Executed(ExecPlugin(who.exec, cluster, user.folder, user.source))
    return Fixed(None)


def _plain(token: str, where: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{where}: expected a token of one line without blanks")
    return token


def _content(data: str, name: str, entry: Entry[Any]) -> bytes | None:
    """Bytes given inline as base64 or in a file; ``None`` where neither is."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            raise ConfigError(f"{entry.source}: expected base64 in every field that ends in -data") from None
    if (path := entry.beside(name)) is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{entry.source}: {path}: {error.strerror}") from None


def paths_of_environment() -> list[Path]:
    """The files that $KUBECONFIG names."""
    return [Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]


def _loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
