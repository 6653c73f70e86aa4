"""The rules about places, devices and amounts as rows, one function per family.

`dralloc.solve.optimum.component.RULES` is the table of contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    MAX_RESULTS,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    ParentGroup,
    SlotIndex,
)
from dralloc.problem.indices import grouped
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import (
    Literal,
    Term,
    add_at_most,
    add_at_most_one,
    sum_of,
)
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.variables import Take

__all__ = ["add_capacity"]


def one_node_or_none(model: Model) -> None:
    """A demand is on one node, with all of its claims, or missed."""
    nodes = grouped(
        (demand, on) for (demand, _), on in model.variables.on.items()
    )
    for demand, miss in model.variables.miss.items():
        model.cp.add_exactly_one([miss, *nodes[demand]])


def one_alternative(model: Model) -> None:
    """Require, where the demand is placed, one alternative of each request (KEP-4816)."""
    for requests in model.variables.servings.values():
        for servings in requests:
            if len(servings) > 1:
                literals: list[cp_model.LiteralT] = [
                    serving.literal for serving in servings
                ]
                # The gate is true where the demand is on the node with this claim.
                model.cp.add_exactly_one([*literals, ~servings[0].gate])


def device_count(model: Model) -> None:
    """A served alternative takes as many devices as it asks for (KEP-4381)."""
    for serving in model.variables.every_serving():
        choice, count = serving.choice, serving.choice.count
        if choice.fixed or choice.spec.count is None:
            continue
        literals = [take.literal for take in serving.takes]
        counted: list[Term] = []
        for group_count in serving.group_counts:
            counted += group_count.terms
        if [variable.index for variable, _ in counted] == [
            serving.literal.index
        ]:
            # One group gives all: it is counted by the serving itself.
            continue
        if count == 1:
            literals += [variable for variable, _ in counted]
            model.cp.add_exactly_one([*literals, ~serving.literal])
        else:
            terms = [(literal, 1) for literal in literals] + counted
            model.cp.add(sum_of(terms) == count * serving.literal)


def group_counts(model: Model) -> None:
    """Of interchangeable devices as many are taken as servings count."""
    counts_by_group: dict[int, list[Term]] = defaultdict(list)
    for serving in model.variables.every_serving():
        for group_count in serving.group_counts:
            counts_by_group[group_count.group] += group_count.terms
    for index, group in enumerate(model.variables.device_groups):
        devices = [take.literal for take in group.takes]
        model.cp.add(
            sum_of(counts_by_group[index]) == cp_model.LinearExpr.sum(devices)
        )


def results_limit(model: Model) -> None:
    """A claim gets no more results than its status can hold (``AllocationResultsMaxSize``)."""
    for (
        demand,
        claim,
    ), servings in model.variables.servings_by_claim().items():
        by_node: dict[int, list[Term]] = defaultdict(list)
        for serving in servings:
            # ``All`` takes as many as are not full: only its takes tell.
            if serving.choice.loose:
                by_node[serving.node].extend(
                    (take.literal, 1) for take in serving.takes
                )
            else:
                by_node[serving.node].append(
                    (serving.literal, serving.choice.count)
                )
        key = model.problem.demands[demand].claims[claim].key
        for terms in by_node.values():
            add_at_most(model.cp, terms, MAX_RESULTS, f"claim {key}: results")


def one_user_of_a_device(model: Model) -> None:
    """A dedicated device serves one allocation; admin access is none (KEP-5018).

    Where another generation of the pool publishes the device as shareable, it is either dedicated or shared.
    """
    for slot, literals in model.dedicated_users().items():
        opened = model.variables.opened.get(slot)
        add_at_most_one(
            model.cp, literals if opened is None else [*literals, opened]
        )


def one_use_in_a_claim(model: Model) -> None:
    """Inside one claim a dedicated device is used once, with admin access or without (upstream behaviour)."""
    for servings in model.variables.servings_by_claim().values():
        requests = {serving.choice.request for serving in servings}
        takes = [
            take
            for serving in servings
            for take in serving.takes
            if not take.view.shareable
        ]
        # Without admin access, `one_user_of_a_device` says the same.
        if _any_admin(takes) and len(requests) > 1:
            users = grouped((take.view.slot, take.literal) for take in takes)
            for literals in users.values():
                add_at_most_one(model.cp, literals)


def _any_admin(takes: Sequence[Take]) -> bool:
    return any(take.admin for take in takes)


def opened_by_any_share(model: Model) -> None:
    """A shareable device is in use from its first share on (KEP-5075), in the versions by which it is opened.

    A version with counters need not be in force where a share of one without any opens the device.
    """
    opened, in_force = model.variables.opened, model.variables.in_force
    devices = model.problem.devices
    ledger = Ledger(model.problem)
    shares: dict[DeviceIndex, list[Take]] = defaultdict(list)
    for take in model.variables.takes():
        slot = take.view.slot
        if not take.admin and slot in opened and take.view.shareable:
            model.cp.add_implication(take.literal, opened[slot])
            if in_force[take.device] is not opened[slot]:
                shares[take.device].append(take)
    opened_freely = [
        device for device in shares if devices[device].is_opened_freely
    ]
    for device, takes in shares.items():
        view = devices[device]
        # Versions of the same device whose shares open it at no cost.
        free_openers = [
            in_force[version]
            for version in opened_freely
            if device not in opened_freely
            and devices[version].slot == view.slot
        ]
        for take in takes:
            model.cp.add_bool_or(
                [~take.literal, in_force[device], *free_openers]
            )
        if device in opened_freely:
            model.cp.add_bool_or(
                [~in_force[device], *(take.literal for take in takes)]
            )
        elif view.consumes and ledger.is_overdrawn(view.group):
            model.cp.add(in_force[device] == 0)
        if not free_openers:
            continue
        for counter in dict(view.consumes):
            charged = [
                take.literal
                for take in takes
                if counter in dict(take.charge.counters)
            ]
            if charged:
                _charge_beside(model, device, counter, charged)


def _charge_beside(
    model: Model,
    device: DeviceIndex,
    counter: CounterIndex,
    by_request: Sequence[Literal],
) -> None:
    """Require that charges by request fit beside the device's own consumption, whoever has opened it."""
    consumed = model.variables.consumed[device, counter] = (
        model.cp.new_bool_var("")
    )
    for literal in (*by_request, model.variables.in_force[device]):
        model.cp.add_implication(literal, consumed)


def counters(model: Model) -> None:
    """A device in use consumes counters once (KEP-4815), and each allocation what it asks for (KEP-5941)."""
    for index, terms in model.counter_terms().items():
        counter = model.problem.counters[index]
        add_at_most(model.cp, terms, counter.free, f"counter {counter.id}")


def capacities(model: Model) -> None:
    """The shares of a device take no more of a capacity than it has (KEP-5075).

    Admin access holds nothing once it is allocated: it only has to fit beside the rest of its own demand (upstream
    behaviour).
    """
    takes_of_demand = grouped(
        ((serving.demand, take.view.slot), take)
        for serving in model.variables.every_serving()
        for take in serving.takes
        if take.view.shareable
    )
    shares = grouped(
        (slot, take)
        for (_, slot), takes in takes_of_demand.items()
        for take in takes
        if not take.admin
    )
    with_admin = [
        (slot, takes)
        for (_, slot), takes in takes_of_demand.items()
        if _any_admin(takes)
    ]
    for slot, takes in (*shares.items(), *with_admin):
        names = (name for take in takes for name, _ in take.charge.capacity)
        for name in dict.fromkeys(names):
            add_capacity(model, slot, name, takes)


def add_capacity(
    model: Model, slot: SlotIndex, name: str, takes: Sequence[Take]
) -> None:
    """Add a row for the capacity, or one per total if generations of the pool disagree about the device.

    Only the version that its node sees is in force for a grant (upstream behaviour): there is an order in which every
    grant finds room if those on the versions with no more than a total stay within that total.
    """
    entries = []
    for take in takes:
        charged = dict(take.charge.capacity)
        if name in charged:
            total = take.view.capacity[name].total
            entries.append((total, take.literal, charged[name]))
    consumed = model.problem.usage.consumed.get(slot, {}).get(name, 0)
    row_name = f"device {takes[0].view.id}: capacity {name}"
    for limit in sorted({total for total, _, _ in entries}):
        terms = [
            (literal, amount)
            for total, literal, amount in entries
            if total <= limit
        ]
        add_at_most(model.cp, terms, limit - consumed, row_name)


def compatible_groups(model: Model) -> None:
    """Whatever is in use on a counter set has a compatibility group in common (KEP-5963)."""
    devices = model.problem.devices
    members = grouped(
        (counter_set, (user, groups))
        for device, user in model.first_users()
        for counter_set, groups in devices[device].compatibility
    )
    common_before = Ledger(model.problem).common_groups() if members else {}
    for counter_set, users in sorted(members.items()):
        allowed = common_before.get(counter_set)
        if allowed is None:
            # Nothing is in use on the set yet: any group may become the common one.
            allowed = frozenset[str]().union(*(groups for _, groups in users))
        common = {
            group: model.cp.new_bool_var(f"group {group} of set {counter_set}")
            for group in sorted(allowed)
        }
        model.cp.add_at_most_one(common.values())
        for user, groups in users:
            choices = [common[group] for group in sorted(groups & allowed)]
            model.cp.add_bool_or([~user, *choices])


PLACES_AND_AMOUNTS: Final = (
    one_node_or_none,
    one_alternative,
    device_count,
    group_counts,
    results_limit,
    one_user_of_a_device,
    one_use_in_a_claim,
    opened_by_any_share,
    counters,
    compatible_groups,
    capacities,
)
"""What holds for every demand by itself, and for devices, counters and capacities that they share."""


def gangs(model: Model) -> None:
    """Of a gang as many demands are placed as it needs, or none; and so it is with gangs of a group (KEP-6012)."""
    demands = model.problem.demands
    demand_misses = (
        (demands[index], miss) for index, miss in model.variables.miss.items()
    )
    misses = grouped(
        (demand.gang, (demand, miss))
        for demand, miss in demand_misses
        if demand.gang
    )
    admitted: dict[ParentGroup, dict[str, cp_model.LiteralT]] = defaultdict(
        dict
    )
    for gang, pairs in misses.items():
        (first, *_), members = zip(*pairs, strict=True)
        quorum, parent, rejected = first.quorum, first.parent, members[0]
        if quorum is None:
            for miss in members[1:]:
                model.cp.add(miss == members[0])
        elif quorum > 1 or parent:
            rejected = model.cp.new_bool_var(f"rejected {gang}")
            for miss in members:
                model.cp.add_implication(rejected, miss)
            # A gang that needs nobody is not admitted without anybody, either.
            may_miss = len(members) - max(1, quorum)
            quorum_row = model.cp.add(
                cp_model.LinearExpr.sum(members) <= may_miss
            )
            quorum_row.only_enforce_if(~rejected)
        if parent:
            admitted[parent][gang] = ~rejected
    _parent_groups(model, admitted)


def _parent_groups(
    model: Model, admitted: dict[ParentGroup, dict[str, cp_model.LiteralT]]
) -> None:
    """Of a group's children as many are admitted as it needs, or none."""
    levels = {
        group: len(list(group.upwards()))
        for parent in admitted
        for group in parent.upwards()
    }
    # The lowest first: a group is itself a child of the one above.
    for group in sorted(levels, key=lambda group: -levels[group]):
        is_admitted = model.cp.new_bool_var(f"admitted {group.name}")
        children = admitted[group]
        for child in children.values():
            model.cp.add_implication(child, is_admitted)
        # The quorum is what is missing beside the children that are settled.
        counted = [
            child
            for name, child in children.items()
            if name not in group.settled
        ]
        quorum_row = model.cp.add(
            cp_model.LinearExpr.sum(counted) >= group.quorum
        )
        quorum_row.only_enforce_if(is_admitted)
        if group.parent:
            # One that needs none of them counts for the group above only where somebody is below it.
            model.cp.add_bool_or(~is_admitted, *children.values())
            admitted[group.parent][group.name] = is_admitted


def shared_claims(model: Model) -> None:
    """A claim is granted once, with a demand that is placed, if any is; the others go where its devices are usable."""
    for (demand, _, node), home in model.variables.homes.items():
        model.cp.add_implication(home, model.variables.on[demand, node])
    demands = model.problem.demands
    homes = grouped(
        (demands[demand].claims[claim].key, home)
        for (demand, claim, _), home in model.variables.homes.items()
    )
    for literals in homes.values():
        model.cp.add_at_most_one(literals)
    for demand, claims in model.variables.shared.items():
        for claim in claims:
            granted: list[cp_model.LiteralT] = [
                *homes[demands[demand].claims[claim].key]
            ]
            model.cp.add_bool_or([*granted, model.variables.miss[demand]])
    _within_reach(model)


def _within_reach(model: Model) -> None:
    """A shared claim takes devices that every node with a demand that lists it can use."""
    visits = _visits(model)
    for serving in model.variables.every_serving():
        claim = serving.choice.claim
        if (serving.demand, claim, serving.node) in model.variables.homes:
            visited = visits[
                model.problem.demands[serving.demand].claims[claim].key
            ]
            for take in serving.takes:
                for node, literal in visited.items():
                    if not model.problem.usable_from(
                        take.device, serving.node, node
                    ):
                        model.cp.add_implication(take.literal, ~literal)


def _visits(model: Model) -> dict[ClaimKey, dict[NodeIndex, Literal]]:
    """By claim and node: a demand that lists the claim is on the node."""
    visits: dict[ClaimKey, dict[NodeIndex, Literal]] = defaultdict(dict)
    for (demand, node), on in model.variables.on.items():
        for claim in model.variables.shared.get(demand, ()):
            nodes = visits[model.problem.demands[demand].claims[claim].key]
            if node not in nodes:
                nodes[node] = model.cp.new_bool_var(f"visit {node}")
            model.cp.add_implication(on, nodes[node])
    return visits
