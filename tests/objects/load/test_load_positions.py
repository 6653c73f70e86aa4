"""Lines and columns of findings: what stands there in the file is the field that the finding is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dralloc.objects.errors import Finding, InputError
from dralloc.objects.load import load, load_text, positions, read
from dralloc.objects.load.positions import ObjectSource, SourceText, located
from wire import Json, claim, device, request, resource_slice

OBJECTS = [
    resource_slice(
        [
            device("gpu-0", {"model": "A", "a/b": True}),
            device("gpu-1", {"x": 1}),
        ]
    ),
    claim("c", request(count=3), request("second")),
]
LIST = {"apiVersion": "v1", "kind": "List", "items": OBJECTS}
TEXTS = {
    "documents.yaml": yaml.safe_dump_all(OBJECTS),
    "comment.yaml": f"# a\n---\n{yaml.safe_dump_all(OBJECTS)}",
    "flow.yaml": yaml.safe_dump_all(OBJECTS, default_flow_style=True),
    "list.yaml": yaml.safe_dump(LIST, sort_keys=False),
    "indented.yaml": yaml.safe_dump(LIST, indent=4, sort_keys=False),
    "list.json": json.dumps(LIST, indent=4),
    "line.json": json.dumps(LIST),
    "tabs.json": json.dumps(LIST, indent="\t"),
    "row.json": "\n".join(map(json.dumps, OBJECTS)),
}


def paths(part: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths of all fields of an object, with their names."""
    if isinstance(part, dict):
        for name, below in part.items():
            dotted = f"{path}.{name}".removeprefix(".")
            step = f"{path}[{name}]" if "/" in name else dotted
            yield step, name
            yield from paths(below, step)
    elif isinstance(part, list):
        for index, below in enumerate(part):
            yield from paths(below, f"{path}[{index}]")


def sources(name: str, file: Path) -> list[ObjectSource]:
    text = SourceText(str(file), 1 << 20)
    if "items" in TEXTS[name]:
        whole = ObjectSource.at(text, 1)
        return [whole.item(0), whole.item(1)]
    return [
        ObjectSource.at(text, document, is_only=False) for document in (1, 2)
    ]


@pytest.mark.parametrize("kept", [1 << 20, 0])
@pytest.mark.parametrize("name", TEXTS)
def test_each_field_is_where_its_position_says(
    name: str, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a text is long, and objects are cut out of it."""
    monkeypatch.setattr(positions, "_KEPT", kept)
    if not kept and name in ("row.json", "flow.yaml"):
        pytest.skip("long texts of this form are not cut")
    file = tmp_path / name
    file.write_text(TEXTS[name])
    lines = TEXTS[name].splitlines()
    for source, subject in zip(sources(name, file), OBJECTS, strict=True):
        for path, field in paths(subject):
            [finding] = located([Finding(source, "", path, "wrong")])
            there = lines[finding.line - 1][finding.column - 1 :]
            assert there.lstrip("\"'").startswith(field), (path, there)


def test_of_what_is_absent_the_object_around_it_is_shown(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("spec:\n  devices:\n  - name: a\n  - x: 1\n")
    source = ObjectSource.at(SourceText(str(file), 100), 1)
    locations = {
        "spec.devices[1].name": "4:5",
        "spec.devices[7]": "2:3",
        "spec.devices[0].exactly.name": "3:5",
        "status": "1:1",
        "": "1:1",
    }
    for path, location in locations.items():
        [finding] = located([Finding(source, "", path, "wrong")])
        assert str(finding).startswith(f"{file}:{location}:"), path


def test_a_file_that_is_gone_or_other_has_no_lines(tmp_path: Path) -> None:
    source = ObjectSource.at(SourceText(str(tmp_path / "a.yaml"), 100), 1)
    assert located([Finding(source, "", "spec", "wrong")])[0].line == 0
    plain = Finding("a.yaml", "", "spec", "wrong")
    assert located([plain]) == [plain]


def test_errors_of_loading_have_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump_all([OBJECTS[0], wrong_count()]))
    with pytest.raises(InputError) as error:
        load(file)
    [finding] = error.value.findings
    line = file.read_text().splitlines()[finding.line - 1]
    assert line[finding.column - 1 :] == "count: many"
    assert str(finding) == (
        f"{file}:{finding.line}:{finding.column}: ResourceClaim default/c: "
        'spec.devices.requests[0].exactly.count: must be an integer, not "many"'
    )


def test_texts_and_standard_input_have_lines_too() -> None:
    with pytest.raises(InputError) as error:
        load_text(json.dumps(wrong_count(), indent=1), source="x")
    assert error.value.findings[0].line > 1


def wrong_count() -> Json:
    broken = claim("c", request(count=3))
    broken["spec"]["devices"]["requests"][0]["exactly"]["count"] = "many"
    return broken


@pytest.mark.parametrize("is_json", [False, True])
def test_fields_behind_an_empty_key_have_lines(is_json: bool) -> None:
    """A key may be an empty text, of which the API server says what is wrong."""
    labels = {"": "a", "b": 5, "c": 6}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "m", "labels": labels},
    }
    text = json.dumps(node, indent=1) if is_json else yaml.safe_dump(node)
    with pytest.raises(InputError) as error:
        load_text(text)
    lines = text.splitlines()
    for finding, value in zip(
        located(error.value.findings), (5, 6), strict=True
    ):
        assert lines[finding.line - 1].strip(" ,").endswith(f": {value}")


def test_loading_looks_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions cost nothing where nothing is wrong."""
    monkeypatch.setattr(positions, "_places", None)
    file = tmp_path / "a.yaml"
    file.write_text(TEXTS["documents.yaml"])
    assert load(file).claims
    assert not read(file).refused


def test_a_source_is_plain_text_elsewhere() -> None:
    import pickle

    source = ObjectSource.at(SourceText("a.yaml", 100), 2, is_only=False)
    assert type(pickle.loads(pickle.dumps(source))) is str
    assert source == "a.yaml: document 2"
