"""The referee for small problems: every answer is tried, and the best one is kept.

What a claim can get on a node is enumerated; a claim of several demands can also be left to another of them. Claims are
joined to demands, demands to gangs, gangs to solutions; of parts that take exactly the same, only the best is kept.
Parts that do not fit together are dropped: whatever is added only takes more. What a part owes to the rest is looked
at in the end: claims that it left to others, and devices that it could leave out only because others fill them.

`best` follows the optimal mode: a device whose selector fails is left out, and ``All`` leaves out a shareable device
if and only if too little of its capacity is left beside everything that is placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, product
from typing import NamedTuple

from brute_load import (
    NOTHING,
    Load,
    bound,
    got,
    granted,
    in_the_end,
    joined,
    left_out,
    placed,
    taken,
    visiting,
)
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    DemandIndex,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolState,
    Problem,
    Request,
    numbered,
)
from dralloc.problem.solution import Grant, Placement, Solution

__all__ = [
    "best",
    "best_solution",
    "every_solution",
    "feasible",
    "solutions",
]

Grants = tuple[Grant, ...]
Devices = tuple[DeviceIndex, ...]


class Answer(NamedTuple):
    """A part of a solution (or all of it): its worth, and the placements or claims' grants that it consists of."""

    weight: int = 0
    rank: int = 0
    placements: tuple[Placement, ...] = ()
    grants: tuple[Grants, ...] = ()

    def plus(self, other: Answer) -> Answer:
        placements, grants = (
            self.placements + other.placements,
            self.grants + other.grants,
        )
        return Answer(
            self.weight + other.weight,
            self.rank + other.rank,
            placements,
            grants,
        )

    @property
    def worth(self) -> tuple[int, int]:
        return self.weight, -self.rank


Answers = dict[Load, Answer]
START: Answers = {NOTHING: Answer()}


def best(problem: Problem) -> tuple[int, int]:
    """The largest total weight of placed demands, and the smallest total rank with which it can be reached."""
    weight, rank, *_ = _best(problem)
    return weight, rank


def best_solution(problem: Problem) -> Solution:
    """One of the best solutions."""
    return _solution(_best(problem))


def solutions(problem: Problem) -> Iterator[Solution]:
    """All solutions, but one only of those that take exactly the same; the empty one first."""
    answers = START
    for gang in _gangs(problem):
        answers = _better(
            chain(answers.items(), _together(problem, answers, gang).items())
        )
    yield from (
        _solution(answer)
        for load, answer in answers.items()
        if in_the_end(problem, load)
    )


def every_solution(problem: Problem) -> Iterator[Solution]:
    """All solutions, also those that take the same for different demands."""
    ways = [
        [None, *_demand(problem, index, demand).items()]
        for index, demand in numbered(problem.demands)
    ]
    partial: list[tuple[Load, Answer]] = [(NOTHING, Answer())]
    for options in ways:
        partial = [
            (load, answer.plus(way[1]) if way else answer)
            for (before, answer), way in product(partial, options)
            if (load := joined(problem, before, way[0]) if way else before)
            is not None
        ]
    for load, answer in partial:
        if in_the_end(problem, load) and _have_quorums(
            problem, [placement.demand for placement in answer.placements]
        ):
            yield _solution(answer)


def feasible(problem: Problem, solution: Solution) -> bool:
    """Whether the placements are among those that `solutions` chooses from, each demand at most once."""
    load: Load | None = NOTHING
    for placement in solution.placements:
        own = _load(problem, placement)
        load = (
            joined(problem, load, own)
            if load is not None and own is not None
            else None
        )
    demands = [placement.demand for placement in solution.placements]
    whole = _have_quorums(problem, demands)
    return (
        load is not None
        and in_the_end(problem, load)
        and whole
        and len(demands) == len(set(demands))
    )


def _have_quorums(problem: Problem, placed: Iterable[DemandIndex]) -> bool:
    """Whether every gang with somebody placed has as many as it needs."""
    admitted = Counter(problem.demands[index].gang for index in placed)
    return all(
        not demand.gang
        or not admitted[demand.gang]
        or admitted[demand.gang] >= _needed(problem, demand.gang)
        for demand in problem.demands
    )


def _needed(problem: Problem, gang: str) -> int:
    members = [demand for demand in problem.demands if demand.gang == gang]
    return len(members) if members[0].quorum is None else members[0].quorum


def _load(problem: Problem, placement: Placement) -> Load | None:
    """What a placement takes; None if it is impossible by itself."""
    demand = problem.demands[placement.demand]
    if placement.node not in problem.candidate_nodes(demand) or len(
        placement.grants
    ) != len(demand.claims):
        return None
    load: Load | None = bound(demand)
    for claim, grants in zip(demand.claims, placement.grants, strict=True):
        known = {
            tuple(sorted(every)): own
            for every, _, own in _grants(problem, claim, placement.node)
        }
        own = known.get(tuple(sorted(grants)))
        load = (
            joined(problem, load, own)
            if load is not None and own is not None
            else None
        )
    return None if load is None else placed(load)


def _best(problem: Problem) -> Answer:
    answers = START
    gangs = [gang for gang in _gangs(problem) if gang]
    to_come = sum(
        max(answer.weight for answer in gang.values()) for gang in gangs
    )
    for gang in gangs:
        to_come -= max(answer.weight for answer in gang.values())
        answers = _better(
            chain(answers.items(), _together(problem, answers, gang).items())
        )
        least = (
            max(
                answer.weight
                for load, answer in answers.items()
                if in_the_end(problem, load)
            )
            - to_come
        )
        answers = {
            load: answer
            for load, answer in answers.items()
            if answer.weight >= least
        }
    return max(
        (
            answer
            for load, answer in answers.items()
            if in_the_end(problem, load)
        ),
        key=lambda answer: answer.worth,
    )


def _solution(answer: Answer) -> Solution:
    return Solution(
        tuple(sorted(answer.placements, key=lambda placement: placement.demand))
    )


def _better(answers: Iterable[tuple[Load, Answer]]) -> Answers:
    """Of the answers that take the same, the best."""
    kept: Answers = {}
    for load, answer in answers:
        if load not in kept or kept[load].worth < answer.worth:
            kept[load] = answer
    return kept


def _together(problem: Problem, first: Answers, second: Answers) -> Answers:
    """Every answer of the one with every answer of the other, where that fits."""
    pairs = (
        (joined(problem, load, other_load), answer.plus(other))
        for (load, answer), (other_load, other) in product(
            first.items(), second.items()
        )
    )
    return _better((load, answer) for load, answer in pairs if load is not None)


def _gangs(problem: Problem) -> Iterator[Answers]:
    """How enough demands of a gang can be placed, for every gang; a demand without gang is one of its own."""
    gangs: dict[object, list[DemandIndex]] = {}
    for index, demand in numbered(problem.demands):
        gangs.setdefault(demand.gang or index, []).append(index)
    for members in gangs.values():
        gang = problem.demands[members[0]].gang
        needed = _needed(problem, gang) if gang else 1
        every: Answers = {}
        for count in range(needed, len(members) + 1):
            for chosen in combinations(members, count):
                answers = START
                for index in chosen:
                    answers = _together(
                        problem,
                        answers,
                        _demand(problem, index, problem.demands[index]),
                    )
                every = _better(chain(every.items(), answers.items()))
        yield every


def _demand(problem: Problem, index: DemandIndex, demand: Demand) -> Answers:
    """How a demand can be placed."""
    ways = []
    for node in problem.candidate_nodes(demand):
        answers = {bound(demand): Answer()}
        for claim in demand.claims:
            claim_answers = (
                (load, Answer(rank=rank, grants=(grants,)))
                for grants, rank, load in _grants(problem, claim, node)
            )
            answers = _together(problem, answers, _better(claim_answers))
        for load, answer in answers.items():
            placement = Placement(index, node, answer.grants)
            ways.append(
                (placed(load), Answer(demand.weight, answer.rank, (placement,)))
            )
    return _better(ways)


def _grants(
    problem: Problem, claim: Claim, node: NodeIndex
) -> Iterator[tuple[Grants, int, Load]]:
    """Everything that the claim can get on the node, with its rank and what it takes."""
    partial: list[tuple[Grants, int, Load]] = (
        [] if _has_defect(claim) else [((), 0, NOTHING)]
    )
    for index, request in enumerate(claim.requests):
        served = list(_served(problem, index, request, node))
        partial = [
            (grants + more, rank + extra, load)
            for (grants, rank, before), (more, extra, own) in product(
                partial, served
            )
            if (load := joined(problem, before, own)) is not None
            and _keeps_rules(problem, claim, grants + more)
        ]
    if _is_bound(problem, claim.key):
        own = (
            (grants, rank, joined(problem, load, _got(claim, grants)))
            for grants, rank, load in partial
        )
        partial = [
            (grants, rank, load)
            for grants, rank, load in own
            if load is not None
        ]
    if not claim.requests or not _is_shared(problem, claim.key):
        yield from partial
        return
    yield (), 0, visiting(claim.key, node)
    for grants, rank, load in partial:
        home = joined(
            problem,
            load,
            granted(claim.key, node, (grant.device for grant in grants)),
        )
        assert home is not None
        yield grants, rank, home


def _is_bound(problem: Problem, key: ClaimKey) -> bool:
    """Whether some demand has the claim under a constraint over several claims."""
    every = (
        claim
        for demand in problem.demands
        for claim in demand.claims
        if claim.key == key
    )
    return any(
        constraint.scope for claim in every for constraint in claim.constraints
    )


def _got(claim: Claim, grants: Grants) -> Load:
    names = (
        claim.requests[grant.request].alternatives[grant.alternative].name
        for grant in grants
    )
    return got(
        claim.key,
        (
            (name, grant.device)
            for name, grant in zip(names, grants, strict=True)
        ),
    )


def _has_defect(claim: Claim) -> bool:
    """Whether the claim is invalid as a whole: an alternative that is not picked spoils it, too."""
    return bool(claim.defect) or any(
        alternative.defect
        for request in claim.requests
        for alternative in request.alternatives
    )


def _is_shared(problem: Problem, key: ClaimKey) -> bool:
    return (
        sum(
            claim.key == key
            for demand in problem.demands
            for claim in demand.claims
        )
        > 1
    )


def _served(
    problem: Problem, index: int, request: Request, node: NodeIndex
) -> Iterator[tuple[Grants, int, Load]]:
    """Every choice of devices for every alternative of a request."""
    for position, alternative in enumerate(request.alternatives):
        for devices, missing in _choices(
            problem, alternative, problem.nodes[node], node
        ):
            load: Load | None = left_out(problem, alternative, missing)
            for device in devices:
                load = (
                    load
                    if load is None
                    else joined(
                        problem, load, taken(problem, alternative, device)
                    )
                )
            if load is not None:
                yield (
                    tuple(Grant(index, position, device) for device in devices),
                    alternative.rank,
                    load,
                )


def _choices(
    problem: Problem, alternative: Alternative, node: Node, index: NodeIndex
) -> Iterator[tuple[Devices, Devices]]:
    """The sets of devices that the alternative can get, as far as each by itself shows, and what ``All`` lacks."""
    matching = [
        device
        for device in node.devices()
        if problem.on_node(device, index)
        and problem.eligibility.selects(alternative.index, device) is True
        and problem.eligibility.charge(alternative.index, device) is not None
    ]
    usable = [
        device for device in matching if _usable(problem, alternative, device)
    ]
    if alternative.count is not None:
        yield from (
            (devices, ()) for devices in combinations(usable, alternative.count)
        )
    elif all(pool.state is PoolState.USABLE for pool in node.pools):
        for count in range(1, len(usable) + 1):
            for devices in combinations(usable, count):
                missing = tuple(
                    device for device in matching if device not in devices
                )
                if all(problem.devices[device].shareable for device in missing):
                    yield devices, missing


def _usable(
    problem: Problem, alternative: Alternative, device: DeviceIndex
) -> bool:
    """Whether the device could be granted if the alternative were alone."""
    known, usage = problem.devices[device], problem.usage
    if not problem.eligibility.admits(alternative.index, device):
        return False
    if alternative.admin:
        return True
    return known.slot not in usage.held and (
        known.slot not in usage.shares or known.shareable
    )


def _keeps_rules(problem: Problem, claim: Claim, grants: Grants) -> bool:
    """Whether what the claim has so far is in order as far as it concerns the claim alone."""
    devices = [problem.devices[grant.device] for grant in grants]
    dedicated = [device.slot for device in devices if not device.shareable]
    if len(grants) > MAX_RESULTS or len(dedicated) != len(set(dedicated)):
        return False
    return all(
        _agrees(problem, claim, constraint, grants)
        for constraint in claim.constraints
    )


def _agrees(
    problem: Problem, claim: Claim, constraint: Constraint, grants: Grants
) -> bool:
    covered = [
        problem.devices[grant.device].attributes.get(
            constraint.compared(
                claim.requests[grant.request]
                .alternatives[grant.alternative]
                .name
            )
        )
        for grant in grants
        if constraint.covers(
            claim.requests[grant.request].alternatives[grant.alternative].name
        )
    ]
    values = [known for known in covered if known is not None]
    if len(values) < len(covered):
        return False
    if constraint.kind is ConstraintKind.MATCH:
        return len(values) < 2 or bool(frozenset.intersection(*values))
    carried = list(chain.from_iterable(known or {None} for known in values))
    return len(carried) == len(set(carried))
