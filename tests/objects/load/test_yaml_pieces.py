"""YAML that is read piece by piece means what it means when it is parsed as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dralloc.objects import load as loading
from dralloc.objects.api.slice_reader import TemplateDevices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import InputError
from dralloc.objects.load import load_objects, load_text, yaml_pieces
from dralloc.objects.load.yaml_text import yaml_documents
from dralloc.objects.save import dump_yaml
from objects.load.test_slice_texts import both, slice_of

NODES = 6


def pod(pod_index: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{pod_index}"},
        "spec": {
            "nodeName": f"node-{pod_index % 2}",
            "nodeSelector": {"rack": f"rack-{pod_index}"},
        },
    }


OBJECTS = [
    document
    for index in range(NODES)
    for document in (slice_of(index), pod(index))
]


def listed(margin: str = "") -> str:
    """The objects as items of a list, as ``kubectl get -o yaml`` and others write it."""
    items = [
        dump_yaml([document])
        .removeprefix("---\n")
        .replace("\n", f"\n{margin}  ")
        .rstrip()
        for document in OBJECTS
    ]
    return (
        "apiVersion: v1\nitems:\n"
        + "".join(f"{margin}- {item}\n" for item in items)
        + "kind: List\nmetadata: {}\n"
    )


LAYOUTS = {
    "documents": dump_yaml(OBJECTS),
    "a list": listed(),
    "a list with a margin": listed("  "),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_differs_in_names_is_parsed_three_times(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []

    def counted(text: bytes, limit: int) -> tuple[list[Any], str | None]:
        # Only a text as a whole may have aliases.
        if limit == 0:
            parsed.append(text)
        return yaml_documents(text, limit)

    monkeypatch.setattr(yaml_pieces, "yaml_documents", counted)
    quick, plain = both(LAYOUTS[layout], monkeypatch)
    assert isinstance(quick, Cluster)
    assert quick == plain
    assert sum(b"Pod" in text for text in parsed) == 3
    *_, last_but_one, last = [
        resource_slice.spec.devices for resource_slice in quick.slices
    ]
    assert isinstance(last_but_one, TemplateDevices)
    assert isinstance(last, TemplateDevices)
    assert last_but_one.template is last.template
    assert [pod_object.spec.node_name for pod_object in quick.pods] == [
        "node-0",
        "node-1",
    ] * 3


CHANGES = {
    "nothing": ("", ""),
    "a comment": ("kind: Pod\n", "kind: Pod # as pod-7\n"),
    "a comment that ends like a name": (
        "kind: Pod\n",
        "kind: Pod\n# note: pod-7\n",
    ),
    "a text that goes on": (
        "rack: rack-5\n",
        "rack: rack-5\n        and-more\n",
    ),
    "a text in lines": (
        "rack: rack-5\n",
        "rack: |\n        a: rack-5\n        --- b-3\n",
    ),
    "a folded text": (
        "rack: rack-5\n",
        "rack: >-\n        a: rack-5\n        - b-3\n",
    ),
    "a quoted text": ("rack: rack-5\n", 'rack: "rack-5"\n'),
    "a quoted text in lines": (
        "rack: rack-5\n",
        'rack: "rack-5\n- a: b-3\n--- c"\n',
    ),
    "a list in brackets": (
        "rack: rack-5\n",
        "rack: rack-5\n    tolerations: [\n- {key: a-3}\n]\n",
    ),
    "an unfinished list": (
        "rack: rack-5\n",
        "rack: rack-5\n    tolerations: [\n",
    ),
    "an anchor": ("name: pod-5", "name: &name pod-5"),
    "an alias": ("rack: rack-5\n", "rack: &rack rack-5\n      also: *rack\n"),
    "an unknown alias": ("rack: rack-5\n", "rack: *rack\n"),
    "a tag": ("rack: rack-5\n", "rack: !!str rack-5\n"),
    "a number": ("rack: rack-5\n", "rack: 1e3\n"),
    "nothing at all": ("rack: rack-5\n", "rack:\n"),
    "a key twice": ("rack: rack-5\n", "rack: rack-5\n      rack: rack-5\n"),
    "a name as a key": ("rack: rack-5\n", "rack-5: rack-5\n"),
    "a wrong indentation": (
        "rack: rack-5\n",
        "rack: rack-5\n     other: rack-5\n",
    ),
    "what stands for a name": ("rack: rack-5\n", "rack: name-of-dralloc-0-\n"),
    "a text that is none": ("rack: rack-5\n", "rack: \x07\n"),
    "an empty document": ("kind: Pod\n", "kind: Pod\n---\n---\n"),
    "a document that is no object": ("kind: Pod\n", "kind: Pod\n--- pod-5\n"),
    "the end of a document": ("kind: Pod\n", "kind: Pod\n...\n"),
    "a directive": (
        "kind: Pod\n",
        "kind: Pod\n...\n%YAML 1.1\n---\nkind: Pod\n",
    ),
    "lines that end otherwise": ("rack: rack-5\n", "rack: rack-5\r\n"),
    "another list": ("kind: Pod\n", "kind: Pod\nitems:\n- a: b-3\n"),
    "what looks like an item": (
        "kind: Pod\n",
        "items:\n- c\n-d-5\nkind: PodList\n",
    ),
    "an item behind a tab": (
        "kind: Pod\n",
        "items:\n- c\n-\td-5\nkind: PodList\n",
    ),
    "an item that goes on": (
        "kind: Pod\n",
        "items:\n- c\n d-5\n-  e: f\n   g: h\nkind: PodList\n",
    ),
    "a list of other things": (
        "kind: Pod\n",
        "items:\n- a: b-3\n- c\n-\n- - d-3\nkind: PodList\n",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_unusual_is_read_as_it_is_as_a_whole(
    layout: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = CHANGES[change]
    before, after = LAYOUTS[layout].rsplit("kind: Pod", 1)
    text = (
        before + ("kind: Pod" + after).replace(old, new, 1)
        if old
        else before + "kind: Pod" + after
    )
    quick, plain = both(text, monkeypatch)
    assert quick == plain
    assert str(quick) == str(plain)
    if isinstance(quick, Cluster) and isinstance(plain, Cluster):
        assert quick.findings == plain.findings


def test_bytes_that_are_no_text_are_refused_with_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = LAYOUTS["documents"].encode().replace(b"rack-5", b"rack-\xff")
    messages = []
    for split_from in (0, len(text) + 1):
        monkeypatch.setattr(loading, "SPLIT_FROM", split_from)
        with pytest.raises(InputError) as caught:
            load_text(text)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "byte 0xff at offset" in messages[0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_plain_data_is_the_same_too(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(LAYOUTS[layout])
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    assert load_objects(path) == OBJECTS
