"""Host events in a plan, which changes how many hosts there are: what happens to named hosts happens in every size."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slacktide.experiment.grid import Grid
from slacktide.experiment.store import Store
from slacktide.model import Hosts
from slacktide.results import experiment as folder


@dataclass(frozen=True, slots=True)
class Falling:
    """Hosts to which something happens by files of host events: they are the first of every size, so that more hosts
    are hosts beside them. ``files`` are rows of these files, and the head, by path.
    """

    names: tuple[str, ...]
    files: Mapping[str, tuple[list[str], list[list[str]]]]

    @classmethod
    def of(cls, grid: Grid, mix: Hosts) -> Falling:
        """Those of all policies. The files can be read."""
        numbers = {str(number): name for number, name in zip(mix.ids.tolist(), mix.names, strict=True)}
        files: dict[str, tuple[list[str], list[list[str]]]] = {}
        names: dict[str, None] = {}
        for file in dict.fromkeys(one.config.failures.file for one in grid.policies.values()):
            if file is None:
                continue
            with Path(file).open(encoding="utf-8-sig", newline="") as opened:
                head, *rows = ([cell.strip() for cell in row] for row in csv.reader(opened) if any(row))
            at = head.index("host")
            for row in rows:
                row[at] = row[at] if row[at] in mix.names else numbers[row[at]]
                names[row[at]] = None
            files[file] = head, rows
        return cls(tuple(names), files)

    def written(self, size: str, hosts: Hosts, store: Store) -> dict[tuple[str, str], str]:
        """The events of the hosts that a size has, as a file for each file, under the content's hash."""
        found = {}
        for file, (head, rows) in self.files.items():
            text = io.StringIO()
            mine = [row for row in rows if row[head.index("host")] in hosts.names]
            csv.writer(text, lineterminator="\n").writerows([head, *mine])
            name = f"{hashlib.sha256(text.getvalue().encode()).hexdigest()}.csv"
            store.write(f"{folder.INPUTS}/{name}", text.getvalue())
            found[size, file] = str(store.inputs / name)
        return found
