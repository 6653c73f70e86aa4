"""The commands by name, and what stands before the name."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Annotated, Final

import typer

import dralloc
from dralloc.cli.console import CommandGroup, Commands
from dralloc.cli.lab import simulate_command, study_command
from dralloc.cli.lint import conformance_command, validate_command
from dralloc.cli.live import (
    apply_command,
    batch_command,
    redact_command,
    snapshot_command,
)
from dralloc.cli.options import with_options
from dralloc.cli.questions import (
    PLANS,
    allocate_command,
    capacity_command,
    compare_command,
    explain_command,
    report_command,
    schema_command,
    stranded_command,
)
from dralloc.objects.report import WIDTH

__all__ = ["app", "kubectl", "main"]

COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "allocate": allocate_command,
    "capacity": capacity_command,
    "compare": compare_command,
    "apply": apply_command,
    "batch": batch_command,
    "explain": explain_command,
    "report": report_command,
    "stranded": stranded_command,
    "simulate": simulate_command,
    "study": study_command,
    "validate": validate_command,
    "snapshot": snapshot_command,
    "redact": redact_command,
    "conformance": conformance_command,
    "schema": schema_command,
}

app = typer.Typer(
    name="dralloc",
    cls=Commands,
    help="Allocates devices to Kubernetes ResourceClaims, many at once, and proves how good the answer is.\n\n"
    "Exit codes: 0 done, 1 failures found, 2 unusable input or command line, 3 internal error.",
    context_settings={"max_content_width": WIDTH},
    pretty_exceptions_enable=False,
    # Plain text: importing what draws boxes and colours takes longer than all of the help.
    rich_markup_mode=None,
)
plan = typer.Typer(
    cls=CommandGroup,
    help="What if: studies of a cluster that is not quite as it is.",
    rich_markup_mode=None,
)
for group, commands in ((app, COMMANDS), (plan, PLANS)):
    for name, command in commands.items():
        group.command(name)(with_options(command))
app.add_typer(plan, name="plan")


def kubectl() -> None:
    """Entry point of ``kubectl dralloc``."""
    main("kubectl dralloc")


def main(name: str = "dralloc") -> None:
    """Entry point of the ``dralloc`` command, as it is called."""
    # A command ends soon, and nearly all that it makes is there to stay: looking for garbage would take a tenth of its
    # time.
    gc.disable()
    app(prog_name=name)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(dralloc.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_print_version,
            help="Print the version and exit.",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print where an error came from.")
    ] = False,
) -> None:
    """What stands before the command's name."""
