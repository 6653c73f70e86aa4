"""Files of objects: complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_objects
from dralloc.objects.save import save
from wire import Json, claim, node, request

OBJECTS = [node(), claim("a", request()), claim("no", request())]


@pytest.mark.parametrize(
    "name", ["x.yaml", "x.json", "x.yaml.gz", "x.json.gz", "x"]
)
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert save(OBJECTS, path) == 3
    assert load_objects(path) == OBJECTS
    assert [file.name for file in tmp_path.iterdir()] == [name]
    before = path.read_bytes()
    save(OBJECTS, path)
    assert path.read_bytes() == before


def test_no_objects_are_a_list_of_none(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert save([], path) == 0
    assert load_objects(path) == []


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("before")

    def broken() -> Iterator[Json]:
        yield node()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        save(broken(), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "link.yaml", tmp_path / "target.yaml"
    link.symlink_to(target)
    save(OBJECTS, link)
    assert link.is_symlink()
    assert load_objects(target) == OBJECTS


def test_devices_are_written_to(tmp_path: Path) -> None:
    assert save(OBJECTS, Path(os.devnull)) == 3
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        DrallocError, match="cannot be written: No such file or directory"
    ):
        save(OBJECTS, tmp_path / "missing" / "x.yaml")
