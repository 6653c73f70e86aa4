"""The rules about places, devices, amounts and attributes as rows, one function per family.

`dralloc.solve.optimum.component.RULES` is the table of contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, assert_never

from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    MAX_RESULTS,
    Constraint,
    ConstraintKind,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    ParentGroup,
    Scalar,
    SlotIndex,
)
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.candidates import Candidate
from dralloc.solve.optimum.interchangeable import binding_constraints
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import (
    Literal,
    Term,
    add_at_least,
    add_at_most,
    add_at_most_one,
    sum_of,
)
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.variables import Serving, Take

__all__ = ["add_capacity", "all_but_full", "attribute_constraints"]


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


# ----------------------------------------------------------------------------
# Attribute constraints over the devices of a claim, or of several (KEP-4381; over
# lists, KEP-5491).

_Value = Scalar | int
"""A value of an attribute, or the device that stands for what cannot be compared."""


class _Carried(NamedTuple):
    """Devices that may serve a request, with the values that count there, and what makes them count.

    Parameters
    ----------
    device
        One of them.
    literal
        If it is not 0, there are some of them.
    most
        How many there can be: more than one if they are counted.
    least
        How many there are if there are any.
    """

    serving: Serving
    device: DeviceIndex
    values: frozenset[Scalar]
    literal: Literal
    most: int = 1
    least: int = 1


def attribute_constraints(model: Model) -> None:
    """The devices that a constraint covers agree in an attribute, or differ in it."""
    for constraint, carried in (*_within_claims(model), *_across_claims(model)):
        held = constraint.scope.held if constraint.scope else ()
        match constraint.kind:
            case ConstraintKind.MATCH:
                _equal(model, constraint, carried, held)
            case ConstraintKind.DISTINCT:
                _distinct(model, carried, held)
            case _:
                assert_never(constraint.kind)


def _equal(
    model: Model,
    constraint: Constraint,
    carried: Sequence[_Carried],
    held: Sequence[frozenset[Scalar]],
) -> None:
    """``matchAttribute``: one value that every covered device carries.

    A device without comparable value can only be alone.
    """
    if frozenset.intersection(*held, *(carrier.values for carrier in carried)):
        return
    distinct = dict.fromkeys(
        value for carrier in carried for value in _ordered(carrier)
    )
    chosen = {
        value: model.cp.new_bool_var(f"match {constraint.attribute} {value}")
        for value in distinct
    }
    for value, literal in chosen.items():
        if held and value not in held[0]:
            model.cp.add(literal == 0)
    model.cp.add_at_most_one(chosen.values())
    for carrier in carried:
        choices = [chosen[value] for value in _ordered(carrier)]
        if carrier.most == 1:
            model.cp.add_bool_or([*choices, ~carrier.literal])
        else:
            model.cp.add(
                carrier.literal
                <= carrier.most * cp_model.LinearExpr.sum(choices)
            )
    add_at_most_one(
        model.cp, [carrier.literal for carrier in carried if not carrier.values]
    )
    _tighten(model, carried, chosen)


def _tighten(
    model: Model, carried: Sequence[_Carried], chosen: Mapping[_Value, Literal]
) -> None:
    """A request for one device takes at most one of those with a value: a clique says so better than implications."""
    cliques = grouped(
        (
            (
                carrier.serving.demand,
                carrier.serving.choice.claim,
                carrier.serving.choice.request,
                *values,
            ),
            carrier.literal,
        )
        for carrier in carried
        if carrier.serving.choice.count == 1
        and len(values := _ordered(carrier)) == 1
    )
    for (*_, value), literals in cliques.items():
        if len(literals) > 1:
            model.cp.add_at_most_one([*literals, ~chosen[value]])


def _distinct(
    model: Model, carried: Sequence[_Carried], held: Sequence[frozenset[Scalar]]
) -> None:
    """``distinctAttribute``: no value on two covered devices; what cannot be compared counts as one."""
    carriers = grouped(
        (value, carrier.literal)
        for carrier in carried
        for value in carrier.values or [None]
    )
    for carrier in carried:
        # Devices of a group do not differ.
        if carrier.least > 1:
            model.cp.add(carrier.literal == 0)
    held_values = {value for values in held for value in values or [None]}
    for value, literals in sorted(
        carriers.items(), key=lambda item: repr(item[0])
    ):
        add_at_most_one(model.cp, literals)
        for literal in literals if value in held_values else ():
            model.cp.add(literal == 0)


def _within_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints of single claims that two devices can meet under, with what they cover."""
    for (
        demand,
        claim_index,
    ), servings in model.variables.servings_by_claim().items():
        claim = model.problem.demands[demand].claims[claim_index]
        choices = (serving.choice for serving in servings)
        for constraint, covered in binding_constraints(claim, choices):
            if constraint.scope:
                continue
            carried: list[_Carried] = []
            for serving in servings:
                choice = serving.choice
                if (choice.request, choice.alternative) in covered:
                    carried += _carriers(model, constraint, serving)
            yield constraint, carried


def _carriers(
    model: Model, constraint: Constraint, serving: Serving
) -> Iterator[_Carried]:
    """The devices of a serving, and the groups that it counts devices of."""
    for take in serving.takes:
        yield _carried(constraint, serving, take)
    for group, variables, times, _ in serving.group_counts:
        takes = model.variables.device_groups[group].takes
        for variable in variables:
            most = 1 if variable.is_boolean else variable.domain.max()
            carrier = _carried(constraint, serving, takes[0])
            yield carrier._replace(literal=variable, most=most, least=times)


def _carried(constraint: Constraint, serving: Serving, take: Take) -> _Carried:
    attribute = constraint.compared(serving.choice.spec.name)
    return _Carried(
        serving, take.device, take.view.attributes[attribute], take.literal
    )


def _across_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints over several claims, each in its form in the first of them, with what they cover."""
    demands = model.problem.demands
    uses = (
        (
            constraint.scope
            if constraint.scope.group
            else (demand, constraint.scope),
            (claim.key, (constraint, demand)),
        )
        for demand in model.variables.miss
        for claim in demands[demand].claims
        for constraint in claim.constraints
        if constraint.scope
    )
    spans = [grouped(span_uses) for span_uses in grouped(uses).values()]
    if not spans:
        return
    servings = grouped(
        (demands[serving.demand].claims[serving.choice.claim].key, serving)
        for serving in model.variables.every_serving()
    )
    for span in spans:
        carried: list[_Carried] = []
        for key, claim_uses in span.items():
            constraint, _ = claim_uses[0]
            users = [user for _, user in claim_uses]
            for serving in servings[key]:
                if constraint.covers(serving.choice.spec.name):
                    carried += _counted(model, constraint, serving, users)
        if carried:
            first_claim_uses = next(iter(span.values()))
            yield first_claim_uses[0][0], carried


def _counted(
    model: Model,
    constraint: Constraint,
    serving: Serving,
    users: Sequence[DemandIndex],
) -> Iterator[_Carried]:
    """The devices of a serving, as they count where one of these demands is placed.

    A claim that several demands use can be granted with one that is not under the constraint.
    """
    is_user = serving.demand in users
    for take in serving.takes:
        literal = take.literal if is_user else model.cp.new_bool_var("")
        for user in () if is_user else users:
            model.cp.add_bool_or(
                [~take.literal, model.variables.miss[user], literal]
            )
        if (
            constraint.compared(serving.choice.spec.name)
            in take.view.attributes
        ):
            yield _carried(constraint, serving, take)._replace(literal=literal)
        else:
            model.cp.add(literal == 0)


def _ordered(carrier: _Carried) -> list[_Value]:
    """The values of a device in an order of their own: models are the same in each run."""
    if carrier.values:
        return sorted(carrier.values, key=repr)
    return [carrier.device]


# ----------------------------------------------------------------------------
# Exceptions of the allocation mode ``All``: devices that other demands may fill
# (KEP-4381, KEP-5075).

_Consumed = tuple[int, Term]
"""What a take consumes, with its demand."""


def all_but_full(model: Model) -> None:
    """``All`` takes every matching device, at least one; a full one is the exception.

    A shareable device is full if the other demands leave too little of a capacity for what the request would take:
    which devices "all" are is settled before the demand itself takes any. What has admin access does not count.
    """
    consumption = grouped(_consumption(model))
    for serving in model.variables.every_serving():
        choice = serving.choice
        if not choice.loose and not choice.blocked:
            continue
        literal_of = {take.device: take.literal for take in serving.takes}
        for candidate in choice.loose:
            literal = literal_of[candidate.device]
            model.cp.add_implication(literal, serving.literal)
            model.cp.add_bool_or(
                [
                    literal,
                    *_full(model, serving, candidate, consumption),
                    ~serving.literal,
                ]
            )
        for candidate in choice.blocked:
            model.cp.add_bool_or(
                [
                    *_full(model, serving, candidate, consumption),
                    ~serving.literal,
                ]
            )
        if len(choice.loose) == len(literal_of):
            literals: list[cp_model.LiteralT] = list(literal_of.values())
            model.cp.add_bool_or([*literals, ~serving.literal])


def _consumption(model: Model) -> Iterator[tuple[tuple[int, str], _Consumed]]:
    """By slot and capacity: what each take without admin access consumes."""
    for serving in model.variables.every_serving():
        for take in serving.takes:
            for name, amount in () if take.admin else take.charge.capacity:
                yield (
                    (take.view.slot, name),
                    (serving.demand, (take.literal, amount)),
                )


def _full(
    model: Model,
    serving: Serving,
    candidate: Candidate,
    consumption: Mapping[tuple[int, str], list[_Consumed]],
) -> list[Literal]:
    """Return a literal for each capacity that can become too small; if it is true, the capacity is too small."""
    view = model.problem.devices[candidate.device]
    full_literals = []
    for name, amount in candidate.charge.capacity:
        terms = [
            term
            for owner, term in consumption[view.slot, name]
            if owner != serving.demand
        ]
        consumed = model.problem.usage.consumed.get(view.slot, {}).get(name, 0)
        # With so much in use, what the request would take does not fit any more.
        least = view.capacity[name].total - consumed - amount + 1
        if sum(amount for _, amount in terms) >= least:
            full = model.cp.new_bool_var(f"full {view.id} {name}")
            row_name = f"device {view.id}: capacity {name}"
            add_at_least(model.cp, terms, least, row_name, full)
            full_literals.append(full)
    return full_literals
