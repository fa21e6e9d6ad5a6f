"""Credentials from a program (client.authentication.k8s.io), as cloud providers' kubeconfigs name one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slacktide.errors import ConfigError
from slacktide.kube.client.timestamps import unix_seconds
from slacktide.kube.clock import monotonic_seconds, wall_seconds

PLUGIN_SECONDS = 60.0
RENEW_BEFORE_SECONDS = 60.0
"""Credentials are renewed this long before they expire, or at half of their life where that is shorter."""
SHOWN_CHARACTERS = 200


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    status: _Status | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Obtained:
    """What a plugin gave: a token or a certificate with its key (PEM), good until a monotonic time."""

    token: str
    certificate: str
    key: str
    valid_until: float


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials; it runs without a terminal."""

    command: str
    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    api_version: str
    cluster: Mapping[str, Any] | None = field(repr=False)
    hint: str
    source: str

    async def run(self) -> Obtained:
        """Runs the program. Raises ``ConfigError`` where it is missing, fails, or prints no credentials."""
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = dict(self.cluster)
        request = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        environment = os.environ | dict(self.environment)
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(request).decode()
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
            )
        except OSError as error:
            hint = f" {self.hint}" if self.hint else ""
            raise ConfigError(f"{self.source}: exec {self.command}: {error.strerror}.{hint}") from None
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                output, complaint = await process.communicate()
        except TimeoutError:
            raise ConfigError(f"{self.source}: exec {self.command}: no answer within {PLUGIN_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            said = f": {_harmless(complaint)}" if complaint.strip() else ""
            raise ConfigError(f"{self.source}: exec {self.command} ended with {process.returncode}{said}")
        return self._obtained(output)

    def _obtained(self, output: bytes) -> Obtained:
        expected = f"expected an ExecCredential of {self.api_version} with a token or a certificate and key"
        try:
            found = msgspec.json.decode(output, type=_ExecCredential)
            expiry = found.status.expiration_timestamp if found.status else ""
            expires = unix_seconds(expiry) if expiry else float("inf")
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            # The cause is left out: it may show what was printed.
            raise ConfigError(f"{self.source}: exec {self.command}: {expected}") from None
        status = found.status or _Status()
        pair = bool(status.client_certificate_data), bool(status.client_key_data)
        if found.api_version != self.api_version or not (status.token or all(pair)) or any(pair) != all(pair):
            raise ConfigError(f"{self.source}: exec {self.command}: {expected}")
        life = max(expires - wall_seconds(), 0.0)
        return Obtained(
            status.token,
            status.client_certificate_data,
            status.client_key_data,
            monotonic_seconds() + max(life - RENEW_BEFORE_SECONDS, life / 2, 1.0),
        )


def _harmless(complaint: bytes) -> str:
    """The last line of what a program complained about, without anything that could be a token."""
    line = complaint.decode("utf-8", "replace").strip().splitlines()[-1]
    return re.sub(r"[\w\-.~+/=]{32,}", "...", line)[:SHOWN_CHARACTERS]
