"""The request side of a problem: demands with their claims, requests and alternatives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple

from networkx.utils import UnionFind

from dralloc.objects.names import ClaimKey, RequestName
from dralloc.objects.quantity import Quantity
from dralloc.problem.indices import (
    AlternativeIndex,
    CounterIndex,
    DemandIndex,
    NodeIndex,
    grouped,
)
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.supply import Scalar, record

__all__ = [
    "MAX_RESULTS",
    "Alternative",
    "Charge",
    "Claim",
    "Constraint",
    "ConstraintKind",
    "Demand",
    "ParentGroup",
    "Request",
    "Scope",
    "are_admitted",
    "demands_kept_together",
    "quorum_of",
]

MAX_RESULTS: Final = 32
"""Most devices that one claim can get (``AllocationResultsMaxSize`` of resource.k8s.io)."""


@record
class Alternative:
    """An alternative of a request: one ``exactly`` or one entry of ``firstAvailable`` (KEP-4816).

    Parameters
    ----------
    index
        Its place among all alternatives of the problem: the key of `dralloc.problem.Eligibility`.
    name
        ``request`` or ``request/sub``.
    rank
        0 for ``exactly`` and for the first entry of ``firstAvailable``, then 1, 2, ...
    count
        How many devices; None for allocation mode ``All``.
    admin
        Whether it asks for admin access.
    defect
        Why it can never be allocated (unknown class, feature off, ...): upstream's fatal error; empty if there is none.
    """

    index: AlternativeIndex
    name: RequestName
    rank: int
    count: int | None
    admin: bool = False
    defect: str = ""


@record
class Request:
    """A request of a claim: exactly one of its alternatives is to be served."""

    name: str
    alternatives: tuple[Alternative, ...]


class ConstraintKind(Enum):
    """The relation that a constraint demands of the attribute's values on the devices that it covers."""

    MATCH = "matchAttribute"
    DISTINCT = "distinctAttribute"


class Scope(NamedTuple):
    """The span of a constraint beyond its claim: all claims of demands in which it has the same scope.

    Parameters
    ----------
    number
        Which of the constraints of its pod, or of its group of pods.
    group
        The group; empty for the claims of one demand.
    held
        What the devices carry that others of these claims have got already: one set of values for each; for
        `matchAttribute` what they have in common.
    """

    number: int
    group: str = ""
    held: tuple[frozenset[Scalar], ...] = ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint over the devices of one claim, or of several.

    Parameters
    ----------
    requests
        The names of the requests and subrequests that it covers; empty covers all.
    derived
        By request or subrequest, the attribute that is compared for it in place of ``attribute``: one that it derives
        itself (KEP-6080).
    scope
        The claims beside its own that it spans; None if it is about this claim alone.
    """

    kind: ConstraintKind
    attribute: str
    requests: frozenset[str] = frozenset()
    derived: tuple[tuple[RequestName, str], ...] = ()
    scope: Scope | None = None

    def covers(self, name: RequestName) -> bool:
        """Whether devices for that request (or subrequest) are subject to the constraint (KEP-4816)."""
        return (
            not self.requests
            or name.request in self.requests
            or str(name) in self.requests
        )

    def compared(self, name: RequestName) -> str:
        """The name of the attribute that counts on devices for that request (or subrequest)."""
        return (
            dict(self.derived).get(name, self.attribute)
            if self.derived
            else self.attribute
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that count."""
        return tuple(
            dict.fromkeys(
                (self.attribute, *(attribute for _, attribute in self.derived))
            )
        )


@record
class Claim:
    """A claim without allocation.

    Parameters
    ----------
    defect
        A fatal error of the claim as a whole, found after its requests.
    is_synthetic
        Whether it stands for what a pod takes of its node beside devices (see `dralloc.problem.node_claims`).
    """

    key: ClaimKey
    uid: str
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    defect: str = ""
    is_synthetic: bool = False

    def alternatives(self) -> Iterator[Alternative]:
        """Every alternative, in order."""
        for request in self.requests:
            yield from request.alternatives

    @property
    def is_defective(self) -> bool:
        """Whether it can never be allocated, because of itself or of one of its alternatives."""
        for request in self.requests:
            for alternative in request.alternatives:
                if alternative.defect:
                    return True
        return bool(self.defect)


@dataclass(frozen=True, slots=True, eq=False)
class ParentGroup:
    """A group of groups: a tree whose leaves are gangs (KEP-6012).

    A gang is admitted if as many of its demands are placed as it needs. A group of groups is admitted if enough of its
    children are, and only then may anything below it be placed. So all groups above an admitted gang are admitted, too.

    Parameters
    ----------
    quorum
        How many more of its children must be admitted for any to be.
    settled
        Names of the children that do not count for it, as pods that run are enough for them.
    parent
        The group that it is a child of itself.
    rule
        What its demands carry, if all of them are to be in one domain.
    """

    name: str
    quorum: int
    settled: frozenset[str] = frozenset()
    parent: ParentGroup | None = None
    rule: OneDomain | None = None

    def upwards(self) -> Iterator[ParentGroup]:
        """The group and all above it, up to the root."""
        group: ParentGroup | None = self
        while group is not None:
            yield group
            group = group.parent

    @property
    def root(self) -> ParentGroup:
        """The uppermost group."""
        *_, root = self.upwards()
        return root


@record
class Demand:
    """Claims that must be allocated together on one node: those of a pod, or one that no pod uses.

    Parameters
    ----------
    key
        The pod, or the claim if no pod uses it.
    claims
        The claims to allocate, in order. A claim that several pods use is in the demand of each of them: who is placed
        first allocates it, the others have to go where its devices can be reached.
    priority
        The pod's priority; 0 for a claim without pod.
    weight
        What placing it is worth beside other demands: an integer; 0 if nothing is lost without it (what-if questions).
    nodes
        Indices of the nodes it may go to, in search order; None for all.
    gang
        Name of the gang; empty for none. So many of its demands as the quorum says are placed, or none of them.
    quorum
        How many of the gang's demands must be placed for any to be (KEP-4671, less what runs already); None for all.
    roles
        What it is to rules between pods.
    parent
        The group that its gang is part of.
    """

    key: ClaimKey
    claims: tuple[Claim, ...]
    priority: int = 0
    weight: int = 1
    nodes: tuple[NodeIndex, ...] | None = None
    gang: str = ""
    quorum: int | None = None
    roles: tuple[Role, ...] = ()
    parent: ParentGroup | None = None

    def alternatives(self) -> Iterator[Alternative]:
        """Every alternative of every claim, in order."""
        for claim in self.claims:
            yield from claim.alternatives()

    @property
    def asks_for_all(self) -> bool:
        """Whether an alternative is for all devices of a node (``allocationMode: All``)."""
        return any(
            alternative.count is None for alternative in self.alternatives()
        )

    @property
    def asked_devices(self) -> int:
        """The devices that it takes at least: of each request the alternative with the fewest, one of ``All``.

        Admin access takes none (KEP-5018).
        """
        device_count = 0
        for claim in self.claims:
            for request in claim.requests:
                device_count += min(map(_fewest_devices, request.alternatives))
        return device_count

    @property
    def group_scopes(self) -> frozenset[Scope]:
        """The scopes of its constraints that can span claims of other demands."""
        constraints = (
            constraint
            for claim in self.claims
            for constraint in claim.constraints
        )
        scopes = (constraint.scope for constraint in constraints)
        return frozenset(scope for scope in scopes if scope and scope.group)

    def by_itself(self, **changes: Any) -> Demand:
        """The demand without its gang and the groups above it."""
        return replace(self, gang="", parent=None, **changes)

    @property
    def running(self) -> Demand:
        """The demand as of a pod that runs: it was there before all others, and asks for no company any more."""
        return replace(self, roles=tuple(role.running for role in self.roles))

    @property
    def placed_with(self) -> Hashable:
        """The key that demands have in common which are placed together or not at all; empty if it is alone."""
        return self.parent.root if self.parent else self.gang

    @property
    def is_defective(self) -> bool:
        """Whether it can never be placed: a defect anywhere is fatal for all of it."""
        return any(claim.is_defective for claim in self.claims)


def _fewest_devices(alternative: Alternative) -> int:
    """The devices that an alternative takes at least."""
    if alternative.admin:
        return 0
    # Allocation mode ``All`` has no count. It is refused where there is no device, so it takes one at least.
    return alternative.count or 1


def demands_kept_together(
    demands: Iterable[tuple[DemandIndex, Demand]],
) -> list[list[DemandIndex]]:
    """Return the demands of each gang or tree of gangs, and those with claims in common, together."""
    forest: UnionFind[Hashable] = UnionFind()
    known: list[DemandIndex] = []
    for index, demand in demands:
        claims = [("claim", claim.key) for claim in demand.claims]
        gang = [("gang", demand.placed_with)] if demand.placed_with else []
        forest.union(("demand", index), *claims, *gang)
        known.append(index)
    blocks = grouped((forest["demand", index], index) for index in known)
    return list(blocks.values())


def quorum_of(members: Sequence[Demand]) -> int:
    """Return the smallest number of a gang's demands to place together, given all of them; 1 without gang."""
    first = members[0]
    return (
        len(members) if first.quorum is None or not first.gang else first.quorum
    )


def are_admitted(
    members: Sequence[Demand], placed: Collection[ClaimKey]
) -> bool:
    """Whether enough of all demands of a gang, or of a tree of gangs (KEP-6012), are placed for any of them to be."""
    # By group of groups, whether each of its children is admitted; under None, the roots.
    children: dict[ParentGroup | None, dict[str, bool]] = defaultdict(dict)
    gangs = grouped((demand.gang, demand) for demand in members)
    for gang, demands in gangs.items():
        placed_count = sum(demand.key in placed for demand in demands)
        admitted_gang = placed_count >= max(1, quorum_of(demands))
        children[demands[0].parent][gang] = admitted_gang
    groups: set[ParentGroup] = set()
    for demand in members:
        if demand.parent:
            groups.update(demand.parent.upwards())
    # The deepest groups first: whether a group is admitted depends on its children.
    for group in sorted(groups, key=lambda group: -len(list(group.upwards()))):
        admitted = {name for name, enough in children[group].items() if enough}
        enough = (
            bool(admitted) and len(admitted - group.settled) >= group.quorum
        )
        children[group.parent][group.name] = enough
    return any(children[None].values())


@dataclass(frozen=True, slots=True)
class Charge:
    """The amounts that one allocation of a device takes, beside the device's own consumption of counters.

    Parameters
    ----------
    capacity
        Amount in nanos per capacity of a shareable device (KEP-5075); empty on a dedicated device.
    counters
        Counters charged by request, with amounts in nanos (KEP-5941).
    recorded
        The amounts as ``consumedCapacity`` of the result, from which usage can be rebuilt.
    """

    capacity: tuple[tuple[str, int], ...] = ()
    counters: tuple[tuple[CounterIndex, int], ...] = ()
    recorded: tuple[tuple[str, Quantity], ...] = ()
