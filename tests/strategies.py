"""Hypothesis strategies: whatever the tests draw at random is drawn here.

`problems` draws small problems in which every feature can meet every other, and in which things are scarce: few
attribute values, tight capacities, counters that not all devices can have at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from hypothesis import strategies as st

from dralloc.objects.errors import AllocationError, FatalError
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.objects.quantity import Quantity
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    Request,
)
from inventory_strategies import ATTRIBUTES, Inventory, inventories, rarely

__all__ = [
    "ATTRIBUTES",
    "Inventory",
    "TableEligibility",
    "demand_lists",
    "eligibilities",
    "inventories",
    "problems",
    "repeated",
]

DRIVEN = "power"
"""Name under which requests ask for a counter's amount (KEP-5941)."""


@dataclass(frozen=True)
class TableEligibility:
    """An `Eligibility` that is known beforehand, by (alternative, device); what is not listed is unproblematic."""

    selected: Mapping[tuple[int, int], bool | AllocationError] = field(
        default_factory=dict
    )
    refused: frozenset[tuple[int, int]] = frozenset()
    charges: Mapping[tuple[int, int], Charge | None] = field(
        default_factory=dict
    )

    def selects(
        self, alternative: int, device: DeviceIndex
    ) -> bool | AllocationError:
        return self.selected.get((alternative, device), True)

    def admits(self, alternative: int, device: DeviceIndex) -> bool:
        return (alternative, device) not in self.refused

    def charge(self, alternative: int, device: DeviceIndex) -> Charge | None:
        return self.charges.get((alternative, device), Charge())

    def request_key(self, alternative: int) -> Hashable:
        return self._lines[0].get(alternative)

    def device_key(self, device: DeviceIndex) -> Hashable:
        return self._lines[1].get(device)

    @cached_property
    def _lines(self) -> tuple[Mapping[int, Hashable], Mapping[int, Hashable]]:
        """What is listed for each alternative, and for each device; an error is only equal to itself."""
        lines: tuple[dict[int, set[Hashable]], dict[int, set[Hashable]]] = (
            {},
            {},
        )
        refused = dict.fromkeys(self.refused, "refused")
        for name, table in (
            ("selected", self.selected),
            ("refused", refused),
            ("charge", self.charges),
        ):
            for (alternative, device), answer in table.items():
                lines[0].setdefault(alternative, set()).add(
                    (name, device, answer)
                )
                lines[1].setdefault(device, set()).add(
                    (name, alternative, answer)
                )
        frozen = tuple(
            {key: frozenset(line) for key, line in side.items()}
            for side in lines
        )
        return frozen[0], frozen[1]


@st.composite
def _requests(
    draw: st.DrawFn, name: str, alternatives: Iterator[AlternativeIndex]
) -> Request:
    """``exactly``, or ``firstAvailable`` with up to three entries."""
    entries = draw(st.sampled_from([1, 1, 2, 3]))
    counts = [
        draw(st.sampled_from([1, 1, 1, 2, 2, 2, 3, None]))
        for _ in range(entries)
    ]
    return Request(
        name,
        tuple(
            Alternative(
                index=next(alternatives),
                name=RequestName(name, "abc"[rank] if entries > 1 else ""),
                rank=rank,
                count=counts[rank],
                admin=entries == 1 and draw(rarely()),
                defect="drawn so" if draw(rarely()) and draw(rarely()) else "",
            )
            for rank in range(entries)
        ),
    )


def _derived(
    names: Sequence[RequestName], attribute: st.SearchStrategy[str]
) -> st.SearchStrategy[tuple[tuple[RequestName, str], ...]]:
    """Mostly nothing: what a constraint compares for some requests in place of its attribute."""
    pairs = st.lists(
        st.tuples(st.sampled_from(names), attribute),
        max_size=2,
        unique_by=lambda pair: pair[0],
    )
    return st.just(()) | pairs.map(tuple)


@st.composite
def _claims(
    draw: st.DrawFn, name: str, alternatives: Iterator[AlternativeIndex]
) -> Claim:
    requests = tuple(
        draw(_requests(f"r{index}", alternatives))
        for index in range(draw(st.integers(1, 2)))
    )
    names = [
        entry.name for request in requests for entry in request.alternatives
    ]
    covers = st.sampled_from(
        sorted({*map(str, names), *(request.name for request in requests)})
    )
    covered = st.just(frozenset[str]()) | st.frozensets(covers, max_size=2)
    attribute = st.sampled_from(ATTRIBUTES)
    constraint = st.builds(
        Constraint,
        st.sampled_from(ConstraintKind),
        attribute,
        covered,
        _derived(names, attribute),
    )
    constraints = draw(st.lists(constraint, max_size=2))
    defect = "drawn so" if draw(rarely()) and draw(rarely()) else ""
    return Claim(
        ClaimKey("default", name),
        f"uid-{name}",
        requests,
        tuple(constraints),
        defect,
    )


@st.composite
def _modest_claims(
    draw: st.DrawFn, name: str, alternatives: Iterator[AlternativeIndex]
) -> Claim:
    """A claim that is easily served."""
    only = Alternative(
        next(alternatives),
        RequestName("r0"),
        0,
        draw(st.sampled_from([1, 1, 1, 2, None])),
        draw(rarely()),
    )
    return Claim(
        ClaimKey("default", name), f"uid-{name}", (Request("r0", (only,)),)
    )


@st.composite
def demand_lists(
    draw: st.DrawFn, nodes: int, max_demands: int = 4
) -> tuple[Demand, ...]:
    """Draw pods with one claim or two, some of them bound to certain nodes, to each other, or to a claim they share."""
    alternatives = map(AlternativeIndex, count())
    common = draw(
        _claims("common", alternatives)
        if draw(rarely())
        else _modest_claims("common", alternatives)
    )
    demands: list[Demand] = []
    quorum = draw(st.sampled_from([None, None, 1, 2]))
    for index in range(draw(st.sampled_from(range(1, max_demands + 1)))):
        own = [
            draw(_claims(f"claim-{index}-{claim_index}", alternatives))
            for claim_index in range(draw(st.sampled_from([1, 1, 1, 2])))
        ]
        claims = draw(
            _with_shared(
                own,
                [common] * 4
                + [claim for demand in demands for claim in demand.claims],
            )
        )
        weight = draw(st.integers(0, 3))
        bound = (
            draw(st.booleans()) if set(claims) != set(own) else draw(rarely())
        )
        demands.append(
            Demand(
                key=ClaimKey("default", f"pod-{index}"),
                claims=claims,
                priority=weight,
                weight=weight,
                nodes=draw(_some_nodes(nodes)) if bound else None,
                gang=draw(st.sampled_from(["", "", "", "gang"])),
                quorum=quorum,
            )
        )
    return tuple(demands)


@st.composite
def _with_shared(
    draw: st.DrawFn, own: list[Claim], others: Sequence[Claim]
) -> tuple[Claim, ...]:
    """The pod's own claims; now and then with another pod's claim before them, behind them, or in their place."""
    position = draw(
        st.sampled_from(
            ["no", "no", "no", "before", "behind", "alone", "alone"]
        )
    )
    if position == "no":
        return tuple(own)
    shared = draw(st.sampled_from(others))
    if position == "alone":
        return (shared,)
    return (shared, *own) if position == "before" else (*own, shared)


def _some_nodes(nodes: int) -> st.SearchStrategy[tuple[NodeIndex, ...]]:
    """At least one of so many nodes, in any order."""
    indices = [NodeIndex(index) for index in range(nodes)]
    return st.permutations(indices).flatmap(
        lambda order: st.integers(1, nodes).map(
            lambda size: tuple(order[:size])
        )
    )


@st.composite
def eligibilities(
    draw: st.DrawFn, demands: Sequence[Demand], inventory: Inventory
) -> TableEligibility:
    """Draw what each alternative selects, tolerates and asks for, the same of every device."""
    selected: dict[tuple[int, int], bool | AllocationError] = {}
    refused: set[tuple[int, int]] = set()
    charges: dict[tuple[int, int], Charge | None] = {}
    some = st.frozensets(st.integers(0, len(inventory.devices) - 1), max_size=2)
    for alternative in _alternatives(demands):
        selected |= {(alternative, device): False for device in draw(some)}
        if draw(rarely()):
            selected |= {
                (alternative, device): FatalError("drawn so")
                for device in draw(some)
            }
            refused |= {(alternative, device) for device in draw(some)}
        asked = draw(
            st.sampled_from(
                [
                    {},
                    {},
                    {},
                    {"memory": 1},
                    {"memory": 2},
                    {"memory": 1, DRIVEN: 2},
                    {DRIVEN: 2},
                ]
            )
        )
        for device in range(len(inventory.devices)):
            charge = _charge(
                inventory.devices[device], inventory.driven.get(device), asked
            )
            if charge != Charge():
                charges[alternative, device] = charge
    return TableEligibility(selected, frozenset(refused), charges)


def _alternatives(demands: Sequence[Demand]) -> Iterator[int]:
    for claim in {
        claim.key: claim for demand in demands for claim in demand.claims
    }.values():
        for request in claim.requests:
            yield from (
                alternative.index for alternative in request.alternatives
            )


def _charge(
    device: Device, driven: int | None, asked: Mapping[str, int]
) -> Charge | None:
    """What a request for those amounts takes (KEP-5075): by default everything, never more than there is."""
    if any(
        name != DRIVEN
        and (
            name not in device.capacity or amount > device.capacity[name].total
        )
        for name, amount in asked.items()
    ):
        return None
    taken = {
        name: asked.get(name, capacity.total)
        for name, capacity in device.capacity.items()
        if device.shareable and capacity.consumable
    }
    counters = (
        {} if driven is None else {CounterIndex(driven): asked.get(DRIVEN, 1)}
    )
    recorded = (
        taken if driven is None else {**taken, DRIVEN: asked.get(DRIVEN, 1)}
    )
    return Charge(
        capacity=tuple(taken.items()),
        counters=tuple(counters.items()),
        recorded=tuple(
            (name, Quantity(amount)) for name, amount in recorded.items()
        ),
    )


@st.composite
def problems(
    draw: st.DrawFn, max_demands: int = 4, max_devices: int = 6
) -> Problem:
    """Draw a small problem with all features in the mix."""
    inventory = draw(inventories(max_devices))
    demands = draw(demand_lists(len(inventory.nodes), max_demands))
    return Problem(
        demands=demands,
        nodes=inventory.nodes,
        devices=inventory.devices,
        counters=inventory.counters,
        usage=inventory.usage,
        eligibility=draw(eligibilities(demands, inventory)),
    )


@st.composite
def repeated(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with its demands in any order, and more that equal them but for the names."""
    indices = range(3 * len(problem.demands))
    order = draw(
        st.lists(st.sampled_from(indices), min_size=1, max_size=12, unique=True)
    )
    return replace(
        problem,
        demands=tuple(_again(tuple(problem.demands), index) for index in order),
    )


def _again(demands: Sequence[Demand], index: int) -> Demand:
    """A demand with that index, where the indices go round several times; claims are shared within a round."""
    demand, turn = demands[index % len(demands)], index // len(demands)
    if not turn:
        return demand
    return replace(
        demand,
        key=_renamed(demand.key, turn),
        claims=tuple(
            replace(claim, key=_renamed(claim.key, turn))
            for claim in demand.claims
        ),
        gang=demand.gang and f"{demand.gang}-{turn}",
    )


def _renamed(key: ClaimKey, turn: int) -> ClaimKey:
    return ClaimKey(key.namespace, f"{key.name}-{turn}")
