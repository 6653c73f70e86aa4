"""Devices for claims, and nodes with better alternatives.

Source: ``framework/plugins/dynamicresources``: ``dynamicresources.go``, ``extendeddynamicresources.go``,
``nodeallocatabledynamicresources.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods.kinds import PodInfo
from dralloc.compile.pods.requests import CPU, EPHEMERAL, MEMORY, caps_of, requests_of
from dralloc.objects.errors import FatalError, NodeError
from dralloc.solve.scheduler.devices import MOST_ALTERNATIVES, Found
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import (
    Check,
    Cycle,
    Plugin,
    Rejection,
    RejectionColumn,
    Scores,
    Scoring,
    relative,
)
from dralloc.solve.scheduler.plugins.node_resources import insufficient

__all__ = ["DYNAMIC_RESOURCES"]

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
            return footprint_rejection(node, held) if reachable else _ELSEWHERE
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
    return insufficient(node, wanted, lacking, too_many=False) if lacking else None


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
