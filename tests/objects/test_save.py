"""Files of objects: complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_objects
from dralloc.objects.save import dump_yaml, require_writable, save
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


LIKE_NUMBERS = (
    "08 1e3 12e45678 1e+3 1.e5 5. .5 .5e3 -1e5 +08 0_8 1_0e3 0o17 0O17 0X1F"
    " 0B1 -0o7 0x1F 1_0"
)


@pytest.mark.parametrize("text", [*LIKE_NUMBERS.split(), *"yYnN", "yes", "on"])
def test_texts_that_look_like_something_else_stay_texts(
    tmp_path: Path, text: str
) -> None:
    """Racks are called 08, and commits 12e45678; without quotes kubectl takes them for numbers."""
    path = tmp_path / "x.yaml"
    metadata = {"name": "a", "labels": {"rack": text, text: "rack"}}
    labelled = {**node(), "metadata": metadata}
    save([labelled], path)
    assert load_objects(path) == [labelled]
    assert f"rack: '{text}'" in path.read_text()
    assert f"'{text}': rack" in path.read_text()


@pytest.mark.parametrize(
    "text", ["a08", "1e", "0o8", "8-gpu", "10.0.0.1", "1.2.3", "yy", "1Gi"]
)
def test_other_texts_have_no_quotes(text: str) -> None:
    assert dump_yaml([{"a": text, "b": 5, "c": 1.5}]) == (
        f"---\na: {text}\nb: 5\nc: 1.5\n"
    )


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


def test_what_a_killed_process_left_behind_is_in_nobodys_way(
    tmp_path: Path,
) -> None:
    """In a container, the next process has the same number."""
    path = tmp_path / "x.yaml"

    def killed() -> Iterator[Json]:
        [partial] = tmp_path.iterdir()
        left_behind.append(partial.name)
        yield node()

    left_behind: list[str] = []
    save(killed(), path)
    (tmp_path / left_behind[0]).write_text("a part")
    save(OBJECTS, path)
    assert load_objects(path) == OBJECTS


def test_a_file_may_be_written_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"

    def meanwhile() -> Iterator[Json]:
        save(OBJECTS, path)
        yield node()

    save(meanwhile(), path)
    assert load_objects(path) == [node()]
    assert list(tmp_path.iterdir()) == [path]


def test_names_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    path = tmp_path / f"{'n' * 250}.yaml"
    save(OBJECTS, path)
    assert load_objects(path) == OBJECTS


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "link.yaml", tmp_path / "target.yaml"
    link.symlink_to(target)
    save(OBJECTS, link)
    assert link.is_symlink()
    assert load_objects(target) == OBJECTS


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch()
    path.chmod(mode)
    save([node()], path)
    assert path.stat().st_mode & 0o777 == mode


def test_devices_are_written_to(tmp_path: Path) -> None:
    assert save(OBJECTS, Path(os.devnull)) == 3
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        DrallocError, match="cannot be written: No such file or directory"
    ):
        save(OBJECTS, tmp_path / "missing" / "x.yaml")


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    for path, why in (
        (tmp_path / "missing" / "x.yaml", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(DrallocError, match=f"cannot be written: {why}"):
            require_writable(path)
    kept = tmp_path / "x.yaml"
    save(OBJECTS, kept)
    for path in (kept, tmp_path / "y.yaml", Path(os.devnull)):
        require_writable(path)
    assert list(tmp_path.iterdir()) == [kept]
    assert load_objects(kept) == OBJECTS
