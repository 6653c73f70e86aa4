"""Rules about demand and offer: requests that nothing published could serve, and devices that nobody reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.lint.validate.claims import alternatives, covers
from dralloc.lint.validate.pools import Candidates, Offer, find_candidates, find_pools
from dralloc.lint.validate.rule import (
    SPECS,
    Details,
    Issue,
    Part,
    Row,
    ValidationContext,
    remarks,
    said,
    warnings,
)
from dralloc.objects.api import ApiObject, AttributeValue, DeviceClaim, ResourceClaim
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.api.slices import TYPE_NAMES
from dralloc.objects.report import counted
from kubecel import CelCompileError, compile_selector

__all__ = ["OFFER_RULES", "UNSATISFIABLE_RULES"]

# ----------------------------------------------------------------------------
# Requests that nothing published could serve, even if nothing were in use, and the
# first condition that says no.


class _Stop(NamedTuple):
    """Where a request finds no device any more: the rule that tells it, and at which of its fields."""

    rule: str
    field: str
    message: str


@dataclass(frozen=True, eq=False)
class RequestAlternative:
    """One ``exactly`` or one entry of ``firstAvailable`` of something that is not allocated."""

    owner: ApiObject
    path: str
    name: str
    request: Details
    context: ValidationContext

    @property
    def candidates(self) -> Candidates:
        """What is known of all devices."""
        return self.context.view(find_candidates)

    @property
    def offers(self) -> list[Offer]:
        """The devices that class and selectors accept."""
        return self.candidates.of_request(self.request)

    @property
    def can_be_judged(self) -> bool:
        """Whether there are devices and the class, and all expressions compile: else there are other violations."""
        device_class = self.candidates.classes.get(self.request.device_class_name)
        if device_class is None or not self.candidates.offers:
            return False
        selectors = (*device_class.spec.selectors, *self.request.selectors)
        return all(map(_compiles, (one.cel.expression for one in selectors if one.cel)))

    @cached_property
    def stop(self) -> _Stop | None:
        """What cannot be passed; None if there may be devices."""
        answers = self.context.view(_answers)
        key = self.candidates.key(self.request)
        if key not in answers:
            answers[key] = (
                _stop(self.request, self.candidates) if self.can_be_judged else None
            )
        return answers[key]


def _answers(_context: ValidationContext) -> dict[Hashable, _Stop | None]:
    """The answers so far, by what requests ask for."""
    return {}


def _compiles(expression: str) -> bool:
    try:
        compile_selector(expression)
    except CelCompileError:
        return False
    return True


def _stop(request: Details, candidates: Candidates) -> _Stop | None:
    name, everything = request.device_class_name, len(candidates.offers)
    if not candidates.of_class(name):
        return _Stop(
            "request-no-device",
            ".deviceClassName",
            f'none of {counted(everything, "device")} is in class "{name}"',
        )
    return _selection(request, candidates) or _use(request, candidates)


def _selection(request: Details, candidates: Candidates) -> _Stop | None:
    if candidates.of_request(request):
        return None
    left = [
        len(candidates.of_selectors(request, length))
        for length in range(len(request.selectors) + 1)
    ]
    first = left.index(0) - 1
    before = "that the selectors before leave" if first else "of the class"
    text = f"accepts none of {counted(left[first], 'device')} {before}"
    return _Stop("request-no-device", f".selectors[{first}].cel.expression", text)


def _use(request: Details, candidates: Candidates) -> _Stop | None:
    tolerated = candidates.tolerated(request)
    if not tolerated:
        devices = counted(len(candidates.of_request(request)), "device")
        text = f"tolerates the taints of none of {devices} that it could get"
        return _Stop("request-untolerated", ".tolerations", text)
    capable = candidates.capable(request)
    if not capable:
        text = f"none of {counted(len(tolerated), 'device')} that it could get has this capacity, even unused"
        return _Stop("request-capacity", ".capacity.requests", text)
    most = candidates.most_on_a_node(capable)
    wanted = 1 if request.allocation_mode == "All" else request.count
    if most < wanted:
        text = f"asks for {counted(wanted, 'device')}, but no node has more than {most} that it could get"
        return _Stop("request-too-many", ".count" if most else "", text)
    return None


class _Choice(NamedTuple):
    """An alternative, and whether another would do."""

    alternative: RequestAlternative
    has_other: bool


def find_alternatives(
    context: ValidationContext,
) -> list[tuple[DeviceClaim, str, list[list[RequestAlternative]]]]:
    """For every claim and template without allocation: what it asks for, by request and alternative."""

    def found(
        owner: ApiObject, path: str, spec: DeviceClaim
    ) -> Iterator[list[RequestAlternative]]:
        for request in alternatives(spec, path):
            yield [
                RequestAlternative(owner, at, name, one, context)
                for at, name, one in request
            ]

    return [
        (spec, path, list(found(owner, path, spec)))
        for owner, path, spec in SPECS(context)
        if not (isinstance(owner, ResourceClaim) and owner.is_allocated)
    ]


def _choices(context: ValidationContext) -> Iterator[Part[_Choice]]:
    for _, _, requests in context.view(find_alternatives):
        for every in requests:
            for one in every:
                yield Part(
                    one.owner,
                    one.path,
                    _Choice(
                        one, any(not other.stop for other in every if other is not one)
                    ),
                )


def _stopped(rule: str, help_: str) -> Row:
    """A rule about what stops requests that have no other alternative."""

    def check(choice: _Choice, at: str) -> Iterator[Issue]:
        stop = choice.alternative.stop
        if stop is not None and stop.rule == rule and not choice.has_other:
            yield Issue(at + stop.field, stop.message)

    return rule, check, help_


def _never_taken(choice: _Choice, at: str) -> Iterator[Issue]:
    stop = choice.alternative.stop
    if stop is not None and choice.has_other:
        yield Issue(at + stop.field, f"{stop.message}: the alternative is never taken")


def _class_exists(choice: _Choice, at: str) -> Iterator[Issue]:
    classes, name = (
        choice.alternative.context.cluster.classes,
        choice.alternative.request.device_class_name,
    )
    if classes and name and name not in classes:
        yield Issue(f"{at}.deviceClassName", f'class "{name}" does not exist')


def _class_known(choice: _Choice, at: str) -> Iterator[Issue]:
    if not choice.alternative.context.cluster.classes:
        name = choice.alternative.request.device_class_name
        yield Issue(
            f"{at}.deviceClassName",
            f'class "{name}" cannot be looked up, as no class was given',
        )


def _selector_fails(choice: _Choice, at: str) -> Iterator[Issue]:
    for index, message in choice.alternative.candidates.failures_of_request(
        choice.alternative.request
    ):
        yield Issue(f"{at}.selectors[{index}].cel.expression", message)


def _incomparable(context: ValidationContext) -> Iterator[Part[str]]:
    """Requests of whose devices none has the attribute that a constraint compares."""
    for spec, path, requests in context.view(find_alternatives):
        every = [one for request in requests for one in request]
        for index, constraint in enumerate(spec.constraints):
            attribute = constraint.match_attribute or constraint.distinct_attribute
            covered = [
                one
                for one in every
                if covers(constraint.requests, one.name) and one.offers
            ]
            if not attribute or not all(one.can_be_judged for one in covered):
                continue
            field = (
                "matchAttribute" if constraint.match_attribute else "distinctAttribute"
            )
            for one in covered:
                derived = any(
                    each.name == attribute for each in one.request.derived_attributes
                )
                if not derived and all(
                    each.device.attribute(attribute, each.id.driver) is None
                    for each in one.offers
                ):
                    text = f'none of {counted(len(one.offers), "device")} for request "{one.name}" has the attribute'
                    text = f'{text} "{attribute}": the constraint never holds'
                    yield Part(one.owner, f"{path}.constraints[{index}].{field}", text)


_ORIGIN: Final = "KEP-4381, KEP-4815, KEP-5075: what a device must pass"

UNSATISFIABLE_RULES: Final = (
    *warnings(
        _choices,
        ("request-class-missing", _class_exists, "The class of a request exists."),
        origin="KEP-4381",
    ),
    *remarks(
        _choices,
        (
            "request-class-unknown",
            _class_known,
            "Without classes nobody can tell what matches.",
        ),
        origin="KEP-4381",
    ),
    *warnings(
        _choices,
        _stopped(
            "request-no-device",
            "Some device is in the class of a request and accepted by all of its selectors.",
        ),
        _stopped(
            "request-too-many", "Some node has as many devices as a request asks for."
        ),
        origin=_ORIGIN,
    ),
    *warnings(
        _choices,
        _stopped(
            "request-untolerated",
            "A request tolerates the taints of some device that it selects.",
        ),
        origin="KEP-5055",
    ),
    *warnings(
        _choices,
        _stopped(
            "request-capacity",
            "Some selected device has the capacity that a request asks for, and its policy allows the amount.",
        ),
        origin="KEP-5075",
    ),
    *remarks(
        _choices,
        (
            "alternative-no-device",
            _never_taken,
            "Every alternative of a request can be taken.",
        ),
        origin="KEP-4816",
    ),
    *warnings(
        _choices,
        (
            "selector-fails",
            _selector_fails,
            "A selector gives an answer for every device that it meets.",
        ),
        origin="KEP-4381: a CEL error ends the allocation",
    ),
    *warnings(
        _incomparable,
        (
            "constraint-attribute-missing",
            said,
            "Some device of every request that a constraint covers has its attribute.",
        ),
        origin="KEP-4381",
    ),
)


# ----------------------------------------------------------------------------
# Devices that nobody reaches, and devices in an order that makes first fit take more
# than it must.


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
