"""The command line: one file per command, in a package for each group of commands; here is what they share.

Exit codes: 0 done; 1 a cluster, a program or slacktide itself failed, or a replay differs; 2 wrong usage, settings or
installation; 3 an input that cannot be used; 4 a user's own policy, score or cost; 5 results that cannot be written;
6 some runs of an experiment failed; 130 interrupted.

A command's module is imported when it is called, and what takes time to import where it is used.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

import click

from slacktide import __version__
from slacktide.cli.shell.suggesting import LazyGroup
from slacktide.errors import (
    SPOKEN,
    ConfigError,
    InputError,
    InputWarning,
    KernelError,
    OutputError,
    PluginError,
    RunsError,
    SlacktideError,
)

EXIT_CODES: dict[type[SlacktideError], int] = {
    ConfigError: 2,
    KernelError: 2,
    InputError: 3,
    PluginError: 4,
    OutputError: 5,
    RunsError: 6,
}
INTERRUPTED = 130
_SHOWN = warnings.showwarning
DEFECT = 1


GROUPS = {
    "Simulate": {
        "generate": "Generates a workload and its hosts.",
        "inspect": "Describes a workload, hosts, or how demand and capacity compare.",
        "simulate": "Simulates WORKLOAD on HOSTS: what was promised, what delivered.",
        "trace": "Prepares workloads and hosts, also from published traces.",
    },
    "Your cluster": {
        "past": "Reads what a cluster did, or is, for a simulation.",
        "verdict": "Says what became of promises in a past, and under slacktide.",
    },
    "Compare": {
        "experiment": "Many runs: workloads, hosts, policies and seeds of one file.",
        "report": "Makes one HTML page of the experiment, or the run, in DIR.",
        "plan": "Finds how many hosts, in the mix of HOSTS, WORKLOAD needs.",
        "validate": "Says whether SIMULATED comes out as MEASURED.",
        "edge": "Delay-aware placement on the published edge testbed.",
    },
    "On a cluster": {
        "run": "Schedules pods of a cluster so that promises are kept.",
        "top": "Shows what each workload was promised and has got, live.",
        "dashboard": "Shows in a browser who keeps its promise, and who waits.",
        "explain": "Says why a pod waits or was preempted, how others stand.",
        "replay": "Decides again what DIRECTORY (of --record) holds, and compares.",
        "ledger": "Takes ledgers out of a cluster, and into a restored one.",
        "openslo": "Service classes from OpenSLO documents, and back; alerts.",
        "netprobe": "Round-trip times between nodes, measured by agents.",
    },
    "Try on this machine": {
        "lab": "A Kubernetes control plane on this machine, to try slacktide.",
        "broker": "Submits WORKLOAD to a cluster as Deployments and Jobs.",
    },
    "Look up": {
        "settings": "Lists every setting: default, what is allowed, what it means.",
        "policies": "Lists policies, allocation scores and preemption costs.",
        "completion": "Prints what completes slacktide's commands in your shell.",
    },
}
"""All commands by what they are for, each with the first sentence of its own help. (A test compares them.)"""
PACKAGES = {
    "Simulate": "simulation",
    "Your cluster": "past",
    "Compare": "comparison",
    "On a cluster": "cluster",
    "Try on this machine": "machine",
    "Look up": "lookup",
}
"""Where the commands of each group are: the command NAME in the module ``slacktide.cli.PACKAGE.NAME``."""
PLACES = {name: f"slacktide.cli.{PACKAGES[title]}.{name}:{name}" for title, lines in GROUPS.items() for name in lines}


@click.group(
    cls=LazyGroup,
    groups=GROUPS,
    places=PLACES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="slacktide")
def app() -> None:
    """Schedules Kubernetes pods so that every workload gets the availability it was promised, and simulates on your own
    workload or trace what that takes.

    \b
    Start like this:
      slacktide generate cell --out cell
      slacktide inspect cell/workload.parquet cell/hosts.parquet
      cd cell
      slacktide simulate workload.parquet hosts.parquet --end 1h --policy priority
      slacktide simulate workload.parquet hosts.parquet --end 1h --out results

    \b
    Exit codes:
      0    done
      1    a cluster, a program or slacktide itself failed; a replay differs
      2    wrong usage, settings or installation
      3    an input file that cannot be used
      4    an own policy, score or cost that cannot be loaded or misbehaves
      5    results that cannot be written
      6    some runs of an experiment failed; the others are done
      130  interrupted (Ctrl-C); earlier results are whole
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (the process's own if none is given) and returns its exit code.

    Errors are one message on stderr. ``SLACKTIDE_TRACEBACK=1`` shows where they came from.
    """
    return run_command(app, "slacktide", arguments)


def run_command(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Runs a command under the name that users know it by; the exit code is as of :func:`main`."""
    stdout = sys.stdout
    spoken = SPOKEN.set("command")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", InputWarning)
            warnings.showwarning = _warned
            command.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        # A command that keeps what it has done says so in its interrupt, which click passes on as a cause.
        told = (error.__cause__ or error).args or ("nothing was written, earlier results are whole.",)
        click.echo(f"\nInterrupted; {told[0]}", err=True)
        return INTERRUPTED
    except SystemExit:
        if sys.stdout is stdout:
            raise
        # Whoever read our output has seen enough: click put a silent stream in stdout's place and ends.
        return 0
    except Exception as error:
        return _failed(error)
    finally:
        SPOKEN.reset(spoken)
    return 0


def _warned(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
    line: str | None = None,
) -> None:  # fmt: skip
    """Says what a command leaves out, in one line."""
    if issubclass(category, InputWarning):
        click.echo(f"slacktide: {message}", err=True)
    else:
        _SHOWN(message, category, filename, lineno, file, line)


def _failed(error: Exception) -> int:
    if os.environ.get("SLACKTIDE_TRACEBACK"):
        raise error
    if isinstance(error, SlacktideError):
        click.echo(f"Error: {error}", err=True)
        return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), DEFECT)
    if isinstance(error, MemoryError):
        click.echo("Error: not enough memory for this input", err=True)
        return EXIT_CODES[InputError]
    click.echo(
        f"Error: a defect of slacktide {__version__}: {type(error).__name__}: {error}\n"
        "Please report it with the output of the same command under SLACKTIDE_TRACEBACK=1.",
        err=True,
    )
    return DEFECT
