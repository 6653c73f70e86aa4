"""The rules that can be part of a conflict, each with the change that takes it away."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Final

from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.changes import Change, Place, constraint_places
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.wording import (
    Wording,
    constraint_text,
    devices_text,
    request_text,
    taint_text,
)
from dralloc.objects.api import DeviceTaint
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import amount, counted, listed
from dralloc.problem import Alternative, Claim, indices
from dralloc.problem.ledger import Scarcity
from dralloc.problem.named_limits import Limit, limits_of, users_of

__all__ = ["Member", "MemberKind", "alternatives_of", "members_of"]

_SINGLE_HOLDERS: Final = 24
"""Up to so many claims that hold something are members of their own; of more, those that ask for the same are one."""

_MOST_GROUPS: Final = 32
"""Of such groups so many are members of their own, the largest; the others are one together."""

_DEVICES_NAMED: Final = 2
"""So many devices of a holder are named."""


class MemberKind(StrEnum):
    """Kinds of members, in the order in which a conflict tries to do without them."""

    HOLDER = "holder"
    COUNTER = Scarcity.COUNTER.value
    GROUPS = Scarcity.GROUPS.value
    CAPACITY = Scarcity.CAPACITY.value
    CAP = "cap"
    TAINT = "taint"
    NODES = "nodes"
    AMOUNT = "amount"
    CONSTRAINT = "constraint"
    CLASS = "class selector"
    SELECTOR = "selector"
    REQUEST = "request"


@dataclass(frozen=True, eq=False)
class Member:
    """A rule with a name.

    Parameters
    ----------
    title
        What it is.
    without
        The change that takes it away.
    detail
        Who holds it, and how much is left, where that applies.
    """

    kind: MemberKind
    title: str
    without: Change = field(repr=False)
    detail: str = ""


def members_of(oracle: FeasibilityOracle) -> list[Member]:
    """Every rule that could be part of a conflict about the oracle's demand."""
    rules = _Members(oracle)
    members = chain(
        rules.holders(),
        rules.limits(),
        rules.caps(),
        rules.taints(),
        rules.nodes(),
        rules.own(),
    )
    return sorted(
        members, key=lambda member: list(MemberKind).index(member.kind)
    )


def alternatives_of(
    claims: tuple[Claim, ...],
) -> Iterator[tuple[Place, Claim, Alternative]]:
    """Every alternative of some claims with its place."""
    for claim_index, claim in enumerate(claims):
        for index, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                yield (claim_index, index, choice), claim, alternative


class _Members:
    def __init__(self, oracle: FeasibilityOracle) -> None:
        self.cluster = oracle.compiled.cluster
        self.snapshot = oracle.snapshot
        self.problem = oracle.snapshot.problem
        self.offers = oracle.snapshot.context.offers
        self.ledger = oracle.snapshot.context.ledger
        self.claims = oracle.snapshot.demand.claims
        self.wording = Wording(oracle.snapshot.placed, oracle.compiled)

    def own(self) -> Iterator[Member]:
        """The criteria of the demand itself."""
        yield from self._constraints()
        for claim_index, claim in enumerate(self.claims):
            yield from self._requests(claim_index, claim)
        for position, claim, alternative in alternatives_of(self.claims):
            about = request_text(claim, alternative)
            yield from self._clauses(position, about, alternative)
            yield from self._amounts(position, about, alternative)

    def _constraints(self) -> Iterator[Member]:
        for positions in constraint_places(self.claims):
            claim_index, index = positions[0]
            constraint = self.claims[claim_index].constraints[index]
            rule = f"constraint #{index}: {constraint.kind.value} {constraint.attribute}"
            title = f"claim {self.claims[claim_index].key}, {rule}"
            if constraint.scope:
                title = constraint_text(constraint, index)
            change = Change(constraints=frozenset(positions))
            yield Member(MemberKind.CONSTRAINT, title, change)

    def _requests(self, claim_index: int, claim: Claim) -> Iterator[Member]:
        """The requests of a claim; or the claim, where it has none because something is wrong with it."""
        if claim.defect and not claim.requests:
            change = Change(claims=frozenset({claim_index}))
            yield Member(MemberKind.REQUEST, claim.defect, change)
        for index, request in enumerate(claim.requests):
            title = request_text(claim, request)
            asked = " or ".join(
                alternative.defect.removeprefix(f"{title}: ")
                or self._asked(alternative)
                for alternative in request.alternatives
            )
            has_defect = any(
                alternative.defect for alternative in request.alternatives
            )
            yield Member(
                MemberKind.REQUEST,
                title,
                Change(requests=frozenset({(claim_index, index)})),
                asked if has_defect else f"asks for {asked}",
            )

    def _clauses(
        self, position: Place, about: str, alternative: Alternative
    ) -> Iterator[Member]:
        """The clauses of an alternative's selectors, and of its class."""
        clauses = self.offers.clauses(alternative.index)
        for index, clause in enumerate(clauses):
            kind = MemberKind.CLASS if clause.of_class else MemberKind.SELECTOR
            variation = Variation(without=frozenset({index}))
            change = Change(variations={position: variation})
            yield Member(kind, f"{about}, {clause}", change)

    def _amounts(
        self, position: Place, about: str, alternative: Alternative
    ) -> Iterator[Member]:
        """The amounts of capacities that an alternative asks for."""
        amounts = self.offers.amounts(alternative.index)
        for name, quantity in amounts.items():
            title = f"{about}, capacity {name}: {quantity}"
            variation = Variation(unasked=frozenset({name}))
            change = Change(variations={position: variation})
            yield Member(MemberKind.AMOUNT, title, change)

    def _asked(self, alternative: Alternative) -> str:
        of_class = self.offers.class_name(alternative.index)
        return f"{devices_text(alternative.count)}{f' of class {of_class}' if of_class else ''}"

    def taints(self) -> Iterator[Member]:
        """The taints that are not tolerated."""
        positions: dict[DeviceTaint, set[Place]] = defaultdict(set)
        # Devices of one key have the same taints.
        one_of_each = {
            self.offers.device_key(device): device
            for device in indices(self.problem.devices)
        }
        for position, _, alternative in alternatives_of(self.claims):
            for device in one_of_each.values():
                for taint in self.offers.taints(alternative.index, device):
                    positions[taint].add(position)
        for taint, concerned in sorted(
            positions.items(), key=lambda item: taint_text(item[0])
        ):
            variations = {
                position: Variation(tolerated=frozenset({taint}))
                for position in concerned
            }
            yield Member(
                MemberKind.TAINT,
                f"taint {taint_text(taint)}",
                Change(variations=variations),
            )

    def nodes(self) -> Iterator[Member]:
        """The rules that leave nodes out."""
        counts = Counter(
            rule
            for node in self.problem.all_nodes
            for rule in self.snapshot.rules(node)
        )
        for rule, node_count in counts.items():
            detail = f"rules out {counted(node_count, 'node')}"
            yield Member(
                MemberKind.NODES, rule, Change(rules=frozenset({rule})), detail
            )

    def limits(self) -> Iterator[Member]:
        """The limits on what devices share or have each, with their users."""
        for limit in limits_of(self.problem):
            detail = ", ".join(self._state(limit))
            yield Member(
                MemberKind(limit.scarcity.value),
                str(limit),
                Change(limits=frozenset({limit})),
                detail,
            )

    def _state(self, limit: Limit) -> Iterator[str]:
        """Return the free amount of all counters of one name, and the holders of the rest."""
        if limit.scarcity is Scarcity.COUNTER:
            sets = self.problem.counters_by_name[limit.driver, limit.name]
            free, total = (
                sum(self.ledger.free[counter] for counter in sets),
                sum(self.problem.counters[counter].total for counter in sets),
            )
            yield f"{amount(free)} free of {amount(total)}{f' in {len(sets)} counter sets' if len(sets) > 1 else ''}"
        if limit.scarcity is not Scarcity.GROUPS:
            yield self.wording.holders(users_of(self.ledger, limit))

    def caps(self) -> Iterator[Member]:
        """The caps of the demand's namespace, with the use by each user."""
        for budget in self.snapshot.caps.of(self.snapshot.demand):
            users = self.snapshot.caps.users(budget)
            held = f", {self.wording.holders(users)}" if users else ""
            title = f"cap {budget.namespace}={budget.resource}:{amount(budget.most or 0)}"
            change = Change(caps=frozenset({budget.key}))
            yield Member(
                MemberKind.CAP,
                title,
                change,
                f"{amount(budget.used)} used{held}",
            )

    def holders(self) -> Iterator[Member]:
        """The claims that hold something; many are told apart by what they ask for."""
        keys = [
            key
            for key, held in self.ledger.by_claim.items()
            if held and key not in self.snapshot.own_claims
        ]
        if len(keys) <= _SINGLE_HOLDERS:
            groups = [[key] for key in keys]
        else:
            # Each member costs an answer of the model, so there may not be too many.
            alike: dict[Hashable, list[ClaimKey]] = defaultdict(list)
            for key in keys:
                alike[self._request_class(key)].append(key)
            groups = sorted(alike.values(), key=len, reverse=True)
            remaining = [
                key for group in groups[_MOST_GROUPS:] for key in group
            ]
            groups = groups[:_MOST_GROUPS] + ([remaining] if remaining else [])
        for group in groups:
            yield Member(
                MemberKind.HOLDER,
                self._title(group),
                Change(released=frozenset(group)),
                self._held(group),
            )

    def _held(self, group: list[ClaimKey]) -> str:
        """Return the amounts that some claims hold."""
        slots = list(
            dict.fromkeys(
                holding.slot
                for key in group
                for holding in self.ledger.by_claim[key]
            )
        )
        devices = [
            str(self.problem.devices[self.problem.versions[slot][-1]].id)
            for slot in slots
        ]
        return f"holds {listed(devices, _DEVICES_NAMED)}"

    def _request_class(self, key: ClaimKey) -> Hashable:
        claim = self.cluster.claim(key)
        return key in self.snapshot.placed, "" if claim is None else repr(
            claim.spec.devices.requests
        )

    def _title(self, group: list[ClaimKey]) -> str:
        state = (
            "placed claim"
            if group[0] in self.snapshot.placed
            else "allocated claim"
        )
        if len(group) == 1:
            return f"{state} {group[0]}"
        return f"{len(group)} {state.replace('claim', 'claims', 1)} like {group[0]}"
