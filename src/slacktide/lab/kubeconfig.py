"""Kubeconfig files for a lab's users."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

import yaml


def write_private(path: Path, text: str) -> Path:
    """Writes a file that only its owner may read, aside and then renamed."""
    aside = path.with_name(path.name + ".new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    aside.rename(path)
    return path


def write_kubeconfig(path: Path, *, url: str, token: str, ca_file: Path, user: str, namespace: str = "default") -> Path:
    """Writes a kubeconfig of one cluster, one user with a token, and the certificate to verify; returns its path."""
    certificate = base64.b64encode(ca_file.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "slacktide-lab", "cluster": {"server": url, "certificate-authority-data": certificate}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {
                "name": "slacktide-lab",
                "context": {"cluster": "slacktide-lab", "user": user, "namespace": namespace},
            }
        ],
        "current-context": "slacktide-lab",
    }
    return write_private(path, yaml.safe_dump(content, sort_keys=False))


P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
VERSION_AND_OCTETS = bytes.fromhex("30310201010420")
CURVE = bytes.fromhex("a00a06082a8648ce3d030107")


def write_signing_key(path: Path) -> None:
    """Writes a new private key on the curve P-256 as RFC 5915 has it: the scalar and the curve's name.

    The public half is left out; whoever reads the file computes it.
    """
    scalar = secrets.randbelow(P256_ORDER - 1) + 1
    text = base64.encodebytes(VERSION_AND_OCTETS + scalar.to_bytes(32, "big") + CURVE).decode()
    write_private(path, f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n")
