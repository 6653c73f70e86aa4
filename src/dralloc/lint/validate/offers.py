"""Devices that nobody reaches, and devices in an order that makes first fit take more than it must."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from dralloc.lint.validate.candidates import Offer, find_candidates
from dralloc.lint.validate.pools import find_pools
from dralloc.lint.validate.rule import Part, ValidationContext, remarks, said, warnings
from dralloc.lint.validate.unsatisfiable import find_alternatives
from dralloc.objects.api import AttributeValue
from dralloc.objects.api.node_selectors import selector_matches
from dralloc.objects.api.values import TYPE_NAMES

__all__ = ["OFFER_RULES"]


def _empty_classes(context: ValidationContext) -> Iterator[Part[str]]:
    candidates = context.view(find_candidates)
    for name, one in context.cluster.classes.items() if candidates.offers else ():
        if not candidates.of_class(name):
            yield Part(one, "spec.selectors", "no device is in the class")


def _failing_selectors(context: ValidationContext) -> Iterator[Part[str]]:
    for name, one in context.cluster.classes.items():
        for index, message in context.view(find_candidates).failures_of_class(name):
            yield Part(one, f"spec.selectors[{index}].cel.expression", message)


def _unreached(context: ValidationContext) -> Iterator[Part[str]]:
    """The first device of each slice that no class accepts."""
    candidates = context.view(find_candidates)
    reached = {
        offer for name in context.cluster.classes for offer in candidates.of_class(name)
    }
    unreached: dict[str, list[Offer]] = defaultdict(list)
    for offer in candidates.offers if context.cluster.classes else ():
        if offer not in reached:
            unreached[offer.slice.name].append(offer)
    for first, *others in unreached.values():
        more = f" and {len(others)} more devices of the slice" if others else ""
        yield Part(
            first.slice,
            f"spec.devices[{first.index}]",
            f'no class accepts "{first.device.name}"{more}',
        )


def _missing_nodes(context: ValidationContext) -> Iterator[Part[str]]:
    given = {node.name for node in context.cluster.nodes if context.is_given(node)}
    for one in context.cluster.slices if given else ():
        name = one.spec.node_name
        if name and name not in given:
            yield Part(one, "spec.nodeName", f'node "{name}" does not exist')


def _idle_selectors(context: ValidationContext) -> Iterator[Part[str]]:
    given = [node for node in context.cluster.nodes if context.is_given(node)]
    for one in context.cluster.slices if given else ():
        selector = one.spec.node_selector
        if selector is not None and not any(
            selector_matches(selector, node) for node in given
        ):
            yield Part(one, "spec.nodeSelector", "selects no node")


def _orders(context: ValidationContext) -> Iterator[Part[str]]:
    """The first device of each pool that stands before a smaller one, if something accepts both."""
    accepting = context.view(_accepting)
    for pool in context.view(find_pools):
        offers = [
            offer
            for offer in context.view(_offers_by_pool).get(pool.id, ())
            if offer.device.consumes_counters
        ]
        if found := _first_larger(offers, accepting):
            first, behind, by = found
            text = f'"{first.device.name}" takes more of the same counters than "{behind.device.name}" behind it'
            text = (
                f"{text}, and {by} accepts both: first fit takes the larger one first"
            )
            yield Part(first.slice, f"spec.devices[{first.index}]", text)


def _offers_by_pool(
    context: ValidationContext,
) -> Mapping[tuple[str, str], list[Offer]]:
    found: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for offer in context.view(find_candidates).offers:
        found[offer.id.pool_id].append(offer)
    return found


def _accepting(context: ValidationContext) -> dict[Offer, list[str]]:
    """What accepts each device: requests, or classes if nothing is requested."""
    found: dict[Offer, list[str]] = defaultdict(list)
    asked = [
        one
        for _, _, requests in context.view(find_alternatives)
        for request in requests
        for one in request
    ]
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


def _first_larger(
    offers: list[Offer], accepting: Mapping[Offer, list[str]]
) -> tuple[Offer, Offer, str] | None:
    """A device, one behind it that takes less of the same counters, and what accepts both."""
    alike: dict[tuple[str, ...], list[tuple[Offer, dict[tuple[str, str], int]]]] = (
        defaultdict(list)
    )
    for offer in offers:
        amounts = _amounts(offer)
        sets = tuple(sorted({name for name, _ in amounts}))
        for earlier, more in alike[sets]:
            if _is_less(amounts, more) and (both := _common(earlier, offer, accepting)):
                return earlier, offer, both
        alike[sets].append((offer, amounts))
    return None


def _amounts(offer: Offer) -> dict[tuple[str, str], int]:
    return {
        (consumption.counter_set, name): consumed.value.nanos
        for consumption in offer.device.consumes_counters
        for name, consumed in consumption.counters.items()
        if consumed.value is not None and consumed.value.nanos
    }


def _is_less(
    amounts: Mapping[tuple[str, str], int], than: Mapping[tuple[str, str], int]
) -> bool:
    return amounts != than and all(
        amount <= than.get(name, 0) for name, amount in amounts.items()
    )


def _common(first: Offer, second: Offer, accepting: Mapping[Offer, list[str]]) -> str:
    others = set(accepting.get(second, ()))
    return next((name for name in accepting.get(first, ()) if name in others), "")


def _types(context: ValidationContext) -> Iterator[Part[str]]:
    """Attributes that have several types on the devices of a driver; with the first device of the last type."""
    found: dict[tuple[str, str], dict[str, Offer]] = defaultdict(dict)
    for offer in context.view(find_candidates).offers:
        for name, value in offer.device.attributes.items():
            qualified = name if "/" in name else f"{offer.id.driver}/{name}"
            found[offer.id.driver, qualified].setdefault(_type_of(value), offer)
    for (_, name), types in found.items():
        known = [type_ for type_ in types if type_]
        if len(known) > 1:
            first, second = known[:2]
            last = list(types.values())[-1]
            text = f"has the type {second}, but {first} on device {types[first].id}: they never match"
            yield Part(
                last.slice, f"spec.devices[{last.index}].attributes[{name}]", text
            )


def _type_of(value: AttributeValue) -> str:
    """The type of a value, or of the items of a list, which compare with single values."""
    if isinstance(value, tuple):
        return _type_of(value[0]) if value else ""
    return TYPE_NAMES.get(type(value), "")


OFFER_RULES: Final = (
    *remarks(
        _empty_classes,
        ("class-no-device", said, "Some device is in each class."),
        origin="KEP-4381",
    ),
    *warnings(
        _failing_selectors,
        (
            "class-selector-fails",
            said,
            "A class's selector gives an answer for every device that it meets.",
        ),
        origin="KEP-4381: a CEL error ends the allocation",
    ),
    *remarks(
        _unreached,
        ("device-unreached", said, "Some class accepts each device."),
        origin="KEP-4381",
    ),
    *warnings(
        _missing_nodes,
        ("slice-node-missing", said, "The node of a slice exists."),
        origin="KEP-4381",
    ),
    *warnings(
        _idle_selectors,
        ("slice-no-node", said, "The node selector of a slice selects some node."),
        origin="KEP-4381",
    ),
    *warnings(
        _orders,
        (
            "device-order",
            said,
            "Devices that consume the same counters are listed from small to large, as first fit takes the first.",
        ),
        origin='KEP-4815: "smallest-to-largest order"',
    ),
    *warnings(
        _types,
        (
            "attribute-type",
            said,
            "An attribute has the same type on all devices of a driver.",
        ),
        origin="resource.k8s.io types, QualifiedName",
    ),
)
