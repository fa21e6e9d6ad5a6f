"""A group that imports a command when it is called, not before."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from slacktide.cli.shell.suggesting import HelpfulGroup


class LazyGroup(HelpfulGroup):
    """Knows of each command its name and the first sentence of its help, in groups: enough to list and complete.

    The command NAME of a group is called NAME in the module ``slacktide.cli.PACKAGE.NAME``, with the group's package,
    which is imported when it is called.
    """

    def __init__(
        self, *args: Any, groups: Mapping[str, Mapping[str, str]], packages: Mapping[str, str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._groups = groups
        self._packages = {name: packages[title] for title, lines in groups.items() for name in lines}
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
        return name, None if listed is None else self.imported(str(listed.name)), rest

    def imported(self, name: str) -> click.Command:
        """The command of this name, imported."""
        found: click.Command = getattr(import_module(f"slacktide.cli.{self._packages[name]}.{name}"), name)
        return found
