"""A run against the simulated API server."""

from __future__ import annotations

from apply.runs import run_on, small_cluster
from dralloc.apply.selection import gates_of
from simulated import Simulated


def devices(server: Simulated) -> dict[str, list[str]]:
    return {
        one["metadata"]["name"]: [result["device"] for result in one["status"]["allocation"]["devices"]["results"]]
        for one in server.of("resourceclaims")
        if one.get("status", {}).get("allocation")
    }


def test_claims_are_written_with_their_finalizer_and_pods_released() -> None:
    server = Simulated()
    server.add(*small_cluster())
    run = run_on(server)
    _, units, asides = run.plan()
    assert asides == []
    outcome = run.write(units)
    assert outcome.findings == ()
    assert devices(server) == {"a": ["gpu-1"], "b": ["gpu-0"]}
    assert server.of("devicetaintrules") == []
    assert gates_of(server.one("pods", "train")) == []
