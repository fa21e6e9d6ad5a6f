"""The real Helm, as a user runs it, for live tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from cluster.kubectl import Answer, Json


class Helm:
    """Runs helm against one cluster, with folders of its own."""

    def __init__(self, program: Path, kubeconfig: Path, folder: Path) -> None:
        self.program, self.kubeconfig, self.folder = program, kubeconfig, folder
        folder.mkdir()
        own = {f"HELM_{what}_HOME": str(folder / what.lower()) for what in ("CACHE", "CONFIG", "DATA")}
        self._environment = os.environ | own

    def __call__(self, *words: str, values: Json | None = None) -> Answer:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *words]
        if values is not None:
            file = self.folder / "values.json"
            file.write_text(json.dumps(values))
            command.append(f"--values={file}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=self._environment)
        return Answer(done.returncode, done.stdout, done.stderr)

    @property
    def forces(self) -> tuple[str, ...]:
        """What makes it take over fields of others; Helm 3 does so without being told."""
        is_3 = self("version", "--template={{.Version}}").out.startswith("v3.")
        return () if is_3 else ("--force-conflicts",)

    def ok(self, *words: str, values: Json | None = None) -> str:
        """The output of a command that must succeed."""
        answer = self(*words, values=values)
        assert answer.code == 0, f"helm {' '.join(words)}: {answer.error}"
        return answer.out
