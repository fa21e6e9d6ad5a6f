"""Builds the lab's programs with Go, each once, into a cache.

Kubernetes cannot be built by ``go install``, because its own module points its parts at folders. The modules
beside this file (``modules/``) name the published parts instead, with the checksum of everything they need, so
that a build is repeatable and verified.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from slacktide.lab.errors import LabError
from slacktide.lab.processes import locked

MODULES = Path(__file__).parent / "modules"
SHOWN_LINES = 15


@dataclass(frozen=True, slots=True)
class Source:
    """Where a program comes from: our module's folder, its version, the Go package, and flags for the linker."""

    module: str
    version: str
    package: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def minor(self) -> str:
        """The version without its last number: ``1.36`` of ``1.36.3``."""
        return self.version.rpartition(".")[0]


def _kubernetes(program: str) -> Source:
    # Without these an API server believes that it is version 0.0 and refuses many objects.
    version = {"gitVersion": "v1.36.3", "gitMajor": "1", "gitMinor": "36", "gitTreeState": "clean"}
    values = tuple((f"k8s.io/component-base/version.{name}", value) for name, value in version.items())
    return Source("kubernetes", "1.36.3", f"k8s.io/kubernetes/cmd/{program}", values)


KUBERNETES_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
SOURCES: dict[str, Source] = {
    **{program: _kubernetes(program) for program in KUBERNETES_PROGRAMS},
    "kwok": Source("kwok", "0.8.0", "sigs.k8s.io/kwok/cmd/kwok", (("sigs.k8s.io/kwok/pkg/consts.Version", "0.8.0"),)),
    "etcd": Source("etcd", "3.6.5", "go.etcd.io/etcd/server/v3"),
    # Built from the same parts of Kubernetes as kubectl, so that most of it is compiled already.
    "helm": Source(
        "helm", "4.2.4", "helm.sh/helm/v4/cmd/helm", (("helm.sh/helm/v4/internal/version.version", "v4.2.4"),)
    ),
}
"""Every program the lab may start, with what it is built from."""


def cache_directory() -> Path:
    """Where built programs are kept; ``SLACKTIDE_LAB_CACHE`` overrides the user's cache folder."""
    own = os.environ.get("SLACKTIDE_LAB_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slacktide" / "lab"


def cached(program: str) -> Path:
    """Where ``program`` is or would be in the cache."""
    source = SOURCES[program]
    return cache_directory() / f"{source.module}-{source.version}" / program


def build(programs: Iterable[str], say: Callable[[str], None]) -> None:
    """Builds those of ``programs`` that the cache lacks; other processes wait instead of building as well.

    Minutes for a Kubernetes program on two cores, at most 2 GB of memory; ``say`` is told what goes on.

    Raises:
        LabError: if Go is missing or a build fails.
    """
    missing = [program for program in programs if not cached(program).exists()]
    if not missing:
        return
    go = shutil.which("go")
    if go is None:
        raise LabError(_how_to_get(missing))
    with locked(cache_directory() / "lock", lambda: say("waiting for another process that builds the lab's programs")):
        for program in missing:
            if not cached(program).exists():
                source = SOURCES[program]
                say(f"building {program} {source.version} with Go (takes minutes, happens once)")
                _build(go, program, source)


def _how_to_get(missing: list[str]) -> str:
    return (
        f"the lab needs {', '.join(missing)}, found in none of: --bin, $SLACKTIDE_LAB_BIN, $KUBEBUILDER_ASSETS, PATH, "
        f"{cache_directory()}; and cannot build them, because there is no 'go' on the PATH. Either install Go 1.26 or "
        "later (https://go.dev/dl), or name a directory that holds them: slacktide lab up --bin DIR"
    )


def _build(go: str, program: str, source: Source) -> None:
    target = cached(program)
    target.parent.mkdir(parents=True, exist_ok=True)
    linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in source.values)])
    with tempfile.TemporaryDirectory(prefix=".building-", dir=cache_directory()) as name:
        aside = Path(name)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(MODULES / source.module / file, aside / file)
        command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", linker, "-o", program, source.package]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        done = subprocess.run(command, cwd=aside, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-SHOWN_LINES:])
            raise LabError(f"go could not build {program} {source.version} (exit code {done.returncode}):\n{tail}")
        (aside / program).rename(target)
