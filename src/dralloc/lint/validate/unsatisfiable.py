"""Rules about demand and supply: requests that no published device could serve, and devices without a request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.compile.match.slips import Published, capacity_slips, value_slips
from dralloc.lint.validate.pools import (
    Candidates,
    Offer,
    find_candidates,
    find_pools,
)
from dralloc.lint.validate.references import alternatives, covers
from dralloc.lint.validate.rule import (
    SPECS,
    Details,
    Issue,
    Row,
    RulePart,
    ValidationContext,
    remarks,
    said,
    warnings,
)
from dralloc.objects.api import (
    ApiObject,
    AttributeValue,
    DeviceClaim,
    DeviceClass,
    DeviceSelector,
    ResourceClaim,
)
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.api.slices import TYPE_NAMES
from dralloc.objects.errors import did_you_mean
from dralloc.objects.report import counted
from kubecel import CelCompileError, compile_selector

__all__ = ["OFFER_RULES", "UNSATISFIABLE_RULES"]

# ----------------------------------------------------------------------------
# Requests that nothing published could serve, even if nothing were in use, and the
# first condition that says no.


class _Stop(NamedTuple):
    """The rule by which no device is left for a request, and the field that it is about."""

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
        """The answers about all devices."""
        return self.context.view(find_candidates)

    @property
    def offers(self) -> list[Offer]:
        """The devices that class and selectors accept."""
        return self.candidates.of_request(self.request)

    @property
    def can_be_judged(self) -> bool:
        """Whether there are devices and the class, and all expressions compile: else there are other violations."""
        device_class = self.candidates.classes.get(
            self.request.device_class_name
        )
        if device_class is None or not self.candidates.offers:
            return False
        selectors = (*device_class.spec.selectors, *self.request.selectors)
        return _compile(selectors)

    @cached_property
    def stop(self) -> _Stop | None:
        """The first condition that no device passes; None if there may be devices."""
        answers = self.context.view(_answers)
        key = self.candidates.key(self.request)
        if key not in answers:
            answers[key] = (
                _stop(self.request, self.candidates)
                if self.can_be_judged
                else None
            )
        return answers[key]


def _answers(_context: ValidationContext) -> dict[Hashable, _Stop | None]:
    """Return the answers so far, by what requests ask for."""
    return {}


def _compile(selectors: Iterable[DeviceSelector]) -> bool:
    """Return whether all expressions compile."""
    try:
        for selector in selectors:
            if selector.cel:
                compile_selector(selector.cel.expression)
    except CelCompileError:
        return False
    return True


def _judges(device_class: DeviceClass) -> bool:
    """Return whether a class has no defect of its own, for which there are other violations."""
    return _compile(device_class.spec.selectors)


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
    # How many devices the class and the first 0, 1, 2, ... selectors accept: the first
    # selector that brings it to 0 is the one to look at.
    accepted_counts = [
        len(candidates.of_selectors(request, length))
        for length in range(len(request.selectors) + 1)
    ]
    first = accepted_counts.index(0) - 1
    before = "that the selectors before leave" if first else "of the class"
    # Where it fails, there is another violation.
    if first in dict(candidates.failures_of_request(request)):
        return _Stop("selector-fails", "", "fails")
    text = (
        f"accepts none of {counted(accepted_counts[first], 'device')} {before}"
    )
    selector = request.selectors[first].cel
    if selector:
        before_it = candidates.of_selectors(request, first)
        text += value_slips(selector.expression, _published(before_it))
    return _Stop(
        "request-no-device", f".selectors[{first}].cel.expression", text
    )


def _published(offers: Iterable[Offer]) -> list[Published]:
    return [(offer.id.driver, offer.device) for offer in offers]


def _use(request: Details, candidates: Candidates) -> _Stop | None:
    tolerated = candidates.tolerated(request)
    if not tolerated:
        devices = counted(len(candidates.of_request(request)), "device")
        text = f"tolerates the taints of none of {devices} that it could get"
        return _Stop("request-untolerated", ".tolerations", text)
    capable = candidates.capable(request)
    if not capable:
        text = f"none of {counted(len(tolerated), 'device')} that it could get has this capacity, even unused"
        if request.capacity:
            text += capacity_slips(
                request.capacity.requests, _published(tolerated)
            )
        return _Stop("request-capacity", ".capacity.requests", text)
    most_on_a_node = candidates.most_on_a_node(capable)
    # "All" takes what a node has, but at least one device.
    required = 1 if request.allocation_mode == "All" else request.count
    if most_on_a_node < required:
        text = f"asks for {counted(required, 'device')}, but no node has more than {most_on_a_node} that it could get"
        return _Stop(
            "request-too-many", ".count" if most_on_a_node else "", text
        )
    return None


class _Choice(NamedTuple):
    """An alternative, and whether another would do."""

    alternative: RequestAlternative
    has_other: bool


def _find_alternatives(
    context: ValidationContext,
) -> list[tuple[DeviceClaim, str, list[list[RequestAlternative]]]]:
    """Return the alternatives of every claim and template without allocation, by request."""

    def found(
        owner: ApiObject, path: str, spec: DeviceClaim
    ) -> Iterator[list[RequestAlternative]]:
        for request in alternatives(spec, path):
            yield [
                RequestAlternative(owner, at, name, details, context)
                for at, name, details in request
            ]

    return [
        (spec, path, list(found(owner, path, spec)))
        for owner, path, spec in SPECS(context)
        if not (isinstance(owner, ResourceClaim) and owner.is_allocated)
    ]


def _choices(context: ValidationContext) -> Iterator[RulePart[_Choice]]:
    for _, _, requests in context.view(_find_alternatives):
        for request in requests:
            # A request with firstAvailable is served as long as one of them can be.
            servable = sum(not alternative.stop for alternative in request)
            for alternative in request:
                other_servable = servable - (not alternative.stop)
                yield RulePart(
                    alternative.owner,
                    alternative.path,
                    _Choice(alternative, other_servable > 0),
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
        yield Issue(
            at + stop.field, f"{stop.message}: the alternative is never taken"
        )


def _class_exists(choice: _Choice, at: str) -> Iterator[Issue]:
    classes, name = (
        choice.alternative.context.cluster.classes,
        choice.alternative.request.device_class_name,
    )
    if classes and name and name not in classes:
        text = f'class "{name}" does not exist{did_you_mean(name, classes)}'
        yield Issue(f"{at}.deviceClassName", text)


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


def _incomparable(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Requests of whose devices none has the attribute that a constraint compares."""
    for spec, path, requests in context.view(_find_alternatives):
        requested = [
            alternative for request in requests for alternative in request
        ]
        for index, constraint in enumerate(spec.constraints):
            attribute = (
                constraint.match_attribute or constraint.distinct_attribute
            )
            covered = [
                alternative
                for alternative in requested
                if covers(constraint.requests, alternative.name)
                and alternative.offers
            ]
            # Where a class or a selector has a defect, other violations say so, and the devices are not known.
            if not attribute or not all(
                alternative.can_be_judged for alternative in covered
            ):
                continue
            field = (
                "matchAttribute"
                if constraint.match_attribute
                else "distinctAttribute"
            )
            for alternative in covered:
                # A derived attribute is not published: an expression computes it for each candidate.
                derived = any(
                    derivation.name == attribute
                    for derivation in alternative.request.derived_attributes
                )
                if not derived and all(
                    offer.device.attribute(attribute, offer.id.driver) is None
                    for offer in alternative.offers
                ):
                    devices = counted(len(alternative.offers), "device")
                    text = f'none of {devices} for request "{alternative.name}" has the attribute "{attribute}"'
                    text = f"{text}: the constraint never holds"
                    yield RulePart(
                        alternative.owner,
                        f"{path}.constraints[{index}].{field}",
                        text,
                    )


_ORIGIN: Final = "KEP-4381, KEP-4815, KEP-5075: what a device must pass"

UNSATISFIABLE_RULES: Final = (
    *warnings(
        _choices,
        (
            "request-class-missing",
            _class_exists,
            "The class of a request exists.",
        ),
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
            "request-too-many",
            "Some node has as many devices as a request asks for.",
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


def _empty_classes(context: ValidationContext) -> Iterator[RulePart[str]]:
    candidates = context.view(find_candidates)
    for name, device_class in (
        context.cluster.classes.items() if candidates.offers else ()
    ):
        if _judges(device_class) and not candidates.of_class(name):
            yield RulePart(
                device_class, "spec.selectors", "no device is in the class"
            )


def _failing_selectors(context: ValidationContext) -> Iterator[RulePart[str]]:
    for name, device_class in context.cluster.classes.items():
        for index, message in context.view(find_candidates).failures_of_class(
            name
        ):
            yield RulePart(
                device_class, f"spec.selectors[{index}].cel.expression", message
            )


def _unreached(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Yield the first device of each slice that no class accepts."""
    candidates = context.view(find_candidates)
    reached = {
        offer
        for name in context.cluster.classes
        for offer in candidates.of_class(name)
    }
    unreached: dict[str, list[Offer]] = defaultdict(list)
    classes = context.cluster.classes.values()
    # What a class with a defect would accept, nobody knows.
    is_clear = classes and all(map(_judges, classes))
    for offer in candidates.offers if is_clear else ():
        if offer not in reached:
            unreached[offer.slice.name].append(offer)
    for first, *following in unreached.values():
        further = (
            f" and {len(following)} more devices of the slice"
            if following
            else ""
        )
        yield RulePart(
            first.slice,
            f"spec.devices[{first.index}]",
            f'no class accepts "{first.device.name}"{further}',
        )


def _missing_nodes(context: ValidationContext) -> Iterator[RulePart[str]]:
    node_names = {
        node.name for node in context.cluster.nodes if context.is_given(node)
    }
    for published in context.cluster.slices if node_names else ():
        name = published.spec.node_name
        if name and name not in node_names:
            text = f'node "{name}" does not exist'
            meant = did_you_mean(name, node_names)
            yield RulePart(published, "spec.nodeName", text + meant)


def _idle_selectors(context: ValidationContext) -> Iterator[RulePart[str]]:
    nodes = [node for node in context.cluster.nodes if context.is_given(node)]
    for published in context.cluster.slices if nodes else ():
        selector = published.spec.node_selector
        if selector is not None and not any(
            selector_matches(selector, node) for node in nodes
        ):
            yield RulePart(published, "spec.nodeSelector", "selects no node")


def _orders(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Yield the first device of each pool that stands before a smaller one, if something accepts both."""
    accepting = context.view(_accepting)
    for pool in context.view(find_pools):
        offers = [
            offer
            for offer in context.view(_offers_by_pool).get(pool.id, ())
            if offer.device.consumes_counters
        ]
        if misplaced := _first_larger(offers, accepting):
            first, behind, by = misplaced
            text = f'"{first.device.name}" takes more of the same counters than "{behind.device.name}" behind it'
            text = f"{text}, and {by} accepts both: first fit takes the larger one first"
            yield RulePart(first.slice, f"spec.devices[{first.index}]", text)


def _offers_by_pool(
    context: ValidationContext,
) -> Mapping[tuple[str, str], list[Offer]]:
    by_pool: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for offer in context.view(find_candidates).offers:
        by_pool[offer.id.pool_id].append(offer)
    return by_pool


def _accepting(context: ValidationContext) -> dict[Offer, list[str]]:
    """Return the requests that accept each device, or the classes if nothing is requested."""
    by_device: dict[Offer, list[str]] = defaultdict(list)
    requested = [
        alternative
        for _, _, requests in context.view(_find_alternatives)
        for request in requests
        for alternative in request
    ]
    # Equal requests share the list of their candidates: the first of them stands for all.
    distinct = {
        id(alternative.offers): alternative
        for alternative in reversed(requested)
    }
    for alternative in distinct.values():
        for offer in alternative.offers:
            by_device[offer].append(
                f'request "{alternative.name}" of {alternative.owner.title}'
            )
    if not requested:
        candidates = context.view(find_candidates)
        for name in context.cluster.classes:
            for offer in candidates.of_class(name):
                by_device[offer].append(f'class "{name}"')
    return by_device


def _first_larger(
    offers: list[Offer], accepting: Mapping[Offer, list[str]]
) -> tuple[Offer, Offer, str] | None:
    """Return a device, one behind it that takes less of the same counters, and what accepts both."""
    earlier_by_sets: dict[
        tuple[str, ...], list[tuple[Offer, dict[tuple[str, str], int]]]
    ] = defaultdict(list)
    # Only devices that take of the same counter sets are compared: the smaller one would
    # have done, and leaves more for others.
    for offer in offers:
        amounts = _amounts(offer)
        sets = tuple(sorted({name for name, _ in amounts}))
        for earlier, earlier_amounts in earlier_by_sets[sets]:
            if _is_less(amounts, earlier_amounts) and (
                acceptor := _common(earlier, offer, accepting)
            ):
                return earlier, offer, acceptor
        earlier_by_sets[sets].append((offer, amounts))
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


def _common(
    first: Offer, second: Offer, accepting: Mapping[Offer, list[str]]
) -> str:
    acceptors = set(accepting.get(second, ()))
    return next(
        (name for name in accepting.get(first, ()) if name in acceptors), ""
    )


def _types(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Attributes that have several types on the devices of a driver; with the first device of the last type."""
    by_attribute: dict[tuple[str, str], dict[str, Offer]] = defaultdict(dict)
    for offer in context.view(find_candidates).offers:
        for name, value in offer.device.attributes.items():
            qualified = name if "/" in name else f"{offer.id.driver}/{name}"
            by_attribute[offer.id.driver, qualified].setdefault(
                _type_of(value), offer
            )
    for (_, name), types in by_attribute.items():
        typed = [type_ for type_ in types if type_]
        if len(typed) > 1:
            first, second = typed[:2]
            last = list(types.values())[-1]
            text = f"has the type {second}, but {first} on device {types[first].id}: they never match"
            yield RulePart(
                last.slice,
                f"spec.devices[{last.index}].attributes[{name}]",
                text,
            )


def _type_of(value: AttributeValue) -> str:
    """Return the type of a value, or of the items of a list, which compare with single values."""
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
        (
            "slice-no-node",
            said,
            "The node selector of a slice selects some node.",
        ),
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
