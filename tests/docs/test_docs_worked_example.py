"""The figures of docs/explanation/worked-example.md are those that the code computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import dralloc
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Choices, Options
from dralloc.objects.cluster import Cluster
from dralloc.problem import Problem
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.classes.supplies import PatternSupply
from dralloc.solve.optimum.division import Division, divide
from dralloc.solve.optimum.packing.component import PackingSearch
from dralloc.solve.optimum.packing.construction import ConstructiveHeuristic
from dralloc.solve.optimum.packing.models import Relaxation, guide
from dralloc.solve.optimum.packing.units import PatternUnitType
from dralloc.solve.optimum.search import minimise, solve_linear
from dralloc.solve.optimum.stopping import Stop

DRIVER: Final = "gpu.example.com"
SLOTS: Final = 4
PROFILES: Final = {
    "1g": (1, (0, 1, 2, 3)),
    "2g": (2, (0, 2)),
    "whole": (4, (0,)),
}
"""By profile: how many slots a partition takes, and where it can begin."""

PODS: Final = {"a": "whole", "b": "2g", "c": "2g", "d": "1g", "e": "1g"}

Profiles = Mapping[str, tuple[int, Sequence[int]]]
Json = dict[str, Any]


def _counters(slots: range) -> Json:
    return {f"slot-{slot}": {"value": "1"} for slot in slots}


def _devices(profiles: Profiles) -> Iterator[Json]:
    for profile, (size, starts) in profiles.items():
        for start in starts:
            consumed = _counters(range(start, start + size))
            yield {
                "name": f"{profile}-{start}",
                "attributes": {"profile": {"string": profile}},
                "consumesCounters": [
                    {"counterSet": "gpu", "counters": consumed}
                ],
            }


def _gpu(node: str, profiles: Profiles) -> Iterator[Json]:
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
    counter_set = {"name": "gpu", "counters": _counters(range(SLOTS))}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    contents: dict[str, Json] = {
        "counters": {"sharedCounters": [counter_set]},
        "devices": {"devices": list(_devices(profiles))},
    }
    for name, content in contents.items():
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{name}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": pool,
                **content,
            },
        }


def _pod(name: str, profile: str) -> Iterator[Json]:
    expression = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    exactly = {
        "deviceClassName": DRIVER,
        "selectors": [{"cel": {"expression": expression}}],
    }
    metadata = {"name": name, "namespace": "team"}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {
            "devices": {"requests": [{"name": "part", "exactly": exactly}]}
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": "part", "resourceClaimName": name}],
        },
    }


def cluster_of(profiles: Profiles, asked: Mapping[str, str]) -> Cluster:
    expression = f"device.driver == '{DRIVER}'"
    driver: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    objects = [driver, *_gpu("left", profiles), *_gpu("right", profiles)]
    for name, profile in asked.items():
        objects += _pod(name, profile)
    return dralloc.load(objects)


@cache
def cluster() -> Cluster:
    """The cluster of the page."""
    return cluster_of(PROFILES, PODS)


def problem() -> Problem:
    return compile_cluster(cluster(), Choices()).whole


def division(pattern_effort: int) -> Division:
    whole = problem()
    thresholds = replace(Options().thresholds, pattern_effort=pattern_effort)
    return divide(
        whole,
        lambda demands: survey(whole, demands),
        Options(thresholds=thresholds),
    )


def placed(plan: dralloc.Plan) -> set[str]:
    whole = problem()
    keys = [
        whole.demands[placement.demand].key
        for placement in plan.solution.placements
    ]
    return {key.name for key in keys}


def test_first_fit_places_three() -> None:
    assert placed(dralloc.allocate(cluster(), mode="first-fit")) == {
        "a",
        "b",
        "c",
    }


def test_the_optimum_places_four_and_proves_it() -> None:
    plan = dralloc.allocate(cluster(), mode="optimal")
    assert placed(plan) == {"b", "c", "d", "e"}
    tier = plan.solution.tiers[0]
    assert (tier.value, tier.bound) == (4, 4)


def test_two_bins_are_one_class_with_three_patterns() -> None:
    [counted] = division(pattern_effort=100_000).counted
    members = [demand_class.members for demand_class in counted.classes]
    assert members == [[0], [1, 2], [3, 4]]
    [supply] = counted.supplies
    assert isinstance(supply, PatternSupply)
    assert len(supply.bins) == 2
    whole, half, quarter = range(3)
    assert {pattern.counts for pattern in supply.patterns} == {
        ((whole, 1),),
        ((half, 2),),
        ((half, 1), (quarter, 2)),
    }


def test_without_listed_patterns_the_relaxation_has_the_prices_of_the_page() -> (
    None
):
    [instance] = division(pattern_effort=0).packed
    [unit_type] = instance.unit_types
    assert isinstance(unit_type, PatternUnitType)
    assert set(unit_type.patterns) == {(1, 0, 0), (0, 2, 0), (0, 1, 2)}
    relaxation = Relaxation(instance)
    missed = minimise(relaxation.cp, relaxation.cost(0), Options(), Stop())
    assert missed.bound == 1
    fractional = solve_linear(relaxation.cp, relaxation.cost(0), Stop())
    assert fractional is not None
    missed_in_fractions = sum(
        weight * fractional.values[variable.index]
        for variable, weight in relaxation.cost(0)
    )
    assert missed_in_fractions == pytest.approx(0.5)
    prices = Relaxation(instance).prices(Stop())
    assert prices == pytest.approx({(0, 0): 1.0, (0, 1): 0.5, (0, 2): 0.25})


def test_the_heuristic_packs_a_half_and_a_quarter_into_both() -> None:
    [instance] = division(pattern_effort=0).packed
    relaxation = Relaxation(instance)
    missed = minimise(relaxation.cp, relaxation.cost(0), Options(), Stop())
    assert missed.values is not None
    search = PackingSearch(instance, Options())
    prices = guide(instance, Relaxation(instance).prices(Stop()))
    search.heuristics = [ConstructiveHeuristic(instance, prices)]
    search.construct(relaxation.targets(missed.values), Stop())
    [[(column, bins)]] = search.best
    assert (column.counts, bins) == ((0, 1, 1), 2)


def test_the_explanation_names_what_the_page_names() -> None:
    text = str(dralloc.explain(cluster(), "team/a", mode="optimal"))
    for line in (
        "0 free of 2 in 2 counter sets",
        "placed claim team/e",
        "placed claim team/c",
        "at most weight 4 can be placed (proven); the optimum places 4",
        "release 2 claims: team/b, team/c",
        "add a node like left",
    ):
        assert line in text


def test_the_page_has_these_figures(root: Path) -> None:
    page = (root / "docs/explanation/worked-example.md").read_text()
    for name, profile in PODS.items():
        assert f"| {name} |" in page
        assert f"`{profile}`" in page
    assert "a `whole` is worth 1, a `2g` 0.5, a `1g` 0.25" in page


@pytest.mark.parametrize("pattern_effort", [100_000, 0])
def test_all_states_of_a_pattern_are_looked_at(pattern_effort: int) -> None:
    """After the first ``2g-1`` no second ``2g`` fits; after another one it does."""
    overlapping = {**PROFILES, "2g": (2, (1, 0, 2))}
    asked = {"a": "1g", "b": "1g", "c": "2g", "d": "2g", "e": "2g"}
    thresholds = replace(Options().thresholds, pattern_effort=pattern_effort)
    whole = compile_cluster(cluster_of(overlapping, asked), Choices()).whole
    solution = solve(whole, Options(thresholds=thresholds))
    assert (solution.tiers[0].value, solution.tiers[0].bound) == (5, 5)
