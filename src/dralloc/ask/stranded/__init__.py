"""Stranded capacity: what is free, but of no use to a mix of claims, and why.

- `dralloc.ask.stranded.quantities`: what is counted, rules that strand it, and what offers are without them;
- `dralloc.ask.stranded.split`: how much of a quantity the next grants can take, and what strands the rest;
- `dralloc.ask.stranded.stranding`: what a report consists of, as users hold it, and its JSON.

The report itself is made here, with the measure of Weng et al. (USENIX ATC 2023) for comparison: first kinds of nodes,
by instance type where that is known, otherwise by what they have; then the measure.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, Unpack

from dralloc.ask.context.node_bars import NodeBars
from dralloc.ask.context.settled_pods import SettledPods
from dralloc.ask.scenario import Scenario
from dralloc.ask.stranded.quantities import Cause, Quantities, QuantityKey
from dralloc.ask.stranded.split import Grantable, Splitter, distinct
from dralloc.ask.stranded.stranding import Row, Stranding, summed
from dralloc.ask.whatif.mix_entries import (
    CompiledMix,
    MixEntry,
    Source,
    compile_mix,
)
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.api import ResourceClaim
from dralloc.objects.choices import Choices, Mode, NodelessWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey, PoolID
from dralloc.objects.value_kinds import list_of, takes
from dralloc.problem import Device, NodeIndex, PoolState, Problem, numbered
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.solve.optimum.stopping import Stop, Stopped, late_stop
from dralloc.solve.work import phase

__all__ = ["Cause", "Row", "Stranding", "stranded"]

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


def _node_type_of(compiled: CompiledCluster) -> Callable[[PoolID], str]:
    """Return a function that tells the kind of the node that reaches a pool.

    Nodes without a label for their instance type are of one kind if they have as many devices with equal capacities
    and counters; it is called after the first of them that is asked about.
    """
    problem = compiled.problem
    labels = {
        node.metadata.name: node.metadata.labels
        for node in compiled.cluster.nodes
    }
    reached_by: dict[PoolID, set[int]] = defaultdict(set)
    for node_index, node in numbered(problem.nodes):
        for pool in node.pools:
            if pool.devices:
                reached_by[pool.id].add(node_index)
    first: dict[Hashable, str] = {}

    @cache
    def type_of(node_index: NodeIndex) -> str:
        node = problem.nodes[node_index]
        if label := labels[node.name].get(_INSTANCE_TYPE):
            return label
        published = Tally(
            _published(problem, problem.devices[device])
            for device in node.devices()
        )
        return first.setdefault(
            frozenset(published.items()), f"like {node.name}"
        )

    return lambda pool: (
        type_of(*reached_by[pool])
        if len(reached_by[pool]) == 1
        else "several nodes"
    )


def _published(problem: Problem, device: Device) -> Hashable:
    draws = tuple(
        (problem.counters[counter].id.counter, amount)
        for counter, amount in device.consumes
    )
    capacity = tuple(
        (name, entry.total) for name, entry in device.capacity.items()
    )
    return device.id.driver, device.shareable, capacity, draws


@takes(
    wishes=list_of(
        (MixEntry, str), "a list of wishes, each a MixEntry or a text"
    )
)
@without_garbage_collection()
@spelled_out(NodelessWords)
def stranded(
    cluster: Cluster,
    wishes: Sequence[MixEntry | str] = (),
    *,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> Stranding:
    """Find out which free capacity is of no use to a mix of claims, and why.

    A device can be granted if some claim of the mix, alone and beside everything that is allocated, can be placed with
    it. Of each quantity (a counter; a capacity of a shareable device; any other device) the usable part is the largest
    sum, within what is free, of what such grants take of it: each device once, shares of a device any number of
    times. The rest is stranded. Quantities are looked at one by one, so what is stranded is out of reach in any case,
    and what is usable need not be usable all at once.

    What strands it is found by lifting rules one after the other, in the order of `Cause`: a rule is charged with what
    is usable only since it does not count, too. So free = usable + the stranded parts, exactly, and another claim in
    the mix never makes more of anything stranded.

    Parameters
    ----------
    wishes
        The mix: claims or templates, as ``namespace/name`` or ``namespace/name=number``. By default the claims that
        `dralloc.allocate` would place; without any, the templates; without these, the allocated claims.
    choices, words
        As in `dralloc.allocate`, without nodes, gangs, caps and fairness.

    Returns
    -------
    Stranding
        Rows by pool and by kind of node, in exact integers, with the fragmentation measure of Weng et al. (USENIX ATC
        2023) beside them.

    Raises
    ------
    DrallocError
        A named claim or template does not exist, there is nothing to make a mix of, or the time limit is too short.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.stranded(dralloc.example(), ["default/large"])
    <Stranding: 1 of 2 pools have free capacity that no claim of the mix can use>
    """
    options = Choices.of(
        choices, words, unused=("nodes", "gang", "caps", "fair", "keep")
    )
    cluster = cluster_of(cluster).including(options.include)
    cluster = cluster.with_gates(options.features)
    timings: dict[str, float] = {}
    mix = list(map(MixEntry.of, wishes))
    if not mix:
        cluster, mix = _usual(cluster, options)
    with phase(timings, "compile"):
        staged = compile_mix(cluster, mix, options)
        ledger = ClaimLedger(staged.compiled.problem, staged.compiled.holdings)
    counts = [wish.number or 1 for wish in mix]
    limit = options.time_limit
    splitter = Splitter(
        staged.compiled,
        ledger,
        staged.of_devices,
        _room(staged),
        late_stop(Stop.after(limit), limit),
    )
    # With less than all grants it is not known of anything whether it is stranded.
    try:
        with phase(timings, "grants"):
            grantable = splitter.grantable()
        with phase(timings, "causes"):
            causes = splitter.causes(grantable)
    except Stopped:
        raise DrallocError(
            "time limit: too short to find out what is stranded"
        ) from None
    # The measure is for comparison. It follows from the grants with all rules in force, whatever strands the rest.
    fragmented = _fragmented(splitter.quantities, grantable, counts)
    node_type = _node_type_of(staged.compiled)
    rows = []
    for key, quantity in splitter.quantities.by_key.items():
        if quantity.total:
            row = Row(
                *quantity.pool,
                node_type(quantity.pool),
                quantity.name,
                quantity.total,
                quantity.free,
                {cause: nanos for cause, nanos in causes[key].items() if nanos},
                fragmented[key],
            )
            rows.append(row)
    named = {wish.title: count for wish, count in zip(mix, counts, strict=True)}
    # Quantities of a pool that are called the same, such as one counter of several sets, are one row.
    pools = tuple(row for _, row in sorted(summed(rows).items()))
    remarks = tuple(_remarks(staged.compiled))
    unmodelled = staged.compiled.unmodelled({Mode.OPTIMAL})
    return Stranding(
        named, pools, remarks, unmodelled=unmodelled, timings=timings
    )


def _fragmented(
    quantities: Quantities,
    grantable: Mapping[int, Sequence[Grantable]],
    counts: Sequence[int],
) -> Mapping[QuantityKey, int]:
    """Return the fragmented amount of each quantity in nanos, times the number of claims in the mix, exactly.

    Source: Q. Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent" (USENIX ATC 2023), section 3. For a node and a kind of task, all free GPU capacity counts as fragmented if
    the task cannot run on the node, and otherwise the free capacity of those GPUs that cannot serve it; the measure is
    the mean over the mix of tasks. Here a GPU is a unit of a pool (a counter set, or a device), and a task is a claim,
    each as if it came alone.
    """
    units = {
        key: (quantity.pool, quantity.unit, key[0] == "counter")
        for key, quantity in quantities.by_key.items()
    }
    # By unit, the nodes where it serves claims, and how many of the mix it serves there by kind of claim.
    serving: dict[Hashable, list[Grantable]] = defaultdict(list)
    for on_node in distinct(grantable):
        served = {
            units[key]
            for device in on_node.serving
            for key in quantities.keys(device)
        }
        for unit in served:
            serving[unit].append(on_node)
    claims_on: Tally[int] = Tally()
    for demand, on_nodes in grantable.items():
        for on_node in on_nodes:
            claims_on[id(on_node)] += counts[demand]

    @cache
    def served_by(unit: Hashable) -> int:
        """How many claims of the mix a unit serves."""
        if len({on_node.node for on_node in serving[unit]}) <= 1:
            return sum(claims_on[id(on_node)] for on_node in serving[unit])
        # Somebody may be served on several nodes.
        serves = {id(on_node) for on_node in serving[unit]}
        served = 0
        for demand, on_nodes in grantable.items():
            if not serves.isdisjoint(map(id, on_nodes)):
                served += counts[demand]
        return served

    claims = sum(counts)
    return {
        key: (claims - served_by(units[key])) * quantity.free
        for key, quantity in quantities.by_key.items()
    }


def _usual(
    cluster: Cluster, choices: Choices
) -> tuple[Cluster, list[MixEntry]]:
    """Return the kinds of claims that are to be placed, or what else there is to go by, and a cluster that has them."""
    # Who waits does not depend on devices. So the cluster is compiled without them, and gets them back in the end.
    compiled = compile_cluster(
        Scenario(cluster).without_slices().cluster, choices
    )
    # Of several users of a claim the first one is kept: it is entered last.
    users = {
        claim.key: None if compiled.is_claim(demand) else demand.key
        for demand in reversed(tuple(compiled.problem.demands))
        for claim in demand.claims
        if not claim.defect
    }
    pending = [claim for claim in compiled.cluster.claims if claim.key in users]
    templates = [
        MixEntry(template.key, Source.TEMPLATE)
        for template in cluster.templates
    ]
    pods = {claim: user for claim, user in users.items() if user is not None}
    mix = (
        _kinds(pending, compiled, pods)
        or templates
        or _kinds(cluster.claims, compiled, {})
    )
    if not mix:
        raise DrallocError(
            "there is no claim and no template to make a mix of: name some, or add them to the input"
        )
    return replace(compiled.cluster, slices=cluster.slices), mix


def _kinds(
    claims: Sequence[ResourceClaim],
    compiled: CompiledCluster,
    users: Mapping[ClaimKey, ClaimKey],
) -> list[MixEntry]:
    """Return claims that ask for the same for equal pods, under the name of the first; configuration does not matter.

    Parameters
    ----------
    users
        By claim, the pod that it is for, if it is for any.
    """
    kinds: dict[Hashable, list[ClaimKey]] = defaultdict(list)
    texts: dict[int, str] = {}
    for claim in claims:
        # Claims of one template share their specification.
        text = texts.get(id(claim.spec))
        if text is None:
            text = texts[id(claim.spec)] = repr(
                (claim.spec.devices.requests, claim.spec.devices.constraints)
            )
        user = users.get(claim.key)
        pod_kind = compiled.pods.infos[user].kind if user else None
        kinds[text, pod_kind].append(claim.key)
    return [
        MixEntry(keys[0], number=len(keys), user=users.get(keys[0]))
        for keys in kinds.values()
    ]


def _room(mix: CompiledMix) -> Sequence[NodeBars | None]:
    """Return for each entry what bars its pod from nodes beside devices, if anything may."""
    compiled = mix.compiled
    if not compiled.may_bind:
        return [None] * len(mix.demands)
    demand_indices = {
        demand.key: index
        for index, demand in numbered(compiled.problem.demands)
    }
    asked = [demand_indices[demand.key] for demand in mix.demands]
    settled = SettledPods(compiled, asked, ())
    return [NodeBars(settled, demand, exact=True) for demand in asked]


def _remarks(compiled: CompiledCluster) -> Iterator[str]:
    unusable = {
        pool.id: pool.state
        for node in compiled.problem.nodes
        for pool in node.pools
        if pool.state is not PoolState.USABLE
    }
    for pool, state in unusable.items():
        yield f"Pool {pool} is {state.value} and gives no devices: what it has is not counted."
