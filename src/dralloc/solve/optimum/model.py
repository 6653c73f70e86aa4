"""The exact model of a problem, over the devices that requests can get.

Every demand *u* is on one of its nodes or missed, every request *r* of it is served by one alternative *a*, and a
serving takes as many of its candidate devices *d* as it asks for::

    sum_n on[u, n] + miss[u] = 1
    sum_a serve[r, a, n] = on[u(r), n]
    sum_d take[r, a, d, n] = count[a] * serve[r, a, n]

Of interchangeable devices, one boolean per device says that it is taken, and the servings only add up to as many: they
count devices of a group *g* in place of taking each *d*. The rest is one function per family of rules in
`dralloc.solve.optimum.constraints`.

From top to bottom: devices that requests may take in each other's place, which are counted; the variables; the model,
in which rules add their rows; and the rows that put equal demands in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from dralloc.objects.errors import ModelError
from dralloc.problem import (
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    CounterIndex,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    Scalar,
)
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.candidates import CandidateSite, ServingChoice
from dralloc.solve.optimum.rows import Literal, Term
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "Model",
    "Serving",
    "Take",
    "binding_constraints",
    "create_variables",
    "equal_demands",
    "equal_demands_in_order",
    "in_order",
]

# ----------------------------------------------------------------------------
# Interchangeable devices: an equivalence class for requests that are equally served by
# each of them. Which request gets which of the devices is then not decided by the
# solver but handed out afterwards. This takes most booleans, and most of the symmetry,
# out of a model in which many pods have equal requests.


class GroupUse(NamedTuple):
    """A choice that can use any device of a group.

    Parameters
    ----------
    choice
        Its index (see `_every_choice`).
    counters
        What each device charges by request, if it is used.
    values
        What each has of the attributes that constraints compare.
    is_alone
        Whether there can be no two of them, as they would differ in nothing.
    """

    choice: int
    counters: tuple[tuple[CounterIndex, int], ...]
    values: tuple[frozenset[Scalar], ...]
    is_alone: bool

    @property
    def charged(self) -> tuple[CounterIndex, ...]:
        """The counters alone, without amounts."""
        return tuple(counter for counter, _ in self.counters)


_ChoiceKey = tuple[DemandIndex, int, int, int]
"""The demand, claim, request and alternative of a choice."""


class InterchangeableDevices(NamedTuple):
    """Two or more devices that the same choices can use in the same way, and the nodes of those choices."""

    devices: tuple[DeviceIndex, ...]
    nodes: tuple[NodeIndex, ...]
    uses: tuple[GroupUse, ...]

    @property
    def charge(self) -> Charge:
        """What a device charges whoever uses it: nothing, but to these counters."""
        return Charge(
            (), tuple((counter, 0) for counter in self.uses[0].charged)
        )


def binding_constraints(
    claim: Claim, choices: Iterable[ServingChoice]
) -> Iterator[tuple[Constraint, Collection[tuple[int, int]]]]:
    """The constraints of a claim under which two of its devices can meet, or one with another claim's.

    Each comes with the (request, alternative) indices that it covers, in order. Under all others every candidate has
    the attribute already, and nothing is left to decide.
    """
    all_choices = list(choices)
    for constraint in claim.constraints:
        covered: dict[tuple[int, int], None] = {}
        highest_counts: dict[int, int] = defaultdict(int)
        for choice in all_choices:
            if constraint.covers(choice.spec.name):
                covered[choice.request, choice.alternative] = None
                highest = max(highest_counts[choice.request], choice.count)
                highest_counts[choice.request] = highest
        if sum(highest_counts.values()) > 1 or (covered and constraint.scope):
            yield constraint, covered.keys()


def interchangeable_devices(
    problem: Problem,
    sites: Mapping[DemandIndex, Sequence[CandidateSite]],
    stop: Stop,
) -> list[InterchangeableDevices]:
    """Group devices by the choices that they are candidates for, among choices that they serve equally.

    Those are choices of dedicated devices that charge the same counters by request and have the same values of what
    constraints compare, that no request with admin access in the same claim could get too, and no other demand has to
    reach.
    """
    comparisons = _comparisons(problem, sites, stop)
    uses: dict[DeviceIndex, list[GroupUse]] = defaultdict(list)
    nodes: list[NodeIndex] = []
    for choice_index, (demand, site, choice) in enumerate(
        stop.each(_every_choice(sites))
    ):
        nodes.append(site.node)
        key: _ChoiceKey = (
            demand,
            choice.claim,
            choice.request,
            choice.alternative,
        )
        constraints = comparisons.get(key, ())
        if constraints is None or not _is_countable(problem, choice):
            continue
        names = [
            constraint.compared(choice.spec.name) for constraint in constraints
        ]
        is_alone = any(
            constraint.kind is ConstraintKind.DISTINCT
            for constraint in constraints
        )
        for device, charge in choice.candidates:
            attributes = problem.devices[device].attributes
            values = tuple(attributes[name] for name in names)
            uses[device].append(
                GroupUse(choice_index, charge.counters, values, is_alone)
            )
    devices_by_uses = grouped(
        (tuple(device_uses), device) for device, device_uses in uses.items()
    )
    groups = []
    for group_uses, devices in devices_by_uses.items():
        charged = {use.charged for use in group_uses}
        # Of a single device nothing is to be counted. And which counters it charges must be known without its user.
        if len(devices) > 1 and len(charged) == 1:
            group_nodes = tuple(
                sorted({nodes[use.choice] for use in group_uses})
            )
            groups.append(
                InterchangeableDevices(tuple(devices), group_nodes, group_uses)
            )
    return groups


def _every_choice(
    sites: Mapping[DemandIndex, Sequence[CandidateSite]],
) -> Iterator[tuple[DemandIndex, CandidateSite, ServingChoice]]:
    """Every choice with its demand and site, in order: the uses of groups know them by their indices."""
    for demand, demand_sites in sites.items():
        for site in demand_sites:
            for choice in site.choices():
                yield demand, site, choice


def _comparisons(
    problem: Problem,
    sites: Mapping[DemandIndex, Sequence[CandidateSite]],
    stop: Stop,
) -> dict[_ChoiceKey, tuple[Constraint, ...] | None]:
    """Return the constraints that compare a choice's devices; None if not only their values decide which it gets.

    Where nothing is compared there is no entry.
    """
    comparisons: dict[_ChoiceKey, tuple[Constraint, ...] | None] = {}
    for demand, demand_sites in stop.each(sites.items()):
        shared = demand_sites[0].shared
        for claim_index, claim in enumerate(problem.demands[demand].claims):
            choices: list[ServingChoice] = []
            for site in demand_sites:
                choices += [
                    choice
                    for choice in site.choices()
                    if choice.claim == claim_index
                ]
            if claim_index in shared or any(
                choice.spec.admin for choice in choices
            ):
                for choice in choices:
                    key = (
                        demand,
                        claim_index,
                        choice.request,
                        choice.alternative,
                    )
                    comparisons[key] = None
                continue
            for constraint, covered in binding_constraints(claim, choices):
                do_values_decide = not constraint.scope and (
                    constraint.kind is ConstraintKind.DISTINCT
                    or _are_comparable(problem, constraint, covered, choices)
                )
                for pair in covered:
                    key = demand, claim_index, *pair
                    before = comparisons.get(key, ())
                    if before is None or not do_values_decide:
                        comparisons[key] = None
                    else:
                        comparisons[key] = (*before, constraint)
    return comparisons


def _are_comparable(
    problem: Problem,
    constraint: Constraint,
    covered: Collection[tuple[int, int]],
    choices: Iterable[ServingChoice],
) -> bool:
    """Whether all that a constraint covers have values to be compared: what has none matches nothing but itself."""
    for choice in choices:
        if (choice.request, choice.alternative) not in covered:
            continue
        attribute = constraint.compared(choice.spec.name)
        for device, _ in choice.candidates:
            if not problem.devices[device].attributes[attribute]:
                return False
    return True


def _is_countable(problem: Problem, choice: ServingChoice) -> bool:
    # What takes all of its candidates leaves nothing to be counted.
    if choice.fixed:
        return False
    return not any(
        problem.devices[device].shareable for device, _ in choice.candidates
    )


# ----------------------------------------------------------------------------
# Variables, created from the survey.

_MOST_NAMES: Final = 200_000
"""With more candidates than this the variables stay unnamed: names would cost more memory than the model."""


@dataclass(frozen=True, slots=True)
class Take:
    """A device is taken, by a serving or by any serving that uses its group, on one of the nodes."""

    device: DeviceIndex
    view: Device
    charge: Charge
    admin: bool
    nodes: tuple[NodeIndex, ...]
    literal: Literal


class GroupCount(NamedTuple):
    """How many devices of a group a serving takes: ``times`` for each of the variables, which are added up.

    Parameters
    ----------
    use
        In what way.
    """

    group: int
    variables: tuple[Literal, ...]
    times: int
    use: GroupUse

    @property
    def terms(self) -> list[Term]:
        """The number as terms of a row."""
        return [(variable, self.times) for variable in self.variables]


@dataclass(frozen=True, slots=True)
class Serving:
    """An alternative served on a node: ``pick[r, a] and on[u, n]`` as one decision.

    It has takes for its candidates, in search order, but for those that group counts count. ``gate`` is true if its
    claim is granted with the demand on the node.
    """

    demand: DemandIndex
    node: NodeIndex
    choice: ServingChoice
    gate: Literal
    literal: Literal
    takes: tuple[Take, ...]
    group_counts: tuple[GroupCount, ...]


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Interchangeable devices: decided is which are taken, but not by which serving."""

    takes: tuple[Take, ...]


@dataclass(slots=True)
class Variables:
    """All decisions. Where one follows from another, both are the same literal.

    Parameters
    ----------
    miss
        By demand: it is not placed.
    on
        By demand and node: it is placed there.
    servings
        By demand and node: for each request (of all claims in a row) the alternatives that can be served there.
    device_groups
        The groups that group counts refer to.
    homes
        By demand, claim (its index there) and node, of claims that several demands list: it is granted there.
    shared
        By demand: its claims, by index, that other demands list too.
    opened
        By slot of a shareable device that nobody uses yet: an allocation without admin access takes it.
    in_force
        By shareable device that nobody uses yet, in each version that can be taken: what this version
        consumes and excludes is in force.
    consumed
        By such a version and a counter that is charged by request, too: what the version consumes of it counts.
    stop
        When to give up, for whoever goes over all of them.
    """

    stop: Stop
    miss: dict[DemandIndex, Literal] = field(default_factory=dict)
    on: dict[tuple[DemandIndex, NodeIndex], Literal] = field(
        default_factory=dict
    )
    servings: dict[tuple[int, int], tuple[tuple[Serving, ...], ...]] = field(
        default_factory=dict
    )
    device_groups: list[DeviceGroup] = field(default_factory=list)
    homes: dict[tuple[DemandIndex, int, NodeIndex], Literal] = field(
        default_factory=dict
    )
    shared: dict[DemandIndex, tuple[int, ...]] = field(default_factory=dict)
    opened: dict[int, Literal] = field(default_factory=dict)
    in_force: dict[DeviceIndex, Literal] = field(default_factory=dict)
    consumed: dict[tuple[DeviceIndex, int], Literal] = field(
        default_factory=dict
    )

    def every_serving(self) -> Iterator[Serving]:
        """Each serving, in the order of creation."""
        for requests in self.stop.hundreds(self.servings.values()):
            for servings in requests:
                yield from servings

    def servings_by_claim(self) -> dict[tuple[DemandIndex, int], list[Serving]]:
        """The servings of each claim, by demand and index of the claim in it."""
        return grouped(
            ((serving.demand, serving.choice.claim), serving)
            for serving in self.every_serving()
        )

    def takes(self) -> Iterator[Take]:
        """Each take, of servings and of device groups."""
        for serving in self.every_serving():
            yield from serving.takes
        for group in self.device_groups:
            yield from group.takes


def create_variables(
    model: cp_model.CpModel,
    problem: Problem,
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]],
    stop: Stop,
    *,
    named: bool = False,
) -> Variables:
    """Create the variables for some demands; ``named``: without groups, so that each serving has its own devices."""
    device_groups = (
        [] if named else interchangeable_devices(problem, sites, stop)
    )
    return _Creator(model, problem, sites, stop, device_groups).variables


class _Creator:
    def __init__(
        self,
        model: cp_model.CpModel,
        problem: Problem,
        sites: Mapping[DemandIndex, tuple[CandidateSite, ...]],
        stop: Stop,
        device_groups: Sequence[InterchangeableDevices],
    ) -> None:
        self.model = model
        self.problem = problem
        self.variables = Variables(stop)
        self.named = (
            sum(len(choice.candidates) for _, _, choice in _every_choice(sites))
            <= _MOST_NAMES
        )
        self.numbers = count()
        # By index of a choice: the groups that it can use, and how.
        self.uses_of_choice: dict[int, list[tuple[int, GroupUse]]] = (
            defaultdict(list)
        )
        self.devices_of_group = [
            frozenset(group.devices) for group in device_groups
        ]
        for group_index, group in enumerate(device_groups):
            for use in group.uses:
                self.uses_of_choice[use.choice].append((group_index, use))
            takes = []
            for device in group.devices:
                view = problem.devices[device]
                busy = self._boolean("busy", view.id)
                takes.append(
                    Take(device, view, group.charge, False, group.nodes, busy)
                )
            self.variables.device_groups.append(DeviceGroup(tuple(takes)))
        for demand, demand_sites in sites.items():
            self._demand(demand, demand_sites)
        self._opened()

    def _boolean(self, *parts: object) -> Literal:
        return self.model.new_bool_var(
            " ".join(map(str, parts)) if self.named else ""
        )

    def _demand(
        self, demand: DemandIndex, sites: Sequence[CandidateSite]
    ) -> None:
        key = self.problem.demands[demand].key
        self.variables.miss[demand] = self._boolean("miss", demand, key)
        if sites[0].shared:
            self.variables.shared[demand] = sites[0].shared
        for site in self.variables.stop.each(sites):
            node = site.node
            node_name = self.problem.nodes[node].name
            on = self._boolean("on", demand, key, node_name)
            self.variables.on[demand, node] = on
            # A claim is granted with its demand; one that is shared, with one of those
            # that list it.
            gates = [on] * len(self.problem.demands[demand].claims)
            for claim in dict.fromkeys(
                choice.claim for choice in site.choices()
            ):
                if claim in site.shared:
                    gates[claim] = self._boolean(
                        "home", demand, claim, node_name
                    )
                    self.variables.homes[demand, claim, node] = gates[claim]
            requests: list[tuple[Serving, ...]] = []
            for choices in site.requests:
                single = len(choices) == 1
                servings = [
                    self._serving(
                        demand, node, choice, gates[choice.claim], single=single
                    )
                    for choice in choices
                ]
                requests.append(tuple(servings))
            self.variables.servings[demand, node] = tuple(requests)

    def _serving(
        self,
        demand: DemandIndex,
        node: NodeIndex,
        choice: ServingChoice,
        gate: Literal,
        *,
        single: bool,
    ) -> Serving:
        where = (
            demand,
            choice.claim,
            choice.spec.name,
            self.problem.nodes[node].name,
        )
        literal = gate if single else self._boolean("serve", *where)
        uses = self.uses_of_choice.get(next(self.numbers), [])
        grouped_devices = frozenset[DeviceIndex]().union(
            *(self.devices_of_group[group] for group, _ in uses)
        )
        if len(uses) == 1 and len(grouped_devices) == len(choice.candidates):
            [(group, use)] = uses
            counts = [GroupCount(group, (literal,), choice.count, use)]
        else:
            counts = [
                self._group_count(group, use, choice, where)
                for group, use in uses
            ]
        takes = self._takes(node, choice, literal, where, grouped_devices)
        return Serving(
            demand, node, choice, gate, literal, takes, tuple(counts)
        )

    def _group_count(
        self,
        group: int,
        use: GroupUse,
        choice: ServingChoice,
        where: tuple[object, ...],
    ) -> GroupCount:
        """Count with one integer; or, where each device charges something, with a boolean for each."""
        size = len(self.variables.device_groups[group].takes)
        most = 1 if use.is_alone else min(choice.count, size)
        name = f"count {where} {group}" if self.named else ""
        if most > 1 and not use.counters:
            variables = [self.model.new_int_var(0, most, name)]
        else:
            variables = [self.model.new_bool_var(name) for _ in range(most)]
        for fewer, more in pairwise(variables):
            self.model.add_implication(more, fewer)
        return GroupCount(group, tuple(variables), 1, use)

    def _takes(
        self,
        node: NodeIndex,
        choice: ServingChoice,
        literal: Literal,
        where: tuple[object, ...],
        grouped_devices: Collection[DeviceIndex],
    ) -> tuple[Take, ...]:
        """Create the takes of all candidates but those that are counted."""
        takes = []
        for device, charge in choice.candidates:
            if device in grouped_devices:
                continue
            view = self.problem.devices[device]
            # Of ``All`` only what others can fill may be left out.
            in_all = choice.spec.count is None and not charge.capacity
            take = literal
            if not (choice.fixed or in_all):
                take = self._boolean("take", *where, view.id)
            takes.append(
                Take(device, view, charge, choice.spec.admin, (node,), take)
            )
        return tuple(takes)

    def _opened(self) -> None:
        shares = self.problem.usage.shares
        several_versions = self.problem.several_versions
        opened, in_force = self.variables.opened, self.variables.in_force
        for take in self.variables.takes():
            view = take.view
            if not view.shareable or take.admin or view.slot in shares:
                continue
            if view.slot not in opened:
                opened[view.slot] = self._boolean("open", view.id)
            if take.device in in_force:
                continue
            in_force[take.device] = opened[view.slot]
            if view.slot in several_versions:
                in_force[take.device] = self._boolean(
                    "in force", view.id, view.group
                )


# ----------------------------------------------------------------------------
# The model.


@dataclass(frozen=True, slots=True)
class Model:
    """A CP-SAT model of some demands of a problem, which have these sites, without objective.

    ``turns``: the variables that `turn` has made.
    """

    problem: Problem
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]]
    cp: cp_model.CpModel
    variables: Variables
    turns: dict[Hashable, cp_model.IntVar] = field(default_factory=dict)

    def turn(self, of: Hashable) -> cp_model.IntVar:
        """Return the variable for the turn of a demand, or a time between turns, if the order matters."""
        if of not in self.turns:
            # There is room for one other time beside each demand.
            last = 2 * len(self.variables.miss) + 1
            # Times belong to rules, whose text lists sets: in another order in each process. So they have no names of
            # their own.
            name = f"turn {of}" if isinstance(of, int) else "time"
            self.turns[of] = self.cp.new_int_var(0, last, name)
        return self.turns[of]

    def write(self, path: Path) -> None:
        """Write the model in CP-SAT's exchange format: text if the file's name ends in ``.txt``.

        Raises
        ------
        ModelError
            The file cannot be written.
        """
        if not self.cp.export_to_file(str(path)):
            raise ModelError(f"{path}: cannot write the model")

    def dedicated_users(self) -> Mapping[int, list[Literal]]:
        """By slot: the uses of a dedicated device; admin access is none."""
        takes = self.variables.takes()
        return grouped(
            (take.view.slot, take.literal)
            for take in takes
            if not (take.admin or take.view.shareable)
        )

    def first_users(self) -> Iterator[tuple[DeviceIndex, Literal]]:
        """By device: a literal that puts its version in force, which is a dedicated use, or the first of its shares.

        While a pool is updated, only one of the generations that nodes see has counters, and a grant consumes only the
        counters of the version that its node sees (upstream behaviour): there is an order in which those grants come
        first.
        """
        for take in self.variables.takes():
            if not take.admin and not take.view.shareable:
                yield take.device, take.literal
        yield from self.variables.in_force.items()

    def counter_terms(self) -> Mapping[CounterIndex, list[Term]]:
        """The consumption of counters: by a device in use (KEP-4815), by each allocation on request (KEP-5941)."""
        drawn: dict[CounterIndex, list[Term]] = defaultdict(list)
        for take in self.variables.takes():
            if take.admin:
                continue
            for counter, amount in take.charge.counters:
                drawn[counter].append((take.literal, amount))
        for serving in self.variables.every_serving():
            for group_count in serving.group_counts:
                for counter, amount in group_count.use.counters:
                    drawn[counter] += [
                        (variable, times * amount)
                        for variable, times in group_count.terms
                    ]
        consumed = self.variables.consumed
        for device, user in self.first_users():
            for counter, amount in self.problem.devices[device].consumes:
                literal = consumed.get((device, counter), user)
                drawn[counter].append((literal, amount))
        return dict(sorted(drawn.items()))

    def placements(
        self, value: Callable[[Literal], int]
    ) -> tuple[Placement, ...]:
        """Read an answer: placements in the order of the demands, grants in the order of requests and search.

        The devices taken of a group are handed out in search order to the demands in their order.
        """
        # By group what is to be handed out, the first device last.
        pools: list[list[DeviceIndex]] = []
        for group in self.variables.device_groups:
            in_reverse = reversed(group.takes)
            pools.append(
                [take.device for take in in_reverse if value(take.literal)]
            )
        placements = []
        for (demand, node), on in self.variables.on.items():
            if not value(on):
                continue
            claims: list[list[Grant]] = [
                [] for _ in self.problem.demands[demand].claims
            ]
            for serving in _flat(self.variables.servings[demand, node]):
                if value(serving.literal):
                    claims[serving.choice.claim] += _grants(
                        serving, value, pools
                    )
            placements.append(
                Placement(demand, node, tuple(map(tuple, claims)))
            )
        return tuple(placements)

    def hint(self, placements: Iterable[Placement]) -> None:
        """Let the search start from an answer, in place of the one that it was told to start from before."""
        placed = {placement.demand: placement for placement in placements}
        values: dict[int, tuple[Literal, int]] = {}
        for demand, miss in self.variables.miss.items():
            values[miss.index] = miss, demand not in placed
        anonymous: set[int] = set()
        for (demand, node), on in self.variables.on.items():
            placement = placed.get(demand)
            if placement is not None and placement.node != node:
                placement = None
            values[on.index] = on, placement is not None
            for claim in self.variables.shared.get(demand, ()):
                home = self.variables.homes.get((demand, claim, node))
                if home is not None:
                    is_home = placement is not None and bool(
                        placement.grants[claim]
                    )
                    values[home.index] = home, is_home
            for serving in _flat(self.variables.servings[demand, node]):
                devices = _devices(serving, placement)
                if serving.group_counts:
                    anonymous |= devices
                self._hint_serving(values, serving, devices)
        for group in self.variables.device_groups:
            for take in group.takes:
                values[take.literal.index] = (
                    take.literal,
                    take.device in anonymous,
                )
        self.cp.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in values.values():
            self.cp.add_hint(variable, value)

    def _hint_serving(
        self,
        values: dict[int, tuple[Literal, int]],
        serving: Serving,
        devices: set[DeviceIndex],
    ) -> None:
        # A literal that stands for several decisions keeps the first value it gets.
        values.setdefault(
            serving.literal.index, (serving.literal, bool(devices))
        )
        for take in serving.takes:
            is_taken = take.device in devices
            values.setdefault(take.literal.index, (take.literal, is_taken))
        for group, variables, _, _ in serving.group_counts:
            takes = self.variables.device_groups[group].takes
            count = sum(take.device in devices for take in takes)
            for index, variable in enumerate(variables):
                value = count if len(variables) == 1 else index < count
                values.setdefault(variable.index, (variable, value))


def _flat(requests: Iterable[Iterable[Serving]]) -> Iterable[Serving]:
    return (serving for servings in requests for serving in servings)


def _grants(
    serving: Serving,
    value: Callable[[Literal], int],
    pools: list[list[DeviceIndex]],
) -> list[Grant]:
    choice = serving.choice
    devices = {take.device for take in serving.takes if value(take.literal)}
    for group_count in serving.group_counts:
        device_count = sum(
            times * value(variable) for variable, times in group_count.terms
        )
        devices.update(
            pools[group_count.group].pop() for _ in range(device_count)
        )
    return [
        Grant(choice.request, choice.alternative, device)
        for device, _ in choice.candidates
        if device in devices
    ]


def _devices(serving: Serving, placement: Placement | None) -> set[DeviceIndex]:
    """Return the devices of a serving in an answer, given its demand's placement if that is on its node."""
    choice = serving.choice
    grants = placement.grants[choice.claim] if placement else ()
    return {
        grant.device
        for grant in grants
        if grant[:2] == (choice.request, choice.alternative)
    }


# ----------------------------------------------------------------------------
# Symmetry: equal demands are interchangeable, and the search need not try them in every
# order. Equal is what has the same candidates here, which is coarser than
# `dralloc.problem.equivalence.claim_key`: also demands that ask in different words, but
# can only get the same devices at the same charge, stand in for each other.


def equal_demands(model: Model, stop: Stop) -> list[tuple[DemandIndex, ...]]:
    """Classes of two or more demands that can stand in for each other: same weight, candidates and constraints."""
    problem = model.problem
    classes = grouped(
        (_key(problem, demand, sites), demand)
        for demand, sites in stop.each(model.sites.items())
        if not problem.demands[demand].gang and not sites[0].shared
    )
    return [tuple(members) for members in classes.values() if len(members) > 1]


def _key(
    problem: Problem, demand: DemandIndex, sites: tuple[CandidateSite, ...]
) -> Hashable:
    claims = problem.demands[demand].claims
    constraints: list[Hashable] = []
    for claim_index, claim in enumerate(claims):
        for constraint_index, constraint in enumerate(claim.constraints):
            kind = (
                claim_index,
                constraint_index,
                constraint.kind,
                constraint.scope,
            )
            for request_index, request in enumerate(claim.requests):
                for choice, spec in enumerate(request.alternatives):
                    if constraint.covers(spec.name):
                        attribute = constraint.compared(spec.name)
                        constraints.append(
                            (kind, attribute, request_index, choice)
                        )
    choices = tuple(
        (site.node, *map(_choice, site.choices())) for site in sites
    )
    namespace = problem.demands[demand].key.namespace if problem.budgets else ""
    return (
        problem.demands[demand].weight,
        len(claims),
        tuple(constraints),
        choices,
        namespace,
        problem.demands[demand].roles,
    )


def _choice(choice: ServingChoice) -> Hashable:
    candidates = tuple(
        (device, charge.capacity, charge.counters)
        for device, charge in choice.candidates
    )
    spec = choice.spec
    return (
        choice.claim,
        choice.request,
        choice.alternative,
        spec.rank,
        spec.admin,
        choice.count,
        candidates,
    )


def equal_demands_in_order(model: Model) -> None:
    """Of equal demands, an earlier one is missed only if the later ones are."""
    for members in equal_demands(model, model.variables.stop):
        for earlier, later in pairwise(members):
            model.cp.add_implication(
                model.variables.miss[earlier], model.variables.miss[later]
            )


def in_order(
    classes: Iterable[tuple[DemandIndex, ...]], placements: Iterable[Placement]
) -> list[Placement]:
    """Rename equal demands in an answer, so that the earlier ones are those that are placed."""
    placed = {placement.demand: placement for placement in placements}
    for members in classes:
        answers = [placed.pop(demand) for demand in members if demand in placed]
        for demand, placement in zip(members, answers, strict=False):
            placed[demand] = replace(placement, demand=demand)
    return sorted(placed.values(), key=lambda placement: placement.demand)
