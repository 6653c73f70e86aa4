"""What capacity is to be used for: the kinds of claims in a cluster, as demands of a problem of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dralloc.api import ResourceClaim
from dralloc.cluster import Cluster
from dralloc.compiler import Compiled, compile_cluster
from dralloc.errors import DrallocError
from dralloc.features import Features
from dralloc.names import ClaimKey

__all__ = ["Kind", "Mix", "compile_mix"]


@dataclass(frozen=True, slots=True)
class Kind:
    """Claims that ask for the same: the first of them, and how many there are."""

    first: ClaimKey
    count: int


@dataclass(frozen=True)
class Mix:
    """A cluster in which one claim of each kind is pending and nothing else.

    Parameters
    ----------
    kinds
        The kinds of claims, in the order of the problem's demands.
    compiled
        The problem; everything that claims hold is in use.
    ignored
        Claims that ask for nothing that could be used up, or for something impossible, with the reason.
    """

    kinds: tuple[Kind, ...]
    compiled: Compiled
    ignored: tuple[tuple[ClaimKey, str], ...] = ()

    @property
    def total(self) -> int:
        """How many claims there are of all kinds."""
        return sum(kind.count for kind in self.kinds)


def compile_mix(cluster: Cluster, names: Sequence[ClaimKey], features: Features, *, strict: bool) -> Mix:
    """Compile the cluster with the mix of these claims; of all claims if there are none.

    Raises
    ------
    DrallocError
        A named claim does not exist.
    """
    chosen = [_find(cluster, key) for key in names] or list(cluster.claims)
    by_spec: dict[str, list[ResourceClaim]] = {}
    specs: dict[int, str] = {}
    for claim in chosen:
        # Claims of one template share their specification.
        text = specs.get(id(claim.spec)) or specs.setdefault(id(claim.spec), _text(claim))
        by_spec.setdefault(text, []).append(claim)
    kinds = [Kind(claims[0].key, len(claims)) for claims in by_spec.values()]
    wanted = [_pending(claims[0], number) for number, claims in enumerate(by_spec.values())]
    held = tuple(claim for claim in cluster.claims if claim.status.allocation is not None)
    lonely = replace(
        cluster, claims=(*held, *wanted), pods=(), claims_of_pods={}, quotas=(), abandoned=frozenset(), unresolved={}
    )
    compiled = compile_cluster(lonely, features, strict=strict)
    return _usable(kinds, compiled)


def _text(claim: ResourceClaim) -> str:
    """What the claim asks for; configuration does not matter."""
    return repr((claim.spec.devices.requests, claim.spec.devices.constraints))


def _find(cluster: Cluster, key: ClaimKey) -> ResourceClaim:
    claim = cluster.claim(key)
    if claim is None:
        raise DrallocError(f"ResourceClaim {key}: was not given")
    return claim


def _pending(claim: ResourceClaim, number: int) -> ResourceClaim:
    """A claim that asks for the same, under a name of its own."""
    metadata = type(claim.metadata)(name=f"kind-{number} of {claim.name}", namespace=claim.metadata.namespace)
    return claim.model_copy(update={"metadata": metadata, "status": type(claim.status)()})


def _usable(kinds: Sequence[Kind], compiled: Compiled) -> Mix:
    """The mix without the kinds that can never hold anything."""
    kept: list[int] = []
    ignored: list[tuple[ClaimKey, str]] = []
    for number, (kind, demand) in enumerate(zip(kinds, compiled.problem.demands, strict=True)):
        [claim] = demand.claims
        alternatives = [each for request in claim.requests for each in request.alternatives]
        defect = claim.defect or next((each.defect for each in alternatives if each.defect), "")
        if defect or all(each.admin for each in alternatives):
            ignored.append((kind.first, defect or "it asks for nothing but admin access"))
        else:
            kept.append(number)
    problem = replace(compiled.problem, demands=tuple(compiled.problem.demands[number] for number in kept))
    return Mix(tuple(kinds[number] for number in kept), replace(compiled, problem=problem), tuple(ignored))
