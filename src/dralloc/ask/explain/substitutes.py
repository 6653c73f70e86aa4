"""Suggestions to substitute a request: what other claims of the cluster ask for in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dralloc.ask.context.offers import TableOffers, Variation
from dralloc.ask.explain.changes import Change, Cost, Place, Suggestion
from dralloc.ask.explain.conflict_members import alternatives_of
from dralloc.ask.explain.oracle import Certificate, FeasibilityOracle
from dralloc.ask.explain.wording import (
    devices_text,
    request_text,
    toleration_text,
)
from dralloc.compile.match import Criteria
from dralloc.compile.match.requests import compile_claim
from dralloc.objects.cluster import Cluster
from dralloc.problem import Alternative, Claim, DeviceIndex, indices

__all__ = ["substitutes"]

_MOST_SUBSTITUTES: Final = 12


@dataclass(frozen=True)
class _Other:
    """The request of another claim's alternative."""

    claim: Claim
    alternative: Alternative
    criteria: Criteria

    def text(self, count: int | None) -> str:
        """The change, for a request of so many devices."""
        is_one_of_several = len(list(alternatives_of((self.claim,)))) > 1
        request = (
            f", request {self.alternative.name}," if is_one_of_several else ""
        )
        count_text = (
            ""
            if count == self.alternative.count
            else f", but {devices_text(count)}"
        )
        return f"ask as claim {self.claim.key}{request} does ({self._kind()}){count_text}"

    def _kind(self) -> str:
        criteria = self.criteria
        of_class = (
            [f"class {criteria.device_class.metadata.name}"]
            if criteria.device_class is not None
            else []
        )
        amounts = (f"{amount} of {name}" for name, amount in criteria.amounts)
        tolerated = (
            f"tolerating {toleration_text(toleration)}"
            for toleration in criteria.tolerations
        )
        return "; ".join((*of_class, *criteria.selectors, *amounts, *tolerated))


def substitutes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """Yield requests of other claims that could be served in place of the demand's own, the most usual first.

    Only devices of the request's own class count, whatever its selectors say: a network adapter is no substitute for a
    GPU, of the same driver or not. It comes with its tolerations. Where it could not be served with them, those of the
    demand are tried, and the suggestion says so.
    """
    offers = oracle.snapshot.context.offers
    if not isinstance(offers, TableOffers):
        return
    usual = _usual(oracle.compiled.cluster, offers)
    for position, claim, alternative in alternatives_of(
        oracle.snapshot.demand.claims
    ):
        # Of the alternatives of a request only the first is replaced.
        if alternative.admin or alternative.defect or position[2]:
            continue
        own_clauses = offers.clauses(alternative.index)
        tolerations = offers.table.criteria[alternative.index].tolerations
        of_class = _devices_of_class(offers, alternative, oracle)
        for rank, substitute in enumerate(usual):
            if (
                substitute.claim.key == claim.key
                or offers.clauses(substitute.alternative.index) == own_clauses
            ):
                continue
            # First as the other claim asks. The tolerations of the demand are only tried where that does not help.
            attempts = {"": substitute.criteria}
            if tolerations != substitute.criteria.tolerations:
                attempts[", keeping its tolerations"] = replace(
                    substitute.criteria, tolerations=tolerations
                )
            for remark, criteria in attempts.items():
                change = Change(
                    variations={position: Variation(substitute=criteria)}
                )
                certificate = oracle.admit(change)
                if certificate is not None and _is_of(
                    position, certificate, of_class
                ):
                    text = f"{request_text(claim, alternative)}: {substitute.text(alternative.count)}{remark}"
                    yield Suggestion(
                        text,
                        oracle.fits_on(certificate.node),
                        Cost.OTHER,
                        rank,
                        change,
                    )
                    break


def _devices_of_class(
    offers: TableOffers, alternative: Alternative, oracle: FeasibilityOracle
) -> frozenset[DeviceIndex]:
    """Return the devices that are of the request's class, whatever its own selectors say."""
    criteria = replace(
        offers.table.criteria[alternative.index], selectors=(), amounts=()
    )
    of_class = offers.vary(alternative.index, Variation(substitute=criteria))
    # Devices with equal keys are selected alike.
    verdicts: dict[Hashable, bool] = {}
    selected: set[DeviceIndex] = set()
    devices = tuple(indices(oracle.snapshot.problem.devices))
    for device, key in zip(devices, offers.device_keys(devices), strict=True):
        if key not in verdicts:
            verdicts[key] = offers.selects(of_class, device) is True
        if verdicts[key]:
            selected.add(device)
    return frozenset(selected)


def _is_of(
    position: Place, certificate: Certificate, devices: frozenset[DeviceIndex]
) -> bool:
    """Whether a request would be served with some of these devices."""
    claim, request, _ = position
    granted = [
        grant for grant in certificate.grants[claim] if grant.request == request
    ]
    return all(grant.device in devices for grant in granted)


def _usual(cluster: Cluster, offers: TableOffers) -> list[_Other]:
    """Return the requests of the cluster's claims, each class with its first claim, the most usual first."""
    counts: Counter[Hashable] = Counter()
    first: dict[Hashable, _Other] = {}
    seen: dict[int, Claim] = {}
    for claim in cluster.claims:
        # Claims of one template share their specification.
        compiled_claim = seen.get(id(claim.spec))
        if compiled_claim is None:
            compiled_claim = seen[id(claim.spec)] = compile_claim(
                claim, cluster.classes, offers.table, offers.table.features
            )
        for _, _, alternative in alternatives_of((compiled_claim,)):
            if not alternative.admin and not alternative.defect:
                key = offers.request_key(alternative.index)
                counts[key] += 1
                first.setdefault(
                    key,
                    _Other(
                        compiled_claim,
                        alternative,
                        offers.table.criteria[alternative.index],
                    ),
                )
    return [first[key] for key, _ in counts.most_common(_MOST_SUBSTITUTES)]
