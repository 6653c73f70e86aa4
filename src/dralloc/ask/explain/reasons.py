"""The vocabulary of explanations: how things are named, why a demand does not fit, and what could be different."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum, StrEnum
from typing import Final

from dralloc.ask.context.offers import Offers, Variation
from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.inventory.compatibility_groups import set_name
from dralloc.objects.api import (
    CapacityRequestPolicy,
    DeviceTaint,
    DeviceToleration,
)
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity
from dralloc.objects.report import amount, counted, listed
from dralloc.objects.user_rules import BudgetKey
from dralloc.problem import (
    NO_GROUPS,
    Alternative,
    Claim,
    Constraint,
    Demand,
    DeviceIndex,
    PoolAccess,
    PoolState,
    Request,
    Scalar,
    numbered,
)
from dralloc.problem.ledger import Scarcity
from dralloc.problem.named_limits import Limit

__all__ = [
    "ADVICE",
    "Change",
    "Code",
    "Cost",
    "FilterReason",
    "NodeGroup",
    "NodeReason",
    "Place",
    "Suggestion",
    "Wording",
    "constraint_places",
    "constraint_text",
    "devices_text",
    "grouped",
    "groups_text",
    "request_text",
    "taint_text",
    "toleration_text",
]

# ----------------------------------------------------------------------------
# How things are named in explanations: holders, taints, amounts and their policies,
# pools.

_NAMED = 3


def taint_text(taint: DeviceTaint) -> str:
    """A taint as ``kubectl`` writes it."""
    return (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
    )


def toleration_text(toleration: DeviceToleration) -> str:
    """A toleration as the taints that it is for."""
    value = "" if toleration.operator == "Exists" else f"={toleration.value}"
    effect = f":{toleration.effect}" if toleration.effect else ""
    return (
        f"{toleration.key}{value}{effect}"
        if toleration.key
        else f"every taint{effect}"
    )


def devices_text(count: int | None) -> str:
    """So many devices, all of them if it is None."""
    return "all devices" if count is None else counted(count, "device")


def request_text(claim: Claim, request: Alternative | Request) -> str:
    """A request of a claim, or an alternative of one."""
    return f"claim {claim.key}, request {request.name}"


def groups_text(groups: frozenset[str]) -> str:
    """The groups that a device declares, as a property."""
    named = sorted(groups - {NO_GROUPS})
    return f"in group {', '.join(named)}" if named else "in no group"


def constraint_text(constraint: Constraint, constraint_index: int) -> str:
    """A constraint of a claim, or one over several of them, with what devices carry that count already."""
    rule = f"{constraint.kind.value} {constraint.attribute}"
    if constraint.scope is None:
        return f"constraint #{constraint_index} {rule}"
    held = "; ".join(map(_values_text, constraint.scope.held))
    over = (
        f"all pods of {constraint.scope.group}"
        if constraint.scope.group
        else "the pod"
    )
    return f"constraint over the claims of {over}: {rule}{f', with devices that have {held}' if held else ''}"


def _values_text(values: frozenset[Scalar]) -> str:
    return ", ".join(sorted(str(value) for _, value in values))


class Wording:
    """Names things.

    Parameters
    ----------
    placed
        The claims that have been placed in the same batch.
    compiled
        The objects behind the problem, if there are any.
    """

    def __init__(
        self,
        placed: Mapping[ClaimKey, int],
        compiled: CompiledCluster | None = None,
    ) -> None:
        self._placed = placed
        self._compiled = compiled

    def holders(
        self, held: Mapping[ClaimKey, int], *, amounts: bool = True
    ) -> str:
        """Return the holders of a resource, the largest first."""
        if not held:
            return (
                "held by nobody known"
                if self._compiled is None
                else "held by nobody"
            )
        order = sorted(held, key=lambda key: -held[key])
        named = [
            self.holder(key) + (f" {amount(held[key])}" if amounts else "")
            for key in order
        ]
        return f"held by {listed(named, _NAMED)}"

    def holder(self, key: ClaimKey) -> str:
        """A claim that holds something."""
        return (
            f"{key} (placed in this batch)" if key in self._placed else str(key)
        )

    def users(self, groups: Mapping[ClaimKey, frozenset[str]]) -> str:
        """Return the users of a resource, by group."""
        named = [
            f"by {self.holder(key)} {groups_text(theirs)}"
            for key, theirs in list(groups.items())[:_NAMED]
        ]
        further = (
            [f"{len(groups) - _NAMED} more"] if len(groups) > _NAMED else []
        )
        return ", ".join((*named, *further)) or "by somebody"

    def counter_set(self, device: DeviceIndex, counter_set: int) -> str:
        """A numbered counter set, by the name that a device has for it."""
        if self._compiled is None:
            return "its counter set"
        devices, sources = (
            self._compiled.problem.devices,
            self._compiled.inventory.sources,
        )
        pool = (
            sources[neighbour_index].device
            for neighbour_index, neighbour in numbered(devices)
            if neighbour.group == devices[device].group
        )
        return f"counter set {set_name(counter_set, devices[device], sources[device].device, pool)}"

    def pool(self, pool: PoolAccess) -> str:
        """Return the fault of a pool, in words."""
        if pool.state is PoolState.INVALID:
            return f"pool {pool.id} is invalid: {pool.reason}"
        return f"pool {pool.id} is incomplete{self._slices(pool)}"

    def _slices(self, pool: PoolAccess) -> str:
        if self._compiled is None:
            return ""
        views = [
            slice_.spec.pool
            for slice_ in self._compiled.cluster.slices
            if slice_.pool_id == pool.id
        ]
        newest = max((view.generation for view in views), default=0)
        counts = [
            view.resource_slice_count
            for view in views
            if view.generation == newest
        ]
        if not counts:
            return ""
        return f": {len(counts)} of {counts[0]} slices of generation {newest}"

    def taken(
        self,
        device: DeviceIndex,
        name: str,
        requested: Quantity | None,
        nanos: int,
    ) -> str:
        """An amount that is taken of a capacity, and how it came about."""
        if requested is not None and requested.nanos == nanos:
            return amount(nanos)
        policy = self._policy(device, name)
        if requested is None:
            has_default = policy is not None and policy.default is not None
            why = (
                "the policy's default"
                if has_default
                else "all of it, as no amount is asked"
            )
            return f"{amount(nanos)} ({why})"
        return f"{amount(nanos)} ({requested} asked, rounded up by {_policy_text(policy)})"

    def _policy(
        self, device: DeviceIndex, name: str
    ) -> CapacityRequestPolicy | None:
        if self._compiled is None:
            return None
        entry = self._compiled.inventory.sources[device].device.capacity.get(
            name
        )
        return None if entry is None else entry.request_policy


def _policy_text(policy: CapacityRequestPolicy | None) -> str:
    if policy is None:
        return "the request policy"
    if policy.valid_range is not None:
        bounds = {
            "min": policy.valid_range.min,
            "max": policy.valid_range.max,
            "step": policy.valid_range.step,
        }
        return "validRange " + ", ".join(
            f"{name} {value}"
            for name, value in bounds.items()
            if value is not None
        )
    return "validValues " + ", ".join(map(str, policy.valid_values))


# ----------------------------------------------------------------------------
# Why a demand does not fit on a node: what can be said, node by node and over groups
# of nodes.


class Code(StrEnum):
    """Kinds of causes, in the order in which they are looked for."""

    NODE = "node not allowed"
    FULL = "node barred by pods"
    ERROR = "error"
    NO_CLASS = "class missing"
    POOL_INVALID = "pool invalid"
    POOL_INCOMPLETE = "pool incomplete"
    NO_DEVICE = "no device"
    CLASS = "class"
    CEL = "selector error"
    SELECTOR = "selector"
    FEATURE = "feature off"
    AMOUNT = "amount not offered"
    IN_USE = "in use"
    TAINT = "taint"
    COUNTER = "counter short"
    GROUPS = Scarcity.GROUPS.value
    CAPACITY = "capacity short"
    CONSTRAINT = "constraint"
    TOO_MANY = "too many results"
    TOGETHER = "together"


ADVICE: Final[Mapping[Code, str]] = {
    Code.FULL: "lower the requests or relax the affinity of the pod, free what others hold, or add a node",
    Code.NODE: "change the node selection or the tolerations of the pod, or make the node schedulable",
    Code.ERROR: "correct what the message names",
    Code.NO_CLASS: "create the DeviceClass, or name one that exists",
    Code.CEL: "guard the attribute in the selector, with has() or .?",
    Code.POOL_INVALID: "correct the slices that the driver publishes for the pool",
    Code.POOL_INCOMPLETE: "wait until the driver has published the whole pool",
    Code.NO_DEVICE: "ask for fewer devices, or add nodes with more of them",
    Code.CLASS: "choose another class, or add nodes with devices of this one",
    Code.SELECTOR: "widen the selector, or add nodes with devices that match it",
    Code.FEATURE: "turn the feature gate on",
    Code.AMOUNT: "ask for an amount that the devices offer",
    Code.IN_USE: "release who holds the devices, or add nodes",
    Code.TAINT: "tolerate the taint, or remove it from the devices",
    Code.COUNTER: "ask for a smaller partition, or release who holds the counter",
    Code.GROUPS: "ask for a device of the group in use, or release who uses the counter set",
    Code.CAPACITY: "ask for less, or release who holds the capacity",
    Code.CONSTRAINT: "drop the constraint, or add nodes whose devices meet it",
    Code.TOO_MANY: "divide the devices among several claims",
    Code.TOGETHER: "ask for fewer devices, or release who holds them",
}
"""For every kind of cause one thing to do; what would be enough is found out by trying (see `suggestions`)."""


@dataclass(frozen=True, slots=True)
class FilterReason:
    """The rules that exclude devices for one request, or for the pod or claim as a whole.

    Parameters
    ----------
    text
        The rule, in words that are the same for every node it applies to.
    excluded
        All exclusions in the filter trace of the request with the number of devices, this one included.
    """

    code: Code
    text: str
    subject: str = ""
    """Claim and request that it is about; empty for the whole."""
    devices: int = 0
    """How many devices of the node it excludes."""
    excluded: tuple[tuple[str, int], ...] = ()
    details: tuple[str, ...] = ()
    """What is particular to the node: amounts, what is free, who holds it."""

    @property
    def fatal(self) -> bool:
        """Whether it ends the attempt for every node."""
        return self.code in (Code.ERROR, Code.NO_CLASS, Code.CEL)

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


@dataclass(frozen=True, slots=True)
class NodeReason:
    """The result for one node: the demand fits, or the causes why not (one for each alternative that was tried)."""

    node: str
    causes: tuple[FilterReason, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the demand fits on the node."""
        return not self.causes


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are ruled out by the same causes. ``causes`` sums up the devices, with the first node's details."""

    nodes: tuple[str, ...]
    causes: tuple[FilterReason, ...]


def grouped(reasons: Iterable[NodeReason]) -> tuple[NodeGroup, ...]:
    """The nodes that do not fit, by cause, most nodes first."""
    groups: dict[tuple[tuple[Code, str], ...], list[NodeReason]] = defaultdict(
        list
    )
    for reason in reasons:
        if not reason.fits:
            groups[
                tuple((cause.code, str(cause)) for cause in reason.causes)
            ].append(reason)
    node_groups = []
    for members in groups.values():
        nodes = tuple(reason.node for reason in members)
        node_groups.append(NodeGroup(nodes, _summed(members)))
    return tuple(sorted(node_groups, key=lambda group: -len(group.nodes)))


def _summed(members: list[NodeReason]) -> tuple[FilterReason, ...]:
    """The causes of nodes that are ruled out by the same, with the devices of all of them."""
    summed = []
    for causes in zip(*(member.causes for member in members), strict=True):
        devices = sum(cause.devices for cause in causes)
        summed.append(
            replace(causes[0], devices=devices, excluded=_tally(causes))
        )
    return tuple(summed)


def _tally(causes: Iterable[FilterReason]) -> tuple[tuple[str, int], ...]:
    counts = Counter[str]()
    for cause in causes:
        counts.update(dict(cause.excluded))
    return tuple(counts.items())


# ----------------------------------------------------------------------------
# What could be different: what is asked, who holds what, which nodes are allowed; and
# how such changes rank.

Place = tuple[int, int, int]
"""An alternative of a demand: index of the claim, of the request in it, of the alternative in that."""


@dataclass(frozen=True)
class Change:
    """A change of a demand and of what stands in its way.

    Parameters
    ----------
    claims, requests, constraints
        What is left out, by index: claims, requests of claims, constraints of claims.
    variations, counts
        Alternatives that ask for something else, or for fewer devices.
    limits
        Limits that do not count.
    released
        Claims that give back what they hold.
    rules
        Rules about nodes that do not count.
    caps
        Caps that do not count.
    raised
        What caps allow in place of what they did, in nanos.
    """

    claims: frozenset[int] = frozenset()
    requests: frozenset[tuple[int, int]] = frozenset()
    constraints: frozenset[tuple[int, int]] = frozenset()
    variations: Mapping[Place, Variation] = field(default_factory=dict)
    counts: Mapping[Place, int] = field(default_factory=dict)
    limits: frozenset[Limit] = frozenset()
    released: frozenset[ClaimKey] = frozenset()
    rules: frozenset[str] = frozenset()
    caps: frozenset[BudgetKey] = frozenset()
    raised: Mapping[BudgetKey, int] = field(default_factory=dict)

    def of(self, demand: Demand, offers: Offers) -> Demand:
        """The changed demand, free to go to any node and without its gang."""
        claims = tuple(
            self._claim(claim_index, claim, offers)
            for claim_index, claim in enumerate(demand.claims)
            if claim_index not in self.claims
        )
        return demand.by_itself(claims=claims, nodes=None)

    def _claim(self, claim_index: int, claim: Claim, offers: Offers) -> Claim:
        return replace(
            claim,
            requests=tuple(
                self._request((claim_index, request_index), request, offers)
                for request_index, request in enumerate(claim.requests)
                if (claim_index, request_index) not in self.requests
            ),
            constraints=tuple(
                constraint
                for constraint_index, constraint in enumerate(claim.constraints)
                if (claim_index, constraint_index) not in self.constraints
            ),
        )

    def _request(
        self, position: tuple[int, int], request: Request, offers: Offers
    ) -> Request:
        return replace(
            request,
            alternatives=tuple(
                self._alternative((*position, choice), alternative, offers)
                for choice, alternative in enumerate(request.alternatives)
            ),
        )

    def _alternative(
        self, position: Place, alternative: Alternative, offers: Offers
    ) -> Alternative:
        index = offers.vary(
            alternative.index, self.variations.get(position, Variation())
        )
        return replace(
            alternative,
            index=index,
            count=self.counts.get(position, alternative.count),
        )

    def __or__(self, change: Change) -> Change:
        """Both changes together; variations of one alternative are put together."""
        joined = {
            part.name: getattr(self, part.name) | getattr(change, part.name)
            for part in fields(self)
        }
        in_both = self.variations.keys() & change.variations.keys()
        varied = {
            position: self.variations[position] | change.variations[position]
            for position in in_both
        }
        return replace(
            self, **{**joined, "variations": joined["variations"] | varied}
        )


class Cost(IntEnum):
    """How changes are ranked: what the claim's author can do comes before what others have to give up or buy."""

    TOLERATE = 1
    CONSTRAINT = 2
    SELECTOR = 3
    LESS = 4
    OTHER = 5
    NODES = 6
    CAP = 7
    MOVE = 8
    RELEASE = 9
    NODE = 11


@dataclass(frozen=True)
class Suggestion:
    """A change that admits the demand.

    Parameters
    ----------
    text
        What to change.
    outcome
        What then happens, as it was found by trying.
    cost
        Its kind.
    amount
        How much of it, to rank changes of one kind.
    change
        What was tried.
    """

    text: str
    outcome: str
    cost: Cost
    amount: int = 0
    change: Change = field(default_factory=Change, repr=False, compare=False)


def constraint_places(claims: Sequence[Claim]) -> list[list[tuple[int, int]]]:
    """Each constraint by claim and place there; one over several claims is in several places."""
    places_of: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for claim_index, claim in enumerate(claims):
        for index, constraint in enumerate(claim.constraints):
            places_of[constraint.scope or (claim_index, index)].append(
                (claim_index, index)
            )
    return list(places_of.values())
