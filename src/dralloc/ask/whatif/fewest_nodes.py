"""The fewest nodes that hold a mix of claims, or the cheapest kinds of nodes.

First the cheapest set of nodes that holds given numbers of some demands, with a bound that is proven: by generated
columns (`dralloc.ask.whatif.node_columns`) where there are few kinds of both, by search
(`dralloc.ask.whatif.node_search`) where there are many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from numbers import Rational
from typing import Final, Unpack

from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.document import FewestNodesDocument, written
from dralloc.ask.whatif.fronts import Vector
from dralloc.ask.whatif.mix_entries import MixEntry, workload_mix
from dralloc.ask.whatif.node_columns import (
    ColumnGeneration,
    NodeVectors,
    list_node_vectors,
    too_short,
)
from dralloc.ask.whatif.node_search import (
    CoverQuestion,
    FitsNowhereError,
    NodeCost,
    NodeCover,
    NodeSearch,
)
from dralloc.ask.whatif.node_types import NodeType, find_node_types
from dralloc.objects.choices import Choices, NodelessWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.report import Line, Part, Table
from dralloc.objects.value_kinds import dict_of, takes
from dralloc.problem import Demand, Problem, numbered
from dralloc.show.question import Provisional
from dralloc.solve.optimum import Options
from dralloc.solve.optimum.stopping import Stop, Stopped, heeding_interrupts
from dralloc.solve.work import phase

__all__ = [
    "FewestNodes",
    "NodeCost",
    "NodeCover",
    "cover_demands",
    "fewest_nodes",
]

_FEW: Final = 600
"""With more pairs of a demand and a type of node, nodes are searched for."""

_LISTING: Final = 0.5
"""So they are where it takes more than this part of the time to see how many of each demand a node holds alone."""

_NAMED: Final = 4
"""More kinds of nodes are counted where something is said of all, and not named."""


def cover_demands(  # noqa: PLR0913 - all that the answer depends on
    problem: Problem,
    demands: Sequence[Demand],
    needs: Vector,
    node_costs: Sequence[NodeCost],
    options: Options | None = None,
    *,
    all_must_fit: bool = False,
) -> NodeCover:
    """Find the cheapest nodes for so many of each demand that fits on one of them.

    Raises
    ------
    FitsNowhereError
        A demand fits on none, and all of them should. There has been no search for anything else by then.
    DrallocError
        The time limit leaves no answer.
    """
    chosen = options or Options()
    with heeding_interrupts() as cancelled:
        stop = Stop.after(chosen.time_limit, cancelled)
        question = CoverQuestion(
            problem, demands, needs, node_costs, chosen, stop, all_must_fit
        )
        if len(demands) * len(node_costs) <= _FEW:
            part = stop.within(_LISTING * stop.seconds())
            node_types = list_node_vectors(question, part)
            if node_types is not None:
                return _generated(question, node_types)
        return _searched(question)


def _searched(question: CoverQuestion) -> NodeCover:
    """The answer of the search; where first fit does not even begin one, columns are generated."""
    if not any(question.needs):
        return _no_nodes(question)
    search = NodeSearch(question)
    try:
        node_cover = search.run()
    except Stopped:
        raise too_short() from None
    if node_cover is not None:
        return node_cover
    if search.homeless:
        node_cover = _searched(question.without(search.homeless))
        homeless = node_cover.homeless | search.homeless
        return replace(node_cover, homeless=homeless)
    node_types = list_node_vectors(question, question.stop)
    if node_types is None:
        raise too_short()
    return _generated(question, node_types)


def _generated(
    question: CoverQuestion, node_types: Sequence[NodeVectors]
) -> NodeCover:
    """The answer by generated columns."""
    homeless = frozenset(
        demand
        for demand, need in enumerate(question.needs)
        if need and not _fits_on_any(node_types, demand)
    )
    rest = question.without(homeless)
    node_cover = (
        ColumnGeneration(rest, node_types).run()
        if any(rest.needs)
        else _no_nodes(rest)
    )
    return replace(node_cover, homeless=homeless)


def _fits_on_any(node_types: Iterable[NodeVectors], demand: int) -> bool:
    return any(node_type.packing.max_counts[demand] for node_type in node_types)


def _no_nodes(question: CoverQuestion) -> NodeCover:
    """The answer where nothing is needed."""
    return NodeCover((0,) * len(question.node_costs), 0, 0)


@dataclass(frozen=True, repr=False)
class FewestNodes(Provisional):
    """The smallest set of nodes that holds everything. ``print(fewest_nodes)`` is a readable report.

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
        """Say what the nodes cost, and what is proven."""
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
                str(count),
            )
            for kind, count in zip(self.kinds, self.numbers, strict=True)
        ]
        return [
            Table(
                "To be held",
                ("claim", ">number"),
                [(title, str(count)) for title, count in self.mix],
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


@takes(
    kinds=dict_of(str, "a dict of texts").or_none(),
    prices=dict_of(Rational, "a dict of whole numbers or fractions").or_none(),
)
@without_garbage_collection()
@spelled_out(NodelessWords)
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
        As in `dralloc.allocate`, without goals, nodes, gangs, caps and fairness.

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
        choices, words, unused=("nodes", "gang", "caps", "fair", "keep", "goal")
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        cluster = (
            Scenario(
                cluster_of(cluster)
                .including(options.include)
                .with_gates(options.features)
            )
            .uncordon()
            .cluster
        )
        mix = workload_mix(cluster, entries, options)
        exact_prices = {
            kind: Fraction(price) for kind, price in (prices or {}).items()
        }
        node_types = find_node_types(
            cluster, mix.problem, mix.demands, kinds or {}, exact_prices
        )
    with phase(timings, "fewest nodes"):
        # The solver works on integers: prices are multiples of what their denominators have in common.
        unit = lcm(*(kind.price.denominator for kind in node_types))
        node_indices = {
            node.name: index for index, node in numbered(mix.problem.nodes)
        }
        node_costs = [
            NodeCost(node_indices[kind.example], int(kind.price * unit))
            for kind in node_types
        ]
        reason = _fits_nowhere(
            list(dict.fromkeys(kind.name for kind in node_types))
        )
        try:
            best = cover_demands(
                mix.problem,
                mix.demands,
                mix.numbers,
                node_costs,
                options,
                all_must_fit=mix.named,
            )
        except FitsNowhereError as error:
            # These have names, so that it is an error to leave them out.
            mix.without(error.demands, reason)
            raise
        mix = mix.without(best.homeless, reason)
    return FewestNodes(
        mix=mix.wanted,
        kinds=node_types,
        numbers=best.numbers,
        cost=Fraction(best.cost, unit),
        bound=Fraction(best.bound, unit),
        left_out=mix.left_out,
        unmodelled=mix.compiled.beside_pods_alone(
            mix.compiled.cluster.pods, strict=options.strict
        ),
        timings=timings,
    )


def _fits_nowhere(kinds: Sequence[str]) -> str:
    """Say so of some kinds of nodes, and name them unless that takes a long line."""
    match kinds:
        case []:
            return "fits on no node"
        case _ if len(kinds) <= _NAMED:
            return f"fits on no node of kind {', '.join(kinds)}"
        case _:
            return f"fits on no node of the {len(kinds)} kinds"
