"""Client certificates by the authorities that a cluster names, over real TLS; the API server's part is tested live."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from cryptography.x509.oid import ExtendedKeyUsageOID
from multidict import CIMultiDict, CIMultiDictProxy

from slacktide.cli.process import run_fast
from slacktide.kube.client.http import Connection
from slacktide.kube.observe import certificates
from slacktide.kube.observe.access import User
from slacktide.kube.observe.certificates import (
    Authorities,
    Certificate,
    ClusterAuthorities,
    authorities_of,
    chain_of,
    read,
)
from slacktide.kube.observe.http_site import Site
from support.authority import Authority

Pair = tuple[bytes, bytes]
HEADERS = {
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-allowed-names": '["front"]',
}
NO_HEADERS = CIMultiDictProxy(CIMultiDict[str]())


@pytest.fixture(scope="module")
def clients() -> Authority:
    return Authority("clients")


@pytest.fixture(scope="module")
def fronts() -> Authority:
    return Authority("fronts")


def named(clients: Authority, fronts: Authority | None = None) -> Authorities:
    data = {"client-ca-file": clients.pem} | HEADERS
    return authorities_of(data | ({} if fronts is None else {"requestheader-client-ca-file": fronts.pem}))


class Desk:
    """A server that says whom each request's certificate names, by authorities that change."""

    def __init__(self, authorities: Authorities) -> None:
        self.certificate = Certificate(None, None, "127.0.0.1")
        self.take(authorities)

    def take(self, authorities: Authorities) -> None:
        self.authorities = authorities
        self.certificate.trust(authorities.pem)

    async def whose(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        chain = chain_of(request.transport.get_extra_info("ssl_object"))
        found = self.authorities.user_of(chain, request.headers, datetime.datetime.now(datetime.UTC))
        said = {} if found is None else {"name": found.username, "groups": found.groups, "extra": found.extra}
        return web.json_response(said)

    def site(self) -> Site:
        return Site("test", "127.0.0.1:0", {"/": self.whose}, self.certificate.context)


async def asked(site: Site, pair: Pair | None, folder: Path, **headers: str) -> dict[str, object] | str:
    """What the desk says to a client with this certificate; a word where there is no answer."""
    context = ssl._create_unverified_context()
    if pair is not None:
        (folder / "pair").write_bytes(b"\n".join(pair))
        context.load_cert_chain(folder / "pair")
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{site.port}/", ssl=context, headers=headers) as answer,
        ):
            found: dict[str, object] = await answer.json()
            return found
    except aiohttp.ClientError:
        return "refused"


def test_who_shows_a_certificate_of_the_clusters_is_who_it_names(clients: Authority, tmp_path: Path) -> None:
    async def main() -> None:
        desk = Desk(named(clients))
        async with desk.site() as site:
            assert await asked(site, None, tmp_path) == {}
            found = await asked(site, clients.client("ann", "ops", "dev"), tmp_path)
            assert isinstance(found, dict)
            assert (found["name"], found["groups"]) == ("ann", ["ops", "dev", "system:authenticated"])
            assert str(found["extra"]).startswith("{'authentication.kubernetes.io/credential-id': ['X509SHA256=")
            assert await asked(site, clients.client(""), tmp_path) == {}, "it names nobody"
            for wrong in (
                Authority("clients").client("ann"),  # of the same name, with another key
                clients.client("ann", ended=True),
                clients.client("ann", purpose=ExtendedKeyUsageOID.SERVER_AUTH),
            ):
                assert await asked(site, wrong, tmp_path) == "refused"

    run_fast(main())  # the scheduler's event loop; and the other one, where there is no uvloop
    asyncio.run(main())


def test_an_authority_between_may_be_shown_or_named(clients: Authority, tmp_path: Path) -> None:
    between = Authority("between", clients)
    pair = between.client("ann")

    async def main() -> None:
        desk = Desk(named(clients))
        async with desk.site() as site:
            found = await asked(site, pair, tmp_path)
            assert isinstance(found, dict)
            assert found["name"] == "ann"
            desk.take(named(between))  # which is signed by one that is not named
            found = await asked(site, pair, tmp_path)
            assert isinstance(found, dict)
            assert found["name"] == "ann"
            assert await asked(site, clients.client("bob"), tmp_path) == "refused"

    asyncio.run(main())


def test_a_proxy_in_front_speaks_for_others_and_nobody_else_does(
    clients: Authority, fronts: Authority, tmp_path: Path
) -> None:
    spoken = {"X-Remote-User": "ann", "X-Remote-Group": "ops", "X-Remote-Extra-Scopes%2fAll": "1"}

    async def main() -> None:
        desk = Desk(named(clients, fronts))
        async with desk.site() as site:
            found = await asked(site, fronts.client("front"), tmp_path, **spoken)
            assert found == {"name": "ann", "groups": ["ops", "system:authenticated"], "extra": {"scopes/all": ["1"]}}
            assert await asked(site, fronts.client("front"), tmp_path) == {}, "it speaks for nobody"
            assert await asked(site, fronts.client("back"), tmp_path, **spoken) == {}, "it is not one of those named"
            assert await asked(site, None, tmp_path, **spoken) == {}, "headers alone say nothing"
            found = await asked(site, clients.client("front"), tmp_path, **spoken)
            assert isinstance(found, dict)
            assert found["name"] == "front", "a client's certificate is no proxy's"

    asyncio.run(main())


@pytest.mark.parametrize("said", [("system:anonymous", "ops"), ("ann", "system:unauthenticated")])
def test_whom_a_proxy_does_not_know_itself_is_nobody(
    clients: Authority, fronts: Authority, tmp_path: Path, said: tuple[str, str]
) -> None:
    """Not one of all who are authenticated, and not the proxy either where it has a client's certificate."""

    async def main() -> None:
        headers = dict(zip(("X-Remote-User", "X-Remote-Group"), said, strict=True))
        for signer in (fronts, clients):
            desk = Desk(named(clients, signer))
            async with desk.site() as site:
                assert await asked(site, signer.client("front"), tmp_path, **headers) == {}

    asyncio.run(main())


def test_authorities_that_are_taken_away_count_no_more_on_connections_that_stand(
    clients: Authority, tmp_path: Path
) -> None:
    pair = clients.client("ann")
    (tmp_path / "pair").write_bytes(b"\n".join(pair))
    context = ssl._create_unverified_context()
    context.load_cert_chain(tmp_path / "pair")

    async def main() -> None:
        desk = Desk(named(clients))
        async with desk.site() as site, aiohttp.ClientSession() as session:

            async def name() -> object:
                async with session.get(f"https://127.0.0.1:{site.port}/", ssl=context) as answer:
                    return (await answer.json()).get("name")

            assert await name() == "ann"
            desk.take(named(Authority("others")))
            assert await name() is None, "the same connection, and its certificate is not of the cluster's any more"
            desk.take(authorities_of({}))
            assert await asked(site, pair, tmp_path) == {}, "nobody is asked for one"

    asyncio.run(main())


def test_a_certificate_ends_while_its_connection_stands(clients: Authority) -> None:
    pem = clients.client("ann")[0].decode()
    chain = (ssl.PEM_cert_to_DER_cert(pem), clients.der)
    shown, authorities = read(chain), named(clients)
    assert shown is not None
    instant = datetime.timedelta(seconds=1)
    found = authorities.user_of(chain, NO_HEADERS, shown.ends)
    assert isinstance(found, User)
    assert authorities.user_of(chain, NO_HEADERS, shown.ends + instant) is None
    assert authorities.user_of(chain, NO_HEADERS, shown.begins - instant) is None


def test_what_stands_between_certificates_does_not_keep_them_from_being_taken(
    clients: Authority, fronts: Authority, tmp_path: Path
) -> None:
    data = {
        "client-ca-file": f"# F\u0151tan\u00fas\u00edtv\u00e1ny\n{clients.pem}",
        "requestheader-client-ca-file": f"subject=CN = \u8a8d\u8a3c\u5c40\n{fronts.pem}# ends\n",
    }

    async def main() -> None:
        desk = Desk(authorities_of(data | HEADERS))
        async with desk.site() as site:
            found = await asked(site, clients.client("ann"), tmp_path)
            assert isinstance(found, dict)
            assert found["name"] == "ann"

    asyncio.run(main())


def test_a_certificate_that_cannot_take_authorities_keeps_those_of_before(clients: Authority) -> None:
    certificate = Certificate(None, None, "127.0.0.1")
    certificate.trust(clients.pem)
    for wrong in ("not PEM", f"\u0151\n{clients.pem}"):
        with pytest.raises((ssl.SSLError, TypeError)):
            certificate.trust(wrong)
        assert certificate._authorities == clients.pem
        assert certificate._read().verify_mode == ssl.CERT_OPTIONAL


def test_whatever_goes_wrong_the_authorities_are_read_again(
    clients: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Answering:
        """A connection that answers."""

        async def get(self, _path: str, **_: object) -> bytes:
            return json.dumps({"data": {"client-ca-file": clients.pem}}).encode()

    async def main() -> None:
        taken = asyncio.Event()
        refusals = [TypeError("nobody thought of this")]

        def renewed(_pem: str) -> None:
            if refusals:
                raise refusals.pop()
            taken.set()

        reader = ClusterAuthorities(cast("Connection", Answering()), renewed)
        task = asyncio.create_task(reader.run())
        async with asyncio.timeout(60):
            await taken.wait()
        task.cancel()

    monkeypatch.setattr(certificates, "AGAIN_SECONDS", 0.01)
    asyncio.run(main())
    assert "nobody thought of this" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("client-ca-file", "not PEM"),
        ("requestheader-client-ca-file", "-----BEGIN CERTIFICATE-----"),
        ("requestheader-allowed-names", "front"),
        ("requestheader-username-headers", json.dumps({"a": 1})),
    ],
)
def test_what_cannot_be_read_is_named(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^{key}: expected "):
        authorities_of({key: value})


def test_without_names_every_certificate_of_the_proxies_authority_is_a_proxys(
    clients: Authority, fronts: Authority
) -> None:
    data = {"requestheader-client-ca-file": fronts.pem} | HEADERS | {"requestheader-allowed-names": "[]"}
    chain = (ssl.PEM_cert_to_DER_cert(fronts.client("any")[0].decode()), fronts.der)
    headers = CIMultiDictProxy(CIMultiDict({"X-Remote-User": "ann", "X-Remote-Uid": "7"}))
    now = datetime.datetime.now(datetime.UTC)
    found = authorities_of(data).user_of(chain, headers, now)
    assert found is not None
    assert (found.username, found.uid) == ("ann", "7")
    assert named(clients).user_of(chain, headers, now) is None
