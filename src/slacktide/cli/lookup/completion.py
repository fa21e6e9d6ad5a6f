"""``slacktide completion``."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Prints what completes slacktide's commands in your shell.

    \b
      eval "$(slacktide completion bash)"                       in ~/.bashrc
      eval "$(slacktide completion zsh)"                        in ~/.zshrc
      slacktide completion fish > ~/.config/fish/completions/slacktide.fish

    It completes commands, options, files, and names of policies, presets, generators, trace formats and settings.
    """
    from click.shell_completion import get_completion_class

    from slacktide.cli import app

    kind = get_completion_class(shell)
    if kind is not None:
        click.echo(kind(app, {}, "slacktide", "_SLACKTIDE_COMPLETE").source())
