"""From a solution to what the API server would store: ``status.allocation`` of each claim.

Source: upstream's ``Allocate`` (results, configuration) and ``createNodeSelector``; KEP-4381 "AllocationResult".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.inventory import PublishedDevice
from dralloc.objects.api import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dralloc.objects.api.base import changed
from dralloc.objects.names import ClaimKey
from dralloc.problem import Alternative, Claim
from dralloc.problem.solution import Grant, Placement, Solution

__all__ = ["allocated_claims", "allocations"]


def allocations(
    compiled: CompiledCluster, solution: Solution
) -> Mapping[ClaimKey, AllocationResult]:
    """The allocation of every claim that the solution places, by claim in the order of the placements."""
    return {
        claim.key: _Writer(compiled, claim, grants, placement).allocation()
        for placement in solution.placements
        for claim, grants in zip(
            compiled.problem.demands[placement.demand].claims,
            placement.grants,
            strict=True,
        )
        if grants or not claim.requests
    }


def allocated_claims(
    compiled: CompiledCluster, solution: Solution
) -> Iterator[ResourceClaim]:
    """The placed claims with their new status: the allocation, and the pods that reserve it.

    A pod without UID exists on no cluster yet; it cannot reserve a claim, because the API server wants the UID.
    """
    written = allocations(compiled, solution)
    users = _users(compiled, solution)
    for key, allocation in written.items():
        claim = compiled.cluster.claim(key)
        if claim is not None:
            reserved = (*claim.status.reserved_for, *users.get(key, ()))
            yield changed(
                claim,
                status=changed(
                    claim.status, allocation=allocation, reserved_for=reserved
                ),
            )


def _users(
    compiled: CompiledCluster, solution: Solution
) -> Mapping[ClaimKey, Sequence[ResourceClaimConsumerReference]]:
    """Return the placed pods of each claim; a claim of a PodGroup is reserved for the whole group (KEP-5729)."""
    pods = compiled.cluster.pods_by_key
    users: dict[ClaimKey, list[ResourceClaimConsumerReference]] = {}
    for placement in solution.placements:
        demand = compiled.problem.demands[placement.demand]
        pod = None if compiled.is_claim(demand) else pods.get(demand.key)
        for claim in demand.claims if pod is not None else ():
            user = compiled.cluster.group_claims.get(
                (demand.key, claim.key), pod
            )
            references = users.setdefault(claim.key, [])
            if (
                user is not None
                and user.metadata.uid
                and _reference(user) not in references
            ):
                references.append(_reference(user))
    return users


def _reference(user: Pod | PodGroup) -> ResourceClaimConsumerReference:
    group, resource = (
        ("", "pods")
        if isinstance(user, Pod)
        else ("scheduling.k8s.io", "podgroups")
    )
    return ResourceClaimConsumerReference(
        api_group=group,
        resource=resource,
        name=user.name,
        uid=user.metadata.uid,
    )


@dataclass(frozen=True)
class _Writer:
    """Writes the allocation of one claim."""

    compiled: CompiledCluster
    claim: Claim
    grants: Sequence[Grant]
    placement: Placement

    def allocation(self) -> AllocationResult:
        devices = DeviceAllocationResult(
            results=tuple(self._results()), config=tuple(self._config())
        )
        node = self.compiled.problem.nodes[self.placement.node].name
        sources = [
            self.compiled.inventory.sources[grant.device]
            for grant in self.grants
        ]
        return AllocationResult(
            devices=devices, node_selector=_node_selector(sources, node)
        )

    def _alternative(self, grant: Grant) -> Alternative:
        return self.claim.requests[grant.request].alternatives[
            grant.alternative
        ]

    def _results(self) -> Iterator[DeviceRequestAllocationResult]:
        problem = self.compiled.problem
        for grant_index, grant in enumerate(self.grants):
            alternative = self._alternative(grant)
            device = problem.devices[grant.device]
            source = self.compiled.inventory.sources[grant.device]
            charge = problem.eligibility.charge(alternative.index, grant.device)
            conditions = (
                source.device
                if problem.features.DeviceBindingAndStatus
                else None
            )
            yield DeviceRequestAllocationResult(
                request=str(alternative.name),
                driver=device.id.driver,
                pool=device.id.pool,
                device=device.id.device,
                admin_access=alternative.admin,
                tolerations=self.compiled.table.criteria[
                    alternative.index
                ].tolerations,
                share_id=self._share_id(grant_index, grant)
                if device.shareable
                else None,
                consumed_capacity=dict(charge.recorded) if charge else {},
                binding_conditions=(
                    conditions and conditions.binding_conditions
                )
                or (),
                binding_failure_conditions=(
                    conditions and conditions.binding_failure_conditions
                )
                or (),
            )

    def _share_id(self, grant_index: int, grant: Grant) -> str:
        """A share's ID: random in a cluster, here the same whenever the same claim gets the same share."""
        device = self.compiled.problem.devices[grant.device].id
        return str(
            uuid5(
                NAMESPACE_URL,
                f"dralloc:{self.claim.key}:{self.claim.uid}:{grant_index}:{device}",
            )
        )

    def _config(self) -> Iterator[DeviceAllocationConfiguration]:
        """Configuration of the classes in use, then of the claim, each with the requests that it is for (none: all)."""
        served = self._served()
        by_class: dict[str, list[str]] = {}
        for alternative in served:
            device_class = self.compiled.table.criteria[
                alternative.index
            ].device_class
            if device_class is not None:
                by_class.setdefault(device_class.name, []).append(
                    str(alternative.name)
                )
        for name, requests in by_class.items():
            for entry in self.compiled.cluster.classes[name].spec.config:
                scope = () if len(requests) == len(served) else tuple(requests)
                yield DeviceAllocationConfiguration(
                    source="FromClass", requests=scope, opaque=entry.opaque
                )
        for config in self._spec().config:
            # ``request`` means all of its subrequests, ``request/sub`` one of them.
            matched = [
                alternative
                for alternative in served
                if alternative.name.request in config.requests
                or str(alternative.name) in config.requests
            ]
            if matched or not config.requests:
                scope = () if len(matched) == len(served) else config.requests
                yield DeviceAllocationConfiguration(
                    source="FromClaim", requests=scope, opaque=config.opaque
                )

    def _served(self) -> list[Alternative]:
        """The alternative that each request got, in the order of the requests."""
        chosen = {
            grant.request: self._alternative(grant) for grant in self.grants
        }
        return [chosen[request] for request in sorted(chosen)]

    def _spec(self) -> DeviceClaim:
        claim = self.compiled.cluster.claim(self.claim.key)
        return claim.spec.devices if claim is not None else DeviceClaim()


def _node_selector(
    sources: Iterable[PublishedDevice], node: str
) -> NodeSelector | None:
    """Return where the devices can be used: on one node if any is local, else wherever all selectors agree."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for source in sources:
        where = (
            source.device
            if source.slice.spec.per_device_node_selection
            else source.slice.spec
        )
        if where.node_name is not None or source.device.binds_to_node:
            only = NodeSelectorRequirement(
                key="metadata.name", operator="In", values=(node,)
            )
            return NodeSelector(
                node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),)
            )
        for term in (
            where.node_selector.node_selector_terms
            if where.node_selector is not None
            else ()
        ):
            # All must hold, so each of them is written once. (A device's selector has one term.)
            _add_new(term.match_fields, fields)
            _add_new(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(
        match_fields=tuple(fields), match_expressions=tuple(expressions)
    )
    return NodeSelector(node_selector_terms=(term,))


def _add_new(
    requirements: Iterable[NodeSelectorRequirement],
    known: list[NodeSelectorRequirement],
) -> None:
    """Add the requirements that are not there yet; the order of their values makes no difference (upstream's rule)."""
    told = {_told_by(requirement) for requirement in known}
    for requirement in requirements:
        if _told_by(requirement) not in told:
            told.add(_told_by(requirement))
            known.append(requirement)


def _told_by(requirement: NodeSelectorRequirement) -> Hashable:
    return (
        requirement.key,
        requirement.operator,
        frozenset(requirement.values),
    )
