"""Suggestions to relax a rule: to drop or tolerate it, or to lift what it says about nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dralloc.ask.context.node_bars import Bar
from dralloc.ask.explain.changes import Cost, Suggestion
from dralloc.ask.explain.conflict_members import Member, MemberKind
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.objects.report import at_most
from dralloc.problem import NodeIndex

__all__ = ["relaxed_rules"]

_RELAXED = {
    MemberKind.TAINT: (Cost.TOLERATE, "tolerate"),
    MemberKind.CONSTRAINT: (Cost.CONSTRAINT, "drop"),
    MemberKind.SELECTOR: (Cost.SELECTOR, "drop"),
    MemberKind.NODES: (Cost.NODES, "lift"),
}


def relaxed_rules(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Iterator[Suggestion]:
    """Yield the rules that it is enough to do without, each by itself."""
    for member in members:
        if member.kind not in _RELAXED:
            continue
        change = member.without
        nodes = _roomiest_first(oracle, member)
        certificate = oracle.admit(change, nodes=nodes)
        if certificate is not None:
            cost, verb = _RELAXED[member.kind]
            bar = _shortage_bar(oracle, member, certificate.node)
            text = _less(bar) if bar else f"{verb} {member.title}"
            outcome = oracle.fits_on(certificate.node)
            yield Suggestion(text, outcome, cost, change=change)


def _shortage_bar(
    oracle: FeasibilityOracle, member: Member, node: NodeIndex
) -> Bar | None:
    """Return the shortage of a node that a rule is about, if it is about an amount."""
    bars = oracle.snapshot.bars_of(node)
    of_rule = (bar for bar in bars if bar.text == member.title)
    return next((bar for bar in of_rule if bar.resource), None)


def _roomiest_first(
    oracle: FeasibilityOracle, member: Member
) -> Sequence[NodeIndex] | None:
    """Return the nodes by what is left of an amount that the rule is about, the most first; None for other rules."""
    if member.kind is not MemberKind.NODES:
        return None
    remaining: dict[NodeIndex, int] = {}
    for node in oracle.snapshot.problem.all_nodes:
        bar = _shortage_bar(oracle, member, node)
        if bar:
            remaining[node] = bar.left
    return sorted(remaining, key=lambda node: -remaining[node]) or None


def _less(bar: Bar) -> str:
    """Return the change that would lift a bar: free the resource on the node, or request less of it."""
    resource = "CPU" if bar.resource == "cpu" else bar.resource
    if not bar.left:
        return f"free {resource} on the node"
    return f"request at most {at_most(bar.left)} {resource}"
