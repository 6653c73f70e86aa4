"""What trials on a real control plane rest on: they see what must never be."""

from __future__ import annotations

from typing import Any

import pytest

from live.trials.planes import State
from wire import Json, pod


def held(name: str, device: str, **fields: Any) -> Json:
    """A claim that is allocated a device of node-0."""
    result = {
        "driver": "d",
        "pool": "node-0",
        "device": device,
        "request": "gpu",
        **fields,
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def share(name: str, memory: str) -> Json:
    return held(
        name, "gpu-1", shareID=name, consumedCapacity={"memory": memory}
    )


@pytest.mark.parametrize(
    ("claims", "broken"),
    [
        ([held("a", "gpu-0"), held("b", "gpu-1")], []),
        (
            [held("a", "gpu-0"), held("b", "gpu-0")],
            ["held twice: ('d', 'node-0', 'gpu-0')"],
        ),
        ([held("a", "gpu-0-half-0"), held("b", "gpu-0-half-1")], []),
        (
            [held("a", "gpu-0-full-0"), held("b", "gpu-0-quarter-1")],
            ["more than there is: node-0/gpu-0"],
        ),
        ([share("a", "30Gi"), share("b", "50Gi")], []),
        (
            [share("a", "30Gi"), share("b", "60Gi")],
            ["more than there is: node-0/gpu-1"],
        ),
    ],
)
def test_what_is_given_away_twice_is_seen(
    claims: list[Json], broken: list[str]
) -> None:
    assert State([], claims, []).broken() == broken


def test_a_pod_beside_its_claims_is_seen() -> None:
    claims = [held("a", "gpu-0")]
    for where, broken in (
        ("node-0", []),
        ("node-1", ["bound beside its claims: default/p"]),
    ):
        state = State([pod("p", "a", nodeName=where)], claims, [])
        assert state.broken() == broken


def test_a_released_pod_without_its_claim_is_seen() -> None:
    state = State([pod("p", "a"), pod("q", "b")], [held("b", "gpu-0")], [])
    assert state.stranded == ["default/p"]
