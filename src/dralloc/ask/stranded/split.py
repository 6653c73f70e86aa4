"""How much of each quantity is of use to a mix, and what strands the rest: rules are lifted one after the other."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import chain
from math import gcd
from typing import Final

from dralloc.ask.context.node_bars import NodeBars
from dralloc.ask.stranded.grants import Found, Granter, Granting
from dralloc.ask.stranded.lifting import LIFTED_IN_ORDER, Cause, LiftedOffers
from dralloc.ask.stranded.quantities import Key, Quantities
from dralloc.compile.compiler import CompiledCluster
from dralloc.problem import Demand
from dralloc.problem.holdings import ClaimLedger

__all__ = ["FINEST", "Splitter", "most"]

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
    ) -> Mapping[Key, Mapping[Cause, int]]:
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
        causes: dict[Key, dict[Cause, int]] = {key: {} for key in usable}
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

    def _usable(self, grantings: Iterable[Granting]) -> dict[Key, int]:
        """How much of each quantity can be taken by such grants."""
        takes: dict[Key, _Takes] = defaultdict(_Takes)
        for device, charge in set(grantings):
            slot, shareable = (
                self._problem.devices[device].slot,
                self._problem.devices[device].shareable,
            )
            once = Tally[Key](dict(self.quantities.once(device)))
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

    def _short(self, usable: Mapping[Key, int]) -> frozenset[int]:
        """The nodes with a wanted device that draws on a quantity of which some is still of no use."""
        short = {
            key for key, one in self.quantities.by_key.items() if usable[key] < one.free
        }
        return frozenset(
            node for node, keys in self._wanted_on.items() if not short.isdisjoint(keys)
        )

    @cached_property
    def _wanted_on(self) -> Mapping[int, frozenset[Key]]:
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
    def _wanted(self) -> frozenset[Key]:
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
