"""Edits of a scene: what tests change in a problem or in its answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from check.problem.scene import BASE, Edit, Scene
from dralloc.check import violations
from dralloc.objects.errors import AllocationError
from dralloc.problem import Charge, DemandIndex, DeviceIndex, NodeIndex
from dralloc.problem.solution import Grant, Placement
from strategies import TableEligibility

__all__ = [
    "Broken",
    "asks",
    "broken",
    "charges",
    "claim",
    "counter",
    "demand",
    "device",
    "gets",
    "only_violation",
    "placement",
    "plus",
    "pool",
    "problem",
    "refuses",
    "selects",
    "sharing",
    "solution",
    "usage",
    "watts",
    "without",
]


class Broken(NamedTuple):
    """Edits of the base scene, and a part of the only violation that they cause."""

    edits: tuple[Edit, ...]
    rule: str


def broken(*edits: Edit, rule: str) -> Broken:
    return Broken(edits, rule)


def only_violation(*edits: Edit) -> str:
    """The violation in the edited base scene, of which there must be one."""
    scene = BASE.edited(*edits)
    messages = violations(scene.problem, scene.solution)
    assert len(messages) == 1, messages
    return messages[0]


def solution(**changes: Any) -> Edit:
    """Change fields of the solution."""
    return lambda scene: Scene(
        scene.problem, replace(scene.solution, **changes)
    )


def placement(demand: int, **changes: Any) -> Edit:
    """Change fields of a demand's placement."""

    def edit(scene: Scene) -> Scene:
        placements = [
            replace(known, **changes) if known.demand == demand else known
            for known in scene.solution.placements
        ]
        return scene.edited(solution(placements=tuple(placements)))

    return edit


def _grants(grants: Iterable[tuple[int, int, int]]) -> tuple[Grant, ...]:
    return tuple(
        Grant(request, alternative, DeviceIndex(device))
        for request, alternative, device in grants
    )


def gets(demand: int, *grants: tuple[int, int, int]) -> Edit:
    """Give a demand's only claim these grants."""
    return placement(demand, grants=(_grants(grants),))


def without(*demands: int) -> Edit:
    """Leave demands unplaced, and say nothing about the objective."""

    def edit(scene: Scene) -> Scene:
        kept = tuple(
            known
            for known in scene.solution.placements
            if known.demand not in demands
        )
        return scene.edited(solution(placements=kept, tiers=()))

    return edit


def plus(
    demand: DemandIndex, node: NodeIndex, *grants: tuple[int, int, int]
) -> Edit:
    """Place one more demand, and say nothing about the objective."""

    def edit(scene: Scene) -> Scene:
        more = Placement(demand, node, (_grants(grants),))
        return scene.edited(
            solution(placements=(*scene.solution.placements, more), tiers=())
        )

    return edit


def sharing(
    demand: DemandIndex, other: DemandIndex, *grants: tuple[int, int, int]
) -> Edit:
    """Let a demand list another's claim, too, and give it these grants with that demand."""

    def edit(scene: Scene) -> Scene:
        demands = scene.problem.demands
        claims = (*demands[demand].claims, demands[other].claims[0])
        placements = tuple(
            replace(
                known,
                grants=(
                    *known.grants,
                    _grants(grants),
                ),
            )
            if known.demand == demand
            else known
            for known in scene.solution.placements
        )
        return scene.edited(
            _element("demands", demand, {"claims": claims}),
            solution(placements=placements),
        )

    return edit


def problem(**changes: Any) -> Edit:
    """Change fields of the problem."""
    return lambda scene: Scene(
        replace(scene.problem, **changes), scene.solution
    )


def _element(field: str, index: int, changes: dict[str, Any]) -> Edit:
    def edit(scene: Scene) -> Scene:
        elements = list(getattr(scene.problem, field))
        elements[index] = replace(elements[index], **changes)
        return scene.edited(problem(**{field: tuple(elements)}))

    return edit


def device(index: int, **changes: Any) -> Edit:
    """Change fields of a device."""
    return _element("devices", index, changes)


def counter(index: int, **changes: Any) -> Edit:
    """Change fields of a counter."""
    return _element("counters", index, changes)


def watts(free: int) -> Edit:
    """Change what is free of the fabric's counter."""
    return counter(2, free=free)


def demand(index: DemandIndex, **changes: Any) -> Edit:
    """Change fields of a demand."""
    return _element("demands", index, changes)


def claim(demand: DemandIndex, **changes: Any) -> Edit:
    """Change fields of a demand's only claim."""
    return lambda scene: _element(
        "demands",
        demand,
        {
            "claims": (
                replace(scene.problem.demands[demand].claims[0], **changes),
            )
        },
    )(scene)


def asks(
    demand: DemandIndex, request: int, alternative: int = 0, **changes: Any
) -> Edit:
    """Change fields of an alternative of a request."""

    def edit(scene: Scene) -> Scene:
        requests = list(scene.problem.demands[demand].claims[0].requests)
        alternatives = list(requests[request].alternatives)
        alternatives[alternative] = replace(
            alternatives[alternative], **changes
        )
        requests[request] = replace(
            requests[request], alternatives=tuple(alternatives)
        )
        return scene.edited(claim(demand, requests=tuple(requests)))

    return edit


def pool(node: NodeIndex, index: int, **changes: Any) -> Edit:
    """Change fields of a pool as a node sees it."""

    def edit(scene: Scene) -> Scene:
        pools = list(scene.problem.nodes[node].pools)
        pools[index] = replace(pools[index], **changes)
        return _element("nodes", node, {"pools": tuple(pools)})(scene)

    return edit


def selects(
    alternative: int, device: int, answer: bool | AllocationError
) -> Edit:
    """Change whether an alternative selects a device."""

    def edit(scene: Scene) -> Scene:
        table = _table(scene)
        selected = {**table.selected, (alternative, device): answer}
        return scene.edited(
            problem(eligibility=replace(table, selected=selected))
        )

    return edit


def refuses(alternative: int, device: int) -> Edit:
    """Let the device keep the alternative out."""

    def edit(scene: Scene) -> Scene:
        table = _table(scene)
        return scene.edited(
            problem(
                eligibility=replace(
                    table, refused=table.refused | {(alternative, device)}
                )
            )
        )

    return edit


def charges(alternative: int, device: int, charge: Charge | None) -> Edit:
    """Change what an allocation takes."""

    def edit(scene: Scene) -> Scene:
        table = _table(scene)
        taken = {**table.charges, (alternative, device): charge}
        return scene.edited(problem(eligibility=replace(table, charges=taken)))

    return edit


def _table(scene: Scene) -> TableEligibility:
    assert isinstance(scene.problem.eligibility, TableEligibility)
    return scene.problem.eligibility


def usage(**changes: Any) -> Edit:
    """Change fields of the usage."""
    return lambda scene: scene.edited(
        problem(usage=replace(scene.problem.usage, **changes))
    )
