"""What bars a pod from a node beside devices at its turn: the node has too little left, or other pods are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dralloc.compiler import CompiledCluster
from dralloc.names import ClaimKey
from dralloc.problem import Charge, Device, Problem
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.inter_pod import Affinity, AntiAffinity, DomainLedger, InterPodRule, Spread
from dralloc.problem.ledger import Shortage
from dralloc.problem.node_claims import resource_of
from dralloc.problem.node_footprint import before_footprints
from dralloc.problem.subproblem import cut
from dralloc.quantity import Quantity
from dralloc.report import counted, listed
from dralloc.solution import Placement, holdings_of, with_node_grants
from dralloc.solvers.cpsat import solve
from dralloc.solvers.first_fit import first_fit

__all__ = ["Bar", "NodeBars"]

_TOO_MANY: Final = "Too many pods"
_OF_POD: Final = "pod level request for {} does not cover the devices"
_PORTS: Final = "didn't have free ports for the requested pod ports"
_UNMET: Final[Mapping[type[InterPodRule], str]] = {
    AntiAffinity: "didn't match pod anti-affinity rules",
    Affinity: "didn't match pod affinity rules",
    Spread: "didn't match pod topology spread constraints",
}
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """Why a node will not do, in kube-scheduler's words; and what is particular to the node: who holds what."""

    text: str
    detail: str = ""


class NodeBars:
    """What bars a demand from nodes after some placements (of devices); to the exact model, other devices may do."""

    def __init__(self, compiled: CompiledCluster, number: int, placements: Sequence[Placement], *, exact: bool) -> None:
        self._whole = compiled.whole
        self._demand = compiled.whole.demands[number]
        self._open = compiled.problem.candidate_nodes(compiled.problem.demands[number])
        self._placements = tuple(with_node_grants(compiled.whole, placements))
        self._running = compiled.pods.running
        self._exact = exact

    def of(self, node: int) -> tuple[Bar, ...]:
        """Everything that bars it from a node."""
        return (*self._short(node), *self._unmet(node)) or tuple(self._short_for_devices(node))

    def _short_for_devices(self, node: int) -> Iterator[Bar]:
        """What upstream's allocator would find is too much for the node, or for the pod's own requests.

        To the exact model other devices count, too, which upstream does not look for.
        """
        whole = self._whole
        if not whole.footprint_counters:
            return
        alone = self._demand.by_itself(nodes=None, roles=())
        part = cut(whole, [node], demands=[alone], ledger=self._ledger, counters=range(len(whole.counters))).problem
        found = first_fit(before_footprints(part))
        if not found.placements or first_fit(part).placements or (self._exact and solve(part).placements):
            return
        for number, amount in _charged(part, found.placements[0]).items():
            counter = part.counters[number]
            if amount > counter.free:
                resource = resource_of(counter.id.counter)
                text = f"Insufficient {resource}" if counter.id.pool else _OF_POD.format(resource)
                yield Bar(text, f"{Quantity(amount)} requested with the devices, {Quantity(max(0, counter.free))} left")

    def _short(self, node: int) -> Iterator[Bar]:
        claim = self._demand.claims[0] if self._demand.claims else None
        if claim is None or not claim.is_synthetic:
            return
        [index] = self._whole.nodes[node].pools[-1].devices
        device = self._whole.devices[index]
        [alternative] = claim.alternatives()
        charge = self._whole.eligibility.charge(alternative.index, index) or Charge()
        for shortage in self._ledger.shortages(device, charge):
            yield self._bar(node, device, shortage)

    def _bar(self, node: int, device: Device, shortage: Shortage) -> Bar:
        index = shortage.what if isinstance(shortage.what, int) else None
        name = str(shortage.what) if index is None else self._whole.counters[index].id.counter
        resource = resource_of(name)
        if name.startswith("podAntiAffinity"):
            return Bar(_UNMET[AntiAffinity])
        if not resource:
            return Bar(_PORTS)
        pods = list(self._holders(node, device, shortage))
        left = f"{Quantity(shortage.wanted)} requested, {Quantity(max(0, shortage.left))} left"
        held = listed([f"{who} ({Quantity(amount)})" for who, amount in pods], _NAMED)
        text = _TOO_MANY if resource == "pods" else f"Insufficient {resource}"
        return Bar(text, f"{left}; held by {held}" if held else left)

    def _holders(self, node: int, device: Device, shortage: Shortage) -> Iterator[tuple[str, int]]:
        """Who takes how much: pods that have the node, as one, then those that are placed there, the largest first."""
        if isinstance(shortage.what, int):
            # Devices take something of it, too (KEP-5517).
            counter = self._whole.counters[shortage.what]
            bound = counter.total - counter.free
        else:
            bound = self._whole.usage.consumed[device.slot].get(shortage.what, 0)
        if bound:
            yield counted(len(self._running[self._whole.nodes[node].name]), "bound pod"), bound
        for key, amount in sorted(self._ledger.holders(device, shortage).items(), key=lambda one: -one[1]):
            yield str(ClaimKey(key.namespace, key.name.removesuffix("/node"))), amount

    def _unmet(self, node: int) -> Iterator[Bar]:
        name = self._whole.nodes[node].name
        if node in self._open and node not in self._whole.candidate_nodes(self._demand):
            yield Bar("didn't match rules between pods, because of pods that have a node")
        for role in self._demand.roles:
            if not self._domains.allows((role,), name):
                yield Bar(_UNMET[type(role.rule)])

    @cached_property
    def _ledger(self) -> ClaimLedger:
        ledger = ClaimLedger(self._whole)
        for placement in self._placements:
            ledger.hold(holdings_of(self._whole, placement))
        return ledger

    @cached_property
    def _domains(self) -> DomainLedger:
        domains = DomainLedger()
        for placement in self._placements:
            roles = self._whole.demands[placement.demand].roles
            domains.enter(roles, self._whole.nodes[placement.node].name)
        return domains


def _charged(problem: Problem, placement: Placement) -> Counter[int]:
    amounts: Counter[int] = Counter()
    for claim, grants in zip(problem.demands[placement.demand].claims, placement.grants, strict=True):
        for request, choice, number in grants:
            charge = problem.eligibility.charge(claim.requests[request].alternatives[choice].index, number) or Charge()
            amounts.update({each: amount for each, amount in charge.counters if each in problem.footprint_counters})
    return amounts
