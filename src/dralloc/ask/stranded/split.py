"""How much of each quantity is of use to a mix, and what strands the rest: rules are lifted one after the other.

First what a claim could be granted next, beside everything that is in use.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import chain
from math import gcd
from typing import Final, NamedTuple

from dralloc.ask.context.context import Context, Screening
from dralloc.ask.context.node_bars import CORDONED, Exclusions, NodeBars
from dralloc.ask.stranded.quantities import (
    LIFTED_IN_ORDER,
    Cause,
    LiftedOffers,
    Quantities,
    QuantityKey,
    lift_of,
)
from dralloc.ask.whatif.partitions import read_single
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Alternative, Charge, Claim, Demand, Eligibility, Request
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.ledger import ClaimLedger
from dralloc.problem.problem import Overlay
from dralloc.problem.solution import grants_of
from dralloc.problem.subproblem import Subproblem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = ["FINEST", "Found", "Splitter", "most"]

# ----------------------------------------------------------------------------
# What a claim could be granted next, beside everything that is in use, and with some
# rules lifted.

_WANTED: Final = -1
_OTHERS: Final = -2


class Granting(NamedTuple):
    """A device that an alternative could be granted, and what that takes."""

    device: int
    charge: Charge


class Found(NamedTuple):
    """What a demand finds on a node.

    ``granted``: what it could be granted. ``serving``: if it fits on the node, the devices that could serve one of its
    requests alone.
    """

    granted: tuple[Granting, ...] = ()
    serving: tuple[int, ...] = ()


class Granter:
    """Finds what demands could be granted. Nodes that are alike to a demand are looked at once.

    Parameters
    ----------
    offers
        What devices offer, whichever rules count.
    bars
        By demand what bars its pod from nodes beside devices, if anything may.
    lifted
        The rules that do not count.
    """

    def __init__(
        self,
        offers: LiftedOffers,
        ledger: ClaimLedger,
        quantities: Quantities,
        bars: Mapping[ClaimKey, NodeBars | None],
        lifted: frozenset[Cause],
    ) -> None:
        compiled = offers.compiled
        self._bars = bars
        self._problem = compiled.problem
        self._exclusions = Exclusions(compiled)
        self._context = Context(compiled.problem, offers.without(lifted), ledger)
        self._lift = lift_of(compiled.problem, quantities, lifted)
        self._lifted = lifted
        self._known: dict[Hashable, tuple[list[tuple[int, int]], list[int]]] = {}

    def nodes(self, demand: Demand) -> Sequence[int]:
        """The nodes that a demand may go to."""
        if Cause.NODE in self._lifted:
            nodes = [
                node
                for node in self._problem.all_nodes
                if set(self._exclusions.rules(demand, node)) <= {CORDONED}
            ]
        else:
            nodes = list(self._problem.candidate_nodes(demand))
        bars = self._bars[demand.key]
        return nodes if bars is None else [node for node in nodes if not bars.of(node)]

    def on(self, demand: Demand, node: int) -> Found:
        """What a demand finds on a node."""
        loose = demand
        if Cause.ALIGNMENT in self._lifted:
            loose = replace(
                demand,
                claims=tuple(replace(claim, constraints=()) for claim in demand.claims),
            )
        part = self._context.part([node], [loose], self._lift)
        key = demand.key, inventory_key(part.problem)
        if key not in self._known:
            self._known[key] = self._look(part, loose, node)
        granted, serving = self._known[key]
        devices, charge = part.devices, self._context.offers.charge
        return Found(
            tuple(
                Granting(devices[place], charge(one, devices[place]) or Charge())
                for one, place in granted
            ),
            tuple(devices[place] for place in serving),
        )

    def _look(
        self, part: Subproblem, demand: Demand, node: int
    ) -> tuple[list[tuple[int, int]], list[int]]:
        screening = Screening(self._context)
        offered = frozenset(part.problem.nodes[0].devices())
        candidates = [
            (each, place)
            for each in demand.alternatives()
            for place, device in enumerate(part.devices)
            if not each.admin
            and place in offered
            and screening.serves(each, device, node, self._lift)
        ]
        alone = [(each.index, place) for each, place in candidates]
        if _takes_one(demand):
            return alone, list(dict.fromkeys(place for _, place in alone))
        tried = _Tried(part, demand)
        if not tried.fits:
            return [], []
        for each, place in candidates:
            tried.force(each, place)
        return sorted(tried.granted), list(dict.fromkeys(place for _, place in alone))


def _takes_one(demand: Demand) -> bool:
    """Whether it takes one device, whatever its attributes."""
    constrained = any(claim.constraints for claim in demand.claims)
    return (
        read_single(demand) is not None and not demand.is_defective and not constrained
    )


class _Tried:
    """Answers for a demand on its own: what is granted in any of them."""

    def __init__(self, part: Subproblem, demand: Demand) -> None:
        self._problem = part.problem
        self._demand = demand.by_itself(nodes=None)
        self.granted: set[tuple[int, int]] = set()

    @cached_property
    def fits(self) -> bool:
        """Whether there is any answer."""
        return self._enter(self._demand, self._problem.eligibility, {})

    def force(self, alternative: Alternative, place: int) -> None:
        """Look for an answer in which the alternative is granted the device."""
        if (alternative.index, place) in self.granted:
            return
        if alternative.count is None:
            # Of all devices it gets all or none.
            self._enter(
                _with(self._demand, alternative, [alternative]),
                self._problem.eligibility,
                {},
            )
            return
        wanted = replace(alternative, index=_WANTED, count=1)
        others = (
            [replace(alternative, index=_OTHERS, count=alternative.count - 1)]
            if alternative.count > 1
            else []
        )
        forced = _Forced(self._problem.eligibility, alternative.index, place)
        names = dict.fromkeys((_WANTED, _OTHERS), alternative.index)
        self._enter(_with(self._demand, alternative, [wanted, *others]), forced, names)

    def _enter(
        self, demand: Demand, eligibility: Eligibility, names: dict[int, int]
    ) -> bool:
        problem = replace(self._problem, demands=(demand,), eligibility=eligibility)
        solution = first_fit(problem)
        if solution.errors:
            # What ends first fit's attempt may leave other answers.
            solution = solve(problem)
        for _, each, grant in grants_of(problem, solution.placements):
            if not each.admin:
                self.granted.add((names.get(each.index, each.index), grant.device))
        return bool(solution.placements)


def _with(
    demand: Demand, alternative: Alternative, parts: Sequence[Alternative]
) -> Demand:
    """The demand with an alternative in the place of its request, taken apart."""

    def requests(claim: Claim) -> Iterator[Request]:
        for request in claim.requests:
            if alternative in request.alternatives:
                yield from (
                    replace(request, alternatives=(replace(part, rank=0),))
                    for part in parts
                )
            else:
                yield request

    return replace(
        demand,
        claims=tuple(
            replace(claim, requests=tuple(requests(claim))) for claim in demand.claims
        ),
    )


@dataclass(eq=False)
class _Forced(Overlay):
    """An eligibility in which an alternative is taken apart: one device, and others than that."""

    alternative: int
    device: int

    def _real(self, alternative: int) -> int:
        return self.alternative if alternative < 0 else alternative

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        if alternative < 0 and (device == self.device) is not (alternative == _WANTED):
            return False
        return super().selects(self._real(alternative), device)

    def admits(self, alternative: int, device: int) -> bool:
        return super().admits(self._real(alternative), device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        return super().charge(self._real(alternative), device)

    def request_key(self, alternative: int) -> Hashable:
        return (
            alternative
            if alternative < 0
            else (alternative, super().request_key(alternative))
        )

    def device_key(self, device: int) -> Hashable:
        return device


FINEST: Final = 2**20
"""Amounts are told apart as long as no more than so many steps of their common divisor are free."""


@dataclass
class _Takes:
    """Pieces in which a quantity can be taken: by each device once, or by any number of shares."""

    once: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    repeated: set[int] = field(default_factory=set)

    def most(self, free: int) -> int:
        """The most that can be taken."""
        choices = sorted(tuple(sorted(amounts - {0})) for amounts in self.once.values())
        return most(
            free, tuple(filter(None, choices)), tuple(sorted(self.repeated - {0}))
        )


class Splitter:
    """Splits what is free into what is of use to the demands of a mix, and what is stranded by each cause."""

    def __init__(
        self,
        compiled: CompiledCluster,
        ledger: ClaimLedger,
        demands: Sequence[Demand],
        bars: Sequence[NodeBars | None],
    ) -> None:
        self._compiled = compiled
        self._bars = {
            demand.key: bars for demand, bars in zip(demands, bars, strict=True)
        }
        self._problem = compiled.problem
        self._ledger = ledger
        self._demands = demands
        self._offers = LiftedOffers(compiled)
        self.quantities = Quantities(compiled, ledger)

    def found(self) -> Mapping[int, list[Found]]:
        """What each demand of the mix finds on each of its nodes, with all rules in force."""
        granter = self._granter(frozenset())
        return {
            number: [granter.on(demand, node) for node in granter.nodes(demand)]
            for number, demand in enumerate(self._demands)
        }

    def causes(
        self, found: Mapping[int, Sequence[Found]]
    ) -> Mapping[QuantityKey, Mapping[Cause, int]]:
        """What is stranded of each quantity, in nanos, by cause.

        Parameters
        ----------
        found
            What `found` returned.
        """
        usable = self._usable(
            one
            for each in found.values()
            for finding in each
            for one in finding.granted
        )
        causes: dict[QuantityKey, dict[Cause, int]] = {key: {} for key in usable}
        lifted: frozenset[Cause] = frozenset()
        for cause in LIFTED_IN_ORDER:
            if not self._occurs[cause]:
                continue
            lifted |= {cause}
            without = self._usable(self._granted(lifted, self._short(usable)))
            for key in usable:
                # `All` may ask for more devices once a rule does not leave them out.
                causes[key][cause] = max(0, without[key] - usable[key])
                usable[key] += causes[key][cause]
        for key, quantity in self.quantities.by_key.items():
            rest = Cause.SIZE if key in self._wanted else Cause.UNWANTED
            causes[key][rest] = quantity.free - usable[key]
        return causes

    @cached_property
    def _occurs(self) -> Mapping[Cause, bool]:
        """Whether the cluster and the mix have anything of the kind at all; if not, lifting it changes nothing."""
        devices, inventory = self._problem.devices, self._compiled.inventory
        sources = inventory.sources
        capacities = chain.from_iterable(
            one.device.capacity.values() for one in sources
        )
        policies = chain(
            (one.request_policy for one in inventory.published),
            (one.request_policy for one in capacities),
        )
        taint_rules = self._compiled.cluster.taint_rules
        return {
            Cause.NODE: any(
                node.spec.unschedulable for node in self._compiled.cluster.nodes
            ),
            Cause.POD: any(
                demand.nodes is not None or self._bars[demand.key]
                for demand in self._demands
            ),
            Cause.TAINT: bool(taint_rules) or any(one.device.taints for one in sources),
            Cause.ALIGNMENT: any(
                claim.constraints for demand in self._demands for claim in demand.claims
            ),
            Cause.GROUPS: not self._problem.is_additive,
            Cause.POLICY: any(policy is not None for policy in policies),
            Cause.GEOMETRY: any(
                one.positional for one in self.quantities.by_key.values()
            ),
            Cause.COUNTER: bool(self._problem.counters)
            or any(one.shareable for one in devices),
        }

    def _granter(self, lifted: frozenset[Cause]) -> Granter:
        """Who finds grants where some rules do not count."""
        return Granter(self._offers, self._ledger, self.quantities, self._bars, lifted)

    def _granted(
        self, lifted: frozenset[Cause], nodes: frozenset[int]
    ) -> Iterator[Granting]:
        granter = self._granter(lifted)
        for demand in self._demands if nodes else ():
            for node in granter.nodes(demand):
                if node in nodes:
                    yield from granter.on(demand, node).granted

    def _usable(self, grantings: Iterable[Granting]) -> dict[QuantityKey, int]:
        """How much of each quantity can be taken by such grants."""
        takes: dict[QuantityKey, _Takes] = defaultdict(_Takes)
        for device, charge in set(grantings):
            slot, shareable = (
                self._problem.devices[device].slot,
                self._problem.devices[device].shareable,
            )
            once = Tally[QuantityKey](dict(self.quantities.once(device)))
            for key, amount in self.quantities.each_time(device, charge):
                if shareable:
                    takes[key].repeated.add(amount)
                else:
                    once[key] += amount
            for key, amount in once.items():
                takes[key].once[slot].add(amount)
        nothing = _Takes()
        return {
            key: takes.get(key, nothing).most(one.free)
            for key, one in self.quantities.by_key.items()
        }

    def _short(self, usable: Mapping[QuantityKey, int]) -> frozenset[int]:
        """The nodes with a wanted device that draws on a quantity of which some is still of no use."""
        short = {
            key for key, one in self.quantities.by_key.items() if usable[key] < one.free
        }
        return frozenset(
            node for node, keys in self._wanted_on.items() if not short.isdisjoint(keys)
        )

    @cached_property
    def _wanted_on(self) -> Mapping[int, frozenset[QuantityKey]]:
        """For each node the quantities of devices that some demand selects there for what it will hold."""
        selects = self._problem.eligibility.selects
        alternatives = [
            each.index
            for demand in self._demands
            for each in demand.alternatives()
            if not each.admin
        ]
        wants = cache(
            lambda device: any(selects(each, device) is True for each in alternatives)
        )
        return {
            number: frozenset(
                key
                for device in node.devices()
                if self._problem.on_node(device, number) and wants(device)
                for key in self.quantities.keys(device)
            )
            for number, node in enumerate(self._problem.nodes)
        }

    @cached_property
    def _wanted(self) -> frozenset[QuantityKey]:
        return frozenset().union(*self._wanted_on.values())


@lru_cache(maxsize=4096)
def most(
    free: int, choices: tuple[tuple[int, ...], ...], repeated: tuple[int, ...]
) -> int:
    """The largest sum up to a limit: subset sum, in exact integers.

    Parameters
    ----------
    free
        The limit.
    choices
        Of each of these at most one amount may be taken.
    repeated
        These amounts may be taken any number of times.

    Returns
    -------
    int
        The sum. If the amounts are finer than `FINEST` steps, the limit itself, rounded to a multiple of their
        common divisor: nothing is called stranded that is not.
    """
    step = gcd(*(amount for choice in choices for amount in choice), *repeated)
    limit = free // step if step else 0
    if limit > FINEST:
        return limit * step
    # Bit n stands for a sum of n steps.
    sums, mask = 1, (1 << (limit + 1)) - 1
    for choice in choices:
        before = sums
        for amount in choice:
            sums |= before << amount // step & mask if amount <= free else 0
    for amount in repeated:
        shift = amount // step
        while 0 < shift <= limit:
            sums |= sums << shift & mask
            shift *= 2
    return (sums.bit_length() - 1) * step
