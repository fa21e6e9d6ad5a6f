"""What a generator of workloads is: a name, parameters that a command line can set, and a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.model import Hosts, Workload

Value = int | float | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting of a generator.

    The default's type is the parameter's; numbers are from ``least`` to ``most``, words one of ``choices``
    where there are any.
    """

    name: str
    default: Value
    help: str
    least: float = 0.0
    most: float = math.inf
    choices: tuple[str, ...] = ()

    def convert(self, value: object) -> Value:
        """``value`` (text from a command line, or a number) in the type of the default.

        Raises :class:`ConfigError` naming the parameter, the value and what is expected.
        """
        if isinstance(self.default, str):
            if self.choices and value not in self.choices:
                raise ConfigError(f"{self.name}: found {value!r}, expected {expected_name(str(value), self.choices)}")
            return str(value)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        expected = f"{kind}, at least {self.least:g}" + (f", at most {self.most:g}" if self.most < math.inf else "")
        try:
            number = float(str(value).replace("_", ""))
        except ValueError:
            number = math.nan
        whole = isinstance(self.default, int)
        if not self.least <= number < 1e15 or number > self.most or (whole and number != int(number)):
            raise ConfigError(f"{self.name}: found {value!r}, expected {expected}")
        return int(number) if whole else number


def settled(what: str, parameters: Sequence[Parameter], settings: Mapping[str, object]) -> dict[str, Value]:
    """All parameters by name: those in ``settings`` (as text or numbers) converted, the others' defaults.

    Raises :class:`ConfigError` naming ``what`` they are of for an unknown one, or a value out of range.
    """
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Value] = {name: parameter.default for name, parameter in known.items()}
    for name, value in settings.items():
        if name not in known:
            right = expected_name(name, list(known)) if known else "no parameter"
            raise ConfigError(f"{what}: unknown parameter {name!r}, expected {right}")
        values[name] = known[name].convert(value)
    return values


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes a workload and its hosts from parameters and a seed; equal ones give equal output, to the bit."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    make: Callable[[Mapping[str, Value], int], tuple[Iterator[Workload], Hosts]]

    def generate(self, settings: Mapping[str, object], seed: int = 0) -> tuple[Iterator[Workload], Hosts]:
        """The workload in pieces (in order of admission; the same classes, terms and resources), and the hosts.

        ``settings`` holds the parameters that are not to keep their defaults, as text or as
        numbers. Raises :class:`ConfigError` for an unknown one or a value out of range.
        """
        if not 0 <= seed < 2**63:
            raise ConfigError(f"seed: found {seed}, expected a whole number from 0 to 2^63 - 1")
        return self.make(settled(self.name, self.parameters, settings), seed)
