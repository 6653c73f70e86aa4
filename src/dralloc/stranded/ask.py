"""From a cluster to the report on its stranded capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dralloc.cluster import Cluster
from dralloc.features import ALL_FEATURES, Features
from dralloc.garbage import without_garbage_collection
from dralloc.names import ClaimKey
from dralloc.problem import PoolState
from dralloc.solvers.cpsat import Options
from dralloc.stranded.fragmentation import Fragmentation
from dralloc.stranded.ground import Ground, alternatives_of
from dralloc.stranded.mix import compile_mix
from dralloc.stranded.node_kinds import NodeKinds
from dralloc.stranded.split import Splitter
from dralloc.stranded.stranding import Capacity, Stranding
from dralloc.timing import phase

__all__ = ["stranded"]


@without_garbage_collection()
def stranded(
    cluster: Cluster,
    claims: Sequence[ClaimKey | str] = (),
    *,
    features: Features = ALL_FEATURES,
    strict: bool = False,
    time_limit: float | None = 10,
) -> Stranding:
    """Find out which free capacity a mix of claims cannot use, and why.

    Of every measure (counters of pools; capacities of shared devices; the number of all other devices) that part of the
    free amount is stranded which stays free however many claims of the mix come and wherever they go, each measure
    on its own. It is found by solving for the most that can be used. What strands it is found by lifting rules one
    after the other, in the order of `Cause`: a rule is charged with what can be used only since it does not count.

    Parameters
    ----------
    claims
        The mix, as ``namespace/name``; by default all claims of the cluster, pending and allocated.
    features, strict
        As in `dralloc.allocate`.
    time_limit
        Seconds for one part of a pool; what could not be proven by then is marked. None for no limit.

    Returns
    -------
    Stranding
        Rows by pool and by kind of node, in exact integers, with the fragmentation measure of Weng et al. (USENIX ATC
        2023) beside them.

    Raises
    ------
    DrallocError
        A named claim does not exist.
    """
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        mix = compile_mix(cluster, [_key(name) for name in claims], features, strict=strict)
        ground = Ground(mix)
    splitter, fragmentation, kinds = (
        Splitter(ground, Options(time_limit=time_limit)),
        Fragmentation(ground),
        NodeKinds(mix.compiled),
    )
    rows = []
    for measure, units in ground.measures.units.items():
        with phase(timings, "filling"):
            split = splitter.split(measure)
        with phase(timings, "fragmentation"):
            fragmented = fragmentation.times_claims(measure)
        rows.append(
            Capacity(
                driver=measure.pool.driver,
                pool=measure.pool.pool,
                node_kind=kinds.of(measure.pool),
                measure=measure.title,
                total=sum(unit.total for unit in units),
                free=sum(unit.free for unit in units),
                stranded=split.causes,
                fragmented=fragmented,
                proven=split.proven,
            )
        )
    return Stranding(mix.kinds, tuple(rows), tuple(_remarks(ground)), timings)


def _key(name: ClaimKey | str) -> ClaimKey:
    return ClaimKey.parse(name) if isinstance(name, str) else name


def _remarks(ground: Ground) -> Iterator[str]:
    for key, reason in ground.mix.ignored:
        yield f"Claim {key} is left out of the mix: {reason}."
    unusable = {
        pool.id: pool.state
        for node in ground.problem.nodes
        for pool in node.pools
        if pool.state is not PoolState.USABLE
    }
    for pool, state in unusable.items():
        yield f"Pool {pool} is {state.value} and gives no devices: what it has is not counted."
    for demand, kind in zip(ground.problem.demands, ground.mix.kinds, strict=True):
        if any(each.count is None and ground.selects_shared(each) for each in alternatives_of(demand)):
            yield f"Claim {kind.first} is not used to fill up: it asks for all of some shared devices."
