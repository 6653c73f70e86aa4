"""The inventory of a cluster: every node with its pools, every device and counter, and what is in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dralloc.api import Counter as ApiCounter
from dralloc.api import Node as ApiNode
from dralloc.api import ResourceClaim, ResourceSlice
from dralloc.brief import Brief
from dralloc.features import Features
from dralloc.inventory.catalog import Catalog, PublishedDevice
from dralloc.inventory.groups import Skipped
from dralloc.inventory.pools import PoolView, PoolViews
from dralloc.inventory.reach import NodeIndex, find_reach
from dralloc.inventory.usage import HoldingReader, allocated_devices, counters_left, usage_of
from dralloc.names import DeviceID, PoolID
from dralloc.problem import Counter, Device, Node, PoolAccess, PoolState, Usage

__all__ = ["Inventory", "list_published", "take_inventory"]

_NONE: Mapping[PoolID, str] = {}


@dataclass(frozen=True, repr=False)
class Inventory(Brief):
    """What there is to allocate, numbered as the problem numbers it.

    Parameters
    ----------
    nodes, devices, counters, usage
        As `dralloc.problem.Problem` holds them.
    sources
        Where each device was published.
    published
        Each counter as it was published.
    slots
        The slot of each published device.
    reader
        Says what claims hold of all this.
    """

    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]
    sources: tuple[PublishedDevice, ...]
    counters: tuple[Counter, ...]
    published: tuple[ApiCounter, ...]
    usage: Usage
    slots: Mapping[DeviceID, int]
    reader: HoldingReader


def take_inventory(  # noqa: PLR0913 - one parameter for each kind of object, and two choices
    slices: Sequence[ResourceSlice],
    nodes: Sequence[ApiNode],
    claims: Sequence[ResourceClaim],
    attributes: frozenset[str],
    features: Features,
    closed: Mapping[PoolID, str] = _NONE,
) -> Inventory:
    """Number devices and counters, and work out what allocated claims leave of them.

    Parameters
    ----------
    claims
        All claims; only those with an allocation hold something.
    attributes
        Qualified names of the attributes that constraints will compare.
    closed
        Pools that give no devices, with the reason: they count as invalid.
    """
    index = NodeIndex(nodes)
    catalog = Catalog(slices, index, attributes, features, allocated_devices(claims))
    return _inventory(tuple(_visit_nodes(slices, nodes, index, catalog, closed)), catalog, claims)


def _inventory(nodes: tuple[Node, ...], catalog: Catalog, claims: Sequence[ResourceClaim]) -> Inventory:
    reader = HoldingReader(catalog.slots, catalog.devices, catalog.sources, catalog.published, catalog.features)
    holdings = tuple(reader.read(claims))
    return Inventory(
        nodes=nodes,
        devices=tuple(catalog.devices),
        sources=tuple(catalog.sources),
        counters=counters_left(catalog.counters, catalog.devices, holdings, reader),
        published=tuple(catalog.published),
        usage=usage_of(holdings),
        reader=reader,
        slots=catalog.slots,
    )


def list_published(
    slices: Sequence[ResourceSlice], pools: Mapping[PoolID, Sequence[int]], nodes: NodeIndex, features: Features
) -> Inventory:
    """Everything in some slices of pools, given by index, whether a node can use it or not; nobody holds anything."""
    catalog = Catalog(slices, nodes, frozenset(), features)
    for pool, own in pools.items():
        catalog.offer(pool, PoolView(PoolState.USABLE, offered=tuple(own), considered=tuple(own)))
    return _inventory((), catalog, ())


def _visit_nodes(
    slices: Sequence[ResourceSlice],
    nodes: Sequence[ApiNode],
    index: NodeIndex,
    catalog: Catalog,
    closed: Mapping[PoolID, str],
) -> Iterator[Node]:
    features = catalog.features
    views = PoolViews(slices, features, catalog.reader)
    pools: dict[PoolID, list[int]] = defaultdict(list)
    for number, slice_ in enumerate(slices):
        pools[slice_.pool_id].append(number)
    reach = find_reach(slices, index, len(nodes), features)
    accesses: dict[tuple[PoolID, tuple[int, ...]], _VisiblePool | None] = {}

    def access(pool: PoolID, relevant: tuple[int, ...]) -> _VisiblePool | None:
        if (pool, relevant) not in accesses:
            view = views.view(pools[pool], relevant)
            if view is not None and view.state is PoolState.USABLE and pool in closed:
                view = PoolView(PoolState.INVALID, reason=closed[pool])
            accesses[pool, relevant] = None if view is None else _access(pool, view, catalog)
        return accesses[pool, relevant]

    # A pool of which a node sees only counters has no devices for it, but it can still be incomplete or invalid.
    unusable: dict[PoolID, _VisiblePool | None] = {
        pool: entry
        for pool, relevant in sorted(reach.everywhere.items())
        if (entry := access(pool, tuple(relevant))) is not None and entry.pool.state is not PoolState.USABLE
    }
    for node, own in zip(nodes, reach.by_node, strict=True):
        here = {
            pool: access(pool, (*reach.everywhere.get(pool, ()), *relevant)) for pool, relevant in sorted(own.items())
        }
        visible = [entry for entry in (unusable | here).values() if entry is not None]
        yield Node(node.metadata.name, tuple(entry.pool for entry in sorted(visible, key=_search_order)))


@dataclass(frozen=True, slots=True)
class _VisiblePool:
    pool: PoolAccess
    binding_conditions: bool


def _search_order(access: _VisiblePool) -> tuple[bool, PoolID]:
    """Pools whose devices have binding conditions come last, because the others are simpler to use."""
    return access.binding_conditions, access.pool.id


def _access(pool: PoolID, view: PoolView, catalog: Catalog) -> _VisiblePool:
    offered = catalog.offer(pool, view) if view.offered else ()
    conditional = any(catalog.reader.of(catalog.slices[index].spec.devices).conditional for index in view.offered)
    if not catalog.features.DeviceCompatibilityGroups:
        skipped = Skipped.of((catalog.slices[index] for index in view.considered), catalog.allocated)
        offered = tuple(device for device in offered if not skipped.concern(catalog.sources[device].device))
    return _VisiblePool(PoolAccess(pool, view.state, offered, view.reason), conditional)
