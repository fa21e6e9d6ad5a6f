"""Workloads and hosts that are in no file yet, as files of an experiment's folder, where all its runs find them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from slacktide.experiment.grid import FromFile, PolicyEntry
from slacktide.inputs import write_workload
from slacktide.model import Workload
from slacktide.model.window import EPOCH


def mapped(
    found: Workload, epoch: str, policies: Mapping[str, PolicyEntry], folder: Path
) -> tuple[FromFile, dict[str, PolicyEntry]]:
    """A workload that was read from columns of its own, in a file of ``folder`` as all are, and policies whose second 0
    is its first instant, unless settings say another one."""

    def beginning(one: PolicyEntry) -> PolicyEntry:
        simulation = one.config.simulation
        if not epoch or simulation.epoch != EPOCH:
            return one
        return replace(one, config=replace(one.config, simulation=replace(simulation, epoch=epoch)))

    return kept_in(folder, partial(write_workload, found)), {name: beginning(one) for name, one in policies.items()}


def kept_in(folder: Path, write: Callable[[Path], object]) -> FromFile:
    """What is written, in a file of ``folder`` named by its content, so that equal ones are equal inputs."""
    aside = folder / f".given-{os.getpid()}.parquet"
    write(aside)
    content = hashlib.sha256(aside.read_bytes()).hexdigest()
    return FromFile(aside.replace(folder / f"given-{content}.parquet").resolve())
