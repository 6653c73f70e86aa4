"""Requests that nothing published could serve, even if nothing were in use, and the first condition that says no."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.api import ApiObject, DeviceClaim, ResourceClaim
from dralloc.validate.places import SPECS, Details
from dralloc.validate.reach import Offer, Reach, compiled, find_reach
from dralloc.validate.rule import Issue, Part, ValidationContext, info, warning

__all__ = ["RULES", "Wish", "find_wishes"]


class _Step(Enum):
    """What a device must pass to be allocated for a request, in order."""

    CLASS = auto()
    SELECTOR = auto()
    TAINT = auto()
    CAPACITY = auto()
    COUNT = auto()


class _Stop(NamedTuple):
    """Where a request finds no device any more: at which of its fields."""

    step: _Step
    field: str
    message: str


@dataclass(frozen=True, eq=False)
class Wish:
    """One ``exactly`` or one entry of ``firstAvailable`` of something that is not allocated."""

    owner: ApiObject
    path: str
    name: str
    request: Details
    reach: Reach

    @property
    def candidates(self) -> list[Offer]:
        """The devices that class and selectors accept."""
        return self.reach.candidates(self.request)

    @cached_property
    def stop(self) -> _Stop | None:
        """What cannot be passed; None if there may be devices."""
        answers = self.reach.context.view(_answers)
        key = _kind(self.request)
        if key not in answers:
            answers[key] = _stop(self.request, self.reach)
        return answers[key]


def _kind(request: Details) -> str:
    """What a request asks for, as text: equal requests have equal answers."""
    asked = (request.device_class_name, request.selectors, request.tolerations, request.capacity)
    return repr((*asked, request.allocation_mode, request.count))


def _answers(_context: ValidationContext) -> dict[str, _Stop | None]:
    """The answers so far, by kind of request."""
    return {}


def _can_be_judged(request: Details, reach: Reach) -> bool:
    """Whether there are devices and the class, and all expressions compile: else there are other violations."""
    found = reach.context.cluster.classes.get(request.device_class_name)
    if found is None or not reach.offers:
        return False
    expressions = (one.cel.expression for one in (*found.spec.selectors, *request.selectors) if one.cel)
    return all(compiled(expression) for expression in expressions)


def _stop(request: Details, reach: Reach) -> _Stop | None:
    if not _can_be_judged(request, reach):
        return None
    name = request.device_class_name
    offers = reach.of_class(name)
    if not offers:
        text = f'none of {_devices(len(reach.offers))} is in class "{name}"'
        return _Stop(_Step.CLASS, ".deviceClassName", text)
    return _selection(request, reach) or _use(request, reach)


def _selection(request: Details, reach: Reach) -> _Stop | None:
    offers = reach.of_class(request.device_class_name)
    for index, selector in enumerate(request.selectors):
        left = reach.selected([selector], offers)
        if not left:
            before = "of the class" if index == 0 else "that the selectors before leave"
            text = f"accepts none of {_devices(len(offers))} {before}"
            return _Stop(_Step.SELECTOR, f".selectors[{index}].cel.expression", text)
        offers = left
    return None


def _use(request: Details, reach: Reach) -> _Stop | None:
    offers = reach.candidates(request)
    tolerated = reach.tolerated(request, offers)
    if not tolerated:
        text = f"tolerates the taints of none of {_devices(len(offers))} that it could get"
        return _Stop(_Step.TAINT, ".tolerations", text)
    capable = reach.capable(request, tolerated)
    if not capable:
        text = f"none of {_devices(len(tolerated))} that it could get has this capacity, even unused"
        return _Stop(_Step.CAPACITY, ".capacity.requests", text)
    most = reach.most_on_a_node(capable)
    wanted = 1 if request.allocation_mode == "All" else request.count
    if most < wanted:
        text = f"asks for {_devices(wanted)}, but no node has more than {most} that it could get"
        return _Stop(_Step.COUNT, ".count" if most else "", text)
    return None


class _Choice(NamedTuple):
    """A wish, and whether something else would do."""

    wish: Wish
    has_alternative: bool


def _devices(count: int) -> str:
    return f"{count} device{'s' if count != 1 else ''}"


def find_wishes(context: ValidationContext) -> list[tuple[DeviceClaim, str, list[list[Wish]]]]:
    """For every claim and template without allocation: what it asks for, by request and alternative."""
    reach = context.view(find_reach)
    return [
        (spec, path, [list(_alternatives(owner, path, spec, number, reach)) for number in range(len(spec.requests))])
        for owner, path, spec in SPECS(context)
        if not (isinstance(owner, ResourceClaim) and owner.status.allocation is not None)
    ]


def _alternatives(owner: ApiObject, path: str, spec: DeviceClaim, number: int, reach: Reach) -> Iterator[Wish]:
    request, at = spec.requests[number], f"{path}.requests[{number}]"
    if request.exactly is not None:
        yield Wish(owner, f"{at}.exactly", request.name, request.exactly, reach)
    for index, sub in enumerate(request.first_available):
        yield Wish(owner, f"{at}.firstAvailable[{index}]", f"{request.name}/{sub.name}", sub, reach)


def _choices(context: ValidationContext) -> Iterator[Part[_Choice]]:
    for _, _, requests in context.view(find_wishes):
        for alternatives in requests:
            for wish in alternatives:
                others = any(not other.stop for other in alternatives if other is not wish)
                yield Part(wish.owner, wish.path, _Choice(wish, others))


def _stopped_by(*steps: _Step) -> Callable[[_Choice, str], Iterator[Issue]]:
    """A check for requests that one of the steps stops and that have no other alternative."""

    def check(choice: _Choice, at: str) -> Iterator[Issue]:
        stop = choice.wish.stop
        if stop is not None and stop.step in steps and not choice.has_alternative:
            yield Issue(at + stop.field, stop.message)

    return check


def _alternative(choice: _Choice, at: str) -> Iterator[Issue]:
    stop = choice.wish.stop
    if stop is not None and choice.has_alternative:
        yield Issue(at + stop.field, f"{stop.message}: the alternative is never taken")


def _class_exists(choice: _Choice, at: str) -> Iterator[Issue]:
    cluster, name = choice.wish.reach.context.cluster, choice.wish.request.device_class_name
    if cluster.classes and name and name not in cluster.classes:
        yield Issue(f"{at}.deviceClassName", f'class "{name}" does not exist')


def _class_known(choice: _Choice, at: str) -> Iterator[Issue]:
    if not choice.wish.reach.context.cluster.classes:
        name = choice.wish.request.device_class_name
        yield Issue(f"{at}.deviceClassName", f'class "{name}" cannot be looked up, as no class was given')


def _selector_fails(choice: _Choice, at: str) -> Iterator[Issue]:
    request, reach = choice.wish.request, choice.wish.reach
    for index, message in reach.failures(request.selectors, reach.of_class(request.device_class_name)):
        yield Issue(f"{at}.selectors[{index}].cel.expression", message)


class _Constraint(NamedTuple):
    """An attribute that a constraint compares, with the wishes that it covers."""

    attribute: str
    field: str
    wishes: list[Wish]


def _constraints(context: ValidationContext) -> Iterator[Part[_Constraint]]:
    for spec, path, requests in context.view(find_wishes):
        wishes = [wish for alternatives in requests for wish in alternatives]
        for index, one in enumerate(spec.constraints):
            attribute = one.match_attribute or one.distinct_attribute
            covered = [wish for wish in wishes if _covers(one.requests, wish) and wish.candidates]
            if attribute and covered and all(_can_be_judged(wish.request, wish.reach) for wish in covered):
                field = "matchAttribute" if one.match_attribute else "distinctAttribute"
                at = f"{path}.constraints[{index}]"
                yield Part(covered[0].owner, at, _Constraint(attribute, field, covered))


def _covers(names: tuple[str, ...], wish: Wish) -> bool:
    return not names or wish.name in names or wish.name.partition("/")[0] in names


def _attribute_exists(constraint: _Constraint, at: str) -> Iterator[Issue]:
    for wish in constraint.wishes:
        derived = any(one.name == constraint.attribute for one in wish.request.derived_attributes)
        if not derived and all(offer.attribute(constraint.attribute) is None for offer in wish.candidates):
            text = f'none of {_devices(len(wish.candidates))} for request "{wish.name}" has the attribute'
            yield Issue(f"{at}.{constraint.field}", f'{text} "{constraint.attribute}": the constraint never holds')


_ORIGIN: Final = "KEP-4381, KEP-4815, KEP-5075: what a device must pass"

RULES: Final = (
    warning("request-class-missing", _choices, _class_exists, "The class of a request exists.", "KEP-4381"),
    info("request-class-unknown", _choices, _class_known, "Without classes nobody can tell what matches.", "KEP-4381"),
    warning(
        "request-no-device",
        _choices,
        _stopped_by(_Step.CLASS, _Step.SELECTOR),
        "Some device is in the class of a request and accepted by all of its selectors.",
        _ORIGIN,
    ),
    warning(
        "request-untolerated",
        _choices,
        _stopped_by(_Step.TAINT),
        "A request tolerates the taints of some device that it selects.",
        "KEP-5055",
    ),
    warning(
        "request-capacity",
        _choices,
        _stopped_by(_Step.CAPACITY),
        "Some selected device has the capacity that a request asks for, and its policy allows the amount.",
        "KEP-5075",
    ),
    warning(
        "request-too-many",
        _choices,
        _stopped_by(_Step.COUNT),
        "Some node has as many devices as a request asks for.",
        _ORIGIN,
    ),
    info(
        "alternative-no-device",
        _choices,
        _alternative,
        "Every alternative of a request can be taken.",
        "KEP-4816",
    ),
    warning(
        "selector-fails",
        _choices,
        _selector_fails,
        "A selector gives an answer for every device that it meets.",
        "KEP-4381: a CEL error ends the allocation",
    ),
    warning(
        "constraint-attribute-missing",
        _constraints,
        _attribute_exists,
        "Some device of every request that a constraint covers has its attribute.",
        "KEP-4381",
    ),
)
