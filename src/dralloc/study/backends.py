"""Where the points of a study are worked out: processes here, or a Dask or Ray cluster, all through joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Final

from dralloc.errors import DrallocError
from dralloc.study.trial import Row, Trial

__all__ = ["Backend", "run_all"]


class Backend(StrEnum):
    """What works the points of a study out.

    ``LOKY``: processes on this machine. ``DASK``: the Dask cluster of the current ``distributed.Client``, or of Dask's
    configured scheduler address, or one on this machine. ``RAY``: the Ray cluster that is initialised or that
    ``RAY_ADDRESS`` names, or one on this machine.
    """

    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


def run_all(trials: Sequence[Trial], backend: Backend, jobs: int) -> Iterator[tuple[int, list[Row]]]:
    """Run trials, and give out each one's number and rows as it is done, in any order.

    Raises
    ------
    DrallocError
        What the backend needs is not installed.
    """
    if backend is Backend.LOKY and jobs == 1:
        yield from ((number, trial.run()) for number, trial in enumerate(trials))
        return
    try:
        import joblib  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise DrallocError("a study needs joblib: pip install 'dralloc[study]'") from None
    step = max(2 * jobs, 1) if backend in _IN_BATCHES else len(trials)
    returned = "list" if backend in _IN_BATCHES else "generator_unordered"
    with _BACKENDS[backend](jobs), joblib.parallel_config(backend=backend.value, n_jobs=jobs):
        for start in range(0, len(trials), step):
            batch = list(enumerate(trials))[start : start + step]
            yield from joblib.Parallel(return_as=returned)(joblib.delayed(_run)(*each) for each in batch)


def _run(number: int, trial: Trial) -> tuple[int, list[Row]]:
    return number, trial.run()


@contextmanager
def _loky(_jobs: int) -> Iterator[None]:
    yield


@contextmanager
def _dask(jobs: int) -> Iterator[None]:
    try:
        import distributed  # noqa: PLC0415 - an optional dependency
        from dask import config  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DrallocError("backend dask needs Dask: pip install 'dralloc[dask]'") from None
    try:
        distributed.Client.current()
    except ValueError:
        here = {} if config.get("scheduler-address", None) else {"n_workers": jobs, "threads_per_worker": 1}
        with distributed.Client(**here, dashboard_address=None):
            yield
    else:
        yield


@contextmanager
def _ray(jobs: int) -> Iterator[None]:
    try:
        import ray  # noqa: PLC0415 - an optional dependency
        from ray.util.joblib import register_ray  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DrallocError("backend ray needs Ray: pip install 'dralloc[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        ray.init(**({} if "RAY_ADDRESS" in os.environ else {"num_cpus": jobs, "include_dashboard": False}))
    register_ray()
    try:
        yield
    finally:
        if mine:
            ray.shutdown()


_BACKENDS: Final[dict[Backend, Callable[[int], AbstractContextManager[None]]]] = {
    Backend.LOKY: _loky,
    Backend.DASK: _dask,
    Backend.RAY: _ray,
}

_IN_BATCHES: Final = {Backend.RAY}
"""Those that give out nothing before everything is done."""
