"""Interchangeable devices: an equivalence class for requests that are equally served by each of them.

Which request gets which of the devices is then not decided by the solver but handed out afterwards. This takes most
booleans, and most of the symmetry, out of a model in which many pods have equal requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dralloc.problem import (
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    Scalar,
)
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.solve.optimum.candidates import CandidateSite, ServingChoice
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "GroupUse",
    "InterchangeableDevices",
    "binding_constraints",
    "every_choice",
    "interchangeable_devices",
]


class GroupUse(NamedTuple):
    """A choice that can use any device of a group.

    Parameters
    ----------
    choice
        Its index (see `every_choice`).
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


_ChoiceKey = tuple[DemandIndex, int, int, int]
"""The demand, claim, request and alternative of a choice."""


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
        stop.each(every_choice(sites))
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


def every_choice(
    sites: Mapping[DemandIndex, Sequence[CandidateSite]],
) -> Iterator[tuple[DemandIndex, CandidateSite, ServingChoice]]:
    """Every choice with its demand and site, in order: the uses of groups know them by their indices."""
    for demand, demand_sites in sites.items():
        for site in demand_sites:
            for choice in site.choices():
                yield demand, site, choice


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
            # Others have to reach the devices of a claim that they share; in one with admin access, a device is used
            # once, with or without that. So it matters which one a request gets.
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
                # If one of several constraints looks at more than values, the others do not help.
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
