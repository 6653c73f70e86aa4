"""Splits each free quantity into the part that a mix can use and the parts that rules strand; rules are lifted in turn.

First what a claim could be granted next, beside everything that is in use.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import chain
from math import gcd
from typing import Final, NamedTuple

from dralloc.ask.context.context import Context, Screening
from dralloc.ask.context.exclusions import CORDONED, Exclusions
from dralloc.ask.context.node_bars import NodeBars
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
from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Claim,
    Demand,
    DeviceIndex,
    Eligibility,
    NodeIndex,
    Request,
    indices,
    numbered,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.equivalence import claim_key, inventory_key
from dralloc.problem.problem import Overlay
from dralloc.problem.solution import grants_of
from dralloc.problem.subproblem import ONLY_NODE, Subproblem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop, Stopped, with_time_left

__all__ = ["FINEST", "Grantable", "Splitter", "distinct", "largest_sum"]

# ----------------------------------------------------------------------------
# What a claim could be granted next, beside everything that is in use, and with some
# rules lifted.

_FORCED: Final = AlternativeIndex(-1)
"""Stands for the part of an alternative that is one device, which a trial chooses."""

_OTHERS: Final = AlternativeIndex(-2)
"""Stands for the rest of that alternative: any devices but that one."""


class Granting(NamedTuple):
    """A device that an alternative could be granted, and what that takes."""

    device: DeviceIndex
    charge: Charge


class Grantable(NamedTuple):
    """The grants that demands of a kind could get on a node.

    ``granted``: what they could be granted. ``serving``: if they fit on the node, the devices that could serve one of
    their requests alone.
    """

    node: NodeIndex
    granted: tuple[Granting, ...]
    serving: tuple[DeviceIndex, ...]


@dataclass
class _GrantAnswers:
    """What is known of demands on nodes, as long as the same rules about devices and claims count.

    ``kinds``: by what demands ask for. ``kind_of``: by demand. ``looks``: by kind and content of the node, pairs of
    alternative and device, and the devices that serve, both by index in the part. ``grantable``: by kind and node.
    """

    kinds: dict[Hashable, int] = field(default_factory=dict)
    kind_of: dict[ClaimKey, int] = field(default_factory=dict)
    looks: dict[
        Hashable,
        tuple[list[tuple[AlternativeIndex, DeviceIndex]], list[DeviceIndex]],
    ] = field(default_factory=dict)
    grantable: dict[tuple[int, NodeIndex], Grantable] = field(
        default_factory=dict
    )


class Granter:
    """Finds what demands could be granted.

    Demands of a kind have equal claims, up to names; they may differ in what else their pods ask of nodes. For all of
    a kind, and for nodes that are alike to it, one is looked at.

    Parameters
    ----------
    offers
        What devices offer, whichever rules count.
    bars
        By demand what bars its pod from nodes beside devices, if anything may.
    lifted
        The rules that do not count.
    answers
        What is known already; what is found is entered.
    stop
        When nothing more is found out.
    """

    def __init__(  # noqa: PLR0913 - all that grants depend on
        self,
        offers: LiftedOffers,
        ledger: ClaimLedger,
        quantities: Quantities,
        bars: Mapping[ClaimKey, NodeBars | None],
        lifted: frozenset[Cause],
        answers: _GrantAnswers,
        stop: Stop,
    ) -> None:
        self._stop = stop
        compiled = offers.compiled
        self._bars = bars
        self._problem = compiled.problem
        self._exclusions = Exclusions(compiled)
        self._context = Context(
            compiled.problem, offers.without(lifted), ledger
        )
        self._lift = lift_of(compiled.problem, quantities, lifted)
        self._lifted = lifted
        self._answers = answers

    def nodes(
        self, demand: Demand, among: Collection[NodeIndex]
    ) -> list[NodeIndex]:
        """Return those among some nodes that a demand may go to."""
        if Cause.POD in self._lifted:
            return list(among)
        if Cause.NODE in self._lifted:
            nodes = [
                node
                for node in among
                if set(self._exclusions.rules(demand, node)) <= {CORDONED}
            ]
        else:
            candidates = frozenset(self._problem.candidate_nodes(demand))
            nodes = [node for node in among if node in candidates]
        bars = self._bars[demand.key]
        if bars is None:
            return nodes
        return [node for node in nodes if bars.allows(node)]

    def on(self, demand: Demand, node: NodeIndex) -> Grantable:
        """Return the grants that a demand could get on a node: the same object for all demands of its kind.

        Raises
        ------
        Stopped
            The time was over before they were known.
        """
        key = self.kind(demand), node
        grantable = self._answers.grantable
        if key not in grantable:
            self._stop.check()
            grantable[key] = self._find(demand, node)
        return grantable[key]

    def kind(self, demand: Demand) -> int:
        """Return the number of a demand's kind. Those with a defect are each a kind of their own."""
        kinds, kind_of = self._answers.kinds, self._answers.kind_of
        if demand.key not in kind_of:
            key: Hashable = demand.key
            if not demand.is_defective:
                offers = self._context.offers
                key = tuple(claim_key(offers, claim) for claim in demand.claims)
            kind_of[demand.key] = kinds.setdefault(key, len(kinds))
        return kind_of[demand.key]

    def _find(self, demand: Demand, node: NodeIndex) -> Grantable:
        loose = demand
        if Cause.ALIGNMENT in self._lifted:
            claims = (replace(claim, constraints=()) for claim in demand.claims)
            loose = replace(demand, claims=tuple(claims))
        part = self._context.part([node], [loose], self._lift)
        # Nodes that are alike to the demand have devices at the same places.
        key = self.kind(demand), inventory_key(part.problem)
        looks = self._answers.looks
        if key not in looks:
            looks[key] = self._look(part, loose, node)
        granted, serving = looks[key]
        devices, charge = part.devices, self._context.offers.charge
        return Grantable(
            node,
            tuple(
                Granting(
                    devices[part_device],
                    charge(alternative, devices[part_device]) or Charge(),
                )
                for alternative, part_device in granted
            ),
            tuple(devices[part_device] for part_device in serving),
        )

    def _look(
        self, part: Subproblem, demand: Demand, node: NodeIndex
    ) -> tuple[list[tuple[AlternativeIndex, DeviceIndex]], list[DeviceIndex]]:
        """Return the possible pairs of alternative and device on a node, and their devices, by index in the part."""
        screening = Screening(self._context)
        offered = frozenset(part.problem.nodes[ONLY_NODE].devices())
        candidates = []
        for alternative in demand.alternatives():
            for part_device, device in zip(
                indices(part.problem.devices), part.devices, strict=True
            ):
                if (
                    not alternative.admin
                    # A part has every version of a device, also those that the node is not offered.
                    and part_device in offered
                    and screening.serves(alternative, device, node, self._lift)
                ):
                    candidates.append((alternative, part_device))
        serving = list(
            dict.fromkeys(part_device for _, part_device in candidates)
        )
        # Where one device is all that is taken, screening decides. Otherwise only an answer tells what goes together.
        if _takes_one(demand):
            return [
                (alternative.index, part_device)
                for alternative, part_device in candidates
            ], serving
        trials = _Trials(part, demand, self._stop)
        if not trials.fits:
            return [], []
        for alternative, part_device in candidates:
            trials.force(alternative, part_device)
        return sorted(trials.granted), serving


def _takes_one(demand: Demand) -> bool:
    """Whether it takes one device, whatever its attributes."""
    constrained = any(claim.constraints for claim in demand.claims)
    return (
        read_single(demand) is not None
        and not demand.is_defective
        and not constrained
    )


class _Trials:
    """Answers for a demand on its own: what is granted in any of them."""

    def __init__(self, part: Subproblem, demand: Demand, stop: Stop) -> None:
        self._stop = stop
        self._problem = part.problem
        self._demand = demand.by_itself(nodes=None)
        self.granted: set[tuple[AlternativeIndex, DeviceIndex]] = set()

    @cached_property
    def fits(self) -> bool:
        """Whether there is any answer."""
        return self._enter(self._demand, self._problem.eligibility, {})

    @cached_property
    def _asks_as_admin(self) -> bool:
        return any(
            alternative.admin for alternative in self._demand.alternatives()
        )

    def force(self, alternative: Alternative, device: DeviceIndex) -> None:
        """Look for an answer in which the alternative is granted the device."""
        if (alternative.index, device) in self.granted:
            return
        if alternative.count is None:
            # Of all devices it gets all or none.
            self._enter(
                _with(self._demand, alternative, [alternative]),
                self._problem.eligibility,
                {},
            )
            return
        parts = [replace(alternative, index=_FORCED, count=1)]
        if alternative.count > 1:
            others = replace(
                alternative, index=_OTHERS, count=alternative.count - 1
            )
            parts.append(others)
        forced = _Forced(self._problem.eligibility, alternative.index, device)
        names = dict.fromkeys((_FORCED, _OTHERS), alternative.index)
        self._enter(_with(self._demand, alternative, parts), forced, names)

    def _enter(
        self,
        demand: Demand,
        eligibility: Eligibility,
        names: Mapping[AlternativeIndex, AlternativeIndex],
    ) -> bool:
        """Note what an answer grants, and whether there is one; ``names`` are what parts of alternatives stand for."""
        self._stop.check()
        problem = replace(
            self._problem, demands=(demand,), eligibility=eligibility
        )
        solution = first_fit(problem)
        # What ends first fit's attempt may leave other answers; so may a device that is not free any more as a request
        # with admin access came first (upstream's behaviour `admin-blocks-device`).
        if solution.errors or (not solution.placements and self._asks_as_admin):
            solution = solve(problem, with_time_left(Options(), self._stop))
            # That nothing was found in time does not say that there is nothing.
            if not (solution.placements or solution.tiers[0].proven):
                raise Stopped
        for _, alternative, grant in grants_of(problem, solution.placements):
            if not alternative.admin:
                index = names.get(alternative.index, alternative.index)
                self.granted.add((index, grant.device))
        return bool(solution.placements)


def _with(
    demand: Demand, alternative: Alternative, parts: Sequence[Alternative]
) -> Demand:
    """Return the demand with an alternative in the place of its request, taken apart."""

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
            replace(claim, requests=tuple(requests(claim)))
            for claim in demand.claims
        ),
    )


@dataclass(eq=False)
class _Forced(Overlay):
    """An eligibility in which an alternative is taken apart: one device, and others than that."""

    alternative: AlternativeIndex
    device: DeviceIndex

    def _real(self, alternative: AlternativeIndex) -> AlternativeIndex:
        """Return the alternative of which it is a part, or is."""
        return self.alternative if alternative < 0 else alternative

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        if alternative < 0 and (device == self.device) is not (
            alternative == _FORCED
        ):
            return False
        return super().selects(self._real(alternative), device)

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        return super().admits(self._real(alternative), device)

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        return super().charge(self._real(alternative), device)

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        return (
            alternative
            if alternative < 0
            else (alternative, super().request_key(alternative))
        )

    def device_key(self, device: DeviceIndex) -> Hashable:
        return device


# ----------------------------------------------------------------------------
# How much can be taken in such grants, and what strands the rest.

FINEST: Final = 2**20
"""Amounts are told apart as long as no more than so many steps of their common divisor are free."""


@dataclass
class _Takes:
    """Pieces in which a quantity can be taken: by each device once, or by any number of shares."""

    once: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    repeated: set[int] = field(default_factory=set)

    def most(self, free: int) -> int:
        """Return the most that can be taken."""
        choices = sorted(
            tuple(sorted(amounts - {0})) for amounts in self.once.values()
        )
        repeated = tuple(sorted(self.repeated - {0}))
        return largest_sum(free, tuple(filter(None, choices)), repeated)


def distinct(
    grantable: Mapping[int, Sequence[Grantable]],
) -> list[Grantable]:
    """Return each of some grants once: demands of a kind have the same object on a node."""
    known = {
        id(on_node): on_node
        for on_nodes in grantable.values()
        for on_node in on_nodes
    }
    return list(known.values())


class Splitter:
    """Splits what is free into what is of use to the demands of a mix, and what is stranded by each cause.

    With too little time until ``stop``, whoever asks is told by `Stopped`.
    """

    def __init__(
        self,
        compiled: CompiledCluster,
        ledger: ClaimLedger,
        demands: Sequence[Demand],
        bars: Sequence[NodeBars | None],
        stop: Stop | None = None,
    ) -> None:
        self._stop = stop or Stop()
        self._compiled = compiled
        self._bars = {
            demand.key: bars for demand, bars in zip(demands, bars, strict=True)
        }
        self._problem = compiled.problem
        self._ledger = ledger
        self._demands = demands
        self._offers = LiftedOffers(compiled)
        self._answers: dict[frozenset[Cause], _GrantAnswers] = defaultdict(
            _GrantAnswers
        )
        self.quantities = Quantities(compiled, ledger)

    def grantable(self) -> Mapping[int, Sequence[Grantable]]:
        """Return the grants that each demand of the mix could get on each of its nodes, with all rules in force."""
        granter, grantable = self._granter(frozenset()), {}
        for index, demand in enumerate(self._demands):
            self._stop.check()
            nodes = granter.nodes(demand, self._problem.all_nodes)
            grantable[index] = [granter.on(demand, node) for node in nodes]
        return grantable

    def causes(
        self, grantable: Mapping[int, Sequence[Grantable]]
    ) -> Mapping[QuantityKey, Mapping[Cause, int]]:
        """Return the stranded amount of each quantity, in nanos, by cause.

        Parameters
        ----------
        grantable
            What `grantable` returned.
        """
        usable = self._usable(
            chain.from_iterable(
                on_node.granted for on_node in distinct(grantable)
            )
        )
        causes: dict[QuantityKey, dict[Cause, int]] = {
            key: {} for key in usable
        }
        lifted: frozenset[Cause] = frozenset()
        for cause in LIFTED_IN_ORDER:
            if not self._occurs[cause]:
                continue
            lifted |= {cause}
            usable_without = self._usable(
                self._granted(lifted, self._short(usable))
            )
            for key in usable:
                # `All` may ask for more devices once a rule does not leave them out.
                causes[key][cause] = max(0, usable_without[key] - usable[key])
                usable[key] += causes[key][cause]
        for key, quantity in self.quantities.by_key.items():
            cause = Cause.SIZE if key in self._selected else Cause.UNWANTED
            causes[key][cause] = quantity.free - usable[key]
        return causes

    @cached_property
    def _occurs(self) -> Mapping[Cause, bool]:
        """Whether the cluster and the mix have anything of the kind at all; if not, lifting it changes nothing."""
        cluster, inventory = self._compiled.cluster, self._compiled.inventory
        sources, quantities = inventory.sources, self.quantities.by_key.values()
        capacities = chain.from_iterable(
            source.device.capacity.values() for source in sources
        )
        policies = chain(
            (entry.request_policy for entry in inventory.published),
            (entry.request_policy for entry in capacities),
        )
        claims = chain.from_iterable(demand.claims for demand in self._demands)
        return {
            Cause.NODE: any(node.spec.unschedulable for node in cluster.nodes),
            Cause.POD: any(
                demand.nodes is not None or self._bars[demand.key]
                for demand in self._demands
            ),
            Cause.TAINT: bool(cluster.taint_rules)
            or any(source.device.taints for source in sources),
            Cause.ALIGNMENT: any(claim.constraints for claim in claims),
            Cause.GROUPS: not self._problem.is_additive,
            Cause.POLICY: any(policy is not None for policy in policies),
            Cause.GEOMETRY: any(quantity.positional for quantity in quantities),
            Cause.COUNTER: bool(self._problem.counters)
            or any(device.shareable for device in self._problem.devices),
        }

    def _granter(self, lifted: frozenset[Cause]) -> Granter:
        """Return the search for grants in which some rules do not count."""
        # Rules about nodes decide where demands may go, and not what there is for them.
        answers = self._answers[lifted - {Cause.NODE, Cause.POD}]
        return Granter(
            self._offers,
            self._ledger,
            self.quantities,
            self._bars,
            lifted,
            answers,
            self._stop,
        )

    def _granted(
        self, lifted: frozenset[Cause], nodes: frozenset[NodeIndex]
    ) -> Iterator[Granting]:
        granter = self._granter(lifted)
        # Nodes that no demand of a kind may go to so far; a demand is only asked about these.
        closed: dict[int, frozenset[NodeIndex]] = {}
        for demand in self._demands:
            kind = granter.kind(demand)
            before = closed.get(kind, nodes)
            opened = granter.nodes(demand, sorted(before))
            closed[kind] = before.difference(opened)
            for node in opened:
                yield from granter.on(demand, node).granted

    def _usable(self, grantings: Iterable[Granting]) -> dict[QuantityKey, int]:
        """Return the amount of each quantity that such grants can take."""
        takes: dict[QuantityKey, _Takes] = defaultdict(_Takes)
        for device_index, charge in set(grantings):
            device = self._problem.devices[device_index]
            once = Tally[QuantityKey](dict(self.quantities.once(device_index)))
            for key, amount in self.quantities.each_time(device_index, charge):
                if device.shareable:
                    takes[key].repeated.add(amount)
                else:
                    once[key] += amount
            for key, amount in once.items():
                takes[key].once[device.slot].add(amount)
        nothing = _Takes()
        return {
            key: takes.get(key, nothing).most(quantity.free)
            for key, quantity in self._stop.each(self.quantities.by_key.items())
        }

    def _short(self, usable: Mapping[QuantityKey, int]) -> frozenset[NodeIndex]:
        """Return the nodes with a selected device that draws on a quantity of which some is still of no use."""
        short = {
            key
            for key, quantity in self.quantities.by_key.items()
            if usable[key] < quantity.free
        }
        return frozenset(
            node
            for node, keys in self._selected_on.items()
            if not short.isdisjoint(keys)
        )

    @cached_property
    def _selected_on(self) -> Mapping[NodeIndex, Set[QuantityKey]]:
        """The quantities of devices that some demand selects for what it will hold, by node."""
        selects = self._problem.eligibility.selects
        alternatives = [
            alternative.index
            for demand in self._demands
            for alternative in demand.alternatives()
            if not alternative.admin
        ]

        @cache
        def is_selected(device: DeviceIndex) -> bool:
            return any(selects(index, device) is True for index in alternatives)

        selected_on = {}
        for node_index, node in numbered(self._problem.nodes):
            selected_on[node_index] = keys = set[QuantityKey]()
            for device in node.devices():
                if self._problem.on_node(device, node_index) and is_selected(
                    device
                ):
                    keys.update(self.quantities.keys(device))
        return selected_on

    @cached_property
    def _selected(self) -> Set[QuantityKey]:
        return frozenset().union(*self._selected_on.values())


@lru_cache(maxsize=4096)
def largest_sum(
    free: int, choices: tuple[tuple[int, ...], ...], repeated: tuple[int, ...]
) -> int:
    """Return the largest sum up to a limit: subset sum, in exact integers.

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
        # Up to one more, up to three more, up to seven more of the same.
        while 0 < shift <= limit:
            sums |= sums << shift & mask
            shift *= 2
    return (sums.bit_length() - 1) * step
