"""Kubernetes' own tests of scheduling (e2e.test, [sig-scheduling]), with slacktide as the scheduler of all pods.

    PYTHONPATH=src python bench/e2e_scheduling.py                          both schedulers, each some 30 minutes
    PYTHONPATH=src python bench/e2e_scheduling.py --focus Preemption --scheduler slacktide

Builds e2e.test of the lab's version of Kubernetes with Go (some minutes, once; it is kept in the lab's cache). Each
scheduler has a lab of its own: a real API server and controllers, kubelets that KWOK plays. Slacktide has its defaults
but for what makes it the scheduler of everything: ``kube.scheduler_name=default-scheduler``, ``kube.all_nodes``, and a
class that every pod gets.

What needs a real kubelet (a container that listens, ephemeral storage that is used) fails with whatever scheduler: so
there are two columns. Prints them, and why a test failed where only one of both did.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.binaries import NEEDED
from slacktide.lab.building import MODULES, SOURCES, cache_directory
from slacktide.lab.manifests import apply

KUBE, SLACKTIDE = "kube-scheduler", "slacktide"
FOCUS, SKIPPED = r"\[sig-scheduling\].*", r"\[Feature:OffByDefault\]"
TESTS = "k8s.io/kubernetes/test/e2e"
EVERYBODY = {
    "apiVersion": "slacktide.io/v1beta1",
    "kind": "ServiceClass",
    "metadata": {"name": "everybody"},
    "spec": {"slo": 0.9, "rank": 1, "default": True, "namespaces": ["*"]},
}
SHOWN = 300


def built() -> Path:
    """e2e.test, found in the lab's cache or built."""
    source = SOURCES["kube-apiserver"]
    program = cache_directory() / f"{source.module}-{source.version}" / "e2e.test"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        sys.exit("e2e.test has to be built, and there is no 'go' on the PATH: install Go 1.26 or later")
    print(f"building e2e.test {source.version} with Go (some minutes, once)", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(MODULES / source.module / file, folder / file)
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=mod"}

        def run(*command: str) -> str:
            done = subprocess.run(
                [go, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                sys.exit(f"go {' '.join(command)}:\n{done.stderr[-2000:]}")
            return done.stdout

        # What the test's own main program imports has to be among our module's dependencies.
        imports = run("list", "-f", '{{join .TestImports "\\n"}}', TESTS).split()
        lines = "\n".join(f'\t_ "{one}"' for one in [TESTS, *imports] if "." in one.partition("/")[0])
        (folder / "imports.go").write_text(f"package imports\n\nimport (\n{lines}\n)\n")
        run("mod", "tidy", "-e")
        linker = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in source.values)])
        run("test", "-c", "-vet=off", "-trimpath", "-ldflags", linker, "-o", "e2e.test", TESTS)
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder / "e2e.test", program)
    return program


@contextmanager
def lab(directory: Path, scheduler: str, nodes: int, settings: Sequence[str]) -> Iterator[ControlPlane]:
    """A lab on which one of both schedules all pods."""
    plane = ControlPlane.create(directory, Binaries.find([*NEEDED, KUBE]), with_kube_scheduler=scheduler == KUBE)
    plane.start(guarded=True)
    try:
        for number, name in enumerate(plane.create_nodes(nodes)):
            addresses = [{"type": "InternalIP", "address": f"10.0.9.{number + 1}"}]
            plane.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"addresses": addresses}})
        if scheduler == SLACKTIDE:
            plane.install()
            apply(plane.api, EVERYBODY)
            words = ["--set", "kube.scheduler_name=default-scheduler", "--set", "kube.all_nodes=true"]
            words += [word for one in settings for word in ("--set", one)]
            command = [sys.executable, "-m", "slacktide", "run", "--kubeconfig", str(plane.kubeconfig), *words]
            plane.add(SLACKTIDE, command)
        yield plane
    finally:
        plane.stop()


def played(program: Path, scheduler: str, folder: Path, chosen: argparse.Namespace) -> dict[str, str]:
    """What came of each test: empty where it passed, else the beginning of what it says."""
    focus = FOCUS + chosen.focus
    with lab(folder / scheduler, scheduler, chosen.nodes, chosen.set) as plane:
        command = [
            str(program), f"--kubeconfig={plane.kubeconfig}", "--provider=skeleton", f"--ginkgo.focus={focus}",
            f"--ginkgo.skip={SKIPPED}", "--ginkgo.no-color", "--minStartupPods=0", f"--report-dir={folder / scheduler}",
            "--ginkgo.timeout=3h", "--ginkgo.randomize-all=false", "--ginkgo.seed=1",
        ]  # fmt: skip
        with (folder / f"{scheduler}.log").open("wb") as log:
            subprocess.run(command, stdout=log, stderr=log, check=False)
    return read(folder / scheduler / "junit_01.xml")


def read(report: Path) -> dict[str, str]:
    """What a report says of each test that was run."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "").removeprefix("[It] ")
        if case.find("skipped") is not None or "[sig-scheduling]" not in name:
            continue
        failure = case.find("failure")
        text = "" if failure is None else f"{failure.get('message', '')} {failure.text or ''}"
        found[name] = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())[:SHOWN] or ("failed" if text else "")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", choices=[KUBE, SLACKTIDE], action="append", help="both unless given")
    parser.add_argument("--focus", default="", help="only tests whose name matches this, a regular expression")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="of slacktide")
    parser.add_argument("--keep", type=Path, help="a new folder for logs and reports")
    chosen = parser.parse_args()
    program = built()
    results: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        directory = chosen.keep or Path(folder)
        directory.mkdir(parents=True, exist_ok=True)
        for scheduler in chosen.scheduler or [KUBE, SLACKTIDE]:
            began = time.time()
            results[scheduler] = played(program, scheduler, directory, chosen)
            passed = sum(not text for text in results[scheduler].values())
            minutes = (time.time() - began) / 60
            print(f"{scheduler}: {passed} of {len(results[scheduler])} in {minutes:.0f} minutes", flush=True)
    print(table(results))
    return 0


def table(results: dict[str, dict[str, str]]) -> str:
    """A row for each test, a column for each scheduler; below it why only one of them failed."""
    lines = [f"| test | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    reasons: list[str] = []
    for name in sorted(set().union(*results.values())):
        texts = [one.get(name) for one in results.values()]
        said = ["not run" if text is None else "failed" if text else "passed" for text in texts]
        lines.append(f"| {name.removeprefix('[sig-scheduling] ')} | {' | '.join(said)} |")
        if len(set(said)) > 1 or len(results) == 1:
            reasons += [f"{name}: {text}" for text in texts if text]
    return "\n".join([*lines, "", *reasons])


if __name__ == "__main__":
    sys.exit(main())
