"""A problem in which some of the allocated claims may move, or stay where they are.

First pods that have a node, as rules between pods count them; then claims that may move and how; then staying as
something to be placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from dralloc.ask.context.context import Context
from dralloc.ask.context.offers import Offers
from dralloc.check import violations
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Claim,
    Demand,
    DeviceIndex,
    Eligibility,
    NodeIndex,
    Problem,
    Request,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from dralloc.problem.ledger import Holding
from dralloc.problem.problem import Overlay
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.problem.subproblem import places

__all__ = [
    "Migration",
    "MovableClaim",
    "MoveOption",
    "PodThere",
    "StayEligibility",
    "broken",
    "counting",
    "irregular_rules",
    "rules_counting",
    "stay_grants",
    "stay_options",
    "with_rules",
]

# ----------------------------------------------------------------------------
# Pods that have a node, as rules between pods count them.
#
# While pods move, who is where changes from step to step. Whoever comes finds some
# pods there already, and rules that count these decide, as they do of pods that a
# cluster has bound (see `dralloc.problem.inter_pod`).

PodThere = tuple[Sequence[Role], str]
"""What a pod is to rules, and the name of its node."""

_There = Sequence[tuple[Role, str]]
"""The pods that have a role in one rule, each with the name of its node."""


def counting(
    demands: Iterable[Demand], present: Iterable[PodThere]
) -> tuple[Demand, ...]:
    """The demands, whose rules count these pods as pods that run."""
    counting_rules = rules_counting(present)
    return tuple(with_rules(demand, counting_rules) for demand in demands)


def rules_counting(
    present: Iterable[PodThere],
) -> Mapping[InterPodRule, InterPodRule]:
    """Return, for each rule that is about some of these pods, the rule that counts them as pods that run."""
    return {
        rule: _counting(rule, pods) for rule, pods in _by_rule(present).items()
    }


def with_rules(
    demand: Demand, replacements: Mapping[InterPodRule, InterPodRule]
) -> Demand:
    """The demand with other rules in the place of some."""
    if replacements.keys().isdisjoint(role.rule for role in demand.roles):
        return demand
    return replace(
        demand,
        roles=tuple(
            role._replace(rule=replacements.get(role.rule, role.rule))
            for role in demand.roles
        ),
    )


def irregular_rules(present: Iterable[PodThere]) -> frozenset[InterPodRule]:
    """The rules that pods break which are there, so that not all of them could come again to where they are."""
    return frozenset(
        rule
        for rule, pods in _by_rule(present).items()
        if _is_broken(rule, pods)
    )


def _by_rule(present: Iterable[PodThere]) -> Mapping[InterPodRule, _There]:
    return grouped(
        (role.rule, (role, node)) for roles, node in present for role in roles
    )


def _counting(rule: InterPodRule, pods: _There) -> InterPodRule:
    counted = [node for role, node in pods if role.counts]
    carried = [node for role, node in pods if role.carries]
    match rule:
        case AntiAffinity():
            carrying = rule.carried | _domains(rule.domains, carried)
            return replace(
                rule,
                carried=carrying,
                counted=rule.counted | _domains(rule.domains, counted),
            )
        case Affinity():
            terms = zip(rule.domains, rule.counted, strict=True)
            return replace(
                rule,
                counted=tuple(
                    before | _domains(domains, counted)
                    for domains, before in terms
                ),
            )
        case Spread():
            present = Counter(
                rule.domains[node] for node in counted if node in rule.domains
            )
            return replace(rule, counted=Counter(dict(rule.counted)) + present)
        case OneDomain():
            # Where those that run are in no domain, or in several, nobody else comes (KEP-5732).
            homes = {rule.domains.get(node) for node in carried}
            alone = {
                name: domain
                for name, domain in rule.domains.items()
                if homes == {domain}
            }
            return replace(rule, domains=alone) if homes else rule


def _domains(domains: Domains, nodes: Iterable[str]) -> frozenset[str]:
    return frozenset(domains[node] for node in nodes if node in domains)


def _is_broken(rule: InterPodRule, pods: _There) -> bool:
    match rule:
        case AntiAffinity():
            return any(
                _is_too_near(rule, pods, index) for index in range(len(pods))
            )
        case OneDomain():
            homes = {
                rule.domains.get(node) for role, node in pods if role.carries
            }
            return len(homes) > 1 or None in homes
        case _:
            # Affinity and spread do not bind who is there.
            return False


def _is_too_near(rule: AntiAffinity, pods: _There, pod: int) -> bool:
    role, node = pods[pod]
    domain = rule.domains.get(node)
    if domain is None:
        return False
    neighbours = [
        neighbour
        for index, (neighbour, home) in enumerate(pods)
        if index != pod and rule.domains.get(home) == domain
    ]
    counted = domain in rule.counted or any(role.counts for role in neighbours)
    return (role.carries and counted) or (
        role.counts and domain in rule.carried
    )


@dataclass(frozen=True, slots=True)
class MovableClaim:
    """An allocated claim that may move; or what a pod takes of its node beside devices, which moves with the pod.

    Parameters
    ----------
    home
        Index of the node where it is used.
    holdings
        What it holds, under its key.
    devices
        The devices of these, by index, as the node sees them.
    roles
        What a pod that stays is to rules between pods.
    """

    key: ClaimKey
    home: NodeIndex
    holdings: tuple[Holding, ...]
    devices: tuple[DeviceIndex, ...]
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveOption:
    """Some movable claims that move at the same time.

    Parameters
    ----------
    movers
        Who moves, by index; what they have in common with others stays where it is.
    pods
        The pods that go with them, by index.
    demands
        What they ask for: placed all or none.
    group
        Of the options of a group at most one is taken.
    weight
        What it is worth.
    """

    movers: tuple[int, ...]
    demands: tuple[Demand, ...]
    group: int
    weight: int = 0
    pods: tuple[int, ...] = ()


@dataclass(frozen=True)
class Migration:
    """The claims that may move, their options, and the problem around them.

    Parameters
    ----------
    problem
        What is pending, beside everything that is in use but for what the movable claims hold.
    movers, move_options
        Who may move, and how.
    pods
        The pods of the movers that have a node, with what they take of it.
    """

    problem: Problem
    movers: tuple[MovableClaim, ...]
    move_options: tuple[MoveOption, ...]
    pods: tuple[MovableClaim, ...] = ()

    @cached_property
    def holders(self) -> tuple[MovableClaim, ...]:
        """All that may give back what it holds: the movable claims, and then their pods."""
        return (*self.movers, *self.pods)

    def holders_of(self, option: MoveOption) -> tuple[int, ...]:
        """Return the holders, by index, that release their devices if an option is taken."""
        return (
            *option.movers,
            *(len(self.movers) + pod for pod in option.pods),
        )

    def leaving(self, options: Iterable[MoveOption]) -> list[ClaimKey]:
        """Under which keys something is held that is given back with these options."""
        return [
            self.holders[holder].key
            for option in options
            for holder in self.holders_of(option)
        ]

    @cached_property
    def ledger(self) -> ClaimLedger:
        """The ledger before any move. Copy before changing."""
        ledger = ClaimLedger(self.problem)
        ledger.hold(
            holding for holder in self.holders for holding in holder.holdings
        )
        return ledger

    def without(self, holders: Iterable[int]) -> ClaimLedger:
        """Return the ledger once some holders have given back what they hold."""
        ledger = self.ledger.copy()
        ledger.release(self.holders[holder].key for holder in holders)
        return ledger

    def there(self, gone: Iterable[int] = ()) -> list[PodThere]:
        """The pods that are to rules between pods what they are as long as nobody has moved but some holders."""
        given_back = frozenset(gone)
        return [
            (holder.roles, self.problem.nodes[holder.home].name)
            for index, holder in enumerate(self.holders)
            if holder.roles and index not in given_back
        ]

    @cached_property
    def before(self) -> Problem:
        """The problem of pending demands beside all holdings and all pods, before any move."""
        applied = self.ledger.applied()
        return replace(applied, demands=counting(applied.demands, self.there()))

    def only(self, groups: Collection[int]) -> Migration:
        """The migration in which just these groups may move; other pods that rules are about stay where they are."""
        move_options = [
            option for option in self.move_options if option.group in groups
        ]
        movers = sorted(
            {mover for option in move_options for mover in option.movers}
        )
        going = {
            pod_index for option in move_options for pod_index in option.pods
        }
        # A pod that has roles in rules between pods remains a holder, so that rules count it where it stays.
        pods = [
            pod_index
            for pod_index, pod in enumerate(self.pods)
            if pod_index in going or pod.roles
        ]
        # Movers and pods are numbered anew, and options refer to them by number.
        mover_at, pod_at = map(places, (movers, pods))
        renumbered = []
        for option in move_options:
            option_movers = tuple(mover_at[mover] for mover in option.movers)
            option_pods = tuple(pod_at[pod_index] for pod_index in option.pods)
            renumbered.append(
                replace(option, movers=option_movers, pods=option_pods)
            )
        holders = (
            *movers,
            *(len(self.movers) + pod_index for pod_index in pods),
        )
        # All others hold what they hold for good: that becomes a part of what is in use.
        return Migration(
            self.without(holders).applied(),
            tuple(self.movers[mover] for mover in movers),
            tuple(renumbered),
            tuple(self.pods[pod_index] for pod_index in pods),
        )


# ----------------------------------------------------------------------------
# Staying as something to be placed: a demand that only what a claim holds can serve,
# at what it has consumed.

_FIRST: Final = 2**32
"""Alternatives of a problem have smaller indices."""


def stay_options(
    migration: Migration,
) -> tuple[Sequence[Demand | None], Eligibility]:
    """Return a demand for each movable claim and each of its pods to stay, with the devices that can serve it.

    None stands for those who break a rule as things are now: they hold what they hold.
    """
    problem, movers = migration.problem, migration.holders
    eligibility = StayEligibility(problem.eligibility)
    demands = []
    for mover in movers:
        key = ClaimKey(mover.key.namespace, f"{mover.key.name} (stays)")
        claim = eligibility.claim(problem, key, mover.holdings, mover.devices)
        demands.append(
            Demand(
                key,
                (claim,),
                weight=0,
                nodes=(mover.home,),
                gang=str(key),
                roles=mover.roles,
            )
        )
    if _as_published(problem, movers):
        placements = (
            Placement(
                DemandIndex(index), mover.home, (stay_grants(mover.devices),)
            )
            for index, mover in enumerate(movers)
        )
        everybody = replace(
            problem, demands=tuple(demands), eligibility=eligibility
        )
        # As a rule all of them keep the rules together, and none needs to be asked by itself.
        if not violations(everybody, Solution(tuple(placements))):
            return demands, eligibility
    return list(_regular(migration, demands, eligibility)), eligibility


def _as_published(problem: Problem, movers: Iterable[MovableClaim]) -> bool:
    """Whether the claims have shares of shareable devices, and others as a whole."""
    return all(
        holding.share == problem.devices[device].shareable
        for mover in movers
        for holding, device in zip(mover.holdings, mover.devices, strict=True)
    )


def _regular(
    migration: Migration, demands: Sequence[Demand], eligibility: Eligibility
) -> Iterator[Demand | None]:
    """The demands of the holders that could be allocated the devices that they have, beside all others."""
    ledger = migration.ledger.copy()
    for mover, demand in zip(migration.holders, demands, strict=True):
        ledger.release([mover.key])
        yield (
            demand
            if _is_regular(
                Context(migration.problem, Offers(eligibility), ledger),
                mover,
                demand,
            )
            else None
        )
        ledger.hold(mover.holdings)


@dataclass(eq=False)
class StayEligibility(Overlay):
    """The eligibility of a problem, with requests, of indices beyond all others, for what claims hold.

    Only certain devices can serve these, at what is consumed of them already.
    """

    entries: dict[AlternativeIndex, tuple[int, Charge]] = field(
        default_factory=dict
    )
    devices: set[DeviceIndex] = field(default_factory=set)

    def claim(
        self,
        problem: Problem,
        key: ClaimKey,
        holdings: Sequence[Holding],
        devices: Sequence[DeviceIndex],
    ) -> Claim:
        """A claim that asks for what is held, of these devices: one request for each."""
        requests = []
        for request_index, (holding, device) in enumerate(
            zip(holdings, devices, strict=True)
        ):
            # What the device does not publish any more cannot be charged, nor anything of one that is held as a whole.
            capacities = (
                problem.devices[device].capacity if holding.share else {}
            )
            consumed = tuple(
                (name, amount)
                for name, amount in holding.charge.capacity
                if name in capacities
            )
            index, name = (
                AlternativeIndex(_FIRST + len(self.entries)),
                RequestName(f"device-{request_index}"),
            )
            self.entries[index] = (
                device,
                Charge(capacity=consumed, counters=holding.charge.counters),
            )
            self.devices.add(device)
            requests.append(
                Request(str(name), (Alternative(index, name, 0, 1),))
            )
        return Claim(key, "", tuple(requests))

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """As in `Eligibility`."""
        entry = self.entries.get(alternative)
        return (
            super().selects(alternative, device)
            if entry is None
            else entry[0] == device
        )

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """As in `Eligibility`."""
        return alternative in self.entries or super().admits(
            alternative, device
        )

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`."""
        entry = self.entries.get(alternative)
        return (
            super().charge(alternative, device) if entry is None else entry[1]
        )

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """As in `Eligibility`."""
        return (
            alternative
            if alternative in self.entries
            else super().request_key(alternative)
        )

    def device_key(self, device: DeviceIndex) -> Hashable:
        """As in `Eligibility`."""
        return super().device_key(
            device
        ), device if device in self.devices else None


def stay_grants(devices: Iterable[DeviceIndex]) -> tuple[Grant, ...]:
    """Return the grants of a claim that stays: the devices that it has."""
    return tuple(
        Grant(request, 0, device) for request, device in enumerate(devices)
    )


def _is_regular(context: Context, mover: MovableClaim, demand: Demand) -> bool:
    offered = set(context.problem.nodes[mover.home].devices())
    if not offered.issuperset(mover.devices) or not _as_published(
        context.problem, [mover]
    ):
        return False
    return not broken(
        context,
        [demand],
        [Placement(DemandIndex(0), mover.home, (stay_grants(mover.devices),))],
    )


def broken(
    context: Context, demands: Sequence[Demand], placements: Sequence[Placement]
) -> list[str]:
    """The rules that some placements of the demands would break at the moment; looks only at their nodes."""
    nodes = list(dict.fromkeys(placement.node for placement in placements))
    # Nodes and gangs of the demands are left out: only claims and rules between pods are asked about.
    part = context.part(
        nodes,
        [
            Demand(demand.key, demand.claims, roles=demand.roles)
            for demand in demands
        ],
    )
    device_at, node_at = places(part.devices), places(part.nodes)
    # The part numbers devices and nodes on its own.
    in_part = []
    for placement in placements:
        grants = []
        for of_claim in placement.grants:
            moved = (
                grant._replace(device=device_at[grant.device])
                for grant in of_claim
            )
            grants.append(tuple(moved))
        node = node_at[placement.node]
        in_part.append(Placement(placement.demand, node, tuple(grants)))
    return violations(part.problem, Solution(tuple(in_part)))
