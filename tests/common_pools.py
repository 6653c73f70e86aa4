"""Problems in which all nodes can use some devices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from dralloc.objects.names import PoolID
from dralloc.problem import (
    Constraint,
    ConstraintKind,
    DeviceIndex,
    PoolAccess,
    PoolState,
    Problem,
)
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

__all__ = ["common_pools", "seen"]


def seen(problem: Problem, views: Sequence[Collection[DeviceIndex]]) -> Problem:
    """Return the problem with one pool alone, of which each node can use these devices."""
    nodes = []
    for node, devices in zip(problem.nodes, views, strict=True):
        pool = PoolAccess(
            PoolID("driver", "common"), PoolState.USABLE, tuple(devices)
        )
        nodes.append(replace(node, pools=(pool,)))
    return replace(problem, nodes=tuple(nodes))


@st.composite
def common_pools(draw: st.DrawFn) -> Problem:
    """Nodes with devices of their own, beside devices that all of them can use: whole ones, partitions, shared ones."""
    builder = ProblemBuilder(nodes=draw(st.integers(2, 4)))
    counters = [
        builder.counter(draw(st.integers(1, 6)))
        for _ in range(draw(st.integers(0, 2)))
    ]
    homes = st.sampled_from([None, *range(len(builder.own))])
    for _ in range(draw(st.integers(2, 8))):
        consumes = {
            counter: draw(st.integers(1, 3))
            for counter in counters
            if draw(st.booleans())
        }
        memory = draw(st.none() | st.integers(1, 10))
        builder.device(
            # Counters are of the pool that all nodes see.
            None if consumes else draw(homes),
            consumes,
            None if memory is None else {"memory": memory},
            {"colour": [draw(st.integers(0, 1))]},
        )
    device_indices = [
        DeviceIndex(index) for index in range(len(builder.devices))
    ]
    devices = st.sets(st.sampled_from(device_indices))
    specs = st.builds(
        AlternativeSpec,
        count=st.integers(1, 2),
        only=st.none() | devices,
        admin=st.sampled_from([False, False, False, True]),
        capacity=st.fixed_dictionaries({"memory": st.integers(1, 5)}),
    )
    for _ in range(draw(st.integers(1, 9))):
        requests = draw(st.lists(specs, min_size=1, max_size=2))
        kinds = draw(st.lists(st.sampled_from(ConstraintKind), max_size=2))
        constraints = [Constraint(kind, "colour") for kind in kinds]
        builder.pod(builder.claim(*requests, constraints=constraints))
    return builder.problem()
