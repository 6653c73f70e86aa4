"""The plugins for what is counted: a node's resources, and devices for claims.

They ask whether a node has what a pod requests, how much of it is left, how evenly that is used, and which nodes have
better alternatives of its claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods import (
    CPU,
    EPHEMERAL,
    MEMORY,
    PodInfo,
    caps_of,
    is_scalar,
    requests_of,
)
from dralloc.objects.errors import FatalError, NodeError
from dralloc.solve.scheduler.devices import MOST_ALTERNATIVES, Found
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Check,
    Cycle,
    Plugin,
    Profile,
    Rejection,
    RejectionColumn,
    Scores,
    Scoring,
    Shape,
    Strategy,
    relative,
    rounded,
)
from dralloc.solve.scheduler.snapshot import NodeInfo, TooLargeError

__all__ = ["BALANCED_ALLOCATION", "DYNAMIC_RESOURCES", "NODE_RESOURCES_FIT", "use_of"]

# ----------------------------------------------------------------------------
# Whether a node has what a pod requests, how much of it is left, and how evenly that
# is used.
#
# Source: ``framework/plugins/noderesources``: ``fit.go``, ``least_allocated.go``,
# ``most_allocated.go``, ``requested_to_capacity_ratio.go``,
# ``resource_allocation.go``, ``balanced_allocation.go``. Upstream computes evenness
# with float64, in this order of operations, and so do we: the scores are the same to
# the last bit.

_TOO_MANY: Final = "Too many pods"

Places = NDArray[np.intp]

Amounts = Iterable[tuple[int, int, int]]
"""What is requested of a resource with the pod, what there is, and the resource's weight."""


def _lacking(cycle: Cycle) -> Check:
    wanted = {
        name: amount
        for name, amount in cycle.pod.kind.requests.items()
        if amount and not cycle.profile.ignores(name)
    }

    def check(node: NodeInfo) -> Rejection | None:
        if not node.is_limited:
            return None
        lacking = [
            name
            for name in node.lacking(wanted)
            if not cycle.devices.serves(name, node)
        ]
        too_many = node.pod_room < 1
        if lacking or too_many:
            return insufficient(node, wanted, lacking, too_many=too_many)
        return None

    return check


def _lacking_column(cycle: Cycle, places: Places) -> RejectionColumn | None:
    """What `_lacking` says about nodes; None if there are amounts too large for columns."""
    wanted = {
        name: amount
        for name, amount in cycle.pod.kind.requests.items()
        if amount and not cycle.profile.ignores(name)
    }
    columns = cycle.snapshot.columns
    if any(amount >= 2**50 for amount in wanted.values()):
        return None
    try:
        # What is short, bit by bit, and below that whether fewer pods would help.
        codes = (columns.pod_room[places] < 1).astype(np.int64) << 1
        resolvable = np.ones(len(places), np.bool_)
        for bit, (name, amount) in enumerate(wanted.items(), 2):
            there = columns.allocatable(name)[places]
            short = amount > np.maximum(there - columns.requested(name)[places], 0)
            if cycle.devices.is_backed(name):
                short &= there != 0
            codes |= short.astype(np.int64) << bit
            resolvable &= ~short | (amount <= there)
        codes[columns.limited[places] == 0] = 0
    except TooLargeError:
        return None
    codes |= resolvable & (codes != 0)
    (against,) = codes.nonzero()
    found = sorted(set(codes[against].tolist()))
    codes[against] = 1 + np.searchsorted(np.array(found, np.int64), codes[against])
    return RejectionColumn(codes, [_rejection(code, list(wanted)) for code in found])


def _rejection(code: int, names: Sequence[str]) -> Rejection:
    """What a code of `_lacking_column` stands for."""
    lacking = [
        f"Insufficient {name}" for bit, name in enumerate(names, 2) if code >> bit & 1
    ]
    return Rejection(tuple([_TOO_MANY] * (code >> 1 & 1) + lacking), bool(code & 1))


def insufficient(
    node: NodeInfo, wanted: Mapping[str, int], lacking: Iterable[str], *, too_many: bool
) -> Rejection:
    """The rejection of a node that lacks some of what is wanted; fewer pods help if it has as much at all."""
    reasons = [_TOO_MANY] * too_many + [f"Insufficient {name}" for name in lacking]
    return Rejection(
        tuple(reasons),
        all(wanted[name] <= node.allocatable.get(name, 0) for name in lacking),
    )


def _left(cycle: Cycle) -> Scoring:
    profile, wanted, columns = (
        cycle.profile,
        cycle.pod.kind.scored,
        cycle.snapshot.columns,
    )
    rate = _STRATEGIES[profile.strategy](profile)

    def column(places: Places) -> Scores | None:
        """As ``score``, for strategies that round each share by itself."""
        if profile.strategy is Strategy.RATIO or any(
            amount >= 2**50 for amount in wanted.values()
        ):
            return None
        total, weights = (
            np.zeros(len(places), np.int64),
            np.zeros(len(places), np.int64),
        )
        for name, weight in profile.scored_resources.items():
            if not wanted.get(name) and is_scalar(name):
                continue
            there = columns.allocatable(name)[places]
            requested = columns.occupied(name)[places] + wanted.get(name, 0)
            counted = np.minimum(requested, there)
            if profile.strategy is Strategy.LEAST:
                counted = there - counted
            having = there > 0
            total += np.where(
                having, weight * (counted * MAX_SCORE // np.maximum(there, 1)), 0
            )
            weights += np.where(having, weight, 0)
        return total // np.maximum(weights, 1)

    return Scoring(
        lambda node: rate(_amounts(profile, [node], wanted)), column=_or_none(column)
    )


def _or_none(
    column: Callable[[Places], Scores | None],
) -> Callable[[Places], Scores | None]:
    """The same column; None where amounts are too large for one."""

    def asked(places: Places) -> Scores | None:
        try:
            return column(places)
        except TooLargeError:
            return None

    return asked


def use_of(profile: Profile, nodes: Sequence[NodeInfo], pods: Sequence[PodInfo]) -> int:
    """How full nodes are together if pods come to them (``ScorePlacement``), of `MAX_SCORE`."""
    wanted: Counter[str] = Counter()
    for pod in pods:
        wanted.update(pod.kind.scored)
    return _weighted(_most)(_amounts(profile, nodes, wanted))


def _amounts(
    profile: Profile, nodes: Sequence[NodeInfo], wanted: Mapping[str, int]
) -> Amounts:
    for name, weight in profile.scored_resources.items():
        having = [node for node in nodes if node.allocatable.get(name)]
        if having and (wanted.get(name) or not is_scalar(name)):
            used = sum([_used(node, name) for node in having])
            yield (
                wanted.get(name, 0) + used,
                sum([node.allocatable[name] for node in having]),
                weight,
            )


def _used(node: NodeInfo, resource: str) -> int:
    return (node.occupied if resource in (CPU, MEMORY) else node.requested).get(
        resource, 0
    )


def _weighted(rate: Callable[[int, int], int]) -> Callable[[Amounts], int]:
    """The mean over the resources, rounded down."""

    def mean(amounts: Amounts) -> int:
        rated = [
            (rate(requested, there), weight) for requested, there, weight in amounts
        ]
        total = sum(weight for _, weight in rated)
        if total:
            return sum(score * weight for score, weight in rated) // total
        return 0

    return mean


def _least(requested: int, there: int) -> int:
    if requested > there:
        return 0
    return (there - requested) * MAX_SCORE // there


def _most(requested: int, there: int) -> int:
    return min(requested, there) * MAX_SCORE // there


def _ratio(profile: Profile) -> Callable[[Amounts], int]:
    """The mean over the resources that have a score at all, rounded; upstream divides as float64."""

    def mean(amounts: Amounts) -> int:
        rated = [
            (
                _on_shape(
                    profile.shape,
                    MAX_SCORE if requested > there else requested * MAX_SCORE // there,
                ),
                weight,
            )
            for requested, there, weight in amounts
        ]
        total = sum(weight for score, weight in rated if score > 0)
        if total:
            return rounded(
                sum(score * weight for score, weight in rated if score > 0) / total
            )
        return 0

    return mean


def _on_shape(shape: Shape, utilisation: int) -> int:
    """The value of a broken line, as ``helper/shape_score.go`` interpolates."""
    before, score = shape[0]
    for point, value in shape:
        if utilisation <= point:
            rise = (value - score) * (utilisation - before)
            # Go divides towards zero.
            return score + (
                abs(rise) // (point - before) * (1 if rise >= 0 else -1)
                if point > before
                else 0
            )
        before, score = point, value
    return score


_STRATEGIES: Final[Mapping[Strategy, Callable[[Profile], Callable[[Amounts], int]]]] = {
    Strategy.LEAST: lambda _: _weighted(_least),
    Strategy.MOST: lambda _: _weighted(_most),
    Strategy.RATIO: _ratio,
}


def _balanced(cycle: Cycle) -> Scoring | None:
    requests, resources = cycle.pod.kind.requests, cycle.profile.balanced_resources
    wanted = {name: requests.get(name, 0) for name in resources}
    if not any(wanted.values()):
        return None

    def score(node: NodeInfo) -> int:
        there = {
            name: node.allocatable[name]
            for name in resources
            if (wanted[name] or not is_scalar(name)) and node.allocatable.get(name)
        }
        before = {name: node.requested.get(name, 0) for name in there}
        after = {name: before[name] + wanted[name] for name in there}
        return (
            MAX_SCORE // 2
            + (MAX_SCORE // 2 + _evenness(after, there) - _evenness(before, there)) // 2
        )

    names, columns = (
        [name for name in resources if wanted[name] or not is_scalar(name)],
        cycle.snapshot.columns,
    )

    def column(places: Places) -> Scores | None:
        """As ``score``, in the same order of operations, where every node has both of two resources."""
        there = [columns.allocatable(name)[places] for name in names]
        if len(names) != 2 or not all((amounts > 0).all() for amounts in there):
            return None
        if any(amount >= 2**50 for amount in wanted.values()):
            return None
        before = [columns.requested(name)[places] for name in names]
        after = [used + wanted[name] for used, name in zip(before, names, strict=True)]
        return (
            MAX_SCORE // 2
            + (
                MAX_SCORE // 2
                + _evenness_of_two(after, there)
                - _evenness_of_two(before, there)
            )
            // 2
        )

    return Scoring(score, column=_or_none(column))


def _evenness_of_two(used: Sequence[Scores], there: Sequence[Scores]) -> Scores:
    """As `_evenness`, of many nodes."""
    first, second = (
        np.minimum(part / whole, 1.0) for part, whole in zip(used, there, strict=True)
    )
    evenness: Scores = ((1 - np.abs((first - second) / 2)) * float(MAX_SCORE)).astype(
        np.int64
    )
    return evenness


def _evenness(used: Mapping[str, int], there: Mapping[str, int]) -> int:
    """`MAX_SCORE` less the standard deviation of the shares that are used."""
    shares = [min(used[name] / there[name], 1.0) for name in there]
    return int((1 - _deviation(shares)) * float(MAX_SCORE))


def _deviation(shares: Sequence[float]) -> float:
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2)
    total = squares = 0.0
    for share in shares:
        total += share
    mean = total / len(shares)
    for share in shares:
        squares += (share - mean) * (share - mean)
    return sqrt(squares / len(shares))


NODE_RESOURCES_FIT: Final = Plugin(
    "NodeResourcesFit",
    _lacking,
    _left,
    view=attrgetter("usage"),
    column=_lacking_column,
)
BALANCED_ALLOCATION: Final = Plugin(
    "NodeResourcesBalancedAllocation", score=_balanced, view=attrgetter("usage")
)


# ----------------------------------------------------------------------------
# Devices for claims, and nodes with better alternatives.
#
# Source: ``framework/plugins/dynamicresources``: ``dynamicresources.go``,
# ``extendeddynamicresources.go``, ``nodeallocatabledynamicresources.go``.

_CANNOT: Final = Rejection(("cannot allocate all claims",))
_CANNOT_YET: Final = _CANNOT._replace(eased=True)
"""Another pod may allocate a claim that both use."""
_CANNOT_FIT: Final = Rejection(("cannot fit resource",))
"""Seen only where NodeResourcesFit, which says more, does not filter."""
_ELSEWHERE: Final = Rejection(("resourceclaim not available on the node",))
_IN_USE: Final = Rejection(("resourceclaim in use",))
_MAPPED: Final = "has a mapped device and cannot be shared across pods"
_CAPPED: Final = (
    "pod level request for {} is insufficient to cover "
    "the aggregated container and node-allocatable DRA requests"
)


def _filter(cycle: Cycle) -> Check | Rejection | None:
    devices, pod = cycle.devices, cycle.pod
    claims = devices.claims_of(pod)
    if not claims:
        return None
    for claim in claims:
        if devices.is_full(claim, pod):
            return _IN_USE
        if devices.is_taken(claim, pod):
            return Rejection(
                (f"node allocatable resource claim {claim.name} {_MAPPED}",)
            )
        if claim.key in cycle.in_flight:
            return Rejection(
                (f"resource claim {claim.key} is in the process of being allocated",)
            )
        for request, one in (
            claim.spec.devices.alternatives if claim.status.allocation is None else ()
        ):
            if one.device_class_name not in cycle.classes:
                return Rejection(
                    (
                        f"request {request}: device class {one.device_class_name} does not exist",
                    )
                )

    unbacked = devices.unbacked(pod)
    cannot = _CANNOT_YET if devices.has_shared_claims(pod) else _CANNOT
    allocated = [claim for claim in claims if devices.is_allocated(claim)]
    # Equal pods share the check, so that it looks at nothing that changes when one of them is bound.
    held, wanted = devices.held(claims), devices.wanted(pod)
    footprints = devices.footprints or None

    def footprint_rejection(node: NodeInfo, found: Found) -> Rejection | None:
        taken = footprints.of(pod, lambda key: found.get(key, ())) if footprints else {}
        return _short_of(pod, node, taken) if taken else None

    def check(node: NodeInfo) -> Rejection | None:
        if unbacked and any(name not in node.allocatable for name in unbacked):
            return _CANNOT_FIT
        reachable = not allocated or all(
            devices.is_reachable(claim, node) for claim in allocated
        )
        here = wanted(node)
        if not here.claims:
            if reachable:
                return footprint_rejection(node, held)
            return _ELSEWHERE
        try:
            taken = devices.find(here, node)
        except NodeError as error:
            return Rejection((str(error),))
        except FatalError as error:
            raise FatalError(
                f'running "{DYNAMIC_RESOURCES.name}" filter plugin: {error}'
            ) from error
        if taken is None:
            return cannot
        found = {**held, **here.granting(taken)} if footprints else {}
        if rejection := footprint_rejection(node, found):
            return rejection
        return None if reachable else _ELSEWHERE

    return check


def _short_of(
    pod: PodInfo, node: NodeInfo, taken: Mapping[str, int]
) -> Rejection | None:
    """What is against a node on which the pod's devices take this."""
    for name, cap in caps_of(pod.kind.spec).items():
        if taken.get(name, 0) > cap:
            return Rejection((_CAPPED.format(name),))
    wanted = requests_of(pod.kind.spec, of_devices=taken) if node.is_limited else {}
    looked_at = [
        CPU,
        MEMORY,
        EPHEMERAL,
        *sorted(name for name in wanted if name.startswith("hugepages-")),
    ]
    lacking = node.lacking({name: wanted[name] for name in looked_at if name in wanted})
    if lacking:
        return insufficient(node, wanted, lacking, too_many=False)
    return None


def _score(cycle: Cycle) -> Scoring:
    devices, pod, nodes = cycle.devices, cycle.pod, cycle.snapshot.nodes
    if not devices.has_choice(pod):
        return Scoring(
            lambda _: 0, relative, lambda places: np.zeros(len(places), np.int64)
        )
    held, wanted = devices.held(devices.claims_of(pod)), devices.wanted(pod)

    def score(node: NodeInfo) -> int:
        """The sum over what serves the pod on a node, on which its claims fit."""
        here = wanted(node)
        taken = devices.find(here, node) if here.claims else None
        if taken is None:
            return 0
        found = {**held, **here.granting(taken)}
        return sum(
            MOST_ALTERNATIVES - rank for rank in devices.alternatives(pod, found)
        )

    def column(places: NDArray[np.intp]) -> Scores:
        return np.array([score(nodes[place]) for place in places.tolist()], np.int64)

    return Scoring(score, relative, column)


def _without_devices(cycle: Cycle, places: NDArray[np.intp]) -> RejectionColumn | None:
    """What is against nodes that have too little for the claims for good; None if their devices are not all of it."""
    devices, pod = cycle.devices, cycle.pod
    if devices.kind_of(pod) is None or not devices.are_apart(pod):
        return None
    numbers = cycle.snapshot.numbers[places]
    return RejectionColumn(devices.hopeless(pod)[numbers].astype(np.int64), (_CANNOT,))


DYNAMIC_RESOURCES: Final = Plugin(
    "DynamicResources", _filter, _score, weight=2, rules_out=_without_devices
)
