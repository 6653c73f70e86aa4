"""How much there is: devices in total, in use, free and held back, by product, node and pool, and amounts."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, Unpack

from pydantic import Field

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.inventory import held_results, product_name, product_names
from dralloc.objects.answer import (
    Amount,
    Document,
    Documented,
    Fields,
    Nanos,
    Word,
)
from dralloc.objects.api import Device as ApiDevice
from dralloc.objects.api import ResourceSlice
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.choices import Choices, NodelessWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError, Finding
from dralloc.objects.names import DeviceID, PoolID
from dralloc.objects.report import Line, Part, Table, amount, counted, percent
from dralloc.objects.value_kinds import TEXT, TEXTS, any_of, takes
from dralloc.problem import Charge, Device, DeviceIndex, PoolState, numbered
from dralloc.problem.ledger import Ledger

__all__ = [
    "AmountRow",
    "CapacityReport",
    "DeviceRow",
    "DeviceState",
    "capacity",
]

NONE: Final = "<none>"
"""Stands for a product that no attribute tells."""

SEVERAL: Final = "(several)"
"""Stands for the node of devices that several nodes reach."""

_KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


class DeviceState(StrEnum):
    """The state of a device for the next claim.

    ``IN_USE``: somebody has it, or a share of it. ``FREE``: it could be given, by itself. ``BLOCKED``: nobody has it,
    and others have what it would draw on (KEP-4815). The rest is held back: by a taint, by its node, or as its pool
    cannot be used.
    """

    IN_USE = "in use"
    FREE = "free"
    BLOCKED = "blocked"
    TAINTED = "tainted"
    CORDONED = "node is cordoned"
    INCOMPLETE = "pool is incomplete"
    INVALID = "pool is invalid"


_HOLDING_BACK: Final = (
    DeviceState.TAINTED,
    DeviceState.CORDONED,
    DeviceState.INCOMPLETE,
    DeviceState.INVALID,
)

_OF_POOL: Final = {
    PoolState.INCOMPLETE: DeviceState.INCOMPLETE,
    PoolState.INVALID: DeviceState.INVALID,
}


_Place = tuple[str, str, str, str, bool]
"""Node, pool, driver, product, and whether the devices are partitions."""


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """How many devices there are of one sort.

    Parameters
    ----------
    driver, product
        Of which driver, and what they are called; the product is empty if no attribute tells.
    node, pool
        Where, if the row is about one node or one pool.
    states
        How many are in each state.
    """

    driver: str
    product: str
    node: str
    pool: str
    states: Mapping[DeviceState, int]
    most_free: int = 0
    """The most that are free on one node."""
    partitions: bool = False
    """Whether they overlap, as they draw on counters."""

    @property
    def total(self) -> int:
        """The number of all of them."""
        return sum(self.states.values())

    @property
    def in_use(self) -> int:
        """The number of devices that claims hold."""
        return self.states.get(DeviceState.IN_USE, 0)

    @property
    def free(self) -> int:
        """The number of those that could be given, each by itself."""
        return self.states.get(DeviceState.FREE, 0)

    @property
    def blocked(self) -> int:
        """The number of those that nobody has, and whose counters others use up."""
        return self.states.get(DeviceState.BLOCKED, 0)

    @property
    def held_back(self) -> Mapping[DeviceState, int]:
        """The number of those that nobody has and that would not be given, by the reason."""
        return {
            state: self.states[state]
            for state in _HOLDING_BACK
            if self.states.get(state)
        }

    @property
    def reasons(self) -> str:
        """The reasons in words, each with how many it holds back if there are several."""
        held = self.held_back
        return ", ".join(
            f"{count} {state}" if len(held) > 1 else str(state)
            for state, count in held.items()
        )


@dataclass(frozen=True, slots=True)
class AmountRow:
    """How much there is of all counters, or of all consumable capacities, of one name."""

    kind: str
    driver: str
    name: str
    total: Nanos
    in_use: Nanos
    largest: Nanos
    """The most that is left in one counter set, or on one device."""

    @property
    def free(self) -> int:
        """The amount that is left."""
        return self.total - self.in_use


class DeviceFields(
    Fields,
    of=DeviceRow,
    shown="driver product node pool total in_use free blocked held_back most_free partitions",
):
    """How many devices there are of one sort."""

    product: Word
    """Null if no attribute tells."""
    node: Word
    """Null in rows about all nodes; ``(several)`` for devices that several nodes reach."""
    pool: Word
    """Null in rows about all pools."""
    total: int
    in_use: int
    free: int
    """Those that could be given, each by itself."""
    blocked: int
    """Those whose counters others use up."""
    held_back: dict[DeviceState, int]


class AmountFields(
    Fields, of=AmountRow, shown="kind driver name total in_use free largest"
):
    """How much there is of all counters, or of all consumable capacities, of one name."""

    free: Amount


class CapacityDocument(Document):
    """What ``dralloc capacity -o json`` prints."""

    by: list[str]
    """The attributes that products are told apart by; empty for the usual ones."""
    products: list[DeviceFields]
    nodes: list[DeviceFields] = Field(validation_alias="by_node")
    pools: list[DeviceFields] = Field(validation_alias="by_pool")
    amounts: list[AmountFields]


@dataclass(frozen=True, repr=False)
class CapacityReport(Documented):
    """How much there is. ``print(report)`` is a readable report.

    Parameters
    ----------
    by
        The attributes that products are told apart by; without any, the usual ones.
    places
        One row for each driver, product, node and pool.
    amounts
        Counters, then capacities, by driver and name.
    findings
        Remarks about the input.

    Examples
    --------
    >>> import dralloc
    >>> report = dralloc.capacity(dralloc.example())
    >>> report.headline
    '3 devices on 2 nodes: 1 in use, 2 free'
    >>> [(row.driver, row.total, row.free, row.most_free) for row in report.products]
    [('gpu.example.com', 3, 2, 2)]
    """

    document = CapacityDocument

    by: tuple[str, ...]
    places: tuple[DeviceRow, ...]
    amounts: tuple[AmountRow, ...]
    node_count: int
    findings: tuple[Finding, ...] = ()

    @cached_property
    def products(self) -> tuple[DeviceRow, ...]:
        """One row for each driver and product."""
        return _summed(self.places)

    @cached_property
    def by_node(self) -> tuple[DeviceRow, ...]:
        """One row for each node, driver and product."""
        return _summed(self.places, per_node=True)

    @cached_property
    def by_pool(self) -> tuple[DeviceRow, ...]:
        """One row for each pool and product."""
        return _summed(self.places, per_pool=True)

    @property
    def headline(self) -> str:
        """All devices in one line."""
        states: Tally[DeviceState] = Tally()
        for row in self.products:
            states.update(row.states)
        counts = [
            f"{states[DeviceState.IN_USE]} in use",
            f"{states[DeviceState.FREE]} free",
        ]
        if states[DeviceState.BLOCKED]:
            counts.append(f"{states[DeviceState.BLOCKED]} blocked")
        held_back = sum(states[state] for state in _HOLDING_BACK)
        if held_back:
            counts.append(f"{held_back} held back")
        partitions = sum(row.total for row in self.products if row.partitions)
        overlap = (
            f" ({partitions} of them partitions, which overlap)"
            if partitions
            else ""
        )
        devices = counted(states.total(), "device")
        nodes = counted(self.node_count, "node")
        return f"{devices}{overlap} on {nodes}: {', '.join(counts)}"

    def names(self) -> Iterable[str]:
        """The nodes with devices."""
        return dict.fromkeys(row.node for row in self.by_node)

    def parts(self) -> list[Part]:
        """The report as tables and lines."""
        by_product = [
            (
                row.driver,
                row.product or NONE,
                *self._numbers(row),
                str(row.most_free),
            )
            for row in self.products
        ]
        by_node = [
            (row.node, row.driver, row.product or NONE, *self._numbers(row))
            for row in self.by_node
        ]
        by_pool = [
            (row.pool, row.driver, row.product or NONE, *self._numbers(row))
            for row in self.by_pool
        ]
        amounts = [_cells(row) for row in self.amounts if row.total]
        titles = tuple(title for title, _ in self._columns)
        columns = (
            "what",
            "driver",
            ">total",
            ">in use",
            ">",
            ">free",
            ">largest left",
        )
        return [
            Line(self.headline, "bold"),
            Table(
                "Devices",
                ("driver", "product", *titles, ">most free on a node"),
                by_product,
            ),
            Table("Counters and capacities", columns, amounts),
            Table("Nodes", ("node", "driver", "product", *titles), by_node),
            Table(
                "Pools",
                ("pool", "driver", "product", *titles),
                by_pool,
                wide=True,
            ),
        ]

    @property
    def _columns(self) -> Sequence[tuple[str, Callable[[DeviceRow], str]]]:
        """Titles and cells of numbers; what no row has has no column."""
        columns: list[tuple[str, Callable[[DeviceRow], str]]] = [
            (">total", lambda row: str(row.total)),
            (">in use", lambda row: str(row.in_use)),
            (">free", lambda row: str(row.free)),
        ]
        if any(row.blocked for row in self.products):
            columns.append((">blocked", lambda row: str(row.blocked)))
        if any(row.held_back for row in self.products):
            columns += [
                (">held back", lambda row: str(sum(row.held_back.values()))),
                ("why", lambda row: row.reasons),
            ]
        return columns

    def _numbers(self, row: DeviceRow) -> tuple[str, ...]:
        return tuple(cell(row) for _, cell in self._columns)


def _cells(row: AmountRow) -> tuple[str, ...]:
    usage = (
        amount(row.total),
        amount(row.in_use),
        percent(row.in_use / row.total),
    )
    return (
        f"{row.kind} {row.name}",
        row.driver,
        *usage,
        amount(row.free),
        amount(row.largest),
    )


def _summed(
    rows: Iterable[DeviceRow], *, per_node: bool = False, per_pool: bool = False
) -> tuple[DeviceRow, ...]:
    """Return one row for all rows of a driver and product, or one for each node or pool."""
    states: dict[_Place, Tally[DeviceState]] = defaultdict(Tally)
    free_on: dict[_Place, Tally[str]] = defaultdict(Tally)
    for row in rows:
        node, pool = row.node if per_node else "", row.pool if per_pool else ""
        key = node, pool, row.driver, row.product, row.partitions
        states[key].update(row.states)
        free_on[key][row.node] += row.free
    return tuple(
        _row(key, tally, max(free_on[key].values()))
        for key, tally in sorted(states.items())
    )


def _row(
    key: _Place, states: Mapping[DeviceState, int], most_free: int
) -> DeviceRow:
    node, pool, driver, product, partitions = key
    return DeviceRow(
        driver, product, node, pool, _in_order(states), most_free, partitions
    )


def _in_order(states: Mapping[DeviceState, int]) -> Mapping[DeviceState, int]:
    return {state: states[state] for state in DeviceState if states.get(state)}


@takes(by=any_of(TEXT, TEXTS))
@spelled_out(NodelessWords)
def capacity(
    cluster: Cluster,
    *,
    by: str | Iterable[str] = (),
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> CapacityReport:
    """Count what there is of devices, counters and capacities, what is in use, and what could still be given.

    Parameters
    ----------
    by
        Attributes that tell products apart, with or without their domain. By default the one of ``productName``,
        ``model``, ``product`` and ``deviceName`` that a device has first, and of partitions their profile.
    choices, words
        As in `dralloc.ask.allocate`; only feature gates and ``strict`` matter.

    Raises
    ------
    DrallocError
        No device has one of the attributes.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.capacity(dralloc.example(), by="memory")
    Traceback (most recent call last):
    dralloc.objects.errors.DrallocError: by: no device has an attribute memory
    """
    compiled = compile_cluster(cluster_of(cluster), Choices.of(choices, words))
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if not any(_has(slice_, name) for slice_ in compiled.cluster.slices):
            raise DrallocError(f"by: no device has an attribute {name}")
    places = _Places(compiled, names)
    return CapacityReport(
        names,
        tuple(places.rows()),
        tuple(_amounts(compiled)),
        len(places.nodes),
        compiled.findings,
    )


def _has(slice_: ResourceSlice, name: str) -> bool:
    """Whether some device of the slice has an attribute."""
    return any(
        device.attribute(name, slice_.spec.driver) is not None
        for device in slice_.spec.devices
    )


class _Places:
    """Counts devices by node, pool, driver and product.

    Attributes
    ----------
    nodes
        The names of the nodes that reach what has been counted.
    """

    def __init__(self, compiled: CompiledCluster, by: Sequence[str]) -> None:
        self._compiled = compiled
        self._by = by
        self._ledger = Ledger(compiled.problem)
        self.nodes: set[str] = set()
        # By pool and selector, as many devices have the same.
        self._reached: dict[tuple[PoolID, int], Sequence[str]] = {}
        self._cordoned = {
            node.metadata.name
            for node in compiled.cluster.nodes
            if node.spec.unschedulable
        }

    def rows(self) -> Iterator[DeviceRow]:
        """Yield one row for each place, in order."""
        states: dict[_Place, Tally[DeviceState]] = defaultdict(Tally)
        for key, state in (*self._usable(), *self._unusable()):
            states[key][state] += 1
        for key, tally in sorted(states.items()):
            yield _row(key, tally, tally[DeviceState.FREE])

    def _usable(self) -> Iterator[tuple[_Place, DeviceState]]:
        """Yield the devices of pools that can be used, of each the newest version."""
        problem = self._compiled.problem
        products = product_names(self._compiled.inventory.sources, self._by)
        for versions in problem.versions.values():
            # While a pool is being updated, the newest version of a device counts.
            device_index = versions[-1]
            device, node = (
                problem.devices[device_index],
                self._node_of.get(device_index, ""),
            )
            key = (
                node,
                device.id.pool,
                device.id.driver,
                products[device_index],
                bool(device.consumes),
            )
            yield key, self._state(device_index, device)

    @cached_property
    def _node_of(self) -> Mapping[int, str]:
        """Return the node of each device, or what stands for several."""
        nodes: dict[int, str] = {}
        for node_number, node in numbered(self._compiled.problem.nodes):
            for device in node.devices():
                if self._compiled.problem.on_node(device, node_number):
                    self.nodes.add(node.name)
                    nodes[device] = SEVERAL if device in nodes else node.name
        return nodes

    def _state(self, device_index: DeviceIndex, device: Device) -> DeviceState:
        # The first that applies: a tainted device that somebody has is in use.
        if self._ledger.is_in_use(device):
            return DeviceState.IN_USE
        table = self._compiled.table
        taints = (
            table.taints(device_index) if table.features.DeviceTaints else ()
        )
        if any(taint.effect in _KEEPING_AWAY for taint in taints):
            return DeviceState.TAINTED
        if self._node_of.get(device_index) in self._cordoned:
            return DeviceState.CORDONED
        return (
            DeviceState.FREE
            if self._ledger.has_counters(device, Charge())
            else DeviceState.BLOCKED
        )

    def _unusable(self) -> Iterator[tuple[_Place, DeviceState]]:
        """Yield the devices of pools that no node can use, as their newest slices list them."""
        cluster, slots = self._compiled.cluster, self._compiled.inventory.slots
        held = {result.device_id for _, result in held_results(cluster.claims)}
        states = {
            pool.id: _OF_POOL[pool.state]
            for node in self._compiled.problem.nodes
            for pool in node.pools
            if pool.state in _OF_POOL
        }
        slices = [
            slice_ for slice_ in cluster.slices if slice_.pool_id in states
        ]
        newest: dict[PoolID, int] = defaultdict(int)
        for slice_ in slices:
            pool = slice_.pool_id
            newest[pool] = max(newest[pool], slice_.spec.pool.generation)
        for slice_ in slices:
            spec, pool = slice_.spec, slice_.pool_id
            for device in (
                spec.devices if spec.pool.generation == newest[pool] else ()
            ):
                identity = DeviceID(*pool, device.name)
                # What has a slot is among the devices that can be used.
                if identity not in slots:
                    homes = self._reaching(slice_, device)
                    self.nodes.update(homes)
                    key = (
                        homes[0] if len(homes) == 1 else SEVERAL,
                        identity.pool,
                        identity.driver,
                        product_name(device, spec.driver, self._by),
                        bool(device.consumes_counters),
                    )
                    in_use = identity in held
                    yield key, DeviceState.IN_USE if in_use else states[pool]

    def _reaching(
        self, slice_: ResourceSlice, device: ApiDevice
    ) -> Sequence[str]:
        """Return the nodes that reach a device of a pool that none can use."""
        name = slice_.spec.node_name or device.node_name
        if name:
            return [name]
        selector = slice_.spec.node_selector or device.node_selector
        key = slice_.pool_id, id(selector)
        if key not in self._reached:
            nodes = self._with_pool[slice_.pool_id]
            self._reached[key] = [
                node.name
                for node in self._compiled.cluster.nodes
                if node.name in nodes
                and (selector is None or selector_matches(selector, node))
            ]
        return self._reached[key]

    @cached_property
    def _with_pool(self) -> Mapping[PoolID, set[str]]:
        """Return the nodes that know of each pool."""
        nodes: dict[PoolID, set[str]] = defaultdict(set)
        for node in self._compiled.problem.nodes:
            for pool in node.pools:
                nodes[pool.id].add(node.name)
        return nodes


_Amounts = dict[tuple[str, str], list[tuple[int, int]]]
"""By driver and name, how much there is in each place and how much of it is free."""


def _amounts(compiled: CompiledCluster) -> Iterator[AmountRow]:
    """Yield counters, then consumable capacities, summed by driver and name."""
    problem = compiled.problem
    counters: _Amounts = defaultdict(list)
    for counter in problem.counters:
        key = counter.id.driver, counter.id.counter
        counters[key].append((counter.total, counter.free))
    capacities: _Amounts = defaultdict(list)
    for slot, versions in problem.versions.items():
        # Of several versions of a device the newest counts. Nothing consumes the capacities of one that cannot be
        # shared.
        device = problem.devices[versions[-1]]
        consumed = problem.usage.consumed.get(slot, {})
        # Somebody may have a shareable device as a whole: then no share of it is free.
        is_held = slot in problem.usage.held
        for entry in device.capacity.values() if device.shareable else ():
            if entry.consumable:
                used = entry.total if is_held else consumed.get(entry.name, 0)
                free = entry.total - used
                key = device.id.driver, entry.name
                capacities[key].append((entry.total, free))
    for kind, amounts in ("counter", counters), ("capacity", capacities):
        for (driver, name), pairs in sorted(amounts.items()):
            totals, frees = zip(*pairs, strict=True)
            # Of an overdrawn counter less than nothing is free: all that is charged is in use, and the most that is
            # left is 0.
            in_use = sum(totals) - sum(frees)
            yield AmountRow(
                kind, driver, name, sum(totals), in_use, max(0, *frees)
            )
