"""Bars: what keeps a pod from a node beside devices at its turn.

The node has too little left, or other pods are there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dralloc.ask.context.resettling import Resettling, shortages_on
from dralloc.ask.context.settled_pods import SettledPods
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import amount, at_most, counted, listed
from dralloc.problem import (
    Charge,
    CounterIndex,
    DemandIndex,
    Device,
    NodeIndex,
    Problem,
    indices,
)
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Spread,
)
from dralloc.problem.ledger import Shortage
from dralloc.problem.node_claims import resource_of
from dralloc.problem.node_footprints import before_footprints
from dralloc.problem.solution import Placement
from dralloc.problem.subproblem import cut
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = ["Bar", "NodeBars"]

_TOO_MANY: Final = "Too many pods"
_OF_POD: Final = "pod level request for {} does not cover the devices"
_PORTS: Final = "didn't have free ports for the requested pod ports"
_UNMET: Final[Mapping[type[InterPodRule], str]] = {
    AntiAffinity: "didn't match pod anti-affinity rules",
    Affinity: "didn't match pod affinity rules",
    Spread: "didn't match pod topology spread constraints",
    OneDomain: "didn't match the domain of the others of its group",
}
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """A reason why a node will not do, in kube-scheduler's words, with the facts about this node: holders and amounts.

    Parameters
    ----------
    resource, left
        What a pod asks too much of, and how much of it is left, in nanos; empty for what is no amount.
    """

    text: str
    detail: str = ""
    resource: str = ""
    left: int = 0


class NodeBars:
    """Finds the reasons that keep a demand from nodes beside pods that have one; the exact model may use others."""

    def __init__(
        self, settled: SettledPods, demand_index: DemandIndex, *, exact: bool
    ) -> None:
        self.settled = settled
        self._whole = settled.whole
        self._exact = exact
        self._demand = self._whole.demands[demand_index]
        self._known: dict[
            frozenset[DemandIndex], dict[NodeIndex, tuple[Bar, ...]]
        ] = defaultdict(dict)

    def allows(self, node: NodeIndex) -> bool:
        """Whether nothing keeps the demand from a node. To say what does takes longer."""
        shortages = shortages_on(
            self._whole, self.settled.ledger, self._demand, node
        )
        return not (
            any(shortages)
            or any(self._unmet(node))
            or any(self._short_for_devices(node))
        )

    def of(
        self, node: NodeIndex, released: Collection[ClaimKey] = ()
    ) -> tuple[Bar, ...]:
        """Return every reason that keeps the demand from a node, once the pods of some claims are gone."""
        gone = frozenset(
            demand
            for key in released
            for demand in self.settled.users.get(key, ())
        )
        # Without rules between pods, what goes from other nodes does not matter.
        if not self._demand.roles:
            gone = frozenset(
                demand
                for demand in gone
                if self.settled.placements[demand].node == node
            )
        bars = self._known[gone]
        if node not in bars:
            with self.settled.without(gone, node):
                bars[node] = (*self._short(node), *self._unmet(node)) or tuple(
                    self._short_for_devices(node)
                )
        return bars[node]

    @contextmanager
    def resettling(
        self, node: NodeIndex, released: Collection[ClaimKey]
    ) -> Iterator[Resettling]:
        """For a while, the demand is on a node, and the pods of some claims are gone, to be settled anew."""
        gone = {
            demand
            for key in released
            for demand in self.settled.users.get(key, ())
        }
        with self.settled.without(gone):
            resettling = Resettling(
                self._whole, self.settled.ledger, self.settled.domains, gone
            )
            resettling.settle(self._demand, node)
            try:
                yield resettling
            finally:
                resettling.revoke()

    def _short_for_devices(self, node: NodeIndex) -> Iterator[Bar]:
        """Yield resources of which upstream's allocator would find too little on the node or in the pod's requests.

        To the exact model other devices count, too, which upstream does not look for.
        """
        problem = self._whole
        if not problem.footprint_counters:
            return
        alone = self._demand.by_itself(nodes=None, roles=())
        part = cut(
            problem,
            [node],
            demands=[alone],
            ledger=self.settled.ledger,
            counters=indices(problem.counters),
        ).problem
        # Upstream picks devices before it looks at what they take of the node or of the pod's requests. So these
        # devices are to blame, unless the demand fits there all the same.
        solution = first_fit(before_footprints(part))
        if (
            not solution.placements
            or first_fit(part).placements
            or (self._exact and solve(part).placements)
        ):
            return
        for counter_index, charged in _charged(
            part, solution.placements[0]
        ).items():
            counter = part.counters[counter_index]
            if charged > counter.free:
                resource = resource_of(counter.id.counter)
                # Counters of nodes have a pool; one without is about the requests of the pod as a whole (KEP-2837).
                text = (
                    f"Insufficient {resource}"
                    if counter.id.pool
                    else _OF_POD.format(resource)
                )
                yield Bar(
                    text,
                    f"{amount(charged)} requested with the devices, {amount(max(0, counter.free))} left",
                )

    def _short(self, node: NodeIndex) -> Iterator[Bar]:
        for device, shortage in shortages_on(
            self._whole, self.settled.ledger, self._demand, node
        ):
            yield self._bar(node, device, shortage)

    def _bar(self, node: NodeIndex, device: Device, shortage: Shortage) -> Bar:
        index = shortage.subject if isinstance(shortage.subject, int) else None
        name = (
            str(shortage.subject)
            if index is None
            else self._whole.counters[CounterIndex(index)].id.counter
        )
        resource = resource_of(name)
        # Anti-affinity by node and host ports are amounts of a node, too, but kube-scheduler has words of its own for
        # them.
        if name.startswith("podAntiAffinity"):
            return Bar(_UNMET[AntiAffinity])
        if not resource:
            return Bar(_PORTS)
        pods = list(self._holders(node, device, shortage))
        amounts = _held_against(shortage.requested, max(0, shortage.available))
        held = listed(
            [f"{name} ({amount(nanos)})" for name, nanos in pods], _NAMED
        )
        detail = f"{amounts}; held by {held}" if held else amounts
        if resource == "pods":
            return Bar(_TOO_MANY, detail)
        remaining = max(0, shortage.available)
        return Bar(f"Insufficient {resource}", detail, resource, remaining)

    def _holders(
        self, node: NodeIndex, device: Device, shortage: Shortage
    ) -> Iterator[tuple[str, int]]:
        """Yield the holders of a resource with their amounts: bound pods as one, then placed pods, largest first."""
        if isinstance(shortage.subject, int):
            # Devices take something of it, too (KEP-5517).
            counter = self._whole.counters[CounterIndex(shortage.subject)]
            bound = counter.total - counter.free
        else:
            bound = self._whole.usage.consumed[device.slot].get(
                shortage.subject, 0
            )
        holders = {
            ClaimKey(key.namespace, key.name.removesuffix("/node")): nanos
            for key, nanos in self.settled.ledger.holders(
                device, shortage
            ).items()
        }
        running = {pod.key for pod in self.settled.incumbents}
        bound += sum(nanos for key, nanos in holders.items() if key in running)
        if bound:
            yield (
                counted(
                    len(self.settled.running[self._whole.nodes[node].name]),
                    "bound pod",
                ),
                bound,
            )
        for key, nanos in sorted(holders.items(), key=lambda entry: -entry[1]):
            if key not in running:
                yield str(key), nanos

    def _unmet(self, node: NodeIndex) -> Iterator[Bar]:
        name = self._whole.nodes[node].name
        if node not in self._whole.candidate_nodes(self._demand):
            yield Bar(
                "didn't match rules between pods, because of pods that have a node"
            )
        for role in self._demand.roles:
            if not self.settled.domains.allows((role,), name):
                yield Bar(_UNMET[type(role.rule)])


def _charged(problem: Problem, placement: Placement) -> Counter[CounterIndex]:
    amounts: Counter[CounterIndex] = Counter()
    for claim, grants in zip(
        problem.demands[placement.demand].claims, placement.grants, strict=True
    ):
        for request, choice, device in grants:
            charge = (
                problem.eligibility.charge(
                    claim.requests[request].alternatives[choice].index, device
                )
                or Charge()
            )
            amounts.update(
                {
                    counter: amount
                    for counter, amount in charge.counters
                    if counter in problem.footprint_counters
                }
            )
    return amounts


def _held_against(requested: int, available: int) -> str:
    """Return both amounts, in a form in which the larger one is seen to be larger."""
    available_text = at_most(available)
    if available_text == amount(requested):
        available_text = amount(available)
    return f"{amount(requested)} requested, {available_text} left"
