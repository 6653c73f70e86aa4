"""A run that asks a policy of the user which node a demand gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from dralloc.objects.errors import DrallocError, FatalError, NodeError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Placement
from dralloc.problem.supply import NODE_DRIVER
from dralloc.solve.first_fit.candidates import CandidateIndex
from dralloc.solve.first_fit.claim_classes import ClaimClass, ClaimClasses
from dralloc.solve.first_fit.plain import Found, PlainRun
from dralloc.solve.first_fit.pruned import DEAD_ENDS, PrunedSearch
from dralloc.solve.policies.protocol import (
    OfferedNode,
    OrderedPolicy,
    Policy,
    WaitingPod,
    policy_name,
)

__all__ = ["AskingRun", "order_of"]

_Known = dict[tuple[ClaimClass, int], tuple[int, Found | None]]
"""What claims of a class get on a node, with the number of the change of the node after which that was found."""


class AskingRun(PlainRun):
    """One pass over the demands. Each node that can hold a demand is searched as first fit does, and offered.

    What was found on a node stays true until something changes there, so that equal demands are searched for once.
    """

    def __init__(self, problem: Problem, policy: Policy) -> None:
        super().__init__(problem)
        self._policy = policy
        self._index = CandidateIndex(self._problem)
        self._claim_classes = ClaimClasses(self._problem)
        self._known: _Known = {}
        self._changes: dict[int, int] = defaultdict(int)
        self._sharing = grouped(
            (group, number)
            for number, node in enumerate(problem.nodes)
            for group in {problem.devices[device].group for device in node.devices()}
        )
        self._pods: dict[int, list[ClaimKey]] = defaultdict(list)

    def place(self, number: int) -> None:
        """Place a demand on the node that the policy chooses, or note why it has none."""
        demand = self._demand(number)
        claims = self._open_claims(demand)
        try:
            found_on = {
                node: self._offer(number, claims, node) for node in self._nodes(demand)
            }
        except FatalError as error:
            self.errors[number] = error
            return
        offers = [
            self._offered(node, found)
            for node, found in found_on.items()
            if found is not None
        ]
        if not offers:
            return
        chosen = self._choice(number, offers)
        if chosen is None:
            name = policy_name(self._policy)
            self.errors[number] = NodeError(
                f"{name} takes no node, of {len(offers)} that could hold it"
            )
            return
        found = self._checked(claims, self._attempt(claims, chosen))
        assert found is not None, "what fitted before nothing changed fits again"
        self._settle(number, chosen, claims, found)

    def _choice(self, number: int, offers: Sequence[OfferedNode]) -> int | None:
        """The node that the policy chooses; None if it wants none of them."""
        pod = WaitingPod.of(number, self._problem.demands[number])
        chosen = self._policy(pod, offers)
        if chosen is None:
            return None
        if not any(chosen is offer for offer in offers):
            name = policy_name(self._policy)
            raise DrallocError(
                f"policy {name}: {chosen!r} is none of the nodes that were offered for {pod.key}"
            )
        return chosen.number

    def _offered(self, node: int, found: Found) -> OfferedNode:
        devices = [
            self._problem.devices[grant.device].id
            for grants in found
            for grant in grants
        ]
        real = tuple(device for device in devices if device.driver != NODE_DRIVER)
        return OfferedNode(node, self._ledger, real, tuple(self._pods[node]))

    def _offer(self, number: int, claims: Sequence[Claim], node: int) -> Found | None:
        """What the claims would get on a node; nothing is taken."""
        claim_class = None if self._has_footprints else self._claim_classes.of(claims)
        if claim_class is not None:
            change, known = self._known.get((claim_class, node), (-1, None))
            if change == self._changes[node]:
                return known
        try:
            found = self._checked(claims, self._attempt(claims, node))
        except NodeError as error:
            self.errors[number] = error
            return None
        self._ledger.revert()
        if claim_class is not None:
            self._known[claim_class, node] = self._changes[node], found
        return found

    def _attempt(self, claims: Sequence[Claim], node: int) -> Found | None:
        return self._run(
            PrunedSearch(
                self._problem,
                self._ledger,
                claims,
                self._index.on(claims, node),
                DEAD_ENDS,
            )
        )

    def _settle(
        self, number: int, node: int, claims: Sequence[Claim], found: Found
    ) -> None:
        super()._settle(number, node, claims, found)
        self._pods[node].append(self._problem.demands[number].key)
        self._changed(self.placements[-1])

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        self._pods[placement.node].remove(self._problem.demands[placement.demand].key)
        self._changed(placement)

    def _changed(self, placement: Placement) -> None:
        """Note that every node that sees what the placement took has changed."""
        problem = self._problem
        slots = {
            problem.devices[grant.device].slot
            for grants in placement.grants
            for grant in grants
        }
        groups = {
            problem.devices[version].group
            for slot in slots
            for version in problem.versions[slot]
        }
        for node in {placement.node}.union(*(self._sharing[group] for group in groups)):
            self._changes[node] += 1


def order_of(problem: Problem, policy: Policy) -> Sequence[int]:
    """Return the demands in the order of a policy; without an order of its own, by priority and age.

    Raises
    ------
    DrallocError
        The policy leaves out pods, or names one twice.
    """
    numbers = range(len(problem.demands))
    if not isinstance(policy, OrderedPolicy):
        return numbers
    pods = [
        WaitingPod.of(number, demand) for number, demand in enumerate(problem.demands)
    ]
    ordered = [pod.number for pod in policy.order(pods)]
    if sorted(ordered) != list(numbers):
        raise DrallocError(
            f"policy {policy_name(policy)}: order: each of the {len(pods)} pods has to be there once"
        )
    return ordered
