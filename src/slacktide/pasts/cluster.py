"""A live cluster: what there is now, by lists of the API server. Nothing is written there, and no Secret is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slacktide.dryrun.dry_run import ReadOnly
from slacktide.errors import InputError, Problem
from slacktide.kube.client.credentials import load_access
from slacktide.kube.client.http import FORBIDDEN, NOT_FOUND, ApiError, Connection
from slacktide.kube.client.kinds import Malformed
from slacktide.kube.client.reflector import pages
from slacktide.kube.clock import wall_seconds
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.resources.objects import POD
from slacktide.pasts.kinds import NEEDED, TOLD
from slacktide.pasts.object_files import Found, changes_of
from slacktide.pasts.story import Findings, Story

RIGHTS = ", ".join(one.plural for one in TOLD)
"""What is listed."""
ALLOWED = "The ClusterRole in docs/how-to-past.md"


async def read(
    kubeconfig: Path | None = None, context: str | None = None, say: Callable[[str], None] = lambda _: None
) -> Story:
    """:func:`story` of the cluster that a kubeconfig names. Raises what :func:`.load_access` raises, too."""
    async with ReadOnly(await load_access(kubeconfig, context)) as connection:
        say(f"{connection.server}: lists {RIGHTS}; writes nothing. {ALLOWED} may list all of them")
        return await story(connection, say)


async def story(connection: Connection, say: Callable[[str], None] = lambda _: None) -> Story:
    """What the cluster is now, one page of each list at a time.

    Kinds that the API server does not have are left out; those that it does not let us list are said, too. Raises
    :class:`InputError` where these are nodes or pods, and what the connection raises.
    """
    findings, found, hidden = Findings(), list[Found](), list[str]()
    lighten = Lightening()
    for kind in TOLD:
        say(f"listing {kind.plural}")
        try:
            async for page in pages(connection, kind.path()):
                if page.begins:
                    found = [one for one in found if one[0] is not kind]
                for item in page.items:
                    one = kind.decode(item)
                    if isinstance(one, Malformed):
                        findings.note(f"left out: {kind.kind} {one.namespace}/{one.name}: {one.problem}")
                        findings.counts["objects that cannot be read"] += 1
                    else:
                        found.append((kind, lighten(one) if kind is POD else one))
        except ApiError as error:
            if error.status not in (FORBIDDEN, NOT_FOUND):
                raise
            if kind in NEEDED:
                raise InputError([
                    Problem(connection.server, 0, kind.plural, str(error.status),
                            f"the right to list {kind.plural}. {ALLOWED} gives it")
                ]) from None  # fmt: skip
            if error.status == FORBIDDEN:
                hidden.append(kind.plural)
    if hidden:
        findings.note(f"what these decide, as they may not be listed: {', '.join(hidden)}. {ALLOWED} allows it")
    for kind, _ in found:
        findings.counts[kind.kind] += 1
    now = wall_seconds()
    return Story(connection.server, now, changes_of(found, now), iter(()), findings, snapshot=True)
