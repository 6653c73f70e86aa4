"""Every pod of the input is to be placed, or there is a reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.names import ClaimKey
from dralloc.solve.first_fit import first_fit
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

PLAIN = (node(), device_class(), resource_slice(gpus(2)))
WAITS = [{"name": "wait"}]
PLUGIN = "vendor.com/nic"


def compiled(*objects: Any) -> CompiledCluster:
    return compile_cluster(cluster(*PLAIN, *objects))


def asking(name: str, resource: str, **spec: Any) -> Json:
    return pod(
        name,
        containers=[{"name": "c", "resources": {"requests": {resource: "1"}}}],
        **spec,
    )


def offering(name: str, **allocatable: str) -> Json:
    return {
        **node(name),
        "status": {
            "allocatable": {
                key.replace("_", "/"): v for key, v in allocatable.items()
            }
        },
    }


def notices(compilation: CompiledCluster) -> list[str]:
    return [str(finding) for finding in compilation.findings]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pod("p", "later", schedulingGates=WAITS), Unasked.GATED),
        (pod("p", schedulingGates=WAITS), Unasked.NO_DEVICE),
        (pod("p", "held"), Unasked.ALLOCATED),
        (pod("p", "held", nodeName="node-0"), Unasked.BOUND),
        (pod("p", nodeName="node-0"), Unasked.NO_DEVICE),
        (asking("p", "cpu"), Unasked.NO_DEVICE),
        (asking("p", PLUGIN), Unasked.PLUGIN),
        (asking("p", PLUGIN, schedulingGates=WAITS), Unasked.GATED),
        (
            {**pod("p", "later"), "status": {"phase": "Failed"}},
            Unasked.FINISHED,
        ),
    ],
)
def test_why_a_pod_is_not_to_be_placed(given: Json, why: Unasked) -> None:
    compilation = compiled(
        claim("later", request()), allocated("held", {"device": "gpu-0"}), given
    )
    assert compilation.unasked == {ClaimKey("default", "p"): why}
    assert ClaimKey("default", "p") not in {
        demand.key for demand in compilation.problem.demands
    }


def test_pods_of_suspended_jobs_are_named() -> None:
    def job(name: str, **spec: Any) -> Json:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "suspend": True,
                "template": {"spec": {"containers": [], **spec}},
            },
        }

    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    compilation = compiled(job("train", resourceClaims=[entry]), job("sweep"))
    reasons = {
        ClaimKey("default", "train-0"): Unasked.SUSPENDED,
        ClaimKey("default", "sweep-0"): Unasked.NO_DEVICE,
    }
    assert compilation.unasked == reasons


@pytest.mark.parametrize("claims", [(), ("wanted",)])
def test_a_pod_that_asks_for_what_no_class_and_no_node_offers_is_not_placed(
    claims: tuple[str, ...],
) -> None:
    wants = asking("p", PLUGIN)
    wants["spec"]["resourceClaims"] = pod("p", *claims)["spec"][
        "resourceClaims"
    ]
    compilation = compile_cluster(
        cluster(
            offering("node-0", cpu="8"),
            *PLAIN[1:],
            *(claim(name, request()) for name in claims),
            wants,
        )
    )
    assert not compilation.unasked
    (error,) = first_fit(compilation.problem).errors.values()
    assert (
        str(error)
        == f"pod default/p: no DeviceClass and no node offers {PLUGIN}"
    )


def test_what_some_node_may_offer_is_no_obstacle() -> None:
    with_plugin = offering("node-0", vendor_com="1")
    with_plugin["status"]["allocatable"] = {PLUGIN: "1"}
    for given in (with_plugin, node()):
        compilation = compile_cluster(
            cluster(given, *PLAIN[1:], asking("p", PLUGIN))
        )
        assert list(compilation.unasked.values()) == [Unasked.PLUGIN]


def test_an_entry_that_names_nothing_makes_a_pod_unplaced_as_a_missing_template_does() -> (
    None
):
    empty, missing = (
        {"name": "a"},
        {"name": "a", "resourceClaimTemplateName": "none"},
    )
    compilation = compiled(
        pod("empty", resourceClaims=[empty]),
        pod("missing", resourceClaims=[missing]),
    )
    assert [demand.key.name for demand in compilation.problem.demands] == [
        "empty",
        "missing",
    ]
    assert len(first_fit(compilation.problem).errors) == 2


def test_what_is_ignored_is_said() -> None:
    compilation = compile_cluster(
        cluster(*PLAIN, claim("a", request())), ignore="taints, cpu"
    )
    assert notices(compilation) == [
        "first fit and the optimum ignore, as asked: cpu, taints"
    ]
