"""Hypothesis strategies for clusters with arrivals, in all the manners in which clusters are drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

import wire
from cluster_strategies import clusters
from company_strategies import companies
from dralloc.compile.compiler import compile_cluster
from dralloc.lab.simulate import Arrival
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from scheduling_strategies import crowded_clusters

__all__ = ["Scene", "scenes", "templates_of"]


@dataclass(frozen=True)
class Scene:
    """A cluster and who arrives there."""

    cluster: Cluster
    arrivals: tuple[Arrival, ...]


def templates_of(cluster: Cluster) -> list[ClaimKey]:
    """The pods and claims that ask for devices."""
    compiled = compile_cluster(cluster, Choices())
    return [
        demand.key
        for demand in compiled.problem.demands
        if not demand.gang and demand.key not in cluster.unresolved
    ]


def _crowds() -> st.SearchStrategy[Cluster]:
    return crowded_clusters().map(lambda crowd: wire.cluster(crowd.objects))


@st.composite
def scenes(
    draw: st.DrawFn, *, grouped: bool = True, crowds: bool = True
) -> Scene:
    """Draw a small cluster and up to a dozen arrivals, many of them at one time or of one sort."""
    families = [
        clusters().map(wire.cluster),
        companies().map(wire.cluster),
        *([_crowds()] if crowds else []),
    ]
    cluster = draw(st.one_of(families))
    templates = templates_of(cluster)
    if not templates:
        return Scene(cluster, ())
    times = st.integers(0, 6).map(lambda second: 1000 * second)
    arrival = st.builds(
        Arrival,
        time=times,
        template=st.sampled_from(templates),
        duration=st.none() | st.sampled_from([0, 1000, 1000, 2000, 3000]),
        priority=st.sampled_from([None, None, 0, 7]),
        namespace=st.just(""),
        group=st.sampled_from(["", "", "", "g", "h"])
        if grouped
        else st.just(""),
    )
    return Scene(
        cluster, tuple(draw(st.lists(arrival, min_size=1, max_size=12)))
    )
