"""DeviceTaintRules: taints that administrators put on devices (KEP-5055)."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocations
from dralloc.objects.features import ALL_FEATURES
from dralloc.solve.first_fit import first_fit
from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    request,
    resource_slice,
)

SECOND = "device.attributes['gpu.example.com'].index == 1"


def rule(
    selector: Json | None,
    effect: str = "NoSchedule",
    version: str = "v1",
    name: str = "rule",
) -> Json:
    taint = {"key": "example.com/broken", "effect": effect}
    spec = (
        {"taint": taint}
        if selector is None
        else {"deviceSelector": selector, "taint": taint}
    )
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


def compiled(*objects: Any, **choices: Any) -> CompiledCluster:
    classes = [device_class(), device_class("second", SECOND)]
    return compile_cluster(
        cluster(node(), classes, resource_slice(gpus(2)), *objects), **choices
    )


def granted(given: CompiledCluster) -> list[str]:
    solution = first_fit(given.problem)
    return [
        given.problem.devices[grant.device].id.device
        for placement in solution.placements
        for grant in placement.grants[0]
    ]


@pytest.mark.parametrize(
    ("selector", "remaining"),
    [
        (None, ["gpu-0"]),
        ({}, []),
        ({"driver": DRIVER}, []),
        ({"driver": "other.example.com"}, ["gpu-0"]),
        ({"pool": "pool-0", "device": "gpu-0"}, ["gpu-1"]),
        ({"device": "gpu-1"}, ["gpu-0"]),
        (
            {
                "selectors": [
                    {
                        "cel": {
                            "expression": "device.attributes['gpu.example.com'].index == 0"
                        }
                    }
                ]
            },
            ["gpu-1"],
        ),
        ({"deviceClassName": "second"}, ["gpu-0"]),
        ({"deviceClassName": "missing"}, ["gpu-0"]),
        (
            {
                "selectors": [
                    {
                        "cel": {
                            "expression": "device.attributes['gpu.example.com'].missing"
                        }
                    }
                ]
            },
            ["gpu-0"],
        ),
    ],
)
def test_which_devices_a_rule_selects(
    selector: Json | None, remaining: list[str]
) -> None:
    assert (
        granted(
            compiled(claim("a", request()), rule(selector, version="v1alpha3"))
        )
        == remaining
    )


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta2", "v1"])
def test_versions(version: str) -> None:
    assert granted(
        compiled(
            claim("a", request()), rule({"device": "gpu-0"}, version=version)
        )
    ) == ["gpu-1"]


@pytest.mark.parametrize(
    ("effect", "remaining"),
    [("None", ["gpu-0"]), ("NoSchedule", ["gpu-1"]), ("NoExecute", ["gpu-1"])],
)
def test_effects(effect: str, remaining: list[str]) -> None:
    assert (
        granted(
            compiled(claim("a", request()), rule({"device": "gpu-0"}, effect))
        )
        == remaining
    )


def test_requests_tolerate_taints_of_rules_and_results_repeat_it() -> None:
    tolerations = [{"key": "example.com/broken", "operator": "Exists"}]
    given = compiled(claim("a", request(tolerations=tolerations)), rule({}))
    (allocation,) = allocations(given, first_fit(given.problem)).values()
    (result,) = allocation.devices.results
    assert (
        result.device,
        [toleration.key for toleration in result.tolerations],
    ) == (
        "gpu-0",
        ["example.com/broken"],
    )


@pytest.mark.parametrize("gate", ["DeviceTaints", "DeviceTaintRules"])
def test_with_a_gate_off_rules_do_nothing(gate: str) -> None:
    off = ALL_FEATURES.switched({gate: False})
    assert granted(compiled(claim("a", request()), rule({}), features=off)) == [
        "gpu-0"
    ]


def remarks(given: CompiledCluster) -> list[str]:
    return [
        f"{finding.subject}: {finding.path}: {finding.rule}"
        for finding in given.findings
    ]


def test_who_is_evicted_is_named() -> None:
    holders = [
        allocated("a", {"device": "gpu-0"}),
        allocated("b", {"device": "gpu-1"}),
    ]
    given = compiled(holders, rule({}, "NoExecute"))
    assert remarks(given) == [
        "DeviceTaintRule rule: spec.taint: NoExecute: the pods of claims that do not tolerate it are evicted: "
        "default/a (gpu.example.com/pool-0/gpu-0), default/b (gpu.example.com/pool-0/gpu-1)"
    ]
    assert remarks(compiled(holders, rule({}, "NoSchedule"))) == []
    tolerant = allocated(
        "a", {"device": "gpu-0", "tolerations": [{"operator": "Exists"}]}
    )
    assert remarks(compiled(tolerant, rule({}, "NoExecute"))) == []


def test_a_published_taint_evicts_too() -> None:
    tainted = gpus(2)
    tainted[1]["taints"] = [{"key": "example.com/hot", "effect": "NoExecute"}]
    given = compile_cluster(
        cluster(
            node(), resource_slice(tainted), allocated("a", {"device": "gpu-1"})
        )
    )
    assert [remark.split(": NoExecute")[0] for remark in remarks(given)] == [
        "ResourceSlice slice-0: spec.devices[1].taints[0]"
    ]
