"""Backends: tasks are run here, in other processes, or on a cluster of Dask or Ray.

Each is an executor as `concurrent.futures` knows them; what many tasks carry is sent to a process once, as a parcel.
"""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Thread
from typing import Any, Final, Generic, ParamSpec, TypeVar
from uuid import uuid4

from dralloc.objects.choices import Backend
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection

__all__ = [
    "Parcel",
    "executor",
    "is_elsewhere",
    "shield_children",
    "starting_processes",
    "stop_processes",
]

P = ParamSpec("P")
T = TypeVar("T")

# ----------------------------------------------------------------------------
# Executors.


def is_elsewhere(backend: Backend, jobs: int) -> bool:
    """Whether work is sent to other processes."""
    return backend is not Backend.LOKY or jobs > 1


@contextmanager
def executor(backend: Backend, jobs: int) -> Iterator[Executor]:
    """Give an executor with so many processes; where one is enough, and there is no cluster, that is this one.

    Processes on this machine wait for more work afterwards.

    Raises
    ------
    DrallocError
        What the backend needs is not installed, or a process died.
    """
    if not is_elsewhere(backend, jobs):
        yield _Here()
        return
    try:
        with _without_news_of_workers(), _EXECUTORS[backend](jobs) as elsewhere:
            yield elsewhere
    except BrokenProcessPool:
        raise DrallocError(
            f"backend {backend}: a process died; is there enough memory for so many jobs?"
        ) from None


class _Here(Executor):
    """Runs what is submitted at once, in this thread. Errors are raised at once, too."""

    def submit(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(function(*args, **kwargs))
        return future


@contextmanager
def _without_news_of_workers() -> Iterator[None]:
    """Do not tell users that a worker has begun anew with less memory: its task is done by another one."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "A worker stopped while some jobs", UserWarning
        )
        yield


_IDLE_SECONDS: Final = 300
"""Processes end when they have had nothing to do for so long."""

_ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Each process is for one job: so numerical libraries have one thread there."""


@contextmanager
def _loky(jobs: int) -> Iterator[Executor]:
    try:
        # An optional dependency. Its processes need no guard in the user's main module.
        from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DrallocError(
            "several jobs need joblib: pip install 'dralloc[parallel]'"
        ) from None
    yield get_reusable_executor(
        max_workers=jobs,
        timeout=_IDLE_SECONDS,
        # A terminal sends Ctrl-C to all processes, but what it means is for the one that started the others to say.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
        env=_ONE_THREAD,
    )


@contextmanager
def _dask(jobs: int) -> Iterator[Executor]:
    try:
        import distributed  # noqa: PLC0415 - an optional dependency
        from dask import config  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DrallocError(
            "backend dask needs Dask: pip install 'dralloc[dask]'"
        ) from None
    try:
        client = distributed.Client.current()
    except ValueError:
        # Without a cluster that is configured, one of as many workers on this machine.
        local_cluster = {"n_workers": jobs, "threads_per_worker": 1}
        if config.get("scheduler-address", None):
            local_cluster = {}
        with distributed.Client(
            **local_cluster, dashboard_address=None
        ) as own_client:
            yield own_client.get_executor(pure=False)
    else:
        yield client.get_executor(pure=False)


class _RayExecutor(Executor):
    """Ray's tasks as futures."""

    def __init__(self) -> None:
        import ray  # noqa: PLC0415 - an optional dependency

        self._call = ray.remote(_called)

    def submit(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future: Future[T] = self._call.remote(function, args, kwargs).future()
        return future


def _called(
    function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> T:
    return function(*args, **kwargs)


@contextmanager
def _ray(jobs: int) -> Iterator[Executor]:
    try:
        import ray  # noqa: PLC0415 - an optional dependency
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
    try:
        yield _RayExecutor()
    finally:
        if starts_ray:
            ray.shutdown()


_EXECUTORS: Final[
    dict[Backend, Callable[[int], AbstractContextManager[Executor]]]
] = {Backend.LOKY: _loky, Backend.DASK: _dask, Backend.RAY: _ray}

# ----------------------------------------------------------------------------
# Processes on this machine.


@contextmanager
def starting_processes(
    warm_up: Callable[[], object], backend: Backend, jobs: int
) -> Iterator[None]:
    """Start the processes for later tasks while the block runs; only where they are on this machine.

    Parameters
    ----------
    warm_up
        What each of them does first: to be sent there, it brings its module.
    """
    if backend is not Backend.LOKY or not is_elsewhere(backend, jobs):
        yield
        return

    def start() -> None:
        shield_children()
        # Whatever is wrong is said when the processes are needed.
        with suppress(DrallocError), executor(backend, jobs) as processes:
            wait([processes.submit(warm_up) for _ in range(jobs)])

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


# ----------------------------------------------------------------------------
# Parcels.


class Parcel(Generic[T]):
    """Something large that many tasks carry: each process unpacks it once, and keeps it until another one comes.

    Parameters
    ----------
    content
        What is sent. It is packed when the first task goes elsewhere; later changes stay here.
    backend
        Where the tasks go. To processes on this machine it goes in a file, which they read once; to a cluster with each
        task.
    """

    def __init__(self, content: T, backend: Backend = Backend.LOKY) -> None:
        self.content = content
        self._backend = backend
        self._name = uuid4().hex
        self._packed: Path | bytes | None = None

    def pack(self) -> None:
        """Pack it, once. Tasks are pickled in another thread, while this one may change what is remembered in it.

        Raises
        ------
        DrallocError
            There is no room for it.
        """
        if self._packed is not None:
            return
        if self._backend is not Backend.LOKY:
            self._packed = pickle.dumps(self.content, protocol=5)
            return
        try:
            with tempfile.NamedTemporaryFile(
                prefix="dralloc-", delete=False
            ) as file:
                path = Path(file.name)
                weakref.finalize(self, path.unlink, missing_ok=True)
                pickle.dump(self.content, file, protocol=5)
        except OSError as failure:
            raise DrallocError(
                f"several jobs: the problem cannot be laid down for them: {failure}"
            ) from failure
        self._packed = path

    def __reduce__(
        self,
    ) -> tuple[Callable[[str, Path | bytes], Parcel[T]], tuple[object, ...]]:
        self.pack()
        return _unpacked, (self._name, self._packed)


_UNPACKED: Final[dict[str, Parcel[Any]]] = {}
"""The parcel that came last, by its name."""


def _unpacked(name: str, packed: Path | bytes) -> Parcel[Any]:
    if name not in _UNPACKED:
        _UNPACKED.clear()
        with without_garbage_collection():
            _UNPACKED[name] = Parcel(_content(packed))
    return _UNPACKED[name]


def _content(packed: Path | bytes) -> Any:
    if isinstance(packed, bytes):
        return pickle.loads(packed)
    with packed.open("rb") as file:
        return pickle.load(file)
