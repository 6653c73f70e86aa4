"""An answer to some demands in an answer to all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dralloc.problem import Charge, Demand, Device, Problem
from dralloc.problem.all_devices import passed_over
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants
from dralloc.solve.caps import within_caps
from dralloc.solve.optimum.improve.incumbent import Bonds

__all__ = ["joined_answer", "split_answer"]


class SplitAnswer(NamedTuple):
    """Those placements that are of some demands, and those of others."""

    own: Sequence[Placement]
    others: Sequence[Placement]


def split_answer(
    demands: Iterable[DemandIndex], placements: Iterable[Placement]
) -> SplitAnswer:
    """Tell placements of some demands from those of others."""
    members = set(demands)
    own: list[Placement] = []
    others: list[Placement] = []
    for placement in placements:
        (own if placement.demand in members else others).append(placement)
    return SplitAnswer(own, others)


def joined_answer(
    problem: Problem,
    bonds: Bonds,
    own: Sequence[Placement],
    others: Iterable[Placement],
) -> Sequence[Placement]:
    """Return an answer to some demands with those of others that have room beside it, and that caps allow after it.

    Parameters
    ----------
    own
        The answer to some demands, which stays as it is.
    others
        Where others are in an answer to all.
    """
    admitted = within_caps(problem, _together(problem, bonds, own, others))
    return sorted(admitted, key=lambda placement: placement.demand)


def _together(
    problem: Problem,
    bonds: Bonds,
    own: Sequence[Placement],
    others: Iterable[Placement],
) -> list[Placement]:
    """Return an answer to some demands, and after it those placements of others that have room beside it.

    Left out is also who has a role in a rule that others know, or passes over a device: a search finds room for them.
    Beside admin access, which has to find room and holds none (KEP-5018), nobody else is placed.
    """
    answer = list(own)
    own_demands = [problem.demands[placement.demand] for placement in own]
    if _ask_for_admin_access(own_demands):
        return answer
    ledger = Ledger(problem)
    for _, device, charge in charged_grants(problem, own):
        view = problem.devices[device]
        ledger.enter(view, charge, share=view.shareable)
    blocks = grouped(
        (bonds.block_of[placement.demand], placement) for placement in others
    )
    for block, placements in blocks.items():
        passes_over = any(
            any(passed_over(problem, placement)) for placement in placements
        )
        if (
            not passes_over
            and _is_by_itself(problem, bonds, block)
            and _entered(ledger, placements)
        ):
            answer += placements
    return answer


def _is_by_itself(problem: Problem, bonds: Bonds, block: int) -> bool:
    """Whether nothing decides whether a block may stand somewhere but what is free there."""
    members = bonds.blocks[block]
    demands = [problem.demands[member] for member in members]
    if _ask_for_admin_access(demands):
        return False
    rules = {role.rule for demand in demands for role in demand.roles}
    return all(set(members).issuperset(bonds.with_role[rule]) for rule in rules)


def _ask_for_admin_access(demands: Iterable[Demand]) -> bool:
    return any(
        alternative.admin
        for demand in demands
        for alternative in demand.alternatives()
    )


def _entered(ledger: Ledger, placements: Sequence[Placement]) -> bool:
    """Enter placements into a ledger, all or none; whether there was room for them."""
    problem = ledger.problem
    entered: list[tuple[Device, Charge]] = []
    for _, device, charge in charged_grants(problem, placements):
        view = problem.devices[device]
        if not ledger.fits(view, charge):
            for earlier, earlier_charge in entered:
                ledger.revoke(earlier, earlier_charge, share=earlier.shareable)
            return False
        ledger.enter(view, charge, share=view.shareable)
        entered.append((view, charge))
    return True
