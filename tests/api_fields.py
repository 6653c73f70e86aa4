"""Lists the fields of Kubernetes' API types: ``python tests/api_fields.py DIRECTORY > tests/data/api_fields.txt``.

The directory is a checkout of ``k8s.io/api`` with ``k8s.io/apimachinery`` beside it. Only names are taken: one line for
each field that has no fields of its own, as kind and path, without the steps into lists and maps.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

KINDS: Final = {
    "resource/v1": (
        "ResourceSlice",
        "DeviceClass",
        "ResourceClaim",
        "ResourceClaimTemplate",
    ),
    "resource/v1alpha3": ("DeviceTaintRule",),
    "scheduling/v1": ("PriorityClass",),
    "scheduling/v1alpha2": ("PodGroup", "Workload"),
    "core/v1": ("Pod", "Node", "Namespace", "ResourceQuota"),
}
"""The kinds whose fields are listed, by the package that has them."""

_TYPE: Final = re.compile(
    r"^type (\w+) struct \{\n(.*?)^\}", re.DOTALL | re.MULTILINE
)
_FIELD: Final = re.compile(
    r"^\t(?:\w+\s+)?(?P<type>[\w.\[\]*]+)\s+`.*?json:\"(?P<name>\w*)[^\"]*\"",
    re.MULTILINE,
)
_AS_TEXT: Final = {
    "Quantity",
    "IntOrString",
    "Time",
    "MicroTime",
    "FieldsV1",
    "RawExtension",
}
"""Types that have fields in Go, and none on the wire."""

Types = Mapping[str, list[tuple[str, str]]]
"""Fields by type: the name on the wire, empty for an embedded type, and the type without packages, lists and maps."""


def types_of(*directories: Path) -> Types:
    texts = [
        path.read_text()
        for directory in directories
        for path in sorted(directory.glob("*types*.go"))
    ]
    structures = [
        structure for text in texts for structure in _TYPE.finditer(text)
    ]
    return {
        structure[1]: [
            (field["name"], _plain(field["type"]))
            for field in _FIELD.finditer(structure[2])
        ]
        for structure in structures
    }


def _plain(name: str) -> str:
    return re.sub(r"^.*[\]*.]", "", name)


def paths(
    types: Types, name: str, above: tuple[str, ...] = ()
) -> Iterator[str]:
    for field, kind in types[name]:
        if kind in ("TypeMeta", *above):
            continue
        if not types.get(kind) or kind in _AS_TEXT:
            yield field
        elif not field:
            yield from paths(types, kind, (*above, name))
        else:
            yield from (
                f"{field}.{path}" for path in paths(types, kind, (*above, name))
            )


def main(api: Path) -> None:
    meta = api.parent / "apimachinery" / "pkg" / "apis" / "meta" / "v1"
    for package, kinds in KINDS.items():
        types = types_of(meta, api / "core/v1", api / package)
        for kind in kinds:
            for path in dict.fromkeys(paths(types, kind)):
                sys.stdout.write(f"{kind} {path}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
