"""First fit's answer for every node, with the first reason that rules it out.

From the bottom: which devices are excluded by what, for one request on one node; why requests do not fit together
although each of them does alone; then all nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Final, assert_never

from dralloc.ask.context.context import Context, Lift
from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.reasons import (
    Change,
    Code,
    FilterReason,
    NodeReason,
    Wording,
    constraint_places,
    constraint_text,
    groups_text,
    request_text,
    taint_text,
)
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.compile.match.slips import capacity_slip
from dralloc.objects.api import DeviceTaint
from dralloc.objects.errors import NodeError
from dralloc.objects.report import amount
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    AlternativeIndex,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    Request,
)
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.ledger import Scarcity, Shortage
from dralloc.problem.named_limits import Limit, limits_of
from dralloc.problem.subproblem import ONLY_NODE, Subproblem
from dralloc.solve.first_fit import first_fit

__all__ = ["Diagnosis"]

# ----------------------------------------------------------------------------
# One request, one node: which devices are excluded by what, until too few are left.

_DETAILED: Final = 3
"""Of devices that are excluded alike, so many are described."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why one device cannot serve a request: a label that is the same for many devices, and the particulars."""

    code: Code
    label: str
    detail: Callable[[], str] = field(default=str, compare=False)


_ORDER: Final = {code: rank for rank, code in enumerate(Code)}
"""Exclusions in the order in which they count: what a device is, before what is in use."""


class FilterTrace:
    """Tells the devices of a node apart by what excludes them."""

    def __init__(self, context: Context, wording: Wording) -> None:
        self._context = context
        self._wording = wording
        self._published: dict[tuple[int, object], Exclusion | None] = {}

    def shortage(
        self, claim: Claim, alternative: Alternative, node: NodeIndex
    ) -> FilterReason | None:
        """Return why too few devices are left for a request alone; None if there are enough."""
        exclusions = [
            self._exclusion(alternative, *reached)
            for reached in self._reached(node)
        ]
        groups: dict[Exclusion, list[Exclusion]] = defaultdict(list)
        for exclusion in filter(None, exclusions):
            groups[exclusion].append(exclusion)
        usable, least = exclusions.count(None), alternative.count or 1
        if alternative.count is None:
            # Of all devices that match, one that cannot be had is one too many. Those that do
            # not match are none of them.
            blocking = {
                exclusion: equal
                for exclusion, equal in groups.items()
                if _ORDER[exclusion.code] >= _ORDER[Code.IN_USE]
            }
            if blocking:
                groups, usable, least = blocking, 0, len(exclusions)
            elif usable:
                return None
        elif usable >= least:
            return None
        if groups:
            excluded = dict(
                sorted(groups.items(), key=lambda item: _ORDER[item[0].code])
            )
            return _cause(
                request_text(claim, alternative),
                alternative.count,
                excluded,
                usable,
                least,
            )
        text = (
            "the node has too few devices"
            if usable
            else "the node has no devices"
        )
        return FilterReason(
            Code.NO_DEVICE, text, request_text(claim, alternative)
        )

    def _reached(self, node: NodeIndex) -> Iterator[tuple[DeviceIndex, object]]:
        problem, offers = self._context.problem, self._context.offers
        for pool in problem.nodes[node].pools:
            for device, device_key in zip(
                pool.devices, offers.device_keys(pool.devices), strict=True
            ):
                if problem.on_node(device, node):
                    yield device, device_key

    def _exclusion(
        self, alternative: Alternative, device: DeviceIndex, device_key: object
    ) -> Exclusion | None:
        """Return why a device cannot serve an alternative even with nothing else allocated; None if it can."""
        # What is published is the same for all devices of one key; what is in use is not.
        key = alternative.index, device_key
        if key not in self._published:
            self._published[key] = next(
                self._unfit(alternative.index, device), None
            )
        return self._published[key] or next(
            self._in_the_way(alternative, device), None
        )

    # What the device is, whatever is in use.

    def _unfit(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Iterator[Exclusion]:
        offers = self._context.offers
        verdict = offers.selects(alternative, device)
        if verdict is False:
            yield self._unselected(alternative, device)
        elif verdict is not True:
            yield Exclusion(Code.CEL, "a selector fails", partial(str, verdict))
        if offers.charge(alternative, device) is None:
            yield self._too_small(alternative, device)

    def _unselected(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Exclusion:
        offers = self._context.offers
        clauses = offers.clauses(alternative)
        # The first clause that alone excludes the device is blamed.
        for clause_index, clause in enumerate(clauses):
            other_clauses = frozenset(range(len(clauses))) - {clause_index}
            if (
                offers.selects(
                    offers.vary(alternative, Variation(without=other_clauses)),
                    device,
                )
                is False
            ):
                if clause.of_class:
                    return Exclusion(
                        Code.CLASS,
                        f"not of class {clause.of_class}",
                        partial(str, clause),
                    )
                return Exclusion(Code.SELECTOR, f"does not match {clause}")
        if offers.knows_selectors:
            return Exclusion(
                Code.FEATURE,
                "has binding conditions, and DRADeviceBindingConditions is off",
            )
        return Exclusion(Code.SELECTOR, "does not match the selectors")

    def _too_small(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Exclusion:
        offers = self._context.offers
        capacity = self._context.problem.devices[device].capacity
        amounts = offers.amounts(alternative)
        for name, requested in amounts.items():
            # The amount alone, without any of the others that are asked for.
            unasked = tuple((unmet, None) for unmet in amounts if unmet != name)
            varied = offers.vary(alternative, Variation(amounts=unasked))
            if offers.charge(varied, device) is None:
                if name not in capacity:
                    meant = capacity_slip(name, capacity)
                    return Exclusion(
                        Code.AMOUNT,
                        f"capacity {name}: {requested} asked, the device has none of that name{meant}",
                    )
                if requested.nanos > capacity[name].total:
                    published = amount(capacity[name].total)
                    return Exclusion(
                        Code.AMOUNT,
                        f"capacity {name}: {requested} asked, the device has {published}",
                    )
                return Exclusion(
                    Code.AMOUNT,
                    f"capacity {name}: the device's request policy does not allow {requested}",
                )
        return Exclusion(
            Code.AMOUNT, "the amounts that are asked are not offered"
        )

    # What is in use.

    def _in_the_way(
        self, alternative: Alternative, device_index: DeviceIndex
    ) -> Iterator[Exclusion]:
        device = self._context.problem.devices[device_index]
        charge = (
            self._context.offers.charge(alternative.index, device_index)
            or Charge()
        )
        shortages = list(
            self._context.ledger.shortages(
                device, charge, admin=alternative.admin
            )
        )
        # Taints come between a device that is in use and what else is short, as in upstream's order of checks.
        for shortage in shortages:
            if shortage.scarcity is Scarcity.DEVICE:
                yield self._short(alternative, device_index, shortage)
        if not self._context.offers.admits(alternative.index, device_index):
            yield self._unadmitted(alternative, device_index)
        for shortage in shortages:
            if shortage.scarcity is not Scarcity.DEVICE:
                yield self._short(alternative, device_index, shortage)

    def _short(
        self,
        alternative: Alternative,
        device_index: DeviceIndex,
        shortage: Shortage,
    ) -> Exclusion:
        device = self._context.problem.devices[device_index]
        match shortage.scarcity:
            case Scarcity.COUNTER:
                counter = CounterIndex(int(shortage.subject))
                label = f"counter {self._context.problem.counters[counter].id.counter} is short"
                return Exclusion(
                    Code.COUNTER,
                    label,
                    partial(self._left, device, counter, shortage.requested),
                )
            case Scarcity.CAPACITY:
                name = str(shortage.subject)
                detail = partial(
                    self._full,
                    alternative,
                    device_index,
                    name,
                    shortage.requested,
                )
                return Exclusion(
                    Code.CAPACITY, f"capacity {name} is short", detail
                )
            case Scarcity.GROUPS:
                counter_set = int(shortage.subject)
                label = f"its counter set is in use in other {shortage.scarcity.value}"
                return Exclusion(
                    Code.GROUPS,
                    label,
                    partial(self._clash, device_index, counter_set),
                )
            case Scarcity.DEVICE:
                return Exclusion(
                    Code.IN_USE, "in use", partial(self._held, device)
                )
            case _:
                assert_never(shortage.scarcity)

    def _held(self, device: Device) -> str:
        holders = self._context.ledger.holders_of_device(device.slot)
        return f"{device.id}: {self._wording.holders(holders, amounts=False)}"

    def _unadmitted(
        self, alternative: Alternative, device: DeviceIndex
    ) -> Exclusion:
        taints: tuple[DeviceTaint, ...] = self._context.offers.taints(
            alternative.index, device
        )
        if taints:
            named = ", ".join(map(taint_text, taints))
            return Exclusion(Code.TAINT, f"taint {named} is not tolerated")
        if self._context.problem.features.PartitionableDevices:
            return Exclusion(Code.TAINT, "a taint is not tolerated")
        return Exclusion(
            Code.FEATURE,
            "consumes counters, and DRAPartitionableDevices is off",
        )

    def _left(self, device: Device, index: CounterIndex, needed: int) -> str:
        counter, free = (
            self._context.problem.counters[index],
            self._context.ledger.free[index],
        )
        holders = self._wording.holders(
            self._context.ledger.holders_of_counter(index)
        )
        remainder = (
            f"{amount(free)} free of {amount(counter.total)}"
            if free >= 0
            else f"overdrawn by {amount(-free)}"
        )
        need = f"{amount(needed)} needed, " if needed else ""
        return f"{device.id}: counter {counter.id.counter_set}/{counter.id.counter}: {need}{remainder}, {holders}"

    def _clash(self, device_index: DeviceIndex, counter_set: int) -> str:
        device, ledger = (
            self._context.problem.devices[device_index],
            self._context.ledger,
        )
        device_groups = groups_text(device.groups_on(counter_set))
        users = self._wording.users(ledger.users_of_set(counter_set))
        name = self._wording.counter_set(device_index, counter_set)
        return f"{device.id}: {name} is used {users}; the device is {device_groups}"

    def _full(
        self,
        alternative: Alternative,
        device_index: DeviceIndex,
        name: str,
        needed: int,
    ) -> str:
        device, ledger = (
            self._context.problem.devices[device_index],
            self._context.ledger,
        )
        total, available = (
            device.capacity[name].total,
            ledger.capacity_left(device, name),
        )
        need = self._wording.taken(
            device_index,
            name,
            self._context.offers.amounts(alternative.index).get(name),
            needed,
        )
        holders = self._wording.holders(
            ledger.holders_of_capacity(device.slot, name)
        )
        return f"{device.id}: capacity {name}: {need} needed, {amount(available)} left of {amount(total)}, {holders}"


def _cause(
    subject: str,
    count: int | None,
    excluded: Mapping[Exclusion, list[Exclusion]],
    usable: int,
    least: int,
) -> FilterReason:
    """The exclusion with which fewer than the least are left, with all that are looked for before and after it."""
    # Exclusions are in the order in which they count, so that the first with which too few
    # are left decides; later ones would not have been looked at.
    total = usable + sum(map(len, excluded.values()))
    gone = accumulate(map(len, excluded.values()))
    decisive = next(
        exclusion
        for exclusion, excluded_count in zip(excluded, gone, strict=True)
        if total - excluded_count < least
    )
    equal = excluded[decisive]
    return FilterReason(
        code=decisive.code,
        text=_words(decisive, count),
        subject=subject,
        devices=len(equal),
        excluded=tuple(
            (exclusion.label, len(group))
            for exclusion, group in excluded.items()
        ),
        details=tuple(
            filter(
                None, (exclusion.detail() for exclusion in equal[:_DETAILED])
            )
        ),
    )


def _words(decisive: Exclusion, count: int | None) -> str:
    if decisive.code is Code.CLASS:
        wants_several = count is not None and count > 1
        return (
            f"too few devices: {decisive.label}"
            if wants_several
            else decisive.label.replace("not of", "no device of")
        )
    if count is None and _ORDER[decisive.code] >= _ORDER[Code.IN_USE]:
        return f"asks for all devices, and not all can be had: {decisive.label}"
    return decisive.label


# ----------------------------------------------------------------------------
# Why requests do not fit on a node together although each of them does alone.

_CODES: Final = {
    Scarcity.COUNTER: Code.COUNTER,
    Scarcity.CAPACITY: Code.CAPACITY,
    Scarcity.GROUPS: Code.GROUPS,
}
"""Limits in the order in which they are lifted, with what a request is then rejected for."""


@dataclass(frozen=True)
class JointReason:
    """The first rule without which the fewest of a demand's requests that do not fit together on a node would.

    ``part``: the node with what the demand could get there.
    """

    context: Context
    node: NodeIndex
    demand: Demand
    part: Subproblem

    def reason(self) -> FilterReason:
        """Return the rule to blame, for the first requests that do not fit together."""
        claims = next(
            claims for claims in self._narrowed() if not self._fits(claims)
        )
        about = ", ".join(
            request_text(claim, request)
            for claim in claims
            for request in claim.requests
        )
        return replace(self._rule(claims), subject=about)

    def _narrowed(self) -> Iterator[tuple[Claim, ...]]:
        """Each request alone, then the first ones, one more each time."""
        positions = [
            (claim_index, request_index)
            for claim_index, claim in enumerate(self.demand.claims)
            for request_index in range(len(claim.requests))
        ]
        parts = [[position] for position in positions]
        parts += [positions[:count] for count in range(2, len(positions))]
        for part in parts:
            left_out = frozenset(positions).difference(part)
            claims = self._without(
                self.demand.claims, Change(requests=left_out)
            )
            yield tuple(claim for claim in claims if claim.requests)
        yield self.demand.claims

    def _without(
        self, claims: tuple[Claim, ...], change: Change
    ) -> tuple[Claim, ...]:
        return change.of(
            replace(self.demand, claims=claims), self.context.offers
        ).claims

    def _fits(
        self, claims: tuple[Claim, ...], problem: Problem | None = None
    ) -> bool:
        demand = self.demand.by_itself(claims=claims, nodes=None)
        return bool(
            first_fit(
                replace(problem or self.part.problem, demands=(demand,))
            ).placements
        )

    def _rule(self, claims: tuple[Claim, ...]) -> FilterReason:
        # Without constraints, they fit or not: constraints are to blame, or amounts are. If
        # no limit makes the difference either, there are just too few devices.
        loose = tuple(replace(claim, constraints=()) for claim in claims)
        if self._fits(loose):
            return self._constraint(claims)
        return (
            self._limits(loose)
            or self._too_many(claims)
            or self._devices(claims)
        )

    def _constraint(self, claims: tuple[Claim, ...]) -> FilterReason:
        # One constraint without which they would fit, or else all of them together.
        all_places = constraint_places(claims)
        blamed = [positions[0] for positions in all_places]
        for positions in all_places:
            without = Change(constraints=frozenset(positions))
            if self._fits(self._without(claims, without)):
                blamed = [positions[0]]
                break
        texts = [
            self._words(
                claims[claim_index].constraints[constraint_index],
                constraint_index,
            )
            for claim_index, constraint_index in blamed
        ]
        details = [
            value_text
            for claim_index, constraint_index in blamed
            for value_text in self._values(
                claims[claim_index], constraint_index
            )
        ]
        return FilterReason(
            Code.CONSTRAINT, "; ".join(texts), details=tuple(details)
        )

    def _words(self, constraint: Constraint, constraint_index: int) -> str:
        match constraint.kind:
            case ConstraintKind.MATCH:
                missing = "no common value"
            case ConstraintKind.DISTINCT:
                missing = "not enough distinct values"
            case _:
                assert_never(constraint.kind)
        return f"{constraint_text(constraint, constraint_index)}: {missing}"

    def _values(self, claim: Claim, constraint_index: int) -> Iterator[str]:
        """Yield how often each value occurs on the devices that selectors accept; what is derived, by request."""
        constraint, eligibility = (
            claim.constraints[constraint_index],
            self.part.problem.eligibility,
        )
        devices = list(self.part.problem.nodes[ONLY_NODE].devices())
        text = f"values of {constraint.attribute} on the"
        if not constraint.derived:
            yield f"{text} selected devices: {self._counts(devices, constraint.attribute)}"
        for alternative in claim.alternatives() if constraint.derived else ():
            if constraint.covers(alternative.name):
                selected = [
                    device
                    for device in devices
                    if eligibility.selects(alternative.index, device) is True
                ]
                counts = self._counts(
                    selected, constraint.compared(alternative.name)
                )
                yield f"{text} devices selected for {alternative.name}: {counts or 'none'}"

    def _counts(self, devices: Iterable[DeviceIndex], attribute: str) -> str:
        counts: Counter[str] = Counter()
        for device in devices:
            values = self.part.problem.devices[device].attributes.get(attribute)
            text = (
                ", ".join(sorted(str(value) for _, value in values or ()))
                or "not comparable"
            )
            counts["none" if values is None else text] += 1
        return "; ".join(f"{text} ({count})" for text, count in counts.items())

    def _limits(self, loose: tuple[Claim, ...]) -> FilterReason | None:
        """Return the resources that are short: those of which an unlimited amount would let the demand fit."""
        for scarcity, code in _CODES.items():
            limits = [
                limit
                for limit in limits_of(self.part.problem)
                if limit.scarcity is scarcity
            ]
            if limits and self._fits_without(loose, limits):
                # Only the names that matter by themselves, if there are any.
                single = [
                    limit
                    for limit in limits
                    if limit.name and self._fits_without(loose, [limit])
                ]
                names = ", ".join(
                    f"{scarcity.value} {limit.name}"
                    for limit in single or limits
                )
                exclude = f"together they need devices whose {scarcity.value} exclude each other"
                return FilterReason(
                    code,
                    exclude
                    if code is Code.GROUPS
                    else f"together more than is free of {names}",
                )
        return None

    def _fits_without(
        self, loose: tuple[Claim, ...], limits: Iterable[Limit]
    ) -> bool:
        return self._fits(
            loose,
            self.context.part(
                [self.node], [self.demand], Lift(frozenset(limits))
            ).problem,
        )

    def _too_many(self, claims: tuple[Claim, ...]) -> FilterReason | None:
        for claim in claims:
            if sum(map(_most_devices, claim.requests)) > MAX_RESULTS:
                return FilterReason(
                    Code.TOO_MANY,
                    f"more than {MAX_RESULTS} results for one claim",
                )
        return None

    def _devices(self, claims: tuple[Claim, ...]) -> FilterReason:
        requests = [request for claim in claims for request in claim.requests]
        requested = sum(map(_fewest_devices, requests))
        accepted = sum(1 for _ in self.part.problem.nodes[ONLY_NODE].devices())
        text = "together they need more devices than can be had"
        return FilterReason(
            Code.TOGETHER,
            text,
            details=(
                f"{requested} asked, selectors accept {accepted}, some of them in use",
            ),
        )


def _most_devices(request: Request) -> int:
    """The most devices that an alternative of a request asks for, ``All`` counting as one."""
    return max(alternative.count or 1 for alternative in request.alternatives)


def _fewest_devices(request: Request) -> int:
    """The fewest devices that an alternative of a request asks for, ``All`` counting as one."""
    return min(alternative.count or 1 for alternative in request.alternatives)


def _reason_of_error(message: str) -> FilterReason:
    """Return the reason for an error of upstream; what helps is said beside it, as for every reason."""
    if ": CEL " in message:
        return FilterReason(Code.CEL, message.partition(". consider using")[0])
    if ": could not retrieve device class " in message:
        return FilterReason(Code.NO_CLASS, message)
    return FilterReason(Code.ERROR, message)


_PUBLISHED = {Code.NO_DEVICE, Code.CLASS, Code.SELECTOR, Code.AMOUNT}
"""Causes that devices of a pool which cannot be used might have met."""


class Diagnosis:
    """Says for each node whether the demand fits there, and if not, why.

    Equal nodes are searched once. Whether the demand fits is always first fit's own answer.
    """

    def __init__(self, snapshot: DemandSnapshot, wording: Wording) -> None:
        self._snapshot = snapshot
        self._wording = wording
        self._trace = FilterTrace(snapshot.context, wording)
        self._allowed = frozenset(snapshot.nodes)
        self._known: dict[Hashable, bool] = {}
        self._joint: dict[Hashable, FilterReason] = {}

    def reason(self, node: NodeIndex) -> NodeReason:
        """The reason for a node; it has no causes if the demand fits there."""
        return NodeReason(
            self._snapshot.problem.nodes[node].name, self._causes(node)
        )

    def _causes(self, node: NodeIndex) -> tuple[FilterReason, ...]:
        if node not in self._allowed:
            if excluding := self._snapshot.exclusion(node):
                return (FilterReason(Code.NODE, "; ".join(excluding)),)
            bars = self._snapshot.bars_of(node)
            details = tuple(bar.detail for bar in bars if bar.detail)
            return (
                FilterReason(
                    Code.FULL,
                    "; ".join(bar.text for bar in bars),
                    details=details,
                ),
            )
        part = self._snapshot.context.part([node], [self._snapshot.demand])
        demand = self._snapshot.demand.by_itself(nodes=None)
        key = inventory_key(part.problem)
        if key in self._known:
            return () if self._known[key] else self._unfit(node, part, key)
        solution = first_fit(replace(part.problem, demands=(demand,)))
        # Errors name devices of this node, so they are not kept for equal ones.
        error = solution.errors.get(0)
        if error is not None and not isinstance(error, NodeError):
            return (_reason_of_error(str(error)),)
        self._known[key] = bool(solution.placements)
        return () if solution.placements else self._unfit(node, part, key)

    def _unfit(
        self, node: NodeIndex, part: Subproblem, key: Hashable
    ) -> tuple[FilterReason, ...]:
        words = self._pools(node, PoolState.INVALID)[:1]
        invalid = (
            [FilterReason(Code.POOL_INVALID, "pool is invalid", details=words)]
            if words
            else []
        )
        short = self._short(node)
        if not short:
            if key not in self._joint:
                self._joint[key] = JointReason(
                    self._snapshot.context, node, self._snapshot.demand, part
                ).reason()
            return (*invalid, self._joint[key])
        return (*invalid, *self._incomplete(node, short), *short)

    def _incomplete(
        self, node: NodeIndex, short: Sequence[FilterReason]
    ) -> Iterator[FilterReason]:
        # Devices that are not published yet would help only where published ones are missing.
        words = self._pools(node, PoolState.INCOMPLETE)[:3]
        if words and all(cause.code in _PUBLISHED for cause in short):
            yield FilterReason(
                Code.POOL_INCOMPLETE, "a pool is incomplete", details=words
            )

    def _pools(self, node: NodeIndex, state: PoolState) -> tuple[str, ...]:
        pools = self._snapshot.problem.nodes[node].pools
        return tuple(
            self._wording.pool(pool) for pool in pools if pool.state is state
        )

    def _short(self, node: NodeIndex) -> tuple[FilterReason, ...]:
        """The causes of the first request that cannot be served even alone, one for each of its alternatives."""
        for claim in self._snapshot.demand.claims:
            for request in claim.requests:
                causes = [
                    self._trace.shortage(claim, alternative, node)
                    for alternative in request.alternatives
                ]
                if causes and all(causes):
                    return tuple(cause for cause in causes if cause is not None)
        return ()
