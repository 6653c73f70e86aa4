"""Kinds of nodes: what they are called, and which node stands for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from dralloc.cluster import Cluster
from dralloc.errors import DrallocError
from dralloc.problem import Demand, Problem
from dralloc.whatif.alike import find_islands

__all__ = ["NodeKind", "find_kinds", "parse_price", "whole_prices"]


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A kind of node.

    Parameters
    ----------
    name
        What it is called.
    example
        The node that stands for it.
    price
        What a node costs.
    existing
        How many there are in the cluster.
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
        raise DrallocError(f"--price {text}: expected KIND=AMOUNT, with an amount above 0")
    return name, price


def whole_prices(kinds: Sequence[NodeKind]) -> tuple[int, tuple[int, ...]]:
    """The prices as integers, and how many of these make one of price 1."""
    unit = lcm(*(kind.price.denominator for kind in kinds))
    return unit, tuple(int(kind.price * unit) for kind in kinds)


def find_kinds(
    cluster: Cluster,
    problem: Problem,
    demands: Sequence[Demand],
    named: Mapping[str, str],
    prices: Mapping[str, Fraction],
) -> tuple[NodeKind, ...]:
    """The kinds of nodes that may be had.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    named
        For each kind the name of a node, or ``LABEL=VALUE`` for the nodes with that label. Without any, nodes that are
        alike to the demands are a kind, which is called by the first of them.
    prices
        By kind; 1 for all without any.

    Raises
    ------
    DrallocError
        There is no such node, the nodes with a label differ, a kind has no price, a price is for no kind, or devices
        are not on one node only.
    """
    islands = find_islands(problem, demands)
    if islands is None:
        raise DrallocError(f"{_shared_device(problem)}: a node of a kind brings devices and counters of its own only")
    names = [node.name for node in problem.nodes]
    alike = {names[node]: [names[other] for other in group] for group in islands.groups for node in group}
    chosen = {kind: _example(cluster, alike, kind, text) for kind, text in named.items()}
    if not named:
        chosen = {names[group[0]]: names[group[0]] for group in islands.groups}
    for kind in prices.keys() - chosen.keys():
        raise DrallocError(f"--price {kind}: there is no such kind of node, only {', '.join(chosen) or 'none'}")
    for kind in chosen:
        if prices and kind not in prices:
            raise DrallocError(f"node kind {kind}: has no price; give all kinds one with --price, or none")
    return tuple(
        NodeKind(kind, node, prices.get(kind, Fraction(1)), len(alike.get(node, [node])))
        for kind, node in chosen.items()
    )


def _example(cluster: Cluster, alike: Mapping[str, Sequence[str]], kind: str, text: str) -> str:
    label, equals, value = text.partition("=")
    if not equals:
        if all(node.metadata.name != text for node in cluster.nodes):
            raise DrallocError(f'--kind {kind}={text}: node "{text}" does not exist')
        return text
    found = [node.metadata.name for node in cluster.nodes if node.metadata.labels.get(label) == value]
    if not found:
        raise DrallocError(f"--kind {kind}={text}: no node has the label")
    for other in found[1:]:
        if alike.get(other) != alike.get(found[0]):
            raise DrallocError(
                f"--kind {kind}={text}: nodes {found[0]} and {other} differ in what they offer; name one as example"
            )
    return found[0]


def _shared_device(problem: Problem) -> str:
    """Some device that is not on one node only, for the message."""
    seen: dict[int, str] = {}
    for node in problem.nodes:
        for index in node.devices():
            device = problem.devices[index]
            if seen.setdefault(device.slot, node.name) != node.name or device.nodes is not None:
                return f"device {device.id}: is within reach of other nodes than {seen[device.slot]}"
    return "some counters are shared by nodes"
