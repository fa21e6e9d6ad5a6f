"""The real kubectl, as a user runs it, for live tests."""

from __future__ import annotations

import json
import re
import subprocess
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from slacktide.lab import Api, ApiError

Json = dict[str, Any]
APPLY = "application/apply-patch+yaml"


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


def plural(kind: str) -> str:
    """As it stands in paths."""
    return {"Availability": "availabilities", "ServiceClass": "serviceclasses"}.get(kind, f"{kind.lower()}s")


class Kubectl:
    """Runs kubectl against one cluster."""

    def __init__(self, program: Path, kubeconfig: Path, api: Api | None = None) -> None:
        """``api``, where it is given, asks in kubectl's place what the API server would say: kubectl begins slowly."""
        self.program, self.kubeconfig, self._api = program, kubeconfig, api

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
        if self._api is None:
            return self("apply", "--dry-run=server", "-f", "-", stdin=item)
        metadata, version = item["metadata"], item["apiVersion"]
        space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        path = f"/{'apis' if '/' in version else 'api'}/{version}{space}/{plural(item['kind'])}"
        query = "dryRun=All&fieldManager=tests&fieldValidation=Strict"
        try:
            self._api.post(f"{path}?{query}", item)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                return Answer(1, "", str(error))
        else:
            return Answer(0, "", "")
        try:  # it is there
            self._api.patch(f"{path}/{metadata['name']}?{query}&force=true", item, APPLY)
        except ApiError as error:
            return Answer(1, "", str(error))
        return Answer(0, "", "")

    def refuses(self, item: Json) -> bool:
        """Whether the API server refuses an object now."""
        return self.try_apply(item).code != 0

    def json(self, *words: str, stdin: Json | list[Json] | None = None) -> Json:
        """The object that a command prints."""
        return dict(json.loads(self.ok(*words, "-o", "json", stdin=stdin)))
