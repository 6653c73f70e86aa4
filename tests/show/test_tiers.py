"""What is proven of each tier is in the answer's text, where it is not just everything."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

import dralloc
from dralloc.objects.report import show
from dralloc.problem.solution import Tier
from dralloc.show.tiers import tiers_table

TITLE = "Tiers of the objective, the most important first"


def text(plan: dralloc.Plan, *, wide: bool = False) -> str:
    stream = io.StringIO()
    show(Console(file=stream, width=200), plan.parts(), wide=wide)
    return stream.getvalue()


def test_each_tier_has_a_row() -> None:
    tiers = [
        Tier("pods@100", 7, 7),
        Tier("devices@0", 3, 4, why="the time was over"),
        Tier("spread", 5, 4, sense=-1, why="the time was over"),
    ]
    assert tiers_table(tiers).rows == [
        (
            "pods@100",
            "pods of priority 100, the more the better",
            "7",
            "7",
            "0.0%",
            "proven",
        ),
        (
            "devices@0",
            "devices of priority 0, the more the better",
            "3",
            "4",
            "33.3%",
            "not proven: the time was over",
        ),
        (
            "spread",
            "placements on the node with the most, the less the better",
            "5",
            "4",
            "20.0%",
            "not proven: the time was over",
        ),
    ]


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("weight", "weight of what is placed"),
        ("fairness-1", "what the poorest namespace uses"),
        ("fairness-3", "what the 3 poorest namespaces use together"),
        ("devices", "devices"),
        ("fewest-nodes", "nodes that get a placement"),
    ],
)
def test_a_tier_says_what_it_counts(name: str, counted: str) -> None:
    [row] = tiers_table([Tier(name, 1, 1)]).rows
    assert row[1] == f"{counted}, the more the better"


def test_all_proven_is_said_by_the_headline_alone() -> None:
    plan = dralloc.allocate(dralloc.example())
    assert plan.gap == 0
    assert TITLE not in text(plan)
    assert TITLE in text(plan, wide=True)


def test_first_fit_proves_nothing_and_has_no_tiers() -> None:
    plan = dralloc.allocate(dralloc.example(), "first-fit")
    assert TITLE not in text(plan, wide=True)


def test_what_is_not_proven_is_in_the_text() -> None:
    plan = dralloc.allocate(dralloc.example())
    open_tier = Tier("weight", 2, 3, why="the time was over")
    solution = replace(plan.solution, tiers=(open_tier,))
    shown = text(replace(plan, solution=solution))
    assert TITLE in shown
    assert "not proven: the time was over" in shown
