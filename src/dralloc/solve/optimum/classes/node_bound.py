"""Demands that can go to one node only, such as pods of a DaemonSet, as demands of one class.

Such demands differ by their nodes alone, and so would nodes by who is bound to them: every node would be a class of its
own. But nodes with equal demands bound to them can be exchanged together with these. So a demand is freed from its
node, and asks for a *ticket* in its place: one more consumable capacity of the synthetic device that each node has (see
`dralloc.problem.node_claims`). A node has as many tickets of a kind as demands of that kind are bound to it. In every
answer to that, each node serves at most as many of a kind as are bound to it, and all who go there are equal but for
their names: in the end they exchange these, and everybody is at home (`at_home`).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.problem import Alternative, Charge, Demand, Problem
from dralloc.problem.eligibility import Overlay
from dralloc.problem.equivalence import claim_key
from dralloc.problem.solution import Placement
from dralloc.problem.supply import Capacity
from dralloc.solve.optimum.classes.demand_classes import DemandClass

__all__ = ["at_home", "with_tickets"]


class _TicketRequest(NamedTuple):
    """What an alternative that wants a ticket asks for beside it: the same as another one."""

    alternative: int
    ticket: str


def with_tickets(problem: Problem) -> Problem:
    """The problem in which demands that are bound to nodes ask for tickets; the same one if they are on one node."""
    bound = _bound(problem)
    if len(set(map(_home, bound.values()))) < 2:
        return problem
    kinds: dict[Hashable, int] = {}
    asks: dict[int, _TicketRequest] = {}
    held: dict[int, Tally[str]] = defaultdict(Tally)
    demands, devices = list(problem.demands), list(problem.devices)
    lowest = min(
        _node_request(demand).index
        for demand in problem.demands
        if _asks_its_node(demand)
    )
    for number, demand in bound.items():
        claims = tuple(claim_key(problem.eligibility, claim) for claim in demand.claims)
        kind = kinds.setdefault(
            (claims, demand.weight, demand.key.namespace), len(kinds)
        )
        asked = _node_request(demand)
        ask = asks.setdefault(
            lowest - 1 - kind, _TicketRequest(asked.index, f"ticket {kind}")
        )
        (node,) = demand.nodes or ()
        held[problem.nodes[node].pools[-1].devices[0]][ask.ticket] += 1
        demands[number] = _freed(demand, replace(asked, index=lowest - 1 - kind))
    for device, tickets in held.items():
        added = {name: Capacity(name, number) for name, number in tickets.items()}
        devices[device] = replace(
            devices[device], capacity={**devices[device].capacity, **added}
        )
    eligibility = _Tickets(
        problem.eligibility,
        asks,
        {device: frozenset(each) for device, each in held.items()},
    )
    return replace(
        problem, demands=tuple(demands), devices=tuple(devices), eligibility=eligibility
    )


def at_home(
    problem: Problem, classes: Iterable[DemandClass], placements: Iterable[Placement]
) -> list[Placement]:
    """The placements after demands of one class that are bound to different nodes have gone to their own."""
    class_of: dict[int, int] = {}
    waiting: dict[tuple[int, int | None], list[int]] = defaultdict(list)
    for number, each in enumerate(classes):
        homes = {member: _home(problem.demands[member]) for member in each.members}
        # Nothing but tickets makes lone demands with different nodes one class.
        if len(each.weights) == 1 and len(set(homes.values())) > 1:
            for member, home in sorted(homes.items(), reverse=True):
                class_of[member] = number
                waiting[number, home].append(member)
    moved = (
        replace(one, demand=waiting[class_of[one.demand], one.node].pop())
        if one.demand in class_of
        else one
        for one in placements
    )
    return sorted(moved, key=lambda one: one.demand)


def _home(demand: Demand) -> int | None:
    """The only node that the demand may go to; None if it may go to others, too."""
    return (
        demand.nodes[0] if demand.nodes is not None and len(demand.nodes) == 1 else None
    )


def _bound(problem: Problem) -> Mapping[int, Demand]:
    """The demands that are bound to one node by nothing but their own rules, and take something of it."""
    found = {
        number: one
        for number, one in enumerate(problem.demands)
        if _home(one) is not None
    }
    listed = (
        Tally(claim.key for demand in problem.demands for claim in demand.claims)
        if found
        else Tally()
    )
    return {
        number: demand
        for number, demand in found.items()
        if _asks_its_node(demand)
        and not (demand.gang or demand.parent or demand.roles)
        and all(listed[claim.key] == 1 for claim in demand.claims)
    }


def _asks_its_node(demand: Demand) -> bool:
    return bool(demand.claims) and demand.claims[0].is_synthetic


def _node_request(demand: Demand) -> Alternative:
    return demand.claims[0].requests[0].alternatives[0]


def _freed(demand: Demand, asked: Alternative) -> Demand:
    """The demand without its node, and with something else in its synthetic claim."""
    synthetic, *others = demand.claims
    request = replace(synthetic.requests[0], alternatives=(asked,))
    return replace(
        demand, nodes=None, claims=(replace(synthetic, requests=(request,)), *others)
    )


@dataclass(eq=False)
class _Tickets(Overlay):
    """The answers about devices, and those about tickets.

    ``asks``: by alternative that wants a ticket. ``held``: by synthetic device, the tickets that it has.
    """

    asks: Mapping[int, _TicketRequest]
    held: Mapping[int, frozenset[str]]

    def _asked(self, alternative: int) -> _TicketRequest:
        """As what it is asked for, and with which ticket; an empty one for none."""
        return self.asks.get(alternative) or _TicketRequest(alternative, "")

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """As in `Eligibility`."""
        asked, ticket = self._asked(alternative)
        return (
            not ticket or ticket in self.held.get(device, ())
        ) and self.base.selects(asked, device)

    def admits(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        return self.base.admits(self._asked(alternative).alternative, device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        asked, ticket = self._asked(alternative)
        charge = self.base.charge(asked, device)
        return (
            replace(charge, capacity=(*charge.capacity, (ticket, 1)))
            if charge and ticket
            else charge
        )

    def request_key(self, alternative: int) -> Hashable:
        """As in `Eligibility`."""
        asked, ticket = self._asked(alternative)
        key = self.base.request_key(asked)
        return (key, ticket) if ticket else key

    def device_key(self, device: int) -> Hashable:
        """As in `Eligibility`."""
        key, tickets = self.base.device_key(device), self.held.get(device)
        return (key, tickets) if tickets else key
