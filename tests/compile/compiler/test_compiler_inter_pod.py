"""Rules between pods: every mode answers what the API's text allows, and the optimum is the best of that."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings

import wire
from brute_company import Answer, Company
from company_strategies import HOST, TEMPLATE, companies, neighbours, template
from dralloc import Mode, Plan, allocate
from dralloc.check import check
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import Options
from dralloc.solve.optimum import solve
from examples import INDEPENDENT, examples
from scheduling_wire import node, pod
from wire import Json

SEVERAL = settings(max_examples=examples(60), backend=INDEPENDENT)


def answer(plan: Plan) -> Answer:
    return frozenset(
        (str(placed.demand), placed.node) for placed in plan.placed
    )


@SEVERAL
@given(companies())
def test_the_optimum_is_the_best_that_can_come_about(
    objects: Sequence[Json],
) -> None:
    company, plan = Company(objects), allocate(wire.cluster(objects))
    assert answer(plan) in company.answers
    assert company.worth(answer(plan)) == company.best
    assert all(tier.proven for tier in plan.tiers)


@SEVERAL
@given(companies())
def test_so_it_is_device_by_device(objects: Sequence[Json]) -> None:
    company, compiled = Company(objects), compile_cluster(wire.cluster(objects))
    solution = solve(compiled.whole, Options(per_device=True))
    check(compiled.whole, solution)
    plan = Plan(Mode.OPTIMAL, compiled, compiled.of_devices(solution), {})
    assert answer(plan) in company.answers
    assert company.worth(answer(plan)) == company.best


@SEVERAL
@given(companies())
def test_first_fit_takes_pods_as_they_come(objects: Sequence[Json]) -> None:
    assert (
        answer(allocate(wire.cluster(objects), Mode.FIRST_FIT))
        in Company(objects).answers
    )


@SEVERAL
@given(companies())
def test_the_scheduler_takes_pods_as_they_come(objects: Sequence[Json]) -> None:
    assert (
        answer(allocate(wire.cluster(objects), Mode.SCHEDULER))
        in Company(objects, as_upstream=True).answers
    )


@SEVERAL
@given(neighbours())
def test_pods_that_are_alone_on_their_node_come_beside_pods_that_run(
    objects: Sequence[Json],
) -> None:
    """Anti-affinity by host is an amount that nodes have, of which pods that run take, too."""
    company, given = Company(objects), wire.cluster(objects)
    optimum = allocate(given)
    assert answer(optimum) in company.answers
    assert company.worth(answer(optimum)) == company.best
    assert all(tier.proven for tier in optimum.tiers)
    assert answer(allocate(given, Mode.FIRST_FIT)) in company.answers
    scheduled = answer(allocate(given, Mode.SCHEDULER))
    assert scheduled in Company(objects, as_upstream=True).answers


def test_what_is_even_in_the_end_may_come_in_no_order() -> None:
    zone_of = {"a1": "a", "b1": "b", "b2": "b", "b3": "b"}
    published = [
        wire.resource_slice(wire.gpus(3), name=name, pool=name, nodeName=name)
        for name in zone_of
    ]
    nodes = [
        node(name, labels={"zone": zone}) for name, zone in zone_of.items()
    ]
    pods = [_spread(f"p{index}") for index in range(5)]
    objects = [
        wire.device_class(),
        template("default"),
        *nodes,
        *published,
        *pods,
    ]
    # With two pods on a1 and one on each other node all would be even; but after b1, a1 and b2 nobody can come.
    assert Company(objects).best == [3]
    for mode in Mode:
        assert len(answer(allocate(wire.cluster(objects), mode))) == 3


def _spread(name: str) -> Json:
    """A pod that is spread over zones and over nodes."""
    labels = {"app": "x"}
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        for key in ("zone", HOST)
    ]
    claims = [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}]
    return pod(
        name,
        labels=labels,
        topologySpreadConstraints=constraints,
        resourceClaims=claims,
    )
