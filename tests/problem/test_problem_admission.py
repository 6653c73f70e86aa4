"""Whether enough of a gang, or of a tree of gangs, is placed for any of it to be."""

from __future__ import annotations

import pytest

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, ParentGroup, are_admitted

ROOT = ParentGroup("root", 2, frozenset({"settled"}))
LOWER = ParentGroup("lower", 1, parent=ROOT)


def demand(
    name: str,
    gang: str = "",
    quorum: int | None = None,
    parent: ParentGroup | None = None,
) -> Demand:
    return Demand(
        ClaimKey("default", name), (), gang=gang, quorum=quorum, parent=parent
    )


@pytest.mark.parametrize(
    ("placed", "admitted"),
    [
        ("abc", True),
        ("ab", False),
        ("abcd", True),
        ("cd", False),
        ("ac", False),
        ("abd", False),
        ("", False),
    ],
)
def test_every_level_needs_enough_children(placed: str, admitted: bool) -> None:
    tree = [
        demand("a", "two", 2, ROOT),
        demand("b", "two", 2, ROOT),
        demand("c", "below", None, LOWER),
        demand("d", "settled", None, ROOT),
    ]
    assert (
        are_admitted(tree, {ClaimKey("default", name) for name in placed})
        is admitted
    )


@pytest.mark.parametrize(("placed", "admitted"), [("ab", True), ("a", False)])
def test_a_gang_needs_its_quorum(placed: str, admitted: bool) -> None:
    gang = [demand(name, "gang", 2) for name in "abc"]
    assert (
        are_admitted(gang, {ClaimKey("default", name) for name in placed})
        is admitted
    )


def test_a_demand_alone_needs_itself() -> None:
    assert are_admitted([demand("a")], {ClaimKey("default", "a")})
    assert not are_admitted([demand("a")], ())
