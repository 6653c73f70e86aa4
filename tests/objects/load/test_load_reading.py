"""Files, directories and standard input: text formats and lists."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from dralloc.objects import load as loading
from dralloc.objects.api import Device, Version
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import InputError
from dralloc.objects.load import load, load_documents, load_objects, load_text
from dralloc.objects.quantity import parse_quantity
from objects.load.texts import NODE, SLICE, findings_of_error

SHARED = ROOT.parent / "shared"


def slice_json(slice_index: int = 0, **more: Any) -> dict[str, Any]:
    spec = {
        "driver": "d",
        "nodeName": f"n{slice_index}",
        "pool": {"name": f"p{slice_index}", "resourceSliceCount": 1},
        "devices": [
            {
                "name": "a",
                "attributes": {"text": {"string": '},{"apiVersion": ]'}},
            },
            {"name": "b"},
        ],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s{slice_index}"},
        "spec": spec,
    } | more


def devices(text: str) -> tuple[Device, ...]:
    return load_text(NODE + "---\n" + text).slices[0].spec.devices


def findings(text: str | bytes, **options: Any) -> str:
    return "\n".join(map(str, load_text(text, **options).findings))


def test_the_readme_case() -> None:
    cluster = load_text(SLICE + "---\n" + NODE)
    assert cluster.slices[0].spec.devices[0].capacity[
        "memory"
    ].value == parse_quantity("40Gi")
    assert [node.name for node in cluster.nodes] == ["m"]
    assert not cluster.findings


def test_files_directories_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.yaml").write_text(NODE.replace("name: m", "name: b"))
    (tmp_path / "a.yml").write_text(NODE.replace("name: m", "name: a"))
    (tmp_path / "sub" / "c.json").write_text(
        json.dumps(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}}
        )
    )
    (tmp_path / "sub" / "d.yaml.gz").write_bytes(
        gzip.compress(NODE.replace("name: m", "name: d").encode())
    )
    (tmp_path / "README.md").write_text("not read")
    stdin = io.BytesIO(NODE.replace("name: m", "name: stdin").encode())
    cluster = load("-", tmp_path, tmp_path / "b.yaml", "-", stdin=stdin)
    assert [node.name for node in cluster.nodes] == [
        "stdin",
        "a",
        "b",
        "c",
        "d",
    ]
    assert [str(finding) for finding in cluster.findings] == [
        f"{tmp_path / 'b.yaml'}: Node b: is the same as in {tmp_path / 'b.yaml'}, kept once"
    ]


def test_a_list_of_paths_is_as_good_as_single_ones(tmp_path: Path) -> None:
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "c.yaml"]
    for path in paths:
        path.write_text(NODE.replace("name: m", f"name: {path.stem}"))
    for given in ((paths,), tuple(paths), (map(str, paths[:2]), paths[2])):
        assert [node.name for node in load(*given).nodes] == ["a", "b", "c"]
    assert load_objects(paths) == load_objects(*paths)
    with pytest.raises(
        InputError, match=r"d\.yaml: cannot be read: No such file"
    ):
        load([tmp_path / "d.yaml"])


def test_standard_input_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(NODE.encode()))
    )
    assert [node.name for node in load("-").nodes] == ["m"]


def test_garbage_collection_is_left_as_it_was() -> None:
    import gc

    # The command line switches it off for good, in tests that run it here, too.
    gc.enable()
    load("-", stdin=io.BytesIO(NODE.encode()))
    assert gc.isenabled()
    gc.disable()
    try:
        load("-", stdin=io.BytesIO(NODE.encode()))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_lists_are_taken_apart() -> None:
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [slice_json(0), slice_json(1)],
        }
    )
    assert len(load_text(text).slices) == 2
    typed = [
        {
            key: value
            for key, value in slice_json(2).items()
            if key not in ("kind", "apiVersion")
        }
    ]
    text = json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSliceList",
            "metadata": {},
            "items": typed,
        }
    )
    assert load_text(text).slices[0].name == "s2"
    assert load_text("apiVersion: v1\nkind: List\nitems: []\n") == Cluster()
    assert (
        load_text("apiVersion: v1\nkind: PodList\nitems: null\n") == Cluster()
    )


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("separators", [None, (",", ":")])
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_long_lists_are_read_item_by_item(
    monkeypatch: pytest.MonkeyPatch,
    indent: int | None,
    separators: tuple[str, str] | None,
    typed: bool,
    count: int,
) -> None:
    items = [slice_json(index) for index in range(count)]
    api_version, kind = (
        ("resource.k8s.io/v1", "ResourceSliceList") if typed else ("v1", "List")
    )
    if typed:
        items = [
            {"metadata": item["metadata"], "spec": item["spec"]}
            for item in items
        ]
    whole = {
        "apiVersion": api_version,
        "items": items,
        "kind": kind,
        "metadata": {"resourceVersion": "]"},
    }
    text = json.dumps(whole, indent=indent, separators=separators)
    expected = load_text(text)
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    assert load_text(text) == expected
    assert len(expected.slices) == count


def test_long_lists_with_unexpected_text_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    nested = [{"apiVersion": "a"}, {"apiVersion": "b"}, {"apiVersion": "c"}]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {
            "devices": {
                "config": [{"opaque": {"driver": "d", "parameters": nested}}]
            }
        },
    }
    text = json.dumps(
        {
            "items": [slice_json(0), claim, slice_json(1)],
            "kind": "List",
            "apiVersion": "v1",
        }
    )
    cluster = load_text(text)
    assert [resource_slice.name for resource_slice in cluster.slices] == [
        "s0",
        "s1",
    ]
    assert cluster.claims[0].spec.devices.config[0].opaque is not None
    assert cluster.claims[0].spec.devices.config[0].opaque.parameters == nested


def test_a_defect_in_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    text = json.dumps(
        {
            "apiVersion": "v1",
            "items": [slice_json(index) for index in range(5)],
            "kind": "List",
        }
    )
    broken = text.replace('"p3"', "p3")
    with pytest.raises(InputError) as error:
        load_text(broken, source="a.json")
    assert (
        str(error.value)
        == f"a.json:1:{broken.index('p3') + 1}: is not JSON: Expecting value"
    )


def test_several_json_values_in_a_row() -> None:
    text = "\n".join(json.dumps(slice_json(index)) for index in range(3))
    assert [
        resource_slice.name for resource_slice in load_text(text).slices
    ] == ["s0", "s1", "s2"]
    pretty = "\n".join(
        json.dumps(slice_json(index), indent=2) for index in range(2)
    )
    assert len(load_text(pretty).slices) == 2


def test_flow_style_yaml_is_not_json() -> None:
    assert (
        load_text(
            "{apiVersion: v1, kind: Node, metadata: {name: m}}", source="a.yaml"
        )
        .nodes[0]
        .name
        == "m"
    )


def test_a_byte_order_mark_is_no_matter() -> None:
    assert load_text(b"\xef\xbb\xbf" + NODE.encode()).nodes[0].name == "m"


def test_documents_that_are_data_already() -> None:
    cluster = load_documents(
        [
            slice_json(0),
            {"apiVersion": "v1", "kind": "List", "items": [slice_json(1)]},
        ]
    )
    assert [resource_slice.name for resource_slice in cluster.slices] == [
        "s0",
        "s1",
    ]
    assert load_documents([]) == Cluster()


@pytest.mark.parametrize(
    "plain",
    ["2026-01-01", "10:10", "=", "0x", "NaN", "yEs", "0b2", ".5_0", "1e999"],
)
def test_text_that_other_yaml_readers_turn_into_something_else(
    plain: str,
) -> None:
    [device] = devices(SLICE.replace("A100", plain))
    assert device.attributes["model"] == plain


@pytest.mark.parametrize("quoted", ['"yes"', "'08'", "!!str on", '"1e3"'])
def test_quotes_make_text_of_anything(quoted: str) -> None:
    [device] = devices(SLICE.replace("A100", quoted))
    assert device.attributes["model"] == quoted.rsplit(maxsplit=1)[-1].strip(
        "'\""
    )


@pytest.mark.parametrize(
    ("kind", "plain", "meant"),
    [
        *(("bool", word, True) for word in ("y", "Yes", "ON", "True")),
        *(("bool", word, False) for word in ("N", "no", "Off", "FALSE")),
        ("int", "08", 8),
        ("int", "0_9", 9),
        ("int", "1e3", 1000),
        ("int", "5.0", 5),
        ("int", "0X1f", 31),
        ("int", "0O17", 15),
        ("int", "-0B11", -3),
        ("int", "!!float 3", 3),
    ],
)
def test_what_kubernetes_takes_for_no_text_without_quotes(
    kind: str, plain: str, meant: int
) -> None:
    [device] = devices(SLICE.replace("{string: A100}", f"{{{kind}: {plain}}}"))
    assert device.attributes["model"] == meant
    assert findings_of_error(
        SLICE.replace("A100", plain.rsplit(maxsplit=1)[-1])
    ).startswith("a.yaml:12:15: ResourceSlice s: spec.devices[0]")


def test_versions_need_quotes_only_where_they_look_like_numbers() -> None:
    [device] = devices(SLICE.replace("{string: A100}", "{version: 580.126.9}"))
    assert device.attributes["model"] == Version("580.126.9")
    assert findings_of_error(
        SLICE.replace("{string: A100}", "{version: 1.5}")
    ).endswith("must be a string, not 1.5")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.1", "100m"),
        ("1e3", "1k"),
        ("10", "10"),
        ("0x10", "16"),
        ("010", "8"),
        ("1_000", "1k"),
    ],
)
def test_quantities_that_are_numbers_in_yaml(written: str, meant: str) -> None:
    [device] = devices(SLICE.replace("40Gi", written))
    assert str(device.capacity["memory"].value) == meant


def test_integers_in_json() -> None:
    text = json.dumps(slice_json()).replace(
        '"resourceSliceCount": 1', '"resourceSliceCount": 1.0'
    )
    assert findings_of_error(text).endswith(
        "spec.pool.resourceSliceCount: must be an integer, not 1.0"
    )


def test_anchors_and_merge_keys() -> None:
    text = (
        SLICE
        + "  - {<<: &base {name: gpu-1, allNodes: true}, name: gpu-2}\n  - *base\n"
    )
    assert [device.name for device in devices(text)] == [
        "gpu-0",
        "gpu-2",
        "gpu-1",
    ]


@pytest.mark.parametrize(
    ("mapping", "name"),
    [
        ("{<<: *base, name: own}", "own"),
        ("{name: own, <<: *base}", "base"),
        ("{name: own, <<: [{name: other}, *base]}", "other"),
        ("{<<: *base, name: own, <<: {allNodes: true}}", "own"),
    ],
)
def test_what_is_merged_counts_where_it_stands(mapping: str, name: str) -> None:
    """As in kubectl, and unlike in YAML 1.1."""
    text = SLICE + f"  - &base {{name: base}}\n  - {mapping}\n"
    assert devices(text)[-1].name == name


def test_a_key_may_be_merged_and_there_but_not_there_twice() -> None:
    for twice in ("{name: a, name: b}", "{<<: {name: a}, name: b, name: c}"):
        assert 'the key "name" is there twice' in findings_of_error(
            f"{SLICE}  - {twice}\n"
        )


def test_keys_become_text() -> None:
    text = NODE.replace(
        "{name: m}", "{name: m, labels: {1: a, true: b, 0.5: c, x: d}}"
    )
    assert load_text(text).nodes[0].metadata.labels == {
        "1": "a",
        "true": "b",
        "0.5": "c",
        "x": "d",
    }


def test_other_kinds_are_counted_in_one_notice() -> None:
    other = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    text = (
        NODE
        + other
        + other
        + "---\napiVersion: v1\nkind: Event\nmetadata: {name: e}\n"
    )
    cluster = load_text(text)
    assert cluster.skipped == {"ConfigMap": 2, "Event": 1}
    assert [str(finding) for finding in cluster.findings] == [
        "not used: ConfigMap (2), Event (1)"
    ]


def test_kinds_that_share_a_name_with_one_that_is_read_are_told_with_their_group() -> (
    None
):
    group = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: a}\n"
    cluster = load_text(NODE + "---\n" + group)
    assert cluster.skipped == {"PodGroup.scheduling.run.ai": 1}


def test_unknown_fields_are_findings_or_errors() -> None:
    text = SLICE + "    colour: red\n"
    assert findings(text + "---\n" + NODE, source="a.yaml") == (
        "a.yaml: document 1: ResourceSlice s: spec.devices[0].colour: unknown field"
    )
    with pytest.raises(InputError, match="colour: unknown field"):
        load_text(text, strict=True)


def test_empty_files_are_findings_unless_there_is_nothing_else(
    tmp_path: Path,
) -> None:
    empty, node = tmp_path / "empty.yaml", tmp_path / "node.yaml"
    empty.write_text("# nothing\n")
    node.write_text(NODE)
    assert [str(finding) for finding in load(empty, node).findings] == [
        f"{empty}: holds no objects"
    ]
    assert load() == Cluster()


def shared_files() -> list[Path]:
    folders = ("claims", "resourceslices", "kep_examples", "scheduler_perf")
    return sorted(
        file
        for folder in folders
        for file in (SHARED / "data" / folder).rglob("*.yaml")
    )


NOT_LOADABLE = {
    "device-taint-pod-noschedule__4-pod-not-scheduled.yaml": "Pod basic-resourceclaimtemplate/pod-no-schedule: "
    "apiVersion: is required",
    "kep4815_mig_fragment_0.yaml": "kind: is required: this is not a Kubernetes object",
    "kep4815_mig_fragment_1.yaml": "kind: is required: this is not a Kubernetes object",
    "kep4815_tpu_4x4.yaml": "ResourceSlice device-slice: was given before in kep4815_tpu_4x4.yaml: document 1 "
    "with different content",
}


@pytest.mark.skipif(
    not SHARED.is_dir(),
    reason="the collected data is not beside the repository",
)
def test_collected_files_load_or_say_why_not() -> None:
    for file in shared_files():
        try:
            cluster = load_text(file.read_bytes(), source=file.name)
        except InputError as error:
            [finding] = error.findings
            assert str(finding).endswith(NOT_LOADABLE[file.name])
        else:
            assert file.name not in NOT_LOADABLE
            assert not [
                finding
                for finding in cluster.findings
                if finding.rule == "unknown field"
            ]
            assert bool(cluster.unresolved) <= file.name.startswith(
                "device-taint-pod-no"
            )


def test_a_directory_may_hold_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_text("says: no object\n")
    (tmp_path / "slice.yaml").write_text(SLICE)
    cluster = load(tmp_path)
    assert len(cluster.slices) == 1
    assert cluster.skipped == {"no Kubernetes object": 1}
    with pytest.raises(InputError, match=r"notes\.yaml:1:1: kind: is required"):
        load(tmp_path / "notes.yaml")
