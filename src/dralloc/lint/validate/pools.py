"""Rules about pools, of which the API server sees one slice at a time; and the requests that accept their devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, Final, NamedTuple

from dralloc.compile.inventory import NodeSelections, list_published
from dralloc.compile.match import (
    Criteria,
    MatchTable,
    SelectorFailure,
    TaintRules,
)
from dralloc.compile.match.slips import key_slip
from dralloc.lint.validate.rule import (
    DETAILS,
    Check,
    Details,
    Issue,
    RulePart,
    ValidationContext,
    place_of,
    remarks,
    said,
    walk,
    warnings,
)
from dralloc.objects.api import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    DeviceSelector,
    ResourceSlice,
)
from dralloc.objects.api.slice_reader import LISTS
from dralloc.objects.names import ClaimKey, DeviceID, PoolID
from dralloc.problem import AlternativeIndex, DeviceIndex, numbered
from kubecel import CelRuntimeError

__all__ = ["POOL_RULES", "Candidates", "Offer", "find_candidates", "find_pools"]

# ----------------------------------------------------------------------------
# Pools that do not fit together.
#
# An incomplete or invalid pool gives no device. Source: KEP-4381, "Resource pools";
# KEP-4815, "Resource pool validation".

_ORIGIN_POOL: Final = 'KEP-4381, "Resource pools"'
_ORIGIN_COUNTERS: Final = 'KEP-4815, "Resource pool validation"'


@dataclass(frozen=True)
class Pool:
    """The slices of a pool's newest generation by name, and those that are older."""

    id: PoolID
    generation: int
    slices: list[ResourceSlice] = field(default_factory=list)
    older: list[ResourceSlice] = field(default_factory=list)

    @cached_property
    def named(self) -> Mapping[str, Mapping[str, tuple[ResourceSlice, Any]]]:
        """The devices and counter sets of the pool by list and name, each with its slice; of equal names the first."""
        lists: dict[str, dict[str, tuple[ResourceSlice, Any]]] = {}
        for wire, python in LISTS.items():
            # In reverse, so that the first item of a name is entered last and stays.
            lists[wire] = {
                item.name: (member, item)
                for member in reversed(self.slices)
                for item in reversed(getattr(member.spec, python))
            }
        return lists

    @cached_property
    def consumptions(
        self,
    ) -> list[tuple[ResourceSlice, str, DeviceCounterConsumption]]:
        """The consumptions of all devices, each with its slice and path."""
        return [
            (
                slice_,
                f"spec.devices[{device_index}].consumesCounters[{index}]",
                consumption,
            )
            for slice_ in self.slices
            for device_index, device in enumerate(slice_.spec.devices)
            for index, consumption in enumerate(device.consumes_counters)
        ]


class _PoolSlice(NamedTuple):
    slice: ResourceSlice
    pool: Pool


class _Consumption(NamedTuple):
    """A consumption, and the counter set that its pool publishes. Equal mistakes are told once for a slice."""

    consumption: DeviceCounterConsumption
    published: CounterSet | None
    pool: PoolID
    elsewhere: str
    """Words about the devices with the same mistake."""


def find_pools(context: ValidationContext) -> list[Pool]:
    """Return every pool; a view of the context."""
    by_pool: dict[PoolID, list[ResourceSlice]] = defaultdict(list)
    for published in context.cluster.slices:
        by_pool[published.pool_id].append(published)
    return [_pool(id_, slices) for id_, slices in by_pool.items()]


def _pool(id_: PoolID, slices: list[ResourceSlice]) -> Pool:
    pool = Pool(id_, max(member.spec.pool.generation for member in slices))
    for member in sorted(slices, key=lambda member: member.name):
        is_newest = member.spec.pool.generation == pool.generation
        (pool.slices if is_newest else pool.older).append(member)
    return pool


def _members(context: ValidationContext) -> Iterator[RulePart[_PoolSlice]]:
    for pool in context.view(find_pools):
        for member in (*pool.slices, *pool.older):
            yield RulePart(member, "spec", _PoolSlice(member, pool))


def _consumptions(
    context: ValidationContext,
) -> Iterator[RulePart[_Consumption]]:
    """Yield the first of equal consumptions of each slice."""
    # Hundreds of equal partitions share a mistake, and one line about it is enough.
    for pool in context.view(find_pools):
        equal: dict[
            tuple[str, str],
            list[tuple[ResourceSlice, str, DeviceCounterConsumption]],
        ] = defaultdict(list)
        for slice_, path, consumption in pool.consumptions:
            equal[slice_.name, repr(consumption)].append(
                (slice_, path, consumption)
            )
        for (slice_, path, consumption), *repeated in equal.values():
            _, published = pool.named["sharedCounters"].get(
                consumption.counter_set, (None, None)
            )
            elsewhere = (
                f", here and for {len(repeated)} more devices"
                if repeated
                else ""
            )
            yield RulePart(
                slice_,
                path,
                _Consumption(consumption, published, pool.id, elsewhere),
            )


def _missing_slices(context: ValidationContext) -> Iterator[RulePart[str]]:
    for pool in context.view(find_pools):
        counts = {
            member.spec.pool.resource_slice_count for member in pool.slices
        }
        # Slices that disagree on the count are an issue of their own.
        if len(counts) == 1 and len(pool.slices) not in counts:
            text = f"is {counts.pop()}, but generation {pool.generation} of pool {pool.id} has {len(pool.slices)}"
            text = f"{text}: no device of it can be allocated"
            yield RulePart(pool.slices[0], "spec.pool.resourceSliceCount", text)


def _counts(member: _PoolSlice, at: str) -> Iterator[Issue]:
    # Compared with the first slice by name, so that all issues name the same one.
    first = member.pool.slices[0]
    count, expected = (
        member.slice.spec.pool.resource_slice_count,
        first.spec.pool.resource_slice_count,
    )
    if (
        member.slice.spec.pool.generation == member.pool.generation
        and count != expected
    ):
        yield Issue(
            f"{at}.pool.resourceSliceCount",
            f"{count} differs from the {expected} of {first.title}",
        )


def _generation(member: _PoolSlice, at: str) -> Iterator[Issue]:
    generation = member.slice.spec.pool.generation
    if generation < member.pool.generation:
        yield Issue(
            f"{at}.pool.generation",
            f"{generation} is older than {member.pool.generation}: the slice is ignored",
        )


def _unique(field: str) -> Check:
    """No other slice of the newest generation has something of the same name in a list."""

    def check(member: _PoolSlice, at: str) -> Iterator[Issue]:
        newest = member.slice.spec.pool.generation == member.pool.generation
        for path, item in (
            walk(member.slice.spec, place_of(f"{field}[]"), at)
            if newest
            else ()
        ):
            earlier, _ = member.pool.named[field][item.name]
            if earlier is not member.slice:
                text = f'"{item.name}" is also in {earlier.title}: no device of the pool can be allocated'
                yield Issue(f"{path}.name", text)

    return check


def _set_exists(use: _Consumption, at: str) -> Iterator[Issue]:
    if use.published is None:
        text = f'"{use.consumption.counter_set}" is not published in pool {use.pool}{use.elsewhere}'
        yield Issue(
            f"{at}.counterSet",
            f"{text}: no device of the pool can be allocated",
        )


def _counter_exists(use: _Consumption, at: str) -> Iterator[Issue]:
    for name in use.consumption.counters if use.published else ():
        if use.published and name not in use.published.counters:
            text = f'"{name}" is not in counter set "{use.published.name}" of pool {use.pool}{use.elsewhere}'
            yield Issue(
                f"{at}.counters[{name}]",
                f"{text}: no device of the pool can be allocated",
            )


def _fits(use: _Consumption, at: str) -> Iterator[Issue]:
    published: Mapping[str, Counter] = (
        use.published.counters if use.published else {}
    )
    for name, consumed in use.consumption.counters.items():
        counter = published.get(name)
        if (
            counter is not None
            and consumed.value is not None
            and consumed.value > counter.value
        ):
            text = f"{consumed.value} is more than the whole counter, {counter.value}"
            yield Issue(
                f"{at}.counters[{name}]",
                f"{text}: the device can never be allocated",
            )


def _unused(member: _PoolSlice, at: str) -> Iterator[Issue]:
    used = {
        consumption.counter_set
        for _, _, consumption in member.pool.consumptions
    }
    # The slice that uses a counter set may be one that is still to come.
    complete = (
        len(member.pool.slices) == member.slice.spec.pool.resource_slice_count
    )
    for index, counter_set in enumerate(
        member.slice.spec.shared_counters if complete else ()
    ):
        if counter_set.name not in used:
            yield Issue(
                f"{at}.sharedCounters[{index}]",
                f'no device consumes counters of "{counter_set.name}"',
            )


POOL_RULES: Final = (
    *warnings(
        _missing_slices,
        ("pool-slices", said, "A pool has as many slices as they say."),
        origin=_ORIGIN_POOL,
    ),
    *warnings(
        _members,
        ("pool-counts", _counts, "The slices of a pool agree on their number."),
        (
            "pool-device-unique",
            _unique("devices"),
            "The names of a pool's devices differ.",
        ),
        origin=_ORIGIN_POOL,
    ),
    *remarks(
        _members,
        (
            "pool-older",
            _generation,
            "Only the newest generation of a pool counts.",
        ),
        origin=_ORIGIN_POOL,
    ),
    *warnings(
        _members,
        (
            "pool-set-unique",
            _unique("sharedCounters"),
            "The names of its counter sets differ.",
        ),
        origin=_ORIGIN_COUNTERS,
    ),
    *warnings(
        _consumptions,
        (
            "pool-set",
            _set_exists,
            "Devices consume counters of sets in their pool.",
        ),
        ("pool-counter", _counter_exists, "The sets have these counters."),
        origin=_ORIGIN_COUNTERS,
    ),
    *warnings(
        _consumptions,
        ("pool-counter-size", _fits, "No device consumes more than there is."),
        origin="KEP-4815",
    ),
    *remarks(
        _members,
        ("pool-set-unused", _unused, "Some device consumes each counter set."),
        origin="KEP-4815",
    ),
)


# ----------------------------------------------------------------------------
# Which published devices classes and requests accept, whatever is in use, as the
# match table judges it.

_NOBODY = ClaimKey("", "")


@dataclass(frozen=True, eq=False)
class Offer:
    """A device of the newest generation of its pool, with its number in the inventory and its index in the slice."""

    number: DeviceIndex
    id: DeviceID
    slice: ResourceSlice
    index: int
    device: Device


@dataclass(frozen=True, slots=True)
class _Judged:
    """The offers that class and selectors accept, and those on which a selector fails."""

    criteria: Criteria
    accepted: list[Offer] = field(default_factory=list)
    failed: list[tuple[Offer, SelectorFailure]] = field(default_factory=list)

    def failures(self, *, of_class: bool) -> list[tuple[int, str]]:
        """Return the selectors of the class or of the request that fail when they run, by index, and words about it."""
        by_selector: dict[int, list[tuple[Offer, CelRuntimeError]]] = (
            defaultdict(list)
        )
        for offer, failure in self.failed:
            if failure.of_class is of_class and isinstance(
                failure.error, CelRuntimeError
            ):
                by_selector[failure.selector].append((offer, failure.error))
        expressions = self.criteria.expressions(of_class=of_class)
        return [
            (index, _words(expressions[index], failures))
            for index, failures in sorted(by_selector.items())
        ]


def _words(
    expression: str, failures: list[tuple[Offer, CelRuntimeError]]
) -> str:
    offer, error = failures[0]
    further = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
    text = f"fails on device {offer.id}{further}, which ends the allocation: {error}"
    devices = [(failed.id.driver, failed.device) for failed, _ in failures]
    return text + key_slip(str(error), expression, devices)


class Candidates:
    """Answers about all offers. Classes and requests are alternatives of one match table."""

    def __init__(self, context: ValidationContext) -> None:
        cluster, features = context.cluster, context.features
        self.classes = cluster.classes
        self._nodes = NodeSelections(cluster.nodes)
        self._node_count = len(cluster.nodes)
        slice_indices = {
            id(published): slice_index
            for slice_index, published in enumerate(cluster.slices)
        }
        # Of a pool, only the newest generation publishes devices.
        pools: dict[PoolID, list[int]] = {}
        for pool in context.view(find_pools):
            pools[pool.id] = [
                slice_indices[id(published)] for published in pool.slices
            ]
        rules = TaintRules(
            cluster.taint_rules if features.DeviceTaintRules else (),
            cluster.classes,
        )
        self._table = MatchTable(
            list_published(cluster.slices, pools, self._nodes, features),
            features,
            rules,
        )
        # Criteria name a claim for their messages alone: here nobody asks.
        self._of_class = {
            name: self._table.add(Criteria(_NOBODY, published, (), (), ()))
            for name, published in self.classes.items()
        }
        self._of_request = {
            id(request): self._add(request, request.selectors)
            for _, _, request in DETAILS(context)
        }
        self._known: dict[Hashable, _Judged] = {}

    def _add(
        self, request: Details, selectors: tuple[DeviceSelector, ...]
    ) -> AlternativeIndex:
        expressions = tuple(
            selector.cel.expression for selector in selectors if selector.cel
        )
        amounts = (
            tuple(request.capacity.requests.items()) if request.capacity else ()
        )
        device_class = self.classes.get(request.device_class_name)
        return self._table.add(
            Criteria(
                _NOBODY, device_class, expressions, request.tolerations, amounts
            )
        )

    @cached_property
    def offers(self) -> list[Offer]:
        """Every device."""
        inventory = self._table.inventory
        positions: dict[int, Iterator[int]] = defaultdict(count)
        return [
            Offer(
                device_index,
                device.id,
                source.slice,
                next(positions[id(source.slice)]),
                source.device,
            )
            for (device_index, device), source in zip(
                numbered(inventory.devices), inventory.sources, strict=True
            )
        ]

    def key(self, request: Details) -> Hashable:
        """Return a key that is equal for requests with equal answers."""
        return (
            self._table.request_key(self._of_request[id(request)]),
            request.allocation_mode,
            request.count,
        )

    def of_class(self, name: str) -> list[Offer]:
        """Return the devices of a class."""
        return (
            self._judged(self._of_class[name]).accepted
            if name in self._of_class
            else []
        )

    def of_request(self, request: Details) -> list[Offer]:
        """Return the devices that a request's class and selectors accept."""
        has_class = request.device_class_name in self._of_class
        return (
            self._judged(self._of_request[id(request)]).accepted
            if has_class
            else []
        )

    def of_selectors(self, request: Details, length: int) -> list[Offer]:
        """Return the devices that a request's class and the first of its selectors accept."""
        return self._judged(
            self._add(request, request.selectors[:length])
        ).accepted

    def failures_of_class(self, name: str) -> list[tuple[int, str]]:
        """Return the selectors of a class, by index, that fail on devices which those before accept, and how."""
        return self._judged(self._of_class[name]).failures(of_class=True)

    def failures_of_request(self, request: Details) -> list[tuple[int, str]]:
        """Return the same as `failures_of_class` for the selectors of a request and the devices of its class."""
        has_class = request.device_class_name in self._of_class
        return (
            self._judged(self._of_request[id(request)]).failures(of_class=False)
            if has_class
            else []
        )

    def _judged(self, alternative: AlternativeIndex) -> _Judged:
        """Ask class and selectors about every offer; equal ones are asked once."""
        criteria = self._table.criteria[alternative]
        class_name = (
            criteria.device_class.name if criteria.device_class else None
        )
        key = class_name, criteria.selectors
        if key not in self._known:
            judged = self._known[key] = _Judged(criteria)
            for offer in self.offers:
                verdict = self._table.verdict(alternative, offer.number)
                if isinstance(verdict, SelectorFailure):
                    judged.failed.append((offer, verdict))
                elif verdict:
                    judged.accepted.append(offer)
        return self._known[key]

    def tolerated(self, request: Details) -> list[Offer]:
        """Return the devices of a request whose taints it tolerates."""
        alternative = self._of_request[id(request)]
        return [
            offer
            for offer in self.of_request(request)
            if self._table.admits(alternative, offer.number)
        ]

    def capable(self, request: Details) -> list[Offer]:
        """Return the tolerated devices that have the requested capacity, while nothing else is in use."""
        alternative = self._of_request[id(request)]
        return [
            offer
            for offer in self.tolerated(request)
            if self._table.charge(alternative, offer.number) is not None
        ]

    def most_on_a_node(self, offers: list[Offer]) -> int:
        """Return the largest number of the devices that one node reaches."""
        counts = [0] * self._node_count
        for offer in offers:
            device_nodes = self._table.inventory.devices[offer.number].nodes
            for node in (
                self._nodes.of_slice(offer.slice)
                if device_nodes is None
                else device_nodes
            ):
                counts[node] += 1
        return max(counts, default=0)


def find_candidates(context: ValidationContext) -> Candidates:
    """Return the answers about all offers; a view of the context."""
    return Candidates(context)
