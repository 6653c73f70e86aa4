"""Strict priorities, objectives within them, and who is kept: from objects to the tiers of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import mul
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dralloc
from dralloc.compile.compiler import compile_cluster
from dralloc.compile.compiler.worth import WeightLevel, Worth
from dralloc.objects.api.disclosure import VALUE_ANNOTATION
from dralloc.objects.errors import ChoiceError, DrallocError
from dralloc.objects.report import Table
from dralloc.problem.solution import Tier
from examples import examples
from wire import (
    Json,
    claim,
    cluster,
    consumes,
    counters,
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


def wanting(
    name: str, count: int, priority: int = 0, value: str | None = None
) -> list[Json]:
    """A pod, and its claim for so many GPUs."""
    pod_object = pod(name, name, priority=priority)
    pod_object["metadata"]["annotations"] = (
        {} if value is None else {"dralloc.dev/value": value}
    )
    return [claim(name, request(count=count)), pod_object]


def three_gpus(*pods: list[Json]) -> dralloc.Cluster:
    return cluster(node(), device_class(), resource_slice(gpus(3)), *pods)


def placed(plan: dralloc.Plan) -> list[str]:
    return [
        plan.demands[placement.demand].key.name
        for placement in plan.solution.placements
    ]


IMPORTANT = three_gpus(
    wanting("large", 3, 1000),
    *(wanting(f"small-{index}", 1) for index in range(3)),
)


def test_several_small_pods_do_not_push_out_an_important_one() -> None:
    plan = dralloc.allocate(IMPORTANT)
    assert placed(plan) == ["large"]
    assert plan.tiers == (
        Tier("pods@1000", 1, 1),
        Tier("pods@0", 0, 0),
        Tier("alternatives", 0, 0, -1),
    )


def test_ranked_priorities_are_as_they_were() -> None:
    plan = dralloc.allocate(IMPORTANT, priorities="ranked")
    assert placed(plan) == ["small-0", "small-1", "small-2"]
    assert plan.tiers[0] == Tier("weight", 3, 3)


def test_with_one_priority_the_weight_is_the_number_of_pods() -> None:
    plan = dralloc.allocate(
        three_gpus(wanting("a", 1, 7), wanting("b", 3, 7), wanting("c", 1, 7))
    )
    assert plan.tiers[0] == Tier("weight", 2, 2)


def test_devices_come_before_pods() -> None:
    scenario = three_gpus(wanting("large", 3), wanting("a", 1), wanting("b", 1))
    assert placed(dralloc.allocate(scenario)) == ["a", "b"]
    plan = dralloc.allocate(scenario, objective="devices")
    assert placed(plan) == ["large"]
    assert plan.tiers[:2] == (Tier("devices", 3, 3), Tier("pods", 1, 1))


def test_of_as_many_devices_the_most_pods() -> None:
    pods = (wanting("large", 3), wanting("a", 2), wanting("b", 1))
    plan = dralloc.allocate(three_gpus(*pods), objective="devices")
    assert placed(plan) == ["a", "b"]


def test_an_objective_counts_within_its_priority() -> None:
    plan = dralloc.allocate(
        three_gpus(wanting("low", 3), wanting("high", 1, 5)),
        objective="devices",
    )
    assert placed(plan) == ["high"]
    assert [tier.name for tier in plan.tiers] == [
        "devices@5",
        "pods@5",
        "devices@0",
        "pods@0",
        "alternatives",
    ]
    assert [tier.value for tier in plan.tiers] == [1, 1, 0, 0, 0]


def test_values_are_annotated() -> None:
    scenario = three_gpus(
        wanting("dear", 3, value="3"),
        wanting("a", 1),
        wanting("b", 1, value="1"),
    )
    plan = dralloc.allocate(scenario, objective="value")
    assert placed(plan) == ["dear"]
    assert plan.tiers[:2] == (Tier("value", 3, 3), Tier("pods", 1, 1))


def test_a_claim_that_no_pod_uses_has_not_the_value_of_a_pod_of_its_name() -> (
    None
):
    lone, user = claim("x", request()), pod("x", "y")
    lone["metadata"]["annotations"], user["metadata"]["annotations"] = (
        {VALUE_ANNOTATION: text} for text in "35"
    )
    compiled = compile_cluster(
        three_gpus([lone, claim("y", request()), user]), objective="value"
    )
    names = [demand.claims[0].key.name for demand in compiled.problem.demands]
    assert dict(zip(names, compiled.worth.values["value"], strict=True)) == {
        "x": 3,
        "y": 5,
    }


def test_who_is_worth_nothing_is_placed_where_nobody_else_is() -> None:
    scenario = three_gpus(
        wanting("zero", 1, value="0"), wanting("dear", 2, value="3")
    )
    assert placed(dralloc.allocate(scenario, objective="value")) == [
        "zero",
        "dear",
    ]


@pytest.mark.parametrize("text", ["-1", "1.5", "x", ""])
def test_a_value_is_an_integer(text: str) -> None:
    with pytest.raises(
        DrallocError,
        match=r'Pod default/a: metadata.annotations\["dralloc.dev/value"\]: "',
    ):
        compile_cluster(three_gpus(wanting("a", 1, value=text)))


def sized(*pods: list[Json]) -> dralloc.Cluster:
    """A GPU of 40Gi with parts of 10Gi, 20Gi and 30Gi."""
    parts = [
        device(
            f"part-{size}",
            {"size": size},
            consumesCounters=consumes("gpu", memory=f"{size}Gi"),
        )
        for size in (10, 20, 30)
    ]
    sets = resource_slice(
        name="counters",
        count=2,
        sharedCounters=[counters("gpu", memory="40Gi")],
    )
    return cluster(
        node(),
        device_class(),
        sets,
        resource_slice(parts, count=2, allNodes=True),
        *pods,
    )


def part(name: str, *sizes: int) -> list[Json]:
    of_size = "device.attributes['gpu.example.com'].size == {}".format
    asked = first_available(
        "gpu", *(sub(f"s{size}", of_size(size)) for size in sizes)
    )
    return [claim(name, asked), pod(name, name)]


def test_the_amount_of_a_counter_is_what_is_asked_for_at_least() -> None:
    scenario = sized(part("a", 30), part("b", 20), part("c", 10, 20))
    assert len(placed(dralloc.allocate(scenario))) == 2
    plan = dralloc.allocate(scenario, objective="memory")
    gibibyte = 2**30 * 10**9
    assert placed(plan) == ["a", "c"]
    assert plan.tiers[:2] == (
        Tier("amount of memory", 40 * gibibyte, 40 * gibibyte),
        Tier("pods", 2, 2),
    )


def test_there_must_be_such_a_counter() -> None:
    with pytest.raises(
        DrallocError,
        match='--objective: no counter and no capacity of a device is named "memry"',
    ):
        dralloc.allocate(IMPORTANT, objective="memry")


@pytest.mark.parametrize(
    ("name", "word"), [("priorities", "priorities"), ("keep", "keep")]
)
def test_words_that_do_not_exist(name: str, word: str) -> None:
    chosen: dict[str, Any] = {name: "x"}
    with pytest.raises(ChoiceError, match=word):
        dralloc.allocate(IMPORTANT, **chosen)


def test_nobody_falls_out_of_first_fit_s_answer() -> None:
    """First fit takes the older and larger; two small pods would be more."""
    scenario = three_gpus(
        wanting("a-large", 2), *(wanting(name, 1) for name in ("b", "c", "d"))
    )
    assert placed(dralloc.allocate(scenario)) == ["b", "c", "d"]
    plan = dralloc.allocate(scenario, keep="first-fit")
    assert placed(plan) == ["a-large", "b"]
    assert plan.status == "OPTIMAL"
    assert plan.tiers[0] == Tier("weight", 2, 2)
    comparison = dralloc.compare(scenario, keep="first-fit")
    assert comparison.only_first_fit == ()


def test_nobody_falls_out_of_the_scheduler_s_answer() -> None:
    scenario = three_gpus(
        wanting("a-large", 2), *(wanting(name, 1) for name in ("b", "c", "d"))
    )
    kept = set(placed(dralloc.allocate(scenario, mode="scheduler")))
    assert kept <= set(placed(dralloc.allocate(scenario, keep="scheduler")))


def test_who_is_kept_counts_at_its_priority() -> None:
    scenario = three_gpus(
        wanting("high", 1, 5), wanting("low-large", 2), wanting("low", 1)
    )
    plan = dralloc.allocate(scenario, keep="first-fit")
    assert [(tier.name, tier.value, tier.bound) for tier in plan.tiers[:2]] == [
        ("pods@5", 1, 1),
        ("pods@0", 1, 1),
    ]


def test_a_broken_gang_is_not_kept() -> None:
    """The scheduler looks at no gangs: what it places of one may have to go."""
    pair = [wanting(name, 2) for name in "ab"]
    for _, pod_object in pair:
        pod_object["metadata"]["labels"] = {"job": "x"}
    scenario = three_gpus(*pair, wanting("c", 1))
    plan = dralloc.allocate(scenario, keep="scheduler", gang="job")
    assert placed(plan) == ["c"]
    assert plan.warnings == (
        "keep: gangs or caps leave out 1 who were to be kept",
    )


def rows(comparison: dralloc.Comparison, title: str) -> list[tuple[str, ...]]:
    """The rows of a table of the report, in plain text."""
    (table,) = (
        part
        for part in comparison.parts()
        if isinstance(part, Table) and part.title == title
    )
    return [tuple(map(str, row)) for row in table.rows]


def test_compare_shows_what_answers_reach_of_each_objective() -> None:
    scenario = three_gpus(
        wanting("first", 2, 5, value="1"),
        wanting("next", 1, 5, value="4"),
        wanting("low", 1, value="9"),
    )
    figures = {
        row[0]: row[1:]
        for row in rows(dralloc.compare(scenario), "Both answers")
    }
    assert figures["pods at priority 5"] == ("2 of 2", "2 of 2")
    assert figures["pods at priority 0"] == ("0 of 1", "0 of 1")
    assert figures["devices asked for at priority 5"] == ("3 of 3", "3 of 3")
    assert figures["value at priority 5"] == ("5 of 5", "5 of 5")
    assert "weight placed" not in figures


def test_compare_shows_how_large_is_what_only_one_answer_places() -> None:
    scenario = three_gpus(
        wanting("a-large", 2), *(wanting(name, 1) for name in ("b", "c", "d"))
    )
    comparison = dralloc.compare(scenario)
    assert rows(comparison, "Only first fit places") == [
        ("default/a-large", "2 devices")
    ]
    assert [row[:2] for row in rows(comparison, "Only the optimum places")] == [
        ("default/c", "1 device"),
        ("default/d", "1 device"),
    ]


def test_compare_shows_what_only_the_scheduler_places() -> None:
    scenario = three_gpus(
        wanting("a-large", 2), *(wanting(name, 1) for name in ("b", "c", "d"))
    )
    comparison = dralloc.compare(
        scenario, modes="scheduler,first-fit,optimal", seeds=1
    )
    assert comparison.scheduler
    missing = {
        unplaced.key for unplaced in comparison.scheduler.median.unplaced
    }
    left_out = [unplaced.key for unplaced in comparison.optimal.unplaced]
    assert list(comparison.only_scheduler) == [
        key for key in left_out if key not in missing
    ]
    assert dralloc.compare(scenario).only_scheduler == ()


@settings(max_examples=examples(3000))
@given(st.data())
def test_the_optimum_has_no_more_of_any_level_than_its_bound(
    data: st.DataObject,
) -> None:
    """Whatever the optimum is that the bound of the sum allows, also with less of a level than there could be."""
    totals = data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=3))
    units = [
        prod(1 + total for total in totals[index + 1 :])
        for index in range(len(totals))
    ]

    def weight(digits: Sequence[int]) -> int:
        return sum(map(mul, digits, units))

    digits = st.tuples(*(st.integers(0, total) for total in totals))
    answer, optimum = sorted([data.draw(digits), data.draw(digits)])
    bound = data.draw(st.integers(weight(optimum), weight(totals)))
    levels = [
        WeightLevel(f"pods@{unit}", unit, total)
        for unit, total in zip(units, totals, strict=True)
    ]
    tiers = Worth((), tuple(levels)).tiers(
        [Tier("weight", weight(answer), bound)]
    )
    assert [tier.value for tier in tiers] == list(answer)
    assert all(
        amount <= tier.bound
        for amount, tier in zip(optimum, tiers, strict=True)
    )


def test_what_is_proven_of_one_weight_is_no_limit_for_all_pods_of_a_level() -> (
    None
):
    """Two pods ask for a device each, one for none: of those without there is room for one, of the others for two."""
    levels = (WeightLevel("devices", 4, 2), WeightLevel("pods", 1, 3))
    worth = Worth((5, 5, 1), levels)
    weight = Tier("weight", 6, 11, limits=((1, 1), (5, 2)))
    devices, pods = worth.tiers([weight])
    assert (devices.value, devices.bound) == (1, 2)
    assert (pods.value, pods.bound) == (2, 3)


def test_what_is_not_placed_of_a_level_may_be_placed_of_those_below() -> None:
    """The sum allows the pod of the higher priority, which is proven to wait; three wait of the lower one."""
    levels = (WeightLevel("pods@1", 4, 1), WeightLevel("pods@0", 1, 3))
    weight = Tier("weight", 0, 4, limits=((1, 3), (4, 0)))
    high, low = Worth((4, 1, 1, 1), levels).tiers([weight])
    assert (high.value, high.bound) == (0, 0)
    assert (low.value, low.bound) == (0, 3)


@settings(max_examples=examples(1000))
@given(st.data())
def test_the_optimum_has_no_more_of_any_level_than_is_proven_by_weight(
    data: st.DataObject,
) -> None:
    """Pods of two priorities, some without devices; an optimum, what is proven of its weights, and an answer."""
    problem = compile_cluster(
        cluster(
            node(),
            device_class(),
            resource_slice(gpus(3)),
            *[
                wanting(
                    f"pod-{index}",
                    1,
                    priority=data.draw(st.integers(0, 1)),
                    value=str(data.draw(st.integers(0, 2))),
                )
                for index in range(data.draw(st.integers(1, 4)))
            ],
        ),
        dralloc.Choices(objective="value"),
    )
    worth = problem.worth
    some_pods = st.lists(
        st.sampled_from(range(len(worth.weights))), unique=True
    )

    def weights_of(pods: Sequence[int]) -> list[int]:
        return [worth.weights[pod] for pod in pods]

    answer, optimum = sorted(
        [weights_of(data.draw(some_pods)) for _ in range(2)], key=sum
    )
    limits = tuple(
        (weight, data.draw(st.integers(optimum.count(weight), len(optimum))))
        for weight in sorted(set(worth.weights))
    )
    bound = data.draw(st.integers(sum(optimum), sum(worth.weights)))
    of_optimum = worth.tiers([Tier("weight", sum(optimum), sum(optimum))])
    tiers = worth.tiers([Tier("weight", sum(answer), bound, limits=limits)])
    assert all(
        best.value <= tier.bound
        for best, tier in zip(of_optimum, tiers, strict=True)
    )
