"""All that is pending at once: nothing is left out, and what is said of many holds for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dralloc
from dralloc.ask.explain.changes import Cost, Suggestion
from dralloc.objects.choices import ModeName
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Table
from examples import examples
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}


def crowd(random: Random) -> list[Json]:
    """Few devices of two sorts, some of them tainted, and pods that want more than there is."""
    objects: list[Json] = [device_class()]
    for name in ("a", "b"):
        devices = [
            device(
                f"g{device_index}",
                {"fast": random.random() < 0.5},
                taints=[TAINT] * random.randint(0, 1),
            )
            for device_index in range(random.randint(1, 3))
        ]
        allocatable = {"cpu": str(random.randint(1, 3)), "pods": "9"}
        objects += [
            {**node(name), "status": {"allocatable": allocatable}},
            resource_slice(devices, name=name, pool=name, nodeName=name),
        ]
    for pod_index in range(random.randint(1, 6)):
        fast = ["device.attributes['gpu.example.com'].fast"] * random.randint(
            0, 1
        )
        asked = request("gpu", *fast, count=random.randint(1, 4))
        container = {
            "name": "c",
            "resources": {"requests": {"cpu": str(random.randint(0, 1))}},
        }
        # Some use the claim of the first pod.
        claim_index = random.choice((pod_index, pod_index, 0))
        if claim_index == pod_index:
            objects.append(claim(f"c{pod_index}", asked))
        objects.append(
            pod(f"p{pod_index}", f"c{claim_index}", containers=[container])
        )
    return objects


@settings(max_examples=examples(20), deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(["first-fit", "scheduler", "optimal"]),
)
def test_everything_that_is_pending_is_there_once(
    random: Random, mode: str
) -> None:
    # A claim that no pod uses may have the name of a pod.
    lone = [claim("p0", request(count=9))] * random.randint(0, 1)
    objects = cluster(crowd(random), lone)
    plan = dralloc.allocate(objects, mode=dralloc.Mode(mode))
    report = dralloc.explain(objects, mode=dralloc.Mode(mode))
    pending = [key for kind in report.kinds for key in kind.demands]
    assert sorted(pending) == sorted(demand.key for demand in plan.unplaced)
    # Pods with a claim in common may be of several kinds, but nobody is explained for somebody else.
    explained = Counter(kind.explanation.claims for kind in report.kinds)
    asking = Counter(unplaced.claims for unplaced in plan.unplaced)
    assert explained <= asking
    assert report.placed == len(plan.solution.placements)
    assert sum(map(len, report.by_reason.values())) == len(report.kinds)
    assert all(kind.reason for kind in report.kinds)
    counts = [
        sum(len(kind.demands) for kind in kinds)
        for kinds in report.by_reason.values()
    ]
    assert counts == sorted(counts, reverse=True)


@settings(max_examples=examples(20), deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_change_of_many_is_a_change_of_each(random: Random) -> None:
    """What is counted for a kind is found for its last one, too, when it is explained beside the same placements."""
    objects = crowd(random)
    report = dralloc.explain(cluster(objects))
    placed = {
        str(placement.demand)
        for placement in dralloc.allocate(
            cluster(objects), mode="first-fit"
        ).placed
    }
    for kind in report.kinds:
        last = kind.demands[-1]
        # Those that are placed come first; then the last one, as its own turn is.
        first = _with_claims(objects, placed)
        others = [
            manifest
            for manifest in objects
            if manifest["kind"] not in ("Pod", "ResourceClaim")
        ]
        own = [
            manifest
            for manifest in _with_claims(objects, {str(last)})
            if manifest not in first
        ]
        alone = dralloc.explain(cluster(others, first, own), pod=str(last))
        assert _own(alone.claims, alone.suggestions) == _own(
            kind.explanation.claims, kind.explanation.suggestions
        )


def _own(
    claims: Sequence[ClaimKey], suggestions: Sequence[Suggestion]
) -> list[str]:
    """What the author of a claim can change, without the claim's name."""
    texts = [
        suggestion.text
        for suggestion in suggestions
        if suggestion.cost <= Cost.LESS
    ]
    return [text.replace(f"claim {claims[0]}, ", "") for text in texts]


def _with_claims(objects: Sequence[Json], pods: set[str]) -> list[Json]:
    """Some pods, and the claims that they use."""
    chosen = [
        manifest
        for manifest in objects
        if manifest["kind"] == "Pod"
        and f"default/{manifest['metadata']['name']}" in pods
    ]
    used = {
        entry["resourceClaimName"]
        for manifest in chosen
        for entry in manifest["spec"]["resourceClaims"]
    }
    claims = (
        manifest
        for manifest in objects
        if manifest["kind"] == "ResourceClaim"
        and manifest["metadata"]["name"] in used
    )
    return [*claims, *chosen]


def test_reasons_and_changes_are_counted() -> None:
    tainted = [gpu | {"taints": [TAINT]} for gpu in gpus(4)]
    objects = [device_class(), node(), resource_slice(tainted)]
    for pod_index in range(3):
        objects += [
            claim(f"c{pod_index}", request()),
            pod(f"p{pod_index}", f"c{pod_index}"),
        ]
    objects += [claim("x", request(count=9)), pod("px", "x")]
    report = dralloc.explain(cluster(objects))
    assert report.headline == "first-fit: 0 placed, 4 pending for 1 reason"
    [(reason, kinds)] = report.by_reason.items()
    assert reason == "taint broken=fan:NoSchedule is not tolerated"
    assert [len(kind.demands) for kind in kinds] == [3, 1]
    assert [str(key) for key in kinds[1].demands] == ["default/px"]
    assert report.changes[0].text == "tolerate taint broken=fan:NoSchedule"
    assert report.changes[0].pods == 3
    told = str(report)
    assert "claim default/c0" not in told
    bare = dralloc.explain(cluster(objects), suggest=False)
    assert bare.changes == ()
    assert " 4  tolerate the taint, or remove it from the devices" in str(bare)


@pytest.mark.parametrize("mode", ["first-fit", "optimal"])
def test_who_has_a_share_of_a_granted_claim_is_a_case_of_its_own(
    mode: ModeName,
) -> None:
    """The only GPU and CPU are taken: one of two has a share of the GPU, and needs nothing but CPU."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    objects: list[Json] = [
        device_class(),
        {**node("a"), "status": {"allocatable": {"cpu": "1", "pods": "9"}}},
        resource_slice(gpus(1), name="a", pool="a", nodeName="a"),
        claim("common", request()),
        claim("own", request()),
    ]
    for name, used in (("one", "common"), ("two", "common"), ("three", "own")):
        objects.append(pod(name, used, containers=[container]))
    report = dralloc.explain(cluster(*objects), mode=mode)
    for kind in report.kinds:
        [key] = kind.demands
        alone = dralloc.explain(cluster(*objects), pod=key, mode=mode)
        assert kind.explanation.suggestions == alone.suggestions
    assert [kind.demands[0].name for kind in report.kinds] == ["two", "three"]


def test_a_pod_and_a_claim_of_one_name_are_two() -> None:
    unknown = "device.attributes['gpu.example.com'].index == 7"
    report = dralloc.explain(
        cluster(
            node("a"),
            device_class(),
            resource_slice(gpus(1), nodeName="a"),
            claim("x", request("gpu", unknown)),
            claim("y", request(count=2)),
            pod("x", "y"),
        )
    )
    explained = {
        kind.explanation.claims[0].name: kind.reason for kind in report.kinds
    }
    assert explained == {
        "x": f"does not match selector {unknown}",
        "y": "the node has too few devices",
    }


def test_nothing_pending_is_said() -> None:
    report = dralloc.explain(
        cluster(device_class(), node(), resource_slice(gpus(1)))
    )
    assert report.headline == "first-fit: 0 placed, nothing pending"


def test_other_drivers_are_no_substitute() -> None:
    """A pod that wants a GPU is not told to take the network adapter that another pod has."""
    gpu_class = device_class("gpu", "device.driver == 'gpu.example.com'")
    nic_class = device_class("nic", "device.driver == 'nic.example.com'")
    objects = [
        gpu_class,
        nic_class,
        node(),
        resource_slice([device("g", {"fast": False})]),
        resource_slice(
            gpus(3), name="nics", pool="nics", driver="nic.example.com"
        ),
        claim("nic", request(device_class="nic")),
        pod("has-nic", "nic"),
        claim("slow", request()),
        pod("has-gpu", "slow"),
        claim(
            "wanted",
            request("gpu", "device.attributes['gpu.example.com'].fast"),
        ),
        pod("waits", "wanted"),
    ]
    explanation = dralloc.explain(cluster(objects), pod="default/waits")
    assert not any(
        "nic" in suggestion.text for suggestion in explanation.suggestions
    )


def test_amounts_have_units() -> None:
    stock = {"status": {"allocatable": {"memory": "100Gi", "pods": "9"}}}
    hungry = {
        "resources": {"requests": {"memory": "900Gi"}},
        "name": "main",
        "image": "i",
    }
    objects = [
        device_class(),
        node() | stock,
        resource_slice(gpus(1)),
        claim("c", request()),
    ]
    explanation = dralloc.explain(
        cluster(objects, pod("p", "c", containers=[hungry])), pod="default/p"
    )
    [cause] = explanation.groups[0].causes
    assert cause.details == ("900Gi requested, 100Gi left",)


def test_a_pod_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(dralloc.DrallocError):
        dralloc.explain(cluster(device_class()), pod="default/none")


def test_of_too_much_cpu_it_is_said_how_much_there_is() -> None:
    """The node with the most is meant, and the words are those of amounts, not of a rule to be lifted."""
    objects: list[Json] = [device_class()]
    for name, cpu in (("small", "4"), ("large", "8")):
        allocatable = {"cpu": cpu, "memory": "900Gi", "pods": "9"}
        objects += [
            {**node(name), "status": {"allocatable": allocatable}},
            resource_slice(gpus(1), name=name, pool=name, nodeName=name),
        ]
    for name, asked in (("cpu", {"cpu": "1k"}), ("memory", {"memory": "1Ti"})):
        container = {"name": "c", "resources": {"requests": asked}}
        objects += [
            claim(f"of-{name}", request()),
            pod(name, f"of-{name}", containers=[container]),
        ]
    report = dralloc.explain(cluster(*objects))
    assert {change.text for change in report.changes} == {
        "request at most 8 CPU",
        "request at most 900Gi memory",
    }


def test_nodes_that_come_closest_say_why() -> None:
    """Nodes without such devices, or to which the pod may not come, say nothing of a selector that accepts none."""
    tainted = node("a")
    tainted["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    empty = [node(f"cpu-{index}") for index in range(3)]
    slices = [
        resource_slice(gpus(2), name=name, pool=name, nodeName=name)
        for name in "ab"
    ]
    wrong = claim("wrong", request("gpu", "device.driver == 'other'"))
    report = dralloc.explain(
        cluster(
            device_class(),
            tainted,
            node("b"),
            *empty,
            *slices,
            wrong,
            pod("p", "wrong"),
        )
    )
    [kind] = report.kinds
    assert kind.reason.endswith("match selector device.driver == 'other'")
    assert kind.nodes == 1


def test_a_selector_that_fails_counts_after_the_class() -> None:
    """Devices of other classes beside those on which it fails are not the reason."""
    other = resource_slice(
        [device("nic")], name="n", pool="n", nodeName="a", driver="nic"
    )
    own = resource_slice(gpus(1), name="g", pool="g", nodeName="a")
    busy = allocated("busy", {"device": "gpu-0", "pool": "g"})
    failing = request("gpu", "device.attributes['other.example'].size == 1")
    [kind] = dralloc.explain(
        cluster(
            device_class("gpu", "device.driver == 'gpu.example.com'"),
            node("a"),
            own,
            other,
            busy,
            claim("wrong", failing),
            pod("p", "wrong"),
        )
    ).kinds
    assert "a selector fails" in kind.reason


def test_what_helps_those_that_no_single_change_admits() -> None:
    """One waits for devices that are in use, which a node would help; the selector of the other fails."""
    report = dralloc.explain(
        cluster(
            device_class(),
            resource_slice(gpus(1)),
            claim("first", request()),
            claim("second", request()),
            claim(
                "wrong",
                request(
                    "gpu", "device.attributes['gpu.example.com'].model == 'a'"
                ),
            ),
        )
    )
    tables = [part for part in report.body() if isinstance(part, Table)]
    (others,) = [
        table.rows for table in tables if table.title.endswith("the others")
    ]
    assert [tuple(row) for row in others] == [
        ("1", "guard the attribute in the selector, with has() or .?")
    ]
