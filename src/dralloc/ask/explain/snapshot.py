"""The snapshot that a demand meets when its turn comes: what it can still get, and the holdings of all others.

First which demand a claim or pod is, and what caps leave to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from dralloc.ask.context.context import Context
from dralloc.ask.context.exclusions import SHARED, Exclusions, pod_of
from dralloc.ask.context.node_bars import Bar, NodeBars
from dralloc.ask.context.offers import Offers, TableOffers
from dralloc.ask.context.settled_pods import SettledPods
from dralloc.ask.explain.changes import Change
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.errors import DrallocError, did_you_mean
from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import Budget, BudgetKey
from dralloc.problem import (
    Charge,
    Demand,
    DemandIndex,
    NodeIndex,
    Problem,
    Scope,
    numbered,
    quorum_of,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import (
    Grant,
    Placement,
    amount_used,
    holdings_of,
    spending,
    spent,
)
from dralloc.problem.subproblem import open_claims
from dralloc.solve.first_fit import first_fit

__all__ = [
    "Caps",
    "DemandSnapshot",
    "charged",
    "failing_gangs",
    "find_demand",
    "gang_blocker",
    "is_tree_admitted",
    "placed_before",
    "snapshot_of",
]

# ----------------------------------------------------------------------------
# Which demand a claim or pod is, or why it is none.

_PATHS: Final = {
    Unasked.GATED: "spec.schedulingGates",
    Unasked.BOUND: "spec.nodeName",
    Unasked.ALLOCATED: "spec.resourceClaims",
    Unasked.FINISHED: "status.phase",
    Unasked.DELETED: "metadata.deletionTimestamp",
}


def find_demand(
    compiled: CompiledCluster, claim: ClaimKey | None, pod: ClaimKey | None
) -> DemandIndex:
    """The index of the demand.

    Raises
    ------
    DrallocError
        Not exactly one of the two is given, it does not exist, or nothing of it is pending.
    """
    if (claim is None) == (pod is None):
        raise DrallocError(
            "explain needs the name of a claim or of a pod, and not both"
        )
    for demand_index, demand in numbered(compiled.problem.demands):
        if claim is not None and claim in {
            listed.key for listed in demand.claims
        }:
            return demand_index
        if (
            pod is not None
            and demand.key == pod
            and pod_of(compiled.cluster, demand) is not None
        ):
            return demand_index
    if claim is not None:
        raise DrallocError(_about_claim(compiled, claim))
    raise DrallocError(_about_pod(compiled, pod or ClaimKey("", "")))


def _about_claim(compiled: CompiledCluster, key: ClaimKey) -> str:
    cluster = compiled.cluster
    claim = cluster.claim(key)
    if claim is None:
        known = (str(claim.key) for claim in cluster.claims)
        return f"ResourceClaim {key}: not found{did_you_mean(str(key), known)}"
    if claim.is_allocated:
        devices = ", ".join(str(result.device_id) for result in claim.results)
        return f"ResourceClaim {key}: status.allocation: is allocated already ({devices or 'no devices'})"
    users = [
        pod.key
        for pod in cluster.pods
        if pod.key in compiled.unasked and key in cluster.pod_claims(pod)
    ]
    reason = f": {_about_pod(compiled, users[0])}" if users else ""
    return f"ResourceClaim {key}: is not pending{reason}"


def _about_pod(compiled: CompiledCluster, key: ClaimKey) -> str:
    why = compiled.unasked.get(key)
    if why is None:
        known = map(str, compiled.cluster.pods_by_key)
        return f"Pod {key}: not found{did_you_mean(str(key), known)}"
    path = f"{_PATHS[why]}: " if why in _PATHS else ""
    hint = f"; --include {why.include} plans for it" if why.include else ""
    return f"Pod {key}: {path}{why}{hint}"


# ----------------------------------------------------------------------------
# What caps leave to a demand, and who in its namespace uses how much of what is
# capped.


@dataclass(frozen=True)
class Caps:
    """The amounts that caps still allow a demand.

    Parameters
    ----------
    budgets
        Those with a cap; ``used`` is what allocated claims and those placed before use.
    uses
        By resource, what each of these claims uses of it, in nanos, as far as that is known by claim.
    """

    budgets: tuple[Budget, ...] = ()
    uses: Mapping[str, Mapping[ClaimKey, int]] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        problem: Problem,
        allocated: Iterable[Holding],
        placements: Sequence[Placement],
    ) -> Caps:
        """The caps of a problem once these placements are made.

        Parameters
        ----------
        allocated
            What is known of those who were there before.
        """
        capped = tuple(
            replace(budget, fair=False)
            for budget in problem.budgets
            if budget.most is not None
        )
        if not capped:
            return cls()
        uses: dict[str, dict[ClaimKey, int]] = {
            budget.resource: defaultdict(int) for budget in capped
        }
        holdings = list(allocated)
        for resource, amounts in uses.items():
            for holding in holdings:
                amounts[holding.claim] += _held(problem, holding, resource)
            for claim, amount in spending(problem, placements, resource):
                amounts[claim] += amount
        return cls(charged(capped, problem, placements), uses)

    def under(self, change: Change) -> tuple[Budget, ...]:
        """The caps that are in force with a change, and what is used then."""
        budgets = []
        for budget in self.budgets:
            if budget.key not in change.caps:
                released = sum(
                    amount
                    for claim, amount in self.users(budget).items()
                    if claim in change.released
                )
                cap = change.raised.get(budget.key, budget.most)
                budgets.append(
                    replace(budget, used=budget.used - released, most=cap)
                )
        return tuple(budgets)

    @property
    def most(self) -> Mapping[BudgetKey, int]:
        """The most that each of them allows, in nanos."""
        return {budget.key: budget.most or 0 for budget in self.budgets}

    def used(
        self, problem: Problem, placements: Sequence[Placement]
    ) -> Mapping[BudgetKey, int]:
        """The amounts that namespaces use of each of them once these placements are made, in nanos."""
        budgets = charged(self.budgets, problem, placements)
        return {budget.key: budget.used for budget in budgets}

    def of(self, demand: Demand) -> tuple[Budget, ...]:
        """The caps of a demand's namespace."""
        namespaces = {claim.key.namespace for claim in demand.claims}
        return tuple(
            budget for budget in self.budgets if budget.namespace in namespaces
        )

    def users(self, budget: Budget) -> Mapping[ClaimKey, int]:
        """The claims of a namespace that use what is capped, with the amounts."""
        by_claim = self.uses[budget.resource]
        return {
            key: amount
            for key, amount in by_claim.items()
            if amount and key.namespace == budget.namespace
        }


def charged(
    budgets: Iterable[Budget], problem: Problem, placements: Sequence[Placement]
) -> tuple[Budget, ...]:
    """The budgets once these placements are made."""
    charged_budgets = []
    for budget in budgets:
        by_namespace = spent(problem, placements, budget.resource)
        used = budget.used + by_namespace.get(budget.namespace, 0)
        charged_budgets.append(replace(budget, used=used))
    return tuple(charged_budgets)


def _held(problem: Problem, holding: Holding, resource: str) -> int:
    """Return the amount of a resource that is held, by the newest version of the device that is published."""
    device = problem.devices[problem.versions[holding.slot][-1]]
    # Older versions may have drawn on counters that the newest does not draw on.
    drawn = tuple(
        pair
        for pair in holding.charge.counters
        if problem.counters[pair[0]].group == device.group
    )
    return amount_used(
        resource,
        device,
        Charge(holding.charge.capacity, drawn),
        problem.counters,
    )


@dataclass(frozen=True)
class DemandSnapshot:
    """The cluster as one demand finds it: placements, nodes, rules and caps when its turn comes.

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
    own_claims
        The claims that the demand uses, also those that are allocated already: it cannot do without them.
    caps
        What namespaces may use; empty for first fit, which does not look at caps.
    exclusions
        The rules that leave nodes out.
    bars
        What bars the demand from nodes beside devices; None if that does not matter.
    """

    context: Context
    number: DemandIndex
    demand: Demand
    nodes: tuple[NodeIndex, ...]
    reachable: frozenset[int]
    placements: tuple[Placement, ...]
    placed: dict[ClaimKey, int]
    own_claims: frozenset[ClaimKey] = frozenset()
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

    def exclusion(self, node: NodeIndex) -> tuple[str, ...]:
        """The rules that leave a node out, whatever it has."""
        shared = () if node in self.reachable else (SHARED,)
        return (*self.exclusions.rules(self.whole, node), *shared)

    def bars_of(
        self, node: NodeIndex, released: Collection[ClaimKey] = ()
    ) -> tuple[Bar, ...]:
        """Return the reasons beside devices that keep the demand from a node, once the pods of some claims are gone."""
        return () if self.bars is None else self.bars.of(node, released)

    def rules(
        self, node: NodeIndex, released: Collection[ClaimKey] = ()
    ) -> tuple[str, ...]:
        """Return every rule, but for those about devices, that would have to change for the node to do."""
        return (
            *self.exclusion(node),
            *(bar.text for bar in self.bars_of(node, released)),
        )

    @classmethod
    def after(
        cls,
        placements: Sequence[Placement],
        problem: Problem,
        number: DemandIndex,
        offers: Offers,
        allocated: Sequence[Holding] = (),
    ) -> DemandSnapshot:
        """Return the snapshot of a demand after these placements, as far as the problem alone knows it."""
        ledger = ClaimLedger(problem, allocated)
        placed: dict[ClaimKey, int] = {}
        homes: dict[ClaimKey, tuple[NodeIndex, Sequence[Grant]]] = {}
        mates: dict[Scope, dict[ClaimKey, Demand]] = defaultdict(dict)
        # Demands may share claims: the first that is placed is granted them, and where the
        # others can use these devices is where they may go.
        for placement in placements:
            ledger.hold(holdings_of(problem, placement))
            mate = problem.demands[placement.demand]
            for scope in mate.group_scopes:
                mates[scope][mate.key] = mate
            for claim, grants in zip(
                mate.claims, placement.grants, strict=True
            ):
                if grants or not claim.requests:
                    placed[claim.key] = placement.demand
                    homes[claim.key] = placement.node, grants
        complete = problem.demands[number]
        open_ = tuple(open_claims(problem, complete, homes, mates))
        demand = replace(complete, claims=open_)
        reachable = set(problem.all_nodes)
        for claim in complete.claims:
            if claim.key in homes:
                home, granted = homes[claim.key]
                for grant in granted:
                    device = grant.device
                    reachable = {
                        node
                        for node in reachable
                        if problem.usable_from(device, home, node)
                    }
        nodes = tuple(
            node
            for node in problem.candidate_nodes(complete)
            if node in reachable
        )
        caps = Caps.at(problem, allocated, placements)
        context = Context(problem, offers, ledger, caps.budgets)
        return cls(
            context,
            number,
            demand,
            nodes,
            frozenset(reachable),
            tuple(placements),
            placed,
            caps=caps,
        )


def snapshot_of(
    compiled: CompiledCluster,
    demand: DemandIndex,
    placements: Sequence[Placement],
    *,
    exact: bool = True,
) -> DemandSnapshot:
    """Return the snapshot of a demand after these placements, with holders, selectors and rules by name.

    Parameters
    ----------
    exact
        Whether the exact model answers, and not first fit.
    """
    snapshot = DemandSnapshot.after(
        placements,
        compiled.problem,
        demand,
        TableOffers(compiled),
        compiled.holdings,
    )
    pod = pod_of(compiled.cluster, snapshot.whole)
    used = () if pod is None else compiled.cluster.pod_claims(pod)
    own_claims = frozenset(
        (*used, *(claim.key for claim in snapshot.whole.claims))
    )
    may_bind = compiled.may_bind or snapshot.whole.roles
    bars = (
        NodeBars(
            SettledPods(compiled, [demand], placements), demand, exact=exact
        )
        if may_bind
        else None
    )
    # Nodes that have too little beside devices, or that other pods bar, are still among them.
    nodes = tuple(
        node for node in snapshot.nodes if not (bars and bars.of(node))
    )
    return replace(
        snapshot,
        own_claims=own_claims,
        exclusions=Exclusions(compiled),
        bars=bars,
        nodes=nodes,
    )


def placed_before(
    problem: Problem, demand: DemandIndex
) -> tuple[Placement, ...]:
    """Return the placements that first fit has made when a demand's turn comes.

    It comes to a gang where the gang's first member stands; inside of it, the members before the demand are placed one
    by one.
    """
    before, members = _order(problem, demand)
    return _replayed(
        problem, before, members[: members.index(demand)], Demand.by_itself
    )


def gang_blocker(problem: Problem, demand: DemandIndex) -> DemandIndex | None:
    """The first member of a demand's gang that first fit cannot place; None if it places as many as the gang needs."""
    before, members = _order(problem, demand)
    # By itself, each member is placed if it fits, whether the others do or not.
    placements = _replayed(problem, before, members, Demand.by_itself)
    placed = {placement.demand for placement in placements}
    gang = [
        member
        for member in members
        if problem.demands[member].gang == problem.demands[demand].gang
    ]
    quorum = quorum_of([problem.demands[member] for member in gang])
    if len(placed.intersection(gang)) >= quorum:
        return None
    return next((member for member in gang if member not in placed), None)


def failing_gangs(
    problem: Problem, demand: DemandIndex
) -> dict[str, DemandIndex]:
    """Gangs of a demand's tree that first fit cannot place after the others, each with the first of its demands."""
    before, members = _order(problem, demand)
    # Without parent, each gang of the tree is placed if it fits, whether the others do or not.
    placements = _replayed(
        problem, before, members, partial(replace, parent=None)
    )
    placed = {
        problem.demands[placement.demand].gang for placement in placements
    }
    failing = [
        index for index in members if problem.demands[index].gang not in placed
    ]
    return {problem.demands[index].gang: index for index in reversed(failing)}


def is_tree_admitted(problem: Problem, demand: DemandIndex) -> bool:
    """Whether first fit places a demand with the groups above its gang."""
    placements = _replayed(problem, *_order(problem, demand), replace)
    return any(placement.demand == demand for placement in placements)


def _order(
    problem: Problem, demand_index: DemandIndex
) -> tuple[list[DemandIndex], list[DemandIndex]]:
    """The demands that are placed before a demand's gang, in order, and the gang."""
    gangs: dict[object, list[DemandIndex]] = defaultdict(list)
    for index, demand in numbered(problem.demands):
        gangs[demand.placed_with or index].append(index)
    before: list[DemandIndex] = []
    for members in gangs.values():
        if demand_index in members:
            return before, members
        before += members
    raise AssertionError("every demand is in a gang, be it alone")


def _replayed(
    problem: Problem,
    before: Sequence[DemandIndex],
    members: Sequence[DemandIndex],
    changed: Callable[[Demand], Demand],
) -> tuple[Placement, ...]:
    """Run first fit over some demands and then, changed, over members of a gang; return the placements."""
    order = [*before, *members]
    if not order:
        return ()
    demands = [problem.demands[index] for index in before]
    demands += [changed(problem.demands[index]) for index in members]
    solution = first_fit(replace(problem, demands=tuple(demands)))
    return tuple(
        replace(placement, demand=order[placement.demand])
        for placement in solution.placements
    )
