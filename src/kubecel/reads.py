"""What a selector reads of a device, as far as its text tells."""

from __future__ import annotations

from dataclasses import dataclass

from kubecel.syntax import Bind, Expr, Fold, Ident, Index, Literal, OptMap, Select, children

__all__ = ["Reads", "reads"]


@dataclass(frozen=True, slots=True)
class Reads:
    """What a selector reads.

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
    found: dict[str, set[tuple[str, str]]] = {"attributes": set(), "capacity": set(), "fields": set()}
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Bind | OptMap) and node.name == "device":
            return Reads(everything=True)
        if isinstance(node, Fold) and "device" in node.names:
            return Reads(everything=True)
        path, others = _path(node)
        if path is None:
            stack += children(node)
            continue
        stack += others
        if not _note(path, found):
            return Reads(everything=True)
    fields = {field for field, _ in found["fields"]}
    return Reads(
        False,
        frozenset(found["attributes"]),
        frozenset(found["capacity"]),
        "driver" in fields,
        "allowMultipleAllocations" in fields,
    )


def _path(node: Expr) -> tuple[list[str | None] | None, list[Expr]]:
    """The constant steps from ``device`` (None for a computed one), and the nodes that compute the others."""
    steps: list[str | None] = []
    others: list[Expr] = []
    while isinstance(node, Select | Index):
        if isinstance(node, Select):
            steps.append(node.field)
        elif isinstance(node.key, Literal) and isinstance(node.key.value, str):
            steps.append(node.key.value)
        else:
            steps.append(None)
            others.append(node.key)
        node = node.operand
    if not isinstance(node, Ident) or node.name.removeprefix(".") != "device":
        return None, []
    return steps[::-1], others


def _note(path: list[str | None], found: dict[str, set[tuple[str, str]]]) -> bool:
    """Note what a path reads; false if that cannot be known."""
    if not path or path[0] is None:
        return False
    field = path[0]
    if field not in {"attributes", "capacity"}:
        found["fields"].add((field, ""))
        return True
    if len(path) < 2 or path[1] is None:
        return False
    found[field].add((path[1], (path[2] or "*") if len(path) > 2 else "*"))
    return True
