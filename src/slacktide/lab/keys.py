"""The key that signs tokens of ServiceAccounts."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

from slacktide.lab.kubeconfig import write_private

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
