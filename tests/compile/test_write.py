"""Allocations as the API server would store them."""

from __future__ import annotations

from typing import Any

from dralloc.compile.compiler import compile_cluster
from dralloc.compile.write import allocated_claims, allocations
from dralloc.objects.api import to_wire
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.load import load_documents
from dralloc.solve.first_fit import first_fit
from wire import (
    Json,
    claim,
    cluster,
    device,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)


def written(*objects: Json | list[Json]) -> dict[str, Any]:
    """The wire form of each allocation by claim name."""
    compiled = compile_cluster(cluster(*objects))
    by_claim = allocations(compiled, first_fit(compiled.problem))
    return {
        key.name: allocation.model_dump(
            mode="json", by_alias=True, exclude_defaults=True
        )
        for key, allocation in by_claim.items()
    }


def opaque(**parameters: Any) -> Json:
    return {"opaque": {"driver": "gpu.example.com", "parameters": parameters}}


def test_results_carry_what_the_request_said() -> None:
    taint = {"key": "sick", "effect": "NoSchedule"}
    toleration = {"key": "sick", "operator": "Exists"}
    slices = resource_slice(
        [
            device(
                "gpu-0",
                taints=[taint],
                bindingConditions=["Ready"],
                bindingFailureConditions=["Bad"],
            )
        ]
    )
    wire_forms = written(
        node(),
        device_class(),
        slices,
        claim("a", request(adminAccess=True, tolerations=[toleration])),
    )
    assert wire_forms["a"]["devices"]["results"] == [
        {
            "request": "gpu",
            "driver": "gpu.example.com",
            "pool": "pool-0",
            "device": "gpu-0",
            "adminAccess": True,
            "tolerations": [toleration],
            "bindingConditions": ["Ready"],
            "bindingFailureConditions": ["Bad"],
        }
    ]


def test_binding_conditions_are_not_written_when_the_feature_is_off() -> None:
    slices = resource_slice([device("gpu-0", bindingFailureConditions=["Bad"])])
    given = cluster(node(), device_class(), slices, claim("a", request()))
    compiled = compile_cluster(
        given, features=ALL_FEATURES.switched({"DeviceBindingAndStatus": False})
    )
    (allocation,) = allocations(compiled, first_fit(compiled.problem)).values()
    assert allocation.devices.results[0].binding_failure_conditions == ()


def test_shares_have_an_id_and_what_they_consume() -> None:
    shared = device(
        "gpu-0",
        capacity={"memory": {"value": "80Gi"}},
        allowMultipleAllocations=True,
    )
    wanted = [
        request(name, capacity={"requests": {"memory": amount}})
        for name, amount in (("x", "10Gi"), ("y", "20Gi"))
    ]
    objects = [
        node(),
        device_class(),
        resource_slice([shared]),
        claim("a", *wanted),
    ]
    first, second = written(*objects)["a"]["devices"]["results"]
    assert (first["consumedCapacity"], second["consumedCapacity"]) == (
        {"memory": "10Gi"},
        {"memory": "20Gi"},
    )
    assert first["shareID"] != second["shareID"]
    assert (
        written(*objects)["a"]["devices"]["results"][0]["shareID"]
        == first["shareID"]
    )


def test_configs_of_classes_then_of_the_claim_with_their_requests() -> None:
    classes = [
        device_class("one", config=[opaque(of="one")]),
        device_class("two", config=[opaque(of="two")]),
    ]
    requests = [
        request("a", device_class="one"),
        first_available(
            "b",
            sub("big", "false", device_class="one"),
            sub("small", device_class="two"),
        ),
        request("c", device_class="one"),
    ]
    configs = [
        opaque(n=1),
        {"requests": ["a", "c"], **opaque(n=2)},
        {"requests": ["b/big"], **opaque(n=3)},
        {"requests": ["b/small"], **opaque(n=4)},
        {"requests": ["b", "a", "c"], **opaque(n=5)},
    ]
    wire_forms = written(
        node(),
        classes,
        resource_slice(gpus(3)),
        claim("x", *requests, config=configs),
    )
    assert [
        (config.get("requests"), config["opaque"]["parameters"])
        for config in wire_forms["x"]["devices"]["config"]
    ] == [
        (["a", "c"], {"of": "one"}),
        (["b/small"], {"of": "two"}),
        (None, {"n": 1}),
        (["a", "c"], {"n": 2}),
        (["b/small"], {"n": 4}),
        (None, {"n": 5}),
    ]


def term(key: str, *values: str) -> Json:
    return {
        "matchExpressions": [
            {"key": key, "operator": "In", "values": list(values)}
        ]
    }


def selector(*terms: Json) -> Json:
    return {"nodeSelectorTerms": list(terms)}


def test_a_node_local_device_ties_the_claim_to_the_node() -> None:
    wire_forms = written(
        node(), device_class(), resource_slice(gpus(1)), claim("a", request())
    )
    only = {
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
        ]
    }
    assert wire_forms["a"]["nodeSelector"] == selector(only)


def test_network_attached_devices_merge_their_selectors() -> None:
    slices = [
        resource_slice(
            [device("x")],
            name="s1",
            pool="a",
            nodeSelector=selector(term("zone", "a")),
        ),
        resource_slice(
            [device("y")],
            name="s2",
            pool="b",
            nodeSelector=selector(term("rack", "1")),
        ),
        resource_slice(
            [device("z")],
            name="s3",
            pool="c",
            nodeSelector=selector(term("zone", "a")),
        ),
    ]
    wire_forms = written(
        node(zone="a", rack="1"),
        device_class(),
        slices,
        claim("a", request(count=3)),
    )
    merged = (
        term("zone", "a")["matchExpressions"]
        + term("rack", "1")["matchExpressions"]
    )
    assert wire_forms["a"]["nodeSelector"] == selector(
        {"matchExpressions": merged}
    )


def test_equal_requirements_are_written_once_whatever_the_order_of_their_values() -> (
    None
):
    slices = [
        resource_slice(
            [device(name)],
            name=name,
            pool=name,
            nodeSelector=selector(term("zone", *zones)),
        )
        for name, zones in {"x": "ab", "y": "ba", "z": "a"}.items()
    ]
    wire_forms = written(
        node(zone="a"), device_class(), slices, claim("a", request(count=3))
    )
    both, only = term("zone", "a", "b"), term("zone", "a")
    conditions = both["matchExpressions"] + only["matchExpressions"]
    assert wire_forms["a"]["nodeSelector"] == selector(
        {"matchExpressions": conditions}
    )


def test_devices_of_all_nodes_need_no_selector_unless_they_bind() -> None:
    everywhere = [node(), device_class(), claim("a", request())]
    assert (
        "nodeSelector"
        not in written(*everywhere, resource_slice(gpus(1), allNodes=True))["a"]
    )
    bound = resource_slice(gpus(1, bindsToNode=True), allNodes=True)
    assert (
        "matchFields"
        in written(*everywhere, bound)["a"]["nodeSelector"][
            "nodeSelectorTerms"
        ][0]
    )


def test_only_pods_that_exist_reserve_a_claim() -> None:
    pods = [pod("p", "a"), pod("q", "a")]
    pods[0]["metadata"]["uid"] = "1234"
    compiled = compile_cluster(
        cluster(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            claim("a", request()),
            pods,
        )
    )
    (written_claim,) = allocated_claims(compiled, first_fit(compiled.problem))
    assert [
        (consumer.resource, consumer.name, consumer.uid)
        for consumer in written_claim.status.reserved_for
    ] == [("pods", "p", "1234")]


def test_a_claim_that_no_pod_uses_is_not_reserved_for_a_pod_of_its_name() -> (
    None
):
    claims = [claim(name, request()) for name in ("x", "y")]
    user = pod("x", "y")
    user["metadata"]["uid"] = "1234"
    compiled = compile_cluster(
        cluster(node(), device_class(), resource_slice(gpus(2)), *claims, user)
    )
    written_claims = allocated_claims(compiled, first_fit(compiled.problem))
    assert {
        written_claim.name: [
            consumer.name for consumer in written_claim.status.reserved_for
        ]
        for written_claim in written_claims
    } == {"x": [], "y": ["x"]}


def test_what_is_written_loads_again_as_usage() -> None:
    objects = [
        node(),
        device_class(),
        resource_slice(gpus(2)),
        claim("a", request()),
    ]
    compiled = compile_cluster(cluster(*objects))
    claims = [
        to_wire(written_claim)
        for written_claim in allocated_claims(
            compiled, first_fit(compiled.problem)
        )
    ]
    again = compile_cluster(
        load_documents([*objects[:3], *claims], source="test")
    )
    assert again.problem.demands == ()
    assert again.problem.usage.held == {0}
