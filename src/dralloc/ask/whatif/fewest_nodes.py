"""The fewest nodes that hold a mix of claims, or the cheapest kinds of nodes.

First the cheapest set of nodes that holds given numbers of some demands, with a bound that is proven.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd, lcm
from typing import Final, Unpack

from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.copies import (
    JointPacking,
    PlacedCopies,
    Vector,
    find_front,
    replicated,
)
from dralloc.ask.whatif.document import FewestNodesDocument, written
from dralloc.ask.whatif.mix_entries import MixEntry, workload_mix
from dralloc.ask.whatif.models.selection import (
    Cover,
    CoverColumn,
    cover,
    prices,
    with_time_left,
)
from dralloc.ask.whatif.node_search import NodeCover, NodeSearch
from dralloc.ask.whatif.node_types import NodeType, find_node_types
from dralloc.check import check
from dralloc.objects.choices import Choices, NodelessWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.report import Line, Part, Table
from dralloc.problem import (
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.solution import Placement, Solution
from dralloc.problem.subproblem import replicate
from dralloc.show.question import Provisional
from dralloc.solve.optimum import Options
from dralloc.solve.optimum.stopping import (
    Stop,
    Stopped,
    heeding_interrupts,
)
from dralloc.solve.work import phase

__all__ = [
    "FewestNodes",
    "FitsNowhereError",
    "NodeCost",
    "NodeCover",
    "cover_demands",
    "fewest_nodes",
]

# ----------------------------------------------------------------------------
# The cheapest set of nodes that holds given numbers of some demands, with a bound
# that is proven.
#
# A node of a type holds some vector of numbers; the cheapest nodes are a cover of
# what is needed by such vectors (see `dralloc.ask.whatif.models.selection`). These
# are generated as columns: those that are worth the most at the prices that the
# relaxation over the known ones sets, until the prices prove the bound or no vector
# is worth more than its node costs. Where the cover still costs more than the bound,
# all vectors of which none can be raised are listed, as far as they are few.

_ROUNDS: Final = 200
"""So many times vectors are priced."""

_FEW: Final = 600
"""With more pairs of a demand and a type of node, nodes are searched for (`dralloc.ask.whatif.node_search`)."""

_LISTING: Final = 0.5
"""So do they where the vectors of each type of node are not there after this part of the time."""

_POINTS: Final = 200
"""A front with more vectors is not listed to its end."""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A type of node: an isolated node of the problem without anything in use, and its price."""

    node: NodeIndex
    cost: int


class FitsNowhereError(Exception):
    """A demand, by its index, fits on no type of node."""

    def __init__(self, demand: int) -> None:
        super().__init__(demand)
        self.place = demand


def cover_demands(
    problem: Problem,
    demands: Sequence[Demand],
    needs: Vector,
    node_costs: Sequence[NodeCost],
    options: Options | None = None,
) -> NodeCover:
    """Find the cheapest nodes for so many of each demand.

    Raises
    ------
    FitsNowhereError
        One of the demands fits on no type of node.
    DrallocError
        The time limit leaves no answer.
    """
    if not any(needs):
        return NodeCover((0,) * len(node_costs), 0, 0)
    chosen = options or Options()
    with heeding_interrupts() as cancelled:
        stop = Stop.after(chosen.time_limit, cancelled)

        def node_types_until(until: Stop) -> list[_NodeType] | None:
            """All types of nodes, each with some vectors to begin with; None if they take longer than that."""
            types: list[_NodeType] = []
            for node_cost in node_costs:
                if until.reached():
                    return None
                types.append(
                    _NodeType(problem, demands, needs, node_cost, chosen, stop)
                )
            return types

        node_types = None
        if len(demands) * len(node_costs) <= _FEW:
            part = stop.within(_LISTING * stop.seconds())
            node_types = node_types_until(part)
        if node_types is None:
            node_cover = _search(
                problem, demands, needs, node_costs, chosen, stop
            )
            if node_cover is not None:
                return node_cover
            node_types = node_types_until(stop)
        if node_types is None:
            raise _too_short()
        generation = _ColumnGeneration(demands, needs, node_types, chosen, stop)
        homeless = generation.homeless()
        if homeless is not None:
            raise FitsNowhereError(homeless)
        return generation.run()


def _too_short() -> DrallocError:
    return DrallocError(
        "time limit: too short to find nodes that hold everything"
    )


def _search(  # noqa: PLR0913 - as `cover_demands`
    problem: Problem,
    demands: Sequence[Demand],
    needs: Vector,
    node_costs: Sequence[NodeCost],
    options: Options,
    stop: Stop,
) -> NodeCover | None:
    nodes = [node_cost.node for node_cost in node_costs]
    costs = [node_cost.cost for node_cost in node_costs]
    search = NodeSearch(problem, demands, needs, nodes, costs, options, stop)
    node_cover = search.run()
    if search.homeless is not None:
        raise FitsNowhereError(search.homeless)
    return node_cover


class _NodeType:
    """A type of node, and the vectors that are known to fit on one."""

    def __init__(  # noqa: PLR0913 - as `cover_demands`, for one type
        self,
        problem: Problem,
        demands: Sequence[Demand],
        needs: Vector,
        node_cost: NodeCost,
        options: Options,
        stop: Stop,
    ) -> None:
        self.cost = node_cost.cost
        self.stop = stop
        self.packing = JointPacking.alone(
            problem,
            demands,
            node_cost.node,
            needs,
            with_time_left(options, stop),
        )
        for demand, max_count in enumerate(self.packing.max_counts):
            if max_count:
                self.price(
                    [int(demand == priced) for priced in range(len(needs))]
                )

    def price(self, values: Sequence[int]) -> int:
        """Find the vector that is worth the most at these values; returns what none is worth more than."""
        weights = [
            [value] * max_count if value else []
            for value, max_count in zip(
                values, self.packing.max_counts, strict=True
            )
        ]
        self.packing.options = with_time_left(self.packing.options, self.stop)
        _, solution = self.packing.best(weights)
        return solution.tiers[0].bound

    def list_all(self) -> bool:
        """Find the whole front, if it is short and there is time; whether it is found."""
        with suppress(Stopped):
            front = find_front(self.packing.max_counts, self._reach, _POINTS)
            return front.complete and self.packing.proven
        return False

    def _reach(self, least: Vector, last: int) -> Vector | None:
        """As `JointPacking.reach`, in the time that is left; raises `Stopped` when it is over."""
        self.stop.check()
        self.packing.options = with_time_left(self.packing.options, self.stop)
        return self.packing.reach(least, last)


@dataclass
class _ColumnGeneration:
    """The restricted master problem is the cover; a node type's pricing problem is the most that fits on one node."""

    demands: Sequence[Demand]
    needs: Vector
    node_types: Sequence[_NodeType]
    options: Options
    stop: Stop
    bound: int = 0
    columns: list[tuple[int, PlacedCopies]] = field(default_factory=list)

    def homeless(self) -> int | None:
        """A demand of which none fits anywhere."""
        for demand, need in enumerate(self.needs):
            if need and not any(
                node_type.packing.max_counts[demand]
                for node_type in self.node_types
            ):
                return demand
        return None

    def run(self) -> NodeCover:
        """Price and cover in turn; and list all vectors if that leaves a gap."""
        best = self._cover()
        if best is None:
            raise _too_short()
        for _ in range(_ROUNDS):
            before = self._column_count()
            self.bound = max(
                self.bound, self._bound(prices(self._columns(), self.needs))
            )
            if self._column_count() > before:
                best = self._cover() or best
            # Without a new vector the prices stay as they are, and so does all that follows from them.
            if (
                best.cost == self.bound
                or self._column_count() == before
                or self.stop.reached()
            ):
                break
        if best.cost > self.bound and not self.stop.reached():
            listed = [node_type.list_all() for node_type in self.node_types]
            last = self._cover()
            if last is not None:
                best = last
                self.bound = max(self.bound, best.bound if all(listed) else 0)
        chosen = [
            column
            for column, times in zip(self.columns, best.times, strict=True)
            for _ in range(times)
        ]
        self._verify(sorted(chosen, key=lambda column: column[0]))
        node_counts = Counter(type_index for type_index, _ in chosen)
        return NodeCover(
            tuple(
                node_counts[type_index]
                for type_index in range(len(self.node_types))
            ),
            best.cost,
            self.bound,
        )

    def _column_count(self) -> int:
        return sum(
            len(node_type.packing.placed) for node_type in self.node_types
        )

    def _bound(self, values: Sequence[int]) -> int:
        """No set of nodes can be cheaper: whatever it holds is worth as much as is needed, each node at most its most.

        The cost of every set is a multiple of what all costs have in common.
        """
        worth = sum(
            value * need for value, need in zip(values, self.needs, strict=True)
        )
        richest = max(
            Fraction(node_type.price(values), node_type.cost)
            for node_type in self.node_types
        )
        unit = gcd(*(node_type.cost for node_type in self.node_types))
        return -(-Fraction(worth) // (richest * unit)) * unit if richest else 0

    def _columns(self) -> list[CoverColumn]:
        self.columns = [
            (type_index, placed)
            for type_index, node_type in enumerate(self.node_types)
            for placed in node_type.packing.placed.values()
        ]
        return [
            CoverColumn(
                self.node_types[type_index].cost, tuple(map(len, placed))
            )
            for type_index, placed in self.columns
        ]

    def _cover(self) -> Cover | None:
        """Cover what is needed with all columns that are known; None, and the columns as before, without time."""
        columns_before = self.columns
        best = cover(
            self._columns(), self.needs, with_time_left(self.options, self.stop)
        )
        if best is None:
            self.columns = columns_before
        return best

    def _verify(self, chosen: Sequence[tuple[int, PlacedCopies]]) -> None:
        """Place everything on copies of the nodes, and let the checker look at it."""
        if not chosen:
            return
        problem = replicate(
            [
                self.node_types[type_index].packing.problem
                for type_index, _ in chosen
            ]
        )
        demands = [
            replace(demand, nodes=self._homes(chosen, index))
            for index, demand in enumerate(self.demands)
        ]
        placements = sorted(
            self._placements(chosen), key=lambda placement: placement.demand
        )
        assert len(placements) == sum(self.needs), "everything is placed"
        check(
            replicated(problem, demands, self.needs),
            Solution(tuple(placements)),
        )

    def _homes(
        self, chosen: Sequence[tuple[int, PlacedCopies]], demand: int
    ) -> tuple[NodeIndex, ...]:
        """The copies of nodes where the demand may go."""
        return tuple(
            NodeIndex(node)
            for node, (type_index, _) in enumerate(chosen)
            if self.node_types[type_index].packing.max_counts[demand]
        )

    def _placements(
        self, chosen: Sequence[tuple[int, PlacedCopies]]
    ) -> Iterator[Placement]:
        # By demand, the indices of its copies that are not placed yet. Nodes may hold more than is needed.
        waiting = [
            iter(range(*span))
            for span in pairwise(accumulate(self.needs, initial=0))
        ]
        start = 0
        for node, (type_index, placed) in enumerate(chosen):
            for copies, placements in zip(waiting, placed, strict=True):
                for placement, demand in zip(placements, copies, strict=False):
                    yield _shifted(
                        placement, DemandIndex(demand), NodeIndex(node), start
                    )
            start += len(self.node_types[type_index].packing.problem.devices)


def _shifted(
    placement: Placement, demand: DemandIndex, node: NodeIndex, start: int
) -> Placement:
    """A placement on a node alone as one on a copy of the node, whose devices begin at `start`."""
    grants = []
    for of_claim in placement.grants:
        shifted = (
            grant._replace(device=DeviceIndex(start + grant.device))
            for grant in of_claim
        )
        grants.append(tuple(shifted))
    return Placement(demand, node, tuple(grants))


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
        names = ", ".join(dict.fromkeys(kind.name for kind in node_types))
        reason = (
            f"fits on no node of kind {names}" if names else "fits on no node"
        )
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
