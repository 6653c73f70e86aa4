"""Interchangeable devices: an equivalence class for requests that are equally served by each of them.

Which request gets which of the devices is then not decided by the solver but handed out afterwards. This takes most
booleans, and most of the symmetry, out of a model in which many pods have equal requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dralloc.problem import Claim, Constraint, Problem
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.candidates import CandidateSite, ServingChoice
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "InterchangeableDevices",
    "binding_constraints",
    "every_choice",
    "interchangeable_devices",
]


class InterchangeableDevices(NamedTuple):
    """Devices that the same choices can use, the nodes of those, and the choices by number (see `every_choice`)."""

    devices: tuple[int, ...]
    nodes: tuple[int, ...]
    users: tuple[int, ...]


def binding_constraints(
    claim: Claim, choices: Iterable[ServingChoice]
) -> Iterator[tuple[Constraint, Collection[tuple[int, int]]]]:
    """The constraints of a claim under which two of its devices can meet, or one with another claim's.

    Each comes with the (request, alternative) indices that it covers, in order. Under all others every candidate has
    the attribute already, and nothing is left to decide.
    """
    every = list(choices)
    for constraint in claim.constraints:
        covered: dict[tuple[int, int], None] = {}
        most: dict[int, int] = defaultdict(int)
        for choice in every:
            if constraint.covers(choice.spec.name):
                covered[choice.request, choice.alternative] = None
                most[choice.request] = max(most[choice.request], choice.count)
        if sum(most.values()) > 1 or (covered and constraint.scope):
            yield constraint, covered.keys()


def interchangeable_devices(
    problem: Problem, sites: Mapping[int, Sequence[CandidateSite]], stop: Stop
) -> list[InterchangeableDevices]:
    """Group devices by the choices that they are candidates for, among choices that every candidate serves equally.

    Those are choices of dedicated devices, without anything that is charged by request, that no constraint compares,
    no request with admin access in the same claim could get too, and no other demand has to reach.
    """
    told_apart = _told_apart(problem, sites, stop)
    users: dict[int, list[int]] = defaultdict(list)
    nodes: list[int] = []
    for number, (demand, site, choice) in enumerate(stop.each(every_choice(sites))):
        nodes.append(site.node)
        if (
            demand,
            choice.claim,
            choice.request,
            choice.alternative,
        ) not in told_apart and _is_plain(problem, choice):
            for device, _ in choice.candidates:
                users[device].append(number)
    return [
        InterchangeableDevices(
            tuple(devices), tuple(sorted({nodes[user] for user in mine})), mine
        )
        for mine, devices in grouped(
            (tuple(each), device) for device, each in users.items()
        ).items()
    ]


def every_choice(
    sites: Mapping[int, Sequence[CandidateSite]],
) -> Iterator[tuple[int, CandidateSite, ServingChoice]]:
    """Every choice with its demand and site, in order: the numbers of a group's users count them."""
    for demand, each in sites.items():
        for site in each:
            for choice in site.choices():
                yield demand, site, choice


def _told_apart(
    problem: Problem, sites: Mapping[int, Sequence[CandidateSite]], stop: Stop
) -> set[tuple[int, int, int, int]]:
    """The (demand, claim, request, alternative) whose devices matter to the rest of their claim."""
    found: set[tuple[int, int, int, int]] = set()
    for demand, each in stop.each(sites.items()):
        for number, claim in enumerate(problem.demands[demand].claims):
            choices = [
                choice
                for site in each
                for choice in site.choices()
                if choice.claim == number
            ]
            pairs = {
                which
                for _, covered in binding_constraints(claim, choices)
                for which in covered
            }
            if number in each[0].shared or any(choice.spec.admin for choice in choices):
                pairs = {(choice.request, choice.alternative) for choice in choices}
            found.update((demand, number, *pair) for pair in pairs)
    return found


def _is_plain(problem: Problem, choice: ServingChoice) -> bool:
    return not choice.fixed and not any(
        problem.devices[device].shareable or charge.counters
        for device, charge in choice.candidates
    )
