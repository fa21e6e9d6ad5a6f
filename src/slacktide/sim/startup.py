"""Start-up delays, from a file of measured values or a distribution; and instants of passes that are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError, fail
from slacktide.inputs import read_delays

STEPS = 4096
"""A distribution is drawn from through this many quantiles, so that a delay is one table look-up."""

LONGEST = 1e9
"""Seconds; longer start-ups are mistakes."""

SHAPED = "constant:S, uniform:A,B, normal:MEAN,SD, lognormal:MEDIAN,SIGMA or exponential:MEAN"
EXPECTED = f"{SHAPED}, or a file"


def _constant(value: float, _u: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(1, value)


def _uniform(low: float, high: float, u: NDArray[np.float64]) -> NDArray[np.float64]:
    return low + (high - low) * u


def _normal(mean: float, deviation: float, u: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse = NormalDist().inv_cdf
    return mean + deviation * np.array([inverse(float(x)) for x in u])


def _lognormal(median: float, sigma: float, u: NDArray[np.float64]) -> NDArray[np.float64]:
    return median * np.exp(_normal(0.0, sigma, u))


def _exponential(mean: float, u: NDArray[np.float64]) -> NDArray[np.float64]:
    return -mean * np.log1p(-u)


SHAPES: dict[str, tuple[int, Callable[..., NDArray[np.float64]]]] = {
    "constant": (1, _constant),
    "uniform": (2, _uniform),
    "normal": (2, _normal),
    "lognormal": (2, _lognormal),
    "exponential": (1, _exponential),
}


def delays(text: str, setting: str) -> NDArray[np.float64]:
    """The table of delays, seconds, that ``text`` describes; negative ones become 0.

    Raises :class:`ConfigError` naming the setting, and InputError for a file that is broken or not there.
    """
    name, colon, rest = text.partition(":")
    if name not in SHAPES or not colon:
        if Path(text).exists():
            return read_delays(Path(text))
        if not colon and Path(text).suffix[1:2].isalpha():
            raise fail(text, f"an existing file, or {SHAPED}", column=setting, value="no such file")
        raise ConfigError(f"{setting}: found {text!r}, expected {EXPECTED}")
    arity, quantiles = SHAPES[name]
    try:
        numbers = [float(word) for word in rest.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != arity or not all(0 <= x <= LONGEST for x in numbers):
        raise ConfigError(f"{setting}: found {text!r}, expected {name} with {arity} numbers from 0 to {LONGEST:g}")
    if name == "uniform" and numbers[0] > numbers[1]:
        raise ConfigError(f"{setting}: found {text!r}, expected the smaller number first")
    u = (np.arange(STEPS) + 0.5) / STEPS
    return np.maximum(0.0, quantiles(*numbers, u))


def triggers(file: str | None) -> NDArray[np.float64]:
    """The instants in a file of seconds, in order; none where no file is named.

    Raises :class:`ConfigError` where there is no such file, and InputError for a broken one.
    """
    if file is None:
        return np.zeros(0)
    if not Path(file).is_file():
        raise ConfigError(f"scheduler.triggers: found {file!r}, expected a file of seconds")
    return np.sort(read_delays(Path(file)))


def batch_returns(text: str | None) -> NDArray[np.float64] | None:
    """The table of ``simulation.batch_recreation``, as for :func:`delays`; None where there is none."""
    return None if text is None else delays(text, "simulation.batch_recreation")
