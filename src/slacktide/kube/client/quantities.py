"""Kubernetes quantities as whole numbers, with the meaning of k8s.io/apimachinery/pkg/api/resource.

A quantity is a decimal number with a suffix: none, ``n u m k M G T P E`` (powers of 1000),
``Ki Mi Gi Ti Pi Ei`` (powers of 1024) or an exponent (``1e3``, ``1E3``). What is finer than a
nano-unit counts as one. Sums are made in nano-units, exact, and rounded up at the end, as
kube-scheduler does: two containers with 100u of a core need one millicore, not two.
"""

from __future__ import annotations

import re
from functools import lru_cache

NANO = 10**9
LARGEST = 2**63 - 1
"""No amount is larger; what is counts as this."""

EXPECTED = "a Kubernetes quantity, 0 or more, such as 500m, 1.5, 2Gi or 1e3"

_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([A-Za-z]*)([+-]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_TOO_LONG = 100
_LARGE = (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


@lru_cache(maxsize=65536)
def nanos(text: str) -> int:
    """The quantity in nano-units, rounded up. Raises :class:`ValueError` naming it."""
    form = _FORM.fullmatch(text.strip()) if len(text) <= _TOO_LONG else None
    if form is None:
        raise _impossible(text)
    sign, whole, fraction, letters, digits = form.groups(default="")
    if not whole and not fraction:
        raise _impossible(text)
    number = int(whole + fraction)
    if sign == "-" and number:
        raise _impossible(text)
    if letters in _BINARY and not digits:
        return _scaled(number << _BINARY[letters], 9 - len(fraction))
    if not digits and letters in _DECIMAL:
        exponent = _DECIMAL[letters]
    elif letters in ("e", "E") and digits.lstrip("+-") and abs(int(digits)) < 2**31:
        exponent = int(digits)
    else:
        raise _impossible(text)
    return _scaled(number, exponent + 9 - len(fraction))


def amount(resource: str, nano: int) -> int:
    """Nano-units of a resource as the scheduler counts it, rounded up: millicores of ``cpu``, whole units of others."""
    unit = NANO // 1000 if resource == "cpu" else NANO
    return min(-(-nano // unit), LARGEST)


def quantity(resource: str, text: str) -> int:
    """The quantity ``text`` of a resource, in the units of :func:`amount`. Raises :class:`ValueError` naming it."""
    return amount(resource, nanos(text))


def cpu_text(nanos: int) -> str:
    """CPUs as people write them, rounded up to thousandths."""
    millis = -(-nanos * 1000 // NANO)
    return f"{millis}m" if millis % 1000 else f"{millis // 1000}"


def memory_text(nanos: int) -> str:
    """Bytes as people write them, rounded up."""
    count = -(-nanos // NANO)
    return next((f"{count // size}{unit}" for unit, size in _LARGE if count and count % size == 0), f"{count}")


def text_of(resource: str, amount: int) -> str:
    """An amount in the units of :func:`amount` as people write it."""
    if resource == "cpu":
        return cpu_text(amount * NANO // 1000)
    return memory_text(amount * NANO) if resource in ("memory", "ephemeral-storage") else str(amount)


def _scaled(number: int, exponent: int) -> int:
    """``number * 10**exponent``, rounded up, without making numbers of a billion digits."""
    largest = LARGEST * NANO
    if number == 0:
        return 0
    if exponent >= 0:
        return largest if exponent > 40 else min(number * 10**exponent, largest)
    return 1 if -exponent > 2 * _TOO_LONG else min(-(-number // 10**-exponent), largest)


def _impossible(text: str) -> ValueError:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return ValueError(f"found {shown!r}, expected {EXPECTED}")
