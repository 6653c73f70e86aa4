"""What an expression reads of a device, as far as its text tells.

It errs on the side of "everything": who caches answers by what was read must never miss a thing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubecel.syntax import (
    Bind,
    Expr,
    Fold,
    Ident,
    Index,
    Literal,
    OptMap,
    Select,
    children,
)

__all__ = ["Reads", "reads"]


@dataclass(frozen=True, slots=True)
class Reads:
    """The parts of a device that a selector reads.

    Parameters
    ----------
    everything
        The selector may read anything: `attributes` and `capacity` do not limit it.
    attributes, capacity
        (domain, name) of what is read or tested for. The name ``*`` stands for every name of the domain.
    driver, allow_multiple_allocations
        Whether these fields are read.
    """

    everything: bool = False
    attributes: frozenset[tuple[str, str]] = frozenset()
    capacity: frozenset[tuple[str, str]] = frozenset()
    driver: bool = False
    allow_multiple_allocations: bool = False


def reads(root: Expr) -> Reads:
    """Find what an expression reads."""
    names_read: dict[str, set[tuple[str, str]]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        path, computed = _path(node)
        # A local variable that is called ``device`` hides the device: no need to tell
        # them apart for an expression that nobody writes.
        if path is None and "device" not in _local_names(node):
            stack += children(node)
            continue
        field, domain, name = [*(path or ()), None, None, None][:3]
        if field is None or (
            field in {"attributes", "capacity"} and domain is None
        ):
            return Reads(everything=True)
        names_read.setdefault(field, set()).add((domain or "", name or "*"))
        stack += computed
    return Reads(
        attributes=frozenset(names_read.get("attributes", ())),
        capacity=frozenset(names_read.get("capacity", ())),
        driver="driver" in names_read,
        allow_multiple_allocations="allowMultipleAllocations" in names_read,
    )


def _local_names(node: Expr) -> tuple[str, ...]:
    """Return the variables that a node declares."""
    if isinstance(node, Fold):
        return node.names
    if isinstance(node, Bind | OptMap):
        return (node.name,)
    return ()


def _path(node: Expr) -> tuple[list[str | None] | None, list[Expr]]:
    """Return the constant steps from ``device`` (None for a computed one), and the nodes that compute a step."""
    steps: list[str | None] = []
    computed: list[Expr] = []
    while isinstance(node, Select | Index):
        if isinstance(node, Select):
            steps.append(node.field)
        elif isinstance(node.key, Literal) and isinstance(node.key.value, str):
            steps.append(node.key.value)
        else:
            steps.append(None)
            computed.append(node.key)
        node = node.operand
    if not isinstance(node, Ident) or node.name.removeprefix(".") != "device":
        return None, []
    return steps[::-1], computed
