"""What the commands share at run time: how a command ends, both consoles, progress, notices, answers."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

import typer
from rich.console import Console
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text
from typer.core import TyperGroup

import dralloc
from dralloc.cli.options import (
    AsJson,
    Context,
    Form,
    Kubeconfig,
    Limit,
    Live,
    NoHeaders,
    Output,
    PlanFile,
    Quiet,
)
from dralloc.objects.errors import (
    CheckError,
    ChoiceError,
    DrallocError,
    Finding,
)
from dralloc.objects.report import (
    WIDTH,
    Line,
    Part,
    one_line,
    percent,
    show,
    tier_text,
)

if TYPE_CHECKING:
    from dralloc.live.snapshot import ClusterSnapshot
    from dralloc.objects.choices import Choices
    from dralloc.objects.cluster import Cluster
    from dralloc.objects.limits import Limits
    from dralloc.solve.optimum import Progress

__all__ = [
    "Answers",
    "Asking",
    "Checks",
    "CommandGroup",
    "Commands",
    "Exit",
    "Printing",
    "Reader",
    "Session",
]

# ----------------------------------------------------------------------------
# ``--show-completion SHELL`` and ``--install-completion SHELL``.
#
# Without a shell, they mean the one that dralloc is called from, and Typer does all
# of it.

_SHOW: Final = "--show-completion"
_INSTALL: Final = "--install-completion"
_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")


def _completed_for_shell(
    command: Any, name: str, arguments: Sequence[str]
) -> bool:
    """Show or install the completion for a shell that is named.

    Parameters
    ----------
    command
        What is completed.
    name
        How it is called.
    arguments
        What follows the name.

    Returns
    -------
    bool
        Whether that was asked, so that nothing is left to do.

    Raises
    ------
    ChoiceError
        There is no completion for this shell.
    DrallocError
        It is called as a plugin: what Typer writes for two words would take the completion of the first one away.
    """
    if " " in name and arguments and arguments[0] in (_SHOW, _INSTALL):
        raise DrallocError(
            f"{arguments[0]}: {name} has no completion of its own; dralloc {arguments[0]} is for dralloc"
        )
    if len(arguments) != 2 or arguments[0] not in (_SHOW, _INSTALL):
        return False
    option, shell = arguments
    # Typer shows `install` there, but its types do not say so.
    from typer.completion import install, shell_complete  # type: ignore[attr-defined]

    if shell not in _SHELLS:
        raise ChoiceError("shell", shell, _SHELLS)
    if option == _INSTALL:
        _, path = install(shell=shell, prog_name=name)
        typer.echo(
            f"{shell} completion installed in {path}: it is there when the terminal is started anew"
        )
    else:
        variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
        shell_complete(command, {}, name, variable, f"source_{shell}")
    return True


# ----------------------------------------------------------------------------
# However a command ends: a line for each error, an exit code, and a traceback only
# for those who ask for it.


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
        self,
        info_name: str | None,
        args: list[str],
        parent: Any = None,
        **extra: Any,
    ) -> Any:
        """As usual: options before the command's name are read, and help is shown."""
        with _guarded(debug=False):
            if _completed_for_shell(self, str(info_name), args):
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
                # What cannot be written is to be noticed here, and not when Python
                # ends.
                sys.stdout.flush()
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if debug:
            _say(traceback.format_exc(), "")
        code, message = _verdict(error)
        _say(message, "error: ")
        # A pipe that nobody reads any more would raise once more when Python ends.
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
            message = error.format_message().replace(": Value error, ", ": ")
            if "'--output' / '-o'" in message:
                message += " Files are written with --to."
            return Exit.INPUT, message
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
    failure = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        Exit.DEFECT,
        f"internal error: {failure}; please report it, with what dralloc --debug COMMAND prints",
    )


def _say(message: str, head: str) -> None:
    with suppress(OSError):
        for line in message.split("\n") if message else ():
            typer.echo(f"{head}{one_line(line)}", err=True)


def _give_up(stream: IO[str] | None) -> None:
    """Let what is left be lost without a word where nothing can be written any more, also when Python ends."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_SHOWN: Final = 20


class _Console(Console):
    """A console that leaves it to the guard to say how a command ends."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@dataclass
class Session:
    """Answers go to standard output; notices, progress and errors to standard error."""

    quiet: Quiet = False
    _status: Status | None = field(default=None, init=False)
    _warnings: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        # Whoever has no terminal may say that it has no columns: nothing at all would be printed then.
        columns = os.environ.get("COLUMNS", "")
        is_zero = columns.isdecimal() and not int(columns)
        width = WIDTH if is_zero else None
        self.out = _Console(highlight=False, width=width)
        self.err = _Console(stderr=True, highlight=False, width=width)

    def show(
        self, parts: Iterable[Part], *, wide: bool = False, headers: bool = True
    ) -> None:
        """Print lines and tables."""
        show(self.out, parts, wide=wide, headers=headers)

    def print_json(self, answer: object) -> None:
        """Print plain data for machines. Other characters than ASCII's printable ones are escaped."""
        typer.echo(json.dumps(answer, indent=2))

    def tell(self, line: str, style: str = "") -> None:
        """Say something beside the answer."""
        if not self.quiet:
            self.err.print(Text(one_line(line), style), soft_wrap=True)

    def warn(self, warnings: Iterable[object]) -> None:
        """Say what is remarkable about the input, and what was said before no more."""
        told = {str(warning): warning for warning in warnings}
        everything = [
            warning
            for text, warning in told.items()
            if text not in self._warnings
        ]
        self._warnings.update(told)
        shown = _placed(everything[:_SHOWN])
        lines = [f"warning: {warning}" for warning in shown]
        if further := len(everything) - len(shown):
            lines.append(f"warning: and {further} more like these")
        for line in lines:
            self.tell(line, "yellow")

    @contextmanager
    def busy(self, activity: str) -> Iterator[None]:
        """Show that something is going on, on a terminal."""
        if self.quiet or not self.err.is_terminal:
            yield
            return
        with self.err.status(Text(one_line(activity))) as self._status:
            yield
        self._status = None

    @contextmanager
    def counting(
        self, activity: str
    ) -> Iterator[Callable[[str, int, int], None]]:
        """Show a bar, on a terminal; what it gives is called with what is done, how much of it, and of how much."""
        with Bar(
            console=self.err,
            transient=True,
            disable=self.quiet or not self.err.is_terminal,
        ) as bar:
            task = bar.add_task(activity, total=None)
            yield lambda step, done, total: bar.update(
                task, description=step, completed=done, total=total or None
            )

    def update(self, activity: str) -> None:
        """Say what is going on now, while `busy`."""
        if self._status is not None:
            self._status.update(Text(one_line(activity)))

    def progress(self, progress: Progress) -> None:
        """Show how far the search for the optimum is."""
        best, bound = (
            tier_text(progress.phase, value)
            for value in (progress.best, progress.bound)
        )
        state = f"best {best}, bound {bound}, gap {percent(progress.gap)}, {progress.seconds:.0f} s"
        self.update(f"optimum, {progress.phase}: {state}")


def _placed(warnings: Sequence[object]) -> list[object]:
    """Return the warnings, those about fields of files with line and column."""
    from dralloc.objects.load import located

    placed = iter(
        located(warning for warning in warnings if isinstance(warning, Finding))
    )
    return [
        next(placed) if isinstance(warning, Finding) else warning
        for warning in warnings
    ]


_NOTHING: Final = "nothing to read: name files or directories, - for standard input, or --live for a live cluster"


@dataclass
class Reader(Session):
    """A session that reads files."""

    limit: Limit = None

    @property
    def limits(self) -> Limits:
        """The limits of what may come out of them.

        Raises
        ------
        DrallocError
            A limit has another form, or there is none of its name.
        """
        return dralloc.Limits.of(self.limit or ())


@dataclass
class Asking(Reader):
    """A session that asks about a cluster: as files have it, or as it is now."""

    live: Live = False
    context: Context = None
    kubeconfig: Kubeconfig = None
    plan: PlanFile = None

    @property
    def is_live(self) -> bool:
        """Whether a live cluster is read."""
        return bool(self.live or self.context or self.kubeconfig)

    @contextmanager
    def asking(
        self, paths: Iterable[Path], choices: Choices, doing: str
    ) -> Iterator[Cluster]:
        """The cluster that is asked about. Within it, `doing` is shown, with the number of claims in its braces."""
        cluster = self.read(paths, choices)
        with self.busy(doing.format(len(cluster.claims))):
            yield cluster

    def read(self, paths: Iterable[Path], choices: Choices) -> Cluster:
        """Load the cluster, with the pods that are to be included, and say what is remarkable about it.

        Raises
        ------
        DrallocError
            There is nothing to read.
        """
        from dralloc.compile.compiler.remarks import other_version

        live = [self._snapshot()] if self.is_live else []
        sources: list[Path | ClusterSnapshot] = [*live, *paths]
        if not sources:
            raise DrallocError(_NOTHING)
        with self.busy("reading"):
            read = dralloc.load(
                *sources, strict=choices.strict, limits=self.limits
            )
            version = live[0].version if live else ""
            cluster = replace(
                read.including(choices.include), server_version=version
            )
        self.warn([*cluster.findings, *other_version(cluster, choices)])
        if self.plan is None:
            return cluster
        with self.busy("reading the plan"):
            plan = dralloc.Plan.load(self.plan, cluster, choices=choices)
        return plan.after

    def _snapshot(self) -> ClusterSnapshot:
        """The objects of the live cluster."""
        from dralloc.live.snapshot import ReadLimits, connect, take_snapshot

        def count(kind: str, object_count: int) -> None:
            self.update(f"reading {kind}: {object_count:,}")

        with (
            self.busy("connecting"),
            connect(self.kubeconfig, self.context, ReadLimits()) as server,
        ):
            snapshot = take_snapshot(server, progress=count)
            snapshot.version = server.version()
        self.warn(snapshot.warnings)
        return snapshot


class Shown(Protocol):
    """What can be printed in every form."""

    def parts(self) -> list[Part]:
        """Return it as tables and lines."""

    def names(self) -> Iterable[str]:
        """Return what it is about, by name."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


@dataclass
class Printing(Session):
    """A session with one answer, in the form that is asked for."""

    output: Output = Form.TABLE
    as_json: AsJson = False
    no_headers: NoHeaders = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_json and self.output not in (Form.TABLE, Form.JSON):
            raise DrallocError(f"--json and -o {self.output}: only one of them")

    def require_own_form(self, option: str) -> None:
        """Refuse an option that prints something else than the answer beside another form of the answer.

        Raises
        ------
        DrallocError
            Another form is asked for.
        """
        if self.form is not Form.TABLE:
            raise DrallocError(f"{option} and -o {self.form}: only one of them")

    @property
    def form(self) -> Form:
        """The form that is asked for."""
        return Form.JSON if self.as_json else self.output

    def show_tables(self, parts: Iterable[Part]) -> None:
        """Print lines and tables, as wide and with such heads as is asked for; warnings among them go beside them."""
        shown: list[Part] = []
        for part in parts:
            if isinstance(part, Line) and part.text.startswith("warning: "):
                self.tell(part.text, part.style)
            else:
                shown.append(part)
        wide = self.form is Form.WIDE
        self.show(shown, wide=wide, headers=not self.no_headers)

    def answer(
        self,
        answer: Shown,
        *,
        failed: bool = False,
        objects: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        """Print the answer. If it says that something failed, the exit code does, too.

        Parameters
        ----------
        objects
            What YAML shows in place of the document.
        """
        match self.form:
            case Form.JSON:
                self.print_json(answer.to_dict())
            case Form.YAML:
                from dralloc.objects.save import dump_yaml

                written = [answer.to_dict()] if objects is None else objects()
                typer.echo(dump_yaml(written), nl=False)
            case Form.NAME:
                self.print_lines(answer.names())
            case Form.TABLE | Form.WIDE:
                self.show_tables(answer.parts())
        if failed:
            raise typer.Exit(Exit.FAILED)

    def print_lines(self, lines: Iterable[str]) -> None:
        """Print each as one line, however long."""
        for line in lines:
            typer.echo(one_line(line))


@dataclass
class Checks(Reader, Printing):
    """A session with one answer about files."""


@dataclass
class Answers(Asking, Printing):
    """A session with one answer about a cluster."""
