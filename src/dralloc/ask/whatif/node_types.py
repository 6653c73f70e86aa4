"""Types of nodes: what they are called, and which node stands for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalent_nodes import NodeClasses, equivalent_nodes

__all__ = ["NodeType", "find_node_types", "parse_price"]

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""The label by which clouds tell kinds of machines."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """A type of node.

    Parameters
    ----------
    name
        What it is called.
    example
        The node that stands for it.
    price
        What a node costs.
    existing
        How many there are in the cluster: of a type that a label names, the nodes with that label. Of a node to copy,
        those of its instance type that offer the same; if its labels tell none, all that offer the same.
    """

    name: str
    example: str
    price: Fraction
    existing: int


def parse_price(text: str) -> tuple[str, Fraction]:
    """Read ``KIND=AMOUNT``; the amount is a decimal number or a fraction.

    Raises
    ------
    DrallocError
        It has another form, or the amount is not above 0.
    """
    name, _, amount = text.rpartition("=")
    try:
        price = Fraction(amount)
    except (ValueError, ZeroDivisionError):
        price = Fraction(0)
    if not name or price <= 0:
        raise DrallocError(
            f"--price {text}: expected KIND=AMOUNT, with an amount above 0"
        )
    return name, price


def find_node_types(
    cluster: Cluster,
    problem: Problem,
    demands: Sequence[Demand],
    named: Mapping[str, str],
    prices: Mapping[str, Fraction],
) -> tuple[NodeType, ...]:
    """The kinds of nodes that may be had; one of a name for each of its parts that not the same demands may go to.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    named
        For each kind the name of a node, or ``LABEL=VALUE`` for the nodes with that label, which offer the same.
        Without any, nodes that are equivalent to the demands are a kind, which is called by the first of them.
    prices
        By kind; 1 for all without any.

    Raises
    ------
    DrallocError
        There is no such node, the nodes with a label offer different devices, a kind has no price, a price is for no
        kind or not above 0, or devices are not on one node only.
    """
    classes = equivalent_nodes(problem, demands)
    if classes is None:
        raise DrallocError(
            f"{_shared_device(problem)}: a node of a kind brings devices and counters of its own only"
        )
    names = [node.name for node in problem.nodes]
    parts = {
        names[node]: place
        for place, group in enumerate(classes.groups)
        for node in group
    }
    useful = {
        names[node] for demand in demands for node in problem.candidate_nodes(demand)
    }
    chosen: dict[str, list[str]] = {}
    members: dict[str, Collection[str]] = {}
    for kind, text in named.items():
        option = f"--kind {kind}={text}"
        nodes = _named(cluster, option, text)
        chosen[kind] = _examples(
            classes,
            parts,
            option,
            [node for node in nodes if node in useful] or nodes[:1],
        )
        members[kind] = nodes if "=" in text else _like(cluster, text, parts)
    if not named:
        chosen = {names[group[0]]: [names[group[0]]] for group in classes.groups}
        members = dict.fromkeys(chosen, names)
    for kind, price in prices.items():
        if kind not in chosen:
            raise DrallocError(
                f"--price {kind}: there is no such kind of node, only {', '.join(chosen) or 'none'}"
            )
        if price <= 0:
            raise DrallocError(f"--price {kind}={price}: expected an amount above 0")
    for kind in chosen:
        if prices and kind not in prices:
            raise DrallocError(
                f"node kind {kind}: has no price; give all kinds one with --price, or none"
            )
    return tuple(
        NodeType(
            kind,
            node,
            prices.get(kind, Fraction(1)),
            sum(parts.get(member) == parts.get(node) for member in members[kind]),
        )
        for kind, nodes in chosen.items()
        for node in nodes
    )


def _named(cluster: Cluster, option: str, text: str) -> list[str]:
    """The nodes that the user means."""
    label, equals, value = text.partition("=")
    labels = {node.metadata.name: node.metadata.labels for node in cluster.nodes}
    if not equals and text not in labels:
        raise DrallocError(f'{option}: node "{text}" does not exist')
    found = (
        [name for name in labels if labels[name].get(label) == value]
        if equals
        else [text]
    )
    if not found:
        raise DrallocError(f"{option}: no node has the label")
    return found


def _like(cluster: Cluster, example: str, parts: Mapping[str, int]) -> list[str]:
    """The nodes that count as copies of a node, as far as they offer the same: those of its instance type, or all."""
    types = {
        node.metadata.name: node.metadata.labels.get(_INSTANCE_TYPE)
        for node in cluster.nodes
    }
    if types[example] is None and example not in parts:
        return [example]  # Nothing can happen there, and nothing tells what is like it.
    return [name for name, of_type in types.items() if of_type == types[example]]


def _examples(
    classes: NodeClasses, parts: Mapping[str, int], option: str, nodes: Sequence[str]
) -> list[str]:
    """The first node of each part, all of which offer the same."""
    first: dict[int | None, str] = {}
    for node in nodes:
        first.setdefault(parts.get(node), node)
    offers = {
        None if part is None else classes.offers[part]: node
        for part, node in first.items()
    }
    if len(offers) > 1:
        differing = " and ".join(sorted(offers.values())[:2])
        raise DrallocError(
            f"{option}: nodes {differing} differ in what they offer; name one as example"
        )
    return list(first.values())


def _shared_device(problem: Problem) -> str:
    """Some device that is not on one node only, for the message."""
    seen: dict[int, str] = {}
    for node in problem.nodes:
        for index in node.devices():
            device = problem.devices[index]
            if (
                seen.setdefault(device.slot, node.name) != node.name
                or device.nodes is not None
            ):
                return f"device {device.id}: is within reach of other nodes than {seen[device.slot]}"
    return "some counters are shared by nodes"
