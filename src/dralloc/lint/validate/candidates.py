"""Which published devices classes and requests accept, whatever is in use, as the match table judges it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from dralloc.compile.inventory import NodeIndex, list_published
from dralloc.compile.match import Criteria, MatchTable, SelectorFailure, TaintRules
from dralloc.lint.validate.places import DETAILS, Details
from dralloc.lint.validate.pools import find_pools
from dralloc.lint.validate.rule import ValidationContext
from dralloc.objects.api import Device, DeviceSelector, ResourceSlice
from dralloc.objects.names import ClaimKey, DeviceID
from kubecel import CelRuntimeError

__all__ = ["Candidates", "Offer", "find_candidates"]

_NOBODY = ClaimKey("", "")


@dataclass(frozen=True, eq=False)
class Offer:
    """A device of the newest generation of its pool, with its number in the inventory and its index in the slice."""

    number: int
    id: DeviceID
    slice: ResourceSlice
    index: int
    device: Device


@dataclass(frozen=True, slots=True)
class _Judged:
    """The offers that a class and selectors accept, and those on which one of them fails."""

    accepted: list[Offer] = field(default_factory=list)
    failed: list[tuple[Offer, SelectorFailure]] = field(default_factory=list)

    def failures(self, *, of_class: bool) -> list[tuple[int, str]]:
        """The selectors of the class or of the request that fail when they run, by index, and words about it."""
        found: dict[int, list[tuple[Offer, CelRuntimeError]]] = defaultdict(list)
        for offer, failure in self.failed:
            if failure.of_class is of_class and isinstance(
                failure.error, CelRuntimeError
            ):
                found[failure.selector].append((offer, failure.error))
        return [(index, _words(failures)) for index, failures in sorted(found.items())]


def _words(failures: list[tuple[Offer, CelRuntimeError]]) -> str:
    offer, error = failures[0]
    more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
    return f"fails on device {offer.id}{more}, which ends the allocation: {error}"


class Candidates:
    """Answers about all offers. Classes and requests are alternatives of one match table."""

    def __init__(self, context: ValidationContext) -> None:
        cluster, features = context.cluster, context.features
        self.classes = cluster.classes
        self._nodes = NodeIndex(cluster.nodes)
        self._node_count = len(cluster.nodes)
        numbers = {id(one): number for number, one in enumerate(cluster.slices)}
        pools = {
            pool.id: [numbers[id(one)] for one in pool.slices]
            for pool in context.view(find_pools)
        }
        rules = TaintRules(
            cluster.taint_rules if features.DeviceTaintRules else (), cluster.classes
        )
        self._table = MatchTable(
            list_published(cluster.slices, pools, self._nodes, features),
            features,
            rules,
        )
        self._of_class = {
            name: self._table.add(Criteria(_NOBODY, one, (), (), ()))
            for name, one in self.classes.items()
        }
        self._of_request = {
            id(request): self._add(request, request.selectors)
            for _, _, request in DETAILS(context)
        }
        self._known: dict[Hashable, _Judged] = {}

    def _add(self, request: Details, selectors: tuple[DeviceSelector, ...]) -> int:
        expressions = tuple(one.cel.expression for one in selectors if one.cel)
        amounts = tuple(request.capacity.requests.items()) if request.capacity else ()
        device_class = self.classes.get(request.device_class_name)
        return self._table.add(
            Criteria(_NOBODY, device_class, expressions, request.tolerations, amounts)
        )

    @cached_property
    def offers(self) -> list[Offer]:
        """Every device."""
        inventory = self._table.inventory
        indices: dict[int, Iterator[int]] = defaultdict(count)
        return [
            Offer(
                number,
                device.id,
                source.slice,
                next(indices[id(source.slice)]),
                source.device,
            )
            for number, (device, source) in enumerate(
                zip(inventory.devices, inventory.sources, strict=True)
            )
        ]

    def key(self, request: Details) -> Hashable:
        """Equal for requests with equal answers."""
        return (
            self._table.request_key(self._of_request[id(request)]),
            request.allocation_mode,
            request.count,
        )

    def of_class(self, name: str) -> list[Offer]:
        """The devices of a class."""
        return (
            self._judged(self._of_class[name]).accepted
            if name in self._of_class
            else []
        )

    def of_request(self, request: Details) -> list[Offer]:
        """The devices that a request's class and selectors accept."""
        known = request.device_class_name in self._of_class
        return self._judged(self._of_request[id(request)]).accepted if known else []

    def of_selectors(self, request: Details, length: int) -> list[Offer]:
        """The devices that a request's class and the first of its selectors accept."""
        return self._judged(self._add(request, request.selectors[:length])).accepted

    def failures_of_class(self, name: str) -> list[tuple[int, str]]:
        """The selectors of a class, by index, that fail on devices which those before accept, and how."""
        return self._judged(self._of_class[name]).failures(of_class=True)

    def failures_of_request(self, request: Details) -> list[tuple[int, str]]:
        """As `failures_of_class`, for the selectors of a request and the devices of its class."""
        known = request.device_class_name in self._of_class
        return (
            self._judged(self._of_request[id(request)]).failures(of_class=False)
            if known
            else []
        )

    def _judged(self, alternative: int) -> _Judged:
        """What class and selectors say of every offer; equal ones are asked once."""
        criteria = self._table.criteria[alternative]
        key = criteria.device_class and criteria.device_class.name, criteria.selectors
        if key not in self._known:
            judged = self._known[key] = _Judged()
            for offer in self.offers:
                verdict = self._table.verdict(alternative, offer.number)
                if isinstance(verdict, SelectorFailure):
                    judged.failed.append((offer, verdict))
                elif verdict:
                    judged.accepted.append(offer)
        return self._known[key]

    def tolerated(self, request: Details) -> list[Offer]:
        """Those candidates of a request whose taints it tolerates."""
        alternative = self._of_request[id(request)]
        return [
            offer
            for offer in self.of_request(request)
            if self._table.admits(alternative, offer.number)
        ]

    def capable(self, request: Details) -> list[Offer]:
        """Those tolerated that have the capacity which the request asks for, as long as nobody else uses it."""
        alternative = self._of_request[id(request)]
        return [
            offer
            for offer in self.tolerated(request)
            if self._table.charge(alternative, offer.number) is not None
        ]

    def most_on_a_node(self, offers: list[Offer]) -> int:
        """How many of the devices one node reaches at most."""
        counts = [0] * self._node_count
        for offer in offers:
            own = self._table.inventory.devices[offer.number].nodes
            for node in self._nodes.of_slice(offer.slice) if own is None else own:
                counts[node] += 1
        return max(counts, default=0)


def find_candidates(context: ValidationContext) -> Candidates:
    """The view of a context."""
    return Candidates(context)
