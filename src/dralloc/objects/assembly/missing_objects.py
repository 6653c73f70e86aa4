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
from dralloc.objects.errors import did_you_mean

__all__ = ["SYNTHETIC_NODE", "assumed_nodes", "missing_classes"]

SYNTHETIC_NODE: Final = "node"
"""Name of the only node when neither nodes are given nor slices name any."""


def assumed_nodes(
    slices: Sequence[ResourceSlice],
) -> tuple[tuple[Node, ...], str]:
    """Return the nodes to go by, and the remark to make about it."""
    named = _named_nodes(slices)
    if named:
        return (
            named,
            f"no Node was given: assuming the {len(named)} that slices name",
        )
    if any(map(_is_everywhere, slices)):
        only = Node(
            metadata=ObjectMeta(
                name=SYNTHETIC_NODE, labels={HOSTNAME_LABEL: SYNTHETIC_NODE}
            )
        )
        return (only,), f'no Node was given: assuming one, "{SYNTHETIC_NODE}"'
    return (), "no Node was given, and slices name none: nothing can be placed"


def _is_everywhere(published: ResourceSlice) -> bool:
    spec = published.spec
    return bool(spec.all_nodes) or any(
        device.all_nodes for device in spec.devices
    )


def _named_nodes(slices: Iterable[ResourceSlice]) -> tuple[Node, ...]:
    """Return one node for each name in slices, in the order of appearance, with its name as hostname label.

    Names are node names of slices and of devices, and in node selectors the values of ``In`` for the field
    ``metadata.name`` or the hostname label.
    """
    names = dict.fromkeys(
        name for published in slices for name in _names(published)
    )
    return tuple(
        Node(metadata=ObjectMeta(name=name, labels={HOSTNAME_LABEL: name}))
        for name in names
    )


def _names(published: ResourceSlice) -> Iterator[str]:
    if published.spec.node_name:
        yield published.spec.node_name
    yield from _selected(published.spec.node_selector)
    if published.spec.per_device_node_selection:
        for device in published.spec.devices:
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
    objects: Iterable[ApiObject], class_names: Collection[str]
) -> Iterator[tuple[ApiObject, str, str]]:
    """Yield each class that is missing once: the first object that names it, the path, and what is wrong."""
    missing: dict[str, tuple[ApiObject, str]] = {}
    times: Counter[str] = Counter()
    for requester in objects:
        for name, path in _classes_named_by(requester):
            if name not in class_names:
                missing.setdefault(name, (requester, path))
                times[name] += 1
    for name, (requester, path) in missing.items():
        further = f"; {times[name]} requests name it" if times[name] > 1 else ""
        meant = did_you_mean(name, class_names)
        rule = f'DeviceClass "{name}" not found{further}{meant}'
        yield requester, path, rule


def _classes_named_by(requester: ApiObject) -> Iterator[tuple[str, str]]:
    """Yield the classes that something unallocated asks for, with the paths of their names."""
    if (
        isinstance(requester, ResourceClaim)
        and requester.status.allocation is None
    ):
        spec, path = requester.spec, "spec"
    elif isinstance(requester, ResourceClaimTemplate):
        spec, path = requester.spec.spec, "spec.spec"
    else:
        return
    for request_index, request in enumerate(spec.devices.requests):
        at = f"{path}.devices.requests[{request_index}]"
        if request.exactly:
            yield (
                request.exactly.device_class_name,
                f"{at}.exactly.deviceClassName",
            )
        for rank, alternative in enumerate(request.first_available):
            yield (
                alternative.device_class_name,
                f"{at}.firstAvailable[{rank}].deviceClassName",
            )
