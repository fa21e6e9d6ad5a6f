"""``slacktide.pasts``: a cluster's past, and the verdict on it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from slacktide.api.configuring import Duration, seconds, whole_number
from slacktide.api.drawing import frame_of
from slacktide.errors import ConfigError
from slacktide.pasts import outcome, promises
from slacktide.pasts.anonymous import anonymized

if TYPE_CHECKING:
    import polars as pl

    from slacktide.pasts.story import Story

FilePath = str | os.PathLike[str]
Kind = Literal["cluster", "objects", "audit", "prometheus"]


class Past:
    """What a cluster did, in a folder. Edit ``promises.yaml`` in it to say who is promised what."""

    def __init__(self, folder: FilePath) -> None:
        self._folder = Path(folder)

    @property
    def folder(self) -> Path:
        """Where its files are (docs/how-to-past.md)."""
        return self._folder

    @property
    def workloads(self) -> pl.DataFrame:
        """A row per workload, as in workloads.csv: who it is, and what it was delivered."""
        return self._table(outcome.WORKLOADS)

    @property
    def pods(self) -> pl.DataFrame:
        """A row per pod, as in pods.csv: when it was created, bound and ready, and its node."""
        return self._table(outcome.PODS)

    def verdict(self, seeds: int = 3) -> dict[str, Any]:
        """What ``slacktide verdict --json`` prints; the page is in the folder then.

        Parameters
        ----------
        seeds : int
            Draws of start-ups.

        Returns
        -------
        dict
        """
        from slacktide.verdict.cluster_past import read
        from slacktide.verdict.judging import as_mapping, judged
        from slacktide.verdict.page import PAGE, write

        found = judged(read(self._folder), seeds=whole_number("verdict: seeds", seeds))
        write(found, self._folder / PAGE)
        return as_mapping(found)

    def _table(self, name: str) -> pl.DataFrame:
        import pyarrow.csv

        return frame_of(pyarrow.csv.read_csv(self._folder / name))

    def __repr__(self) -> str:
        return f"Past({str(self._folder)!r})"


def past(
    source: Kind,
    *files: FilePath,
    out: FilePath,
    promise: str = "",
    begin: Duration = "7d",
    horizon: Duration = "1d",
    anonymize: bool = False,
    kubeconfig: FilePath | None = None,
    context: str | None = None,
) -> Past:
    """Makes a simulation's input of what a cluster did, or of what it is, as ``slacktide past``.

    Parameters
    ----------
    source : str
        "cluster": what runs and waits now, by ``kubeconfig`` and ``context``; "objects": the same from files of
        kubectl, must-gather or a backup; "audit": what audit logs in ``files`` say; "prometheus": what
        kube-state-metrics says in the Prometheus of this address (more: the command).
    *files : path
        What ``source`` says.
    out : path
        A folder for the files.
    promise : str
        What the proposed classes are of: "priority", "namespace", "kind", "data", or "label=KEY".
    begin : seconds, text or timedelta
        How long ago the past of a Prometheus begins.
    horizon : seconds, text or timedelta
        So long a cluster of which only the present is known goes on as it is.
    anonymize : bool
        Replace all names, so that the files can be given away.
    kubeconfig : path, optional
    context : str, optional
        Of the cluster.

    Returns
    -------
    Past

    Raises
    ------
    InputError
        For a source that cannot be used.
    ConfigError
        For arguments.
    """
    promises.check(promise)
    lasting = seconds("horizon", horizon)
    if lasting is None:
        raise ConfigError("past: horizon: found None, expected seconds or a text such as '1d'")
    told = _story(source, files, Path(out), seconds("begin", begin) or 0.0, kubeconfig, context)
    found = outcome.write(anonymized(told) if anonymize else told, Path(out), horizon=lasting)
    promises.propose_in(Path(out), found.workloads, promise)
    return Past(out)


def _story(
    source: str, files: Sequence[FilePath], out: Path, ago: float, kubeconfig: FilePath | None, context: str | None
) -> Story:
    from slacktide.pasts import audit, cluster, object_files
    from slacktide.pasts.prometheus.source import story

    readers: dict[str, Callable[[list[Path]], Story]] = {"objects": object_files.story, "audit": audit.story}
    if source == "cluster":
        return asyncio.run(cluster.read(None if kubeconfig is None else Path(kubeconfig), context))
    if source not in (*readers, "prometheus"):
        expected = ", ".join(("cluster", *readers, "prometheus"))
        raise ConfigError(f"past: source: found {source!r}, expected one of {expected}")
    if not files:
        raise ConfigError(f"past: files: found none, expected what {source} is in")
    if source == "prometheus":
        now = time.time()
        return story(str(files[0]), now - ago, now, folder=out / "fetched")
    return readers[source]([Path(one) for one in files])
