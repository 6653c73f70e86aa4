"""Headroom: how many more copies of some claims fit beside the allocated ones, each claim alone and all together.

From the bottom: first fit on nodes that have nothing to do with each other; sums of what fits on each of them; every
way in which none can be had more often without loss of others; the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Unpack

from dralloc.ask.answer_checks import check_newcomers
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.copies import (
    CopyCount,
    PerDeviceBound,
    count_copies,
    replicated,
)
from dralloc.ask.whatif.document import HeadroomDocument
from dralloc.ask.whatif.fronts import JointPacking, Vector, find_front
from dralloc.ask.whatif.mix_entries import CompiledMix, MixEntry, compile_mix
from dralloc.ask.whatif.models.selection import best_sum
from dralloc.ask.whatif.node_types import NotRepresentativeError
from dralloc.ask.whatif.partitions import read_single
from dralloc.check import check
from dralloc.check.objects import Binding
from dralloc.objects.api.base import changed
from dralloc.objects.choices import (
    Choices,
    ChoiceWords,
    Mode,
    Options,
    spelled_out,
)
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError, FatalError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.report import Line, Part, Table
from dralloc.objects.value_kinds import WHOLE_NUMBER, takes
from dralloc.problem import (
    Charge,
    Demand,
    DeviceIndex,
    Node,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.equivalence import equivalent_nodes
from dralloc.problem.subproblem import cut_alone, separated
from dralloc.show.question import Provisional
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum.stopping import Stop, Stopped, with_time_left
from dralloc.solve.work import phase

__all__ = [
    "POINTS",
    "Headroom",
    "divide",
    "headroom",
    "isolated_first_fit",
    "minkowski_sum",
    "pareto_front",
]


# ----------------------------------------------------------------------------
# First fit of many demands, one class after the other, on nodes that have nothing to
# do with each other.
#
# What it puts on a node depends only on what the node is like, and on what has been
# put there before. So one node of each class is asked for all (see
# `dralloc.problem.equivalence`), and once for each state that it comes into.


class _EndedError(Exception):
    """An error on a node ends the attempt for every node."""


def isolated_first_fit(
    problem: Problem,
    demands: Sequence[Demand],
    max_counts: Vector,
    order: Sequence[NodeIndex] | None = None,
) -> IsolatedFirstFit | None:
    """Sort the nodes by what they are like; None if they have to do with each other.

    Parameters
    ----------
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    """
    classes = equivalent_nodes(problem, demands)
    if classes is None:
        return None
    first = {node: group[0] for group in classes.groups for node in group}
    nodes = problem.all_nodes if order is None else order
    return IsolatedFirstFit(
        problem,
        demands,
        max_counts,
        tuple(first[node] for node in nodes if node in first),
    )


@dataclass
class IsolatedFirstFit:
    """Nodes in search order.

    Parameters
    ----------
    max_counts
        Not more of each fit alone.
    representatives
        By node, the first one that is equivalent.
    """

    problem: Problem
    demands: Sequence[Demand]
    max_counts: Vector
    representatives: tuple[NodeIndex, ...]
    _counts: dict[tuple[int, Vector], int] = field(default_factory=dict)
    _parts: dict[int, tuple[Problem, list[Demand], Vector]] = field(
        default_factory=dict
    )

    def first_fit(self, counts: Vector) -> Vector | None:
        """Return how many of each are placed, of so many; None if an error ends that."""
        states: list[Vector] = [()] * len(self.representatives)
        try:
            for count in counts:
                waiting = count
                for node, representative in enumerate(self.representatives):
                    placed = 0
                    if waiting:
                        fitting = self._count(representative, states[node])
                        placed = min(waiting, fitting)
                    waiting -= placed
                    states[node] = (*states[node], placed)
        except _EndedError:
            return None
        return (
            tuple(map(sum, zip(*states, strict=True)))
            if states
            else (0,) * len(counts)
        )

    def _count(self, representative: NodeIndex, before: Vector) -> int:
        """Return how many copies of the next demand a node takes behind the given numbers of the demands before."""
        key = representative, before
        if key not in self._counts:
            part, demands, max_counts = self._part(representative)
            counts = (*before, max_counts[len(before)])
            problem = replicated(part, demands[: len(counts)], counts)
            solution = first_fit(problem)
            if any(
                isinstance(error, FatalError)
                for error in solution.errors.values()
            ):
                raise _EndedError
            check(problem, solution)
            self._counts[key] = len(solution.placements) - sum(before)
        return self._counts[key]

    def _part(
        self, representative: NodeIndex
    ) -> tuple[Problem, list[Demand], Vector]:
        """The node alone, the demands there, and how many of each could fit at most."""
        if representative not in self._parts:
            part, demands = cut_alone(
                self.problem, self.demands, representative
            )
            totals = (
                PerDeviceBound(part, demand).total() for demand in demands
            )
            max_counts = (
                high if total is None else min(high, total)
                for high, total in zip(self.max_counts, totals, strict=True)
            )
            self._parts[representative] = part, demands, tuple(max_counts)
        return self._parts[representative]


# ----------------------------------------------------------------------------
# What fits together on nodes that have nothing to do with each other: sums of what
# fits on each.
#
# Of equivalent nodes (see `dralloc.problem.equivalence`) one front is found,
# with all of its points. A point of the whole is a sum with one point for each node,
# so the best sum is found in numbers of nodes, however many there are (a Minkowski
# sum of fronts; Ehrgott, Multicriteria Optimization, 2005).
#
# For demands of one device each, what shares nothing might as well be nodes of their
# own. A GPU with all its partitions draws on counters that no other GPU draws on, so
# that equal GPUs stand for each other on whatever nodes they are (KEP-4815).

_MOST_CLASSES: Final = 64
_MOST_POINTS: Final = 600
"""With more classes of nodes, or more points of them together, that is no less work than to look at the whole."""


@dataclass
class MinkowskiSum:
    """The numbers of copies that fit on nodes of several classes together.

    Parameters
    ----------
    sets
        By the points that fit on one node, each of which has been placed and checked, how many nodes there are.
    stop
        Each sum is looked for as long as both this and the options allow.
    proven
        Whether everything that was said so far is proven.
    """

    sets: Mapping[tuple[Vector, ...], int]
    max_counts: Vector
    options: Options
    stop: Stop = field(default_factory=Stop)
    proven: bool = True

    def reach(self, least: Vector, last: int = 0) -> Vector | None:
        """The most of each beyond so many, each before the one that comes last; None if that is too many."""
        extra = self.max_counts[last] - least[last]
        worth = [
            1 if demand == last else extra + 1 for demand in range(len(least))
        ]
        options = with_time_left(self.options, self.stop)
        point, proven = best_sum(self.sets, least, worth, options)
        self.proven &= proven
        return point


def minkowski_sum(  # noqa: PLR0913 - the last ones have defaults
    problem: Problem,
    demands: Sequence[Demand],
    max_counts: Vector,
    options: Options,
    order: Sequence[NodeIndex] | None = None,
    stop: Stop | None = None,
) -> MinkowskiSum | None:
    """Find the points of each class of node; None if nodes have to do with each other, or are of too many classes.

    Where time ends before all points of a class are known, what first fit places there stands for them, and nothing is
    proven.

    Parameters
    ----------
    order
        As in `dralloc.ask.whatif.headroom.isolated_first_fit`.
    """
    divided = divide(problem, demands)
    # How many nodes each one of the problem stands for; its parts are there as often.
    times = Counter(problem.all_nodes if order is None else order)
    classes = equivalent_nodes(divided.problem, divided.demands)
    if classes is None or len(classes.groups) > _MOST_CLASSES:
        return None
    fronts: Counter[tuple[Vector, ...]] = Counter()
    points_allowed = _MOST_POINTS
    ending, proven = stop or Stop(), True
    for group in classes.groups:
        points: tuple[Vector, ...] | None = None
        with suppress(Stopped):
            packing = JointPacking.alone(
                divided.problem,
                divided.demands,
                group[0],
                max_counts,
                options,
                ending,
            )
            points = _points(packing, points_allowed)
        if points is None:
            # Sums prove nothing where points of a part are missing or not proven.
            if not ending.reached():
                return None
            proven = False
            points = (_first_fit_on(divided, group[0], max_counts),)
        fronts[points] += sum(times[divided.homes[part]] for part in group)
        points_allowed -= len(points)
    return MinkowskiSum(fronts, max_counts, options, ending, proven)


def _points(packing: JointPacking, limit: int) -> tuple[Vector, ...] | None:
    """Return all points of a node; None if there are more than so many, or one of them is not proven."""
    if not any(packing.max_counts):
        return (packing.max_counts,)
    front = find_front(packing.max_counts, packing.reach, limit, packing.stop)
    return front.points if front.complete and packing.proven else None


def _first_fit_on(
    divided: Divided, node: NodeIndex, max_counts: Vector
) -> Vector:
    """How many of each first fit places on a node alone."""
    part, demands = cut_alone(divided.problem, divided.demands, node)
    totals = [PerDeviceBound(part, demand).total() for demand in demands]
    counts = tuple(
        high if total is None else min(high, total)
        for high, total in zip(max_counts, totals, strict=True)
    )
    return JointPacking(part, demands, counts).first_fit(counts)


@dataclass(frozen=True, slots=True)
class Divided:
    """The problem with a node for each part, the demands there, and for each part the node that it is of."""

    problem: Problem
    demands: Sequence[Demand]
    homes: Sequence[NodeIndex]


def divide(problem: Problem, demands: Sequence[Demand]) -> Divided:
    """Take nodes apart; they stay whole if a demand wants more than one device."""
    # Two devices of one demand could come from different parts of a node.
    if any(read_single(demand) is None for demand in demands):
        return Divided(problem, demands, problem.all_nodes)
    charges = _Charges(problem, demands)
    nodes: list[Node] = []
    homes: list[NodeIndex] = []
    for node_index, node in numbered(problem.nodes):
        # Devices that no demand selects are in no part.
        selected = [device for device in node.devices() if charges.of(device)]
        for members in map(
            frozenset, separated(problem, selected, charges.counters)
        ):
            nodes.append(_part_of_node(node, members, len(nodes)))
            homes.append(node_index)
    moved = []
    for demand in demands:
        if demand.nodes is not None:
            # A demand may go to all parts of a node, or to none.
            allowed = frozenset(demand.nodes)
            parts = tuple(
                NodeIndex(part)
                for part, home in enumerate(homes)
                if home in allowed
            )
            moved.append(replace(demand, nodes=parts))
        else:
            moved.append(demand)
    return Divided(replace(problem, nodes=tuple(nodes)), moved, homes)


def _part_of_node(node: Node, members: Set[int], part_index: int) -> Node:
    """A node with only these devices, in pools that have any of them."""
    pools = []
    for pool in node.pools:
        devices = tuple(device for device in pool.devices if device in members)
        if devices:
            pools.append(replace(pool, devices=devices))
    return Node(f"{node.name} #{part_index}", tuple(pools))


class _Charges:
    """The amounts that demands would take of devices; equal devices are asked once, unless they charge counters."""

    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.eligibility = problem.eligibility
        self.alternatives = [
            alternative.index
            for demand in demands
            for alternative in demand.alternatives()
        ]
        self.known: dict[Hashable, list[Charge]] = {}

    def of(self, device: DeviceIndex) -> list[Charge]:
        """The charges of a device that is equal to this one; none if no demand selects it."""
        key = self.eligibility.device_key(device)
        if key not in self.known:
            self.known[key] = list(self._asked(device))
        return self.known[key]

    def counters(self, device: DeviceIndex) -> Iterator[int]:
        """The counters that are charged by request."""
        if any(charge.counters for charge in self.of(device)):
            yield from (
                counter
                for charge in self._asked(device)
                for counter, _ in charge.counters
            )

    def _asked(self, device: DeviceIndex) -> Iterator[Charge]:
        offers = self.eligibility
        for alternative in self.alternatives:
            charge = (
                offers.charge(alternative, device)
                if offers.selects(alternative, device) is True
                else None
            )
            if charge is not None:
                yield charge


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """Numbers of demands that fit together, and how many first fit places if it is given exactly these, in order."""

    numbers: Vector
    first_fit: Vector


@dataclass(frozen=True, slots=True)
class ParetoFront:
    """The Pareto front of several demands.

    Parameters
    ----------
    points
        Each has been placed, and the checker has accepted it; where nodes have nothing to do with each other, on one
        node of each class.
    complete
        Whether it is proven that there is no other point.
    proven
        Whether no point can be improved; false if the time limit has ended a search.
    """

    points: tuple[FrontPoint, ...]
    complete: bool
    proven: bool


def pareto_front(  # noqa: PLR0913 - the last ones have defaults
    problem: Problem,
    demands: Sequence[Demand],
    max_counts: Vector,
    *,
    order: Sequence[NodeIndex] | None = None,
    limit: int | None = None,
    options: Options | None = None,
) -> ParetoFront:
    """Find the front, or so many points of it that lie well apart, within the time limit as a whole.

    Where nodes have nothing to do with each other it is put together from those of single nodes, else of the whole.

    Parameters
    ----------
    problem
        Of which only the inventory is looked at.
    demands
        None of them can be had without end.
    max_counts
        How many of each fit alone, at most.
    order
        For each node in search order the one of the problem that stands for it; None if they all stand for themselves.
    limit
        The largest number of points; None for all.

    Raises
    ------
    NotRepresentativeError
        Some stand for others, and have to do with each other.
    """
    chosen = options or Options()
    stop = Stop.after(chosen.time_limit)
    packing = JointPacking(problem, demands, max_counts, chosen, stop)
    sums = minkowski_sum(problem, demands, max_counts, chosen, order, stop)
    isolated = isolated_first_fit(problem, demands, max_counts, order)
    alone = order is None or len(order) == len(problem.nodes)
    # The problem has one of equal nodes only: as a whole it says nothing about all of them.
    if not alone and (sums is None or isolated is None):
        raise NotRepresentativeError
    exact = packing if sums is None else sums
    front = find_front(max_counts, exact.reach, limit, stop)

    def first_fit(counts: Vector) -> Vector:
        # It is None as well where an error ends the attempt: then the problem as a whole is asked.
        placed = None if isolated is None else isolated.first_fit(counts)
        if placed is None and not alone:
            raise NotRepresentativeError
        return packing.first_fit(counts) if placed is None else placed

    points = tuple(
        FrontPoint(counts, first_fit(counts)) for counts in front.points
    )
    # Where a search has ended early there may be points beyond those that it found.
    enough = front.complete or len(front.points) == limit
    proven = exact.proven and enough
    return ParetoFront(points, front.complete and exact.proven, proven)


POINTS: Final = 25
"""So many points of a front are enough to see its shape."""

MOST_ENTRIES: Final = 3
"""A front in more dimensions has too many points for anybody to look at."""


@dataclass(frozen=True, repr=False)
class Headroom(Provisional):
    """How many more fit. ``print(headroom)`` is a readable report.

    Parameters
    ----------
    entries
        What was asked for.
    alone
        For each entry, how many fit if nothing else comes.
    joint
        How many of each fit together; None if there is one entry only, or one that nothing limits.
    left_out
        How many pending claims do not count.
    """

    document = HeadroomDocument

    entries: tuple[MixEntry, ...]
    alone: tuple[CopyCount, ...]
    joint: ParetoFront | None = None
    left_out: int = 0

    @property
    def conclusion(self) -> str:
        """Say how many more of each fit alone."""
        fitting = zip(self.entries, self.alone, strict=True)
        return "how many more fit: " + ", ".join(
            f"{_exactly(count)} of {entry.title}" for entry, count in fitting
        )

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        columns = ("claim", ">exactly", ">first fit", ">device by device")
        rows = [
            (
                entry.title,
                _exactly(count),
                _count(count.first_fit),
                _count(count.per_device),
            )
            for entry, count in zip(self.entries, self.alone, strict=True)
        ]
        parts: list[Part] = [
            Table("How many more fit, each alone", columns, rows)
        ]
        parts += self._together()
        parts += self._remarks()
        return parts

    def _together(self) -> Iterator[Part]:
        if len(self.entries) < 2:
            return
        if self.joint is None:
            yield Line(
                "\nWhat fits together is not shown: nothing limits one of the claims."
            )
            return
        columns = (
            *(f">{entry.title}" for entry in self.entries),
            ">first fit, of these",
        )
        rows = [
            (*map(str, point.numbers), " + ".join(map(str, point.first_fit)))
            for point in self.joint.points
        ]
        yield Table(
            "What fits together: more of one is less of another", columns, rows
        )
        if not self.joint.proven:
            yield Line(
                "The time limit has ended a search: the points may not be the best, and there can be others.",
                "yellow",
            )
        elif not self.joint.complete:
            yield Line(
                f"These {len(rows)} points are not all: there can be others in between (--points)."
            )

    def _remarks(self) -> Iterator[Line]:
        if self.left_out:
            yield Line(f"\n{self.left_out} pending claims do not count.")
        for entry, count in zip(self.entries, self.alone, strict=True):
            if count.reason:
                yield Line(
                    f"{entry.title}: first fit ends with an error: {count.reason}",
                    "yellow",
                )
        for warning in dict.fromkeys(
            warning for count in self.alone for warning in count.warnings
        ):
            yield Line(f"warning: {warning}", "yellow")


@takes(points=WHOLE_NUMBER.or_none())
@without_garbage_collection()
@spelled_out(ChoiceWords)
def headroom(
    cluster: Cluster,
    *entries: MixEntry | str,
    points: int | None = POINTS,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> Headroom:
    """Find out how many more of a claim or pod fit beside everything that is allocated and runs.

    Of several claims, also how many fit together: all vectors of numbers of which none can be raised without lowering
    another (the Pareto front).

    Parameters
    ----------
    entries
        Claims, templates or pods: ``namespace/name``, or a `MixEntry`.
    points
        The most points of a front; if there are more, these lie well apart. None for all.
    choices, words
        As in `dralloc.allocate`, without goals, gangs, caps and fairness.

    Raises
    ------
    DrallocError
        There is no such claim, template, pod or node, more than three of them are to be had together, there is a number
        with one of them, or not even one point is to be found.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.headroom(dralloc.example(), "default/any", "default/large")
    <Headroom: how many more fit: 2 of default/any, 1 of default/large>
    """
    mix_entries = tuple(map(MixEntry.of, entries))
    if len(mix_entries) > MOST_ENTRIES:
        raise DrallocError(
            f"headroom for {len(mix_entries)} claims: fronts are found for {MOST_ENTRIES} at most"
        )
    numbered_entry = next(
        (entry for entry in mix_entries if entry.number not in (None, 1)), None
    )
    if numbered_entry is not None:
        raise DrallocError(
            f"{numbered_entry.title}={numbered_entry.number}: headroom counts single copies; it takes no number"
        )
    if points is not None and points < 1:
        raise DrallocError(
            f"points: {points}: expected a number of at least 1, or None for all"
        )
    options = Choices.of(
        choices, words, unused=("gang", "caps", "fair", "keep", "goal")
    )
    cluster = (
        cluster_of(cluster)
        .including(options.include)
        .with_gates(options.features)
    )
    timings: dict[str, float] = {}
    stop = Stop.after(options.time_limit)

    left_out = sum(not claim.is_allocated for claim in cluster.claims)

    def find(*, once: bool) -> Headroom:
        with phase(timings, "compile"):
            mix = compile_mix(cluster, mix_entries, options, once=once)
        with phase(timings, "headroom"):
            # How many nodes each compiled one stands for.
            problem, times = mix.problem, Counter(mix.order)
            # What is left of the time is for each claim alone, and for all of them together.
            questions = len(mix.demands) + (len(mix.demands) > 1)
            alone = tuple(
                count_copies(
                    problem,
                    demand,
                    with_time_left(options, stop, 1 / (questions - index)),
                    times,
                )
                for index, demand in enumerate(mix.demands)
            )
        with phase(timings, "check"):
            for demand, counted in zip(mix.demands, alone, strict=True):
                _check(mix, demand, counted)
        with phase(timings, "together"):
            joint = _joint(mix, alone, points, with_time_left(options, stop))
        unmodelled = mix.compiled.unmodelled({Mode.OPTIMAL})
        return Headroom(
            mix_entries,
            alone,
            joint,
            left_out,
            unmodelled=unmodelled,
            timings=timings,
        )

    try:
        # Of equal nodes one is compiled for all, as long as its answers hold for the others.
        return find(once=True)
    except NotRepresentativeError:
        return find(once=False)


def _check(mix: CompiledMix, demand: Demand, counted: CopyCount) -> None:
    """Make sure that so many copies of a pod keep the rules of the objects, too; claims alone know no rules of pods.

    Raises
    ------
    CheckError
        They do not.
    """
    compiled = mix.compiled
    if compiled.is_claim(demand):
        return
    cluster = compiled.cluster
    pod = cluster.pods_by_key[demand.key]
    claims = cluster.pod_claims(pod)
    copies = [
        changed(pod, metadata=changed(pod.metadata, name=f"{pod.name} {index}"))
        for index in range(len(counted.homes))
    ]
    entries = {entry.key for entry in mix.demands}
    scenario = Scenario(cluster).without_pods(entries)
    beside = scenario.with_pods([(copy, claims) for copy in copies], ()).cluster
    bindings = [
        Binding(copy.key, home)
        for copy, home in zip(copies, counted.homes, strict=True)
    ]
    check_newcomers(compiled, compiled.choices, beside, bindings)


def _joint(
    mix: CompiledMix,
    alone: Sequence[CopyCount],
    points: int | None,
    options: Options | None,
) -> ParetoFront | None:
    max_counts = tuple(
        count.bound for count in alone if count.bound is not None
    )
    # Of what nothing limits there is no largest number.
    if len(mix.demands) < 2 or len(max_counts) < len(alone):
        return None
    return pareto_front(
        mix.problem,
        mix.demands,
        max_counts,
        order=mix.order,
        limit=points,
        options=options,
    )


def _count(copies: int | None) -> str:
    return "no end" if copies is None else str(copies)


def _exactly(count: CopyCount) -> str:
    if count.exact:
        return _count(count.number)
    return f"{count.number} or more, at most {_count(count.bound)}"
