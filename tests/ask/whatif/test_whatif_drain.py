"""Draining and defragmenting clusters: examples, and random clusters against trying everything."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from dralloc.ask.explain import explain
from dralloc.ask.whatif import Defragmentation, Drain, defragment, drain
from dralloc.objects.api.disclosure import EXTENDED_RESOURCE_ANNOTATION
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from examples import examples
from migrations import best_of_all
from settled import held, running_clusters
from wire import (
    DRIVER,
    Json,
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

EXAMPLES = examples(40)
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def three_nodes(
    *objects: Json | list[Json], sizes: tuple[int, ...] = (2, 2, 1)
) -> Cluster:
    names = [f"node-{index}" for index in range(len(sizes))]
    slices = [
        resource_slice(gpus(size), name=name, pool=name, nodeName=name)
        for name, size in zip(names, sizes, strict=True)
        if size
    ]
    return cluster(
        device_class(), [node(name) for name in names], slices, *objects
    )


def plan_of(
    answer: Drain | Defragmentation,
) -> list[tuple[str, str, str | None]]:
    """Action, claim and target of each step."""
    steps = answer.itinerary.steps
    return [
        (step.action, move.claim.removeprefix("default/"), move.to_node)
        for step in steps
        for move in step.claims
    ]


def test_everybody_finds_a_place() -> None:
    answer = drain(
        three_nodes(
            held("x", "node-0", "gpu-0"),
            pod("px", "x", nodeName="node-0"),
            sizes=(2, 2),
        ),
        "node-0",
    )
    assert answer.possible
    assert plan_of(answer) == [("move", "x", "node-1")]
    assert "node-0: the claim fits on another node" in str(answer)


def test_what_a_pod_has_for_extended_resources_can_go_nowhere() -> None:
    """The claim is the pod's, though the pod does not name it."""
    extended = held("x", "node-0", "gpu-0")
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "",
        "controller": True,
    }
    extended["metadata"] |= {
        "annotations": {EXTENDED_RESOURCE_ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    user = pod("p", "network", nodeName="node-0")
    network = resource_slice(
        gpus(1), name="network", pool="network", allNodes=True
    )
    objects = [
        extended,
        held("network", None, "gpu-0"),
        user,
        held("y", "node-1", "gpu-0", "gpu-1"),
    ]
    answer = drain(three_nodes(network, objects, sizes=(2, 2)), "node-0")
    assert [key.name for key in answer.together] == ["x"]
    assert answer.conflict is not None
    assert "holder" in [member.kind.value for member in answer.conflict.members]


def test_others_stay() -> None:
    answer = drain(
        three_nodes(
            [
                held("x", "node-0", "gpu-0"),
                held("y", "node-1", "gpu-0", "gpu-1"),
            ]
        ),
        "node-0",
    )
    assert plan_of(answer) == [("move", "x", "node-2")]


def test_who_is_nowhere_depends_on_no_node() -> None:
    """A claim holds a device of a node that has gone."""
    objects = [held("x", "node-0", "gpu-0"), held("lost", "node-9", "gpu-0")]
    answer = drain(three_nodes(objects), "node-0")
    assert [key.name for key in answer.claims] == ["x"]
    assert plan_of(answer) == [("move", "x", "node-1")]


@pytest.mark.parametrize("others", [[], [pod("q", "x", nodeName="node-0")]])
def test_claims_of_one_pod_are_no_conflict(others: list[Json]) -> None:
    """None of them could go without the other."""
    objects = [
        held("x", "node-0", "gpu-0"),
        held("y", "node-0", "gpu-1"),
        held("z", "node-1", "gpu-0"),
        pod("p", "x", "y", nodeName="node-0"),
    ]
    text = str(drain(three_nodes(objects, others, sizes=(2, 2)), "node-0"))
    assert "they do not all fit" not in text
    assert (
        "Claims default/x, default/y move together and fit on no other node"
        in text
    )


def test_two_cannot_go_though_each_could() -> None:
    claims = [
        held("x", "node-0", "gpu-0"),
        held("y", "node-0", "gpu-1"),
        held("z", "node-1", "gpu-0", "gpu-1"),
    ]
    answer = drain(three_nodes(claims), "node-0")
    assert not answer.possible
    assert (answer.gone, answer.most) == (1, 1)
    assert [key.name for key in answer.together] == ["x", "y"]
    assert answer.conflict is None
    assert "1 of 2 claims fit on other nodes, no more do" in str(answer)


def test_what_leaves_may_make_room() -> None:
    """Without `b`, which has to stay then and keeps what `a` or `d` could take, the others fit even less."""

    def wants(
        name: str, home: str | None, device_name: str, *sorts: str
    ) -> Json:
        claim_object = held(name, home, device_name)
        selector = f'device.attributes["{DRIVER}"].sort in {list(sorts)}'
        claim_object["spec"] = claim(name, request("gpu", selector))["spec"]
        return claim_object

    def devices(*sorts: str) -> list[Json]:
        return [
            device(f"gpu-{index}", {"sort": sort})
            for index, sort in enumerate(sorts)
        ]

    slices = [
        resource_slice(
            devices("m", "m", "l", "l"),
            name="node-0",
            pool="node-0",
            nodeName="node-0",
        ),
        resource_slice(
            devices("l", "m", "y"),
            name="node-1",
            pool="node-1",
            nodeName="node-1",
        ),
        resource_slice(
            devices("x"), name="network", pool="network", allNodes=True
        ),
    ]
    claims = [
        wants("g", "node-0", "gpu-0", "m"),
        wants("b", "node-0", "gpu-1", "m"),
        wants("a", "node-0", "gpu-2", "l", "x"),
        wants("d", "node-0", "gpu-3", "l", "x"),
        wants("network", None, "gpu-0", "x", "y"),
    ]
    pods = [
        pod("pb", "b", "network", nodeName="node-0"),
        *(
            pod(f"p{claim_name}", claim_name, nodeName="node-0")
            for claim_name in "gad"
        ),
    ]
    answer = drain(
        cluster(
            device_class(), node("node-0"), node("node-1"), slices, claims, pods
        ),
        "node-0",
    )
    assert (answer.gone, answer.most) == (3, 3)
    assert [key.name for key in answer.together] == ["a", "d"]


def test_the_rules_in_the_way_of_one() -> None:
    wanted = [{"key": "zone", "operator": "In", "values": ["a"]}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": wanted}]
            }
        }
    }
    objects = [held("x", "node-0", "gpu-0"), held("y", "node-1", "gpu-0")]
    pods = [
        pod("px", "x", nodeName="node-0", affinity=affinity),
        pod("py", "y", nodeName="node-1"),
    ]
    answer = drain(three_nodes(objects, pods), "node-0")
    assert [key.name for key in answer.together] == ["x"]
    assert answer.conflict is not None
    assert [member.title for member in answer.conflict.members] == [
        "pod spec.affinity.nodeAffinity: zone In ['a']"
    ]


def test_a_network_device_stays_with_its_pod() -> None:
    network = resource_slice(
        gpus(1), name="network", pool="network", allNodes=True
    )
    objects = [
        held("x", "node-0", "gpu-0"),
        held("n", None, "gpu-0"),
        pod("px", "x", "n", nodeName="node-0"),
    ]
    answer = drain(three_nodes(network, objects), "node-0")
    assert [key.name for key in answer.claims] == ["x"]
    assert plan_of(answer) == [("move", "x", "node-1")]


def test_claims_of_one_pod_move_together() -> None:
    objects = [
        held("x", "node-0", "gpu-0"),
        held("y", "node-0", "gpu-1"),
        pod("p", "x", "y", nodeName="node-0"),
    ]
    answer = drain(three_nodes(objects, held("z", "node-1", "gpu-0")), "node-0")
    assert not answer.possible
    assert answer.gone == 0
    assert answer.conflict is not None


def test_pods_with_one_claim_move_together_whatever_their_group_needs() -> None:
    """One of the group is enough, and there is CPU for one elsewhere: the other one would lose its claim."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "group", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    two_cpus = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    pods = [
        pod(
            name,
            "x",
            nodeName="node-0",
            containers=two_cpus,
            schedulingGroup={"podGroupName": "group"},
        )
        for name in ("p", "q")
    ]
    nodes = [
        {**node(name), "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}
        for name, cpu in (("node-0", "4"), ("node-1", "2"))
    ]
    slices = [
        resource_slice(gpus(1), name=name, pool=name, nodeName=name)
        for name in ("node-0", "node-1")
    ]
    running = [held("x", "node-0", "gpu-0"), *pods]
    answer = drain(
        cluster(device_class(), nodes, slices, group, running), "node-0"
    )
    assert not answer.possible
    assert [key.name for key in answer.stuck] == ["x"]


def test_a_daemon_ends_with_its_node() -> None:
    daemon = pod("d", "x", nodeName="node-0")
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1"}
    ]
    answer = drain(three_nodes(held("x", "node-0", "gpu-0"), daemon), "node-0")
    assert answer.possible
    assert not answer.claims
    assert [key.name for key in answer.left_out] == ["x"]


def test_pods_that_were_not_given_can_run_anywhere() -> None:
    claim = held("x", "node-0", "gpu-0")
    claim["status"]["reservedFor"] = [
        {"resource": "pods", "name": "px", "uid": "1"}
    ]
    answer = drain(three_nodes(claim), "node-0")
    assert answer.possible
    assert "1 claim is reserved for pods that were not found" in str(answer)


@pytest.mark.parametrize(
    "ending",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"status": {"phase": "Succeeded"}},
    ],
)
def test_the_claim_of_a_pod_that_ends_goes_nowhere(
    ending: dict[str, Json],
) -> None:
    """It is free once the pod is gone: there is nothing that could use it elsewhere."""
    ends = pod("px", "x", nodeName="node-0")
    for part, fields in ending.items():
        ends.setdefault(part, {}).update(fields)
    of_ending = held("x", "node-0", "gpu-0")
    of_ending["status"]["reservedFor"] = [
        {"resource": "pods", "name": "px", "uid": "1"}
    ]
    whole = three_nodes(
        [of_ending, ends],
        [held("y", "node-1", "gpu-0"), pod("py", "y", nodeName="node-1")],
        [claim("more", request(count=2)), pod("p", "more")],
        sizes=(2, 2),
    )
    answer = drain(whole, "node-0")
    assert not plan_of(answer)
    assert [key.name for key in answer.left_out] == ["x"]
    moves = plan_of(defragment(whole, 1))
    assert moves == [("move", "y", "node-0"), ("admit", "more", "node-1")]
    explanation = explain(whole, pod="default/p")
    assert "move claim default/y" in [
        suggestion.text for suggestion in explanation.suggestions
    ]


RAIL = f"{DRIVER}/rail"
AGREEING = {"dralloc.dev/across": f"matchAttribute={RAIL}"}


def railed(*rails: str) -> list[Json]:
    """Nodes with a device for each letter, which is the rail that it is on."""
    objects: list[Json] = [device_class()]
    for index, of_node in enumerate(rails):
        name = f"node-{index}"
        devices = [
            device(f"gpu-{position}", {"rail": rail, "index": position})
            for position, rail in enumerate(of_node)
        ]
        objects += [
            node(name),
            resource_slice(devices, name=name, pool=name, nodeName=name),
        ]
    return objects


def team() -> Json:
    """A group whose pods get devices of one rail."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {
            "name": "team",
            "namespace": "default",
            "annotations": AGREEING,
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }


def member(name: str, claim_name: str, **spec: str) -> Json:
    return pod(
        name, claim_name, schedulingGroup={"podGroupName": "team"}, **spec
    )


@pytest.mark.parametrize(("rails", "moves"), [("aab", 0), ("aaba", 1)])
def test_a_claim_that_moves_agrees_with_those_of_its_pod_that_stay(
    rails: str, moves: int
) -> None:
    user = pod("p", "x", "y", nodeName="node-0")
    user["metadata"]["annotations"] = AGREEING
    second = request("gpu", f"device.attributes['{DRIVER}'].index == 1")
    answer = defragment(
        cluster(
            railed(rails),
            [held("x", "node-0", "gpu-0"), held("y", "node-0", "gpu-1"), user],
            [claim("w", second), pod("w", "w")],
        ),
        1,
    )
    assert (answer.moves, len(answer.admitted)) == (moves, moves)


@pytest.mark.parametrize(
    ("claim_count", "admitted", "proof"),
    [(3, 1, "proven optimal"), (4, 0, "not proven")],
)
def test_nothing_is_proven_of_moves_that_are_not_looked_at(
    claim_count: int, admitted: int, proof: str
) -> None:
    """Of many claims of a pod, those that are free to stay are not tried one by one."""
    names = [f"x{index}" for index in range(claim_count)]
    holding = [
        held(name, "node-0", f"gpu-{index}") for index, name in enumerate(names)
    ]
    first = request("gpu", f"device.attributes['{DRIVER}'].index == 0")
    answer = defragment(
        cluster(
            railed("a" * (claim_count + 1)),
            [*holding, pod("p", *names, nodeName="node-0")],
            [claim("w", first), pod("w", "w")],
        ),
        1,
    )
    assert len(answer.admitted) == admitted
    assert proof in answer.headline
    assert answer.tiers[0].bound == 1


def test_who_waits_agrees_with_those_of_its_group_that_run() -> None:
    answer = defragment(
        cluster(
            railed("a", "b"),
            [team(), held("x", "node-0", "gpu-0")],
            [member("p", "x", nodeName="node-0")],
            [claim("w", request()), member("w", "w")],
        ),
        1,
    )
    assert not answer.admitted


@pytest.mark.parametrize(
    ("rails", "gone"),
    [(("aa", "a", "b"), 1), (("aa", "b", "bb"), 2), (("aa", "b", "c"), 0)],
)
def test_pods_of_a_group_agree_wherever_they_go(
    rails: tuple[str, ...], gone: int
) -> None:
    running = [
        *(held("x", "node-0", "gpu-0"), held("y", "node-0", "gpu-1")),
        *(member(name, name, nodeName="node-0") for name in ("x", "y")),
    ]
    answer = drain(cluster(railed(*rails), team(), running), "node-0")
    assert (answer.gone, answer.most) == (gone, gone)
    common = "have a constraint in common and do not all fit on other nodes"
    assert (common in str(answer)) is (gone < 2)


def test_no_claim_is_said_to_move_away_from_those_it_agrees_with() -> None:
    first = request("gpu", f"device.attributes['{DRIVER}'].index == 0")
    whole = cluster(
        railed("aba", "b"),
        [team(), held("x", "node-0", "gpu-0"), held("y", "node-0", "gpu-2")],
        [member(name, name, nodeName="node-0") for name in ("x", "y")],
        [held("z", "node-1", "gpu-0"), pod("z", "z", nodeName="node-1")],
        [claim("w", first), pod("w", "w")],
    )
    explanation = explain(whole, pod="default/w")
    assert "move claim default/z" in [
        suggestion.text for suggestion in explanation.suggestions
    ]


def test_nodes_have_to_exist() -> None:
    with pytest.raises(DrallocError, match='node "nope" does not exist'):
        drain(three_nodes(), "nope")
    with pytest.raises(DrallocError, match="needs the name of a node"):
        drain(three_nodes())


def test_one_move_makes_room() -> None:
    objects = [held("x", "node-0", "gpu-0"), held("y", "node-1", "gpu-0")]
    answer = defragment(
        three_nodes(objects, claim("wanted", request(count=2))), 1
    )
    assert [key.name for key in answer.admitted] == ["wanted"]
    assert answer.moves == 1
    assert plan_of(answer)[1] == ("admit", "wanted", plan_of(answer)[1][2])
    assert plan_of(answer)[0][0] == "move"


def test_no_moves_no_room() -> None:
    objects = [held("x", "node-0", "gpu-0"), held("y", "node-1", "gpu-0")]
    answer = defragment(
        three_nodes(objects, claim("wanted", request(count=2))), 0
    )
    assert not answer.admitted
    assert answer.tiers[0].bound == 0


def test_no_more_moves_than_needed() -> None:
    answer = defragment(
        three_nodes(
            held("x", "node-0", "gpu-0"), claim("wanted", request(count=2))
        ),
        3,
    )
    assert [key.name for key in answer.admitted] == ["wanted"]
    assert answer.moves == 0


def test_a_pod_moves_out_of_the_way_of_one_that_is_tied() -> None:
    zoned = cluster(
        device_class(),
        node("node-0"),
        node("node-1", zone="b"),
        [
            resource_slice(gpus(1), name=name, pool=name, nodeName=name)
            for name in ("node-0", "node-1")
        ],
        claim("first", request()),
        pod("p", "first", nodeSelector={"zone": "b"}),
        held("y", "node-1", "gpu-0"),
    )
    assert plan_of(defragment(zoned, 1)) == [
        ("move", "y", "node-0"),
        ("admit", "first", "node-1"),
    ]


def test_who_changes_places_has_to_restart() -> None:
    """The node of the pending pod is full, and who is there finds room only where another one is, and the reverse."""
    zoned = cluster(
        device_class(),
        [node("node-0", zone="a"), node("node-1")],
        [
            resource_slice(gpus(2), name=name, pool=name, nodeName=name)
            for name in ("node-0", "node-1")
        ],
        [
            held("x", "node-0", "gpu-0", "gpu-1"),
            held("y", "node-1", "gpu-0"),
            claim("wanted", request()),
        ],
        pod("p", "wanted", nodeSelector={"zone": "a"}),
    )
    answer = defragment(zoned, 2)
    assert sorted(action for action, *_ in plan_of(answer)) == [
        "admit",
        "move",
        "start",
        "stop",
    ]
    assert (
        answer.itinerary.outcome.restarts,
        answer.itinerary.outcome.fewest,
    ) == (
        1,
        True,
    )
    assert "1 of the moves are restarts" not in str(answer)
    assert "1 move is a restart" in str(answer)
    assert not defragment(zoned, 1).admitted


def test_a_claim_of_a_pending_pod_stays() -> None:
    objects = [
        held("x", "node-0", "gpu-0"),
        held("y", "node-1", "gpu-0"),
        claim("more", request(count=2)),
    ]
    answer = defragment(
        three_nodes(objects, pod("p", "x", "more"), sizes=(2, 2)), 2
    )
    assert not answer.admitted


def test_a_negative_number_of_moves() -> None:
    with pytest.raises(DrallocError, match="--moves -1"):
        defragment(three_nodes(), -1)


@THOROUGH
@given(running_clusters())
def test_draining_random_clusters(whole: Cluster) -> None:
    answer = drain(whole, "node-0")
    migration = answer.itinerary.movable.migration
    assume(answer.claims)
    weight, moves = best_of_all(migration, len(migration.movers))
    values = [tier.value for tier in answer.itinerary.outcome.tiers[:2]]
    assert values == [weight, moves]
    assert answer.gone == values[0]
    assert answer.possible != bool(answer.together)


@THOROUGH
@given(running_clusters(), st.integers(1, 2))
def test_defragmenting_random_clusters(whole: Cluster, moves: int) -> None:
    answer = defragment(whole, moves)
    migration = answer.itinerary.movable.migration
    assume(migration.movers and migration.problem.demands)
    assert answer.tiers[0].value >= answer.before.tiers[0].value
    values = [tier.value for tier in answer.tiers[:2]]
    assert values == list(best_of_all(migration, moves))
