"""The rules about places, devices, amounts and attributes as rows, one function per family.

`dralloc.solve.optimum.component.RULES` is the table of contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, assert_never

from ortools.sat.python import cp_model

from dralloc.objects.names import ClaimKey
from dralloc.problem import MAX_RESULTS, Constraint, ConstraintKind, ParentGroup, Scalar
from dralloc.problem.grouping import grouped
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.candidates import Candidate
from dralloc.solve.optimum.model import Model, Serving, Take, binding_constraints
from dralloc.solve.optimum.rows import (
    Literal,
    Term,
    add_at_least,
    add_at_most,
    add_at_most_one,
)

__all__ = ["add_capacity", "all_but_full", "attribute_constraints"]


def one_node_or_none(model: Model) -> None:
    """A demand is on one node, with all of its claims, or missed."""
    nodes = grouped((demand, on) for (demand, _), on in model.variables.on.items())
    for demand, miss in model.variables.miss.items():
        model.cp.add_exactly_one([miss, *nodes[demand]])


def one_alternative(model: Model) -> None:
    """Where the demand is, one alternative of each request is served (KEP-4816)."""
    for requests in model.variables.servings.values():
        for servings in requests:
            if len(servings) > 1:
                literals: list[cp_model.LiteralT] = [
                    serving.literal for serving in servings
                ]
                model.cp.add_exactly_one([*literals, ~servings[0].gate])


def device_count(model: Model) -> None:
    """A served alternative takes as many devices as it asks for (KEP-4381)."""
    for serving in model.variables.every_serving():
        literals, count = [take.literal for take in serving.takes], serving.choice.count
        if serving.choice.fixed or serving.choice.spec.count is None or not literals:
            continue
        if count == 1:
            model.cp.add_exactly_one([*literals, ~serving.literal])
        else:
            model.cp.add(cp_model.LinearExpr.sum(literals) == count * serving.literal)


def group_counts(model: Model) -> None:
    """Servings of interchangeable devices take numbers of each group, and as many of the group are taken."""
    wanted: dict[int, list[Term]] = defaultdict(list)
    for serving in model.variables.every_serving():
        for group_count in serving.group_counts:
            wanted[group_count.group].append((group_count.variable, group_count.times))
        if len(serving.group_counts) > 1:
            parts = [group_count.variable for group_count in serving.group_counts]
            model.cp.add(
                cp_model.LinearExpr.sum(parts) == serving.choice.count * serving.literal
            )
    for number, group in enumerate(model.variables.device_groups):
        variables, coefficients = zip(*wanted[number], strict=True)
        taken = cp_model.LinearExpr.sum([take.literal for take in group.takes])
        model.cp.add(cp_model.LinearExpr.weighted_sum(variables, coefficients) == taken)


def results_limit(model: Model) -> None:
    """A claim gets no more results than its status can hold (``AllocationResultsMaxSize``)."""
    for (demand, claim), servings in model.variables.servings_by_claim().items():
        by_node: dict[int, list[Term]] = defaultdict(list)
        for serving in servings:
            if serving.choice.loose:
                by_node[serving.node].extend(
                    (take.literal, 1) for take in serving.takes
                )
            else:
                by_node[serving.node].append((serving.literal, serving.choice.count))
        key = model.problem.demands[demand].claims[claim].key
        for terms in by_node.values():
            add_at_most(model.cp, terms, MAX_RESULTS, f"claim {key}: results")


def one_user_of_a_device(model: Model) -> None:
    """A dedicated device serves one allocation; admin access is none (KEP-5018).

    Where another generation of the pool publishes the device as shareable, it is either dedicated or shared.
    """
    for slot, literals in model.dedicated_users().items():
        opened = model.variables.opened.get(slot)
        add_at_most_one(model.cp, literals if opened is None else [*literals, opened])


def one_use_in_a_claim(model: Model) -> None:
    """Inside one claim a dedicated device is used once, with admin access or without (upstream behaviour)."""
    for servings in model.variables.servings_by_claim().values():
        takes = [
            take
            for serving in servings
            for take in serving.takes
            if not take.view.shareable
        ]
        if (
            any(take.admin for take in takes)
            and len({serving.choice.request for serving in servings}) > 1
        ):
            for literals in grouped(
                (take.view.slot, take.literal) for take in takes
            ).values():
                add_at_most_one(model.cp, literals)


def opened_by_any_share(model: Model) -> None:
    """A shareable device is in use from its first share on (KEP-5075), in the versions by which it is opened.

    A version with counters need not be in force where a share of one without any opens the device.
    """
    opened, in_force, devices = (
        model.variables.opened,
        model.variables.in_force,
        model.problem.devices,
    )
    ledger = Ledger(model.problem)
    shares: dict[int, list[Take]] = defaultdict(list)
    for take in model.variables.takes():
        slot = take.view.slot
        if not take.admin and slot in opened and take.view.shareable:
            model.cp.add_implication(take.literal, opened[slot])
            if in_force[take.device] is not opened[slot]:
                shares[take.device].append(take)
    free = [device for device in shares if devices[device].is_opened_freely]
    for device, takes in shares.items():
        before = [
            in_force[other]
            for other in free
            if devices[other].slot == devices[device].slot != other
        ]
        first = [] if device in free else before
        for take in takes:
            model.cp.add_bool_or([~take.literal, in_force[device], *first])
        if device in free:
            model.cp.add_bool_or([~in_force[device], *(take.literal for take in takes)])
        elif devices[device].consumes and ledger.is_overdrawn(devices[device].group):
            model.cp.add(in_force[device] == 0)
        for counter in dict(devices[device].consumes) if first else ():
            charged = [
                take.literal for take in takes if counter in dict(take.charge.counters)
            ]
            if charged:
                _charge_beside(model, device, counter, charged)


def _charge_beside(
    model: Model, device: int, counter: int, by_request: Sequence[Literal]
) -> None:
    """What is charged by request has to fit beside what the device consumes, whoever has opened it."""
    consumed = model.variables.consumed[device, counter] = model.cp.new_bool_var("")
    for literal in (*by_request, model.variables.in_force[device]):
        model.cp.add_implication(literal, consumed)


def counters(model: Model) -> None:
    """A device in use consumes counters once (KEP-4815), and each allocation what it asks for (KEP-5941)."""
    for counter, terms in model.counter_terms().items():
        known = model.problem.counters[counter]
        add_at_most(model.cp, terms, known.free, f"counter {known.id}")


def capacities(model: Model) -> None:
    """The shares of a device take no more of a capacity than it has (KEP-5075).

    Admin access holds nothing once it is allocated: it only has to fit beside the rest of its own demand (upstream
    behaviour).
    """
    own = grouped(
        ((serving.demand, take.view.slot), take)
        for serving in model.variables.every_serving()
        for take in serving.takes
        if take.view.shareable
    )
    shares = grouped(
        (slot, take)
        for (_, slot), takes in own.items()
        for take in takes
        if not take.admin
    )
    together = [
        (slot, takes)
        for (_, slot), takes in own.items()
        if any(take.admin for take in takes)
    ]
    for slot, takes in (*shares.items(), *together):
        for name in dict.fromkeys(
            name for take in takes for name, _ in take.charge.capacity
        ):
            add_capacity(model, slot, name, takes)


def add_capacity(model: Model, slot: int, name: str, takes: Sequence[Take]) -> None:
    """One row, or one per total if generations of the pool disagree about the device.

    Only the version that its node sees is in force for a grant (upstream behaviour): there is an order in which every
    grant finds room if those on the versions with no more than a total stay within that total.
    """
    entries = [
        (take.view.capacity[name].total, take.literal, charged[name])
        for take in takes
        if name in (charged := dict(take.charge.capacity))
    ]
    consumed = model.problem.usage.consumed.get(slot, {}).get(name, 0)
    what = f"device {takes[0].view.id}: capacity {name}"
    for limit in sorted({total for total, _, _ in entries}):
        terms = [
            (literal, amount) for total, literal, amount in entries if total <= limit
        ]
        add_at_most(model.cp, terms, limit - consumed, what)


def compatible_groups(model: Model) -> None:
    """Whatever is in use on a counter set has a compatibility group in common (KEP-5963)."""
    devices = model.problem.devices
    members = grouped(
        (number, (user, groups))
        for device, user in model.first_users()
        for number, groups in devices[device].compatibility
    )
    common_before = Ledger(model.problem).common_groups() if members else {}
    for number, users in sorted(members.items()):
        in_use = common_before.get(number)
        every = (
            frozenset[str]().union(*(groups for _, groups in users))
            if in_use is None
            else in_use
        )
        common = {
            group: model.cp.new_bool_var(f"group {group} of set {number}")
            for group in sorted(every)
        }
        model.cp.add_at_most_one(common.values())
        for user, groups in users:
            model.cp.add_bool_or(
                [~user, *(common[group] for group in sorted(groups & every))]
            )


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
    every = ((demands[number], miss) for number, miss in model.variables.miss.items())
    misses = grouped(
        (demand.gang, (demand, miss)) for demand, miss in every if demand.gang
    )
    admitted: dict[ParentGroup, dict[str, cp_model.LiteralT]] = defaultdict(dict)
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
            model.cp.add(
                cp_model.LinearExpr.sum(members) <= len(members) - quorum
            ).only_enforce_if(~rejected)
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
    for group in sorted(levels, key=lambda group: -levels[group]):
        own = model.cp.new_bool_var(f"admitted {group.name}")
        children = admitted[group]
        for child in children.values():
            model.cp.add_implication(child, own)
        counted = [
            child for name, child in children.items() if name not in group.settled
        ]
        model.cp.add(cp_model.LinearExpr.sum(counted) >= group.quorum).only_enforce_if(
            own
        )
        if group.parent:
            admitted[group.parent][group.name] = own


def shared_claims(model: Model) -> None:
    """A claim is granted once, with a demand that is placed, if any is; the others go where its devices are usable."""
    for (demand, _, node), home in model.variables.homes.items():
        model.cp.add_implication(home, model.variables.on[demand, node])
    demands, every = model.problem.demands, model.variables.homes.items()
    homes = grouped(
        (demands[demand].claims[claim].key, home) for (demand, claim, _), home in every
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
    visits = _visits(model)
    for serving in model.variables.every_serving():
        if (
            serving.demand,
            serving.choice.claim,
            serving.node,
        ) in model.variables.homes:
            visited = visits[
                model.problem.demands[serving.demand].claims[serving.choice.claim].key
            ]
            for take in serving.takes:
                for node, literal in visited.items():
                    if not model.problem.usable_from(take.device, serving.node, node):
                        model.cp.add_implication(take.literal, ~literal)


def _visits(model: Model) -> dict[ClaimKey, dict[int, Literal]]:
    """By claim and node: a demand that lists the claim is on the node."""
    visits: dict[ClaimKey, dict[int, Literal]] = defaultdict(dict)
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
    """A device that may serve a request, with the values that count there, and a literal that makes it count."""

    serving: Serving
    device: int
    values: frozenset[Scalar]
    literal: Literal


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
    if frozenset.intersection(*held, *(each.values for each in carried)):
        return
    distinct = dict.fromkeys(value for each in carried for value in _ordered(each))
    chosen = {
        value: model.cp.new_bool_var(f"match {constraint.attribute} {value}")
        for value in distinct
    }
    for value, literal in chosen.items():
        if held and value not in held[0]:
            model.cp.add(literal == 0)
    model.cp.add_at_most_one(chosen.values())
    for each in carried:
        literals: list[cp_model.LiteralT] = [chosen[value] for value in _ordered(each)]
        model.cp.add_bool_or([*literals, ~each.literal])
    add_at_most_one(model.cp, [each.literal for each in carried if not each.values])
    _tighten(model, carried, chosen)


def _tighten(
    model: Model, carried: Sequence[_Carried], chosen: Mapping[_Value, Literal]
) -> None:
    """A request for one device takes at most one of those with a value: a clique says so better than implications."""
    cliques = grouped(
        (
            (
                each.serving.demand,
                each.serving.choice.claim,
                each.serving.choice.request,
                *values,
            ),
            each.literal,
        )
        for each in carried
        if each.serving.choice.count == 1 and len(values := _ordered(each)) == 1
    )
    for (*_, value), literals in cliques.items():
        if len(literals) > 1:
            model.cp.add_at_most_one([*literals, ~chosen[value]])


def _distinct(
    model: Model, carried: Sequence[_Carried], held: Sequence[frozenset[Scalar]]
) -> None:
    """``distinctAttribute``: no value on two covered devices; what cannot be compared counts as one."""
    carriers = grouped(
        (value, each.literal) for each in carried for value in each.values or [None]
    )
    taken = {value for values in held for value in values or [None]}
    for value, literals in sorted(carriers.items(), key=lambda item: repr(item[0])):
        add_at_most_one(model.cp, literals)
        for literal in literals if value in taken else ():
            model.cp.add(literal == 0)


def _within_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints of single claims that two devices can meet under, with what they cover."""
    for (demand, number), servings in model.variables.servings_by_claim().items():
        claim = model.problem.demands[demand].claims[number]
        for constraint, covered in binding_constraints(
            claim, (serving.choice for serving in servings)
        ):
            if not constraint.scope:
                mine = (
                    one
                    for one in servings
                    if (one.choice.request, one.choice.alternative) in covered
                )
                yield (
                    constraint,
                    [
                        _carried(constraint, each, take)
                        for each in mine
                        for take in each.takes
                    ],
                )


def _carried(constraint: Constraint, serving: Serving, take: Take) -> _Carried:
    attribute = constraint.compared(serving.choice.spec.name)
    return _Carried(serving, take.device, take.view.attributes[attribute], take.literal)


def _across_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints over several claims, each in its form in the first of them, with what they cover."""
    demands = model.problem.demands
    uses = (
        (
            constraint.scope if constraint.scope.group else (demand, constraint.scope),
            (claim.key, (constraint, demand)),
        )
        for demand in model.variables.miss
        for claim in demands[demand].claims
        for constraint in claim.constraints
        if constraint.scope
    )
    spans = [grouped(each) for each in grouped(uses).values()]
    every = model.variables.every_serving() if spans else ()
    servings = grouped(
        (demands[serving.demand].claims[serving.choice.claim].key, serving)
        for serving in every
    )
    for span in spans:
        carried = [
            each
            for key, ((constraint, user), *others) in span.items()
            for serving in servings[key]
            if constraint.covers(serving.choice.spec.name)
            for each in _counted(
                model, constraint, serving, [user, *(other for _, other in others)]
            )
        ]
        if carried:
            yield next(iter(span.values()))[0][0], carried


def _counted(
    model: Model, constraint: Constraint, serving: Serving, users: Sequence[int]
) -> Iterator[_Carried]:
    """The devices of a serving, as they count where one of these demands is placed.

    A claim that several demands use can be granted with one that is not under the constraint.
    """
    own = serving.demand in users
    for take in serving.takes:
        literal = take.literal if own else model.cp.new_bool_var("")
        for user in () if own else users:
            model.cp.add_bool_or([~take.literal, model.variables.miss[user], literal])
        if constraint.compared(serving.choice.spec.name) in take.view.attributes:
            yield _carried(constraint, serving, take)._replace(literal=literal)
        else:
            model.cp.add(literal == 0)


def _ordered(each: _Carried) -> list[_Value]:
    if each.values:
        return sorted(each.values, key=repr)
    return [each.device]


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
        taken = {take.device: take.literal for take in serving.takes}
        for candidate in choice.loose:
            literal = taken[candidate.device]
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
                [*_full(model, serving, candidate, consumption), ~serving.literal]
            )
        if len(choice.loose) == len(taken):
            literals: list[cp_model.LiteralT] = list(taken.values())
            model.cp.add_bool_or([*literals, ~serving.literal])


def _consumption(model: Model) -> Iterator[tuple[tuple[int, str], _Consumed]]:
    """By slot and capacity: what each take without admin access consumes."""
    for serving in model.variables.every_serving():
        for take in serving.takes:
            for name, amount in () if take.admin else take.charge.capacity:
                yield (take.view.slot, name), (serving.demand, (take.literal, amount))


def _full(
    model: Model,
    serving: Serving,
    candidate: Candidate,
    consumption: Mapping[tuple[int, str], list[_Consumed]],
) -> list[Literal]:
    """One literal per capacity that can become too small; if it is true, it is too small."""
    view = model.problem.devices[candidate.device]
    found = []
    for name, amount in candidate.charge.capacity:
        terms = [
            term
            for owner, term in consumption[view.slot, name]
            if owner != serving.demand
        ]
        consumed = model.problem.usage.consumed.get(view.slot, {}).get(name, 0)
        least = view.capacity[name].total - consumed - amount + 1
        if sum(amount for _, amount in terms) >= least:
            full = model.cp.new_bool_var(f"full {view.id} {name}")
            add_at_least(
                model.cp, terms, least, f"device {view.id}: capacity {name}", full
            )
            found.append(full)
    return found
