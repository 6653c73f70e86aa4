"""What is asked for, and at what price: mistakes are named, and nothing counts twice."""

from __future__ import annotations

import pytest

import dralloc
from dralloc.ask.whatif import MixEntry
from dralloc.ask.whatif.mix_entries import Source
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from wire import (
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)


@pytest.mark.parametrize("price", [0, -1])
def test_nodes_have_a_price_above_0(price: int) -> None:
    with pytest.raises(
        DrallocError, match=f"--price small={price}: expected an amount above 0"
    ):
        dralloc.fewest_nodes(
            dralloc.example(),
            "default/any",
            kinds={"small": "node-0"},
            prices={"small": price},
        )


@pytest.mark.parametrize("count", [0, -2])
def test_somebody_is_to_be_had_at_least_once(count: int) -> None:
    with pytest.raises(
        DrallocError,
        match=f"default/any={count}: expected a number of at least 1",
    ):
        MixEntry(ClaimKey("default", "any"), number=count)


@pytest.mark.parametrize("number", ["0", "-2", "", "1.5", "9" * 5000])
def test_a_number_is_read_exactly_or_refused(number: str) -> None:
    with pytest.raises(DrallocError, match="expected NAMESPACE/NAME=NUMBER"):
        MixEntry.parse(f"default/any={number}")


def test_a_claim_and_a_pod_of_its_name_are_two_entries() -> None:
    """The claim asks for two devices, the pod of its name, which uses another claim, for one."""
    devices = [node(), resource_slice(gpus(4)), device_class()]
    both = cluster(
        *devices,
        claim("x", request(count=2)),
        claim("y", request()),
        pod("x", "y"),
    )
    answer = dralloc.headroom(
        both, "default/x", MixEntry(ClaimKey("default", "x"), Source.POD)
    )
    assert [copy_count.number for copy_count in answer.alone] == [2, 4]


def test_one_entry_for_each_claim() -> None:
    """Whatever the numbers are: shares of the mix would go by one of them only."""
    with pytest.raises(
        DrallocError,
        match="default/any: is asked for 2 times; give it once, with a number",
    ):
        dralloc.stranded(dralloc.example(), ["default/any", "default/any=2"])


def test_a_node_is_drained_once() -> None:
    answer = dralloc.drain(dralloc.example(), "node-1", "node-1")
    assert answer.headline == "node-1: the claim fits on another node"


def test_copies_of_a_pod_are_in_no_group() -> None:
    """What a pod says about its own claims is no rule for the claims of its copies."""
    member = pod("member", "x")
    member["metadata"]["annotations"] = {
        "dralloc.dev/across": "distinctAttribute=gpu.example.com/rail"
    }
    member["spec"]["schedulingGroup"] = {"podGroupName": "job"}
    on_one_rail = gpus(2)
    for gpu in on_one_rail:
        gpu["attributes"] = {"rail": {"string": "a"}}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }
    one_node = cluster(
        node(),
        resource_slice(on_one_rail),
        device_class(),
        claim("x", request()),
        member,
        group,
    )
    key = ClaimKey("default", "member")
    (room,) = dralloc.headroom(one_node, MixEntry(key, Source.POD)).alone
    assert room.number == 2
    nodes = dralloc.fewest_nodes(one_node, MixEntry(key, Source.POD, 3))
    assert nodes.numbers == (2,)


@pytest.mark.parametrize("points", [0, -1])
def test_a_front_of_no_points_is_an_error(points: int) -> None:
    objects = cluster(
        node(),
        device_class(),
        resource_slice(gpus(4)),
        claim("small", request()),
        claim("large", request(count=2)),
    )
    with pytest.raises(DrallocError, match=f"points: {points}: expected"):
        dralloc.headroom(
            objects, "default/small", "default/large", points=points
        )
