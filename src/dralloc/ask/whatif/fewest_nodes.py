"""The fewest nodes that hold a mix of claims, or the cheapest kinds of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Unpack

from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.document import FewestNodesDocument, written
from dralloc.ask.whatif.mix_entries import MixEntry
from dralloc.ask.whatif.node_covering import FitsNowhereError, NodeCost, cover_demands
from dralloc.ask.whatif.node_types import NodeType, find_node_types
from dralloc.ask.whatif.workload_mix import workload_mix
from dralloc.objects.choices import Choices, NodelessWords
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.garbage import without_garbage_collection
from dralloc.objects.report import Line, Part, Table
from dralloc.show.provisional import Provisional
from dralloc.solve.timing import phase

__all__ = ["FewestNodes", "fewest_nodes"]


@dataclass(frozen=True, repr=False)
class FewestNodes(Provisional):
    """Which nodes hold everything. ``print(fewest_nodes)`` is a readable report.

    Parameters
    ----------
    mix
        What is held, and how many of each.
    kinds
        The kinds of nodes to choose from.
    numbers
        How many of each kind are needed. The independent checker has accepted everything on so many copies.
    cost
        What these cost: their number, if there are no prices.
    bound
        Nothing cheaper holds everything.
    left_out
        What is pending and does not count, with the reason.
    """

    document = FewestNodesDocument

    mix: tuple[tuple[str, int], ...]
    kinds: tuple[NodeType, ...]
    numbers: tuple[int, ...]
    cost: Fraction
    bound: Fraction
    left_out: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the cost is proven to be the lowest."""
        return self.cost == self.bound

    @property
    def conclusion(self) -> str:
        """What the nodes cost, and what is proven."""
        proof = (
            "proven to be the lowest"
            if self.exact
            else f"no answer costs less than {written(self.bound)}"
        )
        return f"Cost {written(self.cost)}: {proof}"

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        rows = [
            (
                kind.name,
                kind.example,
                str(kind.existing),
                written(kind.price),
                str(number),
            )
            for kind, number in zip(self.kinds, self.numbers, strict=True)
        ]
        return [
            Table(
                "To be held",
                ("claim", ">number"),
                [(title, str(number)) for title, number in self.mix],
            ),
            Table(
                "Nodes that hold it",
                ("kind", "as node", ">there are", ">price", ">needed"),
                rows,
            ),
            *self._remarks(),
        ]

    def _remarks(self) -> Iterator[Line]:
        yield Line(f"\n{self.headline}.", "" if self.exact else "yellow")
        for reason in self.left_out:
            yield Line(f"warning: does not count: {reason}", "yellow")


@without_garbage_collection()
def fewest_nodes(
    cluster: Cluster,
    *entries: MixEntry | str,
    kinds: Mapping[str, str] | None = None,
    prices: Mapping[str, Fraction | int] | None = None,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> FewestNodes:
    """Find the fewest empty nodes that hold a mix of claims; with prices, the cheapest.

    Parameters
    ----------
    entries
        Claims, templates or pods: ``namespace/name``, ``namespace/name=number``, or a `MixEntry`; once each if no
        number is given. Without any, all that is pending.
    kinds
        The kinds of nodes by name: each a node to copy, or ``label=value`` for nodes that must offer the same; where
        pods choose among them, by zone for example, each part is counted apart. Without any, equivalent nodes to
        the claims are a kind, which is called by the first of them.
    prices
        What a node of each kind costs; 1 each without any.
    choices, words
        As in `dralloc.allocate`, without nodes, gangs, caps and fairness.

    Raises
    ------
    DrallocError
        There is no such claim, template, pod, node or kind; a claim fits on no kind of node; a price is not above 0;
        or devices are within reach of several nodes, so that it is not clear what a new node brings.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.fewest_nodes(dralloc.example(), "default/any=5")
    <FewestNodes: Cost 3: proven to be the lowest>
    """
    options = Choices.of(
        choices, words, unused=("nodes", "gang", "caps", "fair", "keep")
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        cluster = (
            Scenario(cluster_of(cluster).including(options.include)).uncordon().cluster
        )
        mix = workload_mix(cluster, entries, options)
        given = {kind: Fraction(price) for kind, price in (prices or {}).items()}
        found = find_node_types(cluster, mix.problem, mix.demands, kinds or {}, given)
    with phase(timings, "fewest nodes"):
        unit = lcm(*(kind.price.denominator for kind in found))
        places = {node.name: place for place, node in enumerate(mix.problem.nodes)}
        node_costs = [
            NodeCost(places[kind.example], int(kind.price * unit)) for kind in found
        ]
        names = ", ".join(dict.fromkeys(kind.name for kind in found))
        reason = f"fits on no node of kind {names}" if names else "fits on no node"
        best = None
        while best is None:
            try:
                best = cover_demands(
                    mix.problem, mix.demands, mix.numbers, node_costs, options
                )
            except FitsNowhereError as error:
                mix = mix.without(error.place, reason)
    return FewestNodes(
        mix=mix.wanted,
        kinds=found,
        numbers=best.numbers,
        cost=Fraction(best.cost, unit),
        bound=Fraction(best.bound, unit),
        left_out=mix.left_out,
        unmodelled=mix.compiled.beside_pods_alone(
            mix.compiled.cluster.pods, strict=options.strict
        ),
        timings=timings,
    )
