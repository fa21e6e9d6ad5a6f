"""Forwards IP packets between nodes, each after half of the pair's round-trip time.

``python -m slacktide.edge.emulation.forwarder PLAN``; the plan is JSON: ``nodes``, a list of {space, device, address},
``delays``, seconds by row (from) and column (to) of that list, and ``lags``, seconds by node that what its pods send
takes longer.  Every node's TUN device delivers what its kernel sends; it is held for the delay and written to the
device of the node that it is for, so TCP works through it, and what stays on a node never comes here.  It says
``ready`` on stdout, and ends when stdin does.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import json
import os
import select
import socket
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET = 65536
DESTINATION = slice(16, 20)
"""Where an IPv4 header has the destination's address."""
PROTOCOL, TCP = 9, 6
FIRST_OF_CLIENTS = 32768
"""Pods listen at ports below; Linux gives those who connect to them ports from here on."""
LIBC = ctypes.CDLL(None, use_errno=True)


def opened(space: str, device: str) -> int:
    """A descriptor of a namespace's TUN device; this process is in that namespace afterwards. Raises OSError."""
    with open(f"/run/netns/{space}") as namespace:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {space}")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def answers(packet: bytes) -> bool:
    """Whether an IPv4 packet comes from a pod: TCP from a port at which one listens."""
    header = (packet[0] & 0x0F) * 4
    return packet[PROTOCOL] == TCP and int.from_bytes(packet[header : header + 2], "big") < FIRST_OF_CLIENTS


def forward(tuns: list[int], addresses: list[bytes], delays: list[list[float]], lags: list[float]) -> None:
    """Forward until stdin ends; ``addresses``, ``delays`` and ``lags`` (seconds) are in the order of ``tuns``."""
    nodes = {address: number for number, address in enumerate(addresses)}
    numbers = {tun: number for number, tun in enumerate(tuns)}
    looking = select.epoll()
    for tun in (*tuns, 0):
        looking.register(tun, select.EPOLLIN)
    waiting: list[tuple[float, int, int, bytes]] = []
    count = 0
    while True:
        left = waiting[0][0] - time.monotonic() if waiting else None
        if left is not None and 0 < left < 0.001:  # epoll knows whole milliseconds only
            time.sleep(left)
            left = 0.0
        for ready, _ in looking.poll(None if left is None else int(max(left, 0.0) * 1000) / 1000):
            if ready == 0:
                return
            now = time.monotonic()
            with contextlib.suppress(BlockingIOError):
                while packet := os.read(ready, PACKET):
                    to = nodes.get(packet[DESTINATION])
                    if packet[0] >> 4 == 4 and to is not None:  # not IPv6, not multicast
                        count += 1
                        node = numbers[ready]
                        held = delays[node][to] + (lags[node] if answers(packet) else 0.0)
                        heapq.heappush(waiting, (now + held, count, tuns[to], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, tun, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # as a network does with what it cannot deliver
                os.write(tun, packet)


def main(nodes: list[dict[str, str]], delays: list[list[float]], lags: list[float]) -> None:
    """Open all devices, say so, and forward."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)  # it stands for the network, which does not wait for a processor
    tuns = [opened(node["space"], node["device"]) for node in nodes]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    forward(tuns, [socket.inet_aton(node["address"]) for node in nodes], delays, lags)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
