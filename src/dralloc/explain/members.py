"""The rules that can be part of a conflict, each with the change that takes it away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dralloc.api import DeviceTaint
from dralloc.compiler import CompiledCluster
from dralloc.context.offers import Variation
from dralloc.explain.change import Cap, Change, Place
from dralloc.explain.lab import Lab
from dralloc.explain.wording import Wording, devices_text, taint_text
from dralloc.names import ClaimKey
from dralloc.problem import Alternative, Claim, Problem
from dralloc.report import amount

__all__ = ["Kind", "Member", "alternatives_of", "members_of"]

_SINGLE_HOLDERS = 24
_MOST_GROUPS = 32
_DEVICES_NAMED = 2


class Kind(StrEnum):
    """Kinds of members, in the order in which a conflict tries to do without them."""

    HOLDER = "holder"
    COUNTER = "counter"
    GROUPS = "compatibility groups"
    CAPACITY = "capacity"
    CAP = "cap"
    TAINT = "taint"
    NODES = "nodes"
    AMOUNT = "amount"
    CONSTRAINT = "constraint"
    CLASS = "class selector"
    SELECTOR = "selector"
    REQUEST = "request"


@dataclass(frozen=True)
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

    kind: Kind
    title: str
    without: Change = field(repr=False, compare=False)
    detail: str = ""


def members_of(lab: Lab, problem: Problem, wording: Wording, compiled: CompiledCluster | None) -> list[Member]:
    """Every rule that could be part of a conflict about the lab's demand."""
    found = _Members(lab, problem, wording, compiled)
    amounts = (*found.counters(), *found.groups(), *found.capacities(), *found.caps())
    members = [*found.holders(), *amounts, *found.taints(), *found.nodes(), *found.own()]
    return sorted(members, key=lambda member: list(Kind).index(member.kind))


def alternatives_of(claims: tuple[Claim, ...]) -> Iterator[tuple[Place, Claim, Alternative]]:
    """Every alternative of some claims with its place."""
    for number, claim in enumerate(claims):
        for index, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                yield (number, index, choice), claim, alternative


class _Members:
    def __init__(self, lab: Lab, problem: Problem, wording: Wording, compiled: CompiledCluster | None) -> None:
        self.lab = lab
        self.problem = problem
        self.wording = wording
        self.compiled = compiled
        self.context = lab.turn.context
        self.claims = lab.turn.demand.claims

    def own(self) -> Iterator[Member]:
        """What the demand itself asks for."""
        offers = self.context.offers
        for number, claim in enumerate(self.claims):
            if claim.defect and not claim.requests:
                yield Member(Kind.REQUEST, claim.defect, Change(claims=frozenset({number})))
            for index, constraint in enumerate(claim.constraints):
                title = f"claim {claim.key}, constraint #{index}: {constraint.kind.value} {constraint.attribute}"
                yield Member(Kind.CONSTRAINT, title, Change(constraints=frozenset({(number, index)})))
            for index, request in enumerate(claim.requests):
                title = f"claim {claim.key}, request {request.name}"
                asked = " or ".join(one.defect or self._asked(one) for one in request.alternatives)
                yield Member(Kind.REQUEST, title, Change(requests=frozenset({(number, index)})), f"asks for {asked}")
        for place, claim, alternative in alternatives_of(self.claims):
            about = f"claim {claim.key}, request {alternative.name}"
            for index, clause in enumerate(offers.clauses(alternative.index)):
                change = Change(variations={place: Variation(without=frozenset({index}))})
                yield Member(Kind.CLASS if clause.of_class else Kind.SELECTOR, f"{about}, {clause}", change)
            for name, quantity in offers.amounts(alternative.index).items():
                change = Change(variations={place: Variation(unasked=frozenset({name}))})
                yield Member(Kind.AMOUNT, f"{about}, capacity {name}: {quantity}", change)

    def _asked(self, alternative: Alternative) -> str:
        of_class = self.context.offers.class_name(alternative.index)
        return f"{devices_text(alternative.count)}{f' of class {of_class}' if of_class else ''}"

    def taints(self) -> Iterator[Member]:
        """The taints that are not tolerated."""
        places: dict[DeviceTaint, set[Place]] = {}
        for place, _, alternative in alternatives_of(self.claims):
            for device in self._representatives:
                for taint in self.context.offers.taints(alternative.index, device):
                    places.setdefault(taint, set()).add(place)
        for taint, concerned in sorted(places.items(), key=lambda item: taint_text(item[0])):
            variations = {place: Variation(tolerated=frozenset({taint})) for place in concerned}
            yield Member(Kind.TAINT, f"taint {taint_text(taint)}", Change(variations=variations))

    @property
    def _representatives(self) -> list[int]:
        """One device of each key."""
        keys: dict[object, int] = {}
        for device in range(len(self.problem.devices)):
            keys.setdefault(self.context.offers.device_key(device), device)
        return list(keys.values())

    def nodes(self) -> Iterator[Member]:
        """The rules that leave nodes out."""
        counts: dict[str, int] = {}
        for node in range(len(self.problem.nodes)):
            for rule in self.lab.rules(node):
                counts[rule] = counts.get(rule, 0) + 1
        for rule, number in counts.items():
            nodes = "1 node" if number == 1 else f"{number} nodes"
            yield Member(Kind.NODES, rule, Change(rules=frozenset({rule})), f"leaves out {nodes}")

    def counters(self) -> Iterator[Member]:
        """The counters, by driver and name."""
        sums: dict[tuple[str, str], list[int]] = {}
        for number, counter in enumerate(self.problem.counters):
            entry = sums.setdefault((counter.id.driver, counter.id.counter), [0, 0, 0])
            entry[0] += counter.total
            entry[1] += self.context.ledger.free[number]
            entry[2] += 1
        held = self._drawn()
        for (driver, name), (total, free, sets) in sums.items():
            holders = self.wording.holders(held.get((driver, name), {}))
            together = f" in {sets} counter sets" if sets > 1 else ""
            detail = f"{amount(free)} free of {amount(total)}{together}, {holders}"
            change = Change(counters=frozenset({(driver, name)}))
            yield Member(Kind.COUNTER, f"counter {name} of {driver}", change, detail)

    def _drawn(self) -> Mapping[tuple[str, str], Mapping[ClaimKey, int]]:
        drawn: dict[tuple[str, str], dict[ClaimKey, int]] = {}
        for number, counter in enumerate(self.problem.counters):
            entry = drawn.setdefault((counter.id.driver, counter.id.counter), {})
            for claim, nanos in self.context.ledger.holders_of_counter(number).items():
                entry[claim] = entry.get(claim, 0) + nanos
        return drawn

    def groups(self) -> Iterator[Member]:
        """The compatibility groups (KEP-5963), by driver."""
        drivers = dict.fromkeys(device.id.driver for device in self.problem.devices if device.compatibility)
        for driver in drivers:
            yield Member(
                Kind.GROUPS, f"compatibility groups of devices of {driver}", Change(groups=frozenset({driver}))
            )

    def capacities(self) -> Iterator[Member]:
        """The capacities of shareable devices, by driver and name."""
        consumed: dict[tuple[str, str], dict[ClaimKey, int]] = {}
        for device in self.problem.devices:
            for name in device.capacity if device.shareable else ():
                entry = consumed.setdefault((device.id.driver, name), {})
                for claim, nanos in self.context.ledger.holders_of_capacity(device.slot, name).items():
                    entry[claim] = entry.get(claim, 0) + nanos
        for (driver, name), held in consumed.items():
            change = Change(capacities=frozenset({(driver, name)}))
            yield Member(Kind.CAPACITY, f"capacity {name} of {driver}", change, self.wording.holders(held))

    def caps(self) -> Iterator[Member]:
        """The caps of the demand's namespace, with who uses how much."""
        caps, namespaces = self.lab.turn.caps, {claim.key.namespace for claim in self.claims}
        for budget in caps.budgets:
            if budget.namespace in namespaces:
                users = caps.users(budget)
                who = f", {self.wording.holders(users)}" if users else ""
                yield Member(
                    Kind.CAP,
                    f"cap {budget.namespace}={budget.resource}:{amount(budget.most or 0)}",
                    Change(caps=frozenset({Cap(budget.namespace, budget.resource)})),
                    f"{amount(budget.used)} used{who}",
                )

    def holders(self) -> Iterator[Member]:
        """The claims that hold something; many are told apart by what they ask for."""
        ledger = self.context.ledger
        keys = [key for key, held in ledger.by_claim.items() if held and key not in self.lab.turn.own]
        if len(keys) <= _SINGLE_HOLDERS:
            groups: list[list[ClaimKey]] = [[key] for key in keys]
        else:
            by_kind: dict[object, list[ClaimKey]] = {}
            for key in keys:
                by_kind.setdefault(self._kind(key), []).append(key)
            groups = sorted(by_kind.values(), key=len, reverse=True)
            rest = [key for group in groups[_MOST_GROUPS:] for key in group]
            groups = groups[:_MOST_GROUPS] + ([rest] if rest else [])
        for group in groups:
            yield Member(Kind.HOLDER, self._title(group), Change(released=frozenset(group)), self._held(group))

    def _held(self, group: list[ClaimKey]) -> str:
        """What some claims hold."""
        slots = dict.fromkeys(holding.slot for key in group for holding in self.context.ledger.by_claim[key])
        named = [str(self.problem.devices[self.problem.versions[slot][-1]].id) for slot in list(slots)[:_DEVICES_NAMED]]
        more = f" and {len(slots) - _DEVICES_NAMED} more" if len(slots) > _DEVICES_NAMED else ""
        return f"holds {', '.join(named)}{more}"

    def _kind(self, key: ClaimKey) -> object:
        claim = self.compiled.cluster.claim(key) if self.compiled is not None else None
        return key in self.lab.turn.placed, "" if claim is None else repr(claim.spec.devices.requests)

    def _title(self, group: list[ClaimKey]) -> str:
        state = "placed claim" if group[0] in self.lab.turn.placed else "allocated claim"
        if len(group) == 1:
            return f"{state} {group[0]}"
        return f"{len(group)} {state.replace('claim', 'claims', 1)} like {group[0]}"
