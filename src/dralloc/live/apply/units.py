"""The plan of writes: which claims get which allocation, and which pods are released after that.

A `WriteUnit` is written as a whole or not: a pod with its claims; pods of a gang, or with a common claim, together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import networkx as nx

from dralloc.live.snapshot import Json
from dralloc.objects.api import AllocationResult
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey, PoolID
from dralloc.show.placed import Placed
from dralloc.show.plan import Plan

__all__ = [
    "AdoptedClaim",
    "Aside",
    "WriteUnit",
    "WrittenClaim",
    "WrittenDemand",
    "allocation_to_wire",
    "same_allocation",
    "sole_node",
    "units_of",
]


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """A claim, by its UID, and the ``status.allocation`` that it gets, in wire form."""

    key: ClaimKey
    uid: str
    allocation: Json

    @property
    def pools(self) -> frozenset[PoolID]:
        """The pools whose devices it gets."""
        return frozenset(
            PoolID(result["driver"], result["pool"])
            for result in self.allocation["devices"].get("results", ())
        )


@dataclass(frozen=True, slots=True)
class AdoptedClaim:
    """A claim that a run adopted for a pod that it was to release.

    Parameters
    ----------
    earlier
        The run whose name it had; empty in journals that do not say.
    """

    key: ClaimKey
    uid: str
    earlier: str


@dataclass(frozen=True, slots=True)
class WrittenDemand:
    """A pod, or a claim that no pod uses, on its node.

    Parameters
    ----------
    node
        Where it is to run; empty if that is left to the scheduler.
    pod
        The pod's UID; empty for a claim.
    late
        Whether the scheduler still has to make a claim for it (extended resources, KEP-5004), which it cannot as long
        as devices are fenced.
    """

    key: ClaimKey
    node: str
    pod: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True)
class WriteUnit:
    """Demands that are written all or none, with their claims."""

    demands: tuple[WrittenDemand, ...]
    claims: tuple[WrittenClaim, ...]

    @property
    def pools(self) -> frozenset[PoolID]:
        """The pools whose devices its claims get."""
        return frozenset[PoolID]().union(
            *(claim.pools for claim in self.claims)
        )

    @property
    def keys(self) -> frozenset[ClaimKey]:
        """Its pods and claims."""
        return self.demand_keys.union(claim.key for claim in self.claims)

    @property
    def demand_keys(self) -> frozenset[ClaimKey]:
        """Its pods, or the claim that no pod uses."""
        return frozenset(demand.key for demand in self.demands)

    @property
    def pod_uids(self) -> frozenset[str]:
        """The UIDs of its pods."""
        return frozenset(demand.pod for demand in self.demands if demand.pod)

    @property
    def is_late(self) -> bool:
        """Whether the scheduler allocates something of it by itself, when nothing is fenced any more."""
        return any(demand.late for demand in self.demands)

    def to_dict(self) -> Json:
        """Return it as plain data for the journal, from which `of` reads it back."""
        demands = [
            [*demand.key, demand.node, demand.pod, demand.late]
            for demand in self.demands
        ]
        claims = [
            [*claim.key, claim.uid, claim.allocation] for claim in self.claims
        ]
        return {"demands": demands, "claims": claims}

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> WriteUnit:
        """Read a unit back from the journal."""
        return cls(
            tuple(
                WrittenDemand(ClaimKey(*fields[:2]), *fields[2:])
                for fields in entry["demands"]
            ),
            tuple(
                WrittenClaim(ClaimKey(*fields[:2]), *fields[2:])
                for fields in entry["claims"]
            ),
        )


@dataclass(frozen=True, slots=True)
class Aside:
    """A pod or claim that is not written, and why."""

    key: ClaimKey
    reason: str


def allocation_to_wire(allocation: AllocationResult) -> Json:
    """Return an allocation as it is written now.

    The time in it a scheduler would add; it is written at once, as nobody can change it later.
    """
    timestamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**allocation.wire_form(), "allocationTimestamp": timestamp}


def same_allocation(first: Json | None, second: Json | None) -> bool:
    """Return whether two allocations give the same, whenever they were made."""
    if first is None or second is None:
        return first is second
    return _read(first) == _read(second)


def _read(allocation: Json) -> AllocationResult:
    return AllocationResult.model_validate(
        {
            key: value
            for key, value in allocation.items()
            if key != "allocationTimestamp"
        }
    )


def units_of(plan: Plan) -> tuple[list[WriteUnit], list[Aside]]:
    """Return what a plan writes, in its order; and the pods of which not everything is there that is to be written.

    A claim for extended resources is made and allocated by the scheduler (KEP-5004). Its pod is only released.
    """
    units: list[WriteUnit] = []
    asides: list[Aside] = []
    for group in _groups(plan):
        # A unit is written as a whole, so that a claim that is missing holds back all of it.
        waiting = [
            (placed, key)
            for placed in group
            for key in placed.claims
            if _is_missing(plan, key)
        ]
        if waiting:
            reasons = {
                placed.demand: f"claim {key} has not been made of its template yet"
                for placed, key in waiting
            }
            asides += (
                Aside(
                    placed.demand,
                    reasons.get(placed.demand, "belongs to a pod that waits"),
                )
                for placed in group
            )
        else:
            units.append(_unit(plan.compiled.cluster, group))
    return units, asides


def _groups(plan: Plan) -> Iterator[list[Placed]]:
    """Yield the placed demands, those of a gang or with a claim in common together."""
    placed = list(plan.placed)
    # By index, as a pod and a claim that no pod uses may have the same key.
    together: nx.Graph[Hashable] = nx.Graph()
    together.add_nodes_from(range(len(placed)))
    for placement_index, placement in enumerate(plan.solution.placements):
        demand = plan.demands[placement.demand]
        together.add_edges_from(
            (placement_index, ("claim", claim.key)) for claim in demand.claims
        )
        if demand.placed_with:
            together.add_edge(placement_index, ("gang", demand.placed_with))
    for group in nx.connected_components(together):
        # Claims and gangs are nodes of the graph, too, but no demands.
        placement_indices = sorted(
            member for member in group if isinstance(member, int)
        )
        yield [placed[placement_index] for placement_index in placement_indices]


def _is_missing(plan: Plan, key: ClaimKey) -> bool:
    claim = plan.compiled.cluster.claim(key)
    return claim is None or (not claim.metadata.uid and not claim.is_extended)


def _unit(cluster: Cluster, group: Iterable[Placed]) -> WriteUnit:
    claims = {
        key: WrittenClaim(
            key, claim.metadata.uid, allocation_to_wire(allocation)
        )
        for placed in group
        for key, allocation in placed.claims.items()
        if (claim := cluster.claim(key)) is not None and not claim.is_extended
    }
    demands = [
        WrittenDemand(
            key=placed.demand,
            node=placed.node,
            pod=""
            if cluster.is_lone(placed.demand, placed.claims)
            else cluster.pods_by_key[placed.demand].metadata.uid,
            late=not placed.claims.keys() <= claims.keys(),
        )
        for placed in group
    ]
    return WriteUnit(tuple(demands), tuple(claims.values()))


def sole_node(allocation: Json) -> str:
    """Return the only node on which an allocation can be used; empty if there may be several."""
    terms = allocation.get("nodeSelector", {}).get("nodeSelectorTerms", ())
    named = [_named_nodes(term.get("matchFields", ())) for term in terms]
    return (
        next(iter(named[0]))
        if named
        and len(named[0]) == 1
        and all(names == named[0] for names in named)
        else ""
    )


def _named_nodes(fields: Iterable[Json]) -> frozenset[str]:
    names = (
        field["values"]
        for field in fields
        if field.get("key") == "metadata.name" and field.get("operator") == "In"
    )
    return frozenset(name for values in names for name in values)
