"""Conflicts and suggestions on clusters that fit on a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dralloc
from dralloc.ask.context.offers import split
from dralloc.ask.explain import Explanation, explain
from dralloc.ask.explain.explainer import Explainer
from dralloc.ask.explain.snapshot import find_demand
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load
from dralloc.objects.names import ClaimKey
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

MODEL = f"device.attributes['{DRIVER}'].model"


def one_node(
    *objects: Json | list[Json], devices: list[Json] | None = None
) -> Cluster:
    return cluster(
        node(),
        device_class(),
        resource_slice(gpus(2) if devices is None else devices),
        *objects,
    )


def rules(explanation: Explanation) -> set[str]:
    assert explanation.conflict is not None
    return {member.title for member in explanation.conflict.members}


def changes(explanation: Explanation) -> list[str]:
    return [suggestion.text for suggestion in explanation.suggestions]


@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.OPTIMAL])
def test_too_many_devices(mode: Mode) -> None:
    explanation = explain(
        one_node(claim("wanted", request(count=3))), "default/wanted", mode=mode
    )
    assert rules(explanation) == {"claim default/wanted, request gpu"}
    assert changes(explanation) == [
        "claim default/wanted, request gpu: ask for 2 devices in place of 3"
    ]


def test_a_clause_of_a_selector() -> None:
    devices = [device("gpu-0", {"model": "a"})]
    whole = f"device.driver == '{DRIVER}' && {MODEL} == 'b'"
    wanted = claim("wanted", request("gpu", whole))
    explanation = explain(one_node(wanted, devices=devices), "default/wanted")
    clause = f"claim default/wanted, request gpu, {MODEL} == 'b' (part of selector {whole})"
    assert rules(explanation) == {"claim default/wanted, request gpu", clause}
    assert changes(explanation) == [f"drop {clause}"]


def test_a_taint_and_a_cordoned_node() -> None:
    taint = {"key": "broken", "value": "", "effect": "NoSchedule"}
    explanation = explain(
        cluster(
            node("node-0"),
            {**node("node-1"), "spec": {"unschedulable": True}},
            device_class(),
            resource_slice(
                gpus(1, taints=[taint]), name="a", pool="a", nodeName="node-0"
            ),
            resource_slice(gpus(1), name="b", pool="b", nodeName="node-1"),
            claim("wanted", request()),
        ),
        "default/wanted",
    )
    cordoned = "node is cordoned (spec.unschedulable)"
    assert rules(explanation) == {
        "claim default/wanted, request gpu",
        "taint broken:NoSchedule",
        cordoned,
    }
    assert changes(explanation) == [
        "tolerate taint broken:NoSchedule",
        f"lift {cordoned}",
        "add a node like node-1",
    ]


def test_a_constraint() -> None:
    devices = [device("gpu-0", {"numa": 0}), device("gpu-1", {"numa": 1})]
    wanted = claim(
        "wanted",
        request(count=2),
        constraints=[{"matchAttribute": f"{DRIVER}/numa"}],
    )
    explanation = explain(one_node(wanted, devices=devices), "default/wanted")
    constraint = (
        f"claim default/wanted, constraint #0: matchAttribute {DRIVER}/numa"
    )
    assert rules(explanation) == {
        "claim default/wanted, request gpu",
        constraint,
    }
    assert f"drop {constraint}" in changes(explanation)


def test_a_counter_with_who_holds_it() -> None:
    partitions = [
        device(f"gpu-{index}", consumesCounters=consumes("card", memory="30Gi"))
        for index in range(2)
    ]
    explanation = explain(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="40Gi")],
            ),
            resource_slice(partitions, count=2),
            allocated("held", {"device": "gpu-0"}),
            claim("wanted", request()),
        ),
        "default/wanted",
    )
    assert rules(explanation) == {
        "claim default/wanted, request gpu",
        f"counter memory of {DRIVER}",
        "allocated claim default/held",
    }
    assert explanation.conflict is not None
    details = {
        member.title: member.detail for member in explanation.conflict.members
    }
    assert (
        details[f"counter memory of {DRIVER}"]
        == "10Gi free of 40Gi, held by default/held 30Gi"
    )


def test_what_is_drawn_from_one_counter_always_and_by_request_is_added() -> (
    None
):
    memory = {"value": "15Gi", "valueFrom": {"capacityKey": "memory"}}
    drawing = device(
        "vf",
        consumesCounters=[
            {"counterSet": "card", "counters": {"memory": memory}}
        ],
    )
    explanation = explain(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="40Gi")],
            ),
            resource_slice(
                [
                    device(
                        "part", consumesCounters=consumes("card", memory="20Gi")
                    ),
                    drawing,
                ],
                count=2,
            ),
            allocated("held", {"device": "part"}),
            claim("wanted", request(capacity={"requests": {"memory": "10Gi"}})),
        ),
        "default/wanted",
    )
    assert "allocated claim default/held" in rules(explanation)
    assert "release claim default/held (priority 0)" in changes(explanation)


def test_who_overdraws_a_counter_of_the_group_is_released() -> None:
    explanation = explain(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[
                    counters("card", memory="40Gi"),
                    counters("links", lanes="1"),
                ],
            ),
            resource_slice(
                [
                    device(
                        "wide", consumesCounters=consumes("links", lanes="2")
                    ),
                    device(
                        "part", consumesCounters=consumes("card", memory="20Gi")
                    ),
                ],
                count=2,
            ),
            allocated("held", {"device": "wide"}),
            claim("wanted", request()),
        ),
        "default/wanted",
    )
    assert "release claim default/held (priority 0)" in changes(explanation)


def test_who_leaves_too_little_for_two_devices_is_released() -> None:
    devices = [
        device(
            "small",
            {"model": "small"},
            consumesCounters=consumes("card", memory="5Gi"),
        )
    ]
    large = consumes("card", memory="10Gi")
    devices += [
        device(f"part-{index}", {"model": "large"}, consumesCounters=large)
        for index in range(2)
    ]
    explanation = explain(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="20Gi")],
            ),
            resource_slice(devices, count=2),
            allocated("held", {"device": "small"}),
            claim("wanted", request("gpu", f"{MODEL} == 'large'", count=2)),
        ),
        "default/wanted",
    )
    assert "release claim default/held (priority 0)" in changes(explanation)


def test_compatibility_groups_with_who_uses_the_counter_set() -> None:
    def grouped(name: str, group: str) -> Json:
        (use,) = consumes("card", memory="1Gi")
        return device(
            name, consumesCounters=[{**use, "compatibilityGroups": [group]}]
        )

    explanation = explain(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="40Gi")],
            ),
            resource_slice(
                [grouped("mig-0", "mig"), grouped("vgpu-0", "vgpu")], count=2
            ),
            allocated("held", {"device": "mig-0"}),
            claim("wanted", request()),
        ),
        "default/wanted",
    )
    assert rules(explanation) == {
        "claim default/wanted, request gpu",
        f"compatibility groups of devices of {DRIVER}",
        "allocated claim default/held",
    }
    assert "release claim default/held (priority 0)" in changes(explanation)


def test_a_claim_moves_out_of_the_way() -> None:
    explanation = explain(
        cluster(
            node("node-0"),
            node("node-1"),
            device_class(),
            resource_slice(gpus(2), name="a", pool="a", nodeName="node-0"),
            resource_slice(gpus(1), name="b", pool="b", nodeName="node-1"),
            allocated("held", {"device": "gpu-1", "pool": "a"}),
            claim("wanted", request(count=2)),
        ),
        "default/wanted",
    )
    moves = [
        suggestion
        for suggestion in explanation.suggestions
        if suggestion.text.startswith("move")
    ]
    assert [(move.text, move.outcome) for move in moves] == [
        (
            "move claim default/held",
            "fits on node-0; default/held goes to node-1",
        )
    ]
    assert "release claim default/held (priority 0)" in changes(explanation)


@pytest.mark.parametrize(
    ("low", "high"), [("gpu-0", "gpu-1"), ("gpu-1", "gpu-0")]
)
def test_the_lowest_priority_is_released(low: str, high: str) -> None:
    held = [
        allocated("low", {"device": low}),
        allocated("high", {"device": high}),
    ]
    users = [
        pod("user-low", "low", priority=1, nodeName="node-0"),
        pod("user-high", "high", priority=9),
    ]
    explanation = explain(
        one_node(held, users, claim("wanted", request())), "default/wanted"
    )
    assert "release claim default/low (priority 1)" in changes(explanation)
    assert not any("default/high" in text for text in changes(explanation))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=2, max_size=3),
        min_size=1,
        max_size=2,
    ),
    st.integers(1, 2),
)
def test_no_release_costs_less_priority(
    nodes: list[list[int]], count: int
) -> None:
    """Nodes full of pods with these priorities, in the order of their devices."""
    objects: list[Json] = [device_class()]
    for index, priorities in enumerate(nodes):
        name = f"node-{index}"
        objects += [
            node(name),
            resource_slice(
                gpus(len(priorities)), name=name, pool=name, nodeName=name
            ),
        ]
        for position, priority in enumerate(priorities):
            holder = f"h{index}-{position}"
            objects += [
                allocated(holder, {"device": f"gpu-{position}", "pool": name}),
                pod(holder, holder, priority=priority, nodeName=name),
            ]
    wanted = claim("wanted", request(count=count))
    explanation = explain(cluster(objects, wanted), "default/wanted")
    costs = [
        int(text.rstrip(")").rpartition(" ")[2])
        for text in changes(explanation)
        if text.startswith("release")
    ]
    assert min(costs) == min(
        sorted(priorities)[count - 1] for priorities in nodes
    )


def test_a_smaller_amount() -> None:
    shared = gpus(
        1, allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}}
    )
    held = allocated(
        "held",
        {
            "device": "gpu-0",
            "shareID": "a",
            "consumedCapacity": {"memory": "4Gi"},
        },
    )
    wanted = claim("wanted", request(capacity={"requests": {"memory": "8Gi"}}))
    explanation = explain(
        one_node(held, wanted, devices=shared), "default/wanted"
    )
    assert (
        changes(explanation)[0]
        == "claim default/wanted, request gpu: ask for 6Gi of memory in place of 8Gi"
    )
    assert "claim default/wanted, request gpu, capacity memory: 8Gi" in rules(
        explanation
    )


@pytest.mark.parametrize(
    ("policy", "asked", "smaller"),
    [
        ({"default": "4", "validValues": ["4", "8"]}, "8", "4"),
        ({"default": "1", "validRange": {"min": "1", "step": "3"}}, "6", "4"),
        ({"default": "6", "validRange": {"min": "6"}}, "8", None),
    ],
)
def test_a_smaller_amount_that_the_request_policy_grants(
    policy: Json, asked: str, smaller: str | None
) -> None:
    """What is left, 5, would be rounded up to more than that."""
    memory = {"memory": {"value": "10", "requestPolicy": policy}}
    shared = gpus(1, allowMultipleAllocations=True, capacity=memory)
    share = {"shareID": "a", "consumedCapacity": {"memory": "5"}}
    held = allocated("held", {"device": "gpu-0", **share})
    wanted = claim("wanted", request(capacity={"requests": {"memory": asked}}))
    explanation = explain(
        one_node(held, wanted, devices=shared), "default/wanted"
    )
    suggested = [text for text in changes(explanation) if "ask for" in text]
    expected = f"claim default/wanted, request gpu: ask for {smaller} of memory in place of {asked}"
    assert suggested == ([expected] if smaller else [])


def test_a_smaller_amount_where_fairness_knows_no_cap() -> None:
    memory = {"memory": {"value": "10"}}
    shared = gpus(1, allowMultipleAllocations=True, capacity=memory)
    wanted = claim("wanted", request(capacity={"requests": {"memory": "12"}}))
    explanation = explain(
        one_node(wanted, devices=shared),
        "default/wanted",
        mode=Mode.OPTIMAL,
        fair="memory",
    )
    assert changes(explanation) == [
        "claim default/wanted, request gpu: ask for 10 of memory in place of 12"
    ]


def test_what_another_claim_asks_for() -> None:
    devices = [device("gpu-0", {"model": "a"}), device("gpu-1", {"model": "a"})]
    other = claim("other", request("gpu", f"{MODEL} == 'a'"))
    wanted = claim("wanted", request("gpu", f"{MODEL} == 'b'"))
    explanation = explain(
        one_node(other, wanted, devices=devices), "default/wanted"
    )
    assert any(
        "ask as claim default/other does (class gpu" in text
        for text in changes(explanation)
    )


def test_a_network_adapter_of_the_same_driver_is_no_substitute() -> None:
    """A driver publishes GPUs and adapters; who asks for another model of GPU is not told to ask for an adapter."""
    devices = [
        device(name, {"model": model})
        for name, model in zip("abcd", "aaxx", strict=True)
    ]
    explanation = explain(
        cluster(
            node(),
            device_class("gpu", f"{MODEL} != 'x'"),
            device_class("nic", f"{MODEL} == 'x'"),
            resource_slice(devices),
            claim("adapter", request("nic", device_class="nic")),
            claim("any", request("gpu")),
            claim("wanted", request("gpu", f"{MODEL} == 'b'")),
        ),
        "default/wanted",
    )
    asked_instead = [
        text for text in changes(explanation) if "ask as claim" in text
    ]
    assert ["claim default/any does" in text for text in asked_instead] == [
        True
    ]


def test_no_nodes_at_all() -> None:
    explanation = explain(
        cluster(device_class(), claim("wanted", request())), "default/wanted"
    )
    assert explanation.conflict is not None
    assert not explanation.conflict.members
    assert "No node could take it" in str(explanation)


def test_what_the_optimum_leaves_out_competes() -> None:
    first, second = (
        pod("first", "a", priority=5),
        pod("second", "b", priority=1),
    )
    claims = [claim("a", request(count=2)), claim("b", request())]
    explanation = explain(
        one_node(claims, first, second), pod="default/second", mode=Mode.OPTIMAL
    )
    assert rules(explanation) == {
        "claim default/b, request gpu",
        "placed claim default/a",
    }
    assert explanation.competition is not None
    assert explanation.competition.possible
    assert [str(key) for key in explanation.competition.displaced] == [
        "default/first"
    ]
    assert (explanation.competition.weight, explanation.competition.best) == (
        1,
        2,
    )


def test_what_is_impossible_does_not_compete() -> None:
    claims = [claim("a", request()), claim("b", request(count=3))]
    explanation = explain(one_node(claims), "default/b", mode=Mode.OPTIMAL)
    assert explanation.competition is not None
    assert not explanation.competition.possible


def test_a_member_competes_with_others_of_its_gang() -> None:
    members = [pod(f"member-{index}", f"claim-{index}") for index in range(3)]
    for member in members:
        member["spec"]["schedulingGroup"] = {"podGroupName": "pair"}
    pair = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "pair", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    claims = [claim(f"claim-{index}", request()) for index in range(3)]
    explanation = explain(
        one_node(pair, claims, members),
        pod="default/member-2",
        mode=Mode.OPTIMAL,
    )
    assert explanation.competition is not None
    assert explanation.competition.possible
    assert len(explanation.competition.displaced) == 1


def test_an_error_is_no_conflict_of_the_model() -> None:
    explanation = explain(
        one_node(
            claim("wanted", request("gpu", f"{MODEL} == 'a'")),
            devices=[device("gpu-0"), device("gpu-1", {"model": "a"})],
        ),
        "default/wanted",
    )
    assert explanation.conflict is None
    assert explanation.remarks == (
        "Only an error is in its way: the optimal mode, which leaves failing devices out, would place it.",
    )


def test_what_the_search_did_not_get_to_has_nothing_in_its_way() -> None:
    """As if a time limit had ended the search with one of two claims placed."""
    plan = dralloc.allocate(
        one_node(claim("first", request()), claim("wanted", request()))
    )
    unfinished = replace(
        plan.solution,
        placements=tuple(
            placement
            for placement in plan.solution.placements
            if plan.demands[placement.demand].key.name == "first"
        ),
    )
    wanted = find_demand(plan.compiled, ClaimKey("default", "wanted"), None)
    explanation = Explainer(
        plan.compiled, wanted, Mode.OPTIMAL, Choices()
    ).of_optimum(unfinished, {}, suggest=True)
    assert explanation.conflict is None
    assert explanation.remarks == (
        "It would fit beside all that is placed: the search ended, as at a time limit, before it was placed.",
    )
    assert not explanation.suggestions


def two_for_one_card() -> dralloc.Cluster:
    """Two claims for one card, of which the second one is left out."""
    return one_node(
        claim("first", request()),
        claim("wanted", request()),
        devices=[device("gpu-0")],
    )


def test_all_searches_together_have_the_time_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: dict[str, list[float | None]] = {"explanation": [], "oracle": []}
    for name, seen in limits.items():
        module = import_module(f"dralloc.ask.explain.{name}")

        def solved(
            problem: Problem,
            options: Options,
            *others: Any,
            seen: list[float | None] = seen,
            **words: Any,
        ) -> Solution:
            seen.append(options.time_limit)
            return solve(problem, options, *others, **words)

        monkeypatch.setattr(module, "solve", solved)
    explanation = dralloc.explain(
        two_for_one_card(),
        claim="default/wanted",
        mode="optimal",
        time_limit=60,
    )
    assert explanation.competition is not None
    assert explanation.conflict is not None
    [competing] = limits["explanation"]
    assert competing is not None
    assert competing < 60
    assert limits["oracle"]
    assert all(limit is not None and limit < 62 for limit in limits["oracle"])


def test_without_time_nothing_is_said_to_be_in_the_way() -> None:
    plan = dralloc.allocate(two_for_one_card())
    wanted = find_demand(plan.compiled, ClaimKey("default", "wanted"), None)
    explanation = Explainer(
        plan.compiled,
        wanted,
        Mode.OPTIMAL,
        Choices(time_limit=1),
        stop=Stop(end=-60),
    ).of_optimum(plan.solution, {}, suggest=True)
    assert explanation.conflict is None
    assert not explanation.suggestions
    assert explanation.remarks == (
        "The time was over before it was known what is in its way.",
    )


def test_changes_that_are_found_in_time_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if time was over when nodes to add are looked for."""
    module = import_module("dralloc.ask.explain.suggestions")

    def ended(_: object) -> Iterator[str]:
        return Stop(end=-60).each(["not seen any more"])

    monkeypatch.setattr(module, "added_nodes", ended)
    wanted = claim("wanted", request(count=3))
    explanation = explain(one_node(wanted), "default/wanted", mode="optimal")
    assert changes(explanation) == [
        "claim default/wanted, request gpu: ask for 2 devices in place of 3"
    ]


def test_first_fit_on_mig(root) -> None:  # type: ignore[no-untyped-def]
    explanation = explain(
        load(root / "models/h100-mig-smallest"), pod="default/large"
    )
    assert rules(explanation) == {
        "claim default/large, request mig",
        "claim default/large, request mig, selector device.attributes['gpu.nvidia.com'].profile == '4g.40gb'",
        "counter memory-slice-0 of gpu.nvidia.com",
        "placed claim default/small",
    }
    assert changes(explanation)[-1] == "add a node like h100"


@pytest.mark.parametrize(
    ("expression", "clauses"),
    [
        ("a", ("a",)),
        ("true && false", ("true", "false")),
        (
            "true && (false || true) && true",
            ("true", "(false || true)", "true"),
        ),
        ("true || false && true", ("true || false && true",)),
        ("true ? true && false : true", ("true ? true && false : true",)),
        (
            "device.driver == ' && ' && true",
            ("device.driver == ' && '", "true"),
        ),
        (
            'device.driver == "a\\"&&" && true',
            ('device.driver == "a\\"&&"', "true"),
        ),
        ("device.driver == r'\\' && true", ("device.driver == r'\\'", "true")),
        ("true // && x\n && false", ("true // && x", "false")),
        (
            "[true && false].all(x, x && true) && true",
            ("[true && false].all(x, x && true)", "true"),
        ),
        ("true && nonsense", ("true && nonsense",)),
    ],
)
def test_a_conjunction_is_split(
    expression: str, clauses: tuple[str, ...]
) -> None:
    assert split(expression) == clauses
