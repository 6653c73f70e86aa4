"""The best exchange: the claims that move, where they move, in which order, and the pods that are admitted.

First the problem in which everybody stays or moves, and what its answers mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dralloc.ask.whatif.models.relocation import Exchange, Relocation
from dralloc.ask.whatif.moves.migration import (
    Migration,
    MoveOption,
    counting,
    stay_grants,
    stay_options,
)
from dralloc.ask.whatif.moves.steps import (
    MigrationStep,
    Move,
    Order,
    all_at_once,
    can_follow,
    find_order,
    replay,
    steps_of,
)
from dralloc.check import check, violations
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, DemandIndex
from dralloc.problem.solution import (
    Placement,
    Solution,
    Status,
    Tier,
    grants_of,
)
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options

__all__ = ["MigrationPlan", "rearrange"]

# ----------------------------------------------------------------------------
# The problem in which everybody stays or moves, and what its answers mean.


class MigrationProblem:
    """A migration as one problem: first the demands of staying, then those of moving, then what is pending.

    Parameters
    ----------
    max_moves
        How many claims may move; None for any number.
    """

    def __init__(self, migration: Migration, max_moves: int | None) -> None:
        self.migration = migration
        staying, eligibility = stay_options(migration)
        movable = [
            holder
            for holder, demand in enumerate(staying)
            if demand is not None
        ]
        self.places = {
            holder: demand_index for demand_index, holder in enumerate(movable)
        }
        demands = [demand for demand in staying if demand is not None]
        self.leads: list[DemandIndex] = []
        for option_index, option in enumerate(migration.move_options):
            self.leads.append(DemandIndex(len(demands)))
            demands += _of_option(option, option_index)
        self.first_pending = len(demands)
        problem = migration.without(movable).applied()
        self.demands = (*demands, *migration.problem.demands)
        # Who cannot be placed where it is stays there in any case, for all that rules know.
        fixed = migration.there(movable)
        self.problem = replace(
            problem,
            demands=counting(self.demands, fixed),
            eligibility=eligibility,
        )
        self.exchange = self._exchange(max_moves)

    def _exchange(self, max_moves: int | None) -> Exchange:
        moving: dict[int, list[str]] = {
            holder: [] for holder in range(len(self.migration.holders))
        }
        groups: dict[int, list[str]] = {}
        costs: dict[str, int] = {}
        for option_index, option in enumerate(self.migration.move_options):
            name = _name_of(option_index)
            costs[name] = len(option.movers)
            groups.setdefault(option.group, []).append(name)
            for holder in self.migration.holders_of(option):
                moving[holder].append(name)
        # Some holders have no demand for staying: they hold what they hold unless an option moves them.
        stays = {
            holder: self.demands[demand].gang
            for holder, demand in self.places.items()
        }
        return Exchange(
            stay_options=tuple(
                (stays.get(holder), tuple(names))
                for holder, names in moving.items()
            ),
            groups=tuple(map(tuple, groups.values())),
            costs=costs,
            max_moves=max_moves,
        )

    def staying(self, moving: Iterable[int] = ()) -> Iterator[Placement]:
        """Yield the placements of all holders but those that move, which are given by index."""
        gone = set(moving)
        for holder_index, demand in self.places.items():
            if holder_index not in gone:
                holder = self.migration.holders[holder_index]
                yield Placement(
                    DemandIndex(demand),
                    holder.home,
                    (stay_grants(holder.devices),),
                )

    def demands_of(self, option: int) -> tuple[Demand, ...]:
        """The demands of an option, under names of their own."""
        lead = self.leads[option]
        return self.demands[
            lead : lead + len(self.migration.move_options[option].demands)
        ]

    def moves(self, solution: Solution) -> tuple[Move, ...]:
        """Return the moves in an answer."""
        placed = {
            placement.demand: placement for placement in solution.placements
        }
        moves = []
        for option_index, option in enumerate(self.migration.move_options):
            lead = self.leads[option_index]
            # The demands of an option are a gang: with the first all are placed.
            if lead in placed:
                placements = tuple(
                    replace(
                        placed[DemandIndex(lead + demand)],
                        demand=DemandIndex(demand),
                    )
                    for demand in range(len(option.demands))
                )
                moves.append(
                    Move(option, self.demands_of(option_index), placements)
                )
        return tuple(moves)


def _of_option(option: MoveOption, option_index: int) -> Iterator[Demand]:
    """Yield the demands of an option, apart from those of other options that move the same claims."""
    gang = _name_of(option_index)
    for position, demand in enumerate(option.demands):
        claims = tuple(
            replace(
                claim,
                key=ClaimKey(claim.key.namespace, f"{claim.key.name} ({gang})"),
            )
            for claim in demand.claims
        )
        # The weight is that of the option as a whole, which is a gang: it counts once.
        yield replace(
            demand,
            claims=claims,
            gang=gang,
            quorum=None,
            parent=None,
            weight=0 if position else option.weight,
        )


def _name_of(option: int) -> str:
    """Return the name of the gang of an option's demands."""
    return f"option {option}"


_EFFORT: Final = 400_000
"""Of answers of the same worth so many are tried for fewer restarts that their candidates add up to this."""

_MOST_ORDERS: Final = 200


@dataclass(frozen=True)
class MigrationPlan:
    """The moves in their order, and the pods that they admit.

    Parameters
    ----------
    steps
        The ordered plan; the checker has accepted every step.
    moves
        The moves, in order.
    admitted
        The pending demands that are placed, by index.
    restarts
        How many of the moves stop before they start.
    fewest
        Whether no answer of the same worth needs fewer restarts.
    tiers
        ``weight``, ``moves`` and ``alternatives``, with bounds.
    """

    steps: tuple[MigrationStep, ...]
    moves: tuple[Move, ...]
    admitted: tuple[DemandIndex, ...]
    restarts: int
    fewest: bool
    status: Status
    tiers: tuple[Tier, ...]
    warnings: tuple[str, ...] = ()

    @property
    def moved(self) -> tuple[int, ...]:
        """The movable claims that move, by index, in order."""
        return tuple(
            mover for move in self.moves for mover in move.option.movers
        )

    def beside_others(self, most_weight: int, why: str) -> MigrationPlan:
        """The same plan, where there are moves that were not looked at: by these, whatever is missing might come.

        Parameters
        ----------
        most_weight
            The weight of all that is pending or has to move.
        why
            What was not looked at.
        """
        weight, *later = self.tiers
        bounds = [replace(weight, bound=most_weight)]
        bounds += (replace(tier, bound=min(tier.bound, 0)) for tier in later)
        tiers = tuple(
            tier if tier.proven else replace(tier, why=tier.why or why)
            for tier in bounds
        )
        is_proven = all(tier.proven for tier in tiers)
        status = self.status if is_proven else Status.FEASIBLE
        return replace(self, tiers=tiers, status=status)


def rearrange(
    migration: Migration,
    max_moves: int | None = None,
    options: Options | None = None,
    admitted: Sequence[Placement] = (),
) -> MigrationPlan:
    """Find the exchange of most weight, then with the fewest moves, then with the fewest restarts.

    Parameters
    ----------
    max_moves
        How many claims may move; None for any number.
    admitted
        Placements of pending demands that are possible without any move, to start from.

    Raises
    ------
    CheckError
        The answer or a step of the plan breaks a rule: a defect of dralloc.
    """
    problem, chosen = (
        MigrationProblem(migration, max_moves),
        options or Options(),
    )
    greedy = _greedy(problem)
    # Without restarts nothing is left to improve: no model is built.
    if greedy is not None and greedy.status is Status.OPTIMAL:
        order = find_order(migration, problem.moves(greedy))
        if not order.restarts:
            return _plan(problem, greedy, order, fewest=True)
    pending = (
        replace(
            placement,
            demand=DemandIndex(placement.demand + problem.first_pending),
        )
        for placement in admitted
    )
    start = greedy.placements if greedy else (*problem.staying(), *pending)
    relocation = Relocation(problem.problem, problem.exchange, chosen, start)
    best = relocation.solve()
    order = _ordered(problem, best)
    if order.restarts and best.status is Status.OPTIMAL:
        return _with_fewest_restarts(problem, relocation, best, order)
    return _plan(problem, best, order, fewest=not order.restarts)


def _with_fewest_restarts(
    problem: MigrationProblem,
    relocation: Relocation,
    best: Solution,
    order: Order,
) -> MigrationPlan:
    """Go through the answers of the same worth, until one needs no restart or there are no more."""
    fewest, last = order.proven, best
    for _ in range(
        min(_MOST_ORDERS, _EFFORT // (relocation.component.size + 1))
    ):
        answer = relocation.another(last)
        if answer is None:
            return _plan(
                problem, best, order, fewest=fewest and relocation.exhausted
            )
        shorter = _ordered(problem, answer)
        fewest, last = fewest and shorter.proven, answer
        if shorter.restarts < order.restarts:
            best, order = answer, shorter
        if not order.restarts:
            return _plan(problem, best, order, fewest=True)
    return _plan(problem, best, order, fewest=False)


def _ordered(problem: MigrationProblem, solution: Solution) -> Order:
    check(problem.problem, solution)
    return find_order(problem.migration, problem.moves(solution))


def _plan(
    problem: MigrationProblem, best: Solution, order: Order, *, fewest: bool
) -> MigrationPlan:
    moves = problem.moves(best)
    admitted = [
        (problem.demands[placement.demand], placement)
        for placement in best.placements
        if placement.demand >= problem.first_pending
    ]
    steps = steps_of(order, moves, admitted)
    if moves and not can_follow(problem.migration, steps):
        # Pods that move and pods that are admitted can depend on each other.
        order = all_at_once(len(moves))
        steps, fewest = steps_of(order, moves, admitted), False
    replay(problem.migration, steps)
    return MigrationPlan(
        steps=steps,
        moves=tuple(
            move for step in steps if step.placements for move in step.moves
        ),
        admitted=tuple(
            DemandIndex(placement.demand - problem.first_pending)
            for _, placement in admitted
        ),
        restarts=order.restarts,
        fewest=fewest,
        status=best.status,
        tiers=best.tiers,
        warnings=best.warnings,
    )


def _greedy(problem: MigrationProblem) -> Solution | None:
    """An answer in which each claim that is worth it moves in the cheapest way, as far as first fit finds devices.

    Everybody holds what they have meanwhile. Often that is the best already: it is optimal if all of them move with
    their first alternatives, and nothing is pending. None if no move is of worth, if moves are limited, or if the
    answer breaks a rule once everybody has left.
    """
    migration, chosen = problem.migration, _cheapest(problem.migration)
    if (
        not chosen
        or migration.problem.demands
        or problem.exchange.max_moves is not None
    ):
        return None
    demands = tuple(
        demand
        for option_index in chosen
        for demand in problem.demands_of(option_index)
    )
    demand_indices = [
        DemandIndex(problem.leads[option_index] + offset)
        for option_index in chosen
        for offset in range(len(problem.demands_of(option_index)))
    ]
    # Nobody leaves before they have something new, so that no restart is needed.
    before = replace(
        migration.ledger.applied(), demands=counting(demands, migration.there())
    )
    placed = [
        replace(placement, demand=demand_indices[placement.demand])
        for placement in first_fit(before).placements
    ]
    placed_demands = {placement.demand for placement in placed}
    moving = [
        option
        for option_index, option in chosen.items()
        if problem.leads[option_index] in placed_demands
    ]
    stays = problem.staying(
        holder for option in moving for holder in migration.holders_of(option)
    )
    placements = sorted(
        (*stays, *placed), key=lambda placement: placement.demand
    )
    answer = Solution(tuple(placements))
    if violations(problem.problem, answer):
        return None
    if len(moving) < len(chosen) or any(
        alternative.rank
        for _, alternative, _ in grants_of(problem.problem, placed)
    ):
        return answer
    # All that is worth moving moves, with the fewest claims and first alternatives: every
    # tier is at its bound.
    weight = sum(option.weight for option in moving)
    moves = sum(len(option.movers) for option in moving)
    tiers = (
        Tier("weight", weight, weight),
        Tier("moves", moves, moves, -1),
        Tier("alternatives", 0, 0, -1),
    )
    return replace(answer, status=Status.OPTIMAL, tiers=tiers)


def _cheapest(migration: Migration) -> dict[int, MoveOption]:
    """Return, for each group that is worth moving, by index the option worth the most that moves the fewest claims."""
    best: dict[int, tuple[int, MoveOption]] = {}
    for option_index, option in enumerate(migration.move_options):
        cheapest = best.setdefault(option.group, (option_index, option))
        if _worth(option) > _worth(cheapest[1]):
            best[option.group] = option_index, option
    return {
        option_index: option
        for option_index, option in best.values()
        if option.weight
    }


def _worth(option: MoveOption) -> tuple[int, int]:
    """What an option is worth, and of equal worth that it moves few claims."""
    return option.weight, -len(option.movers)
