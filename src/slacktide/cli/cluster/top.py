"""``slacktide top``: the ledgers of a cluster as a live table."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.cluster import keys
from slacktide.cli.cluster.keys import View
from slacktide.cli.cluster.top_rows import HEAD, ORDERS, STATES, TONES, Line, fitting, named
from slacktide.cli.options import AS_JSON, echo_json, in_a_cluster
from slacktide.cli.shell import completing
from slacktide.cli.text import paint, room, table

if TYPE_CHECKING:
    from rich.live import Live

    from slacktide.config import Accounting
    from slacktide.engine.ledger.checkpoint import Checkpoint
    from slacktide.kube.client.kinds import Identity, Malformed
    from slacktide.kube.resources.objects import Availability, ServiceClass, ServiceClassSpec

REFRESH_SECONDS = 1.0
ENDLESS = 10_000
"""Columns of a table that is not fitted into the terminal."""


@click.command()
@in_a_cluster()
@click.option("-n", "--namespace", shell_complete=completing.namespaces, help="Only this namespace's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces', which is the default.")
@click.option("--once", is_flag=True, help="Print the table once; so is it where the output is no terminal.")
@click.option("--wide", is_flag=True, help="All columns, also where the terminal is too narrow for them.")
@AS_JSON
@click.option("--sort", "order", type=click.Choice(list(ORDERS)), default="slack", show_default=True)
@click.option("--scheduler-name", default="slacktide", show_default=True, help="The scheduler's kube.scheduler_name.")
def top(
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    all_namespaces: bool,
    once: bool,
    wide: bool,
    as_json: bool,
    order: str,
    scheduler_name: str,
) -> None:
    """Shows what each workload was promised and has got, live.

    A ledger is written when something happens to its workload. In between its numbers follow from the time that has
    passed, and are carried on here: exactly, unless pods are just being bound or are leaving.

    A line above the table names each class that is overloaded: somebody of it waits whose promise cannot be kept any
    more. The columns LOST and STARVING say who. Where the plan gives promises up, STATE says so of whom, and a line of
    each class how many capacity carries. Other lines name pods that wait without a class that they may use, and ledgers
    of a later release.

    On a terminal q ends it, s sorts by something else, and w shows all columns, or those that fit.
    """
    if all_namespaces and namespace:
        raise click.UsageError("-A: shows all namespaces, and -n one")
    import asyncio

    with contextlib.suppress(KeyboardInterrupt):
        once = once or as_json or not sys.stdout.isatty()
        wanted = Wanted(namespace or "", scheduler_name, order, once, wide, as_json)
        asyncio.run(_top(kubeconfig, context, wanted))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be shown: a namespace (empty: all), whose pods, in which order; ``once``: and no more."""

    namespace: str
    scheduler: str
    order: str
    once: bool
    wide: bool = False
    as_json: bool = False


class Ledgers:
    """Handler of the watch of ledgers."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[Availability, Checkpoint | None]] = {}
        self.newer: set[tuple[str, str]] = set()
        """Ledgers of a later release."""
        self.classes: dict[str, ServiceClassSpec] = {}

    def replaced(self, objects: Any) -> None:
        for one in objects:
            self.changed(one)

    def changed(self, found: Availability) -> None:
        from slacktide.engine.ledger.checkpoint import NewerLedger, read
        from slacktide.errors import StateError

        key, books = (found.metadata.namespace, found.metadata.name), None
        self.newer.discard(key)
        try:
            books = read(found.status.accumulators) if found.status.accumulators else None
        except NewerLedger:
            self.newer.add(key)
        except StateError:
            pass  # the numbers beside are shown as they are
        self.found[key] = found, books

    def deleted(self, identity: Identity, last: Availability | None) -> None:  # noqa: ARG002
        self._forget(identity.key)

    def malformed(self, problem: Malformed) -> None:
        self._forget((problem.namespace, problem.name))

    def _forget(self, key: tuple[str, str]) -> None:
        self.found.pop(key, None)
        self.newer.discard(key)

    def of_a_later_release(self) -> list[str]:
        """A sentence about ledgers that cannot be carried on."""
        if not self.newer:
            return []
        many = "ledger is" if len(self.newer) == 1 else "ledgers are"
        names = named(sorted("/".join(key) for key in self.newer))
        return [f"{len(self.newer)} {many} of a later release, and shown as written: {names}"]

    def accounting(self) -> Accounting:
        """The scheduler's, as all ledgers together give it away."""
        from slacktide.engine.ledger.extrapolate import ORDER, accountings

        left = ORDER
        for found, books in self.found.values():
            if books is not None and found.status.delivered is not None:
                possible = accountings(books, found.status.delivered)
                left = tuple(one for one in left if one in possible) or left
        return left[0]

    def lines(self, now: float) -> list[Line]:
        """All ledgers of workloads that are there at ``now``, seconds since 1970."""
        accounting = self.accounting()
        there = [one for one in self.found.values() if one[0].status.deleted_at is None]
        return [self._line(found, books, accounting, now) for found, books in there]

    def _line(self, found: Availability, books: Checkpoint | None, accounting: Accounting, now: float) -> Line:
        from slacktide.engine.ledger.extrapolate import carry_on
        from slacktide.model.service_class import class_name

        status = found.status
        promised, delivered = status.promised or 0.0, status.delivered or 0.0
        slack, state, lost = status.slack_seconds, status.state, status.lost_seconds
        if books is not None:
            known = self.classes.get(class_name(status.class_))
            margin = 0.0 if known is None else known.margin_seconds
            carried = carry_on(books, accounting, promised, slack, now, margin)
            delivered, slack = carried.delivered, carried.left
            if (
                state != "Unknown"
                and promised
                and not (known is None and state == "AtRisk" and carried.state == "Kept")
            ):
                state = carried.state  # but where the margin is not known, a risk stays as written
        return Line(
            found.metadata.namespace, found.metadata.name, status.class_, promised, delivered,
            float("inf") if slack is None else slack, state, status.running, status.waiting, status.preemptions,
            status.lost, status.starving, (lost.cluster, lost.workload, lost.operator),
            None if status.given_up is None else status.given_up.since or 0.0,
        )  # fmt: skip

    def given_up(self) -> list[str]:
        """A sentence about each class of which the plan gives promises up, as its latest ledger has it."""
        from slacktide.engine.core.plans import Carried
        from slacktide.engine.explain.giving_up import why
        from slacktide.model.service_class import class_name

        by_class: dict[str, list[Availability]] = {}
        for found, _ in self.found.values():
            if found.status.given_up is not None and found.status.deleted_at is None:
                by_class.setdefault(class_name(found.status.class_), []).append(found)
        said = []
        for name, those in sorted(by_class.items()):
            latest = max(those, key=lambda one: one.status.at or 0.0).status.given_up
            assert latest is not None  # noqa: S101  # asked before
            whom = named(sorted(f"{one.metadata.namespace}/{one.metadata.name}" for one in those))
            said.append(f"{why(name, Carried(latest.promises, latest.carried))}; given up: {whom}")
        return said

    def overloaded(self, lines: list[Line]) -> list[str]:
        """A sentence about each class that is overloaded, the most important first."""
        from slacktide.model.service_class import class_name

        counts: dict[str, Counter[str]] = {}
        for one in lines:
            more = {"waiting": one.waiting, "lost": one.lost, "starving": one.starving}
            counts.setdefault(class_name(one.service), Counter()).update(more)
        ranks = {name: known.rank for name, known in self.classes.items()}
        ordered = sorted(counts, key=lambda name: (ranks.get(name, 0), name))
        late = [name for name in ordered if counts[name]["lost"] or counts[name]["starving"]]
        said = []
        for name in ordered:
            equals = [other for other in late if name in ranks and ranks.get(other) == ranks[name]]
            if name in late:
                said.append(f"{name} is overloaded: {_late(counts[name])}")
            elif equals:  # triage is by rank
                said.append(f"{name} is overloaded: it has the rank of {', '.join(equals)}")
        return said


def _late(counts: Counter[str]) -> str:
    """``3 of 12 waiting instances are lost, 2 starve``."""
    lost, starving = counts["lost"], counts["starving"]
    said = [f"{lost} {'is' if lost == 1 else 'are'} lost"] if lost else []
    said += [f"{starving} {'starves' if starving == 1 else 'starve'}"] if starving else []
    number, rest = said[0].split(" ", 1)
    return ", ".join([f"{number} of {counts['waiting']} waiting instances {rest}", *said[1:]])


class Classes:
    """Handler of the watch of classes."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._classes = ledgers.classes

    def replaced(self, objects: Any) -> None:
        for one in objects:
            self.changed(one)

    def changed(self, found: ServiceClass) -> None:
        self._classes[found.metadata.name] = found.spec

    def deleted(self, identity: Identity, last: ServiceClass | None) -> None:  # noqa: ARG002
        self._classes.pop(identity.name, None)

    def malformed(self, problem: Malformed) -> None: ...


async def _top(kubeconfig: Path | None, context: str | None, wanted: Wanted) -> None:
    import asyncio

    from slacktide.cli.cluster.without_class import PodsWithoutClass
    from slacktide.kube.client.http import connect
    from slacktide.kube.client.reflector import Reflector
    from slacktide.kube.mirror.watches import installed
    from slacktide.kube.resources.objects import AVAILABILITY, SERVICE_CLASS

    ledgers, others = Ledgers(), PodsWithoutClass()
    async with await connect(kubeconfig, context=context) as connection:
        path = AVAILABILITY.path(wanted.namespace)
        await installed(connection)
        await connection.get(path, query={"limit": "1"})  # what is wrong with the connection is said at once
        watches: list[Reflector[Any]] = [
            Reflector(connection, SERVICE_CLASS, Classes(ledgers)),
            Reflector(connection, AVAILABILITY, ledgers, path=path),
            *await others.watches(connection, wanted.namespace, wanted.scheduler),
        ]
        tasks = [asyncio.ensure_future(one.run()) for one in watches]
        try:
            for one in watches:
                async with asyncio.timeout(30.0):
                    await one.synced.wait()

            def picture(order: str = wanted.order) -> tuple[list[Line], list[str]]:
                shown = sorted(ledgers.lines(time.time()) + others.lines(), key=ORDERS[order])
                said = ledgers.overloaded(shown) + ledgers.given_up()
                return shown, said + others.sentences() + ledgers.of_a_later_release()

            if wanted.once:
                shown, said = picture()
                if wanted.as_json:
                    echo_json({"workloads": [asdict(one) for one in shown], "remarks": said})
                else:
                    click.echo(_text(shown, said, len(shown), wide=wanted.wide))
                return
            with on_screen() as screen, keys.pressed() as pressed:
                view = keys.View(wanted.order, wanted.wide, tuple(ORDERS))
                while not view.ended:
                    draw(*picture(view.order), screen, view)
                    view.take(await pressed(REFRESH_SECONDS))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _text(lines: list[Line], sentences: list[str], most: int, *, wide: bool = False) -> str:
    counts = [
        paint(f"{number} {state.lower()}", TONES.get(state) if number else None)
        for state in STATES
        for number in [sum(one.state == state for one in lines)]
    ]
    cells = [one.cells() for one in lines[:most]]
    places = list(range(len(HEAD))) if wide else fitting(cells, room())
    shown = [[row[place] for place in places] for row in cells]
    names = [HEAD[place] for place in places]
    hidden = [f"... and {len(lines) - most} more"] if len(lines) > most else []
    head = f"{len(lines)} workloads: {', '.join(counts)}"
    body = table(names, shown, left=3 - (0 not in places), width=ENDLESS if wide else None)
    return "\n".join([head, *sentences, body, *hidden])


def on_screen() -> Live:
    """What is drawn anew in place; its last picture stays."""
    from rich.console import Console  # here, because ``--once`` does without
    from rich.live import Live

    return Live(console=Console(), auto_refresh=False, vertical_overflow="crop")


def draw(lines: list[Line], sentences: list[str], screen: Live, view: View | None = None) -> None:
    """As much of the table as there is room for, and which keys there are."""
    from rich.text import Text

    wide = view is not None and view.wide
    text = _text(lines, sentences, max(1, screen.console.height - 4 - (view is not None) - len(sentences)), wide=wide)
    if view is not None:
        text += "\n" + paint(f"q ends, s sorts (by {view.order}), w {'fits' if wide else 'shows all columns'}", "quiet")
    shown = Text.from_ansi(text)
    shown.no_wrap, shown.overflow = True, "crop"
    screen.update(shown, refresh=True)
