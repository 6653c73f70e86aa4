"""Hypothesis strategies for racks: nodes with equal devices, and groups of pods that need one rack each."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from crowd_strategies import Builder, as_problem, in_domains, pod_of
from dralloc.problem import Demand, NodeIndex, Problem
from inventory_strategies import rarely

__all__ = ["racks"]


@st.composite
def racks(
    draw: st.DrawFn, *, most_nodes: int = 6, most_groups: int = 4
) -> Problem:
    """Draw nodes with up to four devices, gangs of up to three pods with 1, 2 or 4 of them each, and single pods."""
    builder, kinds = Builder(), list[str]()
    pools = []
    for node in range(draw(st.integers(1, most_nodes))):
        what = "other" if draw(rarely()) else "plain"
        pools.append(
            [
                builder.device(f"pool-{node}", what, {})
                for _ in range(draw(st.integers(0, 4)))
            ]
        )
    demands: list[Demand] = []
    for group in range(draw(st.integers(1, most_groups))):
        demands += draw(_gangs(f"gang-{group}", len(pools), kinds))
    for _ in range(draw(st.integers(0, 3))):
        demands.append(draw(_pods(len(pools), kinds)))
    demands = draw(in_domains(demands, len(pools)))
    return as_problem(draw(st.permutations(demands)), pools, builder, kinds)


@st.composite
def _pods(draw: st.DrawFn, nodes: int, kinds: list[str]) -> Demand:
    wanted = "any" if draw(rarely()) else "plain"
    # Pods whose group runs already may only go to some nodes.
    bound = (
        tuple(map(NodeIndex, range(draw(st.integers(1, nodes)))))
        if draw(rarely())
        else None
    )
    count = draw(
        st.sampled_from([1, 1, 2, 4, 3] if draw(rarely()) else [1, 1, 2, 4])
    )
    return pod_of(
        [[(wanted, count)]], (), draw(st.integers(0, 3)), bound, kinds
    )


@st.composite
def _gangs(
    draw: st.DrawFn, name: str, nodes: int, kinds: list[str]
) -> list[Demand]:
    """One or two equal gangs; now and then the last member differs from the others."""
    first = draw(_pods(nodes, kinds))
    last = draw(_pods(nodes, kinds)) if draw(rarely()) else first
    quorum = draw(st.sampled_from([None, None, None, 1, 2]))
    members = [*([first] * draw(st.integers(0, 2))), last]
    return [
        replace(_copy(member, kinds), gang=f"{name}-{copy}", quorum=quorum)
        for copy in range(draw(st.integers(1, 2)))
        for member in members
    ]


def _copy(pod: Demand, kinds: list[str]) -> Demand:
    """The same with alternatives and claims of its own."""
    [request] = pod.claims[0].requests
    [alternative] = request.alternatives
    entries = [[(kinds[alternative.index], alternative.count or 0)]]
    return pod_of(entries, (), pod.weight, pod.nodes, kinds)
