"""Why a gang is pending although its members would fit alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import dralloc
from dralloc.ask.explain import Explanation
from dralloc.ask.explain.explainer import Explainer
from dralloc.ask.explain.snapshot import find_demand
from dralloc.objects.choices import Choices, Mode, ModeName
from dralloc.objects.names import ClaimKey
from wire import (
    Json,
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


def gang(workers: int, *objects: Json, cards: int = 4) -> dralloc.Cluster:
    """Cards that draw on 1Gi of memory each and can be cut in two slots each, and a gang that wants one card each."""
    draws = consumes("set", memory="1Gi", slots="2")
    devices = [
        device(f"card-{card}", consumesCounters=draws) for card in range(cards)
    ]
    amounts = {"memory": f"{cards}Gi", "slots": str(2 * cards)}
    sets = resource_slice(
        name="sets", count=2, sharedCounters=[counters("set", **amounts)]
    )
    whole: list[Json] = [
        node(),
        device_class(),
        sets,
        resource_slice(devices, count=2),
        *objects,
    ]
    for worker in range(workers):
        member = pod(f"worker-{worker}", f"worker-{worker}")
        member["metadata"]["labels"] = {"job": "train"}
        whole += [claim(f"worker-{worker}", request()), member]
    return cluster(whole)


def why(whole: dralloc.Cluster, **options: Any) -> Explanation:
    return dralloc.explain(
        whole, pod="default/worker-0", mode="optimal", gang="job", **options
    )


def placed(whole: dralloc.Cluster, *caps: str) -> int:
    return dralloc.allocate(whole, gang="job", caps=caps).metrics.placed


def changes(explanation: Explanation) -> list[tuple[str, str]]:
    return [
        (suggestion.text, suggestion.outcome)
        for suggestion in explanation.suggestions
    ]


def test_a_cap_that_leaves_too_little_for_the_gang() -> None:
    whole = gang(3)
    explanation = why(whole, caps=["default=memory:2Gi"])
    assert explanation.gathering is not None
    assert explanation.gathering.members == tuple(
        ClaimKey("default", f"worker-{worker}") for worker in range(3)
    )
    assert (explanation.gathering.number, explanation.gathering.bound) == (2, 2)
    assert changes(explanation) == [
        (
            "raise cap default=memory from 2Gi to 3Gi",
            "all 3 members of the gang fit",
        )
    ]
    assert [
        placed(whole, f"default=memory:{amount}")
        for amount in ("3Gi", "3145727Ki")
    ] == [3, 0]
    text = str(explanation)
    assert (
        "Of the 3 members of its gang at most 2 fit at once beside what is placed."
        in text
    )
    assert (
        "Not even its gang alone would fit beside what is allocated already."
        in text
    )
    assert explanation.to_dict()["gang"]["bound"] == 2


def test_one_of_two_caps_is_not_enough() -> None:
    whole = gang(3)
    explanation = why(whole, caps=["default=memory:2Gi", "default=slots:5"])
    text = "raise cap default=memory from 2Gi to 3Gi, default=slots from 5 to 6"
    assert changes(explanation) == [(text, "all 3 members of the gang fit")]
    assert placed(whole, "default=memory:3Gi", "default=slots:6") == 3


def test_more_members_than_devices() -> None:
    explanation = why(gang(3, cards=2))
    assert explanation.gathering is not None
    assert explanation.gathering.bound == 2
    assert explanation.suggestions == ()


def test_somebody_else_takes_what_the_gang_would_need() -> None:
    rivals = [pod(name, name, priority=10) for name in ("first", "second")]
    explanation = why(
        gang(
            3,
            *rivals,
            claim("first", request()),
            claim("second", request()),
            cards=3,
        )
    )
    assert explanation.gathering is not None
    assert explanation.gathering.bound == 1
    assert explanation.competition is not None
    assert explanation.competition.possible
    assert explanation.competition.displaced == (
        ClaimKey("default", "first"),
        ClaimKey("default", "second"),
    )


def test_a_claim_that_somebody_else_was_granted() -> None:
    rival = pod("rival", "worker-1", priority=10)
    explanation = why(gang(3, rival, cards=2))
    assert explanation.gathering is None
    assert any(
        re.search("its gang is in its way", remark)
        for remark in explanation.remarks
    )


@pytest.mark.parametrize("mode", ["first-fit", "optimal"])
def test_a_gang_that_fits(mode: ModeName) -> None:
    explanation = dralloc.explain(
        gang(2), pod="default/worker-0", mode=mode, gang="job"
    )
    assert explanation.placed
    assert explanation.gathering is None


def left_out_for_want_of_time() -> Explanation:
    """Explain a pod that comes before the one that it wants to be near to: first fit leaves it out.

    So does the optimum, which has no time. Two others of its gang are placed, which is enough.
    """
    near = {"labelSelector": {"matchLabels": {"app": "web"}}}
    term = {"topologyKey": "rack", **near}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    objects: list[Json] = [group, node(rack="1"), device_class()]
    objects.append(resource_slice(gpus(4)))
    for worker in range(3):
        name = f"worker-{worker}"
        spec: Json = {"schedulingGroup": {"podGroupName": "train"}}
        if worker == 0:
            spec["affinity"] = {"podAffinity": rule}
        objects.append(claim(name, request()))
        objects.append(pod(name, name, priority=5, **spec))
    web = pod("web", "web")
    web["metadata"]["labels"] = {"app": "web"}
    objects += [claim("web", request()), web]
    return dralloc.explain(
        cluster(objects),
        pod="default/worker-0",
        mode="optimal",
        time_limit=1e-6,
    )


def test_a_gang_with_its_quorum_is_in_nobodys_way() -> None:
    explanation = left_out_for_want_of_time()
    assert explanation.gathering is None
    *_, remark = explanation.remarks
    assert remark.startswith("It would fit beside all that is placed")


def test_what_no_search_has_decided_is_not_impossible() -> None:
    explanation = left_out_for_want_of_time()
    assert explanation.competition is not None
    assert not explanation.competition.proven
    text = str(explanation)
    assert "Not even" not in text
    assert "The search ended before it was known" in text


@pytest.mark.parametrize(
    ("cards", "rivals", "said"),
    [
        (3, (), "Its gang would fit beside all that is placed: the search"),
        (4, ("worker-1",), "its gang is in its way, or the search ended"),
    ],
)
def test_what_the_search_did_not_get_to_has_no_gang_in_its_way(
    cards: int, rivals: tuple[str, ...], said: str
) -> None:
    """As if a time limit had ended the search before the gang was placed."""
    rival_pods = [pod(f"by-{name}", name, priority=10) for name in rivals]
    plan = dralloc.allocate(
        gang(3, *rival_pods, cards=cards), "optimal", gang="job"
    )
    weight = plan.solution.tiers[0]
    placements = tuple(
        placement
        for placement in plan.solution.placements
        if not plan.demands[placement.demand].gang
    )
    unfinished = replace(
        plan.solution,
        placements=placements,
        tiers=(replace(weight, value=weight.value - 1),),
    )
    wanted = find_demand(plan.compiled, None, ClaimKey("default", "worker-0"))
    explanation = Explainer(
        plan.compiled, wanted, Mode.OPTIMAL, Choices()
    ).of_optimum(unfinished, {}, suggest=True)
    assert said in str(explanation)
