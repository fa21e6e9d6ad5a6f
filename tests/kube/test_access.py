"""Who may ask over HTTP where the API server does not answer, or too many ask."""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from pathlib import Path

import pytest
from cryptography import x509

from slacktide.errors import ConfigError
from slacktide.kube.client.credentials import Access, Fixed
from slacktide.kube.client.http import Connection
from slacktide.kube.observe.access import ANSWER_SECONDS, MOST_ANSWERS, MOST_WAITING, Remembered, Reviews
from slacktide.kube.observe.certificates import Certificate, self_signed


def test_where_the_api_server_is_down_nobody_is_let_in_and_the_reason_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        port = closed.getsockname()[1]

        async def main() -> None:
            async with Connection(Access(f"http://127.0.0.1:{port}", Fixed(None))) as connection:
                reviews = Reviews(connection)
                for _ in range(3):
                    found = await reviews.verdict("GET", "/metrics", "Bearer t")
                    assert found.status == HTTPStatus.INTERNAL_SERVER_ERROR
                assert caplog.text.count("HTTP requests are refused") == 1
                assert "the API server cannot review the token or the access" in found.reason
                assert (await Reviews(connection).verdict("GET", "/metrics", "")).status == HTTPStatus.UNAUTHORIZED

        asyncio.run(main())


def test_a_flood_of_tokens_does_not_pile_up() -> None:
    async def main() -> list[int]:
        held = asyncio.Event()

        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await held.wait()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, Connection(Access(f"http://127.0.0.1:{port}", Fixed(None))) as connection:
            reviews = Reviews(connection)
            tasks = [asyncio.create_task(reviews.verdict("GET", "/metrics", f"Bearer t{i}")) for i in range(100)]
            await asyncio.sleep(0)
            early = [(await one).status for one in tasks[MOST_WAITING:]]
            held.set()
            late = [(await one).status for one in tasks[:MOST_WAITING]]
        return [*early, *late]

    assert asyncio.run(main()) == [HTTPStatus.TOO_MANY_REQUESTS] * 36 + [HTTPStatus.INTERNAL_SERVER_ERROR] * 64


def test_what_is_remembered_is_bounded_in_time_and_number() -> None:
    now = [0.0]
    answers: Remembered[int, str] = Remembered(ANSWER_SECONDS, lambda: now[0])
    for i in range(MOST_ANSWERS + 1):
        answers.put(i, "yes")
    assert [answers.get(one) for one in (0, 1, MOST_ANSWERS)] == [None, "yes", "yes"]
    now[0] = ANSWER_SECONDS
    assert answers.get(1) is None


def test_settings_of_certificates_are_named_where_they_are_wrong(tmp_path: Path) -> None:
    certificate, key = (tmp_path / name for name in ("tls.crt", "tls.key"))
    with pytest.raises(ConfigError, match=r"kube.tls_key: found nothing beside kube.tls_certificate"):
        Certificate(str(certificate), None, "127.0.0.1")
    with pytest.raises(ConfigError, match=r"kube.tls_certificate: .*tls.crt: No such file"):
        Certificate(str(certificate), str(key), "127.0.0.1")
    for file, content in zip((certificate, key), self_signed("h"), strict=True):
        file.write_bytes(content)
    found = Certificate(str(certificate), str(key), "127.0.0.1")
    assert len(found.fingerprint) == 64
    assert found.ends == x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc.timestamp()
    key.write_bytes(self_signed("h")[1])
    with pytest.raises(ConfigError, match=r"kube.tls_certificate, kube.tls_key"):
        Certificate(str(certificate), str(key), "127.0.0.1")


def test_a_certificate_made_at_start_names_this_machine_and_where_it_listens() -> None:
    certificate = x509.load_pem_x509_certificate(self_signed("10.1.2.3")[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"127.0.0.1", "10.1.2.3"} <= {str(one) for one in names.get_values_for_type(x509.IPAddress)}
    assert {"localhost", socket.gethostname()} <= set(names.get_values_for_type(x509.DNSName))
    assert Certificate(None, None, "10.1.2.3").fingerprint != Certificate(None, None, "10.1.2.3").fingerprint
