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

from dralloc.compile.pods import PodInfo
from dralloc.compile.pods.node_requests import (
    CPU,
    EPHEMERAL,
    MEMORY,
    caps_of,
    is_scalar,
    requests_of,
)
from dralloc.objects.api import ResourceClaim
from dralloc.objects.errors import FatalError, NodeError
from dralloc.solve.scheduler.devices import Devices
from dralloc.solve.scheduler.node_columns import TooLargeError
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Cycle,
    Plugin,
    Scores,
    Scoring,
    relative,
    rounded,
)
from dralloc.solve.scheduler.pod_claims import GrantsByClaim
from dralloc.solve.scheduler.profile import Profile, Shape, Strategy
from dralloc.solve.scheduler.verdicts import Check, Rejection, RejectionColumn

__all__ = [
    "BALANCED_ALLOCATION",
    "DYNAMIC_RESOURCES",
    "NODE_RESOURCES_FIT",
    "use_of",
]

# ----------------------------------------------------------------------------
# Resources of nodes. Source: ``framework/plugins/noderesources``: ``fit.go``,
# ``least_allocated.go``, ``most_allocated.go``, ``requested_to_capacity_ratio.go``,
# ``resource_allocation.go``, ``balanced_allocation.go``. Evenness is computed with
# float64, in upstream's order of operations: the scores are the same to the last bit.

_TOO_MANY: Final = "Too many pods"

Places = NDArray[np.intp]

Amounts = Iterable[tuple[int, int, int]]
"""What is requested of a resource with the pod, what there is, and the resource's weight."""


def _looked_at(cycle: Cycle) -> dict[str, int]:
    """Return the requests of the pod that count."""
    return {
        name: amount
        for name, amount in cycle.pod.kind.requests.items()
        if amount and not cycle.profile.ignores(name)
    }


def _lacking(cycle: Cycle) -> Check:
    requests = _looked_at(cycle)

    def check(node: NodeInfo) -> Rejection | None:
        if not node.is_limited:
            return None
        lacking = [
            name
            for name in node.lacking(requests)
            if not cycle.devices.serves(name, node)
        ]
        too_many = node.pod_room < 1
        if lacking or too_many:
            return _insufficient(node, requests, lacking, too_many=too_many)
        return None

    return check


def _lacking_column(cycle: Cycle, positions: Places) -> RejectionColumn | None:
    """Return what `_lacking` says about nodes; None if there are amounts too large for columns."""
    requests, columns = _looked_at(cycle), cycle.snapshot.columns
    if any(amount >= 2**50 for amount in requests.values()):
        return None
    names = tuple(requests)
    try:
        # What is short, bit by bit, and below that whether fewer pods would help.
        codes = (columns.pod_room[positions] < 1).astype(np.int64) << 1
        resolvable = np.ones(len(positions), np.bool_)
        free = columns.free(names).take(positions, axis=0)
        allocatable = columns.allocatable(names).take(positions, axis=0)
        for index, (name, amount) in enumerate(requests.items()):
            short = amount > free[:, index]
            if not short.any():
                continue
            if cycle.devices.is_backed(name):
                # A node that does not have the resource may have devices for it.
                short &= allocatable[:, index] != 0
            codes |= short.astype(np.int64) << (index + 2)
            resolvable &= ~short | (amount <= allocatable[:, index])
        codes[columns.limited[positions] == 0] = 0
    except TooLargeError:
        return None
    (against,) = codes.nonzero()
    if not len(against):
        return RejectionColumn(codes, ())
    codes |= resolvable & (codes != 0)
    # From bits to places in the list of rejections, counted from 1.
    kinds = sorted(set(codes[against].tolist()))
    codes[against] = 1 + np.searchsorted(
        np.array(kinds, np.int64), codes[against]
    )
    return RejectionColumn(
        codes, [_rejection(code, list(requests)) for code in kinds]
    )


def _fitting(cycle: Cycle, positions: Places) -> Places | None:
    """Return the positions of the nodes against which `_lacking` says nothing, as `_lacking_column` knows them."""
    requests, columns = _looked_at(cycle), cycle.snapshot.columns
    if any(amount >= 2**50 for amount in requests.values()):
        return None
    names = tuple(requests)
    try:
        free = columns.free(names).take(positions, axis=0)
        has_enough = free >= list(requests.values())
        for index, name in enumerate(names):
            if cycle.devices.is_backed(name):
                # A node that does not have the resource may have devices for it.
                allocatable = columns.allocatable(names)[positions, index]
                has_enough[:, index] |= allocatable == 0
        fits = has_enough.all(axis=1)
        fits &= columns.pod_room[positions] >= 1
        fits |= columns.limited[positions] == 0
    except TooLargeError:
        return None
    fitting: Places = positions[fits]
    return fitting


def _rejection(code: int, names: Sequence[str]) -> Rejection:
    """Return what a code of `_lacking_column` stands for."""
    lacking = [
        f"Insufficient {name}"
        for bit, name in enumerate(names, 2)
        if code >> bit & 1
    ]
    return Rejection(
        tuple([_TOO_MANY] * (code >> 1 & 1) + lacking), bool(code & 1)
    )


def _insufficient(
    node: NodeInfo,
    requests: Mapping[str, int],
    lacking: Sequence[str],
    *,
    too_many: bool,
) -> Rejection:
    """The rejection of a node that lacks some of what is requested; fewer pods help if it has as much at all."""
    reasons = [_TOO_MANY] * too_many + [
        f"Insufficient {name}" for name in lacking
    ]
    has_enough = (
        requests[name] <= node.allocatable.get(name, 0) for name in lacking
    )
    return Rejection(tuple(reasons), all(has_enough))


def _rated(cycle: Cycle) -> Scoring:
    """Return how much of a node's resources is free, or in use, with the pod on it."""
    profile, columns = cycle.profile, cycle.snapshot.columns
    requests = cycle.pod.kind.scored
    # An extended resource only counts for those who request it.
    names = tuple(
        [
            name
            for name in profile.scored_resources
            if requests.get(name) or not is_scalar(name)
        ]
    )
    rate = _STRATEGIES[profile.strategy](profile)

    def score(node: NodeInfo) -> int:
        return rate(_amounts(profile, [node], requests))

    def column(positions: Places) -> Scores | None:
        """As ``score``, for strategies that round each share by itself."""
        if profile.strategy is Strategy.RATIO:
            return None
        if any(amount >= 2**50 for amount in requests.values()):
            return None
        weights = np.array(
            [profile.scored_resources[name] for name in names], np.int64
        )
        wanted = np.array([requests.get(name, 0) for name in names], np.int64)
        allocatable = columns.allocatable(names).take(positions, axis=0)
        requested = columns.occupied(names).take(positions, axis=0) + wanted
        counted = np.minimum(requested, allocatable)
        if profile.strategy is Strategy.LEAST:
            counted = allocatable - counted
        # A node without a resource is rated by the others alone.
        shares = counted * MAX_SCORE // np.maximum(allocatable, 1)
        weights_there = (allocatable > 0).dot(weights)
        rated: Scores = shares.dot(weights) // np.maximum(weights_there, 1)
        return rated

    return Scoring(score, column=_or_none(column))


def _or_none(
    column: Callable[[Places], Scores | None],
) -> Callable[[Places], Scores | None]:
    """The same column; None where amounts are too large for one."""

    def asked(positions: Places) -> Scores | None:
        try:
            return column(positions)
        except TooLargeError:
            return None

    return asked


def use_of(
    profile: Profile, nodes: Sequence[NodeInfo], pods: Sequence[PodInfo]
) -> int:
    """Return how full nodes are together if pods come to them (``ScorePlacement``), of `MAX_SCORE`."""
    requests: Counter[str] = Counter()
    for pod in pods:
        requests.update(pod.kind.scored)
    return _weighted(_most)(_amounts(profile, nodes, requests))


def _amounts(
    profile: Profile, nodes: Sequence[NodeInfo], requests: Mapping[str, int]
) -> Amounts:
    for name, weight in profile.scored_resources.items():
        having = [node for node in nodes if node.allocatable.get(name)]
        # An extended resource only counts for those who request it.
        if having and (requests.get(name) or not is_scalar(name)):
            used = sum([node.counted_in_scores(name) for node in having])
            allocatable = sum([node.allocatable[name] for node in having])
            yield requests.get(name, 0) + used, allocatable, weight


def _weighted(rate: Callable[[int, int], int]) -> Callable[[Amounts], int]:
    """The mean over the resources, rounded down."""

    def mean(amounts: Amounts) -> int:
        total_score = total_weight = 0
        for requested, allocatable, weight in amounts:
            total_score += rate(requested, allocatable) * weight
            total_weight += weight
        return total_score // total_weight if total_weight else 0

    return mean


def _least(requested: int, allocatable: int) -> int:
    if requested > allocatable:
        return 0
    return (allocatable - requested) * MAX_SCORE // allocatable


def _most(requested: int, allocatable: int) -> int:
    return min(requested, allocatable) * MAX_SCORE // allocatable


def _ratio(profile: Profile) -> Callable[[Amounts], int]:
    """The mean over the resources that have a score at all, rounded; upstream divides as float64."""

    def mean(amounts: Amounts) -> int:
        total_score = total_weight = 0
        for requested, allocatable, weight in amounts:
            utilisation = MAX_SCORE
            if requested <= allocatable:
                utilisation = requested * MAX_SCORE // allocatable
            score = _on_shape(profile.shape, utilisation)
            if score > 0:
                total_score += score * weight
                total_weight += weight
        return rounded(total_score / total_weight) if total_weight else 0

    return mean


def _on_shape(shape: Shape, utilisation: int) -> int:
    """The value of a broken line, as ``helper/shape_score.go`` interpolates."""
    before, score = shape[0]
    for point, value in shape:
        if utilisation <= point:
            if point <= before:
                return score
            rise = (value - score) * (utilisation - before)
            # Go divides towards zero.
            step = abs(rise) // (point - before)
            return score + step if rise >= 0 else score - step
        before, score = point, value
    return score


_STRATEGIES: Final[
    Mapping[Strategy, Callable[[Profile], Callable[[Amounts], int]]]
] = {
    Strategy.LEAST: lambda _: _weighted(_least),
    Strategy.MOST: lambda _: _weighted(_most),
    Strategy.RATIO: _ratio,
}


def _balanced(cycle: Cycle) -> Scoring | None:
    resources, columns = (
        cycle.profile.balanced_resources,
        cycle.snapshot.columns,
    )
    requests = {
        name: cycle.pod.kind.requests.get(name, 0) for name in resources
    }
    # Upstream leaves out a pod that requests none of them (``isBestEffortPod``).
    if not any(requests.values()):
        return None
    names = tuple(
        [name for name in resources if requests[name] or not is_scalar(name)]
    )

    def score(node: NodeInfo) -> int:
        allocatable = {
            name: node.allocatable[name]
            for name in names
            if node.allocatable.get(name)
        }
        before = {name: node.requested.get(name, 0) for name in allocatable}
        after = {name: before[name] + requests[name] for name in allocatable}
        # A deviation is at most one half, so a gain is from -50 to 50. So nothing negative is divided, which Go would
        # round otherwise.
        gain = _evenness(after, allocatable) - _evenness(before, allocatable)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + gain) // 2

    def column(positions: Places) -> Scores | None:
        """As ``score``, in the same order of operations, where every node has both of two resources."""
        if len(names) != 2:
            return None
        allocatable = columns.allocatable(names).take(positions, axis=0)
        if allocatable.min(initial=1) < 1:
            return None
        if any(amount >= 2**50 for amount in requests.values()):
            return None
        before = columns.requested(names).take(positions, axis=0)
        after = before + np.array([requests[name] for name in names], np.int64)
        gain = _evenness_of_two(after, allocatable)
        gain -= _evenness_of_two(before, allocatable)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + gain) // 2

    return Scoring(score, column=_or_none(column))


def _evenness_of_two(used: Scores, allocatable: Scores) -> Scores:
    """As `_evenness`, of many nodes with a row each."""
    shares = np.minimum(used / allocatable, 1.0)
    deviation = np.abs((shares[:, 0] - shares[:, 1]) / 2)
    evenness: Scores = ((1 - deviation) * float(MAX_SCORE)).astype(np.int64)
    return evenness


def _evenness(used: Mapping[str, int], allocatable: Mapping[str, int]) -> int:
    """`MAX_SCORE` less the standard deviation of the shares that are used."""
    shares = [min(used[name] / allocatable[name], 1.0) for name in allocatable]
    return int((1 - _deviation(shares)) * float(MAX_SCORE))


def _deviation(shares: Sequence[float]) -> float:
    if len(shares) < 2:
        return 0.0
    # Upstream has this case, too: it rounds otherwise than the general one.
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
    _rated,
    view=attrgetter("usage"),
    column=_lacking_column,
    passing=_fitting,
)
BALANCED_ALLOCATION: Final = Plugin(
    "NodeResourcesBalancedAllocation", score=_balanced, view=attrgetter("usage")
)


# ----------------------------------------------------------------------------
# Devices for claims. Source: ``framework/plugins/dynamicresources``:
# ``dynamicresources.go``, ``extendeddynamicresources.go``,
# ``nodeallocatabledynamicresources.go``.

_CANNOT: Final = Rejection(("cannot allocate all claims",))
_CANNOT_FIT: Final = Rejection(("cannot fit resource",))
"""Seen only where NodeResourcesFit, which says more, does not filter."""
_ELSEWHERE: Final = Rejection(("resourceclaim not available on the node",))
_IN_USE: Final = Rejection(("resourceclaim in use",))
_MAPPED: Final = "has a mapped device and cannot be shared across pods"
_CAPPED: Final = (
    "pod level request for {} is insufficient to cover "
    "the aggregated container and node-allocatable DRA requests"
)


def _cannot(devices: Devices) -> Rejection:
    """Too few devices are free; fewer pods can change that only if their devices count as free (KEP-5690)."""
    return _CANNOT._replace(resolvable=devices.frees_victims)


def _filter(cycle: Cycle) -> Check | Rejection | None:
    devices, pod = cycle.devices, cycle.pod
    claims = devices.claims_of(pod)
    if not claims:
        return None
    for claim in claims:
        rejection = _rejection_for(cycle, claim)
        if rejection is not None:
            return rejection

    unbacked = devices.unbacked(pod)
    cannot = _cannot(devices)
    if devices.has_shared_claims(pod):
        # Another pod may allocate a claim that both use.
        cannot = cannot._replace(eased=True)
    allocated = [claim for claim in claims if devices.is_allocated(claim)]
    # Equal pods share the check, so that it looks at nothing that changes when one of them is bound.
    held, claims_on = devices.held(claims), devices.wanted(pod)
    footprints = devices.footprints or None

    def footprint_rejection(
        node: NodeInfo, granted: GrantsByClaim
    ) -> Rejection | None:
        if not footprints:
            return None
        footprint = footprints.of(pod, lambda key: granted.get(key, ()))
        return _short_of(pod, node, footprint) if footprint else None

    def check(node: NodeInfo) -> Rejection | None:
        if unbacked and any(name not in node.allocatable for name in unbacked):
            return _CANNOT_FIT
        reachable = all(
            devices.is_reachable(claim, node) for claim in allocated
        )
        open_claims = claims_on(node)
        if not open_claims.claims:
            if reachable:
                return footprint_rejection(node, held)
            return _ELSEWHERE
        # Devices are looked for even where an allocated claim is out of reach: an error
        # of the search comes first.
        try:
            grants = devices.find(open_claims, node)
        except NodeError as error:
            return Rejection((str(error),))
        except FatalError as error:
            raise FatalError(
                f'running "{DYNAMIC_RESOURCES.name}" filter plugin: {error}'
            ) from error
        if grants is None:
            return cannot
        granted = {**held, **open_claims.granting(grants)} if footprints else {}
        rejection = footprint_rejection(node, granted)
        if rejection is not None or reachable:
            return rejection
        return _ELSEWHERE

    return check


def _rejection_for(cycle: Cycle, claim: ResourceClaim) -> Rejection | None:
    """Return what is against every node because of a claim of the pod."""
    devices, pod = cycle.devices, cycle.pod
    if devices.is_full(claim, pod):
        return _IN_USE
    if devices.is_taken(claim, pod):
        return Rejection(
            (f"node allocatable resource claim {claim.name} {_MAPPED}",)
        )
    if claim.key in cycle.in_flight:
        message = (
            f"resource claim {claim.key} is in the process of being allocated"
        )
        return Rejection((message,))
    if claim.status.allocation is not None:
        return None
    for request, alternative in claim.spec.devices.alternatives:
        name = alternative.device_class_name
        if name not in cycle.classes:
            return Rejection(
                (f"request {request}: device class {name} does not exist",)
            )
    return None


def _short_of(
    pod: PodInfo, node: NodeInfo, footprint: Mapping[str, int]
) -> Rejection | None:
    """Return what is against a node on which the pod's devices take this."""
    for name, cap in caps_of(pod.kind.spec).items():
        if footprint.get(name, 0) > cap:
            return Rejection((_CAPPED.format(name),))
    if not node.is_limited:
        return None
    requests = requests_of(pod.kind.spec, of_devices=footprint)
    huge_pages = sorted(
        name for name in requests if name.startswith("hugepages-")
    )
    looked_at = {
        name: requests[name]
        for name in (CPU, MEMORY, EPHEMERAL, *huge_pages)
        if name in requests
    }
    lacking = node.lacking(looked_at)
    if lacking:
        return _insufficient(node, requests, lacking, too_many=False)
    return None


def _score(cycle: Cycle) -> Scoring:
    devices, pod, nodes = cycle.devices, cycle.pod, cycle.snapshot.nodes
    if not devices.has_choice(pod):
        return Scoring(
            lambda _: 0,
            relative,
            lambda positions: np.zeros(len(positions), np.int64),
        )
    held, claims_on = devices.held(devices.claims_of(pod)), devices.wanted(pod)

    def score(node: NodeInfo) -> int:
        """The sum over what serves the pod on a node, on which its claims fit."""
        open_claims = claims_on(node)
        if not open_claims.claims:
            return 0
        grants = devices.find(open_claims, node)
        if grants is None:
            return 0
        return devices.worth(pod, {**held, **open_claims.granting(grants)})

    def column(positions: NDArray[np.intp]) -> Scores:
        return np.array(
            [score(nodes[position]) for position in positions.tolist()],
            np.int64,
        )

    return Scoring(score, relative, column)


def _without_devices(
    cycle: Cycle, positions: NDArray[np.intp]
) -> RejectionColumn | None:
    """Return what is against nodes that never have enough for the claims; None if their devices are not all of it."""
    devices, pod = cycle.devices, cycle.pod
    if devices.kind_of(pod) is None or not devices.are_apart(pod):
        return None
    node_indices = cycle.snapshot.numbers[positions]
    return RejectionColumn(
        devices.hopeless(pod)[node_indices].astype(np.int64),
        (_cannot(devices),),
    )


DYNAMIC_RESOURCES: Final = Plugin(
    "DynamicResources", _filter, _score, weight=2, rules_out=_without_devices
)
