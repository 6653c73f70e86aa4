"""Which claims would have to give back what they hold, or move, for the demand to fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

from dralloc.explain.blockers import Blockers
from dralloc.explain.change import Change
from dralloc.explain.move import Mover
from dralloc.explain.situation import Situation
from dralloc.names import ClaimKey

__all__ = ["Release", "releases"]

_NODES_TRIED = 8
_NAMED = 6
_COMBINATIONS = 64


@dataclass(frozen=True)
class Release:
    """Claims that make room on a node, by moving elsewhere or for good."""

    text: str
    node: int
    amount: int
    change: Change
    moved: bool = False
    remark: str = ""


@dataclass(frozen=True)
class _Room:
    node: int
    claims: tuple[ClaimKey, ...]
    priority: int


def releases(situation: Situation) -> Iterator[Release]:
    """The cheapest move, the release of the fewest claims, and the release that costs the least priority."""
    rooms = list(_rooms(situation))
    if not rooms:
        return
    moved = _moved(situation, sorted(rooms, key=lambda room: len(room.claims)))
    if moved is not None:
        yield moved
    fewest = min(rooms, key=lambda room: (len(room.claims), room.priority))
    lowest = min(rooms, key=lambda room: (room.priority, len(room.claims)))
    for place, room in enumerate([fewest] if lowest.priority == fewest.priority else [fewest, lowest]):
        highest = "highest " if len(room.claims) > 1 else ""
        text = f"release {_listed(room.claims)} ({highest}priority {room.priority})"
        change = Change(released=frozenset(room.claims))
        yield Release(text, room.node, len(room.claims) + place, change)


def _rooms(situation: Situation) -> Iterator[_Room]:
    """For the nodes where the least seems to be in the way, claims of which none can stay."""
    blockers = Blockers(situation)
    for node in blockers.order()[:_NODES_TRIED]:
        for candidates in (blockers.cheapest, blockers.every, blockers.users):
            tried = candidates(node)
            if tried and _admits(situation, node, tried):
                kept = _needed(situation, node, blockers.by_priority(tried))
                kept = _fewer(situation, node, blockers.every(node), kept) or kept
                # First fit may stop at an error on another node, or find room on an earlier one.
                witness = situation.lab.admit(Change(released=frozenset(kept)))
                if witness is not None:
                    yield _Room(witness.node, tuple(kept), max(map(blockers.priority, kept)))
                break


def _admits(situation: Situation, node: int, claims: set[ClaimKey]) -> bool:
    return situation.lab.admit(Change(released=frozenset(claims)), nodes=[node]) is not None


def _needed(situation: Situation, node: int, claims: list[ClaimKey]) -> list[ClaimKey]:
    """Let each claim stay if the others are enough, those of the highest priority first."""
    needed = set(claims)
    for claim in claims:
        if len(needed) > 1 and _admits(situation, node, needed - {claim}):
            needed.discard(claim)
    return sorted(needed)


def _fewer(situation: Situation, node: int, claims: set[ClaimKey], than: list[ClaimKey]) -> list[ClaimKey] | None:
    """One or two claims that are enough, if that is fewer, and there are not too many to try."""
    for size in range(1, min(len(than), 3)):
        if comb(len(claims), size) > _COMBINATIONS:
            break
        for some in combinations(sorted(claims), size):
            if _admits(situation, node, set(some)):
                return list(some)
    return None


def _moved(situation: Situation, rooms: list[_Room]) -> Release | None:
    mover = Mover(situation)
    for room in rooms:
        if len(room.claims) <= situation.most_moves:
            homes = mover.homes(room.node, room.claims)
            if homes is not None:
                names = situation.problem.nodes
                remark = ", ".join(f"{claim} goes to {names[node].name}" for claim, node in homes.items())
                change = Change(released=frozenset(room.claims))
                return Release(f"move {_listed(room.claims)}", room.node, len(room.claims), change, True, f"; {remark}")
    return None


def _listed(claims: tuple[ClaimKey, ...]) -> str:
    named = ", ".join(map(str, claims[:_NAMED]))
    more = f" and {len(claims) - _NAMED} more" if len(claims) > _NAMED else ""
    return f"claim {named}" if len(claims) == 1 else f"{len(claims)} claims: {named}{more}"
