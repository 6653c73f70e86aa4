"""The commands by name, and what stands before the name."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

import dralloc
from dralloc.cli.apply import apply_command
from dralloc.cli.batch import batch_command
from dralloc.cli.conformance import conformance_command
from dralloc.cli.console import CommandGroup, Commands
from dralloc.cli.example import example_command
from dralloc.cli.option_sets import GROUPS
from dralloc.cli.plan import PLANS
from dralloc.cli.questions import (
    allocate_command,
    capacity_command,
    compare_command,
    explain_command,
    export_model_command,
    stranded_command,
)
from dralloc.cli.report import report_command
from dralloc.cli.schema import schema_command
from dralloc.cli.signatures import with_options
from dralloc.cli.simulate import simulate_command
from dralloc.cli.snapshot import redact_command, snapshot_command
from dralloc.cli.study import study_command
from dralloc.cli.validate import validate_command
from dralloc.objects.report import WIDTH

__all__ = ["app", "kubectl", "main"]

COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "allocate": allocate_command,
    "compare": compare_command,
    "report": report_command,
    "capacity": capacity_command,
    "explain": explain_command,
    "stranded": stranded_command,
    "apply": apply_command,
    "batch": batch_command,
    "snapshot": snapshot_command,
    "simulate": simulate_command,
    "study": study_command,
    "export-model": export_model_command,
    "validate": validate_command,
    "redact": redact_command,
    "conformance": conformance_command,
    "schema": schema_command,
    "example": example_command,
}

SECTIONS: Final = {
    "Place": ("allocate", "compare", "report"),
    "Understand": ("capacity", "explain", "stranded", "plan"),
    "Live clusters": ("snapshot", "apply", "batch"),
    "Research": ("study", "simulate", "export-model"),
    "Files": ("validate", "redact", "schema", "conformance", "example"),
}
"""In which order help shows the commands, and under which heads."""

EXAMPLES: Final = {
    "allocate": "dralloc allocate cluster.yaml pods.yaml -o yaml",
    "compare": "dralloc compare cluster.yaml --modes scheduler,first-fit,optimal",
    "report": "dralloc report cluster.yaml --to report.html",
    "capacity": "dralloc capacity --live --by productName",
    "explain": "dralloc explain cluster.yaml --claim team/gpu",
    "stranded": "dralloc stranded cluster.yaml --claim team/gpu=10",
    "snapshot": "dralloc snapshot --redact --to cluster.yaml",
    "apply": "dralloc apply --namespace team --yes",
    "batch": "dralloc batch --interval 30",
    "study": "dralloc study cluster.yaml --seeds 5 --demand 0.8,1.0,1.2 --to study.csv",
    "simulate": "dralloc simulate cluster.yaml --mix team/gpu --per-hour 60 --hours 24",
    "export-model": "dralloc export-model cluster.yaml --to model.mps",
    "validate": "dralloc validate manifests/ --strict",
    "redact": "dralloc redact cluster.yaml --to redacted.yaml",
    "schema": "dralloc schema allocate",
    "conformance": "dralloc conformance recorded_cases.jsonl",
    "example": "dralloc example examples",
    "headroom": "dralloc plan headroom cluster.yaml --claim team/gpu",
    "fewest-nodes": "dralloc plan fewest-nodes cluster.yaml",
    "drain": "dralloc plan drain node-7 -f cluster.yaml",
    "defragment": "dralloc plan defragment cluster.yaml --moves 3",
    "partition-layout": "dralloc plan partition-layout cluster.yaml --claim team/small=8",
    "preempt": "dralloc plan preempt cluster.yaml --pod team/train-0",
}
"""How each command is called, for its help."""


PYTHON_TYPE: Final = re.compile(r" <(?:list\[\w+\]|path)>")
"""What Typer says of an argument that takes anything, in words of Python."""


class SectionedCommands(Commands):
    """The root of all commands, which shows them in sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each section with its commands, and what they do."""
        for title, names in SECTIONS.items():
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                assert command is not None
                rows.append((name, command.get_short_help_str(limit=WIDTH)))
            with formatter.section(title):
                formatter.write_dl(rows)


class GroupedOptions(TyperCommand):
    """A command whose help shows its own options first, and then those that many commands share, by group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the command's own options, and the others by group."""
        own: list[tuple[str, str]] = []
        grouped: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            "Options": own,
            **{title: [] for title in GROUPS},
        }
        group_of = {
            name: title for title, names in GROUPS.items() for name in names
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            title = group_of.get(str(parameter.name), "Options")
            name, text = record
            named = PYTHON_TYPE.sub("", name), text
            grouped["Arguments" if is_argument else title].append(named)
        for title, records in grouped.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


app = typer.Typer(
    name="dralloc",
    cls=SectionedCommands,
    help="Allocates devices to Kubernetes ResourceClaims, many at once, and proves how good the answer is.\n\n"
    "Exit codes: 0 done, 1 failures found, 2 unusable input or command line, 3 internal error.",
    context_settings={"max_content_width": WIDTH},
    pretty_exceptions_enable=False,
    # Plain text: importing what draws boxes and colours takes longer than all of the help.
    rich_markup_mode=None,
)
plan = typer.Typer(
    cls=CommandGroup,
    help="Ask what if: a cluster with more, fewer or moved claims and nodes.",
    rich_markup_mode=None,
)
for group, commands in ((app, COMMANDS), (plan, PLANS)):
    for name, command in commands.items():
        epilog = f"Example: {EXAMPLES[name]}"
        registered = group.command(name, cls=GroupedOptions, epilog=epilog)
        registered(with_options(command))
app.add_typer(plan, name="plan")


def kubectl() -> None:
    """Entry point of ``kubectl dralloc``."""
    main("kubectl dralloc")


def main(name: str = "dralloc") -> None:
    """Entry point of the ``dralloc`` command, as it is called."""
    # A command ends soon, and nearly all that it makes is there to stay: looking for garbage would take a tenth of its
    # time.
    gc.disable()
    # What the encoding of the output lacks is shown as an escape: an answer would end where it comes.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
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
