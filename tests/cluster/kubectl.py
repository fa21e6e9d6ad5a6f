"""The real kubectl, as a user runs it, for live tests."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]


class Answer(NamedTuple):
    """What kubectl said: its exit code and both outputs."""

    code: int
    out: str
    error: str


def cells(table: str) -> dict[str, list[str]]:
    """The columns of what ``kubectl get`` printed, by their heading; a cell may be empty."""
    heading, *rows = table.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+( \S+)*", heading)]
    ends = [*starts[1:], None]
    return {heading[a:b].strip(): [row[a:b].strip() for row in rows] for a, b in zip(starts, ends, strict=True)}


class Kubectl:
    """Runs kubectl against one cluster."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self.program, self.kubeconfig = program, kubeconfig

    def __call__(self, *words: str, stdin: Json | list[Json] | None = None) -> Answer:
        document = {"apiVersion": "v1", "kind": "List", "items": stdin} if isinstance(stdin, list) else stdin
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *words]
        text = None if document is None else json.dumps(document)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, stdin: Json | list[Json] | None = None) -> str:
        """The output of a command that must succeed."""
        answer = self(*words, stdin=stdin)
        assert answer.code == 0, f"kubectl {' '.join(words)}: {answer.error}"
        return answer.out

    def try_apply(self, item: Json) -> Answer:
        """Asks the API server, admission included, without changing anything."""
        return self("apply", "--dry-run=server", "-f", "-", stdin=item)

    def refuses(self, item: Json) -> bool:
        """Whether the API server refuses an object now."""
        return self.try_apply(item).code != 0

    def json(self, *words: str, stdin: Json | list[Json] | None = None) -> Json:
        """The object that a command prints."""
        return dict(json.loads(self.ok(*words, "-o", "json", stdin=stdin)))
