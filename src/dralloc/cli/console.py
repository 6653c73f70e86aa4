"""What the commands share at run time: both consoles, progress, notices, answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress as Bar
from rich.status import Status
from rich.text import Text

import dralloc
from dralloc.cli.guard import Exit
from dralloc.cli.options import (
    AsJson,
    Context,
    Form,
    Kubeconfig,
    Limit,
    Live,
    NoHeaders,
    Output,
    Quiet,
)
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import (
    Part,
    one_line,
    percent,
    show,
    tier_text,
)

if TYPE_CHECKING:
    from dralloc.live.snapshot import ClusterSnapshot
    from dralloc.objects.answer import Documented
    from dralloc.objects.choices import Choices
    from dralloc.objects.cluster import Cluster
    from dralloc.objects.limits import Limits
    from dralloc.solve.optimum import Progress

__all__ = ["Answers", "Asking", "Printing", "Reader", "Session"]

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

    def __post_init__(self) -> None:
        self.out = _Console(highlight=False)
        self.err = _Console(stderr=True, highlight=False)

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
        """Say what is remarkable about the input."""
        lines = [f"warning: {one}" for one in warnings]
        if len(lines) > _SHOWN:
            lines[_SHOWN:] = [f"warning: and {len(lines) - _SHOWN} more like these"]
        for line in lines:
            self.tell(line, "yellow")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show that something is going on, on a terminal."""
        if self.quiet or not self.err.is_terminal:
            yield
            return
        with self.err.status(Text(one_line(what))) as self._status:
            yield
        self._status = None

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[str, int, int], None]]:
        """Show a bar, on a terminal; what it gives is called with what is done, how much of it, and of how much."""
        with Bar(
            console=self.err,
            transient=True,
            disable=self.quiet or not self.err.is_terminal,
        ) as bar:
            task = bar.add_task(what, total=None)
            yield lambda what, done, total: bar.update(
                task, description=what, completed=done, total=total or None
            )

    def update(self, what: str) -> None:
        """Say what is going on now, while `busy`."""
        if self._status is not None:
            self._status.update(Text(one_line(what)))

    def progress(self, progress: Progress) -> None:
        """Show how far the search for the optimum is."""
        best, bound = (
            tier_text(progress.phase, value)
            for value in (progress.best, progress.bound)
        )
        state = f"best {best}, bound {bound}, gap {percent(progress.gap)}, {progress.seconds:.0f} s"
        self.update(f"optimum, {progress.phase}: {state}")


_NOTHING: Final = "nothing to read: name files or directories, - for standard input, or --live for a live cluster"


@dataclass
class Reader(Session):
    """A session that reads files."""

    limit: Limit = None

    @property
    def limits(self) -> Limits:
        """How much may come out of them.

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
        live = (
            [self._snapshot()] if self.live or self.context or self.kubeconfig else []
        )
        given: list[Path | ClusterSnapshot] = [*live, *paths]
        if not given:
            raise DrallocError(_NOTHING)
        with self.busy("reading"):
            read = dralloc.load(*given, strict=choices.strict, limits=self.limits)
            cluster = read.including(choices.include)
        self.warn(cluster.findings)
        return cluster

    def _snapshot(self) -> ClusterSnapshot:
        """The objects of the live cluster."""
        from dralloc.live.snapshot import ReadLimits, connect, take_snapshot

        def count(kind: str, number: int) -> None:
            self.update(f"reading {kind}: {number:,}")

        with (
            self.busy("connecting"),
            connect(self.kubeconfig, self.context, ReadLimits()) as server,
        ):
            snapshot = take_snapshot(server, progress=count)
        self.warn(snapshot.warnings)
        return snapshot


@dataclass
class Printing(Reader):
    """A session with one answer."""

    as_json: AsJson = False

    def answer(self, answer: Documented, *, failed: bool = False) -> None:
        """Print the answer as tables, or as JSON. If it says that something failed, the exit code does, too."""
        if self.as_json:
            self.print_json(answer.to_dict())
        else:
            self.show(answer.parts())
        if failed:
            raise typer.Exit(Exit.FAILED)


@dataclass
class Answers(Asking):
    """A session with one answer about a cluster, in the form that is asked for."""

    output: Output = Form.TABLE
    as_json: AsJson = False
    no_headers: NoHeaders = False

    def answer(
        self,
        answer: Documented,
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
        match Form.JSON if self.as_json else self.output:
            case Form.JSON:
                self.print_json(answer.to_dict())
            case Form.YAML:
                from dralloc.objects.dump import dump_yaml

                written = [answer.to_dict()] if objects is None else objects()
                typer.echo(dump_yaml(written), nl=False)
            case Form.NAME:
                for name in answer.names():
                    typer.echo(one_line(name))
            case Form.TABLE | Form.WIDE as form:
                wide, headers = form is Form.WIDE, not self.no_headers
                self.show(answer.parts(), wide=wide, headers=headers)
        if failed:
            raise typer.Exit(Exit.FAILED)
