"""What objects name that was not given: the nodes of slices, and classes of devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from dralloc.objects.api import (
    ApiObject,
    Node,
    NodeSelector,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dralloc.objects.api.disclosure import HOSTNAME_LABEL

__all__ = ["SYNTHETIC_NODE", "assumed_nodes", "missing_classes"]

SYNTHETIC_NODE: Final = "node"
"""Name of the only node when neither nodes are given nor slices name any."""


def assumed_nodes(slices: Sequence[ResourceSlice]) -> tuple[tuple[Node, ...], str]:
    """The nodes to go by, and the remark to make about it."""
    named = _named_nodes(slices)
    if named:
        return named, f"no Node was given: assuming the {len(named)} that slices name"
    if any(
        one.spec.all_nodes or any(device.all_nodes for device in one.spec.devices)
        for one in slices
    ):
        only = Node(
            metadata=ObjectMeta(
                name=SYNTHETIC_NODE, labels={HOSTNAME_LABEL: SYNTHETIC_NODE}
            )
        )
        return (only,), f'no Node was given: assuming one, "{SYNTHETIC_NODE}"'
    return (), "no Node was given, and slices name none: nothing can be placed"


def _named_nodes(slices: Iterable[ResourceSlice]) -> tuple[Node, ...]:
    """One node for each name in slices, in the order of appearance, with its name as hostname label.

    Names are node names of slices and of devices, and in node selectors the values of ``In`` for the field
    ``metadata.name`` or the hostname label.
    """
    names = dict.fromkeys(name for one in slices for name in _names(one))
    return tuple(
        Node(metadata=ObjectMeta(name=name, labels={HOSTNAME_LABEL: name}))
        for name in names
    )


def _names(one: ResourceSlice) -> Iterator[str]:
    if one.spec.node_name:
        yield one.spec.node_name
    yield from _selected(one.spec.node_selector)
    if one.spec.per_device_node_selection:
        for device in one.spec.devices:
            if device.node_name:
                yield device.node_name
            yield from _selected(device.node_selector)


def _selected(selector: NodeSelector | None) -> Iterator[str]:
    for term in selector.node_selector_terms if selector else ():
        for requirement in (*term.match_fields, *term.match_expressions):
            if requirement.operator == "In" and requirement.key in (
                "metadata.name",
                HOSTNAME_LABEL,
            ):
                yield from requirement.values


def missing_classes(
    objects: Iterable[ApiObject], known: Collection[str]
) -> Iterator[tuple[ApiObject, str, str]]:
    """Each class that is missing once: the first object that names it, the path, and what is wrong."""
    missing: dict[str, tuple[ApiObject, str]] = {}
    times: Counter[str] = Counter()
    for one in objects:
        for name, path in _classes_named_by(one):
            if name not in known:
                missing.setdefault(name, (one, path))
                times[name] += 1
    for name, (one, path) in missing.items():
        more = f"; {times[name]} requests name it" if times[name] > 1 else ""
        yield one, path, f'DeviceClass "{name}" not found{more}'


def _classes_named_by(one: ApiObject) -> Iterator[tuple[str, str]]:
    """The classes that something unallocated asks for, with the paths of their names."""
    if isinstance(one, ResourceClaim) and one.status.allocation is None:
        spec, path = one.spec, "spec"
    elif isinstance(one, ResourceClaimTemplate):
        spec, path = one.spec.spec, "spec.spec"
    else:
        return
    for number, request in enumerate(spec.devices.requests):
        at = f"{path}.devices.requests[{number}]"
        if request.exactly:
            yield request.exactly.device_class_name, f"{at}.exactly.deviceClassName"
        for rank, alternative in enumerate(request.first_available):
            yield (
                alternative.device_class_name,
                f"{at}.firstAvailable[{rank}].deviceClassName",
            )
