"""Work: how long it took, and many tasks side by side."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from time import perf_counter
from typing import Final, Protocol, TypeVar

from dralloc.objects.choices import Backend
from dralloc.problem import Problem
from dralloc.solve.backends import executor, is_elsewhere, stop_processes

__all__ = ["Task", "jobs_in", "phase", "run_all"]

# ----------------------------------------------------------------------------
# Seconds by phase.


@contextmanager
def phase(timings: dict[str, float], name: str) -> Iterator[None]:
    """Add the time that the block takes to the phase of that name."""
    started = perf_counter()
    try:
        yield
    finally:
        timings[name] = timings.get(name, 0.0) + perf_counter() - started


# ----------------------------------------------------------------------------
# Tasks side by side.

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

_SENDING: Final = 3e-5
"""So many seconds for each of its devices pass until a problem has arrived in other processes. With a quarter of a
million devices they are eight: five to pack it, the others to unpack it."""


def jobs_in(seconds: float, problem: Problem, jobs: int) -> int:
    """Return how many processes are worth their while: one if the problem would arrive too late in others.

    One is this process itself, unless the backend is a cluster.

    Parameters
    ----------
    seconds
        How many are left.
    """
    return jobs if seconds > _SENDING * len(problem.devices) else 1


class Task(Protocol[T_co]):
    """Work that can be sent to another process."""

    def run(self) -> T_co:
        """Do it."""


def run_all(
    tasks: Iterable[Task[T]], backend: Backend, jobs: int
) -> Generator[tuple[int, T], None, None]:
    """Run tasks, and give out the index and the result of each as it is done, in any order.

    Some wait in line, and more are taken as results come. Whoever does not wait for all of them stops them.

    Raises
    ------
    DrallocError
        What the backend needs is not installed, or a process died.
    """
    number_of: dict[Future[T], int] = {}
    with executor(backend, jobs) as workers:
        try:
            for task_index, task in enumerate(tasks):
                number_of[workers.submit(task.run)] = task_index
                is_enough = len(number_of) >= _IN_LINE * jobs
                yield from _results(number_of, waiting=is_enough)
            while number_of:
                yield from _results(number_of, waiting=True)
        finally:
            for future in number_of:
                future.cancel()
            if number_of and is_elsewhere(backend, jobs):
                stop_processes(backend)


_IN_LINE: Final = 2
"""So many tasks for each process are with it or wait for it: so it never waits for the next one."""


def _results(
    number_of: dict[Future[T], int], *, waiting: bool
) -> Iterator[tuple[int, T]]:
    """Give out, and forget, what is done; wait for something if asked to."""
    seconds = None if waiting else 0.0
    done, _ = wait(number_of, seconds, return_when=FIRST_COMPLETED)
    for future in sorted(done, key=number_of.__getitem__):
        yield number_of.pop(future), future.result()
