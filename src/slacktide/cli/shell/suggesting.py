"""Groups whose help cuts nothing, and that say what a mistyped command may have meant."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class HelpfulGroup(click.Group):
    """Lists its commands with their whole first sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Click would cut what does not fit on a line."""
        rows = [
            (name, found.get_short_help_str(limit=1000))
            for name in self.list_commands(ctx)
            if (found := self.get_command(ctx, name)) is not None and not found.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises :class:`click.UsageError`, with the nearest names, for a command that there is not."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            refused(ctx, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


class LazyGroup(HelpfulGroup):
    """Imports a command when it is called, not before.

    It knows of each its name and a line, in groups by title: enough to list and complete. ``places`` says where each
    is, ``MODULE:FUNCTION``.
    """

    def __init__(
        self, *args: Any, groups: Mapping[str, Mapping[str, str]], places: Mapping[str, str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._groups, self._places = groups, places
        for lines in groups.values():
            for name, line in lines.items():
                self.add_command(click.Command(name, help=line))

    def list_commands(self, _: click.Context) -> list[str]:
        """In the order in which they are listed."""
        return list(self._places)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are for; their lines are wrapped, not cut."""
        width = max(map(len, self._places))
        for title, lines in self._groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Whole lines, too."""
        lines = [one for lines in self._groups.values() for one in lines.items() if one[0].startswith(incomplete)]
        return [
            *(CompletionItem(name, help=line) for name, line in sorted(lines)),
            *super(click.Group, self).shell_complete(ctx, incomplete),
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command itself takes the place of what stood for it."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None else self.imported(str(listed.name)), rest

    def imported(self, name: str) -> click.Command:
        """The command of this name, imported."""
        module, _, function = self._places[name].partition(":")
        found: click.Command = getattr(import_module(module), function)
        return found


def refused(ctx: click.Context, word: str, names: list[str]) -> None:
    """Raises :class:`click.UsageError`: there is no such command, and what may have been meant."""
    from difflib import get_close_matches

    near = get_close_matches(word, names, 2, 0.5)
    there = f"There {'is' if len(names) == 1 else 'are'} {', '.join(names)}."
    said = f"Did you mean {' or '.join(near)}?" if near else there
    raise click.UsageError(f"No such command {word!r}. {said}", ctx)
