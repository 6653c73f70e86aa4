"""However a command ends: a line for each error, an exit code, and a traceback only for those who ask for it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import IO, Any

import typer
from typer.core import TyperGroup

from dralloc.cli.completion import completed_for_shell
from dralloc.objects.errors import CheckError, DrallocError
from dralloc.objects.report import one_line

__all__ = ["CommandGroup", "Commands", "Exit"]


class Exit(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    FAILED = 1
    """The command ran and found failures (validate, conformance, plan drain, plan preempt)."""
    INPUT = 2
    """The input or the command line cannot be used."""
    DEFECT = 3
    """A defect of dralloc; an answer that failed the independent checker is not shown."""


class CommandGroup(TyperGroup):
    """Commands that explain themselves when none of them is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual; nothing asks for help."""
        return super().parse_args(ctx, args or ["--help"])


class Commands(CommandGroup):
    """The root of all commands, which nothing leaves but an exit code."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """As usual: options before the command's name are read, and help is shown."""
        with _guarded(debug=False):
            if completed_for_shell(self, str(info_name), args):
                raise typer.Exit
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """As usual: the command is found, its options are read, and it runs."""
        with _guarded(debug=ctx.params.get("debug", False)):
            return super().invoke(ctx)


@contextmanager
def _guarded(*, debug: bool) -> Iterator[None]:
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if debug:
            _say(traceback.format_exc(), "")
        code, message = _verdict(error)
        _say(message, "error: ")
        for stream in (sys.stdout, sys.stderr):
            _give_up(stream)
        raise typer.Exit(code) from None


def _verdict(error: Exception) -> tuple[Exit, str]:
    """The exit code, and what is said, in lines."""
    match error:
        case CheckError():
            return (
                Exit.DEFECT,
                f"internal error: the answer broke a rule and is withheld; please report it\n{error}",
            )
        case DrallocError():
            return Exit.INPUT, str(error)
        case typer.TyperException():
            # What Typer checks with pydantic says first that it is an error of a value, which its own words say, too.
            return Exit.INPUT, error.format_message().replace(": Value error, ", ": ")
        case BrokenPipeError():  # whoever read the output has seen enough
            return Exit.DONE, ""
        case RecursionError():
            return Exit.INPUT, "the input is nested too deeply"
        case MemoryError():
            return Exit.INPUT, "there is not enough memory"
        case UnicodeError():
            return Exit.INPUT, f"text in another encoding: {error}"
        case OSError():
            return (
                Exit.INPUT,
                f"{error.filename or 'input or output'}: {error.strerror or error}",
            )
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        Exit.DEFECT,
        f"internal error: {what}; please report it, with what dralloc --debug COMMAND prints",
    )


def _say(message: str, head: str) -> None:
    with suppress(OSError):
        for line in message.split("\n") if message else ():
            typer.echo(f"{head}{one_line(line)}", err=True)


def _give_up(stream: IO[str] | None) -> None:
    """Where nothing can be written any more, let what is left be lost without a word, also when Python ends."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
