"""Devices that nobody reaches, and devices in an order that makes first fit take more than it must."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dralloc.api import UNSET, AttributeValue, DeviceClass, Node, ResourceSlice, Version
from dralloc.api.node_selectors import selector_matches
from dralloc.validate.candidates import Candidates, Offer, find_candidates
from dralloc.validate.places import CLASSES, SLICES
from dralloc.validate.pools import find_pools
from dralloc.validate.rule import Issue, Part, ValidationContext, remarks, warnings
from dralloc.validate.unsatisfiable import find_alternatives

__all__ = ["RULES"]


class _Class(NamedTuple):
    one: DeviceClass
    candidates: Candidates


class _Slice(NamedTuple):
    slice: ResourceSlice
    nodes: Mapping[str, Node]
    unreached: list[Offer]


class _OrderedDevices(NamedTuple):
    """A device and one behind it that takes less of the same counters, and what accepts both."""

    first: Offer
    behind: Offer
    accepted_by: str


class _Typed(NamedTuple):
    """An attribute, with the first device of each type."""

    name: str
    types: dict[str, Offer]


def _classes(context: ValidationContext) -> Iterator[Part[_Class]]:
    candidates = context.view(find_candidates)
    return (Part(owner, "spec", _Class(one, candidates)) for owner, _, one in CLASSES(context))


def _slices(context: ValidationContext) -> Iterator[Part[_Slice]]:
    given = {node.name: node for node in context.cluster.nodes if context.is_given(node)}
    candidates = context.view(find_candidates)
    reached = {offer for name in context.cluster.classes for offer in candidates.of_class(name)}
    unreached: dict[str, list[Offer]] = defaultdict(list)
    for offer in candidates.offers if context.cluster.classes else ():
        if offer not in reached:
            unreached[offer.slice.name].append(offer)
    for owner, path, _ in SLICES(context):
        if isinstance(owner, ResourceSlice):
            yield Part(owner, path, _Slice(owner, given, unreached[owner.name]))


def _no_device(one: _Class, at: str) -> Iterator[Issue]:
    if one.candidates.offers and not one.candidates.of_class(one.one.name):
        yield Issue(f"{at}.selectors", "no device is in the class")


def _fails(one: _Class, at: str) -> Iterator[Issue]:
    for index, message in one.candidates.failures_of_class(one.one.name):
        yield Issue(f"{at}.selectors[{index}].cel.expression", message)


def _unreached(one: _Slice, at: str) -> Iterator[Issue]:
    if one.unreached:
        first, *others = one.unreached
        more = f" and {len(others)} more devices of the slice" if others else ""
        yield Issue(f"{at}.devices[{first.index}]", f'no class accepts "{first.device.name}"{more}')


def _node_exists(one: _Slice, at: str) -> Iterator[Issue]:
    name = one.slice.spec.node_name
    if name and one.nodes and name not in one.nodes:
        yield Issue(f"{at}.nodeName", f'node "{name}" does not exist')


def _nodes_match(one: _Slice, at: str) -> Iterator[Issue]:
    selector = one.slice.spec.node_selector
    if selector is not None and one.nodes and not any(selector_matches(selector, node) for node in one.nodes.values()):
        yield Issue(f"{at}.nodeSelector", "selects no node")


def _orders(context: ValidationContext) -> Iterator[Part[_OrderedDevices]]:
    """The first device of each pool that stands before a smaller one, if something accepts both."""
    accepting = context.view(_accepting)
    for pool in context.view(find_pools):
        offers = [offer for offer in context.view(_offers_by_pool).get(pool.id, ()) if offer.device.consumes_counters]
        found = _first_larger(offers, accepting)
        if found is not None:
            yield Part(found.first.slice, f"spec.devices[{found.first.index}]", found)


def _offers_by_pool(context: ValidationContext) -> Mapping[tuple[str, str], list[Offer]]:
    found: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for offer in context.view(find_candidates).offers:
        found[offer.id.pool_id].append(offer)
    return found


def _accepting(context: ValidationContext) -> dict[Offer, list[str]]:
    """What accepts each device: requests, or classes if nothing is requested."""
    found: dict[Offer, list[str]] = defaultdict(list)
    asked = [one for _, _, requests in context.view(find_alternatives) for request in requests for one in request]
    # Equal requests share the list of their candidates.
    different = {id(one.offers): one for one in reversed(asked)}
    for one in different.values():
        for offer in one.offers:
            found[offer].append(f'request "{one.name}" of {one.owner.title}')
    if not asked:
        candidates = context.view(find_candidates)
        for name in context.cluster.classes:
            for offer in candidates.of_class(name):
                found[offer].append(f'class "{name}"')
    return found


def _first_larger(offers: list[Offer], accepting: Mapping[Offer, list[str]]) -> _OrderedDevices | None:
    alike: dict[tuple[str, ...], list[tuple[Offer, dict[tuple[str, str], int]]]] = defaultdict(list)
    for offer in offers:
        amounts = _amounts(offer)
        sets = tuple(sorted({name for name, _ in amounts}))
        for earlier, more in alike[sets]:
            if _is_less(amounts, more) and (both := _common(earlier, offer, accepting)):
                return _OrderedDevices(earlier, offer, both)
        alike[sets].append((offer, amounts))
    return None


def _amounts(offer: Offer) -> dict[tuple[str, str], int]:
    return {
        (consumption.counter_set, name): consumed.value.nanos
        for consumption in offer.device.consumes_counters
        for name, consumed in consumption.counters.items()
        if consumed.value is not None and consumed.value.nanos
    }


def _is_less(amounts: Mapping[tuple[str, str], int], than: Mapping[tuple[str, str], int]) -> bool:
    return amounts != than and all(amount <= than.get(name, 0) for name, amount in amounts.items())


def _common(first: Offer, second: Offer, accepting: Mapping[Offer, list[str]]) -> str:
    others = set(accepting.get(second, ()))
    return next((name for name in accepting.get(first, ()) if name in others), "")


def _order(one: _OrderedDevices, at: str) -> Iterator[Issue]:
    text = f'"{one.first.device.name}" takes more of the same counters than "{one.behind.device.name}" behind it'
    yield Issue(at, f"{text}, and {one.accepted_by} accepts both: first fit takes the larger one first")


def _types(context: ValidationContext) -> Iterator[Part[_Typed]]:
    found: dict[tuple[str, str], _Typed] = {}
    for offer in context.view(find_candidates).offers:
        for name, value in offer.device.attributes.items():
            qualified = name if "/" in name else f"{offer.id.pool_id.driver}/{name}"
            typed = found.setdefault((offer.id.pool_id.driver, qualified), _Typed(qualified, {}))
            typed.types.setdefault(_type_of(value), offer)
    for typed in found.values():
        last = list(typed.types.values())[-1]
        yield Part(last.slice, f"spec.devices[{last.index}]", typed)


def _type_of(value: AttributeValue) -> str:
    """The type of a value, or of the items of a list, which compare with single values."""
    if isinstance(value, tuple):
        return _type_of(value[0]) if value else ""
    names = {bool: "bool", int: "int", Version: "version", str: "string"}
    return "" if value is UNSET else names.get(type(value), "")


def _one_type(typed: _Typed, at: str) -> Iterator[Issue]:
    types = {name: offer for name, offer in typed.types.items() if name}
    if len(types) > 1:
        first, second = list(types)[:2]
        text = f"has the type {second}, but {first} on device {types[first].id}: they never match"
        yield Issue(f"{at}.attributes[{typed.name}]", text)


RULES: Final = (
    *remarks(_classes, ("class-no-device", _no_device, "Some device is in each class."), origin="KEP-4381"),
    *warnings(
        _classes,
        ("class-selector-fails", _fails, "A class's selector gives an answer for every device that it meets."),
        origin="KEP-4381: a CEL error ends the allocation",
    ),
    *remarks(_slices, ("device-unreached", _unreached, "Some class accepts each device."), origin="KEP-4381"),
    *warnings(
        _slices,
        ("slice-node-missing", _node_exists, "The node of a slice exists."),
        ("slice-no-node", _nodes_match, "The node selector of a slice selects some node."),
        origin="KEP-4381",
    ),
    *warnings(
        _orders,
        (
            "device-order",
            _order,
            "Devices that consume the same counters are listed from small to large, as first fit takes the first.",
        ),
        origin='KEP-4815: "smallest-to-largest order"',
    ),
    *warnings(
        _types,
        ("attribute-type", _one_type, "An attribute has the same type on all devices of a driver."),
        origin="resource.k8s.io types, QualifiedName",
    ),
)
