"""A problem as one demand finds it, and small parts of it that answer what the whole would.

A demand goes to one node, and on that node only the devices matter that its requests could get. `Context.part` cuts
these out, with what is left of them, so that a large cluster is asked node by node, and equal parts only once. Before
that stand rules that can be lifted, and after it the screening of a node, request by request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice

from dralloc.ask.context.offers import Offers
from dralloc.objects.errors import AllocationError
from dralloc.objects.user_rules import Budget
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    Request,
    indices,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.ledger import Ledger, Scarcity
from dralloc.problem.named_limits import Limit, limit_behind
from dralloc.problem.problem import Overlay, Renumbered
from dralloc.problem.subproblem import Subproblem, cut, places, with_versions

__all__ = ["Context", "Lift", "Screening"]

# ----------------------------------------------------------------------------
# Rules that do not count: what there would be without some counters, capacities or
# groups of devices.

_MUCH = 10**30
"""More than there is of anything, in nanos."""


@dataclass(frozen=True, slots=True)
class Lift:
    """The limits that do not count.

    They are limits of a problem, not a changed quantity of a cluster (see `dralloc.ask.scenario`): selectors read the
    value of a capacity, and who asks for nothing may take all of it, so that with a larger one something else would be
    asked for. And a part of a problem can be asked for many sets of limits without compiling a large cluster anew.

    ``lenient``: whether a selector that fails on a device leaves it out, as in the optimal mode, instead of ending the
    attempt.
    """

    limits: frozenset[Limit] = frozenset()
    lenient: bool = False


NO_LIFT = Lift()


def _lifted(problem: Problem, lift: Lift) -> Problem:
    """The problem without what does not count.

    What does not count is drawn by nobody. Only where a cap is about it, or whoever draws on it must not come into use
    anyway because another counter is overdrawn, there is much of it instead.
    """
    return (
        _Lifting(problem, lift).problem()
        if lift.limits or lift.lenient
        else problem
    )


class _Lifting(Overlay):
    def __init__(self, problem: Problem, lift: Lift) -> None:
        super().__init__(problem.eligibility)
        self.base_problem = problem
        self.lift = lift
        self.capped = {budget.resource for budget in problem.budgets}
        self.names: dict[Scarcity, set[tuple[str, str]]] = defaultdict(set)
        for limit in lift.limits:
            self.names[limit.scarcity].add((limit.driver, limit.name))
        ids = (counter.id for counter in problem.counters)
        counters = self.names[Scarcity.COUNTER]
        self.lifted = {
            index
            for index, id_ in zip(indices(problem.counters), ids, strict=True)
            if (id_.driver, id_.counter) in counters
        }
        self.gone = self._gone(Ledger(problem)) if self.lifted else set()

    def _gone(self, ledger: Ledger) -> set[CounterIndex]:
        """The counters that no holder draws on any more."""
        return {
            counter
            for counter in self.lifted
            if self.base_problem.counters[counter].id.counter not in self.capped
            and self.lifted.issuperset(
                ledger.overdrawn(self.base_problem.counters[counter].group)
            )
        }

    def problem(self) -> Problem:
        if not self.lift.limits:
            return replace(self.base_problem, eligibility=self)
        counters = tuple(
            replace(counter, free=_MUCH) if index in self.lifted else counter
            for index, counter in enumerate(self.base_problem.counters)
        )
        devices = tuple(map(self._device, self.base_problem.devices))
        return replace(
            self.base_problem,
            devices=devices,
            counters=counters,
            eligibility=self,
        )

    def _device(self, device: Device) -> Device:
        consumes, capacity = (
            self._drawn(device.consumes),
            self._capacity(device),
        )
        if consumes != device.consumes or capacity is not device.capacity:
            device = replace(device, consumes=consumes, capacity=capacity)
        grouped = (
            not device.is_additive
            and Limit(Scarcity.GROUPS, device.id.driver) in self.lift.limits
        )
        return device.without_groups() if grouped else device

    def _capacity(self, device: Device) -> Mapping[str, Capacity]:
        lifted = self.names[Scarcity.CAPACITY]
        names = {
            name for name in self.capped if (device.id.driver, name) in lifted
        }
        if not device.shareable or not names:
            return device.capacity
        return {
            name: replace(entry, total=_MUCH) if name in names else entry
            for name, entry in device.capacity.items()
        }

    def _drawn(
        self, draws: tuple[tuple[CounterIndex, int], ...]
    ) -> tuple[tuple[CounterIndex, int], ...]:
        """Return the amounts drawn from counters that still count."""
        return (
            tuple(pair for pair in draws if pair[0] not in self.gone)
            if self.gone
            else draws
        )

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """As in `Eligibility`."""
        verdict = super().selects(alternative, device)
        return (
            verdict
            if isinstance(verdict, bool) or not self.lift.lenient
            else False
        )

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """Return the part of an allocation's charge that still counts."""
        charge = super().charge(alternative, device)
        if charge is None or not (charge.capacity or charge.counters):
            return charge
        driver, lifted = (
            self.base_problem.devices[device].id.driver,
            self.names[Scarcity.CAPACITY],
        )
        capacity = tuple(
            pair
            for pair in charge.capacity
            if pair[0] in self.capped or (driver, pair[0]) not in lifted
        )
        return replace(
            charge, capacity=capacity, counters=self._drawn(charge.counters)
        )


@dataclass(frozen=True)
class Context:
    """A problem with its holders at the moment that is explained.

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

    def relevant(
        self, node: NodeIndex, alternatives: Sequence[AlternativeIndex]
    ) -> list[DeviceIndex]:
        """The devices offered to a node that some of the alternatives select, or fail on."""
        verdicts: dict[object, bool] = {}
        devices = []
        for pool in self.problem.nodes[node].pools:
            for device, key in zip(
                pool.devices, self.offers.device_keys(pool.devices), strict=True
            ):
                if key not in verdicts:
                    verdicts[key] = any(
                        self.offers.selects(alternative, device) is not False
                        for alternative in alternatives
                    )
                if verdicts[key]:
                    devices.append(device)
        return devices

    def part(
        self,
        nodes: Sequence[NodeIndex],
        demands: Sequence[Demand],
        lift: Lift = NO_LIFT,
    ) -> Subproblem:
        """The nodes with what the demands could get there. The demands' own nodes count within the part."""
        alternatives = _alternatives_in(demands)
        offered = (
            device
            for node in nodes
            for device in self.relevant(node, alternatives)
        )
        return self.cut(nodes, dict.fromkeys(offered), demands, lift)

    def cut(
        self,
        nodes: Sequence[NodeIndex],
        offered: Iterable[DeviceIndex],
        demands: Sequence[Demand],
        lift: Lift = NO_LIFT,
    ) -> Subproblem:
        """The nodes with some of their devices, as `part` does it."""
        problem, ledger = self.problem, self.ledger
        devices = with_versions(problem, offered)
        views = [problem.devices[device] for device in devices]
        drawn = dict.fromkeys(
            counter for view in views for counter, _ in view.consumes
        )
        for alternative in _alternatives_in(demands):
            for device in devices:
                charge = self.offers.charge(alternative, device)
                if charge is not None and charge.counters:
                    drawn.update(
                        dict.fromkeys(counter for counter, _ in charge.counters)
                    )
        # Overdrawn counters matter to everything in their group, even if nobody here draws on them.
        for group in dict.fromkeys(
            view.group for view in views if view.consumes
        ):
            drawn.update(dict.fromkeys(ledger.overdrawn(group)))
        offers = Renumbered(
            self.offers,
            devices,
            places(drawn),
        )
        part = cut(
            problem,
            nodes,
            devices=devices,
            counters=drawn,
            demands=demands,
            eligibility=offers,
            ledger=ledger,
        )
        return replace(
            part,
            problem=_lifted(replace(part.problem, budgets=self.budgets), lift),
        )


def _alternatives_in(demands: Iterable[Demand]) -> list[AlternativeIndex]:
    """The indices of all alternatives that demands ask for."""
    return [
        alternative.index
        for demand in demands
        for alternative in demand.alternatives()
    ]


# ----------------------------------------------------------------------------
# Screening of a node: whether each request of a demand would find enough devices if
# it were alone.


class Screening:
    """Necessary, never sufficient: nodes that fail here need no search. What it is asked for is found out once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._could_serve: dict[int, dict[Hashable, bool]] = defaultdict(dict)
        self._short: dict[int, dict[int, Set[Limit]]] = defaultdict(dict)

    def on(self, node: NodeIndex, demand: Demand, lift: Lift = NO_LIFT) -> bool:
        """Whether the node might serve every request."""
        for claim in demand.claims:
            for request in claim.requests:
                if not self._may_serve(request, node, lift):
                    return False
        return True

    def _may_serve(self, request: Request, node: NodeIndex, lift: Lift) -> bool:
        """Whether an alternative of a request would find enough devices on a node if it were alone."""
        return any(
            self._has_enough(alternative, node, lift)
            for alternative in request.alternatives
        )

    def _has_enough(
        self, alternative: Alternative, node: NodeIndex, lift: Lift
    ) -> bool:
        if alternative.count is None:
            pools = self.context.problem.nodes[node].pools
            return all(pool.state is PoolState.USABLE for pool in pools)
        # No more are looked for than it takes.
        devices = islice(
            self._found(alternative, node, lift), alternative.count
        )
        return sum(1 for _ in devices) == alternative.count

    def _found(
        self, alternative: Alternative, node: NodeIndex, lift: Lift
    ) -> Iterator[int]:
        """The devices on a node that could be had for an alternative."""
        fits, offers = self._could_serve[alternative.index], self.context.offers
        for pool in self.context.problem.nodes[node].pools:
            for device, key in zip(
                pool.devices, offers.device_keys(pool.devices), strict=True
            ):
                if key not in fits:
                    fits[key] = offers.could_serve(alternative.index, device)
                if fits[key] and self._is_left(alternative, device, node, lift):
                    yield device

    def serves(
        self,
        alternative: Alternative,
        device: DeviceIndex,
        node: NodeIndex,
        lift: Lift,
    ) -> bool:
        """Whether a device on a node could be had for an alternative that asks for nothing else."""
        could_serve = self.context.offers.could_serve(alternative.index, device)
        return could_serve and self._is_left(alternative, device, node, lift)

    def _is_left(
        self,
        alternative: Alternative,
        device: DeviceIndex,
        node: NodeIndex,
        lift: Lift,
    ) -> bool:
        if not self.context.problem.on_node(device, node):
            return False
        short = self._short[alternative.index]
        if device not in short:
            short[device] = frozenset(self._limits(alternative, device))
        return short[device] <= lift.limits

    def _limits(
        self, alternative: Alternative, device_index: DeviceIndex
    ) -> Iterator[Limit]:
        """Return the limits that stop the device from serving the alternative."""
        problem, ledger = self.context.problem, self.context.ledger
        device, charge = (
            problem.devices[device_index],
            self.context.offers.charge(alternative.index, device_index)
            or Charge(),
        )
        for shortage in ledger.shortages(
            device, charge, admin=alternative.admin
        ):
            yield limit_behind(problem, device, shortage)
