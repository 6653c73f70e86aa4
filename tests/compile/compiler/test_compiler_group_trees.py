"""Groups of groups are admitted as trees (KEP-6012)."""

from __future__ import annotations

from typing import Any

import pytest

import dralloc
from dralloc import Mode
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.features import ALL_FEATURES
from wire import (
    DRIVER,
    Json,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

BOTH = [Mode.FIRST_FIT, Mode.OPTIMAL]


def composite(
    name: str, parent: str = "", *, least: int = 0, near: str = ""
) -> Json:
    policy: Json = (
        {"gang": {"minGroupCount": least}} if least else {"basic": {}}
    )
    return _group("CompositePodGroup", name, parent, policy, near)


def group(
    name: str, parent: str = "", *, least: int = 1, near: str = ""
) -> Json:
    return _group("PodGroup", name, parent, {"gang": {"minCount": least}}, near)


def _group(kind: str, name: str, parent: str, policy: Json, near: str) -> Json:
    spec: Json = {"schedulingPolicy": policy}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    if near:
        spec["schedulingConstraints"] = {"topology": [{"key": near}]}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def members(of: str, count: int, **spec: Any) -> list[Json]:
    """So many pods of a group, each with a claim for one GPU."""
    names = [f"{of}-{index}" for index in range(count)]
    pods = [
        pod(name, name, schedulingGroup={"podGroupName": of}, **spec)
        for name in names
    ]
    return [*pods, *(claim(name, request()) for name in names)]


def nodes(**counts: int) -> list[Json]:
    """Nodes with so many GPUs each, in racks and blocks by the first and the second letter of their names."""
    objects: list[Json] = [device_class()]
    for name, count in counts.items():
        slices = (
            [resource_slice(gpus(count), name=name, pool=name, nodeName=name)]
            if count
            else []
        )
        objects += [node(name, rack=name[:2], block=name[0]), *slices]
    return objects


def placed(
    mode: Mode, *objects: Json | list[Json], **choices: Any
) -> dict[str, str]:
    """The nodes of the placed pods."""
    plan = dralloc.allocate(cluster(*objects), mode, **choices)
    names = plan.compiled.problem
    return {
        names.demands[placement.demand].key.name: names.nodes[
            placement.node
        ].name
        for placement in plan.solution.placements
    }


@pytest.mark.parametrize("mode", Mode)
def test_enough_groups_are_admitted_or_none(mode: Mode) -> None:
    groups = [
        composite("job", least=2),
        *(group(name, "job", least=2) for name in ("p", "q", "r")),
    ]
    pods = [*members("p", 2), *members("q", 2), *members("r", 2)]
    assert placed(mode, nodes(aa=3), groups, pods) == {}
    assert len(placed(mode, nodes(aa=4), groups, pods)) == 4
    assert len(placed(mode, nodes(aa=6), groups, pods)) == 6
    off = ALL_FEATURES.switched({"CompositePodGroup": False})
    assert len(placed(mode, nodes(aa=3), groups, pods, features=off)) == 2


@pytest.mark.parametrize("mode", Mode)
def test_groups_of_a_basic_group_are_independent(mode: Mode) -> None:
    groups = [
        composite("job"),
        group("p", "job", least=2),
        group("q", "job", least=2),
    ]
    assert (
        len(placed(mode, nodes(aa=3), groups, members("p", 2), members("q", 2)))
        == 2
    )


@pytest.mark.parametrize("mode", Mode)
def test_what_is_below_a_group_waits_for_all_levels(mode: Mode) -> None:
    groups = [
        composite("root", least=2),
        composite("left", "root", least=1),
        composite("right", "root", least=1),
    ]
    leaves = [group("p", "left", least=2), group("q", "right", least=2)]
    pods = [*members("p", 2), *members("q", 2)]
    assert placed(mode, nodes(aa=3), groups, leaves, pods) == {}
    assert len(placed(mode, nodes(aa=4), groups, leaves, pods)) == 4


@pytest.mark.parametrize("mode", Mode)
def test_each_level_has_its_domain(mode: Mode) -> None:
    """The job is in one block, each of its groups in one rack."""
    groups = [
        composite("job", least=2, near="block"),
        *(group(name, "job", least=2, near="rack") for name in "pq"),
    ]
    pods = [*members("p", 2), *members("q", 2)]
    assert placed(mode, nodes(aa1=2, ab1=1, ba1=2), groups, pods) == {}
    homes = placed(mode, nodes(aa1=2, ab1=1, ba1=1, ba2=1, bb1=2), groups, pods)
    assert {home[0] for home in homes.values()} == {"b"}
    assert {
        len({home[:2] for name, home in homes.items() if name[0] == group_name})
        for group_name in "pq"
    } == {1}


@pytest.mark.parametrize("mode", Mode)
def test_what_runs_counts_for_its_group_and_holds_the_domain(
    mode: Mode,
) -> None:
    groups = [
        composite("job", least=2, near="block"),
        group("p", "job"),
        group("q", "job", least=2),
    ]
    running = [pod("p-9", schedulingGroup={"podGroupName": "p"}, nodeName="ba")]
    assert (
        len(placed(mode, nodes(aa=2, ba=2), groups, running, members("q", 2)))
        == 2
    )
    assert set(
        placed(
            mode, nodes(aa=3, ba=2), groups, running, members("q", 2)
        ).values()
    ) == {"ba"}
    assert (
        placed(mode, nodes(aa=3, ba=1), groups, running, members("q", 2)) == {}
    )


@pytest.mark.parametrize("mode", BOTH)
def test_groups_that_ask_for_no_devices_are_placed_by_others(
    mode: Mode,
) -> None:
    groups = [composite("job", least=2), group("p", "job"), group("q", "job")]
    plain = pod("p-0", schedulingGroup={"podGroupName": "p"})
    assert list(placed(mode, nodes(aa=1), groups, plain, members("q", 1))) == [
        "q-0"
    ]


@pytest.mark.parametrize(
    ("above", "rule"),
    [
        ([], "the CompositePodGroup default/job was not found"),
        ([composite("job", "job")], "in a circle, or more than 3"),
        (
            [
                composite("job", "a"),
                composite("a", "b"),
                composite("b", "c"),
                composite("c"),
            ],
            "or more than 3",
        ),
    ],
)
def test_trees_that_are_not_in_order_are_not_placed(
    above: list[Json], rule: str
) -> None:
    compiled = compile_cluster(
        cluster(nodes(aa=1), above, group("p", "job"), members("p", 1))
    )
    assert [demand.nodes for demand in compiled.problem.demands] == [()]
    [finding] = [
        finding
        for finding in compiled.findings
        if finding.subject == "PodGroup default/p"
    ]
    assert finding.path == "spec.parentCompositePodGroupName"
    assert rule in finding.rule


@pytest.mark.parametrize("mode", Mode)
def test_groups_of_a_group_are_in_one_domain(mode: Mode) -> None:
    """Each alone would do without the other's rack; of racks with room for both, the scheduler takes any."""
    groups = [
        composite("job", least=2, near="rack"),
        group("p", "job"),
        group("q", "job"),
    ]
    pods = [*members("p", 1), *members("q", 1)]
    assert placed(mode, nodes(aa=1, ba=1), groups, pods) == {}
    assert set(placed(mode, nodes(aa=1, ba=2), groups, pods).values()) == {"ba"}


def test_the_scheduler_takes_the_domain_where_most_pods_fit() -> None:
    groups = [
        composite("job", near="rack"),
        group("p", "job"),
        group("q", "job"),
    ]
    for seed in range(4):
        homes = placed(
            Mode.SCHEDULER,
            nodes(aa=2, ba=3, ca=1),
            groups,
            members("p", 2),
            members("q", 2),
            seed=seed,
        )
        assert sorted(homes.values()) == ["ba"] * 3


def test_without_a_domain_for_a_group_of_groups_the_scheduler_says_so() -> None:
    groups = [composite("job", near="row"), group("p", "job")]
    plan = dralloc.allocate(
        cluster(nodes(aa=1), groups, members("p", 1)), Mode.SCHEDULER
    )
    assert [unplaced.reason for unplaced in plan.unplaced] == [
        "no feasible placements found"
    ]


@pytest.mark.parametrize(("least", "pod_count"), [(1, 1), (2, 0)])
def test_the_scheduler_gives_back_what_too_few_groups_have(
    least: int, pod_count: int
) -> None:
    groups = [
        composite("job", least=least),
        composite("lower", "job", least=2),
        group("p", "job"),
        *(group(name, "lower", least=2) for name in ("q", "r")),
    ]
    pods = [*members("p", 1), *members("q", 2), *members("r", 2)]
    plan = dralloc.allocate(cluster(nodes(aa=4), groups, pods), "scheduler")
    assert len(plan.solution.placements) == pod_count
    said = {str(error) for error in plan.solution.errors.values()}
    assert (
        f"too few of the groups of CompositePodGroup default/{'lower' if least == 1 else 'job'} fit together"
        in said
    )
    assert (
        len(
            dralloc.allocate(
                cluster(nodes(aa=5), groups, pods), "scheduler"
            ).solution.placements
        )
        == 5
    )


def test_explanations_tell_that_the_tree_does_not_fit() -> None:
    groups = [
        composite("job", least=2),
        group("p", "job"),
        group("q", "job", least=2),
    ]
    objects = cluster(nodes(aa=2), groups, members("p", 1), members("q", 2))
    told = dralloc.explain(objects, pod="default/p-0")
    assert told.node == ""
    said = "too few of the groups of CompositePodGroup default/job fit together: gang default/q does not"
    assert f"{said} (explain default/q-0)" in " ".join(str(told).split())
    blocked = str(dralloc.explain(objects, pod="default/q-0"))
    assert "default/q-1 of the gang fits on no node at its turn" in blocked
    assert (
        dralloc.explain(objects, pod="default/p-0", mode="optimal").node == ""
    )


@pytest.mark.parametrize(("least", "victims"), [(2, 3), (1, 1)])
def test_victims_make_room_for_a_tree_of_groups(
    least: int, victims: int
) -> None:
    groups = [
        composite("job", least=least),
        group("p", "job"),
        group("q", "job", least=2),
    ]
    names = [f"old-{index}" for index in range(4)]
    old = [pod(name, name, nodeName="aa", priority=1) for name in names]
    held = [
        claim(name, request(), status=held_by(name, f"gpu-{n}"))
        for n, name in enumerate(names)
    ]
    objects = cluster(
        nodes(aa=4),
        groups,
        members("p", 1, priority=9),
        members("q", 2, priority=9),
        old,
        held,
    )
    preemption = dralloc.preempt(objects, pod="default/p-0")
    assert preemption.exact
    assert len(preemption.victims) == victims
    assert len(preemption.asked) == victims
    assert not preemption.upstream.admits


def held_by(user: str, device: str) -> Json:
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": "aa", "device": device}
    ]
    reserved = [{"resource": "pods", "name": user, "uid": user}]
    return {
        "allocation": {"devices": {"results": results}},
        "reservedFor": reserved,
    }


def leading(of: str, **spec: Any) -> Json:
    """A pod of a group that asks for no devices."""
    return pod(f"{of}-leader", schedulingGroup={"podGroupName": of}, **spec)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("priority", [0, 5])
def test_a_member_without_devices_is_in_the_tree_too(
    mode: Mode, priority: int
) -> None:
    """The job needs two groups, of which there is one; its leader comes first or not."""
    groups = [composite("job", least=2), group("p", "job", least=2)]
    pods = [leading("p", priority=priority), *members("p", 1)]
    assert placed(mode, nodes(aa=1), groups, pods) == {}
    enough = [group("q", "job"), leading("q")]
    assert list(placed(mode, nodes(aa=1), groups, enough, pods)) == ["p-0"]


@pytest.mark.parametrize("mode", Mode)
def test_a_group_without_devices_that_lacks_pods_counts_for_nothing(
    mode: Mode,
) -> None:
    groups = [
        composite("job", least=2),
        group("p", "job"),
        group("q", "job", least=2),
    ]
    assert (
        placed(mode, nodes(aa=1), groups, members("p", 1), leading("q")) == {}
    )


def test_the_scheduler_takes_groups_as_they_were_made() -> None:
    """The GPU is enough for one of the groups: for the one that was made first, whatever their pods say."""
    groups = [composite("job"), group("late", "job"), group("early", "job")]
    for group_object, made in zip(
        groups[1:],
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"),
        strict=True,
    ):
        group_object["metadata"]["creationTimestamp"] = made
    assert list(
        placed(
            Mode.SCHEDULER,
            nodes(aa=1),
            groups,
            members("late", 1),
            members("early", 1),
        )
    ) == ["early-0"]


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ([], "the CompositePodGroup default/job was not found"),
        ([composite("job", "job")], "in a circle, or more than 3"),
        (
            [composite("job", least=2)],
            "waiting for enough groups of CompositePodGroup default/job",
        ),
    ],
)
def test_the_scheduler_holds_back_pods_of_trees_that_cannot_be_admitted(
    above: list[Json], said: str
) -> None:
    plan = dralloc.allocate(
        cluster(nodes(aa=1), above, group("p", "job"), members("p", 1)),
        Mode.SCHEDULER,
    )
    assert [said in unplaced.reason for unplaced in plan.unplaced] == [True]


def test_groups_of_groups_have_no_domain_if_the_feature_is_off() -> None:
    groups = [
        composite("job", least=2, near="rack"),
        group("p", "job"),
        group("q", "job"),
    ]
    pods = [*members("p", 1), *members("q", 1)]
    off = ALL_FEATURES.switched({"TopologyAwareWorkloadScheduling": False})
    assert placed(Mode.OPTIMAL, nodes(aa=1, ba=1), groups, pods) == {}
    assert (
        len(placed(Mode.OPTIMAL, nodes(aa=1, ba=1), groups, pods, features=off))
        == 2
    )
