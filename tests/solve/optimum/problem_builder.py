"""Small problems in a few words, and their optimal answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from dralloc.check import check
from dralloc.objects.choices import Goal
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    Claim,
    Constraint,
    Counter,
    CounterID,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Scalar,
    SlotIndex,
    Usage,
)
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.solution import Solution, Status
from dralloc.solve.optimum import Options, solve
from strategies import TableEligibility

__all__ = [
    "AlternativeSpec",
    "ProblemBuilder",
    "all_but_a_full_device",
    "answer",
    "devices_of",
    "placed",
]


@dataclass(frozen=True)
class AlternativeSpec:
    """One alternative: ``only`` these devices match, ``fails`` on those; amounts of capacities and counters."""

    count: int | None = 1
    only: Collection[int] | None = None
    fails: Mapping[int, AllocationError] | None = None
    refused: Collection[int] = ()
    admin: bool = False
    defect: str = ""
    capacity: Mapping[str, int] | None = None
    counters: Mapping[CounterIndex, int] | None = None


class ProblemBuilder:
    """Collects devices and pods. Every device is in the pool of its node; without node, in one that all nodes see."""

    def __init__(self, nodes: int = 1) -> None:
        self.own: list[list[DeviceIndex]] = [[] for _ in range(nodes)]
        self.common: list[DeviceIndex] = []
        self.devices: list[Device] = []
        self.counters: list[Counter] = []
        self.demands: list[Demand] = []
        self.specs: list[AlternativeSpec] = []
        self.states: dict[int, PoolState] = {}
        self.usage = Usage(frozenset(), {}, {})

    def counter(
        self,
        total: int,
        free: int | None = None,
        group: int = 0,
        counter_set: str = "set",
    ) -> CounterIndex:
        identity = CounterID(
            "driver", "pool", counter_set, f"counter-{len(self.counters)}"
        )
        self.counters.append(
            Counter(identity, total, total if free is None else free, group)
        )
        return CounterIndex(len(self.counters) - 1)

    def device(
        self,
        node: int | None = 0,
        consumes: Mapping[CounterIndex, int] | None = None,
        capacity: Mapping[str, int] | None = None,
        attributes: Mapping[str, Collection[int]] | None = None,
        slot: int | None = None,
    ) -> DeviceIndex:
        """A dedicated device, or a shareable one if it has capacities."""
        index = DeviceIndex(len(self.devices))
        values: dict[str, frozenset[Scalar]] = {
            name: frozenset(("int", integer) for integer in integers)
            for name, integers in (attributes or {}).items()
        }
        self.devices.append(
            Device(
                id=DeviceID(
                    "driver",
                    "common" if node is None else f"pool-{node}",
                    f"device-{index}",
                ),
                slot=SlotIndex(index if slot is None else slot),
                group=0,
                shareable=capacity is not None,
                capacity={
                    name: Capacity(name, total)
                    for name, total in (capacity or {}).items()
                },
                consumes=tuple((consumes or {}).items()),
                attributes=values,
                nodes=None,
            )
        )
        (self.common if node is None else self.own[node]).append(index)
        return index

    def claim(
        self,
        *requests: AlternativeSpec | Collection[AlternativeSpec],
        constraints: Collection[Constraint] = (),
    ) -> Claim:
        """A claim with requests r0, r1, ...; several for one request are its alternatives r0/a, r0/b, ..."""
        built = []
        for request_index, request in enumerate(requests):
            specs = (
                [request]
                if isinstance(request, AlternativeSpec)
                else list(request)
            )
            alternatives = []
            for rank, spec in enumerate(specs):
                name = RequestName(
                    f"r{request_index}",
                    "abcdef"[rank] if len(specs) > 1 else "",
                )
                alternatives.append(
                    Alternative(
                        AlternativeIndex(len(self.specs)),
                        name,
                        rank,
                        spec.count,
                        spec.admin,
                        spec.defect,
                    )
                )
                self.specs.append(spec)
            built.append(Request(f"r{request_index}", tuple(alternatives)))
        key = ClaimKey("default", f"claim-{len(self.specs)}")
        return Claim(key, str(key), tuple(built), tuple(constraints))

    def pod(
        self,
        *claims: Claim,
        priority: int = 0,
        weight: int = 1,
        nodes: tuple[NodeIndex, ...] | None = None,
        gang: str = "",
        quorum: int | None = None,
    ) -> int:
        key = ClaimKey("default", f"pod-{len(self.demands)}")
        self.demands.append(
            Demand(key, claims, priority, weight, nodes, gang, quorum)
        )
        return len(self.demands) - 1

    def problem(self) -> Problem:
        return Problem(
            tuple(self.demands),
            tuple(self._node(node, own) for node, own in enumerate(self.own)),
            tuple(self.devices),
            tuple(self.counters),
            self.usage,
            self._eligibility(),
        )

    def _node(self, node: int, own: list[DeviceIndex]) -> Node:
        state = self.states.get(node, PoolState.USABLE)
        mine = PoolAccess(
            PoolID("driver", f"pool-{node}"),
            state,
            tuple(own) if state is PoolState.USABLE else (),
        )
        common = PoolAccess(
            PoolID("driver", "common"), PoolState.USABLE, tuple(self.common)
        )
        return Node(f"node-{node}", (mine, common))

    def _eligibility(self) -> TableEligibility:
        selected: dict[tuple[int, int], bool | AllocationError] = {}
        charges: dict[tuple[int, int], Charge | None] = {}
        for alternative, spec in enumerate(self.specs):
            for device, view in enumerate(self.devices):
                selected[alternative, device] = (
                    spec.only is None or device in spec.only
                )
                if spec.fails and device in spec.fails:
                    selected[alternative, device] = spec.fails[device]
                amounts = spec.capacity or {}
                taken = tuple(
                    (name, amounts.get(name, known.total))
                    for name, known in view.capacity.items()
                )
                charges[alternative, device] = Charge(
                    taken if view.shareable else (),
                    tuple((spec.counters or {}).items()),
                )
        refused = {
            (alternative, device)
            for alternative, spec in enumerate(self.specs)
            for device in spec.refused
        }
        return TableEligibility(selected, frozenset(refused), charges)


def answer(builder: ProblemBuilder, goal: Goal = Goal.NONE) -> Solution:
    """The optimal answer, checked."""
    problem = builder.problem()
    solution = solve(problem, Options(goal=goal))
    check(problem, solution)
    assert solution.status is Status.OPTIMAL
    return replace(solution, timings={})


def placed(solution: Solution) -> list[int]:
    """The placed demands."""
    return [placement.demand for placement in solution.placements]


def devices_of(solution: Solution) -> list[list[int]]:
    """The devices of each placement, of all of its claims in a row."""
    return [
        [grant.device for claim in placement.grants for grant in claim]
        for placement in solution.placements
    ]


def all_but_a_full_device() -> Problem:
    """A pod fills device 0; so a claim for all devices gets device 1 alone. A third one waits for cores of device 0.

    There is room for the first pod on device 1. If it goes there, the claim for all lacks device 0. That claim is one
    of a gang of three, of which the others ask for nothing.
    """
    builder = ProblemBuilder()
    builder.device(capacity={"memory": 1, "cores": 4})
    builder.device(capacity={"memory": 3, "cores": 8})
    filling = AlternativeSpec(capacity={"memory": 1, "cores": 4})
    all_devices = AlternativeSpec(None, capacity={"memory": 1, "cores": 0})
    waiting = AlternativeSpec(only=[0], capacity={"memory": 0, "cores": 4})
    builder.pod(builder.claim(filling))
    builder.pod(builder.claim(all_devices), gang="trio")
    builder.pod(gang="trio")
    builder.pod(gang="trio")
    builder.pod(builder.claim(waiting))
    return builder.problem()


def rack_with_a_waiting_gang() -> Problem:
    """Two racks of two nodes with two devices each, of which six pods take six: no rack is left for a gang of four."""
    builder = ProblemBuilder(nodes=4)
    for node in range(4):
        for _ in range(2):
            builder.device(node)
    for _ in range(6):
        builder.pod(builder.claim(AlternativeSpec()))
    for _ in range(4):
        builder.pod(builder.claim(AlternativeSpec()), gang="quartet")
    problem = builder.problem()
    racks = {
        node.name: f"rack-{node_index // 2}"
        for node_index, node in enumerate(problem.nodes)
    }
    role = Role(OneDomain(racks), carries=True, counts=True)
    demands = [
        replace(demand, roles=(role,)) if demand.gang else demand
        for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))
