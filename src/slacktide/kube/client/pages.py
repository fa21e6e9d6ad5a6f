"""Lists, page by page: of a large cluster all pods together are larger than what this process may have."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from slacktide.kube.client.http import GONE, ApiError, Connection
from slacktide.kube.client.kinds import split_listing

LOG = logging.getLogger(__name__)

PAGE = 500
"""Objects in a page, as with client-go."""
ATTEMPTS = (PAGE, PAGE, 0)
"""Pages of so many objects at each attempt; 0 asks for everything at once."""


class Page(NamedTuple):
    """Some objects of a list, still bytes (of the page's memory, which they keep alive).

    ``begins``: it is the first of the list, and whatever came before it is void. All pages are of one version.
    """

    items: list[msgspec.Raw]
    resource_version: str
    begins: bool


async def pages(
    connection: Connection, path: str, query: Mapping[str, str] | None = None
) -> AsyncGenerator[Page, None]:
    """The list at ``path``, of the newest version. Raises ``ApiError``, ``Unreachable`` and ``msgspec.DecodeError``.

    The API server forgets a version after some minutes; then the token that asks for the next page has expired.
    client-go asks for the whole list at once then. Here it is begun again first, as the whole may be too large for us.
    """
    for limit in ATTEMPTS:
        asked = {**(query or {}), "limit": str(limit)} if limit else dict(query or {})
        try:
            async with aclosing(_attempt(connection, path, asked)) as every:
                async for page in every:
                    yield page
        except _Expired as expired:
            LOG.info("the list of %s starts again: %s", path, expired)
        else:
            return


async def _attempt(connection: Connection, path: str, asked: dict[str, str]) -> AsyncGenerator[Page, None]:
    token = ""
    while True:
        try:
            listing = split_listing(await connection.get_list(path, asked))
        except ApiError as error:
            if error.status == GONE and token:
                raise _Expired(error.message) from None
            raise
        yield Page(listing.items or [], listing.metadata.resource_version, begins=not token)
        token = listing.metadata.continue_
        if not token:
            return
        asked["continue"] = token


class _Expired(Exception):  # noqa: N818  # it never leaves this module
    """The next page of this version cannot be had any more."""
