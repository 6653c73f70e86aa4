"""What a selector reads of a device, as far as its text tells."""

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
    found: set[tuple[str, str, str]] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        names = (
            node.names
            if isinstance(node, Fold)
            else (node.name,)
            if isinstance(node, Bind | OptMap)
            else ()
        )
        path, others = _path(node)
        if path is None and "device" not in names:
            stack += children(node)
            continue
        field, domain, name = [*(path or ()), None, None, None][:3]
        if field is None or (field in {"attributes", "capacity"} and domain is None):
            return Reads(everything=True)
        found.add((field, domain or "", name or "*"))
        stack += others

    def of(wanted: str) -> frozenset[tuple[str, str]]:
        return frozenset(
            (domain, name) for field, domain, name in found if field == wanted
        )

    return Reads(
        False,
        of("attributes"),
        of("capacity"),
        bool(of("driver")),
        bool(of("allowMultipleAllocations")),
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
