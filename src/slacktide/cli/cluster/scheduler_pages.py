"""What a running scheduler is asked over HTTP, with a token or client certificate where it wants to know who asks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import FILE, in_a_cluster

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping

    import aiohttp

ANSWER_SECONDS = 15.0
"""The scheduler asks the API server in turn, which may take 10 s."""
GOODBYE_SECONDS, GOODBYE_TURNS = 1.0, 200
"""The longest that is waited until a connection is closed."""


@dataclass(frozen=True)
class Trust:
    """Which token or client certificate is shown, and how the scheduler that is to see it is known."""

    token_file: Path | None = None
    ca_file: Path | None = None
    fingerprint: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None

    def check(self) -> ssl.SSLContext | aiohttp.Fingerprint:
        """How the certificate is verified. Raises :class:`.ConfigError` where nothing tells: it learns nothing then."""
        import aiohttp

        from slacktide.errors import ConfigError
        from slacktide.kube.client.credentials import tls_context

        if self.fingerprint:
            try:
                return aiohttp.Fingerprint(bytes.fromhex(self.fingerprint.replace(":", "")))
            except ValueError:
                raise ConfigError(
                    f"--fingerprint: found {self.fingerprint!r}, expected the 64 hexadecimal digits of a SHA-256"
                ) from None
        if self.ca_file is None:
            raise ConfigError("it gets a token only if its certificate is known: give --fingerprint or --ca-file")
        try:
            return tls_context(self.ca_file.read_bytes(), f"--ca-file: {self.ca_file}")
        except OSError as error:
            raise ConfigError(f"--ca-file: {self.ca_file}: {error.strerror}") from None

    async def shown(self) -> Shown:
        """What the scheduler is shown, and how it is known. Raises :class:`.ConfigError` where there is nothing."""
        import ssl

        from slacktide.errors import ConfigError
        from slacktide.kube.client.credentials import TokenFile, load_access, load_client_certificate

        known = self.check()
        if self.token_file is not None:
            return Shown({"Authorization": TokenFile(self.token_file).header() or ""}, known, known)
        access = await load_access(self.kubeconfig, self.context)
        header = access.credentials.header()
        if header is not None and header.startswith("Bearer "):
            return Shown({"Authorization": header}, known, known)
        if access.pair is None:
            raise ConfigError(
                "the kubeconfig's user has neither token nor client certificate, and the scheduler takes nothing else: "
                "give --token-file, such as a file with what 'kubectl create token ACCOUNT' prints"
            )
        if isinstance(known, ssl.SSLContext):
            context = known
        else:  # the fingerprint says who it is
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        load_client_certificate(context, *access.pair, "the kubeconfig's user")
        return Shown({}, context, known)


@dataclass(frozen=True)
class Shown:
    """What a scheduler is shown: ``headers``, and the client certificate of ``tls``; ``known``: how it is known."""

    headers: Mapping[str, str]
    tls: ssl.SSLContext | aiohttp.Fingerprint
    known: ssl.SSLContext | aiohttp.Fingerprint

    @property
    def options(self) -> dict[str, Any]:
        """Of a request. The connector has ``known``: a request has either a certificate or a fingerprint."""
        return {"headers": self.headers, "ssl": self.tls}


def asking_a_scheduler(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options that say who asks and how the scheduler is known; it gets them as ``trust``."""

    @in_a_cluster()
    @click.option(
        "--token-file",
        type=FILE,
        help="The token that the scheduler is shown.  [default: the kubeconfig's, or its certificate]",
    )
    @click.option("--ca-file", type=FILE, help="By which the scheduler's certificate is verified, PEM.")
    @click.option("--fingerprint", metavar="HEX", help="SHA-256 of its certificate instead, as its log has it.")
    @wraps(command)
    def with_trust(
        kubeconfig: Path | None, context: str | None, token_file: Path | None, ca_file: Path | None,
        fingerprint: str | None, **others: Any,
    ) -> None:  # fmt: skip
        command(trust=Trust(token_file, ca_file, fingerprint, kubeconfig, context), **others)

    return with_trust


async def ask(address: str, path: str, query: Mapping[str, str], trust: Trust) -> tuple[dict[str, Any] | None, str]:
    """The answer of a scheduler at ``[http://]HOST:PORT``, or nothing and why it says nothing."""
    import aiohttp

    from slacktide.errors import ConfigError

    base = address if "://" in address else f"https://{address}"
    try:
        shown = await trust.shown() if base.startswith("https://") else None
        status, answer = await _get(f"{base}{path}", query, shown)
        return (answer, "") if status == 200 else (None, str(answer.get("error", f"status {status}")))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, AttributeError, ConfigError) as error:
        return None, str(error) or type(error).__name__


async def _get(url: str, query: Mapping[str, str], shown: Shown | None) -> tuple[int, Any]:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    options: dict[str, Any] = {"params": query, "allow_redirects": False} | ({} if shown is None else shown.options)
    async with asking(timeout, shown) as session, session.get(url, **options) as response:
        return response.status, await response.json(content_type=None)


@asynccontextmanager
async def asking(timeout: aiohttp.ClientTimeout, shown: Shown | None) -> AsyncIterator[aiohttp.ClientSession]:
    """A session whose connections are closed when it ends: TLS ends in turns of the event loop, also where the
    certificate was a wrong one. It shows what :attr:`Shown.options` say, to whoever is known."""
    import asyncio
    import socket

    import aiohttp

    sockets: list[socket.socket] = []

    def new_socket(where: aiohttp.AddrInfoType) -> socket.socket:
        sockets.append(socket.socket(*where[:3]))
        return sockets[-1]

    try:
        connector = aiohttp.TCPConnector(socket_factory=new_socket, ssl=True if shown is None else shown.known)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield session
    finally:
        for _ in range(GOODBYE_TURNS):
            if all(one.fileno() < 0 for one in sockets):
                break
            await asyncio.sleep(GOODBYE_SECONDS / GOODBYE_TURNS)
