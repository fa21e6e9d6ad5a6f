"""Equations 8 to 18 of delay-aware scheduling, each a function; times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt


def processing_delay(data: float, cpu: float) -> float:
    """Equation 8: the data volume over the CPU that the pod is granted."""
    return data / cpu


def granted(demand: float, limit: float, residual: float, phi: float) -> float:
    """Equation 9: a share of what is free, but no more than the limit and no less than the demand."""
    return max(demand, min(phi * residual, limit))


def local_delay(image: float, data: float, network: float) -> float:
    """Equation 10: download of the image, then transmission of the data at the demanded bandwidth."""
    return image + data / network


def remote_delay(image: float, data: float, network: float, rtt: float, deviation: float) -> float:
    """Equation 11: one way to the login node beside, deviation included."""
    return local_delay(image, data, network) + (rtt + deviation) / 2


def mean_rtt(rtts: Sequence[float]) -> float:
    """Equation 13, over the other nodes."""
    return sum(rtts) / len(rtts)


def rtt_deviation(rtts: Sequence[float]) -> float:
    """Equation 12, over the other nodes."""
    return sqrt(max(sum(rtt * rtt for rtt in rtts) / len(rtts) - mean_rtt(rtts) ** 2, 0.0))


def cpu_left(residual: float, demand: float, limit: float, phi: float) -> float:
    """Equation 14, and 15 for memory: the granted amount is taken off."""
    return residual - granted(demand, limit, residual, phi)


def network_left(residual: float, demand: float) -> float:
    """Equation 16: of bandwidth just what was demanded."""
    return residual - demand


def acceptable(omega: float, reference: float, tolerance: float) -> bool:
    """Equation 17: hardly slower than the fastest node."""
    return omega <= reference + tolerance


def contention(pods: int, context_switch: float, competition: float) -> float:
    """Equation 18: what a node that serves pods already adds; one that serves none adds nothing."""
    return context_switch + 2.0 ** (pods - 1) * competition if pods > 0 else 0.0


def omega(alpha: float, processing: float, network: float, gamma: float) -> float:
    """Lines 7 to 9 of algorithm 2: the weighted delay."""
    return alpha * processing + (1 - alpha) * network + gamma
