"""The UDP socket of an agent, and the instant at which the kernel had a packet."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import struct
import sys
import time

from slacktide.errors import ConfigError

SO_TIMESTAMPNS = 35
"""Linux' number; Python has no name for it. The kernel then says when a packet came, however late we look."""
TIMESPEC = struct.Struct("@ll")
BUFFER_BYTES = 4 * 2**20
LONGEST_DATAGRAM = 2048
LONGEST_WAIT_SECONDS = 30.0
"""A packet did not wait longer than this in the socket's buffer; the wall clock was set meanwhile."""

Address = tuple[str, int]


def open_socket(host: str, port: int) -> socket.socket:
    """A bound UDP socket; ``::`` takes IPv4 as well, and where there is no IPv6, is ``0.0.0.0``.

    Raises :class:`ConfigError`.
    """
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host.partition("%")[0]).version == 6 else socket.AF_INET
    except ValueError:
        raise ConfigError(f"--bind: found {host!r}, expected an IP address of this machine, :: or 0.0.0.0") from None
    try:
        made = _bound(family, host, port)
    except OSError as error:
        if host != "::" or error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise ConfigError(f"--bind: cannot bind {host} port {port}: {error.strerror or error}") from error
        try:
            made = _bound(socket.AF_INET, "0.0.0.0", port)
        except OSError as other:
            raise ConfigError(f"--bind: cannot bind port {port}: {other.strerror or other}") from other
    made.setblocking(False)
    for level, option, value in (
        (socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES),
        *([(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)] if sys.platform == "linux" else []),
    ):
        with contextlib.suppress(OSError):
            made.setsockopt(level, option, value)
    return made


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def is_numeric(host: str) -> bool:
    """Whether this is an address and no name."""
    try:
        ipaddress.ip_address(host)  # with a zone, if it is of IPv6
    except ValueError:
        return False
    return True


def usable(made: socket.socket, host: str) -> str:
    """A numeric address as this socket can send to it, empty where it cannot."""
    if not is_numeric(host):
        return ""
    address = ipaddress.ip_address(host)
    if made.family == socket.AF_INET:
        return host if address.version == 4 else ""
    if address.version == 6:
        return host
    dual = not made.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    return f"::ffff:{host}" if dual else ""


def receive(made: socket.socket) -> tuple[bytes, float, tuple[object, ...]]:
    """One datagram, how many seconds it has waited for us, and from where. Raises ``BlockingIOError``, ``OSError``."""
    data, ancillary, _, source = made.recvmsg(LONGEST_DATAGRAM, socket.CMSG_SPACE(TIMESPEC.size))
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(value) >= TIMESPEC.size:
            seconds, nanoseconds = TIMESPEC.unpack_from(value)
            waited = time.time() - (seconds + nanoseconds * 1e-9)
            return data, waited if 0.0 <= waited <= LONGEST_WAIT_SECONDS else 0.0, source
    return data, 0.0, source
