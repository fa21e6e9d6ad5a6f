"""``kubectl slack``: what users of a cluster ask, as a plugin of kubectl.

kubectl finds the program ``kubectl-slack`` on the PATH and calls it with the words after ``slack``.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from slacktide import __version__
from slacktide.cli.shell.suggesting import LazyGroup

COMMANDS = {
    "top": "Shows what each workload was promised and has got, every second anew.",
    "explain": "Says why a pod is where it is, waits, or was preempted.",
    "why": "Says why a pod waits, or all that do, as the cluster has it written.",
    "quote": "Says where new pods would be placed now, and which pods they would preempt.",
}
PLACES = {
    "top": "slacktide.cli.cluster.top:top",
    "explain": "slacktide.cli.cluster.explain:explain",
    "why": "slacktide.cli.plugin.why:why",
    "quote": "slacktide.cli.plugin.quote:quote",
}
"""Where each is; the first two are commands of ``slacktide``."""


@click.group(
    cls=LazyGroup,
    groups={"Commands": COMMANDS},
    places=PLACES,
    name="slack",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
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
