"""Kubeconfig files for a lab's users."""

from __future__ import annotations

import base64
import os
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


def write_signing_key(path: Path) -> None:
    """Writes a new private key on the curve P-256."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    write_private(path, ec.generate_private_key(ec.SECP256R1()).private_bytes(*form).decode())
