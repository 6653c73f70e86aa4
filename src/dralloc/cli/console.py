"""What the commands share at run time: both consoles, progress, notices, errors and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.status import Status

from dralloc.errors import CheckError, DrallocError, Finding
from dralloc.features import ALL_FEATURES, Features
from dralloc.report import percent, tier_text

if TYPE_CHECKING:
    from dralloc.solvers.cpsat import Progress

__all__ = ["Exit", "Session", "features_from", "guarded"]

_SHOWN = 20
_WIDEST = 500


class Exit(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    FAILED = 1
    """The command ran and found failures (conformance)."""
    INPUT = 2
    """The input or the command line cannot be used."""
    DEFECT = 3
    """An answer failed the independent checker: a defect of dralloc. Nothing is printed of it."""


class Session:
    """Answers go to standard output; notices, progress and errors to standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.out = Console(highlight=False)
        if not self.out.is_terminal:
            # Whoever reads a file or a pipe wants whole names, whatever the width.
            self.out.width = _WIDEST
        self.err = Console(stderr=True, highlight=False)
        self._status: Status | None = None

    def notices(self, findings: Sequence[Finding]) -> None:
        """Say what is remarkable about the input."""
        if self.quiet:
            return
        for finding in findings[:_SHOWN]:
            self.err.print(f"warning: {finding}", style="yellow", markup=False, soft_wrap=True)
        if len(findings) > _SHOWN:
            self.err.print(f"warning: and {len(findings) - _SHOWN} more like these", style="yellow")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show that something is going on, on a terminal."""
        if self.quiet or not self.err.is_terminal:
            yield
            return
        with self.err.status(what) as self._status:
            yield
        self._status = None

    def update(self, what: str) -> None:
        """Say what is going on now, while `busy`."""
        if self._status is not None:
            self._status.update(what)

    def progress(self, progress: Progress) -> None:
        """Show how far the search for the optimum is."""
        if self._status is not None:
            gap = percent(progress.gap)
            best, bound = (tier_text(progress.phase, value) for value in (progress.best, progress.bound))
            state = f"best {best}, bound {bound}, gap {gap}, {progress.seconds:.0f} s"
            self._status.update(f"optimum, {progress.phase}: {state}")


@contextmanager
def guarded() -> Iterator[None]:
    """Turn errors of the user into one line each and an exit code; no traceback."""
    try:
        yield
    except CheckError as error:
        _say(f"internal error: the answer broke a rule and is withheld\n{error}")
        raise typer.Exit(Exit.DEFECT) from None
    except DrallocError as error:
        _say(str(error))
        raise typer.Exit(Exit.INPUT) from None
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        sys.stderr.close()
        raise typer.Exit(Exit.DONE) from None


def _say(message: str) -> None:
    for line in message.splitlines():
        typer.echo(f"error: {line}", err=True)


def features_from(switches: Sequence[str] | None, kubernetes: str | None = None) -> Features:
    """Feature gates from ``NAME=true|false``, over the defaults of a version of Kubernetes (none: all on).

    Raises
    ------
    DrallocError
        A switch has another form or names no feature; the version is not known.
    """
    values = {}
    for switch in switches or ():
        name, _, value = switch.partition("=")
        if value.lower() not in ("true", "false"):
            raise DrallocError(f"--feature {switch}: expected NAME=true or NAME=false")
        values[name] = value.lower() == "true"
    return (Features.of_kubernetes(kubernetes) if kubernetes else ALL_FEATURES).switched(values)
