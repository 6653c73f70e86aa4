"""A problem as one demand finds it, and small parts of it that answer what the whole would.

A demand goes to one node, and on that node only the devices matter that its requests could get. `Context.part` cuts
these out, with what is left of them, so that a large cluster is asked node by node, and equal parts only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dralloc.ask.context.lift import NO_LIFT, Lift, lifted
from dralloc.ask.context.offers import Offers
from dralloc.objects.budget import Budget
from dralloc.problem import Demand, Problem
from dralloc.problem.eligibility import Renumbered
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.subproblem import Subproblem, cut, with_versions

__all__ = ["Context", "alternatives_in"]


@dataclass(frozen=True)
class Context:
    """A problem with who holds what at the moment that is explained.

    Parameters
    ----------
    problem
        The whole problem; its usage and demands are not looked at.
    offers
        Who may serve which alternative.
    ledger
        What is held.
    budgets
        Caps, and what is used of what they are about.
    """

    problem: Problem
    offers: Offers
    ledger: ClaimLedger
    budgets: tuple[Budget, ...] = ()

    def relevant(self, node: int, alternatives: Sequence[int]) -> list[int]:
        """The devices offered to a node that some of the alternatives select, or fail on."""
        verdicts: dict[object, bool] = {}
        found = []
        for pool in self.problem.nodes[node].pools:
            for device, key in zip(
                pool.devices, self.offers.device_keys(pool.devices), strict=True
            ):
                wanted = verdicts.get(key)
                if wanted is None:
                    selected = (
                        self.offers.selects(each, device) is not False
                        for each in alternatives
                    )
                    wanted = verdicts[key] = any(selected)
                if wanted:
                    found.append(device)
        return found

    def part(
        self, nodes: Sequence[int], demands: Sequence[Demand], lift: Lift = NO_LIFT
    ) -> Subproblem:
        """The nodes with what the demands could get there. The demands' own nodes count within the part."""
        alternatives = alternatives_in(demands)
        offered = (
            device for node in nodes for device in self.relevant(node, alternatives)
        )
        return self.cut(nodes, dict.fromkeys(offered), demands, lift)

    def cut(
        self,
        nodes: Sequence[int],
        offered: Iterable[int],
        demands: Sequence[Demand],
        lift: Lift = NO_LIFT,
    ) -> Subproblem:
        """The nodes with some of their devices, as `part` does it."""
        whole, ledger = self.problem, self.ledger
        devices = with_versions(whole, offered)
        views = [whole.devices[device] for device in devices]
        drawn = dict.fromkeys(counter for view in views for counter, _ in view.consumes)
        for alternative in alternatives_in(demands):
            for device in devices:
                charge = self.offers.charge(alternative, device)
                if charge is not None and charge.counters:
                    drawn.update(
                        dict.fromkeys(counter for counter, _ in charge.counters)
                    )
        # Overdrawn counters matter to everything in their group, even if nobody here draws on them.
        for group in dict.fromkeys(view.group for view in views if view.consumes):
            drawn.update(dict.fromkeys(ledger.overdrawn(group)))
        offers = Renumbered(
            self.offers,
            devices,
            {counter: place for place, counter in enumerate(drawn)},
        )
        part = cut(
            whole,
            nodes,
            devices=devices,
            counters=drawn,
            demands=demands,
            eligibility=offers,
            ledger=ledger,
        )
        return replace(
            part, problem=lifted(replace(part.problem, budgets=self.budgets), lift)
        )


def alternatives_in(demands: Iterable[Demand]) -> list[int]:
    """The indices of all alternatives that demands ask for."""
    return [
        alternative.index for demand in demands for alternative in demand.alternatives()
    ]
