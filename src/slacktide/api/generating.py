"""``slacktide.generate``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slacktide.api.drawing import frame_of
from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.generators.api import Value, settled
from slacktide.inputs.generators.registry import GENERATORS, generated
from slacktide.inputs.write import hosts_table, workload_table
from slacktide.model import Hosts, Network, ServiceClass, Workload
from slacktide.results.generated import save

if TYPE_CHECKING:
    import polars as pl


class Generated:
    """A generated workload and its hosts; equal names, parameters and seeds give equal ones, to the bit.

    Wherever a workload or hosts are asked for it can be given as it is, or as its frames, which may be changed.
    """

    def __init__(self, generator: str, seed: int, parameters: Mapping[str, Value]) -> None:
        self.generator = generator
        self.seed = seed
        self.parameters = dict(parameters)

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        """Workload and hosts as Arrow tables, with what ``slacktide generate`` writes into files."""
        requests, hosts = self._made
        return workload_table(requests), hosts_table(hosts)

    @cached_property
    def _made(self) -> tuple[Workload, Hosts]:
        return generated(self.generator, self.parameters, self.seed)

    @cached_property
    def workload(self) -> pl.DataFrame:
        """The requests, with the columns of a workload file (docs/formats.md)."""
        return frame_of(self.tables[0])

    @cached_property
    def hosts(self) -> pl.DataFrame:
        """The hosts, with the columns of a hosts file."""
        return frame_of(self.tables[1])

    @property
    def classes(self) -> tuple[ServiceClass, ...]:
        """The service classes that its requests name."""
        return self._made[0].classes

    @property
    def network(self) -> Network | None:
        """Where its hosts and users are; None: nobody asks."""
        return self._made[1].network

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes workload.parquet, hosts.parquet and what belongs to them, as ``slacktide generate --out`` does.

        The folder is there whole or not at all. Raises :class:`OutputError`.
        """
        save(GENERATORS[self.generator], self.parameters, self.seed, Path(folder))
        return Path(folder)

    def __repr__(self) -> str:
        requests, hosts = self.tables
        said = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        rows = f"{requests.num_rows:,} requests, {hosts.num_rows:,} hosts"
        return f"generate({self.generator!r}, seed={self.seed}{said}): {rows}"


def generate(name: str, /, *, seed: int = 0, **parameters: Any) -> Generated:
    """A workload and its hosts, by the generator of this name (``slacktide generate`` lists them).

    ``parameters`` are the generator's own, such as ``hosts=62``. Raises :class:`ConfigError` for an unknown generator
    or parameter, and for a value out of range.
    """
    if name not in GENERATORS:
        raise ConfigError(f"generate: found {name!r}, expected {expected_name(name, list(GENERATORS))}")
    known = settled(name, GENERATORS[name].parameters, parameters)
    found = Generated(name, seed, {key: value for key, value in known.items() if key in parameters})
    found.tables  # noqa: B018  here, so that a mistake is noticed where it was made
    return found
