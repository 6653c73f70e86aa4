"""Suggestions to release or move claims: the holders that would have to release devices for the demand to fit.

First where claims could go that leave devices to the demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import cached_property
from itertools import combinations, islice, takewhile
from math import comb
from typing import Final, NamedTuple

from dralloc.ask.context.context import Context, Screening
from dralloc.ask.context.offers import TableOffers
from dralloc.ask.context.resettling import Resettling
from dralloc.ask.explain.changes import Change, Cost, Suggestion
from dralloc.ask.explain.oracle import FeasibilityOracle, in_whole
from dralloc.ask.explain.snapshot import charged
from dralloc.check import check
from dralloc.compile.compiler.demands import find_across
from dralloc.compile.match.requests import compile_claim
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import listed
from dralloc.objects.user_rules import Budget, parsed_across
from dralloc.problem import (
    Alternative,
    Charge,
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.solution import Placement, amount_used, holdings_of
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit

__all__ = ["releases"]

# ----------------------------------------------------------------------------
# Where claims could go that leave devices to the demand.


class Mover:
    """Finds new homes for claims."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self._oracle = oracle
        self._context = oracle.snapshot.context
        self._budgets: tuple[Budget, ...] = ()

    def homes(
        self, node: NodeIndex, claims: Sequence[ClaimKey]
    ) -> dict[ClaimKey, NodeIndex] | None:
        """A node for each claim once the demand is on its node; None if one of them finds none."""
        change = Change(released=frozenset(claims))
        certificate = self._oracle.admit(change, nodes=[node])
        demands = [self._demand(key) for key in claims]
        if certificate is None or not all(demands):
            return None
        context = self._oracle.context(change)
        # The demand comes first: homes are looked for beside what it has been granted.
        ledger, self._budgets = context.ledger.copy(), context.budgets
        self._enter(self._oracle.alone(change), certificate.placement, ledger)
        bars = self._oracle.snapshot.bars
        if bars is None:
            return self._homes(demands, ledger, None)
        with bars.resettling(node, claims) as resettling:
            return self._homes(demands, ledger, resettling)

    def _homes(
        self,
        demands: Sequence[Demand | None],
        ledger: ClaimLedger,
        resettling: Resettling | None,
    ) -> dict[ClaimKey, NodeIndex] | None:
        homes: dict[ClaimKey, NodeIndex] = {}
        for demand in demands:
            home = (
                None
                if demand is None
                else self._settle(demand, ledger, resettling)
            )
            if demand is None or home is None:
                return None
            homes[demand.claims[0].key] = home
        return homes

    def _demand(self, key: ClaimKey) -> Demand | None:
        """The claim as something to be placed anew; None if its pods make that too hard to say."""
        cluster, offers = self._oracle.compiled.cluster, self._context.offers
        if (
            not isinstance(offers, TableOffers)
            or key in self._oracle.snapshot.placed
        ):
            return None
        claim = cluster.claim(key)
        pods = [pod for pod in cluster.pods if key in cluster.pod_claims(pod)]
        # Several pods, or a pod with several claims, would have to move as one; so would pods with constraints over
        # their claims. What is about to go goes nowhere else.
        if (
            claim is None
            or cluster.is_leaving(claim)
            or len(pods) > 1
            or (pods and len(cluster.pod_claims(pods[0])) > 1)
            or not self._bound_across.isdisjoint(pod.key for pod in pods)
        ):
            return None
        compiled_claim = compile_claim(
            claim, cluster.classes, offers.table, offers.table.features
        )
        owner = pods[0].key if pods else key
        return Demand(owner, (compiled_claim,), nodes=self._nodes(owner))

    @cached_property
    def _bound_across(self) -> frozenset[ClaimKey]:
        """The pods with constraints over several claims."""
        compiled = self._oracle.compiled
        across = parsed_across(compiled.choices.across)
        found = find_across(compiled.cluster, compiled.gangs, across)
        return frozenset(found.of_pods)

    def _nodes(self, owner: ClaimKey) -> tuple[NodeIndex, ...]:
        """The nodes that a pod could be started on again."""
        by_name = {
            node.metadata.name: node
            for node in self._oracle.compiled.cluster.nodes
        }
        exclusions, running = (
            self._oracle.snapshot.exclusions,
            Demand(owner, ()),
        )
        allowed = []
        for node_index, problem_node in numbered(self._context.problem.nodes):
            node = by_name[problem_node.name]
            excluded = exclusions.of_running(running, node)
            if not node.spec.unschedulable and not excluded:
                allowed.append(node_index)
        return tuple(allowed)

    def _settle(
        self, demand: Demand, ledger: ClaimLedger, resettling: Resettling | None
    ) -> NodeIndex | None:
        """Place the claim on the first node that holds it and its pod, and enter that."""
        pod = resettling.demand(demand.key) if resettling else None
        context = Context(
            self._context.problem, self._context.offers, ledger, self._budgets
        )
        # Nodes are tried one by one, each as a part with numbers of its own: the demand's nodes mean nothing there.
        free = replace(demand, nodes=None)
        screening = Screening(context)
        for node in demand.nodes or ():
            if not screening.on(node, free):
                continue
            if resettling and pod and not resettling.may_go(pod, node):
                continue
            part = context.part([node], [free])
            solution = first_fit(part.problem)
            # First fit knows nothing of caps.
            if within_caps(part.problem, solution.placements):
                check(part.problem, solution)
                placement = Placement(
                    DemandIndex(0),
                    node,
                    in_whole(part, solution.placements[0].grants),
                )
                problem = replace(
                    self._context.problem,
                    demands=(free,),
                    eligibility=self._context.offers,
                )
                self._enter(problem, placement, ledger)
                if resettling and pod:
                    resettling.settle(pod, node)
                return node
        return None

    def _enter(
        self, problem: Problem, placement: Placement, ledger: ClaimLedger
    ) -> None:
        ledger.hold(holdings_of(problem, placement))
        self._budgets = charged(self._budgets, problem, [placement])


# ----------------------------------------------------------------------------
# Which claims would have to be released, on the nodes where the fewest seem to be in
# the way.

_NODES_TRIED: Final = 8
"""On so many nodes a release is looked for."""

_NAMED: Final = 6
"""So many claims are named in a suggestion."""

_COMBINATIONS: Final = 64
"""Sets of one or two claims are tried as long as there are no more of them."""

_MOST_MOVES: Final = 2
"""Homes are looked for if no more claims have to move."""


class _Candidate(NamedTuple):
    """Claims of which none can stay if the demand is to fit on a node, and the highest priority of their pods."""

    node: NodeIndex
    claims: tuple[ClaimKey, ...]
    priority: int

    @property
    def change(self) -> Change:
        return Change(released=frozenset(self.claims))

    def __str__(self) -> str:
        named = listed([*map(str, self.claims)], _NAMED)
        return (
            f"claim {named}"
            if len(self.claims) == 1
            else f"{len(self.claims)} claims: {named}"
        )


def releases(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """The cheapest move, the release of the fewest claims, and the release that costs the least priority."""
    candidates = list(_candidates(oracle))
    if not candidates:
        return
    yield from _moved(oracle, sorted(candidates, key=_claim_count))
    fewest = min(candidates, key=_by_claims)
    lowest = min(candidates, key=_by_priority)
    cheapest = (
        [fewest] if lowest.priority == fewest.priority else [fewest, lowest]
    )
    for rank, candidate in enumerate(cheapest):
        highest = "highest " if len(candidate.claims) > 1 else ""
        text = f"release {candidate} ({highest}priority {candidate.priority})"
        yield Suggestion(
            text,
            oracle.fits_on(candidate.node),
            Cost.RELEASE,
            len(candidate.claims) + rank,
            candidate.change,
        )


def _candidates(oracle: FeasibilityOracle) -> Iterator[_Candidate]:
    """Return, for the nodes where the least seems to be in the way, claims of which none can stay."""
    blockers = _Blockers(oracle)
    for node in islice(blockers.cheapest, _NODES_TRIED):
        enough = _enough(oracle, blockers, node)
        if enough is None:
            continue
        # Who has the highest priority is the first that may stay.
        in_order = sorted(
            enough, key=lambda claim: (-blockers.priority(claim), claim)
        )
        needed = _needed(oracle, node, in_order)
        needed = (
            _fewer(oracle, node, blockers.all_holders(node), needed) or needed
        )
        highest = max(map(blockers.priority, needed))
        lower = sorted(
            (
                claim
                for claim in blockers.all_holders(node) | enough
                if blockers.priority(claim) < highest
            ),
            key=lambda claim: (-blockers.priority(claim), claim),
        )
        released = [needed]
        # These are the first that were found to be enough. Others of lower priorities may do as well.
        if lower and _admits(oracle, node, lower):
            released.append(_needed(oracle, node, lower))
        for claims in released:
            # First fit may stop at an error on another node, or find a place on an earlier one.
            certificate = oracle.admit(Change(released=frozenset(claims)))
            if certificate is not None:
                priority = max(map(blockers.priority, claims))
                yield _Candidate(certificate.node, tuple(claims), priority)


def _enough(
    oracle: FeasibilityOracle, blockers: _Blockers, node: NodeIndex
) -> set[ClaimKey] | None:
    """Return claims whose release admits the demand on a node, from the fewest to all that matter; None if none do."""
    claims_by_guess = (
        blockers.cheapest.__getitem__,
        blockers.all_holders,
        blockers.users,
    )
    for claims_of in claims_by_guess:
        claims = claims_of(node)
        if claims and _admits(oracle, node, claims):
            return claims
    return None


def _claim_count(candidate: _Candidate) -> int:
    return len(candidate.claims)


def _by_claims(candidate: _Candidate) -> tuple[int, int]:
    return len(candidate.claims), candidate.priority


def _by_priority(candidate: _Candidate) -> tuple[int, int]:
    return candidate.priority, len(candidate.claims)


def _admits(
    oracle: FeasibilityOracle, node: NodeIndex, claims: Collection[ClaimKey]
) -> bool:
    return (
        oracle.admit(Change(released=frozenset(claims)), nodes=[node])
        is not None
    )


def _needed(
    oracle: FeasibilityOracle, node: NodeIndex, claims: list[ClaimKey]
) -> list[ClaimKey]:
    """Let each claim stay if the others are enough, in this order."""
    needed = set(claims)
    for claim in claims:
        if len(needed) > 1 and _admits(oracle, node, needed - {claim}):
            needed.discard(claim)
    return sorted(needed)


def _fewer(
    oracle: FeasibilityOracle,
    node: NodeIndex,
    claims: set[ClaimKey],
    than: list[ClaimKey],
) -> list[ClaimKey] | None:
    """Return one or two claims that are enough to release, if that is fewer and there are not too many pairs to try."""
    sizes = takewhile(
        lambda size: comb(len(claims), size) <= _COMBINATIONS,
        range(1, min(len(than), 3)),
    )
    for size in sizes:
        for released in combinations(sorted(claims), size):
            if _admits(oracle, node, released):
                return list(released)
    return None


def _moved(
    oracle: FeasibilityOracle, candidates: list[_Candidate]
) -> Iterator[Suggestion]:
    """Yield a suggestion to move claims: those of the first candidate that all find a place elsewhere."""
    for candidate in candidates:
        homes = None
        if len(candidate.claims) <= _MOST_MOVES:
            homes = Mover(oracle).homes(candidate.node, candidate.claims)
        if homes is not None:
            names = oracle.snapshot.problem.nodes
            goes = ", ".join(
                f"{claim} goes to {names[node].name}"
                for claim, node in homes.items()
            )
            outcome = f"{oracle.fits_on(candidate.node)}; {goes}"
            yield Suggestion(
                f"move {candidate}",
                outcome,
                Cost.MOVE,
                len(candidate.claims),
                candidate.change,
            )
            return


class _Blockers:
    """Finds the claims that hold what the demand could use."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self._oracle = oracle
        self._snapshot = oracle.snapshot
        self._context = oracle.snapshot.context
        # By alternative, and by what can be told about a device.
        self._could_serve: dict[int, dict[Hashable, bool]] = defaultdict(dict)
        self._requests = [
            request
            for claim in oracle.snapshot.demand.claims
            for request in claim.requests
        ]

    @cached_property
    def cheapest(self) -> Mapping[NodeIndex, set[ClaimKey]]:
        """The claims in the way of the devices that the fewest claims hold, by node; the cheapest nodes first."""
        # On nodes that it may go to, devices are in the way; on others, pods are, too.
        in_the_way: dict[NodeIndex, set[ClaimKey]] = {}
        for node in self._oracle.allowed(Change()):
            claims = self._cheapest(node)
            if claims is not None:
                in_the_way[node] = claims
        for node, users in self._barred.items():
            claims = self._cheapest(node)
            if claims is not None:
                in_the_way[node] = claims | users
        by_number = sorted(
            in_the_way.items(), key=lambda item: (len(item[1]), item[0])
        )
        return dict(by_number)

    @cached_property
    def _barred(self) -> Mapping[NodeIndex, set[ClaimKey]]:
        """The nodes that would do beside devices without the pods that use claims, each with these claims."""
        bars, snapshot = self._snapshot.bars, self._snapshot
        usable = frozenset(snapshot.nodes)
        everywhere = (
            node for node in snapshot.problem.all_nodes if node not in usable
        )
        users = (
            {
                node: bars.settled.claims_on(node) - snapshot.own_claims
                for node in everywhere
            }
            if bars
            else {}
        )
        return {
            node: claims
            for node, claims in users.items()
            if claims and not snapshot.rules(node, claims)
        }

    def _cheapest(self, node: NodeIndex) -> set[ClaimKey] | None:
        total: set[ClaimKey] = set()
        for request in self._requests:
            options = (
                self._of_alternative(alternative, node)
                for alternative in request.alternatives
            )
            usable = [option for option in options if option is not None]
            if not usable:
                return None
            total |= min(usable, key=len)
        return total

    def _of_alternative(
        self, alternative: Alternative, node: NodeIndex
    ) -> set[ClaimKey] | None:
        held = [
            self._of_device(alternative, device)
            for device in self._devices(alternative, node)
        ]
        if len(held) < (alternative.count or 1):
            return None
        # A guess: devices are looked at one by one, as if no two needed the same.
        return set().union(*sorted(held, key=len)[: alternative.count])

    def all_holders(self, node: NodeIndex) -> set[ClaimKey]:
        """The claims in the way of any device that the demand could use."""
        return self._under_caps.union(
            *(
                self._of_device(alternative, device)
                for alternative, device in self._options(node)
            )
        )

    def users(self, node: NodeIndex) -> set[ClaimKey]:
        """The claims that use anything of what the demand could use, even if enough of it is left for one device."""
        devices, ledger = self._context.problem.devices, self._context.ledger
        neighbours = (
            ledger.neighbours(
                devices[device], self._charge(alternative, device)
            )
            for alternative, device in self._options(node)
        )
        return (
            self.all_holders(node).union(*neighbours)
            - self._snapshot.own_claims
        )

    def _options(
        self, node: NodeIndex
    ) -> Iterator[tuple[Alternative, DeviceIndex]]:
        for request in self._requests:
            for alternative in request.alternatives:
                for device in self._devices(alternative, node):
                    yield alternative, device

    def _devices(
        self, alternative: Alternative, node: NodeIndex
    ) -> list[DeviceIndex]:
        offers, problem = self._context.offers, self._context.problem
        index = alternative.index
        verdicts = self._could_serve[index]
        serving: list[DeviceIndex] = []
        for pool in problem.nodes[node].pools:
            keys = offers.device_keys(pool.devices)
            for device, key in zip(pool.devices, keys, strict=True):
                if key not in verdicts:
                    verdicts[key] = offers.could_serve(index, device)
                if verdicts[key] and problem.on_node(device, node):
                    serving.append(device)
        return serving

    def _charge(self, alternative: Alternative, device: DeviceIndex) -> Charge:
        return (
            self._context.offers.charge(alternative.index, device) or Charge()
        )

    def _of_device(
        self, alternative: Alternative, device_index: DeviceIndex
    ) -> set[ClaimKey]:
        device, ledger = (
            self._context.problem.devices[device_index],
            self._context.ledger,
        )
        charge = self._charge(alternative, device_index)
        shortages = ledger.shortages(device, charge, admin=alternative.admin)
        holders = {
            claim
            for shortage in shortages
            for claim in ledger.holders(device, shortage)
        }
        # Who uses what is capped, if the device alone would take more than the cap leaves.
        counters = self._context.problem.counters
        short = (
            budget
            for budget in self._caps
            if amount_used(budget.resource, device, charge, counters)
            > (budget.left or 0)
        )
        return (
            holders.union(*map(self._snapshot.caps.users, short))
            - self._snapshot.own_claims
        )

    @cached_property
    def _caps(self) -> tuple[Budget, ...]:
        return self._snapshot.caps.of(self._snapshot.demand)

    @cached_property
    def _under_caps(self) -> set[ClaimKey]:
        """Return the users of the resources that caps limit for the demand."""
        return (
            set().union(*map(self._snapshot.caps.users, self._caps))
            - self._snapshot.own_claims
        )

    def priority(self, claim: ClaimKey) -> int:
        """The highest priority of the pods that use a claim; 0 if no pod does."""
        return max(self._priorities.get(claim, (0,)))

    @cached_property
    def _priorities(self) -> Mapping[ClaimKey, list[int]]:
        cluster = self._oracle.compiled.cluster
        priorities: dict[ClaimKey, list[int]] = defaultdict(list)
        for pod in cluster.pods:
            for key in cluster.pod_claims(pod):
                priorities[key].append(pod.spec.priority or 0)
        return priorities
