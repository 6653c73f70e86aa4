"""What a pod requests of its node (KEP-753, KEP-2837)."""

from __future__ import annotations

from typing import Any

from dralloc.compile.pods.node_requests import DEFAULT_REQUESTS, requests_of
from dralloc.objects.api import PodSpec


def spec(**fields: Any) -> PodSpec:
    return PodSpec.model_validate(fields, by_alias=True)


def asking(restart: str | None = None, **amounts: str) -> dict[str, Any]:
    return {"restartPolicy": restart, "resources": {"requests": amounts}}


def test_containers_add_up_and_init_containers_set_a_floor() -> None:
    pod = spec(
        containers=[asking(cpu="1", memory="1Gi")] * 2,
        initContainers=[asking(cpu="3"), asking(memory="1Gi")],
    )
    assert requests_of(pod) == {"cpu": 3000, "memory": 2 * 2**30}


def test_sidecars_run_beside_the_containers_and_the_init_containers_after_them() -> (
    None
):
    init = [
        asking(cpu="2"),
        asking("Always", cpu="1"),
        asking(cpu="5"),
        asking("Always", cpu="1"),
    ]
    assert requests_of(
        spec(containers=[asking(cpu="3")], initContainers=init)
    ) == {"cpu": 6000}


def test_requests_of_the_whole_pod_replace_those_of_containers() -> None:
    whole = {
        "requests": {"cpu": "1", "x.com/y": "9"},
        "limits": {"memory": "2Gi"},
    }
    pod = spec(
        containers=[asking(cpu="2", **{"x.com/y": "1"})],
        resources=whole,
        overhead={"cpu": "100m"},
    )
    assert requests_of(pod) == {"cpu": 1100, "memory": 2 * 2**30, "x.com/y": 1}
    assert requests_of(pod, whole_pod=False) == {"cpu": 2100, "x.com/y": 1}


def test_a_limit_alone_is_a_request() -> None:
    assert requests_of(
        spec(containers=[{"resources": {"limits": {"cpu": "1"}}}])
    ) == {"cpu": 1000}


def test_defaults_are_for_what_is_missing_not_for_zero() -> None:
    pod = spec(containers=[asking(cpu="0"), asking()])
    assert requests_of(pod, DEFAULT_REQUESTS) == {
        "cpu": 100,
        "memory": 2 * 200 * 2**20,
    }


def test_only_the_sum_is_rounded_up() -> None:
    assert requests_of(
        spec(containers=[asking(cpu="100u", memory="100m")] * 3)
    ) == {
        "cpu": 1,
        "memory": 1,
    }
