"""What a server of TLS shows: a certificate from files, which may be renewed, or one that it made for itself."""

from __future__ import annotations

import datetime
import ipaddress
import logging
import os
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from slacktide.errors import ConfigError
from slacktide.kube.client.credentials import load_client_certificate

if TYPE_CHECKING:
    from cryptography import x509

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
