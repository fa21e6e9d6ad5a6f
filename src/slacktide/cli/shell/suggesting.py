"""A group whose help cuts nothing, and that says what a mistyped command may have meant."""

from __future__ import annotations

import click


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


def refused(ctx: click.Context, word: str, names: list[str]) -> None:
    """Raises :class:`click.UsageError`: there is no such command, and what may have been meant."""
    from difflib import get_close_matches

    near = get_close_matches(word, names, 2, 0.5)
    said = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(names)}."
    raise click.UsageError(f"No such command {word!r}. {said}", ctx)
