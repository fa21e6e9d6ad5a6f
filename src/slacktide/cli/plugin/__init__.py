"""``kubectl slack``: what users of a cluster ask, as a plugin of kubectl.

kubectl finds the program ``kubectl-slack`` on the PATH and calls it with the words after ``slack``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from slacktide import __version__
from slacktide.cli.shell.suggesting import HelpfulGroup

COMMANDS = {
    "top": (
        "slacktide.cli.cluster.top",
        "top",
        "Shows what each workload was promised and has got, every second anew.",
    ),
    "explain": ("slacktide.cli.cluster.explain", "pod", "Says why a pod is where it is, waits, or was preempted."),
    "why": ("slacktide.cli.plugin.why", "why", "Says why a pod waits, or all that do, as the cluster has it written."),
    "quote": (
        "slacktide.cli.plugin.quote",
        "quote",
        "Says where new pods would be placed now, and which pods they would preempt.",
    ),
}
"""Each with the module and the function that it is, and its line; the first two are commands of ``slacktide``."""


class Plugin(HelpfulGroup):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        found: click.Command = getattr(import_module(module), function)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Whole lines, and without an import."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Likewise."""
        named = [(name, line) for name, (_, _, line) in COMMANDS.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=line) for name, line in named), *options]


@click.group(
    cls=Plugin, name="slack", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="kubectl slack")
def slack() -> None:
    """Which workloads keep their promise, why a pod waits, and what a pod would get.

    All commands go by the kubeconfig's current context and its namespace; --kubeconfig, --context and -n say otherwise.

    \b
      kubectl slack top
      kubectl slack why -n shop
      kubectl slack explain web-7d4b9-x2x9k
      kubectl slack quote -f deployment.yaml --class gold
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line of the plugin (the process's own if none is given) and returns its exit code."""
    from slacktide.cli import run_command

    return run_command(slack, "kubectl slack", arguments)
