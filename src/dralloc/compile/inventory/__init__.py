"""The inventory: newest complete pools, devices in search order, and what allocated claims leave of them.

Below, the inventory of a cluster: every node with its pools, every device and counter, and what is in use. First what
one allocation of a device takes of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

from dralloc.compile.inventory.catalog import (
    Catalog,
    PublishedDevice,
    compared_values,
)
from dralloc.compile.inventory.compatibility_groups import Skipped
from dralloc.compile.inventory.pools import (
    NodeSelections,
    PoolView,
    PoolViews,
    find_reach,
)
from dralloc.compile.inventory.product_names import product_name, product_names
from dralloc.compile.inventory.usage import (
    Drift,
    find_drift,
    held_results,
    left_of_counters,
    usage_of,
)
from dralloc.objects.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
    ResourceClaim,
    ResourceSlice,
)
from dralloc.objects.api import Counter as ApiCounter
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.names import DeviceID, PoolID
from dralloc.objects.notebook import Brief
from dralloc.objects.quantity import NANOS, Format, Quantity
from dralloc.problem import (
    Charge,
    Counter,
    CounterIndex,
    Device,
    DeviceIndex,
    Node,
    Numbered,
    PoolAccess,
    PoolState,
    SlotIndex,
    Usage,
    numbered,
)
from dralloc.problem.ledger import Holding

__all__ = [
    "Drift",
    "Inventory",
    "NodeSelections",
    "PublishedDevice",
    "amount_taken",
    "amount_within",
    "charge_for",
    "compared_values",
    "counters_charged",
    "find_drift",
    "find_reach",
    "held_results",
    "list_published",
    "product_name",
    "product_names",
    "take_inventory",
]

# ----------------------------------------------------------------------------
# What one allocation of a device takes (KEP-5075 "Scheduler", KEP-5941 "Allocation
# behavior").
#
# Request policies are upstream's: values are compared exactly, steps are counted in
# whole units, or in thousandths where the range has fractions and
# DRAFractionalCapacityRange is on. A step that is not above zero, which the API server
# refuses and upstream's allocator divides by, makes no amount valid but the default.

_MILLI: Final = NANOS // 1000

Counters = Sequence[ApiCounter] | Mapping[int, ApiCounter]


def charge_for(
    requested: Mapping[str, Quantity],
    source: PublishedDevice,
    counters: Counters,
    features: Features,
    *,
    shareable: bool,
) -> Charge | None:
    """Return the charge of an allocation of the device to a request for these amounts.

    Parameters
    ----------
    requested
        Amounts by capacity name, exactly as the request spells the names.
    counters
        The counters as they were published, by their index.
    features
        Whether ranges may be in fractions.

    Returns
    -------
    Charge or None
        None if the device lacks a requested capacity, has less than is asked for, or a policy forbids the amount.
    """
    capacity = source.device.capacity
    keys = {key for _, key in source.requested_counters}
    if not requested.keys() <= capacity.keys() | keys:
        return None
    # A device that cannot be shared must have what is asked for, too, although nothing of it is consumed.
    capacity_amounts = _capacity_taken(requested, capacity, features)
    if capacity_amounts is None:
        return None
    recorded = capacity_amounts if shareable else {}
    if keys:
        # A counter that follows a consumed capacity goes by what the capacity's policy has made of the request.
        by_request = _recorded_by_request(
            {**requested, **recorded}, source, counters, features
        )
        if by_request is None:
            return None
        recorded = {**by_request, **recorded}
    return Charge(
        capacity=tuple(
            (name, amount.nanos) for name, amount in capacity_amounts.items()
        )
        if shareable
        else (),
        counters=tuple(counters_charged(recorded, source, counters, features)),
        recorded=tuple(recorded.items()),
    )


def _capacity_taken(
    requested: Mapping[str, Quantity],
    capacity: Mapping[str, DeviceCapacity],
    features: Features,
) -> dict[str, Quantity] | None:
    """The amount of each consumable capacity; None if one of them is short or its policy says no."""
    amounts = {}
    for name, entry in capacity.items():
        if entry.consumable:
            amount = amount_taken(
                requested.get(name),
                entry.value,
                entry.request_policy,
                features,
            )
        else:
            amount = requested.get(name, entry.value)
        if amount is None or amount > entry.value:
            return None
        if entry.consumable:
            amounts[name] = amount
    return amounts


def _recorded_by_request(
    requested: Mapping[str, Quantity],
    source: PublishedDevice,
    counters: Counters,
    features: Features,
) -> dict[str, Quantity] | None:
    """The amounts to record for counters that are consumed by request, by capacity key.

    Several counters may follow one key with policies of their own: the largest amount is recorded, and each counter is
    charged what its policy makes of the recorded amount, so that the charge can be rebuilt from the record.
    """
    recorded: dict[str, Quantity] = {}
    for index, key in source.requested_counters:
        counter = counters[index]
        amount = amount_taken(
            requested.get(key), counter.value, counter.request_policy, features
        )
        if amount is None:
            return None
        recorded[key] = max(recorded.get(key, amount), amount)
    return recorded


def counters_charged(
    recorded: Mapping[str, Quantity],
    source: PublishedDevice,
    counters: Counters,
    features: Features,
) -> Iterator[tuple[CounterIndex, int]]:
    """Yield the counters that an allocation with that ``consumedCapacity`` charges by request, each with its nanos."""
    for index, key in source.requested_counters:
        if key in recorded:
            counter = counters[index]
            amount = (
                amount_taken(
                    recorded[key],
                    counter.value,
                    counter.request_policy,
                    features,
                )
                or recorded[key]
            )
            yield index, amount.nanos


def amount_taken(
    requested: Quantity | None,
    total: Quantity,
    policy: CapacityRequestPolicy | None,
    features: Features = ALL_FEATURES,
) -> Quantity | None:
    """The amount that is consumed of something with that total value and request policy (KEP-5075, "Request policy").

    Parameters
    ----------
    requested
        What the request asks for; None if it does not mention it: then the policy's default, without one everything.
    features
        Whether ranges may be in fractions.

    Returns
    -------
    Quantity or None
        None if the policy forbids the amount. Whether it is still available is not looked at.
    """
    if requested is None:
        amount = (
            policy.default
            if policy is not None and policy.default is not None
            else total
        )
    elif policy is None:
        return requested
    # The amount is rounded up to one that the policy allows. What no rounding can help is not allowed in the end.
    elif policy.valid_range is not None:
        amount = _rounded_into(policy.valid_range, requested, features)
    else:
        amount = next(
            (value for value in policy.valid_values if requested <= value),
            requested,
        )
    return (
        amount
        if policy is None
        or amount == policy.default
        or _allowed(policy, amount, features)
        else None
    )


def amount_within(
    limit: Quantity,
    policy: CapacityRequestPolicy | None,
    features: Features = ALL_FEATURES,
) -> Quantity | None:
    """The largest amount up to a limit that a policy grants as it is asked for; None if it grants nothing so small."""
    if policy is None:
        return limit
    valid = policy.valid_range
    if valid is None:
        values = policy.valid_values or (limit,)
        return max((value for value in values if value <= limit), default=None)
    most = limit if valid.max is None else min(limit, valid.max)
    if most < valid.min:
        return None
    if valid.step is None:
        return most
    unit = _unit(valid, features)
    lowest, step = _counted(valid.min, unit), _counted(valid.step, unit)
    if step <= 0:
        return None
    steps = (most.nanos // unit - lowest) // step
    # A minimum that is no whole unit counts as one more, and is granted as it is.
    return (
        valid.min
        if steps < 0
        else Quantity((lowest + steps * step) * unit, limit.format)
    )


def _unit(valid: CapacityRequestPolicyRange, features: Features) -> int:
    """The nanos in which steps of a range are counted (``useMilli`` of ``consumable_capacity.go``)."""
    bounds = [
        bound
        for bound in (valid.min, valid.max, valid.step)
        if bound is not None
    ]
    if not features.FractionalCapacityRange or valid.step is None:
        return NANOS
    is_fractional = any(bound.nanos % NANOS for bound in bounds)
    is_milli = all(
        bound.nanos % _MILLI == 0 and abs(bound.nanos) < 2**63 * _MILLI
        for bound in bounds
    )
    if is_fractional and is_milli and valid.step.nanos >= _MILLI:
        return _MILLI
    return NANOS


def _counted(quantity: Quantity, unit: int) -> int:
    """The value in units of so many nanos, rounded up."""
    return -(-quantity.nanos // unit)


def _rounded_into(
    valid: CapacityRequestPolicyRange, requested: Quantity, features: Features
) -> Quantity:
    if requested < valid.min:
        return valid.min
    unit = _unit(valid, features)
    if valid.step is None or _counted(valid.step, unit) <= 0:
        return requested
    if unit == _MILLI and requested.nanos % _MILLI:
        # Upstream gives up on what is finer; it is no multiple of a step.
        return requested
    lowest, step = _counted(valid.min, unit), _counted(valid.step, unit)
    # Up to the next step above the lowest amount.
    steps = -(-(_counted(requested, unit) - lowest) // step)
    format_ = valid.step.format if unit == _MILLI else Format.BINARY
    return Quantity((lowest + steps * step) * unit, format_)


def _allowed(
    policy: CapacityRequestPolicy, amount: Quantity, features: Features
) -> bool:
    valid = policy.valid_range
    if valid is None:
        return not policy.valid_values or amount in policy.valid_values
    if valid.max is not None and amount > valid.max:
        return False
    unit = _unit(valid, features)
    if unit == _MILLI and amount.nanos % _MILLI:
        return False
    step = None if valid.step is None else _counted(valid.step, unit)
    above = _counted(amount, unit) - _counted(valid.min, unit)
    return step is None or (step > 0 and above % step == 0)


_NONE: Mapping[PoolID, str] = {}


@dataclass(frozen=True, repr=False)
class Inventory(Brief):
    """The devices, counters, nodes and usage of a cluster, numbered as the problem numbers them.

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
    devices: Numbered[DeviceIndex, Device]
    sources: tuple[PublishedDevice, ...]
    counters: tuple[Counter, ...]
    published: tuple[ApiCounter, ...]
    usage: Usage
    slots: Mapping[DeviceID, SlotIndex]
    features: Features

    def newest(self, device: DeviceID) -> DeviceIndex | None:
        """The index of a device; where generations of a pool differ, of what was published last."""
        slot = self.slots.get(device)
        return None if slot is None else self._versions_of(slot)[-1]

    def holdings(self, claims: Iterable[ResourceClaim]) -> Iterator[Holding]:
        """Yield the holdings of claims in published devices.

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
                        recorded,
                        self.sources[version],
                        self.published,
                        self.features,
                    )
                ]
                # With the gate off, upstream takes a share for the device as a whole.
                share = (
                    result.share_id is not None
                    and self.features.ConsumableCapacity
                )
                capacity = tuple(
                    [(name, amount.nanos) for name, amount in recorded.items()]
                )
                yield Holding(
                    claim.key, slot, share, Charge(capacity, tuple(counters))
                )

    def holding(self, claims: Iterable[ResourceClaim]) -> Inventory:
        """Return the inventory with the holdings of claims."""
        holdings = tuple(self.holdings(claims))
        counters = left_of_counters(
            self.counters, self.devices, holdings, self._versions_of
        )
        return replace(self, counters=counters, usage=usage_of(holdings))

    def _versions_of(self, slot: SlotIndex) -> Sequence[DeviceIndex]:
        """The devices behind a slot. Where each device is published once, slots are numbered as devices are."""
        return (
            (DeviceIndex(slot),)
            if len(self.slots) == len(self.devices)
            else self._versions[slot]
        )

    @cached_property
    def _versions(self) -> Mapping[int, Sequence[DeviceIndex]]:
        versions: dict[int, list[DeviceIndex]] = defaultdict(list)
        for index, device in numbered(self.devices):
            versions[device.slot].append(index)
        return versions


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
    catalog = Catalog(slices, NodeSelections(nodes), attributes, features)
    allocated = frozenset(
        result.device_id for _, result in held_results(claims)
    )
    return _inventory(
        tuple(_visit_nodes(nodes, catalog, allocated, closed)), catalog
    ).holding(claims)


def list_published(
    slices: Sequence[ResourceSlice],
    pools: Mapping[PoolID, Sequence[int]],
    nodes: NodeSelections,
    features: Features,
) -> Inventory:
    """Return everything in some slices of pools, given by index, whether a node can use it or not, without usage."""
    catalog = Catalog(slices, nodes, frozenset(), features)
    for pool, indices in pools.items():
        catalog.offer(
            pool,
            PoolView(
                PoolState.USABLE,
                offered=tuple(indices),
                considered=tuple(indices),
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
    for slice_index, slice_ in enumerate(catalog.slices):
        pools[slice_.pool_id].append(slice_index)
    everywhere, by_node = find_reach(
        catalog.slices, catalog.nodes, catalog.features
    )

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

    def in_order(
        with_counters: Sequence[int], relevant: Sequence[int]
    ) -> tuple[int, ...]:
        """The slices that matter to a node, in upstream's order: the first says how many there have to be.

        Those that name the node come first, then all others as they are given (``slicesOnNode``, ``slicesShared``).
        """
        named = [
            index for index in relevant if catalog.slices[index].spec.node_name
        ]
        others = [index for index in relevant if index not in named]
        shared = sorted((*with_counters, *others)) if others else with_counters
        return (*named, *shared)

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
            pool: access(pool, in_order(everywhere.get(pool, ()), relevant))
            for pool, relevant in sorted(reached.items())
        }
        visible = [
            entry for entry in (unusable | seen).values() if entry is not None
        ]
        # Pools whose devices have binding conditions come last, because the others are simpler to use.
        visible.sort(key=lambda entry: (entry[0], entry[1].id))
        yield Node(node.metadata.name, tuple(pool for _, pool in visible))
