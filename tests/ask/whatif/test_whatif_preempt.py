"""Victims for a pod, a claim or a gang: examples, and random clusters against trying every set of them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st

import dralloc
from brute_evictions import cheapest_eviction
from dralloc.ask.whatif import Preemption, preempt
from dralloc.objects.api.base import changed
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import ALL_FEATURES
from eviction_strategies import ANNOTATION, House, houses, shared_houses
from examples import INDEPENDENT, examples
from preemptions import Crowd, cheapest, crowds
from settled import held
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

EXAMPLES = examples(30)
QUICKLY = settings(
    max_examples=EXAMPLES,
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("gang", ["", "gang"])
@QUICKLY
@given(crowd=crowds(), cost=st.sampled_from(["pods", "priority", ANNOTATION]))
def test_no_victims_are_cheaper(crowd: Crowd, cost: str, gang: str) -> None:
    try:
        answer = preempt(
            crowd.cluster, pod=str(crowd.pod), cost=cost, gang=gang
        )
    except DrallocError as error:
        event(str(error)[:30])
        assume(False)
    assume(not answer.left_out)
    expected = cheapest(crowd, cost, gang)
    event(f"{len(answer.evicted)} victims" if answer.possible else "hopeless")
    assert answer.exact
    assert answer.possible == (expected is not None)
    if expected is not None:
        assert tuple(tier.value for tier in answer.tiers) == expected


@settings(QUICKLY, max_examples=examples(100))
@given(
    house=st.one_of(houses(), houses(peace=False)),
    cost=st.sampled_from(["pods", "priority", ANNOTATION]),
)
def test_no_eviction_is_cheaper_where_pods_mind_each_other(
    house: House, cost: str
) -> None:
    assert_cheapest(house, cost)


@settings(QUICKLY, max_examples=examples(500))
@given(
    house=shared_houses(),
    cost=st.sampled_from(["pods", "priority", ANNOTATION]),
)
def test_no_eviction_is_cheaper_where_admin_access_minds_shares(
    house: House, cost: str
) -> None:
    assert_cheapest(house, cost)


def assert_cheapest(house: House, cost: str) -> None:
    """Compare the answer with every set of victims."""
    answer = preempt(house.cluster, pod=f"default/{house.asked}", cost=cost)
    expected = cheapest_eviction(house, cost)
    event(f"{len(answer.evicted)} victims" if answer.possible else "hopeless")
    assert not answer.left_out
    assert answer.exact
    assert answer.possible == (expected is not None)
    if expected is not None:
        assert tuple(tier.value for tier in answer.tiers) == expected


@settings(QUICKLY, max_examples=examples(50))
@given(house=houses())
def test_upstream_admits_nobody_for_less(house: House) -> None:
    """Where upstream asks for the same: it looks at each pod by itself, also of the preemptor's own team, and at no
    priority of a team nor where the others of it are.
    """
    [asked] = [guest for guest in house.guests if guest.name == house.asked]
    rivals = [
        replace(guest, priority=asked.priority)
        if asked.team and guest.team == asked.team
        else guest
        for guest in house.guests
        if not guest.home or not asked.team or guest.team != asked.team
    ]
    teams = {
        name: replace(team, goes_as_whole=False, topology="", priority=None)
        for name, team in house.teams.items()
    }
    answer = preempt(
        replace(house, guests=tuple(rivals), teams=teams).cluster,
        pod=f"default/{house.asked}",
    )
    event(
        f"upstream admits with {len(answer.upstream.victims)} victims"
        if answer.upstream.admits
        else "hopeless"
    )
    if answer.upstream.admits:
        assert answer.possible
        assert len(answer.evicted) <= len(answer.upstream.victims)


def three_nodes(*objects: Json | list[Json]) -> Cluster:
    """Nodes with two, two and one GPU."""
    sizes = {"node-0": 2, "node-1": 2, "node-2": 1}
    slices = [
        resource_slice(gpus(size), name=name, pool=name, nodeName=name)
        for name, size in sizes.items()
    ]
    return cluster(
        device_class(), [node(name) for name in sizes], slices, *objects
    )


def running(
    name: str, home: str, *devices: str, priority: int = 0, **metadata: Json
) -> list[Json]:
    """A pod with GPUs of its node."""
    pod_object = pod(name, name, nodeName=home, priority=priority)
    pod_object["metadata"] |= metadata
    return [pod_object, held(name, home, *devices)]


def waiting(count: int, priority: int = 50, **spec: object) -> list[Json]:
    """A pod that wants so many GPUs."""
    return [
        pod("new", "new", priority=priority, **spec),
        claim("new", request(count=count)),
    ]


def victims(answer: Preemption) -> list[str]:
    return [key.name for key in answer.evicted]


TWO_SMALL = [*running("x", "node-0", "gpu-0"), *running("y", "node-0", "gpu-1")]
ONE_LARGE = running("z", "node-1", "gpu-0", "gpu-1", priority=5)


def test_the_fewest_pods() -> None:
    answer = preempt(
        three_nodes(TWO_SMALL, ONE_LARGE, waiting(2)), pod="default/new"
    )
    assert (victims(answer), answer.exact) == (["z"], True)
    assert (
        "default/new: admitted by evicting 1 pod, proven to be the cheapest"
        in str(answer)
    )
    assert [
        (admission.node, len(admission.devices))
        for admission in answer.admitted
    ] == [("node-1", 2)]


def test_the_names_are_those_of_the_victims() -> None:
    """Whoever is deleted by them is neither admitted without victims, nor a victim of kube-scheduler alone."""
    crowded = three_nodes(TWO_SMALL, ONE_LARGE, waiting(2))
    assert list(preempt(crowded, pod="default/new").names()) == ["default/z"]
    roomy = preempt(three_nodes(TWO_SMALL, waiting(2)), pod="default/new")
    assert roomy.possible
    assert list(roomy.names()) == []


def test_the_lowest_priorities() -> None:
    answer = preempt(
        three_nodes(TWO_SMALL, ONE_LARGE, waiting(2)),
        pod="default/new",
        cost="priority",
    )
    assert victims(answer) == ["x", "y"]


def test_of_equally_many_those_of_lower_priority() -> None:
    small = running("w", "node-2", "gpu-0", priority=1)
    answer = preempt(
        three_nodes(TWO_SMALL, ONE_LARGE, small, waiting(1)), pod="default/new"
    )
    assert victims(answer) in (["x"], ["y"])


def test_the_smallest_sum_of_an_annotation() -> None:
    key = "controller.kubernetes.io/pod-deletion-cost"
    large = running("z", "node-1", "gpu-0", "gpu-1", annotations={key: "7"})
    answer = preempt(
        three_nodes(TWO_SMALL, large, waiting(2)), claim="default/new", cost=key
    )
    assert victims(answer) == ["x", "y"]
    assert [(tier.name, tier.value) for tier in answer.tiers][:2] == [
        (key, 0),
        ("pods", 2),
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("much", '"much" is no integer from 0'),
        (None, "nor an annotation of a pod"),
    ],
)
def test_an_annotation_that_says_nothing(value: str | None, said: str) -> None:
    annotations = {} if value is None else {"cost": value}
    source = three_nodes(
        running("x", "node-0", "gpu-0", annotations=annotations), waiting(2)
    )
    with pytest.raises(DrallocError, match=said):
        preempt(source, pod="default/new", cost="cost")


def test_nobody_of_equal_priority() -> None:
    equal = [
        running(f"x-{name}", name, "gpu-0", priority=50)
        for name in ("node-0", "node-1")
    ]
    answer = preempt(three_nodes(*equal, waiting(2)), pod="default/new")
    assert (answer.possible, answer.exact, answer.candidates) == (
        False,
        True,
        0,
    )
    assert (
        "evicting any of 0 pods below priority 50 does not help, proven"
        in str(answer)
    )


@pytest.mark.parametrize("mode", ["PodGroup", {"all": {}}])
def test_a_group_goes_as_a_whole(mode: str | Json) -> None:
    members = [
        *running("x", "node-0", "gpu-0"),
        *running("y", "node-2", "gpu-0"),
    ]
    for member in (members[0], members[2]):
        member["spec"]["schedulingGroup"] = {"podGroupName": "job"}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}, "disruptionMode": mode},
    }
    full = running("f", "node-1", "gpu-0", "gpu-1", priority=99)
    answer = preempt(
        three_nodes(members, group, full, waiting(2)), pod="default/new"
    )
    assert victims(answer) == ["x", "y"]
    assert "PodGroup default/job" in str(answer)


def test_a_gang_is_admitted_as_a_whole() -> None:
    gang = [
        [pod(f"g-{n}", f"g-{n}", priority=9), claim(f"g-{n}", request(count=2))]
        for n in range(2)
    ]
    for member, _ in gang:
        member["metadata"]["labels"] = {"gang": "g"}
    source = three_nodes(TWO_SMALL, ONE_LARGE, *gang)
    answer = preempt(source, pod="default/g-0", gang="gang")
    assert [key.name for key in answer.asked] == ["g-0", "g-1"]
    assert victims(answer) == ["x", "y", "z"]


def test_a_shared_claim_is_freed_by_the_last_of_its_users() -> None:
    shared = [
        *running("x", "node-0", "gpu-0", "gpu-1"),
        pod("y", "x", nodeName="node-0"),
    ]
    full = running("f", "node-1", "gpu-0", "gpu-1", priority=99)
    answer = preempt(three_nodes(shared, full, waiting(2)), pod="default/new")
    assert victims(answer) == ["x", "y"]
    assert [len(answer.freed[key]) for key in answer.evicted] == [1, 1]


def test_victims_free_cpu_too_where_upstream_evicts_more() -> None:
    """Upstream keeps the most important ones as long as it can; two small ones go where one large one would do."""

    def busy(name: str, cpu: str, priority: int) -> Json:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        return {
            **pod(
                name,
                nodeName="node-0",
                priority=priority,
                containers=[container],
            )
        }

    home = {
        **node("node-0"),
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    others = [
        busy("large", "2", 2),
        busy("small-1", "1", 1),
        busy("small-2", "1", 1),
    ]
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    slices = resource_slice(gpus(1), nodeName="node-0")
    source = cluster(
        device_class(), home, slices, others, waiting(1, containers=[container])
    )
    answer = preempt(source, pod="default/new")
    assert victims(answer) == ["large"]
    assert sorted(victim.pod.name for victim in answer.upstream.victims) == [
        "small-1",
        "small-2",
    ]
    assert "kube-scheduler's preemption evicts 2 where 1 would do" in str(
        answer
    )


def test_upstream_evicts_for_devices_where_it_frees_them() -> None:
    """KEP-5690: on the node with two small ones fewer priorities are lost than with the large one."""
    answer = preempt(
        three_nodes(TWO_SMALL, ONE_LARGE, waiting(2)), pod="default/new"
    )
    assert answer.upstream.admits
    assert [victim.pod.name for victim in answer.upstream.victims] == ["x", "y"]


def test_more_pods_are_not_said_to_do_where_upstream_evicts_fewer() -> None:
    """Two cheap ones in place of one that is dear."""
    cheap = [*running("x", "node-0", "gpu-0"), *running("y", "node-0", "gpu-1")]
    dear = running("z", "node-1", "gpu-0", "gpu-1")
    for objects, cost in ((cheap, "1"), (dear, "9")):
        for wire in objects:
            wire["metadata"].setdefault("annotations", {})["cost"] = cost
    answer = preempt(
        three_nodes(cheap, dear, waiting(2)), pod="default/new", cost="cost"
    )
    assert victims(answer) == ["x", "y"]
    assert [victim.pod.name for victim in answer.upstream.victims] == ["z"]
    shown = str(answer)
    assert "preemption evicts 1, and this answer 2." in shown
    assert "would do" not in shown


def test_without_the_gate_upstream_evicts_nobody_for_devices() -> None:
    answer = preempt(
        three_nodes(TWO_SMALL, ONE_LARGE, waiting(2)),
        pod="default/new",
        features=ALL_FEATURES.switched({"DRAPreemption": False}),
    )
    assert not answer.upstream.admits
    assert "Preemption is not helpful for scheduling" in answer.upstream.message


def test_who_breaks_a_rule_already_is_left_out() -> None:
    """Two dedicated claims of one device: neither could be allocated again beside the other."""
    twice = [*running("x", "node-0", "gpu-0"), *running("y", "node-0", "gpu-0")]
    answer = preempt(
        three_nodes(twice, ONE_LARGE, waiting(2)), pod="default/new"
    )
    assert victims(answer) == ["z"]
    assert [key.name for key in answer.left_out] == ["x", "y"]
    # Evicting one of these may be cheaper, or not: nobody looked.
    assert not answer.exact
    assert "as long as none of 2 pods is evicted" in answer.conclusion


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "zone"])
def test_who_is_too_near_to_others_already_may_go_as_anybody(key: str) -> None:
    """A pod that was started beside others whom it is to keep away from stays, or is evicted."""
    label = {"app": "x"}
    term = {"labelSelector": {"matchLabels": label}, "topologyKey": key}
    alone = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        }
    }
    x, y = (
        running("x", "node-0", "gpu-0", labels=label),
        running("y", "node-0", "gpu-1", labels=label),
    )
    x[0]["spec"]["affinity"] = alone
    nodes = three_nodes(x, y, ONE_LARGE, waiting(2))
    labelled = replace(
        nodes,
        nodes=tuple(
            changed(
                host, metadata=changed(host.metadata, labels={key: host.name})
            )
            for host in nodes.nodes
        ),
    )
    answer = preempt(labelled, pod="default/new")
    assert (victims(answer), answer.exact, answer.left_out) == (["z"], True, ())


MEMORY = {"memory": {"value": "6"}}


def share(name: str, device: str, amount: str) -> Json:
    """A claim that holds a share of a device of node a."""
    identity = {"shareID": "3a1e3bc4-2a1f-4f0b-9c7d-5a52dd5e2f10", "pool": "a"}
    consumed = {"consumedCapacity": {"memory": amount}}
    return allocated(name, {**identity, "device": device, **consumed})


def with_admin_access(**spec: object) -> list[Json]:
    """A pod that wants admin access to a GPU with so much memory left."""
    privileged = {"resource.kubernetes.io/admin-access": "true"}
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "labels": privileged},
    }
    amounts = {"requests": {"memory": "4"}}
    asking = claim("new", request(capacity=amounts, adminAccess=True))
    return [space, pod("new", "new", priority=50, **spec), asking]


def test_admin_access_has_to_fit_beside_shares_of_those_who_stay() -> None:
    """It takes nothing from others, but they were there first."""
    shared = gpus(2, allowMultipleAllocations=True, capacity=MEMORY)
    users = [
        pod("x", "x", nodeName="a", priority=2),
        pod("y", "y", nodeName="a", priority=1),
    ]
    answer = preempt(
        cluster(
            device_class(),
            node("a"),
            resource_slice(shared, name="a", pool="a", nodeName="a"),
            share("x", "gpu-0", "4"),
            share("y", "gpu-1", "5"),
            users,
            with_admin_access(),
        ),
        pod="default/new",
    )
    assert (victims(answer), answer.exact) == (["y"], True)


def test_admin_access_goes_where_nobody_with_shares_is_evicted() -> None:
    """Without v there is CPU on a, but a device only without x, too; without w there is all of it on b."""

    def cpu(amount: str) -> list[Json]:
        return [{"name": "main", "resources": {"requests": {"cpu": amount}}}]

    def host(name: str) -> list[Json]:
        shared = gpus(1, allowMultipleAllocations=True, capacity=MEMORY)
        status = {"allocatable": {"cpu": "4", "pods": "10"}}
        return [
            {**node(name), "status": status},
            resource_slice(shared, name=name, pool=name, nodeName=name),
        ]

    users = [
        pod("x", "x", nodeName="a", priority=1, containers=cpu("1")),
        pod("v", nodeName="a", priority=1, containers=cpu("3")),
        pod("w", nodeName="b", priority=2, containers=cpu("4")),
    ]
    answer = preempt(
        cluster(
            device_class(),
            host("a"),
            host("b"),
            share("x", "gpu-0", "4"),
            users,
            with_admin_access(containers=cpu("2")),
        ),
        pod="default/new",
    )
    assert (victims(answer), answer.exact) == (["w"], True)


def test_where_tries_run_out_those_stay_who_need_not_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer is not proven, and has the bound of what was tried. All who had shares had to go."""
    monkeypatch.setattr(import_module(preempt.__module__), "_MOST_TRIES", 1)
    shared = gpus(2, allowMultipleAllocations=True, capacity=MEMORY)
    answer = preempt(
        cluster(
            device_class(),
            node("a"),
            resource_slice(shared, name="a", pool="a", nodeName="a"),
            share("x", "gpu-0", "4"),
            share("y", "gpu-1", "5"),
            [
                pod("x", "x", nodeName="a", priority=2),
                pod("y", "y", nodeName="a", priority=1),
            ],
            with_admin_access(),
        ),
        pod="default/new",
    )
    assert (victims(answer), answer.exact) == (["y"], False)
    pods = answer.tiers[0]
    assert (pods.value, pods.bound) == (1, 0)


def test_where_time_is_over_those_stay_who_need_not_go() -> None:
    """Two have shares of each device, and both of them have to go. All who had shares had to."""
    shared = gpus(10, allowMultipleAllocations=True, capacity=MEMORY)
    names = [f"p{index}" for index in range(20)]
    answer = preempt(
        cluster(
            device_class(),
            node("a"),
            resource_slice(shared, name="a", pool="a", nodeName="a"),
            *(
                share(name, f"gpu-{index // 2}", "3")
                for index, name in enumerate(names)
            ),
            [pod(name, name, nodeName="a", priority=1) for name in names],
            with_admin_access(),
        ),
        pod="default/new",
        time_limit=2,
    )
    assert 2 <= len(answer.evicted) < len(names)
    assert not answer.exact


def test_who_asks_for_extended_resources_does_not_ask_its_node_for_them() -> (
    None
):
    kind = device_class()
    kind["spec"]["extendedResourceName"] = "example.com/gpu"
    container = {
        "name": "c",
        "resources": {"requests": {"example.com/gpu": "1", "cpu": "2"}},
    }
    new = pod("new", priority=50, containers=[container])
    busy = pod(
        "x",
        nodeName="node-0",
        containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
    )
    home = {
        **node("node-0"),
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    answer = preempt(
        cluster(
            kind, home, resource_slice(gpus(1), nodeName="node-0"), new, busy
        ),
        pod="default/new",
    )
    assert (victims(answer), answer.exact) == (["x"], True)


def test_exactly_one_is_asked_for() -> None:
    with pytest.raises(DrallocError, match="a claim or of a pod, and not both"):
        preempt(dralloc.example())


COMPANY = {
    "labelSelector": {"matchLabels": {"app": "x"}},
    "topologyKey": "host",
}


def labelled(name: str, *claims: str, **spec: object) -> Json:
    """A pod with a label."""
    plain = pod(name, *claims, **spec)
    plain["metadata"]["labels"] = {"app": "x"}
    return plain


def hosts_with_one_gpu(*objects: Json) -> Cluster:
    """Two nodes, the first of which has a GPU; a pod that wants it."""
    nodes = [node(f"node-{index}", host=f"node-{index}") for index in range(2)]
    return cluster(
        device_class(),
        nodes,
        resource_slice(gpus(1)),
        claim("new", request()),
        *objects,
    )


def test_a_newcomer_is_not_the_first_where_whom_it_means_runs_elsewhere() -> (
    None
):
    """It may begin only where nobody whom its affinity means is there, and who runs was there before it."""
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [COMPANY]
        }
    }
    new = labelled("new", "new", priority=9, affinity=affinity)
    answer = preempt(
        hosts_with_one_gpu(labelled("x", nodeName="node-1", priority=1), new),
        pod="default/new",
    )
    assert (victims(answer), answer.exact) == (["x"], True)


def test_a_newcomer_finds_those_who_run_where_it_is_to_be_spread() -> None:
    spread = {**COMPANY, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    new = labelled("new", "new", priority=9, topologySpreadConstraints=[spread])
    running = [labelled(name, nodeName="node-0", priority=1) for name in "xy"]
    answer = preempt(hosts_with_one_gpu(*running, new), pod="default/new")
    assert (victims(answer), answer.exact) == (["x", "y"], True)
    assert sorted(victim.pod.name for victim in answer.upstream.victims) == [
        "x",
        "y",
    ]


def pod_group(name: str, count: int, parent: str | None = None) -> Json:
    """A group of pods of which so many are needed, perhaps in a group of groups."""
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": count}}}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def test_of_a_gang_with_too_few_pods_upstream_looks_at_none() -> None:
    new = labelled("new", "new", schedulingGroup={"podGroupName": "job"})
    answer = preempt(
        hosts_with_one_gpu(new, pod_group("job", 2)), pod="default/new"
    )
    assert (answer.possible, answer.exact) == (False, True)
    assert (
        answer.upstream.message
        == "default/new: waiting for minCount pods from a gang to appear in scheduling queue"
    )


def test_of_a_tree_with_too_few_groups_nobody_is_admitted() -> None:
    new = labelled("new", "new", schedulingGroup={"podGroupName": "job"})
    tree = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": "tree", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}},
    }
    answer = preempt(
        hosts_with_one_gpu(new, pod_group("job", 1, "tree"), tree),
        pod="default/new",
    )
    assert (answer.possible, answer.exact) == (False, True)
    assert (
        "fewer pods, or groups of them, than have to be placed together"
        in answer.upstream.message
    )


def test_nobody_is_evicted_for_its_own_group() -> None:
    """A member that runs counts for the group, which would lack it."""
    members = [running("x", "node-2", "gpu-0"), waiting(2)]
    for member, _ in members:
        member["spec"]["schedulingGroup"] = {"podGroupName": "job"}
    others = [
        running("y", "node-0", "gpu-0", "gpu-1"),
        running("f", "node-1", "gpu-0", "gpu-1", priority=99),
    ]
    answer = preempt(
        three_nodes(*members, *others, pod_group("job", 2)), pod="default/new"
    )
    assert (victims(answer), answer.candidates) == (["y"], 1)


def test_the_members_that_a_gang_does_not_need_may_stay_out() -> None:
    """One of two is enough, and there is room for one; the other would get its second choice."""
    pods = [
        pod(name, name, schedulingGroup={"podGroupName": "g"})
        for name in ("p", "q")
    ]
    choice = first_available(
        "gpu",
        sub("large", "device.attributes['gpu.example.com'].index > 9"),
        sub("any"),
    )
    claims = [claim("p", request()), claim("q", choice)]
    objects = cluster(
        device_class(),
        node("node-0"),
        resource_slice(gpus(1)),
        pod_group("g", 1),
        pods,
        claims,
    )
    answer = preempt(objects, pod="default/p")
    assert (victims(answer), answer.possible, answer.exact) == ([], True, True)
