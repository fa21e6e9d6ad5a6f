"""Certificates on both sides of a server of TLS.

What it shows is read from files, which may be renewed, or one that it made for itself.

Who shows a client certificate, or stands behind a proxy that shows one, is told by the authorities that the cluster
names, as kube-scheduler has it. The API server publishes its client CA, and the CA and the headers of proxies in front,
in the ConfigMap ``extension-apiserver-authentication`` of ``kube-system``. TLS checks that a certificate that is shown
leads to one of all these authorities; whose it is is told here, for each request, by those that are in force then.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from slacktide.errors import ConfigError
from slacktide.kube.client.credentials import load_client_certificate
from slacktide.kube.client.http import FORBIDDEN, NOT_FOUND, ApiError, Connection, KubeError
from slacktide.kube.observe.access import User

if TYPE_CHECKING:
    from aiohttp import web
    from cryptography import x509
    from multidict import CIMultiDictProxy

LOG = logging.getLogger(__name__)

VALID = datetime.timedelta(days=3650)
"""Of a certificate made at start: longer than a process lives, because nothing renews it while it runs."""
EARLIER = datetime.timedelta(days=1)
"""It holds from before now: clocks of clients differ."""


class Certificate:
    """The server's side of TLS; ``fingerprint`` is the SHA-256 of its certificate, in hexadecimal digits, and ``ends``
    when that ends, seconds since 1970.

    Where ``certificate`` and ``key`` name files (PEM), they are read again once they have changed, so that renewed ones
    need no restart. Else one is made for ``host`` and this machine's name, signed by itself. Clients are asked for a
    certificate of theirs once it is known by which authorities (:meth:`trust`). Raises :class:`ConfigError` that begins
    with the setting.
    """

    def __init__(self, certificate: str | None, key: str | None, host: str) -> None:
        if (certificate is None) != (key is None):
            named, other = ("tls_certificate", "tls_key") if key is None else ("tls_key", "tls_certificate")
            raise ConfigError(f"kube.{other}: found nothing beside kube.{named}, expected both or neither")
        self._files = None if certificate is None or key is None else (Path(certificate), Path(key))
        self.made = self._files is None
        self.fingerprint = ""
        self.ends = 0.0
        self._own = self_signed(host) if self.made else None
        self._authorities = ""
        self._stamp = self._stamps()
        self._current = self._read()
        self.context = self._current
        self.context.sni_callback = self._begins  # asked at the beginning of every connection, with a name or not

    def trust(self, authorities: str) -> None:
        """From the next connection on, certificates that clients show are verified by these authorities, PEM; where
        there are none, nobody is asked for one."""
        before, self._authorities = self._authorities, authorities
        try:
            self._current = self._read()
        except BaseException:  # half of a renewal, or no authorities that OpenSSL can read
            self._authorities = before
            raise
        # Whether one is asked for is the first context's to say: a connection begins with that.
        self.context.verify_mode = self._current.verify_mode

    def _read(self) -> ssl.SSLContext:
        if self._own is not None:
            certificate, key = self._own
        else:
            files = zip(("tls_certificate", "tls_key"), self._files or (), strict=True)
            certificate, key = (_content(*one) for one in files)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        load_client_certificate(context, certificate, key, "kube.tls_certificate, kube.tls_key")
        # The cluster's own authorities may lack key identifiers, or be signed by others that are not named.
        context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
        if self._authorities:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=self._authorities)
        # A session that is resumed does not tell whose certificate began it.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self.fingerprint, self.ends = _known_by(certificate)
        return context

    def _stamps(self) -> list[tuple[int, int, int]]:
        found = []
        for file in self._files or ():
            try:
                status = os.stat(file)
            except OSError:
                continue  # reading it says what is the matter
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return found

    def _begins(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        stamp = self._stamps()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._current = self._read()
                LOG.info("kube.tls_certificate: read again, SHA-256 fingerprint %s", self.fingerprint)
            except ConfigError as error:
                LOG.warning("the last certificate stays in use: %s", error)
        connection.context = self._current


def self_signed(host: str) -> tuple[bytes, bytes]:
    """A certificate for ``host`` and this machine, and its key, both PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    names = dict.fromkeys(("localhost", "127.0.0.1", "::1", host, socket.gethostname()))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "slacktide")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - EARLIER, now + VALID)
        .add_extension(x509.SubjectAlternativeName([_general_name(one) for one in names if one]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(*form)


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _known_by(certificate: bytes) -> tuple[str, float]:
    """The fingerprint of a certificate, and when it ends."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    found = x509.load_pem_x509_certificate(certificate)
    return found.fingerprint(hashes.SHA256()).hex(), found.not_valid_after_utc.timestamp()


def _content(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"kube.{setting}: {file}: {error.strerror}; expected a file in PEM") from None


NAME = "extension-apiserver-authentication"
CONFIG_MAP = f"/api/v1/namespaces/kube-system/configmaps/{NAME}"
AGAIN_SECONDS = 15.0
AUTHENTICATED, UNAUTHENTICATED, ANONYMOUS = "system:authenticated", "system:unauthenticated", "system:anonymous"
CREDENTIAL = "authentication.kubernetes.io/credential-id"
UID_OF_SUBJECT = "1.3.6.1.4.1.57683.2"
"""The attribute of a subject that has a user's UID."""
MOST_CERTIFICATES = 1024
"""So many are remembered as they were read."""

Chain = tuple[bytes, ...]
"""Certificates, DER: the one that is shown, then whoever signed each, up to an authority."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class Shown(NamedTuple):
    """What a certificate says: whose it is, and between which instants all of its chain hold."""

    name: str
    groups: tuple[str, ...]
    uid: str
    begins: datetime.datetime
    ends: datetime.datetime


@dataclass(frozen=True)
class Proxies:
    """Proxies in front: which certificates they show, by which names, and where they say whom they speak for."""

    authorities: frozenset[bytes]
    names: frozenset[str] = frozenset()
    """Common names; without any, whoever has a certificate of the authorities."""
    users: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    """Prefixes of headers."""

    def name(self, chain: Chain, shown: Shown, headers: CIMultiDictProxy[str]) -> str:
        """The name of whom a proxy speaks for; empty where this is none, or where it names nobody."""
        if self.authorities.isdisjoint(chain) or (self.names and shown.name not in self.names):
            return ""
        return next((headers[one] for one in self.users if headers.get(one)), "")

    def user_of(self, name: str, headers: CIMultiDictProxy[str]) -> User | None:
        """For whom a proxy speaks that gives this name; None where that is somebody whom it does not know itself."""
        groups = [one for header in self.groups for one in headers.getall(header, []) if one]
        if name == ANONYMOUS or UNAUTHENTICATED in groups:
            return None
        uid = next((headers[one] for one in self.uids if headers.get(one)), "")
        return User(name, uid, _with_everybody(groups), self._extra(headers))

    def _extra(self, headers: CIMultiDictProxy[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for prefix in map(str.lower, self.extras):
            for header, value in headers.items():
                if header.lower().startswith(prefix) and len(header) > len(prefix):
                    found.setdefault(unquote(header[len(prefix) :].lower()), []).append(value)
        return found


@dataclass(frozen=True)
class Authorities:
    """Whom certificates are taken from. ``pem``: the certificates of all authorities, of clients and of proxies, and
    nothing that stands between them."""

    clients: frozenset[bytes] = frozenset()
    proxies: Proxies = field(default_factory=lambda: Proxies(frozenset()))
    pem: str = ""

    def user_of(self, chain: Chain, headers: CIMultiDictProxy[str], now: datetime.datetime) -> User | None:
        """Whose request it is; None where ``chain``, as TLS has verified it, says nobody (any more)."""
        shown = read(chain) if chain else None
        if shown is None or not shown.begins <= now <= shown.ends:
            return None
        if name := self.proxies.name(chain, shown, headers):
            return self.proxies.user_of(name, headers)  # if nobody, not the proxy itself either
        if self.clients.isdisjoint(chain) or not shown.name:
            return None
        extra = {CREDENTIAL: [f"X509SHA256={hashlib.sha256(chain[0]).hexdigest()}"]}
        return User(shown.name, shown.uid, _with_everybody(shown.groups), extra)


NOBODYS = Authorities()


class ClusterAuthorities:
    """What the cluster says now whom to take certificates from, read again every :data:`AGAIN_SECONDS`.

    ``renewed`` hears of other authorities (PEM). Where the ConfigMap cannot be read tokens are taken, and nothing else.
    """

    def __init__(self, connection: Connection, renewed: Callable[[str], None]) -> None:
        self._connection, self._renewed = connection, renewed
        self.current = NOBODYS
        self._said = self._refused = ""

    def user_of(self, request: web.Request) -> User | None:
        """Whom a request's certificate names, directly or through a proxy; None where it shows none that counts."""
        transport = request.transport
        chain = chain_of(None if transport is None else transport.get_extra_info("ssl_object"))
        return self.current.user_of(chain, request.headers, datetime.datetime.now(datetime.UTC))

    async def run(self) -> None:
        """Reads it again and again, until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:
                LOG.exception("client certificates: the last content of ConfigMap kube-system/%s stays in force", NAME)
            await asyncio.sleep(AGAIN_SECONDS)

    async def look(self) -> None:
        """Read it now."""
        problem = ""
        try:
            found = await self._found()
            if found.pem != self.current.pem:
                self._renewed(found.pem)
            if found != self.current:
                counts = len(found.clients), len(found.proxies.authorities)
                LOG.info("client certificates: accepting those of %d authorities, and of %d for proxies", *counts)
            self.current = found
        except (KubeError, ConfigError, ssl.SSLError, ValueError) as error:
            problem = f"ConfigMap kube-system/{NAME} cannot be used: {error}"
        if problem and problem != self._said:
            LOG.warning(
                "client certificates: %s; %s", problem,
                "its last content stays in force" if self.current.pem else "only tokens are accepted",
            )  # fmt: skip
        self._said = problem

    async def _found(self) -> Authorities:
        try:
            answer = await self._connection.get(CONFIG_MAP, urgent=True)
        except ApiError as error:
            if error.status not in (FORBIDDEN, NOT_FOUND):
                raise
            if f"{error}" != self._refused:
                more = "; the manifests of this version give the right to it" if error.status == FORBIDDEN else ""
                LOG.warning("only tokens are accepted, no client certificates: ConfigMap %s: %s%s", NAME, error, more)
            self._refused = f"{error}"
            return NOBODYS
        self._refused = ""
        data = msgspec.json.decode(answer, type=_ConfigMap).data  # msgspec's errors are ValueErrors
        return authorities_of(data or {})


def authorities_of(data: Mapping[str, str]) -> Authorities:
    """What the ConfigMap says. Raises :class:`ValueError` that names the key which cannot be read."""
    clients = _certificates("client-ca-file", data.get("client-ca-file", ""))
    proxies = Proxies(
        _certificates("requestheader-client-ca-file", data.get("requestheader-client-ca-file", "")),
        frozenset(_names(data, "requestheader-allowed-names")),
        _names(data, "requestheader-username-headers"),
        _names(data, "requestheader-uid-headers"),
        _names(data, "requestheader-group-headers"),
        _names(data, "requestheader-extra-headers-prefix"),
    )
    pem = "".join(map(ssl.DER_cert_to_PEM_cert, sorted(clients | proxies.authorities)))
    return Authorities(clients, proxies, pem)


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        return tuple(msgspec.json.decode(data.get(key) or "[]", type=list[str] | None) or ())
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise ValueError(f"{key}: expected a list of strings in JSON") from None


def _certificates(key: str, pem: str) -> frozenset[bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    if not pem.strip():
        return frozenset()
    try:
        return frozenset(one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(pem.encode()))
    except ValueError:
        raise ValueError(f"{key}: expected certificates in PEM") from None


@lru_cache(MOST_CERTIFICATES)
def read(chain: Chain) -> Shown | None:
    """What the first of a chain says; None where it cannot be read."""
    from cryptography import x509

    try:
        found = [x509.load_der_x509_certificate(one) for one in chain]
        subject = found[0].subject
        names = _values(subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME))
        groups = _values(subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME))
        uids = _values(subject.get_attributes_for_oid(x509.ObjectIdentifier(UID_OF_SUBJECT)))
    except ValueError:
        return None
    begins = max(one.not_valid_before_utc for one in found)
    ends = min(one.not_valid_after_utc for one in found)
    return Shown(names[-1] if names else "", groups, uids[-1] if uids else "", begins, ends)


def _values(attributes: Sequence[Any]) -> tuple[str, ...]:
    return tuple(one.value for one in attributes if isinstance(one.value, str))


def _with_everybody(groups: Sequence[str]) -> tuple[str, ...]:
    return (*(one for one in groups if one != AUTHENTICATED), AUTHENTICATED)


def chain_of(connection: ssl.SSLObject | ssl.SSLSocket | None) -> Chain:
    """The chain that TLS has verified; empty where no certificate was shown."""
    if connection is None:
        return ()
    public = getattr(connection, "get_verified_chain", None)
    if public is not None:  # since Python 3.13
        return tuple(public())
    inner = getattr(connection, "_sslobj", None)
    found = None if inner is None else inner.get_verified_chain()
    return tuple(ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in found or ())
