"""The variables of the exact model (see `dralloc.solve.optimum.model`), created from the survey."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from ortools.sat.python import cp_model

from dralloc.problem import Charge, Device, Problem
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.candidates import CandidateSite, ServingChoice
from dralloc.solve.optimum.interchangeable import (
    InterchangeableDevices,
    every_choice,
    interchangeable_devices,
)
from dralloc.solve.optimum.rows import Literal
from dralloc.solve.optimum.stopping import Stop

__all__ = ["DeviceGroup", "GroupCount", "Serving", "Take", "Variables", "create"]

_MOST_NAMES: Final = 200_000
"""With more candidates than this the variables stay unnamed: names would cost more memory than the model."""


@dataclass(frozen=True, slots=True)
class Take:
    """A device is taken, by a serving or by any serving that uses its group, on one of the nodes."""

    device: int
    view: Device
    charge: Charge
    admin: bool
    nodes: tuple[int, ...]
    literal: Literal


class GroupCount(NamedTuple):
    """How many devices of a group a serving takes: ``times * variable``."""

    group: int
    variable: Literal
    times: int


@dataclass(frozen=True, slots=True)
class Serving:
    """An alternative served on a node: ``pick[r, a] and on[u, n]`` as one decision.

    It either has a take for each of its candidates, in search order, or group counts. ``gate`` is true if its
    claim is granted with the demand on the node.
    """

    demand: int
    node: int
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
    miss: dict[int, Literal] = field(default_factory=dict)
    on: dict[tuple[int, int], Literal] = field(default_factory=dict)
    servings: dict[tuple[int, int], tuple[tuple[Serving, ...], ...]] = field(
        default_factory=dict
    )
    device_groups: list[DeviceGroup] = field(default_factory=list)
    homes: dict[tuple[int, int, int], Literal] = field(default_factory=dict)
    shared: dict[int, tuple[int, ...]] = field(default_factory=dict)
    opened: dict[int, Literal] = field(default_factory=dict)
    in_force: dict[int, Literal] = field(default_factory=dict)
    consumed: dict[tuple[int, int], Literal] = field(default_factory=dict)

    def every_serving(self) -> Iterator[Serving]:
        """Each serving, in the order of creation."""
        for requests in self.stop.each(self.servings.values()):
            for servings in requests:
                yield from servings

    def servings_by_claim(self) -> dict[tuple[int, int], list[Serving]]:
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


def create(
    model: cp_model.CpModel,
    problem: Problem,
    sites: Mapping[int, tuple[CandidateSite, ...]],
    stop: Stop,
    *,
    named: bool = False,
) -> Variables:
    """Create the variables for some demands; ``named``: without groups, so that each serving has its own devices."""
    device_groups = [] if named else interchangeable_devices(problem, sites, stop)
    return _Creator(model, problem, sites, stop, device_groups).variables


class _Creator:
    def __init__(
        self,
        model: cp_model.CpModel,
        problem: Problem,
        sites: Mapping[int, tuple[CandidateSite, ...]],
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
        self.groups_of_choice: dict[int, list[int]] = defaultdict(list)
        for group in device_groups:
            for user in group.users:
                self.groups_of_choice[user].append(len(self.variables.device_groups))
            views = ((device, problem.devices[device]) for device in group.devices)
            takes = (
                Take(
                    *each,
                    Charge(),
                    False,
                    group.nodes,
                    self._boolean("busy", each[1].id),
                )
                for each in views
            )
            self.variables.device_groups.append(DeviceGroup(tuple(takes)))
        for demand, found in sites.items():
            self._demand(demand, found)
        self._opened()

    def _boolean(self, *parts: object) -> Literal:
        return self.model.new_bool_var(" ".join(map(str, parts)) if self.named else "")

    def _demand(self, demand: int, sites: Sequence[CandidateSite]) -> None:
        key = self.problem.demands[demand].key
        self.variables.miss[demand] = self._boolean("miss", demand, key)
        if sites[0].shared:
            self.variables.shared[demand] = sites[0].shared
        for site in self.variables.stop.each(sites):
            here = demand, site.node
            on = self.variables.on[here] = self._boolean(
                "on", demand, key, self.problem.nodes[site.node].name
            )
            gates = [on] * len(self.problem.demands[demand].claims)
            for claim in dict.fromkeys(
                choice.claim for choice in site.choices() if choice.claim in site.shared
            ):
                gates[claim] = self._boolean(
                    "home", demand, claim, self.problem.nodes[site.node].name
                )
                self.variables.homes[demand, claim, site.node] = gates[claim]
            self.variables.servings[here] = tuple(
                tuple(
                    self._serving(
                        demand,
                        site.node,
                        choice,
                        gates[choice.claim],
                        single=len(choices) == 1,
                    )
                    for choice in choices
                )
                for choices in site.requests
            )

    def _serving(
        self,
        demand: int,
        node: int,
        choice: ServingChoice,
        gate: Literal,
        *,
        single: bool,
    ) -> Serving:
        where = demand, choice.claim, choice.spec.name, self.problem.nodes[node].name
        literal = gate if single else self._boolean("serve", *where)
        device_groups = self.groups_of_choice.get(next(self.numbers))
        takes: tuple[Take, ...] = ()
        group_counts = []
        if device_groups is None:
            takes = self._takes(node, choice, literal, where)
        elif len(device_groups) == 1:
            group_counts = [GroupCount(device_groups[0], literal, choice.count)]
        else:
            for group in device_groups:
                most = min(choice.count, len(self.variables.device_groups[group].takes))
                group_counts.append(
                    GroupCount(
                        group,
                        self.model.new_int_var(0, most, f"count {where} {group}"),
                        1,
                    )
                )
        return Serving(demand, node, choice, gate, literal, takes, tuple(group_counts))

    def _takes(
        self,
        node: int,
        choice: ServingChoice,
        literal: Literal,
        where: tuple[object, ...],
    ) -> tuple[Take, ...]:
        takes = []
        for device, charge in choice.candidates:
            view = self.problem.devices[device]
            decided = choice.fixed or (
                choice.spec.count is None and not charge.capacity
            )
            taken = literal if decided else self._boolean("take", *where, view.id)
            takes.append(Take(device, view, charge, choice.spec.admin, (node,), taken))
        return tuple(takes)

    def _opened(self) -> None:
        shares, several = self.problem.usage.shares, self.problem.several_versions
        opened, in_force = self.variables.opened, self.variables.in_force
        for take in self.variables.takes():
            view = take.view
            if not view.shareable or take.admin or view.slot in shares:
                continue
            if view.slot not in opened:
                opened[view.slot] = self._boolean("open", view.id)
            if take.device not in in_force:
                own = view.slot in several
                in_force[take.device] = (
                    self._boolean("in force", view.id, view.group)
                    if own
                    else opened[view.slot]
                )
