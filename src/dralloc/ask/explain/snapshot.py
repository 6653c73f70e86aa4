"""The scheduling snapshot that a demand meets: what it can still get, and what everybody else has by then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

from dralloc.ask.context.context import Context
from dralloc.ask.context.node_bars import Bar, NodeBars
from dralloc.ask.context.node_rules import SHARED, Exclusions, pod_of
from dralloc.ask.context.offers import Offers, TableOffers
from dralloc.ask.explain.caps import Caps
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem, Scope, quorum_of
from dralloc.problem.holdings import ClaimLedger, Holding
from dralloc.problem.open_claims import open_claims
from dralloc.problem.solution import Grant, Placement, holdings_of
from dralloc.solve.first_fit import first_fit

__all__ = [
    "DemandSnapshot",
    "failing_gangs",
    "gang_blocker",
    "is_tree_admitted",
    "placed_before",
    "snapshot_of",
]


@dataclass(frozen=True)
class DemandSnapshot:
    """Everything as one demand meets it.

    Parameters
    ----------
    context
        What there is, with everything in use that is not the demand's.
    number
        The demand's index in the whole problem.
    demand
        The demand without the claims that others have been granted.
    nodes
        The nodes that it may go to, in search order.
    reachable
        The nodes from which the claims can be used that others have been granted and that it uses, too.
    placements
        Of the demands that have been placed.
    placed
        The same demands, by the claims that they were granted.
    own
        The claims that the demand uses, also those that are allocated already: it cannot do without them.
    caps
        What namespaces may use; empty for first fit, which does not look at caps.
    exclusions
        The rules that leave nodes out.
    bars
        What bars the demand from nodes beside devices; None if that does not matter.
    """

    context: Context
    number: int
    demand: Demand
    nodes: tuple[int, ...]
    reachable: frozenset[int]
    placements: tuple[Placement, ...]
    placed: dict[ClaimKey, int]
    own: frozenset[ClaimKey] = frozenset()
    caps: Caps = field(default_factory=Caps)
    exclusions: Exclusions = field(default_factory=Exclusions)
    bars: NodeBars | None = None

    @property
    def problem(self) -> Problem:
        """The whole problem."""
        return self.context.problem

    @property
    def whole(self) -> Demand:
        """The demand with all of its claims."""
        return self.problem.demands[self.number]

    def exclusion(self, node: int) -> tuple[str, ...]:
        """The rules that leave a node out, whatever it has."""
        shared = () if node in self.reachable else (SHARED,)
        return (*self.exclusions.rules(self.whole, node), *shared)

    def bars_of(
        self, node: int, released: Collection[ClaimKey] = ()
    ) -> tuple[Bar, ...]:
        """What bars the demand from a node beside devices, once the pods of some claims are gone."""
        return () if self.bars is None else self.bars.of(node, released)

    def rules(self, node: int, released: Collection[ClaimKey] = ()) -> tuple[str, ...]:
        """Everything that would have to be different for the node to do, but for devices."""
        return (
            *self.exclusion(node),
            *(bar.text for bar in self.bars_of(node, released)),
        )

    @classmethod
    def after(
        cls,
        placements: Sequence[Placement],
        problem: Problem,
        number: int,
        offers: Offers,
        allocated: Sequence[Holding] = (),
    ) -> DemandSnapshot:
        """What a demand meets after these placements, as far as the problem alone says it."""
        ledger = ClaimLedger(problem, allocated)
        placed: dict[ClaimKey, int] = {}
        homes: dict[ClaimKey, tuple[int, Sequence[Grant]]] = {}
        mates: dict[Scope, dict[ClaimKey, Demand]] = defaultdict(dict)
        for placement in placements:
            ledger.hold(holdings_of(problem, placement))
            mate = problem.demands[placement.demand]
            for scope in mate.group_scopes:
                mates[scope][mate.key] = mate
            for claim, grants in zip(mate.claims, placement.grants, strict=True):
                if grants or not claim.requests:
                    placed[claim.key] = placement.demand
                    homes[claim.key] = placement.node, grants
        whole = problem.demands[number]
        demand = replace(whole, claims=tuple(open_claims(problem, whole, homes, mates)))
        visited = [homes[claim.key] for claim in whole.claims if claim.key in homes]
        reachable = frozenset(
            node
            for node in problem.all_nodes
            if all(
                problem.usable_from(grant.device, home, node)
                for home, grants in visited
                for grant in grants
            )
        )
        nodes = tuple(
            node for node in problem.candidate_nodes(whole) if node in reachable
        )
        caps = Caps.at(problem, allocated, placements)
        context = Context(problem, offers, ledger, caps.budgets)
        return cls(
            context,
            number,
            demand,
            nodes,
            reachable,
            tuple(placements),
            placed,
            caps=caps,
        )


def snapshot_of(
    compiled: CompiledCluster,
    number: int,
    placements: Sequence[Placement],
    *,
    exact: bool = True,
) -> DemandSnapshot:
    """What a demand of a cluster meets after these placements: holders, selectors and rules are known by name.

    Parameters
    ----------
    exact
        Whether the exact model answers, and not first fit.
    """
    found = DemandSnapshot.after(
        placements, compiled.problem, number, TableOffers(compiled), compiled.holdings
    )
    pod = pod_of(compiled.cluster, found.whole)
    used = () if pod is None else compiled.cluster.pod_claims(pod)
    own = frozenset((*used, *(claim.key for claim in found.whole.claims)))
    may_bind = compiled.may_bind or found.whole.roles
    bars = NodeBars(compiled, number, placements, exact=exact) if may_bind else None
    nodes = tuple(node for node in found.nodes if not (bars and bars.of(node)))
    return replace(
        found, own=own, exclusions=Exclusions(compiled), bars=bars, nodes=nodes
    )


def placed_before(problem: Problem, number: int) -> tuple[Placement, ...]:
    """What first fit has placed when it comes to a demand.

    It comes to a gang where the gang's first member stands; inside of it, the members before the demand are placed one
    by one.
    """
    before, members = _order(problem, number)
    return _replayed(
        problem, before, members[: members.index(number)], Demand.by_itself
    )


def gang_blocker(problem: Problem, number: int) -> int | None:
    """The first member of a demand's gang that first fit cannot place; None if it places as many as the gang needs."""
    before, members = _order(problem, number)
    placed = {
        one.demand for one in _replayed(problem, before, members, Demand.by_itself)
    }
    own = [
        member
        for member in members
        if problem.demands[member].gang == problem.demands[number].gang
    ]
    if len(placed.intersection(own)) >= quorum_of(
        [problem.demands[member] for member in own]
    ):
        return None
    return next((member for member in own if member not in placed), None)


def failing_gangs(problem: Problem, number: int) -> dict[str, int]:
    """Gangs of a demand's tree that first fit cannot place after the others, each with the first of its demands."""
    before, members = _order(problem, number)
    found = _replayed(problem, before, members, partial(replace, parent=None))
    placed = {problem.demands[one.demand].gang for one in found}
    failing = [index for index in members if problem.demands[index].gang not in placed]
    return {problem.demands[index].gang: index for index in reversed(failing)}


def is_tree_admitted(problem: Problem, number: int) -> bool:
    """Whether first fit places a demand with the groups above its gang."""
    return any(
        one.demand == number
        for one in _replayed(problem, *_order(problem, number), replace)
    )


def _order(problem: Problem, number: int) -> tuple[list[int], list[int]]:
    """The demands that are placed before a demand's gang, in order, and the gang."""
    gangs: dict[object, list[int]] = defaultdict(list)
    for index, demand in enumerate(problem.demands):
        gangs[demand.placed_with or index].append(index)
    place, members = next(
        (place, found) for place, found in enumerate(gangs.values()) if number in found
    )
    return [*chain.from_iterable(islice(gangs.values(), place))], members


def _replayed(
    problem: Problem,
    before: Sequence[int],
    members: Sequence[int],
    changed: Callable[[Demand], Demand],
) -> tuple[Placement, ...]:
    """What first fit places of some demands and then, changed, of members of a gang."""
    order = [*before, *members]
    if not order:
        return ()
    demands = [problem.demands[index] for index in before]
    demands += [changed(problem.demands[index]) for index in members]
    found = first_fit(replace(problem, demands=tuple(demands)))
    return tuple(replace(one, demand=order[one.demand]) for one in found.placements)
