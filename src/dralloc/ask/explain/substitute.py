"""Suggestions to substitute a request: what other claims of the cluster ask for in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dralloc.ask.context.offers import TableOffers, Variation
from dralloc.ask.explain.change import Change, Cost, Place, Suggestion
from dralloc.ask.explain.members import alternatives_of
from dralloc.ask.explain.oracle import Certificate, FeasibilityOracle
from dralloc.ask.explain.wording import devices_text, request_text, toleration_text
from dralloc.compile.match import Criteria
from dralloc.compile.match.requests import compile_claim
from dralloc.objects.cluster import Cluster
from dralloc.problem import Alternative, Claim

__all__ = ["substitutes"]

_MOST: Final = 12


@dataclass(frozen=True)
class _Other:
    """What an alternative of another claim asks for."""

    claim: Claim
    alternative: Alternative
    criteria: Criteria

    def text(self, count: int | None) -> str:
        """The change, for a request of so many devices."""
        several = len(list(alternatives_of((self.claim,)))) > 1
        request = f", request {self.alternative.name}," if several else ""
        number = (
            "" if count == self.alternative.count else f", but {devices_text(count)}"
        )
        return f"ask for what claim {self.claim.key}{request} asks for ({self._kind()}){number}"

    def _kind(self) -> str:
        criteria = self.criteria
        of_class = (
            [f"class {criteria.device_class.metadata.name}"]
            if criteria.device_class is not None
            else []
        )
        amounts = (f"{amount} of {name}" for name, amount in criteria.amounts)
        tolerated = (
            f"tolerating {toleration_text(one)}" for one in criteria.tolerations
        )
        return "; ".join((*of_class, *criteria.selectors, *amounts, *tolerated))


def substitutes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """What other claims ask for and could be served in place of the demand's own requests, the most usual first.

    Only devices of the drivers count whose devices the request may have now: a network adapter is no substitute for a
    GPU. It comes with its tolerations. Where it could not be served with them, those of the demand are tried, and the
    suggestion says so.
    """
    offers = oracle.snapshot.context.offers
    if not isinstance(offers, TableOffers):
        return
    usual = _usual(oracle.compiled.cluster, offers)
    for place, claim, alternative in alternatives_of(oracle.snapshot.demand.claims):
        if alternative.admin or alternative.defect or place[2]:
            continue
        own = offers.clauses(alternative.index)
        tolerations = offers.table.criteria[alternative.index].tolerations
        drivers = _drivers(offers, alternative, oracle)
        for rank, other in enumerate(usual):
            if (
                other.claim.key == claim.key
                or offers.clauses(other.alternative.index) == own
            ):
                continue
            attempts = {"": other.criteria}
            if tolerations != other.criteria.tolerations:
                attempts[", keeping its tolerations"] = replace(
                    other.criteria, tolerations=tolerations
                )
            for remark, criteria in attempts.items():
                change = Change(variations={place: Variation(other=criteria)})
                certificate = oracle.admit(change)
                if certificate is not None and _is_of(
                    oracle, place, certificate, drivers
                ):
                    text = f"{request_text(claim, alternative)}: {other.text(alternative.count)}{remark}"
                    yield Suggestion(
                        text, oracle.fits_on(certificate.node), Cost.OTHER, rank, change
                    )
                    break


def _drivers(
    offers: TableOffers, alternative: Alternative, oracle: FeasibilityOracle
) -> frozenset[str]:
    """The drivers of the devices that are of the request's class, whatever its own selectors say."""
    criteria = replace(
        offers.table.criteria[alternative.index], selectors=(), amounts=()
    )
    of_class = offers.vary(alternative.index, Variation(other=criteria))
    devices = enumerate(oracle.snapshot.problem.devices)
    return frozenset(
        device.id.driver
        for number, device in devices
        if offers.selects(of_class, number) is True
    )


def _is_of(
    oracle: FeasibilityOracle,
    place: Place,
    certificate: Certificate,
    drivers: frozenset[str],
) -> bool:
    """Whether a request would be served with devices of these drivers."""
    claim, request, _ = place
    devices = oracle.snapshot.problem.devices
    granted = [one for one in certificate.grants[claim] if one.request == request]
    return all(devices[one.device].id.driver in drivers for one in granted)


def _usual(cluster: Cluster, offers: TableOffers) -> list[_Other]:
    """What the claims of the cluster ask for, each request class once with the first claim, the most usual first."""
    counts: Counter[Hashable] = Counter()
    first: dict[Hashable, _Other] = {}
    seen: dict[int, Claim] = {}
    for claim in cluster.claims:
        # Claims of one template share their specification.
        known = seen.get(id(claim.spec))
        if known is None:
            known = seen[id(claim.spec)] = compile_claim(
                claim, cluster.classes, offers.table, offers.table.features
            )
        for _, _, alternative in alternatives_of((known,)):
            if not alternative.admin and not alternative.defect:
                key = offers.request_key(alternative.index)
                counts[key] += 1
                first.setdefault(
                    key,
                    _Other(
                        known, alternative, offers.table.criteria[alternative.index]
                    ),
                )
    return [first[key] for key, _ in counts.most_common(_MOST)]
