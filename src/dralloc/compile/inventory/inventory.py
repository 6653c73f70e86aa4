"""The inventory of a cluster: every node with its pools, every device and counter, and what is in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from dralloc.compile.inventory.catalog import Catalog, PublishedDevice
from dralloc.compile.inventory.charges import counters_charged
from dralloc.compile.inventory.groups import Skipped
from dralloc.compile.inventory.pools import NodeIndex, PoolView, PoolViews, find_reach
from dralloc.compile.inventory.usage import held_results, left_of_counters, usage_of
from dralloc.objects.api import Counter as ApiCounter
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.api import ResourceClaim, ResourceSlice
from dralloc.objects.features import Features
from dralloc.objects.names import DeviceID, PoolID
from dralloc.objects.notebook import Brief
from dralloc.problem import Charge, Counter, Device, Node, PoolAccess, PoolState, Usage
from dralloc.problem.ledger import Holding

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
    """

    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]
    sources: tuple[PublishedDevice, ...]
    counters: tuple[Counter, ...]
    published: tuple[ApiCounter, ...]
    usage: Usage
    slots: Mapping[DeviceID, int]
    features: Features

    def newest(self, device: DeviceID) -> int | None:
        """The index of a device; where generations of a pool differ, of what was published last."""
        slot = self.slots.get(device)
        return None if slot is None else self._versions_of(slot)[-1]

    def holdings(self, claims: Iterable[ResourceClaim]) -> Iterator[Holding]:
        """What claims hold of the devices that are published.

        Results with admin access hold nothing (KEP-5018). Those with a share ID hold a share and what it consumes, all
        others the whole device (KEP-5075). What a result recorded for counters that are consumed by request is charged
        in every generation that publishes the device (KEP-5941).
        """
        for claim, result in held_results(claims):
            slot = self.slots.get(result.device_id)
            if slot is not None:
                recorded = result.consumed_capacity
                counters = [
                    charged
                    for version in (self._versions_of(slot) if recorded else ())
                    for charged in counters_charged(
                        recorded, self.sources[version], self.published
                    )
                ]
                # With the gate off, upstream takes a share for the device as a whole.
                share = result.share_id is not None and self.features.ConsumableCapacity
                capacity = tuple(
                    [(name, amount.nanos) for name, amount in recorded.items()]
                )
                yield Holding(claim.key, slot, share, Charge(capacity, tuple(counters)))

    def holding(self, claims: Iterable[ResourceClaim]) -> Inventory:
        """The same with what claims hold of it."""
        holdings = tuple(self.holdings(claims))
        counters = left_of_counters(
            self.counters, self.devices, holdings, self._versions_of
        )
        return replace(self, counters=counters, usage=usage_of(holdings))

    def _versions_of(self, slot: int) -> Sequence[int]:
        """The devices behind a slot. Where each device is published once, slots are numbered as devices are."""
        return (slot,) if len(self.slots) == len(self.devices) else self._versions[slot]

    @cached_property
    def _versions(self) -> Mapping[int, Sequence[int]]:
        indices: dict[int, list[int]] = defaultdict(list)
        for index, device in enumerate(self.devices):
            indices[device.slot].append(index)
        return indices


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
    catalog = Catalog(slices, NodeIndex(nodes), attributes, features)
    allocated = frozenset(result.device_id for _, result in held_results(claims))
    return _inventory(
        tuple(_visit_nodes(nodes, catalog, allocated, closed)), catalog
    ).holding(claims)


def list_published(
    slices: Sequence[ResourceSlice],
    pools: Mapping[PoolID, Sequence[int]],
    nodes: NodeIndex,
    features: Features,
) -> Inventory:
    """Everything in some slices of pools, given by index, whether a node can use it or not; nobody holds anything."""
    catalog = Catalog(slices, nodes, frozenset(), features)
    for pool, indices in pools.items():
        catalog.offer(
            pool,
            PoolView(
                PoolState.USABLE, offered=tuple(indices), considered=tuple(indices)
            ),
        )
    return _inventory((), catalog)


def _inventory(nodes: tuple[Node, ...], catalog: Catalog) -> Inventory:
    return Inventory(
        nodes=nodes,
        devices=tuple(catalog.devices),
        sources=tuple(catalog.sources),
        counters=tuple(catalog.counters),
        published=tuple(catalog.published),
        usage=Usage(frozenset(), {}, {}),
        slots=catalog.slots,
        features=catalog.features,
    )


def _visit_nodes(
    nodes: Sequence[ApiNode],
    catalog: Catalog,
    allocated: frozenset[DeviceID],
    closed: Mapping[PoolID, str],
) -> Iterator[Node]:
    views = PoolViews(catalog.reader, catalog.features)
    pools: dict[PoolID, list[int]] = defaultdict(list)
    for number, slice_ in enumerate(catalog.slices):
        pools[slice_.pool_id].append(number)
    everywhere, by_node = find_reach(catalog.slices, catalog.nodes, catalog.features)

    @cache
    def access(
        pool: PoolID, relevant: tuple[int, ...]
    ) -> tuple[bool, PoolAccess] | None:
        """A pool from nodes to which these slices matter; and whether some of its devices have binding conditions."""
        view = views.view(pools[pool], relevant)
        if view is None:
            return None
        if view.state is PoolState.USABLE and pool in closed:
            return False, PoolAccess(pool, PoolState.INVALID, (), closed[pool])
        offered = catalog.offer(pool, view) if view.offered else ()
        conditional = any(
            catalog.reader.of(index).conditional for index in view.offered
        )
        if not catalog.features.DeviceCompatibilityGroups:
            skipped = Skipped.of(
                (catalog.slices[index] for index in view.considered), allocated
            )
            offered = tuple(
                device
                for device in offered
                if not skipped.concern(catalog.sources[device].device)
            )
        return conditional, PoolAccess(pool, view.state, offered, view.reason)

    # A pool of which a node sees only counters has no devices for it, but it can still be incomplete or invalid.
    counters = {
        pool: access(pool, tuple(relevant))
        for pool, relevant in sorted(everywhere.items())
    }
    unusable = {
        pool: entry
        for pool, entry in counters.items()
        if entry and entry[1].state is not PoolState.USABLE
    }
    for node, reached in zip(nodes, by_node, strict=True):
        seen = {
            pool: access(pool, (*everywhere.get(pool, ()), *relevant))
            for pool, relevant in sorted(reached.items())
        }
        visible = [entry for entry in (unusable | seen).values() if entry is not None]
        # Pools whose devices have binding conditions come last, because the others are simpler to use.
        visible.sort(key=lambda entry: (entry[0], entry[1].id))
        yield Node(node.metadata.name, tuple(pool for _, pool in visible))
