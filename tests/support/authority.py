"""A certificate authority, and certificates of clients that it signs."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOUR = datetime.timedelta(hours=1)
SERVER = ExtendedKeyUsageOID.SERVER_AUTH


class Authority:
    """One that signs itself, or that ``signer`` signs; without key identifiers, as some clusters make theirs."""

    def __init__(self, name: str, signer: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.signer = signer
        issuer, key = (self.name, self.key) if signer is None else (signer.name, signer.key)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = _begun(self.name, issuer, self.key).add_extension(basic, critical=True)
        self.signed = self.certificate.sign(key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.signed.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.signed.public_bytes(serialization.Encoding.DER)

    def client(
        self,
        name: str,
        *groups: str,
        ended: bool = False,
        purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
        address: str = "",
    ) -> tuple[bytes, bytes]:
        """A client's certificate, with those of authorities that others signed, and its key, both PEM. ``address``: of
        a server, that which it is reached at."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in groups]
        attributes += [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
        key = ec.generate_private_key(ec.SECP256R1())
        begun = _begun(x509.Name(attributes), self.name, key, -HOUR / 2 if ended else HOUR)
        begun = begun.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if address:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            begun = begun.add_extension(names, critical=False)
        signed = begun.sign(self.key, hashes.SHA256())
        pem = signed.public_bytes(serialization.Encoding.PEM) + (self.pem.encode() if self.signer else b"")
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return pem, key.private_bytes(*form)

    def written(self, folder: Path, name: str, *groups: str) -> tuple[str, str]:
        """The same in two files."""
        files = folder / f"{name}.crt", folder / f"{name}.key"
        for file, content in zip(files, self.client(name, *groups), strict=True):
            file.write_bytes(content)
        return str(files[0]), str(files[1])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: datetime.timedelta = HOUR
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    number = x509.random_serial_number()
    return x509.CertificateBuilder(issuer, subject, key.public_key(), number, now - HOUR, now + lasts)
