"""Another request in place of one that cannot be served: what other claims of the cluster ask for."""

from __future__ import annotations

from collections.abc import Iterator

from dralloc.api import DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from dralloc.explain.change import Change
from dralloc.explain.members import alternatives_of
from dralloc.explain.offers import Variation
from dralloc.explain.situation import Situation, Wish
from dralloc.match import Criteria
from dralloc.names import ClaimKey

__all__ = ["other_wishes"]

_MOST = 12


def other_wishes(situation: Situation) -> Iterator[Wish]:
    """The wishes of other claims that could be served in place of the demand's own, the most usual first."""
    if situation.compiled is None:
        return
    offers = situation.lab.turn.scene.offers
    for place, claim, alternative in alternatives_of(situation.lab.turn.demand.claims):
        if alternative.admin or alternative.defect or place[2]:
            continue
        own = offers.clauses(alternative.index)
        for rank, (criteria, other) in enumerate(_usual(situation)):
            if other == claim.key:
                continue
            variation = Variation(other=criteria)
            if offers.clauses(offers.vary(alternative.index, variation)) == own:
                continue
            change = Change(variations={place: variation})
            witness = situation.lab.admit(change)
            if witness is not None:
                text = f"claim {claim.key}, request {alternative.name}: {_words(criteria, other)}"
                yield Wish(text, change, rank, witness.node)


def _words(criteria: Criteria, other: ClaimKey) -> str:
    name = criteria.device_class.metadata.name if criteria.device_class is not None else ""
    selectors = f", {'; '.join(criteria.selectors)}" if criteria.selectors else ""
    return f"ask for what claim {other} asks for (class {name}{selectors})"


def _usual(situation: Situation) -> list[tuple[Criteria, ClaimKey]]:
    """What the claims of the cluster ask for, each kind once with the first claim, the most usual first."""
    counts: dict[object, int] = {}
    first: dict[object, tuple[Criteria, ClaimKey]] = {}
    claims = situation.compiled.cluster.claims if situation.compiled is not None else ()
    seen: dict[int, list[tuple[object, Criteria]]] = {}
    for claim in claims:
        # Claims of one template share their specification.
        kinds = seen.get(id(claim.spec))
        if kinds is None:
            kinds = seen[id(claim.spec)] = list(_kinds(situation, claim))
        for kind, criteria in kinds:
            counts[kind] = counts.get(kind, 0) + 1
            first.setdefault(kind, (criteria, claim.key))
    order = sorted(counts, key=lambda kind: -counts[kind])
    return [first[kind] for kind in order[:_MOST]]


def _kinds(situation: Situation, claim: ResourceClaim) -> Iterator[tuple[object, Criteria]]:
    classes = situation.compiled.cluster.classes if situation.compiled is not None else {}
    for request in claim.spec.devices.requests:
        for one in _parts(request):
            device_class = classes.get(one.device_class_name)
            selectors = tuple(selector.cel.expression for selector in one.selectors if selector.cel is not None)
            amounts = tuple(one.capacity.requests.items()) if one.capacity is not None else ()
            if device_class is not None and len(selectors) == len(one.selectors):
                kind = one.device_class_name, selectors, tuple((name, str(amount)) for name, amount in amounts)
                yield kind, Criteria(claim.key, device_class, selectors, (), amounts)


def _parts(request: DeviceRequest) -> tuple[ExactDeviceRequest | DeviceSubRequest, ...]:
    return (request.exactly,) if request.exactly is not None else request.first_available
