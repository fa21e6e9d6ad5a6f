"""The command line: one file per command.

Exit codes: 0 done; 1 a defect of slacktide; 2 wrong usage, settings or installation; 3 an input that cannot be used;
4 a user's own policy, score or cost; 5 results that cannot be written; 6 some runs of an experiment failed;
130 interrupted.

Modules are imported where they are used, so that a command loads only what it needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from slacktide import __version__
from slacktide.cli.broker import broker
from slacktide.cli.edge import edge
from slacktide.cli.experiment import experiment
from slacktide.cli.explain import explain
from slacktide.cli.generate import generate
from slacktide.cli.inspect import inspect
from slacktide.cli.lab import lab
from slacktide.cli.netprobe import netprobe
from slacktide.cli.plan import plan
from slacktide.cli.policies import policies
from slacktide.cli.replay import replay
from slacktide.cli.report import report
from slacktide.cli.run import run
from slacktide.cli.settings import settings
from slacktide.cli.simulate import simulate
from slacktide.cli.top import top
from slacktide.cli.trace import trace
from slacktide.errors import ConfigError, InputError, KernelError, OutputError, PluginError, RunsError, SlacktideError

EXIT_CODES: dict[type[SlacktideError], int] = {
    ConfigError: 2,
    KernelError: 2,
    InputError: 3,
    PluginError: 4,
    OutputError: 5,
    RunsError: 6,
}
INTERRUPTED = 130
DEFECT = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="slacktide")
def app() -> None:
    """Keeps every workload above the availability it was promised; here: simulates how well that works.

    \b
    Start like this:
      slacktide generate cell --out cell
      slacktide inspect cell/workload.parquet cell/hosts.parquet
      slacktide simulate cell/workload.parquet cell/hosts.parquet --policy priority --end 3600
      slacktide simulate cell/workload.parquet cell/hosts.parquet --policy qos-driven --end 3600 --out results

    \b
    Exit codes:
      0    done
      1    a defect of slacktide itself
      2    wrong usage, settings or installation
      3    an input file that cannot be used
      4    an own policy, score or cost that cannot be loaded or misbehaves
      5    results that cannot be written
      6    some runs of an experiment failed; the others are done
      130  interrupted (Ctrl-C); earlier results are whole
    """


COMMANDS = (
    *(simulate, generate, inspect, policies, settings, trace, experiment, report, plan, edge),
    *(lab, run, replay, explain, top, broker, netprobe),
)
for command in COMMANDS:
    app.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (the process's own if none is given) and returns its exit code.

    Errors are one message on stderr. ``SLACKTIDE_TRACEBACK=1`` shows where they came from.
    """
    stdout = sys.stdout
    try:
        app.main(arguments, prog_name="slacktide", standalone_mode=False)
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
    return 0


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
