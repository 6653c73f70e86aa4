"""How many nodes there are of a kind, whatever else equals them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

import dralloc
from dralloc.objects.errors import DrallocError
from examples import examples
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

_SERIES: Final = ("a", "b", "c")
_MACHINES: Final = st.tuples(st.sampled_from(_SERIES), st.sampled_from("xy"))
"""What a node is, and in which zone."""


def machines(kinds: list[tuple[str, str]], idle: str) -> list[Json]:
    """A node for each, with a GPU unless its series is the idle one."""
    objects: list[Json] = []
    for kind_index, (series, zone) in enumerate(kinds):
        name = f"n{kind_index}"
        objects.append(node(name, series=series, zone=zone))
        if series != idle:
            objects.append(
                resource_slice(gpus(1), name=name, pool=name, nodeName=name)
            )
    return objects


@given(
    st.lists(_MACHINES, min_size=1, max_size=8),
    st.sampled_from((*_SERIES, "")),
    st.booleans(),
)
@settings(max_examples=examples(60))
def test_kinds_by_label_are_counted_by_label(
    kinds: list[tuple[str, str]], idle: str, zoned: bool
) -> None:
    """Where pods choose zones, each zone is counted apart."""
    wanted = [claim(f"c{zone}", request()) for zone in "xy"]
    choices = {
        zone: {"nodeSelector": {"zone": zone}} if zoned else {} for zone in "xy"
    }
    pods = [pod(f"p{zone}", f"c{zone}", **choices[zone]) for zone in "xy"]
    given_cluster = cluster(device_class(), machines(kinds, idle), wanted, pods)
    there = Counter(series for series, _ in kinds)
    try:
        answer = dralloc.fewest_nodes(
            given_cluster,
            kinds={series: f"series={series}" for series in there},
        )
    except DrallocError:
        return  # Nothing fits anywhere.
    counted: Counter[str] = Counter()
    for kind in answer.kinds:
        counted[kind.name] += kind.existing
    assert counted == there
