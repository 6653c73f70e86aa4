"""Nodes made up from what slices say, for input without Node objects."""

from collections.abc import Iterable, Iterator

from dralloc.api.disclosure import HOSTNAME_LABEL
from dralloc.api.meta import ObjectMeta
from dralloc.api.nodes import Node, NodeSelector
from dralloc.api.slices import ResourceSlice

__all__ = ["HOSTNAME_LABEL", "named_nodes"]


def named_nodes(slices: Iterable[ResourceSlice]) -> tuple[Node, ...]:
    """One node for each name in slices, in the order of appearance, with its name as hostname label.

    Names are node names of slices and of devices, and in node selectors the values of ``In`` for the field
    ``metadata.name`` or the hostname label.
    """
    names = dict.fromkeys(name for one in slices for name in _names(one))
    return tuple(Node(metadata=ObjectMeta(name=name, labels={HOSTNAME_LABEL: name})) for name in names)


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
            if requirement.operator == "In" and requirement.key in ("metadata.name", HOSTNAME_LABEL):
                yield from requirement.values
