"""Whether an answer keeps every rule of the problem that it answers.

It shares no code with the solvers. Its rules are plain loops over the grants:

- `dralloc.check.problem.placed`: what the answer says, with every index looked up and every sum built once; which
  demands are placed, on which nodes, with which gangs and shared claims; what namespaces use, and what the answer says
  about itself;
- here: what each claim got: counts, ``All``, constraints; and what all claims together take of devices, capacities and
  counters;
- `dralloc.check.problem.inter_pod`: who may be near to whom, how evenly pods are spread, and whether pods can have come
  in one order that suits all of that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import pairwise
from typing import assert_never

from dralloc.check.problem import inter_pod, placed
from dralloc.check.problem.placed import Award, Use, View, amount
from dralloc.objects.errors import AllocationError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.problem import (
    MAX_RESULTS,
    AlternativeIndex,
    Constraint,
    ConstraintKind,
    CounterIndex,
    DeviceIndex,
    PoolState,
    Problem,
    Scalar,
    SlotIndex,
)
from dralloc.problem.solution import Solution

__all__ = ["violations"]


# ----------------------------------------------------------------------------
# What each claim got, and what all of them take together.


def every_request_served_once(view: View) -> Iterator[str]:
    """Each request is served by one of its alternatives, in order, with the exact count (KEP-4381, KEP-4816)."""
    for award in view.awards:
        if any(
            earlier.request > later.request
            for earlier, later in pairwise(award.uses)
        ):
            yield f"{award}: results are not in the order of its requests"
        for request_index, request in enumerate(award.claim.requests):
            served = [
                use.alternative.index
                for use in award.uses
                if use.request == request_index
            ]
            if len(set(served)) != 1:
                yield f"{award}: request {request.name}: served by {len(set(served))} alternatives instead of one"
            for alternative in request.alternatives:
                count = served.count(alternative.index)
                if count and alternative.count not in (None, count):
                    yield f"{award}: request {alternative.name}: {count} devices instead of {alternative.count}"


def not_too_many_results(view: View) -> Iterator[str]:
    """A claim gets no more devices than its status can list."""
    for award in view.awards:
        if len(award.uses) > MAX_RESULTS:
            yield f"{award}: {len(award.uses)} devices, more than {MAX_RESULTS}"


def devices_fit_their_requests(view: View) -> Iterator[str]:
    """Each device is one that the node has, that the request selects, and that lets the request in."""
    eligibility = view.problem.eligibility
    for award in view.awards:
        node = view.problem.nodes[award.node].name
        for use in award.uses:
            if use.device_index not in view.offered[award.node]:
                yield f"{use}: in no usable pool of node {node}"
            if not view.problem.on_node(use.device_index, award.node):
                yield f"{use}: not reachable from node {node}"
            selects = eligibility.selects(
                use.alternative.index, use.device_index
            )
            if selects is not True:
                yield f"{use}: not selected" + (
                    f": {selects}"
                    if isinstance(selects, AllocationError)
                    else ""
                )
            if not eligibility.admits(use.alternative.index, use.device_index):
                yield f"{use}: does not admit the request (a taint, or a feature that is off)"
            if use.charge is None:
                yield f"{use}: lacks a requested capacity, or a request policy forbids the amount"


def no_device_twice(view: View) -> Iterator[str]:
    """No device twice in a request, no dedicated device twice in a claim; with admin access neither (KEP-5018)."""
    for award in view.awards:
        # Slots are compared, as two versions of a device are one device.
        if len({use.device.slot for use in award.uses}) == len(award.uses):
            continue
        for (request, slot), count in Counter(
            (use.request, use.device.slot) for use in award.uses
        ).items():
            if count > 1:
                device = next(
                    use.device for use in award.uses if use.device.slot == slot
                )
                name = award.claim.requests[request].name
                yield f"{award}: request {name}: device {device.id}: granted {count} times in one request"
        dedicated = {
            use.device.slot: use.device
            for use in award.uses
            if not use.device.shareable
        }
        for slot, count in Counter(
            use.device.slot for use in award.uses
        ).items():
            if count > 1 and slot in dedicated:
                yield f"{award}: dedicated device {dedicated[slot].id}: granted {count} times in one claim"


def all_means_all(view: View) -> Iterator[str]:
    """Allocation mode ``All`` gets every matching device of the node (KEP-4381).

    Only a shareable device may be missing, if the other demands, be they earlier or later, leave too little of its
    capacity: which devices "all" are is settled before the demand itself takes any (upstream behaviour). Pools must not
    be incomplete or invalid.
    """
    for award in view.awards:
        by_alternative: dict[int, list[Use]] = {}
        for use in award.uses:
            if use.alternative.count is None:
                by_alternative.setdefault(use.alternative.index, []).append(use)
        for uses in by_alternative.values():
            yield from _not_all(view, award, uses)


def _not_all(view: View, award: Award, uses: list[Use]) -> Iterator[str]:
    node, alternative = view.problem.nodes[award.node], uses[0].alternative
    for state in (PoolState.INCOMPLETE, PoolState.INVALID):
        for pool in node.pools_in(state):
            reason = f"pool {pool.id} is {state.value}: {pool.reason}"
            yield f"{award}: request {alternative.name}: all devices, but {reason}"
    granted = {use.device_index for use in uses}
    for index in node.devices():
        if index not in granted and _must_have(
            view, award, alternative.index, index
        ):
            missing = view.problem.devices[index].id
            yield f"{award}: request {alternative.name}: all devices, but matching device {missing} is missing"


def _must_have(
    view: View, award: Award, alternative: AlternativeIndex, index: DeviceIndex
) -> bool:
    """Whether an alternative that wants all devices must get this one."""
    device, eligibility = view.problem.devices[index], view.problem.eligibility
    if (
        not view.problem.on_node(index, award.node)
        or eligibility.selects(alternative, index) is not True
    ):
        return False
    charge = eligibility.charge(alternative, index)
    if charge is None:
        return False
    uses = view.by_slot.get(device.slot, [])
    beside = [
        use
        for use in uses
        if not use.alternative.admin and use.demand != award.demand
    ]
    return not device.shareable or all(
        view.capacity_taken(device.slot, name, beside) + nanos
        <= device.capacity[name].total
        for name, nanos in charge.capacity
    )


def constraints_hold(view: View) -> Iterator[str]:
    """The devices that a constraint covers agree in the attribute (KEP-4381), or differ in it (KEP-5075)."""
    for award in view.awards:
        for constraint in award.claim.constraints:
            if constraint.scope is None:
                covered = [
                    (use, constraint)
                    for use in award.uses
                    if constraint.covers(use.alternative.name)
                ]
                yield from _broken(str(award), constraint, covered)


def constraints_over_claims_hold(view: View) -> Iterator[str]:
    """Check that the devices which a constraint covers on several claims, earlier ones included, keep it."""
    forms: dict[Hashable, dict[ClaimKey, Constraint]] = defaultdict(dict)
    for placement in view.solution.placements:
        demand = view.problem.demands[placement.demand]
        for claim in demand.claims:
            for constraint in claim.constraints:
                if constraint.scope is not None:
                    # Without a group a scope is about one demand, and other demands have scopes with the same number.
                    owner = constraint.scope.group or placement.demand
                    forms[owner, constraint.scope][claim.key] = constraint
    uses: dict[ClaimKey, list[Use]] = defaultdict(list)
    for award in view.awards if forms else ():
        uses[award.claim.key] += award.uses
    for of_claims in forms.values():
        covered = [
            (use, constraint)
            for key, constraint in of_claims.items()
            for use in uses[key]
            if constraint.covers(use.alternative.name)
        ]
        yield from _broken(
            f"claims {', '.join(map(str, of_claims))}",
            next(iter(of_claims.values())),
            covered,
        )


def _broken(
    about: str, constraint: Constraint, covered: list[tuple[Use, Constraint]]
) -> Iterator[str]:
    """Yield the violations of a constraint by the devices that it covers, each with its form for the claim."""
    values = [
        (use, use.device.attributes.get(form.compared(use.alternative.name)))
        for use, form in covered
    ]
    with_attribute = []
    for use, attribute in values:
        if attribute is None:
            yield f"{use}: {constraint.kind.value}: lacks the attribute {constraint.attribute}"
        else:
            with_attribute.append((use, attribute))
    before = constraint.scope.held if constraint.scope else ()
    compared = [*before, *(attribute for _, attribute in with_attribute)]
    # A device without the attribute is the violation: then the values of the others are not compared.
    is_complete = len(with_attribute) == len(values)
    if is_complete and not _holds(constraint.kind, compared):
        names = ", ".join(
            f"{use.device.id} {_words(attribute)}"
            for use, attribute in with_attribute
        )
        beside = (
            f" beside {', '.join(map(_words, before))} of allocated claims"
            if before
            else ""
        )
        yield f"{about}: {constraint.kind.value} {constraint.attribute}: violated by {names}{beside}"


def _holds(kind: ConstraintKind, sets: list[frozenset[Scalar]]) -> bool:
    """Whether devices with these values may be together under a constraint."""
    match kind:
        case ConstraintKind.MATCH:
            return _match(sets)
        case ConstraintKind.DISTINCT:
            return _distinct(sets)
        case _:
            assert_never(kind)


def _match(sets: list[frozenset[Scalar]]) -> bool:
    """Some value is on all devices; one device alone agrees with itself."""
    return len(sets) < 2 or bool(frozenset.intersection(*sets))


def _distinct(sets: list[frozenset[Scalar]]) -> bool:
    """No value is on two devices, and at most one device has a value that cannot be compared."""
    times = Counter(value for values in sets for value in values)
    return (
        all(count == 1 for count in times.values())
        and sum(not values for values in sets) <= 1
    )


def _words(values: frozenset[Scalar]) -> str:
    return f"({', '.join(sorted(str(value) for _, value in values))})"


# ----------------------------------------------------------------------------
# Rules about what all claims together take of a device, its capacities and its
# counters.


def dedicated_devices_have_one_owner(view: View) -> Iterator[str]:
    """A dedicated device belongs to one claim, new or allocated; admin access does not count (KEP-4381, KEP-5018)."""
    usage = view.problem.usage
    for slot, uses in view.by_slot.items():
        owners = [use for use in uses if not use.alternative.admin]
        for use in owners:
            if slot in usage.held:
                yield f"{use}: held by an allocated claim"
            if slot in usage.shares and not use.device.shareable:
                yield f"{use}: dedicated, but shared by {usage.shares[slot]} allocated claims"
        if len(owners) > 1 and any(not use.device.shareable for use in owners):
            claims = ", ".join(str(use.claim.key) for use in owners)
            yield f"device {owners[0].device.id}: dedicated, but granted {len(owners)} times: to {claims}"


def capacities_suffice(view: View) -> Iterator[str]:
    """Of a shareable device no more capacity is consumed than it has (KEP-5075).

    Admin access holds nothing once it is allocated: what it takes counts beside the other grants of its demand, but not
    beside those of other demands (upstream behaviour).
    """
    for slot, uses in view.by_slot.items():
        yield from _capacities(
            view, slot, [use for use in uses if not use.alternative.admin]
        )
        for demand in sorted(
            {use.demand for use in uses if use.alternative.admin}
        ):
            within = f" in demand {view.problem.demands[demand].key} with admin access"
            yield from _capacities(
                view,
                slot,
                [use for use in uses if use.demand == demand],
                within,
            )


def _capacities(
    view: View, slot: SlotIndex, uses: list[Use], within: str = ""
) -> Iterator[str]:
    """Yield the amounts that these grants take together of one device.

    While its pool is updated, versions of the device can have different totals, and for a grant only the version is
    in force that its node sees (upstream behaviour). There is an order in which every grant fits if those on the
    versions with no more than a total stay within that total.
    """
    by_version: dict[int, list[Use]] = defaultdict(list)
    for use in uses:
        if use.device.shareable:
            by_version[use.device_index].append(use)
    for of_version in by_version.values():
        names: set[str] = set()
        for use in of_version:
            if use.charge is not None:
                names.update(name for name, _ in use.charge.capacity)
        device = of_version[0].device
        for name in sorted(names):
            if name not in device.capacity:
                nanos = view.capacity_taken(slot, name, of_version)
                yield f"device {device.id}: charged {amount(nanos)} of a capacity {name} that it lacks{within}"
                continue
            total = device.capacity[name].total
            # Grants on versions with a larger total can come last, so they do not count here.
            counted = [use for use in uses if _total(use, name) <= total]
            nanos = view.capacity_taken(slot, name, counted)
            if nanos > total:
                yield f"device {device.id}: capacity {name}: {amount(nanos)} taken of {amount(total)}{within}"


def _total(use: Use, name: str) -> int:
    capacity = use.device.capacity.get(name)
    return capacity.total if capacity else 0


def counters_suffice(view: View) -> Iterator[str]:
    """No counter is charged more than is free.

    A device charges its counters once, when it comes into use (KEP-4815); what is charged by request counts for every
    grant, beside what the device charges (KEP-5941). Admin access charges nothing.
    """
    charges: dict[CounterIndex, list[tuple[int, DeviceID]]] = defaultdict(list)
    in_force = frozenset(view.in_force)
    opening = (
        use
        for slot in view.opened
        for use in view.by_slot[slot]
        if not use.alternative.admin
    )
    # A device that comes into use is charged in all of its versions. Of one that did not open it, only those counters
    # are looked at of which a grant takes something by request.
    by_request = {
        (use.device_index, counter)
        for use in opening
        if use.charge
        for counter, _ in use.charge.counters
    }
    for version in dict.fromkeys(
        (*view.in_force, *(index for index, _ in by_request))
    ):
        device = view.problem.devices[version]
        for counter, nanos in device.consumes:
            if version in in_force or (version, counter) in by_request:
                charges[counter].append((nanos, device.id))
    # What is charged by request counts for every grant, whenever the device came into use.
    for uses in view.by_slot.values():
        for use in uses:
            if not use.alternative.admin and use.charge is not None:
                for counter, nanos in use.charge.counters:
                    charges[counter].append((nanos, use.device.id))
    for counter, charged in charges.items():
        published = view.problem.counters[counter]
        total = sum(nanos for nanos, _ in charged)
        if total > published.free:
            devices = ", ".join(dict.fromkeys(str(name) for _, name in charged))
            yield f"counter {published.id}: {amount(total)} charged, {amount(published.free)} free: by {devices}"


def overdrawn_groups_are_closed(view: View) -> Iterator[str]:
    """No device that consumes counters comes into use where allocated claims overdraw a counter of its group."""
    overdrawn = {
        counter.group: counter
        for counter in view.problem.counters
        if counter.free < 0
    }
    in_force = frozenset(view.in_force) if overdrawn else frozenset()
    for slot in view.opened:
        for use in view.by_slot[slot]:
            counter = overdrawn.get(use.device.group)
            opens = use.device_index in in_force and not use.alternative.admin
            if counter is not None and use.device.consumes and opens:
                yield f"{use}: its counters are closed: counter {counter.id} is overdrawn, {amount(counter.free)} free"


def counter_sets_have_a_common_group(view: View) -> Iterator[str]:
    """Check that all devices in use on a counter set have a compatibility group in common (KEP-5963)."""
    common = _common_groups(view)
    members: dict[int, list[tuple[frozenset[str], DeviceID]]] = defaultdict(
        list
    )
    for version in view.in_force:
        device = view.problem.devices[version]
        for counter_set, groups in device.compatibility:
            members[counter_set].append((groups, device.id))
    for counter_set, joined in members.items():
        before = common.get(counter_set)
        if not frozenset.intersection(
            *(groups for groups, _ in joined),
            *([] if before is None else [before]),
        ):
            devices = ", ".join(dict.fromkeys(str(name) for _, name in joined))
            beside = "" if before is None else " beside allocated devices"
            yield f"no compatibility group in common on a counter set{beside}: {devices}"


def _common_groups(view: View) -> Mapping[int, frozenset[str]]:
    """Return, by counter set, the groups that allocated devices there have in common."""
    usage = view.problem.usage
    common = dict(usage.compatibility)
    for device in () if view.problem.is_additive else view.problem.devices:
        if device.slot in usage.held or device.slot in usage.shares:
            for counter_set, groups in device.compatibility:
                common[counter_set] = common.get(counter_set, groups) & groups
    return common


# ----------------------------------------------------------------------------
# All rules, those of the other modules among them.

Rule = Callable[[View], Iterator[str]]

RULES: tuple[Rule, ...] = (
    placed.each_demand_once_in_order,
    placed.on_candidate_nodes,
    placed.gangs_have_their_quorum,
    placed.groups_have_their_quorum,
    placed.shared_claims_are_allocated_once,
    placed.shared_claims_can_be_used,
    placed.nothing_with_a_defect,
    every_request_served_once,
    not_too_many_results,
    devices_fit_their_requests,
    no_device_twice,
    all_means_all,
    constraints_hold,
    constraints_over_claims_hold,
    dedicated_devices_have_one_owner,
    capacities_suffice,
    counters_suffice,
    overdrawn_groups_are_closed,
    counter_sets_have_a_common_group,
    inter_pod.nobody_is_too_near,
    inter_pod.spread_is_even,
    inter_pod.groups_are_in_one_domain,
    inter_pod.affinity_has_an_order,
    inter_pod.rules_have_one_order,
    placed.caps_are_kept,
    placed.fairness_is_true,
    placed.values_are_true,
    placed.bounds_and_status_agree,
)


@without_garbage_collection()
def violations(problem: Problem, solution: Solution) -> list[str]:
    """Every violation in a solution, each with the object, the rule and the numbers.

    A solution that refers to things the problem does not have is judged by that alone.
    """
    unknown = list(placed.unknown_references(problem, solution))
    if unknown:
        return unknown
    view = View(problem, solution)
    return [violation for rule in RULES for violation in rule(view)]
