"""Plans and comparisons as users hold them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

import dralloc
from dralloc.objects.choices import (
    AnswerName,
    Goal,
    GoalName,
    Mode,
    ModeName,
    PolicyName,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line
from dralloc.problem.solution import Status, Tier
from dralloc.solve.optimum import Options
from dralloc.solve.policies import POLICIES
from wire import (
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    node,
    request,
    resource_slice,
    sub,
)

SIZES = "device.attributes['gpu.example.com'].size == {}"


def one_gpu() -> Cluster:
    """One GPU of four slices: a small partition at each slice, and a big one that needs the first two."""
    parts = [
        device(
            f"small-{index}",
            {"size": 1},
            consumesCounters=consumes("gpu", **{f"slice-{index}": "1"}),
        )
        for index in range(3)
    ]
    both = {"slice-0": "1", "slice-1": "1"}
    parts.append(
        device("big", {"size": 2}, consumesCounters=consumes("gpu", **both))
    )
    slices = {f"slice-{index}": "1" for index in range(3)}
    return cluster(
        node(),
        device_class(),
        resource_slice(
            name="s0", count=2, sharedCounters=[counters("gpu", **slices)]
        ),
        resource_slice(parts, name="s1", count=2),
        claim("small", request("gpu", SIZES.format(1))),
        claim("big", request("gpu", SIZES.format(2))),
    )


def test_the_optimum_places_what_first_fit_strands() -> None:
    result = dralloc.compare(one_gpu())
    assert [str(key) for key in result.first_fit.allocations] == [
        "default/small"
    ]
    assert [str(key) for key in result.optimal.allocations] == [
        "default/small",
        "default/big",
    ]
    assert [str(key) for key in result.only_optimal] == ["default/big"]
    assert result.only_first_fit == ()
    assert (
        result.optimal.status,
        result.optimal.objective,
        result.optimal.bound,
        result.optimal.gap,
    ) == (
        "OPTIMAL",
        2,
        2,
        0,
    )
    assert (
        result.first_fit.status,
        result.first_fit.bound,
        result.first_fit.gap,
    ) == (
        "FEASIBLE",
        None,
        None,
    )


def test_the_report_names_what_matters() -> None:
    text = str(dralloc.compare(one_gpu()))
    assert (
        "2 claims: first fit places 1, the optimum 2 (proven optimal)" in text
    )
    assert "default/big" in text
    assert "counter slice-0 (gpu.example.com)" in text


def test_a_plan_prints_what_is_placed_and_what_is_not() -> None:
    plan = dralloc.allocate(one_gpu(), "first-fit")
    text = str(plan)
    assert "first-fit: 1 of 2 placed, nothing proven" in text
    assert "gpu.example.com/pool-0/small-0" in text
    assert "fits on no node" in text
    assert [str(demand.key) for demand in plan.unplaced] == ["default/big"]


def test_the_names_of_a_plan_are_those_of_what_is_placed() -> None:
    """Also where other tables come first: those of the tiers, or of what finds no room."""
    assert list(dralloc.allocate(one_gpu()).names()) == [
        "default/small",
        "default/big",
    ]
    assert list(dralloc.allocate(one_gpu(), mode="first-fit").names()) == [
        "default/small"
    ]
    nothing = cluster(node(), device_class(), claim("a", request()))
    assert list(dralloc.allocate(nothing).names()) == []


def test_a_plan_is_plain_data_for_json() -> None:
    plan = json.loads(json.dumps(dralloc.allocate(one_gpu()).to_dict()))
    assert plan["status"] == "OPTIMAL"
    assert [tier["name"] for tier in plan["tiers"]] == [
        "weight",
        "alternatives",
    ]
    assert [placement["node"] for placement in plan["placed"]] == [
        "node-0",
        "node-0",
    ]
    assert plan["unplaced"] == []
    usage = {
        row["name"]: (row["used"], row["total"])
        for row in plan["metrics"]["utilisation"]
    }
    assert usage == {
        "slice-0": (1, 1),
        "slice-1": (1, 1),
        "slice-2": (1, 1),
    }


def test_a_plan_is_a_data_frame() -> None:
    frame = dralloc.allocate(one_gpu(), mode="first-fit").to_frame()
    assert list(frame["claim"]) == ["default/small", "default/big"]
    assert list(frame["device"].fillna("")) == ["small-0", ""]


def test_ranks_of_alternatives_are_counted() -> None:
    wanted = [
        claim(
            name,
            first_available(
                "x", sub("big", SIZES.format(2)), sub("small", SIZES.format(1))
            ),
        )
        for name in "ab"
    ]
    lists = cluster(node(), device_class(), wanted)
    plan = dralloc.allocate(replace(lists, slices=one_gpu().slices))
    assert plan.metrics.ranks == (1, 1)
    assert plan.metrics.devices == 2
    assert plan.metrics.nodes == 1


def test_options_are_checked() -> None:
    with pytest.raises(dralloc.DrallocError, match="workers: 0"):
        dralloc.allocate(one_gpu(), workers=0)
    with pytest.raises(
        dralloc.DrallocError,
        match="no mode 'bset'; known modes: first-fit, scheduler, optimal",
    ):
        dralloc.allocate(one_gpu(), mode="bset")  # type: ignore[arg-type] # which mypy sees, too
    with pytest.raises(
        dralloc.DrallocError,
        match="no goal 'sperad'; known goals: fewest-nodes, ",
    ):
        dralloc.allocate(one_gpu(), mode="first-fit", goal="sperad")  # type: ignore[arg-type]
    with pytest.raises(
        dralloc.DrallocError, match="no backend 'mpi'; known backends: "
    ):
        dralloc.compare(one_gpu(), backend="mpi")
    assert Options(goal="spread").goal is Goal.SPREAD


def test_words_for_types_are_those_of_the_choices() -> None:
    assert get_args(ModeName) == tuple(Mode)
    assert (
        {*get_args(ModeName), *get_args(PolicyName)}
        == {*get_args(AnswerName)}
        == {*Mode, *POLICIES}
    )
    assert get_args(GoalName) == tuple(Goal)


@pytest.mark.parametrize(
    ("tiers", "words"),
    [
        ([Tier("weight", 4, 5)], "bound 5, gap 25.0%"),
        (
            [Tier("pods@9", 4, 4), Tier("pods@0", 2, 3)],
            "pods@0 at most 3, all at most 6, gap 50.0%",
        ),
        (
            [Tier("devices@9", 4, 5), Tier("devices@0", 2, 3)],
            "devices@9 at most 5, gap 25.0%",
        ),
        (
            [Tier("weight", 4, 4), Tier("alternatives", 8, 6, -1)],
            "alternatives at least 6, gap 25.0%",
        ),
        (
            [Tier("fairness-memory", 4 * 10**9, 3 * 10**9, -1)],
            "fairness-memory at least 3, gap 25.0%",
        ),
    ],
)
def test_the_headline_gives_bound_and_gap_of_the_same_tier(
    tiers: list[Tier], words: str
) -> None:
    # The first tier that is not proven, which may be another one than what is placed.
    plan = dralloc.allocate(one_gpu())
    solution = replace(
        plan.solution,
        status=Status.FEASIBLE,
        tiers=tuple(tiers),
        most_placed=6,
    )

    headline = replace(plan, solution=solution).headline

    assert headline.endswith(f"not proven: {words}")


def test_what_is_not_placed_says_where_to_ask_why() -> None:
    """The question names the first of them, as what it is, and the mode if that is not what is asked by default."""
    first = dralloc.allocate(dralloc.example(), mode="first-fit")
    [line] = [
        part.text
        for part in first.parts()
        if isinstance(part, Line) and "explain" in part.text
    ]
    assert line.endswith("dralloc explain ... --claim default/large")
    [scheduled] = dralloc.allocate(
        dralloc.example(), mode="scheduler"
    ).where_to_ask_why([ClaimKey("default", "any")])
    assert scheduled.text.endswith(" --claim default/any --mode scheduler")
    best = dralloc.allocate(dralloc.example())
    assert not any("explain" in str(part) for part in best.parts())
