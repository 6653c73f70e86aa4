"""Clear messages for what is broken, every defect in one error."""

from collections.abc import Callable
from errno import EACCES
from pathlib import Path
from typing import Any

import pytest
import yaml

from dralloc.objects.errors import InputError
from dralloc.objects.load import load, load_objects, read
from objects.load.texts import NODE, SLICE, findings_of_error

BROKEN: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "a.yaml: holds no objects"),
    "only comments": ("# a\n---\n", "a.yaml: holds no objects"),
    "a list": ("- a\n- b\n", "a.yaml:1:1: is a list, not an object"),
    "a JSON list": ("[1, 2]", "a.yaml:1:1: is a list, not an object"),
    "plain text": ("hello", 'a.yaml:1:1: is just "hello", not an object'),
    "binary": (b"\x89PNG\r\n\x1a\n", "a.yaml: is not text in UTF-8: byte 0x89 at offset 0"),
    "UTF-16": (NODE.encode("utf-16"), "a.yaml: is not text in UTF-8: byte 0xff at offset 0"),
    "control characters": (
        "a: \x00",
        "a.yaml: is not YAML: character #x0000 at offset 3: control characters are not allowed",
    ),
    "broken gzip": (b"\x1f\x8b\x08\x00", "a.yaml: is not valid gzip data: Compressed file ended before the "
                    "end-of-stream marker was reached"),
    "no kind": ("devices: []", "a.yaml:1:1: kind: is required: this is not a Kubernetes object"),
    "no apiVersion": ("kind: Node", "a.yaml:1:1: Node: apiVersion: is required"),
    "no name": ("apiVersion: v1\nkind: Node", "a.yaml:1:1: Node: metadata.name: is required, or metadata.generateName"),
    "no name, fast": (
        SLICE.replace("  name: s\n", "  uid: s\n"),
        "a.yaml:3:1: ResourceSlice: metadata.name: is required, or metadata.generateName",
    ),
    "metadata is text": (
        "apiVersion: v1\nkind: Node\nmetadata: m", 'a.yaml:3:1: Node: metadata: must be an object, not "m"'
    ),
    "unknown version": (
        SLICE.replace("k8s.io/v1", "k8s.io/v2"),
        'a.yaml:1:1: ResourceSlice s: apiVersion: "resource.k8s.io/v2" is not supported, only resource.k8s.io/v1, '
        "resource.k8s.io/v1beta2, resource.k8s.io/v1beta1, resource.k8s.io/v1alpha3",
    ),
    "no spec": (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}",
        "a.yaml:1:1: ResourceSlice s: spec: is required",
    ),
    "no driver": (SLICE.replace("driver:", "#"), "a.yaml:5:1: ResourceSlice s: spec.driver: is required"),
    "no slice count": (
        SLICE.replace(", resourceSliceCount: 1", ""),
        "a.yaml:8:3: ResourceSlice s: spec.pool.resourceSliceCount: is required",
    ),
    "quantity": (
        SLICE.replace("40Gi", "10Gx"),
        "a.yaml:14:16: ResourceSlice s: spec.devices[0].capacity[memory].value: '10Gx' is not a quantity: "
        "unknown suffix 'Gx'",
    ),
    "quantity of the wrong type": (
        SLICE.replace("40Gi", "true"),
        "a.yaml:14:16: ResourceSlice s: spec.devices[0].capacity[memory].value: must be a quantity",
    ),
    "capacity without value": (
        SLICE.replace("{value: 40Gi}", "40Gi"),
        'a.yaml:14:7: ResourceSlice s: spec.devices[0].capacity[memory]: must be an object, not "40Gi": '
        "v1 has {value: 40Gi}, where v1alpha3 has the amount alone",
    ),
    "number for text": (
        SLICE.replace("gpu-0", "0"), "a.yaml:10:5: ResourceSlice s: spec.devices[0].name: must be a string, not 0"
    ),
    "text for number": (
        SLICE.replace("generation: 1", 'generation: "1"'),
        'a.yaml:8:19: ResourceSlice s: spec.pool.generation: must be an integer, not "1"',
    ),
    "text for a truth value": (
        SLICE + "    allNodes: sure\n",
        'a.yaml:15:5: ResourceSlice s: spec.devices[0].allNodes: must be true or false, not "sure"',
    ),
    "an object for a list": (
        SLICE.replace("devices:", "sharedCounters: {}\n  devices:"),
        "a.yaml:9:3: ResourceSlice s: spec.sharedCounters: must be a list, not an object",
    ),
    "a list for an object": (
        SLICE.replace("{string: A100}", "[A100]"),
        "a.yaml:12:7: ResourceSlice s: spec.devices[0].attributes[model]: must be an object, not a list",
    ),
    "two attribute values": (
        SLICE.replace("{string: A100}", "{string: A100, int: 1}"),
        "a.yaml:12:7: ResourceSlice s: spec.devices[0].attributes[model]: has more than one value: int, string",
    ),
    "both kinds of request": (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
        "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: d},"
        " firstAvailable: [{name: a, deviceClassName: d}]}]}}",
        "a.yaml:4:29: ResourceClaim c: spec.devices.requests[0]: has both exactly and firstAvailable, "
        "only one is allowed",
    ),
    "no kind of request": (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
        "spec: {devices: {requests: [{name: r}]}}",
        "a.yaml:4:29: ResourceClaim c: spec.devices.requests[0]: needs exactly or firstAvailable",
    ),
    "no class": (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
        "spec: {devices: {requests: [{name: r, exactly: {}}]}}",
        "a.yaml:4:39: ResourceClaim c: spec.devices.requests[0].exactly.deviceClassName: is required",
    ),
    "a label that is not text": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: m, labels: {gpu: true}}",
        "a.yaml:3:30: Node m: metadata.labels[gpu]: must be a string, not true",
    ),
    "YAML": ("a: b: c\n", "a.yaml:1:5: is not YAML: mapping values are not allowed in this context"),
    "YAML in the second document": (
        NODE + "---\na: [1, 2\nb: 3\n",
        "a.yaml:6:2: is not YAML: did not find expected ',' or ']'",
    ),
    "a tab": ("a:\n\tb: 1\n", "a.yaml:2:1: is not YAML: found character that cannot start any token"),
    "a key that stands there twice": (
        SLICE + "    name: gpu-1\n", 'a.yaml:15:5: is not YAML: the key "name" is there twice'
    ),
    "a key that is a list": ("? [a]\n: b\n", "a.yaml:1:3: is not YAML: a key must be text"),
    "a tag": ("a: !secret b\n", "a.yaml:1:4: is not YAML: could not determine a constructor for the tag "
              "'!secret'"),
    "an unknown anchor": ("a: *b\n", "a.yaml:1:4: is not YAML: found undefined alias"),
    "JSON": ('{"a": }', "a.json:1:7: is not JSON: Expecting value"),
    "JSON without end": ('{"a": 1', "a.json:1:8: is not JSON: Expecting ',' delimiter"),
    "JSON with more behind it": (
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}} x',
        "a.json:1:65: is not JSON: Expecting value",
    ),
    "an item that is no object": (
        "apiVersion: v1\nkind: List\nitems: [3]", "a.yaml:3:9: is just 3, not an object"
    ),
    "a list in itself": (
        "&l {apiVersion: v1, kind: List, items: [*l]}",
        "a.yaml:1:41: is not YAML: is nested too deeply, more than 254 levels"
    ),
    "labels in themselves": (
        "{apiVersion: v1, kind: Node, metadata: &m {name: m, labels: *m}}",
        "a.yaml:1:61: is not YAML: is nested too deeply, more than 254 levels"
    ),
    "the same name twice": (
        NODE + "---\n" + NODE.replace("{name: m}", "{name: m, labels: {a: b}}"),
        "a.yaml:5:1: Node m: was given before in a.yaml: document 1 with different content",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_input(name: str) -> None:
    text, message = BROKEN[name]
    assert findings_of_error(text, message.partition(":")[0]) == message


def test_all_problems_of_all_files_are_one_error(tmp_path: Path) -> None:
    first, second, missing = (
        tmp_path / "a.yaml",
        tmp_path / "b.json",
        tmp_path / "c.yaml",
    )
    first.write_text(
        SLICE.replace("40Gi", "x")
        + "---\n"
        + NODE
        + "---\n"
        + SLICE.replace("driver:", "#")
    )
    second.write_text("{")
    with pytest.raises(InputError) as error:
        load(first, second, missing)
    assert [
        (finding.source, finding.path) for finding in error.value.findings
    ] == [
        (f"{first}: document 1", "spec.devices[0].capacity[memory].value"),
        (f"{first}: document 3", "spec.driver"),
        (str(second), ""),
        (str(missing), ""),
    ]
    assert (
        str(error.value).splitlines()[-1]
        == f"{missing}: cannot be read: No such file or directory"
    )


@pytest.mark.parametrize("call", [load, load_objects, read])
@pytest.mark.parametrize(
    ("name", "why"),
    [("n" * 300, "File name too long"), ("a\0b", "embedded null byte")],
)
def test_what_no_file_can_be_called(
    call: Callable[[str], object], name: str, why: str
) -> None:
    with pytest.raises(InputError) as error:
        call(name)
    assert str(error.value) == f"{name}: cannot be read: {why}"


def test_a_directory_that_may_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    path = tmp_path / "a.yaml"
    with pytest.raises(InputError) as error:
        load(path)
    assert str(error.value) == f"{path}: cannot be read: Permission denied"


def test_a_directory_without_files(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        load(tmp_path)
    assert (
        str(error.value) == f"{tmp_path}: holds no *.yaml, *.yml or *.json file"
    )


def test_later_files_override_earlier_ones_and_say_so(tmp_path: Path) -> None:
    first, second, third = (
        tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml")
    )
    first.write_text(
        yaml.safe_dump_all([labelled("k", "1"), labelled("m", "1")])
    )
    second.write_text(yaml.safe_dump(labelled("k", "2")))
    third.write_text(
        yaml.safe_dump_all([labelled("k", "3"), labelled("m", "1")])
    )
    cluster = load(first, second, third)
    assert [(node.name, node.metadata.labels) for node in cluster.nodes] == [
        ("k", {"v": "3"}),
        ("m", {"v": "1"}),
    ]
    told = [
        str(finding).replace(f"{tmp_path}/", "") for finding in cluster.findings
    ]
    assert told[:3] == [
        "b.yaml: Node k: overrides the one in a.yaml: document 1",
        "c.yaml: document 1: Node k: overrides the one in b.yaml",
        "c.yaml: document 2: Node m: is the same as in a.yaml: document 2, kept once",
    ]
    assert load(tmp_path).nodes[0].metadata.labels == {"v": "3"}


def labelled(name: str, version: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"v": version}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
