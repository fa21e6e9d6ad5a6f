"""Addresses of the form HOST:PORT."""

from __future__ import annotations


def split_address(text: str, least_port: int = 1) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, an IPv6 address in brackets. Raises ``ValueError``."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host) != bracketed or not port.isascii() or not port.isdigit():
        raise ValueError(f"found {text!r}, expected HOST:PORT, an IPv6 address in brackets")
    if not least_port <= int(port) < 2**16:
        raise ValueError(f"found port {port} in {text!r}, expected {least_port} to 65535")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """``HOST:PORT``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
