"""Executors run what is submitted, and parcels arrive once."""

from __future__ import annotations

import os
import pickle
import tempfile
from concurrent.futures import wait
from pathlib import Path

import pytest

from dralloc.objects.choices import Backend
from dralloc.objects.errors import DrallocError
from dralloc.solve import backends
from dralloc.solve.backends import Parcel, executor


def test_one_job_is_done_at_once_in_this_process() -> None:
    with executor(Backend.LOKY, 1) as workers:
        future = workers.submit(os.getpid)
    assert future.done()
    assert future.result() == os.getpid()


def test_several_jobs_are_done_in_other_processes() -> None:
    with executor(Backend.LOKY, 2) as workers:
        futures = [workers.submit(os.getpid) for _ in range(6)]
        wait(futures)
    processes = {future.result() for future in futures}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes


def test_a_process_that_dies_is_an_error_of_the_user() -> None:
    with (
        pytest.raises(DrallocError, match="a process died"),
        executor(Backend.LOKY, 2) as workers,
    ):
        workers.submit(os._exit, 1).result()


@pytest.mark.parametrize("backend", Backend)
def test_parcels_are_unpacked_once(backend: Backend) -> None:
    parcel = Parcel({"content": 1}, backend)
    sent = [pickle.dumps(parcel) for _ in range(2)]
    first, second = map(pickle.loads, sent)
    assert first.content == parcel.content
    assert first.content is not parcel.content
    assert first is second


def test_a_parcel_that_comes_takes_the_place_of_the_one_before() -> None:
    parcels = [Parcel(content) for content in ("first", "second")]
    for parcel in parcels:
        assert pickle.loads(pickle.dumps(parcel)).content == parcel.content
        assert len(backends._UNPACKED) == 1


def test_processes_here_read_a_parcel_from_a_file_which_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    parcel = Parcel(list(range(10_000)))
    assert len(pickle.dumps(parcel)) < 1000
    pickle.dumps(parcel)
    assert len(list(tmp_path.iterdir())) == 1
    del parcel
    assert not list(tmp_path.iterdir())


def test_parcels_to_a_cluster_are_no_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(pickle.dumps(Parcel(list(range(10_000)), Backend.DASK))) > 10_000
    assert not list(tmp_path.iterdir())


def test_what_is_packed_does_not_change_any_more() -> None:
    content = ["before"]
    parcel = Parcel(content)
    parcel.pack()
    content.append("after")
    assert pickle.loads(pickle.dumps(parcel)).content == ["before"]


def test_without_room_for_a_parcel_it_is_said_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(DrallocError, match="several jobs: the problem cannot"):
        Parcel("content").pack()
