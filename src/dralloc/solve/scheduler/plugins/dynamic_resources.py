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
    held, wanted, ranks = devices.held(claims), devices.wanted(pod), cycle.memory.ranks
    footprints = devices.footprints or None
    has_choice = any(
        request.first_available
        for claim in claims
        for request in claim.spec.devices.requests
    )

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
        ranks.pop(node, None)
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
        found = {**held, **here.granting(taken)} if footprints or has_choice else {}
        if rejection := footprint_rejection(node, found):
            return rejection
        if not reachable:
            return _ELSEWHERE
        if has_choice:
            ranks[node] = sum(
                MOST_ALTERNATIVES - rank for rank in devices.alternatives(pod, found)
            )
        return None

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
    ranks, nodes = cycle.memory.ranks, cycle.snapshot.nodes

    def column(places: NDArray[np.intp]) -> Scores:
        if not ranks:
            return np.zeros(len(places), np.int64)
        return np.array(
            [ranks.get(nodes[place], 0) for place in places.tolist()], np.int64
        )

    return Scoring(lambda node: ranks.get(node, 0), relative, column)


DYNAMIC_RESOURCES: Final = Plugin("DynamicResources", _filter, _score, weight=2)
