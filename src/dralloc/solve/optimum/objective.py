"""The tiers of the objective, and what namespaces may use at most.

Each tier counts something as an exact integer that is made small. Fairness between namespaces is a tier, too; their
caps are rows.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import partial
from math import gcd
from typing import Final

from dralloc.objects.choices import Goal
from dralloc.objects.errors import ModelError
from dralloc.objects.user_rules import Budget
from dralloc.problem import NodeIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import (
    Placement,
    Tier,
    amount_used,
    charged_grants,
    grants_of,
    spent,
)
from dralloc.solve.optimum.candidates import CandidateSite, ServingChoice
from dralloc.solve.optimum.classes.count_model import CountModel
from dralloc.solve.optimum.classes.counted_goals import goal_terms
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import (
    SAFE_SUM,
    Literal,
    SignedTerm,
    Term,
    WeightTier,
    add_at_most,
    weight_tiers,
)
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.sharing import touched_before, units
from dralloc.solve.optimum.solvers import cp_model

__all__ = [
    "ALTERNATIVES",
    "DemandSubset",
    "Objective",
    "add_caps",
    "after_weight",
    "fairness",
    "placed_weight",
    "summed_weight",
    "used_nodes",
]


@dataclass(frozen=True, slots=True)
class DemandSubset:
    """Some demands of a problem: what a cost is counted over.

    Parameters
    ----------
    sites
        Where they can go; not known if classes stand for the demands.
    most_of_gang
        By gang of which not all members have room even where nobody else comes: how many have.
    """

    problem: Problem
    demands: Sequence[DemandIndex]
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]] = field(
        default_factory=dict
    )
    most_of_gang: Mapping[str, int] = field(default_factory=dict)

    def weight(self, tier: WeightTier) -> int:
        """Return the weight of all of the demands in a tier of the weight."""
        return sum(
            tier.of(self.problem.demands[demand].weight)
            for demand in self.demands
        )


_Cost = Callable[[DemandSubset, Sequence[Placement]], int]


def _nothing(_: DemandSubset, __: Sequence[Placement]) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Objective:
    """A tier of the objective.

    Parameters
    ----------
    name
        What the tier is called in solutions and while it is solved.
    cost
        What an answer costs.
    terms
        The cost in the variables of the per-device model, to which auxiliary variables may be added.
    floor
        What any answer costs that is as good as the given one in the tiers before, known without solving.
    total
        How costs of independent parts combine.
    counted
        The cost in the variables of the model over classes; None if that cannot express it.
    count
        What an answer over classes costs, by the values of all variables; the sum of its terms if None.
    by_names
        Whether only placements tell what an answer over classes costs.
    worth
        What is shown in place of the cost, where more is better: the cost goes up by as much as this goes down.
    weights
        The weights that it counts, if it is one of the tiers of the weight.
    adds_up
        Whether the cost of an answer is the sum of what its blocks cost alone, of demands that have claims in common.
    """

    name: str
    cost: _Cost
    terms: Callable[[Model], list[Term]]
    floor: _Cost = _nothing
    total: Callable[[Iterable[int]], int] = sum
    counted: Callable[[CountModel], list[Term]] | None = None
    count: Callable[[CountModel, Sequence[int]], int] | None = None
    by_names: bool = False
    worth: Callable[[Problem, Sequence[Placement]], int] | None = None
    weights: WeightTier | None = None
    adds_up: bool = False

    def shown(self, cost: int, bound: int, attainable: int | None) -> Tier:
        """The tier as answers show it: its cost, or what is attainable less its cost if more is better."""
        if attainable is None:
            return Tier(self.name, cost, bound, sense=-1)
        return Tier(self.name, attainable - cost, attainable - bound)


def placed_weight(problem: Problem) -> tuple[Objective, ...]:
    """The tiers of the weight, most important first: most often one."""
    tiers = weight_tiers(demand.weight for demand in problem.demands)
    return tuple(
        Objective(
            "weight",
            partial(_missed, tier),
            partial(_miss_terms, tier),
            counted=partial(CountModel.missed_weight, tier=tier),
            weights=tier,
            adds_up=True,
        )
        for tier in tiers
    )


def after_weight(goal: Goal) -> tuple[Objective, ...]:
    """The tiers of every problem after those of weight and fairness."""
    if goal in _GOALS:
        return (_ALTERNATIVES, _GOALS[goal])
    return (_ALTERNATIVES,)


def summed_weight(
    tiers: Sequence[Tier], objectives: Sequence[Objective]
) -> Tier:
    """All tiers of the weight as one, in exact integers: those after one that is not proven may all be placed."""
    units = [
        objective.weights.unit for objective in objectives if objective.weights
    ]
    value = sum(
        unit * tier.value for unit, tier in zip(units, tiers, strict=True)
    )
    bound = sum(
        unit * tier.bound for unit, tier in zip(units, tiers, strict=True)
    )
    return Tier("weight", value, bound)


def _missed(
    tier: WeightTier, subset: DemandSubset, placements: Sequence[Placement]
) -> int:
    demands = subset.problem.demands
    return subset.weight(tier) - sum(
        tier.of(demands[placement.demand].weight) for placement in placements
    )


def _miss_terms(tier: WeightTier, model: Model) -> list[Term]:
    demands = model.problem.demands
    weights = (
        (miss, tier.of(demands[demand].weight))
        for demand, miss in model.variables.miss.items()
    )
    return [(miss, weight) for miss, weight in weights if weight]


def _rank(subset: DemandSubset, placements: Sequence[Placement]) -> int:
    """The ranks of the picked alternatives (KEP-4816), added up."""
    # A request has one grant for each of its devices, but one alternative.
    ranks = {
        (claim.key, grant.request): picked.rank
        for claim, picked, grant in grants_of(subset.problem, placements)
    }
    return sum(ranks.values())


def _least_rank(subset: DemandSubset, placements: Sequence[Placement]) -> int:
    """Each demand that cannot be missed has at least the ranks of its best site."""
    placed_anyway = _placed_anyway(subset, placements)
    return sum(
        min(map(_least_rank_at, sites))
        for demand, sites in subset.sites.items()
        if demand in placed_anyway
    )


def _least_rank_at(site: CandidateSite) -> int:
    return sum(_least_rank_of(choices, site) for choices in site.requests)


def _least_rank_of(
    choices: Sequence[ServingChoice], site: CandidateSite
) -> int:
    """The least rank of one request; none of a claim that may be granted with another demand."""
    return min(
        0 if choice.claim in site.shared else choice.spec.rank
        for choice in choices
    )


def _placed_anyway(
    subset: DemandSubset, placements: Sequence[Placement]
) -> Collection[DemandIndex]:
    """The demands that any answer places that is worth as much as the given one.

    If that places all whose weight counts, no other answer can do without one of them. A demand of no weight may be
    missed in any case (the other members of a gang that needs few of them, where victims are looked for).
    """
    demands = subset.problem.demands
    counting = {
        demand for demand in subset.demands if demands[demand].weight > 0
    }
    if counting <= {placement.demand for placement in placements}:
        return counting
    return ()


def _rank_terms(model: Model) -> list[Term]:
    return [
        (serving.literal, serving.choice.spec.rank)
        for serving in model.variables.every_serving()
        if serving.choice.spec.rank
    ]


def _nodes(_: DemandSubset, placements: Sequence[Placement]) -> int:
    return len({placement.node for placement in placements})


def _any(subset: DemandSubset, placements: Sequence[Placement]) -> int:
    """An answer that is worth as much as one that is worth anything has placements."""
    return int(
        any(
            subset.problem.demands[placement.demand].weight > 0
            for placement in placements
        )
    )


def node_terms(model: Model) -> list[Term]:
    """Return a term for each node in use."""
    return [(literal, 1) for literal in used_nodes(model).values()]


def used_nodes(model: Model) -> dict[NodeIndex, Literal]:
    """By node whether it is used, with its own devices and counters drawn from only if it is."""
    used: dict[NodeIndex, Literal] = {}
    for (_, node), on in model.variables.on.items():
        if node not in used:
            used[node] = model.cp.new_bool_var(
                f"used {model.problem.nodes[node].name}"
            )
        model.cp.add_implication(on, used[node])
    touched_nodes = _touched_nodes(model)

    def draw_only_if_used(
        terms: Sequence[Term], free: int, row_name: str
    ) -> None:
        nodes = set().union(
            *(touched_nodes[literal.index] for literal, _ in terms)
        )
        # What several nodes draw from says nothing about one of them.
        if len(nodes) == 1:
            _draw_only_if(model, used[nodes.pop()], terms, free, row_name)

    for users in model.dedicated_users().values():
        draw_only_if_used([(literal, 1) for literal in users], 1, "device")
    for index, terms in model.counter_terms().items():
        counter = model.problem.counters[index]
        draw_only_if_used(terms, counter.free, f"counter {counter.id}")
    return used


def _touched_nodes(model: Model) -> dict[int, set[NodeIndex]]:
    """By index of a literal: the nodes on which it takes something."""
    nodes: dict[int, set[NodeIndex]] = defaultdict(set)
    for take in model.variables.takes():
        opened = model.variables.opened.get(take.view.slot)
        for literal in (take.literal, opened):
            if literal is not None:
                nodes[literal.index].update(take.nodes)
    return nodes


def _draw_only_if(
    model: Model,
    condition: Literal,
    terms: Sequence[Term],
    free: int,
    row_name: str,
) -> None:
    """Add ``terms <= free * condition``: what is drawn in part makes the condition true in part, when relaxed."""
    if free > 0:
        row: list[SignedTerm] = [*terms, (~condition, free)]
        add_at_most(model.cp, row, free, row_name)


def _peak(_: DemandSubset, placements: Sequence[Placement]) -> int:
    return max(
        Tally(placement.node for placement in placements).values(), default=0
    )


def _least_peak(subset: DemandSubset, placements: Sequence[Placement]) -> int:
    placed_anyway = _placed_anyway(subset, placements)
    nodes = {
        site.node
        for demand in placed_anyway
        for site in subset.sites.get(demand, ())
    }
    if nodes:
        # However they are spread, some node has its share of them, rounded up.
        return -(-len(placed_anyway) // len(nodes))
    return _any(subset, placements)


def peak_terms(model: Model) -> list[Term]:
    """The largest number of demands on one node."""
    nodes = grouped((node, on) for (_, node), on in model.variables.on.items())
    peak = model.cp.new_int_var(0, max(map(len, nodes.values())), "peak")
    for literals in nodes.values():
        model.cp.add(cp_model.LinearExpr.sum(literals) <= peak)
    return [(peak, 1)]


def _opened(subset: DemandSubset, placements: Sequence[Placement]) -> int:
    """The devices that were free before and are in use with the answer."""
    problem = subset.problem
    slots = {
        problem.devices[device].slot
        for _, device, _ in charged_grants(problem, placements)
    }
    return len(slots - problem.usage.shares.keys())


def slot_terms(model: Model) -> list[Term]:
    """Return a term for each device that is opened: a dedicated one by its only user, a shareable one by its first."""
    users = [
        user
        for literals in model.dedicated_users().values()
        for user in literals
    ]
    return [
        (literal, 1) for literal in (*users, *model.variables.opened.values())
    ]


def _touched(subset: DemandSubset, placements: Sequence[Placement]) -> int:
    """The units that were whole before and are not with the answer."""
    problem = subset.problem
    grants = charged_grants(problem, placements)
    touched = {
        unit
        for _, device, charge in grants
        for unit in units(problem, device, charge)
    }
    return len(touched - touched_before(problem))


def unit_terms(model: Model) -> list[Term]:
    """Return a term for each unit, drawn from only if it is touched: so the linear relaxation counts parts of units."""
    before = touched_before(model.problem)
    touched: dict[Hashable, Literal] = {}
    for take in model.variables.takes():
        if take.admin:
            continue
        for unit in units(model.problem, take.device, take.charge):
            if unit in before:
                continue
            if unit not in touched:
                touched[unit] = model.cp.new_bool_var(f"touched {unit}")
            model.cp.add_implication(take.literal, touched[unit])
    for index, terms in model.counter_terms().items():
        counter = model.problem.counters[index]
        # Without the name of the counter it is the id of its set, which is a unit.
        unit = counter.id[:3]
        if unit in touched:
            row_name = f"counter {counter.id}"
            _draw_only_if(model, touched[unit], terms, counter.free, row_name)
    return [(literal, 1) for literal in touched.values()]


ALTERNATIVES: Final = "alternatives"
"""The name of the tier of the ranks of picked alternatives (KEP-4816)."""

_ALTERNATIVES = Objective(
    ALTERNATIVES,
    _rank,
    _rank_terms,
    _least_rank,
    counted=CountModel.ranks,
    adds_up=True,
)


def _goal(
    goal: Goal,
    cost: _Cost,
    terms: Callable[[Model], list[Term]],
    floor: _Cost = _nothing,
) -> Objective:
    """A packing goal: what counts cost is only known once they have names."""
    total = partial(max, default=0) if goal is Goal.SPREAD else sum
    return Objective(
        goal.value,
        cost,
        terms,
        floor,
        total,
        counted=partial(goal_terms, goal),
        by_names=True,
    )


_GOALS = {
    Goal.FEWEST_NODES: _goal(Goal.FEWEST_NODES, _nodes, node_terms, _any),
    Goal.FEWEST_DEVICES: _goal(Goal.FEWEST_DEVICES, _opened, slot_terms),
    Goal.LEAST_FRAGMENTATION: _goal(
        Goal.LEAST_FRAGMENTATION, _touched, unit_terms
    ),
    Goal.SPREAD: _goal(Goal.SPREAD, _peak, peak_terms, _least_peak),
}


# ----------------------------------------------------------------------------
# Caps of namespaces, and fairness between them.
#
# With ``use[n]`` what namespace *n* uses in the end, a cap is ``use[n] <= most[n]``.
# Fairness is max-min: the poorest gets as much as possible, then the two poorest
# together, and so on (leximin; Ogryczak and Sliwinski 2003). Tier *i* maximises the sum
# of the *i* smallest uses, as the smallest sum of the *i* largest distances to the
# total::
#
#     minimise  i * s + sum_n d[n]    with  d[n] + s >= total - use[n],  d[n] >= 0,  s >= 0


def add_caps(model: Model) -> None:
    """No namespace uses more than its cap leaves."""
    for budget in model.problem.budgets:
        if budget.left is not None:
            row_name = f"cap {budget.namespace}={budget.resource}"
            add_at_most(
                model.cp, list(_uses(model, budget)), budget.left, row_name
            )


def _uses(model: Model, budget: Budget) -> Iterator[Term]:
    """Yield the use of each take of the namespace's claims."""
    problem = model.problem
    for serving in model.variables.every_serving():
        claim = problem.demands[serving.demand].claims[serving.choice.claim]
        if claim.key.namespace != budget.namespace or serving.choice.spec.admin:
            continue
        for take in serving.takes:
            amount = amount_used(
                budget.resource, take.view, take.charge, problem.counters
            )
            if amount:
                yield take.literal, amount


def fairness(problem: Problem) -> tuple[Objective, ...]:
    """Return a tier for each namespace that shares fairly, the poorest first."""
    final = _FinalUses()
    namespace_count = len(_sharing(problem.budgets))
    return tuple(
        Objective(
            name=f"fairness-{poorest}",
            cost=partial(_cost, poorest, final),
            terms=partial(_terms, poorest),
            counted=partial(_counted, poorest),
            count=partial(_count, poorest),
            worth=partial(_worth, poorest, final),
        )
        for poorest in range(1, namespace_count + 1)
    )


def _sharing(budgets: Sequence[Budget]) -> list[Budget]:
    return [budget for budget in budgets if budget.fair]


class _FinalUses:
    """The final uses of namespaces, the poorest first: found once for all tiers of the same answer."""

    def __init__(self) -> None:
        self._answer: tuple[Problem, Sequence[Placement]] | None = None
        self._uses: list[int] = []

    def __reduce__(self) -> tuple[type[_FinalUses], tuple[()]]:
        """Leave out the known uses: they are not sent to other processes."""
        return _FinalUses, ()

    def of(
        self, problem: Problem, placements: Sequence[Placement]
    ) -> list[int]:
        """The same list as long as it is the same answer."""
        if (
            self._answer is None
            or self._answer[0] is not problem
            or self._answer[1] is not placements
        ):
            sharing = _sharing(problem.budgets)
            used = spent(problem, placements, sharing[0].resource)
            self._uses = sorted(
                budget.used + used.get(budget.namespace, 0)
                for budget in sharing
            )
            self._answer = problem, placements
        return self._uses


def _worth(
    poorest: int,
    final: _FinalUses,
    problem: Problem,
    placements: Sequence[Placement],
) -> int:
    return sum(final.of(problem, placements)[:poorest])


def _cost(
    poorest: int,
    final: _FinalUses,
    subset: DemandSubset,
    placements: Sequence[Placement],
) -> int:
    """Return the distance of the poorest from the total. All demands that share are in one part."""
    return _distance(
        poorest,
        _sharing(subset.problem.budgets),
        final.of(subset.problem, placements),
    )


def _count(poorest: int, counts: CountModel, values: Sequence[int]) -> int:
    """Return the same distance for an answer over classes."""
    sharing = _sharing(counts.budgets)
    final = []
    for budget in sharing:
        amounts = (
            amount * values[variable.index]
            for variable, amount in counts.uses(budget)
        )
        final.append(budget.used + sum(amounts))
    return _distance(poorest, sharing, sorted(final))


def _distance(
    poorest: int, sharing: Sequence[Budget], final: Sequence[int]
) -> int:
    """Return the distance of the poorest together from the total, given the final uses in ascending order."""
    return sum(max(0, sharing[0].total - use) for use in final[:poorest])


def _terms(poorest: int, model: Model) -> list[Term]:
    sharing = _sharing(model.problem.budgets)
    uses = [list(_uses(model, budget)) for budget in sharing]
    return _leximin(poorest, model.cp, sharing, uses)


def _counted(poorest: int, counts: CountModel) -> list[Term]:
    sharing = _sharing(counts.budgets)
    uses = [list(counts.uses(budget)) for budget in sharing]
    return _leximin(poorest, counts.cp, sharing, uses)


def _leximin(
    poorest: int,
    cp: cp_model.CpModel,
    sharing: Sequence[Budget],
    uses: Sequence[Sequence[Term]],
) -> list[Term]:
    """The cost of one tier (see above), given what each namespace uses beside what it holds already."""
    gaps = [max(0, budget.total - budget.used) for budget in sharing]
    unit = gcd(*gaps, *(amount for terms in uses for _, amount in terms)) or 1
    if sum(gaps) + sum(map(most_of, uses)) > unit * SAFE_SUM:
        raise ModelError(
            f"--fair {sharing[0].resource}: amounts do not fit the solver's int64"
        )
    top = max(gaps) // unit
    level = cp.new_int_var(0, top, "level")
    cost: list[Term] = [(level, poorest * unit)]
    for budget, terms, gap in zip(sharing, uses, gaps, strict=True):
        short = cp.new_int_var(0, top, f"short {budget.namespace}")
        use = cp_model.LinearExpr.weighted_sum(
            [variable for variable, _ in terms],
            [amount // unit for _, amount in terms],
        )
        cp.add(short + level + use >= gap // unit)
        cost.append((short, unit))
    return cost
