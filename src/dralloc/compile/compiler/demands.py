"""What is to be placed.

Demands are ordered as the scheduler would take pods: higher priority first, then older first, then as given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from dralloc.compile.compiler.across import ConstraintsAcross
from dralloc.compile.compiler.extended import DevicePlugins
from dralloc.compile.compiler.footprints import Footprints
from dralloc.compile.compiler.gangs import Gangs
from dralloc.compile.compiler.where import Where
from dralloc.compile.match import MatchTable
from dralloc.compile.match.requests import compile_claim, compile_equal_claim
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.api import Pod, ResourceClaim
from dralloc.objects.api.expansion import generated_name
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.names import ClaimKey
from dralloc.objects.unasked import Unasked
from dralloc.problem import Claim, Constraint, Demand

__all__ = ["MAX_CONSUMERS", "Demands"]

MAX_CONSUMERS: Final = 256
"""Most pods that can use one claim at a time (``ResourceClaimReservedForMaxSize`` of resource.k8s.io)."""

_NOWHERE: Final[frozenset[str]] = frozenset()


@dataclass
class Demands:
    """Works out the demands of a cluster.

    Parameters
    ----------
    elsewhere
        Names of nodes that are not for a pod, by pod.
    refused
        Why a claim cannot be made, by claim.
    ignored
        What of that which binds pods to nodes does not count.
    unasked
        The pods that are no part of any demand, and why, once the demands are there.
    findings
        Remarks, once the demands are there.
    """

    cluster: Cluster
    nodes: Sequence[ApiNode]
    table: MatchTable
    elsewhere: Mapping[ClaimKey, frozenset[str]]
    refused: Mapping[ClaimKey, str]
    gangs: Gangs
    across: ConstraintsAcross
    plugins: DevicePlugins
    ignored: frozenset[Ignored] = frozenset()
    unasked: dict[ClaimKey, Unasked] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _known: dict[tuple[int, tuple[Constraint, ...]], Claim] = field(
        default_factory=dict
    )
    _compiled: dict[tuple[ClaimKey, tuple[Constraint, ...]], Claim] = field(
        default_factory=dict
    )

    def in_order(self) -> tuple[Demand, ...]:
        """All demands, as the scheduler would take them."""
        found = [*self._of_pods(), *self._of_lone_claims()]
        self.unasked.update(self.cluster.gone)
        for pod in self.cluster.suspended:
            asks = pod.spec.resource_claims or self.plugins.asked(pod)
            self.unasked[pod.key] = Unasked.SUSPENDED if asks else Unasked.NO_DEVICE
        found.sort(
            key=lambda entry: (-entry[1].priority, entry[0] is None, entry[0] or "")
        )
        return self._with_few_consumers([demand for _, demand in found])

    def _of_pods(self) -> Iterator[tuple[str | None, Demand]]:
        for pod in self.cluster.pods:
            claims: list[Claim] = []
            allocated: list[ResourceClaim] = []
            name = pod.key
            across = self.across.of_pods.get(name, ())
            for key in (
                self.cluster.claims_of_pods[name]
                if not pod.spec.scheduling_gates
                else ()
            ):
                claim = self.cluster.claim(key)
                if claim is None:
                    reason = "; ".join(self.cluster.unresolved.get(name, ()))
                    claims.append(Claim(key, "", (), defect=f"pod {name}: {reason}"))
                elif claim.is_allocated:
                    allocated.append(claim)
                else:
                    if (key, across) not in self._compiled:
                        self._compiled[key, across] = self._compile(claim, across)
                    claims.append(self._compiled[key, across])
            if claims or not allocated:
                claims += self._of_no_node(pod)
            if claims and name in self.across.defects:
                claims.append(
                    Claim(claims[0].key, "", (), defect=self.across.defects[name])
                )
            if claims:
                yield (
                    pod.metadata.creation_timestamp,
                    self._demand(pod, claims, allocated),
                )
            else:
                self.unasked[name] = self._why_unasked(pod)

    def _of_no_node(self, pod: Pod) -> Iterator[Claim]:
        """What stands for extended resources that there are nowhere."""
        missing = (
            self.plugins.missing(pod)
            if not (pod.spec.node_name or pod.spec.scheduling_gates)
            else ()
        )
        if missing:
            key = ClaimKey(
                pod.key.namespace,
                generated_name(f"{pod.name}-extended-resources-", pod.key.namespace),
            )
            defect = (
                f"pod {pod.key}: no DeviceClass and no node offers {', '.join(missing)}"
            )
            yield Claim(key, "", (), defect=defect)

    def _why_unasked(self, pod: Pod) -> Unasked:
        """Why nothing of a pod is pending."""
        claims = self.cluster.pod_claims(pod)
        if not claims and not self.plugins.asked(pod):
            return Unasked.NO_DEVICE
        if pod.spec.scheduling_gates:
            return Unasked.GATED
        if pod.spec.node_name:
            return Unasked.BOUND
        return Unasked.ALLOCATED if claims else Unasked.PLUGIN

    @cached_property
    def _where(self) -> Where:
        return Where(self.nodes, tainted=Ignored.TAINTS not in self.ignored)

    def _demand(
        self, pod: Pod, claims: Sequence[Claim], allocated: Sequence[ResourceClaim]
    ) -> Demand:
        key = pod.key
        obstacles = [(claim, self._obstacle(claim, pod)) for claim in allocated]
        blocked = [
            Claim(one.key, "", (), defect=f"pod {key}: {reason}")
            for one, reason in obstacles
            if reason
        ]
        where = (
            one.status.allocation.node_selector
            for one in allocated
            if one.status.allocation is not None
        )
        selectors = [one for one in where if one is not None]
        gang = self.gangs.of(pod)
        elsewhere = self.elsewhere.get(key, _NOWHERE) | gang.elsewhere
        return Demand(
            key=key,
            claims=(*claims, *blocked),
            priority=pod.spec.priority or 0,
            nodes=() if gang.halted else self._where.of(pod, selectors, elsewhere),
            gang=gang.name,
            quorum=gang.quorum,
            roles=gang.roles,
            parent=gang.parent,
        )

    def _obstacle(self, claim: ResourceClaim, pod: Pod) -> str:
        """Why a pod cannot use a claim that is allocated already (upstream's scheduler plugin); empty if it can."""
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{claim.name}" is being deleted'
        users = {(user.resource, user.name) for user in claim.status.reserved_for}
        if (
            len(users) >= MAX_CONSUMERS
            and self.cluster.consumer(pod.key, claim.key) not in users
        ):
            full = f"status.reservedFor has {len(users)} entries of at most {MAX_CONSUMERS}"
            return f'resourceclaim "{claim.name}" is in use: {full}'
        if users - {
            self.cluster.consumer(pod.key, claim.key)
        } and self._footprints.is_mapped(claim):
            return f'resourceclaim "{claim.name}" has a mapped device and cannot be shared across pods'
        return ""

    @cached_property
    def _footprints(self) -> Footprints:
        return Footprints(self.cluster, self.table.inventory.devices)

    def _of_lone_claims(self) -> Iterator[tuple[str | None, Demand]]:
        waited_for = self.cluster.lone_claims - self.cluster.abandoned
        for claim in self.cluster.claims:
            waiting = (
                claim.status.allocation is None
                and claim.metadata.deletion_timestamp is None
            )
            if claim.key in waited_for and waiting:
                nodes = self._where.everywhere()
                yield (
                    claim.metadata.creation_timestamp,
                    Demand(claim.key, (self._compile(claim),), nodes=nodes),
                )

    def _compile(
        self, claim: ResourceClaim, across: tuple[Constraint, ...] = ()
    ) -> Claim:
        # Claims of one template share their specification.
        name = id(claim.spec), across
        known = self._known.get(name)
        if known is None:
            compiled = compile_claim(
                claim, self.cluster.classes, self.table, self.table.features, across
            )
            if not compiled.is_defective:
                self._known[name] = compiled
        else:
            compiled = compile_equal_claim(claim, known, self.table)
        defect = self.refused.get(claim.key, "")
        if claim.metadata.deletion_timestamp is not None:
            defect = f'claim {claim.key}: resourceclaim "{claim.name}" is being deleted'
        return replace(compiled, defect=defect) if defect else compiled

    def _with_few_consumers(self, demands: Sequence[Demand]) -> tuple[Demand, ...]:
        """The demands, where a claim has more users than it may have only the first ones with nodes to go to."""
        wanted = Counter([claim.key for demand in demands for claim in demand.claims])
        if max(wanted.values(), default=0) <= MAX_CONSUMERS:
            return tuple(demands)
        places: dict[ClaimKey, dict[tuple[str, str], int]] = defaultdict(dict)
        kept: list[Demand] = []
        for demand in demands:
            own = [
                (places[claim.key], self.cluster.consumer(demand.key, claim.key))
                for claim in demand.claims
            ]
            full = (
                max(
                    [users.setdefault(user, len(users)) for users, user in own],
                    default=0,
                )
                >= MAX_CONSUMERS
            )
            kept.append(replace(demand, nodes=()) if full else demand)
        for key, users in places.items():
            claim, number = self.cluster.claim(key), len(users)
            if number > MAX_CONSUMERS and claim is not None:
                rule = (
                    f"{number} pods want it, but only {MAX_CONSUMERS} can use it at a time: "
                    "the others are not placed"
                )
                self.findings.append(
                    self.cluster.remark(claim, "status.reservedFor", rule)
                )
        return tuple(kept)
