"""The variables of the exact model, created from the survey: where a demand is, what serves it, what is taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Final, NamedTuple

from dralloc.problem import Charge, Device, DeviceIndex, NodeIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.solve.optimum.candidates import CandidateSite, ServingChoice
from dralloc.solve.optimum.interchangeable import (
    GroupUse,
    InterchangeableDevices,
    every_choice,
    interchangeable_devices,
)
from dralloc.solve.optimum.rows import Literal, Term
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Serving", "Take", "Variables", "create_variables"]

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
            sum(len(choice.candidates) for _, _, choice in every_choice(sites))
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
        # Servings come in the order of `every_choice`, by whose numbers groups know their choices.
        uses = self.uses_of_choice.get(next(self.numbers), [])
        grouped_devices = frozenset[DeviceIndex]().union(
            *(self.devices_of_group[group] for group, _ in uses)
        )
        # One group has all candidates: the serving itself says how many of them are taken.
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
