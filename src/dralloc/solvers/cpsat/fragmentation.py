"""The units that the goal ``least-fragmentation`` wants to keep whole."""

from __future__ import annotations

from collections.abc import Hashable

from dralloc.problem import Charge, Problem

__all__ = ["touched_before", "units"]


def units(problem: Problem, device: int, charge: Charge) -> tuple[Hashable, ...]:
    """What an allocation of the device touches: the counter sets it consumes (KEP-4815), or else the device itself."""
    slot = problem.devices[device].slot
    drawn = [counter for version in problem.versions[slot] for counter, _ in problem.devices[version].consumes]
    drawn += [counter for counter, _ in charge.counters]
    sets = dict.fromkeys(problem.counters[counter].id[:3] for counter in drawn)
    return tuple(sets) if sets else (slot,)


def touched_before(problem: Problem) -> frozenset[Hashable]:
    """The units that allocated claims draw on."""
    sets = {counter.id[:3] for counter in problem.counters if counter.free < counter.total}
    return frozenset(sets | problem.usage.held | set(problem.usage.shares))
