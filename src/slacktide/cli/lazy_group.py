"""A group that imports a command when it is called, not before."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from slacktide.cli.shell.suggesting import HelpfulGroup


class LazyGroup(HelpfulGroup):
    """Knows of each command its name and the first sentence of its help, in groups: enough to list and complete.

    The command NAME is called NAME in the module ``slacktide.cli.NAME``, which is imported when it is called.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._groups = groups
        for lines in groups.values():
            for name, line in lines.items():
                self.add_command(click.Command(name, help=line))

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are for; their lines are wrapped, not cut."""
        width = max(len(name) for lines in self._groups.values() for name in lines)
        for title, lines in self._groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command itself takes the place of what stood for it."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None else command(str(listed.name)), rest


def command(name: str) -> click.Command:
    """The command of this name, imported."""
    found: click.Command = getattr(import_module(f"slacktide.cli.{name}"), name)
    return found
