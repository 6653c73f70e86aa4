"""Components worked out in other processes; `dralloc.solve.work` says where.

What is sent is the part of the problem that a component uses, as a small problem of its own: see the excerpt at the
top.
"""

from __future__ import annotations

import os
import time
from collections.abc import (
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import Final, NamedTuple

from dralloc.objects.choices import Backend, Options
from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import (
    AlternativeIndex,
    Charge,
    CounterIndex,
    DeviceIndex,
    Node,
    Problem,
    Usage,
    numbered,
)
from dralloc.problem.indices import DemandIndex, grouped, indices
from dralloc.problem.problem import EligibilityTable, renumbered
from dralloc.problem.solution import Placement
from dralloc.problem.subproblem import Subproblem, cut, places, with_versions
from dralloc.solve.backends import shield_children, stop_processes
from dralloc.solve.excerpt import Excerpt
from dralloc.solve.optimum.candidates import (
    Candidate,
    CandidateSite,
    ServingChoice,
)
from dralloc.solve.optimum.classes.component import CountedComponent
from dralloc.solve.optimum.classes.demand_classes import DemandClass
from dralloc.solve.optimum.component import Component, Part, TimeSharing
from dralloc.solve.optimum.objective import DemandSubset
from dralloc.solve.optimum.packing.component import PackedComponent
from dralloc.solve.optimum.stopping import Cancelled, Stop
from dralloc.solve.work import run_all

__all__ = ["Excerpts", "work_out"]

# ----------------------------------------------------------------------------
# Excerpts: the part of a problem that a component uses, to be sent to another process.
# Everything gets new numbers, in the order of the old ones, so that the same models
# come out as from the whole.


class Excerpts:
    """Makes excerpts of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def of_demands(self, demands: Sequence[DemandIndex]) -> Excerpt:
        """Only demands, for a component that has all else in counts."""
        problem = replace(
            self.problem,
            demands=tuple(self.problem.demands[demand] for demand in demands),
            nodes=(),
            devices=(),
            counters=(),
            usage=Usage(frozenset(), {}, {}),
        )
        return Excerpt(problem, demands)

    def of_sites(
        self, sites: Mapping[DemandIndex, Sequence[CandidateSite]]
    ) -> tuple[Excerpt, dict[DemandIndex, tuple[CandidateSite, ...]]]:
        """Demands with all that their sites touch; and the sites in its numbers, which say what allocations take."""
        full = self.problem
        all_sites = list(chain.from_iterable(sites.values()))
        candidates: list[Candidate] = []
        for site in all_sites:
            for choice in site.choices():
                candidates += (*choice.candidates, *choice.blocked)
        touched = (candidate.device for candidate in candidates)
        devices = sorted(with_versions(full, touched))
        drawn: set[CounterIndex] = set()
        for device in devices:
            drawn.update(
                counter for counter, _ in full.devices[device].consumes
            )
        for candidate in candidates:
            drawn.update(counter for counter, _ in candidate.charge.counters)
        # Whether a set is in use depends on all of its counters.
        sets = {full.counters[counter].id[:3] for counter in drawn}
        counters = sorted(
            chain.from_iterable(self._set_of[set_] for set_ in sets)
        )
        charges: dict[tuple[AlternativeIndex, DeviceIndex], Charge] = {}
        part = cut(
            full,
            sorted({site.node for site in all_sites}),
            devices=devices,
            counters=counters,
            demands=[
                replace(full.demands[demand], nodes=None) for demand in sites
            ],
            eligibility=EligibilityTable(charges),
        )
        problem, renumbering = part.problem, _Renumbering(part, charges)
        if not any(site.shared for site in all_sites):
            # Only where claims are shared it matters from where an allocated device can be used.
            nodes = tuple(Node(node.name, ()) for node in problem.nodes)
            problem = replace(problem, nodes=nodes)
        inside = {
            demand_index: tuple(map(renumbering.site, demand_sites))
            for demand_index, demand_sites in zip(
                indices(problem.demands), sites.values(), strict=True
            )
        }
        return Excerpt(problem, list(sites), part.nodes, part.devices), inside

    @cached_property
    def _set_of(self) -> Mapping[Hashable, list[CounterIndex]]:
        """The counters of each counter set: whether a set is in use depends on all of them."""
        return grouped(
            (counter.id[:3], counter_index)
            for counter_index, counter in numbered(self.problem.counters)
        )


class _Renumbering:
    """Sites in the numbers of a part, and what is charged there."""

    def __init__(
        self,
        part: Subproblem,
        charges: dict[tuple[AlternativeIndex, DeviceIndex], Charge],
    ) -> None:
        self.node_at = places(part.nodes)
        self.device_at = places(part.devices)
        self.counter_at = places(part.counters)
        self.charges = charges

    def site(self, site: CandidateSite) -> CandidateSite:
        requests = tuple(
            tuple(map(self._choice, choices)) for choices in site.requests
        )
        return CandidateSite(self.node_at[site.node], requests, site.shared)

    def _choice(self, choice: ServingChoice) -> ServingChoice:
        inside = partial(self._candidate, choice)
        return replace(
            choice,
            candidates=tuple(map(inside, choice.candidates)),
            loose=tuple(map(inside, choice.loose)),
            blocked=tuple(map(inside, choice.blocked)),
        )

    def _candidate(
        self, choice: ServingChoice, candidate: Candidate
    ) -> Candidate:
        device, charge = self.device_at[candidate.device], candidate.charge
        if charge.counters:
            counters = renumbered(charge.counters, self.counter_at)
            charge = replace(charge, counters=counters)
        self.charges[choice.spec.index, device] = charge
        return Candidate(device, charge)


# ----------------------------------------------------------------------------
# Working out: several components are sent together, so that a thousand of one demand
# each do not cost a thousand messages. A batch goes through the tiers as the whole
# would in one process, so every component comes out the same.


_BATCHES: Final = 4
"""For each job, so that who is done early gets more; one where time is limited, so that each gets all of it."""

_LISTEN: Final = 0.1
"""Seconds until it is asked again whether to stop."""

_PATIENCE: Final = 1.5
"""Seconds that workers have to come to an end when they are asked to stop: with less than 2 the limit is kept."""


class ReceivedAnswer(NamedTuple):
    """What has come of a component elsewhere: its bounds by tier, and the best answer."""

    bounds: Sequence[int]
    placements: tuple[Placement, ...]

    def enter(self, component: Part) -> None:
        """Have the component know it, too."""
        component.consider(self.placements)
        component.bounds[:] = map(max, component.bounds, self.bounds)


def work_out(
    problem: Problem,
    components: Sequence[Part],
    options: Options,
    levels: int,
    stop: Stop,
) -> Generator[tuple[int, ReceivedAnswer], None, None]:
    """Work out components in other processes, and give out each one's index and answer, in any order.

    Asked to stop, workers return the best that they have; what does not come in time is left out.

    Parameters
    ----------
    levels
        How many tiers are solved.
    stop
        When to stop with all of them.

    Raises
    ------
    DrallocError
        As `dralloc.solve.work.run_all`, and what solving raises.
    """
    batch_count = options.jobs
    if stop.seconds() == inf:
        batch_count *= _BATCHES
    groups = _groups(components, batch_count)
    excerpts = Excerpts(problem)
    with TemporaryDirectory(prefix="dralloc-") as directory:
        # Other processes know neither the clock of this one nor its memory: a time of day and a file tell them to stop.
        end, sign = time.time() + stop.seconds(), Path(directory) / "stop"
        batches: list[_Batch] = []
        excerpts_of: list[list[Excerpt]] = []
        for group in groups:
            sent = [
                _sent(excerpts, components[component_index], options)
                for component_index in group
            ]
            excerpts_of.append([excerpt for excerpt, _ in sent])
            inside = [component for _, component in sent]
            batches.append(_Batch(inside, options, levels, end, sign))
        for batch, results in _listen(batches, options, stop, sign):
            for component_index, excerpt, result in zip(
                groups[batch], excerpts_of[batch], results, strict=True
            ):
                outside = tuple(excerpt.outward(result.placements))
                yield component_index, result._replace(placements=outside)


def _groups(components: Sequence[Part], group_count: int) -> list[list[int]]:
    """Put components into groups of about the same size; the largest components come first."""
    groups: list[list[int]] = [
        [] for _ in range(min(group_count, len(components)))
    ]
    sizes = [0] * len(groups)
    for component_index in sorted(
        range(len(components)),
        key=lambda component_index: -components[component_index].size,
    ):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += max(1, components[component_index].size)
        groups[smallest].append(component_index)
    return groups


def _sent(
    excerpts: Excerpts, component: Part, options: Options
) -> tuple[Excerpt, Part]:
    """A component in the numbers of an excerpt."""
    subset, tiers = component.subset, component.tiers
    if isinstance(component, Component):
        excerpt, sites = excerpts.of_sites(subset.sites)
        inside = DemandSubset(excerpt.problem, indices(excerpt.demands), sites)
        return excerpt, Component(
            inside, tiers, excerpt.inward(component.placements)
        )
    excerpt = excerpts.of_demands(subset.demands)
    inside = DemandSubset(excerpt.problem, indices(excerpt.demands))
    hint = excerpt.inward(component.placements)
    if isinstance(component, CountedComponent):
        classes = _inside(excerpt, component.counted.classes)
        counted = replace(component.counted, classes=classes)
        return excerpt, CountedComponent(inside, tiers, counted, hint)
    assert isinstance(component, PackedComponent)
    classes = _inside(excerpt, component.instance.classes)
    instance = replace(component.instance, classes=classes)
    # Each process prices alone: there are as many as there should be.
    one_job = replace(options, jobs=1)
    return excerpt, PackedComponent(inside, tiers, instance, hint, one_job)


def _inside(
    excerpt: Excerpt, classes: Iterable[DemandClass]
) -> tuple[DemandClass, ...]:
    """Classes in the numbers of an excerpt."""
    inside = []
    for demand_class in classes:
        joint_demands = []
        for joint in demand_class.joint_demands:
            members = (excerpt.place_of[demand] for demand in joint)
            joint_demands.append(tuple(members))
        inside.append(replace(demand_class, joint_demands=joint_demands))
    return tuple(inside)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Components on their way through the tiers together.

    Parameters
    ----------
    levels
        How many tiers are solved.
    end
        When to stop, in seconds since the epoch: it may have to wait for its turn.
    sign
        As soon as there is such a file, it should come to an end.
    """

    components: Sequence[Part]
    options: Options
    levels: int
    end: float
    sign: Path

    @without_garbage_collection()
    def run(self) -> list[ReceivedAnswer]:
        # Who wants to know says so with the sign, or is gone.
        parent = os.getppid()
        cancelled = Cancelled(
            lambda: self.sign.exists() or os.getppid() != parent
        )
        stop = Stop.after(self.end - time.time(), cancelled)
        for component in self.components:
            if isinstance(component, PackedComponent):
                component.begin(stop)
        TimeSharing(self.options, stop).improve(
            range(self.levels), self.components
        )
        return [
            ReceivedAnswer(component.bounds, component.placements)
            for component in self.components
        ]


def _listen(
    batches: Sequence[_Batch], options: Options, stop: Stop, sign: Path
) -> Iterator[tuple[int, list[ReceivedAnswer]]]:
    """Yield the results of batches until they are done, or for a little longer if asked to stop."""
    events: SimpleQueue[
        tuple[int, list[ReceivedAnswer]] | BaseException | None
    ] = SimpleQueue()
    backend = Backend(options.backend)

    def feed() -> None:
        try:
            shield_children()
            for result in run_all(batches, backend, options.jobs):
                events.put(result)
            events.put(None)
        except BaseException as failure:
            events.put(failure)

    # In a thread of its own, so that the caller's can be interrupted without loss.
    feeder = Thread(target=feed, name="components", daemon=True)
    feeder.start()
    patience = _PATIENCE
    try:
        patience = yield from _until_done(events, stop, sign)
    except KeyboardInterrupt:
        patience = 0.0
        raise
    finally:
        sign.touch()
        feeder.join(patience)
        if feeder.is_alive():
            stop_processes(backend)


def _until_done(
    events: SimpleQueue[
        tuple[int, list[ReceivedAnswer]] | BaseException | None
    ],
    stop: Stop,
    sign: Path,
) -> Generator[tuple[int, list[ReceivedAnswer]], None, float]:
    """Returns the seconds for which the workers are still to be waited for."""
    end: float | None = None
    while end is None or perf_counter() < end:
        if end is None and stop.reached():
            sign.touch()
            end = perf_counter() + _PATIENCE
        with suppress(Empty):
            event = events.get(timeout=_LISTEN)
            if event is None:
                return _PATIENCE
            if isinstance(event, BaseException):
                if end is not None:
                    return _PATIENCE  # who was asked to stop may do so in an unpleasant way
                raise event
            yield event
    return 0.0
