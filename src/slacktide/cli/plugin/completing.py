"""``kubectl_complete-slack``: what kubectl's own completion asks for the words behind ``kubectl slack``.

kubectl finds the program on the PATH, calls it with these words, the last of which is not complete, and expects what
Cobra prints: on each line a word, a tab and what it is; then a colon and a number that says what the shell may add.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete

NO_FILES, FILES, FOLDERS = 4, 0, 16
"""Cobra's directives (``cobra.ShellCompDirective``): whether the shell completes names of files beside ours."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the completions: none behind a word that is wrong, and none where anything else fails."""
    from slacktide.cli.plugin import slack

    *words, incomplete = (sys.argv[1:] if arguments is None else arguments) or [""]
    try:
        found = ShellComplete(slack, {}, "kubectl slack", "").get_completions(list(words), incomplete)
    except Exception:  # a key was pressed: nobody wants to read an error between two words
        found = []
    click.echo(answer(found))
    return 0


def answer(found: Sequence[CompletionItem]) -> str:
    """The lines for Cobra."""
    kinds = {one.type for one in found}
    directive = FILES if "file" in kinds else FOLDERS if "dir" in kinds else NO_FILES
    words = [f"{one.value}\t{one.help}" if one.help else str(one.value) for one in found if one.type == "plain"]
    return "\n".join([*words, f":{directive}"])
