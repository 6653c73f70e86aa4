"""Commands run on a file in a child process that has little memory, each for a short time."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Final, NamedTuple

import typer

from dralloc.cli import app
from fuzz.mutations import Corpus, mutated

__all__ = ["Failure", "failures"]

_SECONDS: Final = 10
"""How long a command may run, in CPU time: others may need the machine, too."""
_PATIENCE: Final = 600
"""How long a child may be silent until it is killed; it may wait for something, or not hear its alarm."""
_MEMORY: Final = 2 << 30
_FORK: Final = multiprocessing.get_context("fork")
_DRALLOC: Final = typer.main.get_command(app)
_COMMANDS: Final = (
    "validate {}",
    "allocate --mode first-fit {}",
    "allocate --mode optimal --time-limit 1 --output yaml {}",
    "redact {} --to {}.redacted.yaml",
)


class Failure(NamedTuple):
    """A command that ended otherwise than with exit code 0, 1 or 2."""

    seed: int
    command: str
    what: str


class _TooSlowError(BaseException):
    """No error of a program, so that no program takes it for one."""


def failures(seeds: Sequence[int], corpus: Corpus) -> Iterator[Failure]:
    """What fails of the files of these seeds. A child that dies or hangs is followed by another."""
    remaining = list(seeds)
    while remaining:
        here, there = _FORK.Pipe(duplex=False)
        child = _FORK.Process(
            target=_child, args=(remaining, corpus, there), daemon=True
        )
        child.start()
        there.close()
        try:
            while remaining:
                seed_failures = here.recv() if here.poll(_PATIENCE) else None
                if seed_failures is None:
                    raise EOFError
                yield from seed_failures
                remaining.pop(0)
        except EOFError:
            child.kill()
            child.join()
            yield Failure(
                remaining.pop(0),
                "some command",
                f"hangs, or the process died: {child.exitcode}",
            )
        child.join()


def _child(seeds: Iterable[int], corpus: Corpus, parent: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _stop)
    for seed in seeds:
        name, data = mutated(seed, corpus)
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            parent.send(list(_failures_of(seed, path)))


def _failures_of(seed: int, path: Path) -> Iterator[Failure]:
    for command in _COMMANDS:
        what = _run(command.replace("{}", str(path)).split())
        if what:
            yield Failure(seed, command, what)


def _run(arguments: list[str]) -> str:
    """What is wrong with how a command ends."""
    said = StringIO()
    code: object = 0
    try:
        with _alarm(), redirect_stdout(StringIO()), redirect_stderr(said):
            _DRALLOC(["--debug", *arguments], prog_name="dralloc")
    except SystemExit as ended:
        code = ended.code or 0
    except _TooSlowError:
        return f"takes more than {_SECONDS} s of CPU time"
    if code not in (0, 1, 2):
        return f"exit code {code}: {said.getvalue()}"
    return said.getvalue() if "not enough memory" in said.getvalue() else ""


@contextmanager
def _alarm() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _TooSlowError
