"""Policies that users write: for one pod after the other they choose between the nodes that can hold it.

A policy sees names and exact amounts, none of the numbers of a problem. What it cannot do is break a rule: the nodes
that it is offered can hold the pod with all its claims, and the devices are those that upstream's allocator takes
there.

First the protocol, which is what a user implements and sees; then the run that asks such a policy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, runtime_checkable

from dralloc.objects.errors import DrallocError, FatalError, NodeError
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.objects.quantity import NANOS
from dralloc.problem import (
    Charge,
    Claim,
    Demand,
    DemandIndex,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    SlotIndex,
    indices,
    numbered,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.node_claims import node_resource
from dralloc.problem.solution import Placement
from dralloc.problem.supply import NODE_DRIVER
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    ClaimClass,
    ClaimClasses,
)
from dralloc.solve.first_fit.plain import GrantsOfClaims, PlainRun
from dralloc.solve.first_fit.pruned import DEAD_ENDS, PrunedSearch

__all__ = [
    "AskingRun",
    "OfferedNode",
    "OrderedPolicy",
    "Policy",
    "WaitingPod",
    "order_of",
    "policy_name",
]


@dataclass(frozen=True)
class WaitingPod:
    """A pod that is to be placed, or a claim that no pod uses, as a policy sees it.

    Parameters
    ----------
    number
        Its place in the order of first fit: by priority, then by age.
    key
        Namespace and name.
    claims
        The claims that it uses and that are not allocated.
    priority
        Its priority; 0 for a claim that no pod uses.
    gang
        The name of its gang; empty for none.
    devices
        How many devices it asks for at least.

    Examples
    --------
    >>> import dralloc
    >>> def tell(pod, nodes):
    ...     print(pod.key, pod.priority, pod.devices)
    ...     return nodes[0]
    >>> plan = dralloc.allocate(dralloc.example(), mode=tell)
    default/any 0 1
    """

    number: DemandIndex
    key: ClaimKey
    claims: tuple[ClaimKey, ...]
    priority: int
    gang: str
    devices: int

    @classmethod
    def of(cls, number: DemandIndex, demand: Demand) -> WaitingPod:
        """The pod that a demand of a problem stands for."""
        real = tuple(claim for claim in demand.claims if not claim.is_synthetic)
        keys = tuple(claim.key for claim in real)
        node_claims = len(demand.claims) - len(real)
        return cls(
            number,
            demand.key,
            keys,
            demand.priority,
            demand.gang,
            demand.asked_devices - node_claims,
        )


class OfferedNode:
    """A node that can hold a pod, as it is before the pod is placed. Amounts are exact and in base units.

    An offer is true while the policy is asked, and not to be kept.

    Parameters
    ----------
    number
        Its place among all nodes, as first fit takes them.
    name
        The node's name.
    devices
        The devices that the pod gets if this node is chosen.
    pods
        The pods that were placed here before in the same answer, in order.

    Examples
    --------
    >>> import dralloc
    >>> def tell(pod, nodes):
    ...     for node in nodes:
    ...         print(node.name, [device.device for device in node.devices], node.free_devices(), node.total_devices())
    ...     return nodes[0]
    >>> plan = dralloc.allocate(dralloc.example(), mode=tell)
    node-0 ['large'] 2 2
    """

    def __init__(
        self,
        number: NodeIndex,
        ledger: Ledger,
        devices: tuple[DeviceID, ...],
        pods: tuple[ClaimKey, ...] = (),
    ) -> None:
        self.number = number
        self.name = ledger.problem.nodes[number].name
        self.devices = devices
        self.pods = pods
        self._ledger = ledger

    def __repr__(self) -> str:
        return f"<OfferedNode {self.name}: {', '.join(map(str, self.devices))}>"

    @property
    def _problem(self) -> Problem:
        return self._ledger.problem

    @cached_property
    def _devices(self) -> tuple[Device, ...]:
        devices = (self._problem.devices[index] for index in self._within_reach)
        return tuple(
            device for device in devices if device.id.driver != NODE_DRIVER
        )

    @property
    def _within_reach(self) -> Iterator[DeviceIndex]:
        # A pool may offer a node also what the node does not reach.
        for device_index in self._problem.nodes[self.number].devices():
            if self._problem.on_node(device_index, self.number):
                yield device_index

    def total_devices(self, driver: str = "") -> int:
        """Return how many devices the node has, of all drivers or of one."""
        return sum(
            not driver or device.id.driver == driver for device in self._devices
        )

    def free_devices(self, driver: str = "") -> int:
        """Return how many of them are free and could be allocated, each by itself: also not for want of a counter."""
        ledger, nothing = self._ledger, Charge()
        return sum(
            ledger.is_free(device) and ledger.has_counters(device, nothing)
            for device in self._devices
            if not driver or device.id.driver == driver
        )

    def total(self, name: str) -> Fraction:
        """Return how much there is of a counter, a consumable capacity or a resource of nodes (``"cpu"``) here."""
        return Fraction(sum(total for total, _ in self._amounts(name)), NANOS)

    def free(self, name: str) -> Fraction:
        """Return how much of it is left. Bytes for memory, cores for CPU; 0 for what the node does not have."""
        return Fraction(sum(free for _, free in self._amounts(name)), NANOS)

    def _amounts(self, name: str) -> Iterator[tuple[int, int]]:
        """All there is of something, and what is left of it, by counter and device."""
        problem, ledger = self._problem, self._ledger
        drawn = {
            problem.counters[counter]
            for device in self._devices
            for counter, _ in device.consumes
        }
        # Sets of the same pool may be for other nodes.
        sets = {(counter.group, counter.id[:-1]) for counter in drawn}
        for group in {counter.group for counter in drawn}:
            for index in problem.counters_of.get(group, ()):
                counter = problem.counters[index]
                is_here = (group, counter.id[:-1]) in sets
                if is_here and counter.id.counter == name:
                    yield counter.total, ledger.free[index]
        for device_index in self._within_reach:
            device = problem.devices[device_index]
            published = (
                node_resource(name) if device.id.driver == NODE_DRIVER else name
            )
            capacity = device.capacity.get(published)
            if (
                device.shareable
                and capacity is not None
                and capacity.consumable
            ):
                yield capacity.total, ledger.capacity_left(device, published)


@runtime_checkable
class Policy(Protocol):
    """Chooses a node for a pod: any function of a pod and of the nodes that can hold it.

    `dralloc.allocate`, `dralloc.compare` and `dralloc.study` take one as a mode. A policy that is also to say in which
    order pods come is an `OrderedPolicy`. Members of a gang are asked about one after the other, and again where a
    topology leaves several domains to try; if too few of them are placed, none is.

    Examples
    --------
    >>> import dralloc
    >>> def emptiest(pod, nodes):
    ...     return max(nodes, key=lambda node: node.free_devices())
    >>> dralloc.allocate(dralloc.example(), mode=emptiest)
    <Plan: emptiest: 1 of 2 placed, nothing proven>
    """

    def __call__(
        self, pod: WaitingPod, nodes: Sequence[OfferedNode], /
    ) -> OfferedNode | None:
        """Choose a node.

        Parameters
        ----------
        pod
            What is to be placed now.
        nodes
            The nodes that can hold it now, in the order in which first fit takes them; at least one.

        Returns
        -------
        OfferedNode or None
            One of them; None leaves the pod unplaced.
        """


@runtime_checkable
class OrderedPolicy(Policy, Protocol):
    """A policy that takes pods in an order of its own: a class with `order` beside ``__call__``.

    Examples
    --------
    >>> import dralloc
    >>> class LargestFirst:
    ...     def order(self, pods):
    ...         return sorted(pods, key=lambda pod: (-pod.priority, -pod.devices))
    ...
    ...     def __call__(self, pod, nodes):
    ...         return nodes[0]
    >>> dralloc.allocate(dralloc.example(), mode=LargestFirst())
    <Plan: LargestFirst: 1 of 2 placed, nothing proven>
    """

    def order(self, pods: Sequence[WaitingPod], /) -> Iterable[WaitingPod]:
        """Return all pods in the order in which they are to be placed. A gang stands where its first member does."""


def policy_name(policy: str | Policy) -> str:
    """Return what a policy is called in answers: its ``name``, or that of the function or the class."""
    if isinstance(policy, str):
        return policy
    own_name = getattr(policy, "name", None) or getattr(
        policy, "__name__", None
    )
    if isinstance(own_name, str):
        return own_name
    return type(policy).__name__


# ----------------------------------------------------------------------------
# A run that asks a policy of the user which node a demand gets.

_KnownOffers = dict[tuple[ClaimClass, int], tuple[int, GrantsOfClaims | None]]
"""What claims of a class get on a node, with the number of the change of the node after which that was found."""


class AskingRun(PlainRun):
    """A pass over the demands that searches each node as first fit does, and offers those that can hold the demand.

    What was found on a node stays true until something changes there, so that equal demands are searched for once.
    """

    def __init__(self, problem: Problem, policy: Policy) -> None:
        super().__init__(problem)
        self._policy = policy
        self._index = CandidateIndex(self._problem)
        self._claim_classes = ClaimClasses(self._problem)
        self._known: _KnownOffers = {}
        self._changes: dict[int, int] = defaultdict(int)
        self._sharing: dict[int, list[NodeIndex]] = defaultdict(list)
        for node_index, node in numbered(problem.nodes):
            for group in {
                problem.devices[device].group for device in node.devices()
            }:
                self._sharing[group].append(node_index)
        self._pods: dict[int, list[ClaimKey]] = defaultdict(list)

    def place(self, demand_index: DemandIndex) -> None:
        """Place a demand on the node that the policy chooses, or note why it has none."""
        demand = self._demand(demand_index)
        claims = self._open_claims(demand)
        offers: list[OfferedNode] = []
        try:
            for node in self._nodes(demand):
                grants = self._offer(demand_index, claims, node)
                if grants is not None:
                    offers.append(self._offered(node, grants))
        except FatalError as error:
            self.errors[demand_index] = error
            return
        if not offers:
            return
        chosen = self._choice(demand_index, offers)
        if chosen is None:
            name = policy_name(self._policy)
            self.errors[demand_index] = NodeError(
                f"{name} takes no node, of {len(offers)} that could hold it"
            )
            return
        # The search for the offer left nothing behind, so it is repeated.
        granted = self._checked(claims, self._attempt(claims, chosen))
        assert granted is not None, (
            "what fitted before nothing changed fits again"
        )
        self._settle(demand_index, chosen, claims, granted)

    def _choice(
        self, demand: DemandIndex, offers: Sequence[OfferedNode]
    ) -> NodeIndex | None:
        """The node that the policy chooses; None if it wants none of them."""
        pod = WaitingPod.of(demand, self._problem.demands[demand])
        chosen = self._policy(pod, offers)
        if chosen is None:
            return None
        if not any(chosen is offer for offer in offers):
            name = policy_name(self._policy)
            raise DrallocError(
                f"policy {name}: {chosen!r} is none of the nodes that were offered for {pod.key}"
            )
        return chosen.number

    def _offered(self, node: NodeIndex, grants: GrantsOfClaims) -> OfferedNode:
        devices: list[DeviceID] = []
        for claim_grants in grants:
            for grant in claim_grants:
                device = self._problem.devices[grant.device].id
                # The device that stands for the node is none to users.
                if device.driver != NODE_DRIVER:
                    devices.append(device)
        return OfferedNode(
            node, self._ledger, tuple(devices), tuple(self._pods[node])
        )

    def _offer(
        self, demand: int, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        """Return the grants that the claims would get on a node; nothing is taken."""
        claim_class = (
            None if self._has_footprints else self._claim_classes.of(claims)
        )
        if claim_class is not None:
            change, known_grants = self._known.get(
                (claim_class, node), (-1, None)
            )
            if change == self._changes[node]:
                return known_grants
        try:
            grants = self._checked(claims, self._attempt(claims, node))
        except NodeError as error:
            self.errors[demand] = error
            return None
        self._ledger.revert()
        if claim_class is not None:
            self._known[claim_class, node] = self._changes[node], grants
        return grants

    def _attempt(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        candidates = self._index.on(claims, node)
        search = PrunedSearch(
            self._problem, self._ledger, claims, candidates, DEAD_ENDS
        )
        return self._run(search)

    def _settle(
        self,
        demand_index: DemandIndex,
        node: NodeIndex,
        claims: Sequence[Claim],
        grants: GrantsOfClaims,
    ) -> None:
        super()._settle(demand_index, node, claims, grants)
        self._pods[node].append(self._problem.demands[demand_index].key)
        self._changed(self.placements[-1])

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        self._pods[placement.node].remove(
            self._problem.demands[placement.demand].key
        )
        self._changed(placement)

    def _changed(self, placement: Placement) -> None:
        """Note that every node that sees what the placement took has changed."""
        problem = self._problem
        slots: set[SlotIndex] = set()
        for grants in placement.grants:
            slots.update(problem.devices[grant.device].slot for grant in grants)
        nodes = {placement.node}
        for slot in slots:
            # Other generations of a pool show the same device.
            for version in problem.versions[slot]:
                nodes.update(self._sharing[problem.devices[version].group])
        for node in nodes:
            self._changes[node] += 1


def order_of(problem: Problem, policy: Policy) -> Sequence[DemandIndex]:
    """Return the demands in the order of a policy; without an order of its own, by priority and age.

    Raises
    ------
    DrallocError
        The policy leaves out pods, names one twice, or answers with something else than pods.
    """
    demands = indices(problem.demands)
    if not isinstance(policy, OrderedPolicy):
        return demands
    pods = [
        WaitingPod.of(demand_index, demand)
        for demand_index, demand in numbered(problem.demands)
    ]
    name = policy_name(policy)
    answer: object = policy.order(pods)
    if not isinstance(answer, Iterable):
        raise DrallocError(
            f"policy {name}: order: must be the pods in some order, not {answer!r}"
        )
    ordered: list[DemandIndex] = []
    for pod in answer:
        if not isinstance(pod, WaitingPod):
            raise DrallocError(
                f"policy {name}: order: {pod!r} is none of the pods that are to be placed"
            )
        ordered.append(pod.number)
    if sorted(ordered) != list(demands):
        raise DrallocError(
            f"policy {name}: order: each of the {len(pods)} pods has to be there once"
        )
    return ordered
