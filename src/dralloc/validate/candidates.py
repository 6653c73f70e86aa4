"""Which published devices classes and requests accept, whatever is in use, as the match table judges it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from dralloc.api import AttributeValue, Device, DeviceSelector, ResourceSlice
from dralloc.inventory import NodeIndex, list_published
from dralloc.match import Criteria, MatchTable, SelectorFailure, TaintRules
from dralloc.names import ClaimKey, DeviceID
from dralloc.validate.places import DETAILS, Details
from dralloc.validate.pools import find_pools
from dralloc.validate.rule import ValidationContext
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

    def attribute(self, name: str) -> AttributeValue | None:
        """A value by its qualified name; the driver's own domain may be left out (KEP-4381)."""
        bare = name.removeprefix(f"{self.id.driver}/")
        return self.device.attributes.get(name, self.device.attributes.get(bare))


class Candidates:
    """Answers about all offers. Classes and requests are alternatives of one match table."""

    def __init__(self, context: ValidationContext) -> None:
        cluster, features = context.cluster, context.features
        self.classes = cluster.classes
        self._nodes = NodeIndex(cluster.nodes)
        self._node_count = len(cluster.nodes)
        numbers = {id(one): number for number, one in enumerate(cluster.slices)}
        pools = {pool.id: [numbers[id(one)] for one in pool.slices] for pool in context.view(find_pools)}
        rules = TaintRules(cluster.taint_rules if features.DeviceTaintRules else (), cluster.classes)
        self._table = MatchTable(list_published(cluster.slices, pools, self._nodes, features), features, rules)
        self._of_class = {
            name: self._table.add(Criteria(_NOBODY, one, (), (), ())) for name, one in self.classes.items()
        }
        self._of_request = {id(request): self._add(request, request.selectors) for _, _, request in DETAILS(context)}
        self._accepted: dict[Hashable, list[Offer]] = {}

    def _add(self, request: Details, selectors: tuple[DeviceSelector, ...]) -> int:
        expressions = tuple(one.cel.expression for one in selectors if one.cel)
        amounts = tuple(request.capacity.requests.items()) if request.capacity else ()
        device_class = self.classes.get(request.device_class_name)
        return self._table.add(Criteria(_NOBODY, device_class, expressions, request.tolerations, amounts))

    @cached_property
    def offers(self) -> list[Offer]:
        """Every device."""
        inventory = self._table.inventory
        indices: dict[int, Iterator[int]] = defaultdict(count)
        return [
            Offer(number, device.id, source.slice, next(indices[id(source.slice)]), source.device)
            for number, (device, source) in enumerate(zip(inventory.devices, inventory.sources, strict=True))
        ]

    def key(self, request: Details) -> Hashable:
        """Equal for requests with equal answers."""
        return self._table.request_key(self._of_request[id(request)]), request.allocation_mode, request.count

    def of_class(self, name: str) -> list[Offer]:
        """The devices of a class."""
        return self._select(self._of_class[name]) if name in self._of_class else []

    def of_request(self, request: Details) -> list[Offer]:
        """The devices that a request's class and selectors accept."""
        if request.device_class_name not in self._of_class:
            return []
        return self._select(self._of_request[id(request)])

    def of_selectors(self, request: Details, length: int) -> list[Offer]:
        """The devices that a request's class and the first of its selectors accept."""
        return self._select(self._add(request, request.selectors[:length]))

    def _select(self, alternative: int) -> list[Offer]:
        criteria = self._table.criteria[alternative]
        key = criteria.device_class and criteria.device_class.name, criteria.selectors
        if key not in self._accepted:
            verdict = self._table.verdict
            self._accepted[key] = [offer for offer in self.offers if verdict(alternative, offer.number) is True]
        return self._accepted[key]

    def failures_of_class(self, name: str) -> list[tuple[int, str]]:
        """The selectors of a class, by index, that fail on devices which those before accept, and how."""
        return self._failures(self._of_class[name], of_class=True)

    def failures_of_request(self, request: Details) -> list[tuple[int, str]]:
        """As `failures_of_class`, for the selectors of a request and the devices of its class."""
        if request.device_class_name not in self._of_class:
            return []
        return self._failures(self._of_request[id(request)], of_class=False)

    def _failures(self, alternative: int, *, of_class: bool) -> list[tuple[int, str]]:
        found: dict[int, list[tuple[Offer, CelRuntimeError]]] = defaultdict(list)
        for offer in self.offers:
            verdict = self._table.verdict(alternative, offer.number)
            if not isinstance(verdict, SelectorFailure) or verdict.of_class is not of_class:
                continue
            if isinstance(verdict.error, CelRuntimeError):
                found[verdict.selector].append((offer, verdict.error))
        return [(index, _failing(failures)) for index, failures in sorted(found.items())]

    def tolerated(self, request: Details) -> list[Offer]:
        """Those candidates of a request whose taints it tolerates."""
        alternative = self._of_request[id(request)]
        return [offer for offer in self.of_request(request) if self._table.admits(alternative, offer.number)]

    def capable(self, request: Details) -> list[Offer]:
        """Those tolerated that have the capacity which the request asks for, as long as nobody else uses it."""
        alternative = self._of_request[id(request)]
        return [offer for offer in self.tolerated(request) if self._table.charge(alternative, offer.number) is not None]

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


def _failing(failures: list[tuple[Offer, CelRuntimeError]]) -> str:
    offer, error = failures[0]
    more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
    return f"fails on device {offer.id}{more}, which ends the allocation: {error}"
