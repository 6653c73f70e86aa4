"""What keeps a pod off a node, in the scheduler's words."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from dralloc.solve.scheduler import Profile
from scheduling_wire import AMPLE, attempt, feasible, node, pod

NOT_HELPFUL = (
    "no new claims to deallocate, preemption: 0/{n} nodes are available: "
    "{n} Preemption is not helpful for scheduling."
)


def anti_affinity(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "zone"}
    return {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        }
    }


def affinity(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "zone"}
    return {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        }
    }


def spread(skew: int = 1, **labels: str) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]


def test_a_cordoned_node_takes_no_pods() -> None:
    outcome = attempt(node("a", unschedulable=True), pod("pod"))
    assert (
        outcome.message
        == f"0/1 nodes are available: 1 node(s) were unschedulable. {NOT_HELPFUL.format(n=1)}"
    )


def test_who_tolerates_cordoned_nodes_may_go_there() -> None:
    toleration = {
        "key": "node.kubernetes.io/unschedulable",
        "operator": "Exists",
    }
    assert feasible(
        attempt(
            node("a", unschedulable=True), pod("pod", tolerations=[toleration])
        )
    ) == ["a"]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "level", "value": "5"}, True),
        ({"key": "level", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "level", "value": "5", "effect": "NoExecute"}, False),
        ({"key": "level", "value": "6"}, False),
        ({"key": "level", "operator": "Gt", "value": "4"}, True),
        ({"key": "level", "operator": "Lt", "value": "4"}, False),
        ({"key": "level", "operator": "Gt", "value": "high"}, False),
    ],
)
def test_a_toleration_is_for_key_value_and_effect(
    toleration: dict[str, str], tolerated: bool
) -> None:
    taint = {"key": "level", "value": "5", "effect": "NoSchedule"}
    outcome = attempt(
        node("a", taints=[taint]), pod("pod", tolerations=[toleration])
    )
    assert bool(outcome.feasible) == tolerated
    assert (
        "1 node(s) had untolerated taint(s)" in outcome.message
    ) != tolerated


def test_a_pod_goes_where_its_selector_says() -> None:
    outcome = attempt(
        node("a"),
        node("b", labels={"disk": "fast"}),
        pod("pod", nodeSelector={"disk": "fast"}),
    )
    assert feasible(outcome) == ["b"]
    assert [rejection.reasons for rejection in outcome.rejected.values()] == [
        ("node(s) didn't match Pod's node affinity/selector",)
    ]


def test_a_pod_that_names_nodes_looks_at_no_others() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": terms
        }
    }
    outcome = attempt(node("a"), node("b"), pod("pod", affinity=required))
    reason = "2 node(s) didn't satisfy plugin(s) [NodeAffinity]"
    assert (
        outcome.message
        == f"0/2 nodes are available: {reason}. {NOT_HELPFUL.format(n=2)}"
    )


def test_a_port_is_taken_once_on_an_address() -> None:
    def serving(name: str, address: str, **more: Any) -> dict[str, Any]:
        return pod(
            name,
            container={"ports": [{"hostPort": 80, "hostIP": address}]},
            **more,
        )

    objects = [
        node("a"),
        node("b"),
        node("c"),
        serving("x", "10.0.0.1", on="a"),
        serving("y", "", on="b"),
    ]
    assert feasible(attempt(objects, serving("pod", "10.0.0.2"))) == ["a", "c"]
    assert feasible(attempt(objects, serving("pod", ""))) == ["c"]


def test_all_that_is_lacking_is_listed() -> None:
    small = node("a", {"cpu": "1", "memory": "1Gi", "pods": "1"})
    outcome = attempt(
        small,
        pod("there", on="a"),
        pod("pod", requests={"cpu": "2", "memory": "500Mi", "x.com/y": "1"}),
    )
    reasons = "1 Insufficient cpu, 1 Insufficient x.com/y, 1 Too many pods"
    assert (
        outcome.message
        == f"0/1 nodes are available: {reasons}. {NOT_HELPFUL.format(n=1)}"
    )


def test_a_node_that_does_not_say_what_it_has_limits_nothing() -> None:
    assert feasible(
        attempt(node("a", {}), pod("pod", requests={"cpu": "1000"}))
    ) == ["a"]


def test_ignored_resources_are_not_looked_at() -> None:
    profile = Profile(ignored_groups=frozenset({"x.com"}))
    assert feasible(
        attempt(
            node("a"), pod("pod", requests={"x.com/y": "1"}), profile=profile
        )
    ) == ["a"]


@pytest.mark.parametrize("resource", ["cpu", "hugepages-2Mi"])
def test_only_extended_resources_can_be_ignored(resource: str) -> None:
    listed = frozenset({resource})
    profile = Profile(ignored_resources=listed, ignored_groups=listed)
    large = pod("pod", requests={resource: "9"})
    assert feasible(attempt(node("a"), large, profile=profile)) == []


def test_pods_keep_away_from_each_other_in_both_directions() -> None:
    nodes = [node(name, labels={"zone": name}) for name in "abc"]
    loner = pod(
        "loner",
        on="a",
        labels={"app": "loner"},
        affinity=anti_affinity(app="web"),
    )
    other = pod("other", on="b", labels={"app": "db"})
    outcome = attempt(
        nodes,
        loner,
        other,
        pod("pod", labels={"app": "web"}, affinity=anti_affinity(app="db")),
    )
    assert feasible(outcome) == ["c"]
    assert [
        rejection.reasons[0] for rejection in outcome.rejected.values()
    ] == [
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "node(s) didn't match pod anti-affinity rules",
    ]


def test_a_node_without_a_label_is_in_no_domain_of_its_empty_value() -> None:
    """As labels of roles have it, whose values are empty."""
    nodes = [node("a", labels={"zone": ""}), node("b")]
    loner = pod("loner", on="a", affinity=anti_affinity(app="web"))
    web = pod("pod", labels={"app": "web"})
    assert feasible(attempt(nodes, loner, web)) == ["b"]
    there = pod("there", on="a", labels={"app": "web"})
    shy = pod("pod", affinity=anti_affinity(app="web"))
    assert feasible(attempt(nodes, there, shy)) == ["b"]


def test_pods_go_near_to_others_and_the_first_of_a_sort_anywhere() -> None:
    nodes = [
        node("a", labels={"zone": "1"}),
        node("b", labels={"zone": "1"}),
        node("c", labels={"zone": "2"}),
        node("d"),
    ]
    friend = pod("friend", on="a", labels={"app": "web"})
    assert feasible(
        attempt(nodes, friend, pod("pod", affinity=affinity(app="web")))
    ) == ["a", "b"]
    assert (
        feasible(attempt(nodes, pod("pod", affinity=affinity(app="web")))) == []
    )
    itself = pod("pod", labels={"app": "web"}, affinity=affinity(app="web"))
    assert feasible(attempt(nodes, itself)) == ["a", "b", "c"]


def test_pods_are_spread_over_zones() -> None:
    nodes = [
        node("a", labels={"zone": "1"}),
        node("b", labels={"zone": "2"}),
        node("c"),
    ]
    there = pod("there", on="a", labels={"app": "web"})
    outcome = attempt(
        nodes,
        there,
        pod(
            "pod",
            labels={"app": "web"},
            topologySpreadConstraints=spread(app="web"),
        ),
    )
    assert feasible(outcome) == ["b"]
    assert [
        rejection.reasons[0] for rejection in outcome.rejected.values()
    ] == [
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ]


def test_too_few_domains_count_as_empty_ones() -> None:
    constraint = {**spread(app="web")[0], "minDomains": 3}
    nodes = [node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"})]
    there = [
        pod("x", on="a", labels={"app": "web"}),
        pod("y", on="b", labels={"app": "web"}),
    ]
    wanted = pod(
        "pod", labels={"app": "web"}, topologySpreadConstraints=[constraint]
    )
    assert feasible(attempt(nodes, there, wanted)) == []


def test_a_class_that_does_not_exist_is_named() -> None:
    outcome = attempt(
        node("a"), wire.claim("claim", wire.request()), wire.pod("pod", "claim")
    )
    reason = "request gpu: device class gpu does not exist"
    claims = "no new claims to deallocate"
    after = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    assert (
        outcome.message
        == f"0/1 nodes are available: {reason}. {claims}, {after}"
    )


def test_preemption_says_whether_somebody_could_make_room() -> None:
    host = node("a", {**AMPLE, "pods": "1"})
    alike = attempt(host, pod("there", on="a"), pod("pod"))
    assert alike.message.endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    higher = attempt(host, pod("there", on="a"), pod("pod", priority=1))
    assert higher.message == "0/1 nodes are available: 1 Too many pods."
    hopeless = attempt(
        host,
        pod("there", on="a"),
        pod("pod", priority=1, requests={"cpu": "9"}),
    )
    assert hopeless.message.endswith(
        "1 Preemption is not helpful for scheduling."
    )
    never = attempt(
        host,
        pod("there", on="a"),
        pod("pod", priority=1, preemptionPolicy="Never"),
    )
    assert never.message.endswith(
        "preemption: not eligible due to preemptionPolicy=Never."
    )
