"""Work: where it is done, and how long that took.

`phase` adds up seconds, and a backend is where tasks are run: here, in other processes, or on a cluster of Dask or Ray.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    suppress,
)
from itertools import islice
from multiprocessing import resource_tracker
from threading import Thread
from time import perf_counter
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.choices import Backend
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import Problem

__all__ = [
    "Parcel",
    "is_elsewhere",
    "jobs_in",
    "phase",
    "run_all",
    "shield_children",
    "starting_processes",
    "stop_processes",
]

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
# Backends: processes here, or a Dask or Ray cluster, all through joblib.

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Parcel(Generic[T]):
    """Something large that many tasks carry: each process unpacks it once, and keeps it until another one comes.

    Parameters
    ----------
    content
        What is sent. It is packed when the first task goes elsewhere; later changes stay here.
    """

    def __init__(self, content: T) -> None:
        self.content = content
        self._packed: NDArray[np.uint8] | None = None

    def __reduce__(
        self,
    ) -> tuple[
        Callable[[str, NDArray[np.uint8]], Parcel[T]],
        tuple[str, NDArray[np.uint8]],
    ]:
        """Packed into an array, which joblib lays into memory that processes share."""
        if self._packed is None:
            self._packed = np.frombuffer(
                pickle.dumps(self.content, protocol=5), np.uint8
            )
            self._name = hashlib.sha256(self._packed.data).hexdigest()
        return _unpacked, (self._name, self._packed)


_UNPACKED: Final[dict[str, Parcel[Any]]] = {}
"""The parcel that came last, by the digest of what is in it."""


def _unpacked(name: str, packed: NDArray[np.uint8]) -> Parcel[Any]:
    if name not in _UNPACKED:
        _UNPACKED.clear()
        with without_garbage_collection():
            _UNPACKED[name] = Parcel(pickle.loads(packed.data))
    return _UNPACKED[name]


_SENDING: Final = 3e-5
"""So many seconds for each of its devices pass until a problem has arrived in other processes. With a quarter of a
million devices they are eight: five to pack it, the others to lay it into shared memory and to unpack it."""


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


def is_elsewhere(backend: Backend, jobs: int) -> bool:
    """Whether work is sent to other processes."""
    return backend is not Backend.LOKY or jobs > 1


def run_all(
    tasks: Iterable[Task[T]],
    backend: Backend,
    jobs: int,
    *,
    as_made: bool = False,
) -> Iterator[tuple[int, T]]:
    """Run tasks, and give out each one's number and result as it is done, in any order.

    Parameters
    ----------
    as_made
        Whether the tasks are few, and take time to make: then each is sent as soon as it is made, and others are made
        meanwhile. Else some wait in line, and more are taken as results come.

    Raises
    ------
    DrallocError
        What the backend needs is not installed, or a process died.
    """
    numbered_tasks = enumerate(tasks)
    if not is_elsewhere(backend, jobs):
        yield from ((number, task.run()) for number, task in numbered_tasks)
        return
    try:
        import joblib  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise DrallocError(
            "several jobs need joblib: pip install 'dralloc[parallel]'"
        ) from None
    in_batches = backend in _IN_BATCHES
    returned = "list" if in_batches else "generator_unordered"
    try:
        with (
            _without_news_of_workers(),
            _BACKENDS[backend](jobs),
            joblib.parallel_config(
                backend=backend.value,
                n_jobs=jobs,
                **_PARAMETERS.get(backend, {}),
            ),
        ):
            for batch in _batches(numbered_tasks, jobs, in_batches=in_batches):
                parallel = joblib.Parallel(
                    return_as=returned,
                    batch_size=1,
                    pre_dispatch="all" if as_made else "2*n_jobs",
                )
                yield from parallel(
                    joblib.delayed(_run)(number, task) for number, task in batch
                )
    except BrokenProcessPool:
        raise DrallocError(
            f"backend {backend}: a process died; is there enough memory for so many jobs?"
        ) from None


@contextmanager
def _without_news_of_workers() -> Iterator[None]:
    """Do not tell users that a worker has begun anew with less memory: its task is done by another one."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "A worker stopped while some jobs", UserWarning
        )
        yield


def _run(number: int, task: Task[T]) -> tuple[int, T]:
    return number, task.run()


def _batches(
    tasks: Iterator[tuple[int, Task[T]]], jobs: int, *, in_batches: bool
) -> Iterator[Iterable[tuple[int, Task[T]]]]:
    """Batches of two tasks per job keep results coming without leaving anybody idle; else all in one."""
    if not in_batches:
        yield tasks
        return
    while batch := list(islice(tasks, max(2 * jobs, 1))):
        yield batch


@contextmanager
def starting_processes(
    first_task: Task[object], backend: Backend, jobs: int
) -> Iterator[None]:
    """Start the processes for later tasks while the block runs; only where they are on this machine.

    Parameters
    ----------
    first_task
        What each of them does first: to be sent there, it brings its module.
    """
    if backend is not Backend.LOKY or not is_elsewhere(backend, jobs):
        yield
        return

    def start() -> None:
        shield_children()
        # Whatever is wrong is said when the processes are needed.
        with suppress(DrallocError):
            deque(run_all([first_task] * jobs, backend, jobs), maxlen=0)

    starter = Thread(target=start, name="dralloc-starter")
    starter.start()
    try:
        yield
    finally:
        starter.join()


def shield_children() -> None:
    """Let processes that this thread starts from now on hear no Ctrl-C, not even while they begin.

    A process inherits which signals are held back in the thread that starts it. Not for the main thread, which would
    hear none either.
    """
    if hasattr(signal, "pthread_sigmask"):
        # Those that track resources are started first: after that, they let the signal through again.
        resource_tracker.ensure_running()
        with suppress(ModuleNotFoundError):
            from joblib.externals.loky.backend import resource_tracker as theirs  # noqa: PLC0415 - optional

            theirs.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def stop_processes(backend: Backend) -> None:
    """Kill the processes that this one has started on this machine, whatever they are doing."""
    if backend is Backend.LOKY:
        from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415 - an optional dependency

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


@contextmanager
def _dask(jobs: int) -> Iterator[None]:
    try:
        import distributed  # noqa: PLC0415 - an optional dependency
        from dask import config  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DrallocError(
            "backend dask needs Dask: pip install 'dralloc[dask]'"
        ) from None
    try:
        distributed.Client.current()
    except ValueError:
        # Without a cluster that is configured, one of as many workers on this machine.
        local_cluster = {"n_workers": jobs, "threads_per_worker": 1}
        if config.get("scheduler-address", None):
            local_cluster = {}
        with distributed.Client(**local_cluster, dashboard_address=None):
            yield
    else:
        yield


@contextmanager
def _ray(jobs: int) -> Iterator[None]:
    try:
        import ray  # noqa: PLC0415 - an optional dependency
        from ray.util.joblib import register_ray  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DrallocError(
            "backend ray needs Ray: pip install 'dralloc[ray]'"
        ) from None
    # Whoever has started Ray before ends it, too.
    starts_ray = not ray.is_initialized()
    if starts_ray:
        if "RAY_ADDRESS" in os.environ:
            ray.init()
        else:
            ray.init(num_cpus=jobs, include_dashboard=False)
    register_ray()
    try:
        yield
    finally:
        if starts_ray:
            ray.shutdown()


_BACKENDS: Final[
    dict[Backend, Callable[[int], AbstractContextManager[object]]]
] = {
    Backend.LOKY: nullcontext,
    Backend.DASK: _dask,
    Backend.RAY: _ray,
}

_PARAMETERS: Final[dict[Backend, dict[str, Any]]] = {
    # A terminal sends Ctrl-C to all processes, but what it means is for the one that started the others to say.
    Backend.LOKY: {
        "initializer": signal.signal,
        "initargs": (signal.SIGINT, signal.SIG_IGN),
    },
}

_IN_BATCHES: Final = {Backend.RAY}
"""Those that give out nothing before everything is done."""
