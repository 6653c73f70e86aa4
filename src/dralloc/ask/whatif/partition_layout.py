"""Fixed partition layouts: the best layout of each GPU for a mix of claims, and the loss against partitions on demand.

First how well fixed partitions serve a mix of demands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final, Unpack

from dralloc.ask.whatif.copies import by_demand, replicated
from dralloc.ask.whatif.document import PartitionLayoutDocument
from dralloc.ask.whatif.mix_entries import MixEntry, workload_mix
from dralloc.ask.whatif.models.selection import (
    Choice,
    UnitLayouts,
    choose_layouts,
)
from dralloc.ask.whatif.partitions import (
    PartitionCatalog,
    Unit,
    read_single,
    shared_device,
)
from dralloc.check import check
from dralloc.objects.choices import Choices, NodelessWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import DeviceID
from dralloc.objects.report import Line, Part, Table, folded
from dralloc.problem import Demand, DemandIndex, DeviceIndex, Problem
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.show.question import Provisional
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.stopping import Stop, with_time_left
from dralloc.solve.work import phase

__all__ = ["LayoutComparison", "PartitionLayout", "compare", "partition_layout"]

# ----------------------------------------------------------------------------
# How well fixed partitions serve a mix of demands, beside partitions that are made on
# demand.

_ON_DEMAND: Final = 0.5
"""The part of the time for partitions that are made on demand."""


@dataclass(frozen=True)
class UnitClass:
    """So many equal units: GPUs that are partitioned, or devices that are not. ``example`` has the devices of one."""

    size: int
    example: tuple[DeviceID, ...]


@dataclass(frozen=True)
class LayoutPlan:
    """Fixed layouts for all units.

    Parameters
    ----------
    limit
        How many different layouts equal units have at most; None if that is not limited.
    layouts
        The kind of unit, the partitions (as on the kind's example), and how many units get them.
    served
        How many are served of each demand: placed, and accepted by the independent checker.
    bound
        No layouts serve more in sum.
    """

    limit: int | None
    layouts: tuple[tuple[int, tuple[DeviceID, ...], int], ...]
    served: tuple[int, ...]
    bound: int

    @property
    def total(self) -> int:
        """The number of demands that are served."""
        return sum(self.served)


@dataclass(frozen=True)
class LayoutComparison:
    """Fixed layouts beside partitions on demand.

    Parameters
    ----------
    units
        What there is.
    on_demand
        How many are served of each demand if partitions are made as they are needed.
    bound
        No way of making them serves more in sum.
    plans
        With one layout for all equal units, with two, and so on until more do not help; the last is the best.
    """

    units: tuple[UnitClass, ...]
    on_demand: tuple[int, ...]
    bound: int
    plans: tuple[LayoutPlan, ...]


def compare(
    problem: Problem,
    demands: Sequence[Demand],
    needs: Sequence[int],
    options: Options | None = None,
) -> LayoutComparison:
    """Find the best layouts for so many of each demand.

    Parameters
    ----------
    problem
        Nothing of it is in use.
    demands
        Each asks for one device.

    Raises
    ------
    DrallocError
        A partition can be shared, or a unit has too many layouts.
    """
    return _Comparison(PartitionCatalog(problem, demands), needs, options).run()


class _Comparison:
    """Classes of equal units, with the layouts that each of them can have."""

    def __init__(
        self,
        catalog: PartitionCatalog,
        needs: Sequence[int],
        options: Options | None,
    ) -> None:
        self.catalog = catalog
        # Each takes a device: more than there are of these are not served, however many are wanted.
        most = sum(len(unit.devices) for unit in catalog.units)
        self.needs = [min(need, most) for need in needs]
        self.options = options or Options()
        self.stop = Stop.after(self.options.time_limit)
        groups: dict[Hashable, list[Unit]] = defaultdict(list)
        for unit in catalog.units:
            groups[unit.key].append(unit)
        self.classes = list(groups.values())
        self.layouts = [catalog.layouts(members[0]) for members in self.classes]
        self.copies = replicated(catalog.problem, catalog.demands, self.needs)

    def run(self) -> LayoutComparison:
        limited = with_time_left(self.options, self.stop, _ON_DEMAND)
        best = solve(self.copies, limited, hint=first_fit(self.copies))
        check(self.copies, best)
        units = tuple(
            UnitClass(len(members), self._names(members[0].devices))
            for members in self.classes
        )
        return LayoutComparison(
            units,
            self._served(best.placements),
            best.tiers[0].bound,
            tuple(self._plans()),
        )

    def _served(self, placements: Sequence[Placement]) -> tuple[int, ...]:
        return tuple(map(len, by_demand(placements, self.needs)))

    def _plans(self) -> Iterator[LayoutPlan]:
        """With one layout, with two, ... and with any number, as long as more are better."""
        unlimited = self._plan(None)
        if unlimited is None:
            return
        for limit in range(1, max(map(len, self.layouts), default=0)):
            plan = self._plan(limit)
            # Without time for this one there is none for the next; the last one is known.
            if plan is None:
                break
            yield plan
            if plan.total >= unlimited.total:
                return
        yield unlimited

    def _plan(self, limit: int | None) -> LayoutPlan | None:
        units = []
        for members, layouts in zip(self.classes, self.layouts, strict=True):
            part_counts = tuple(layout.numbers for layout in layouts)
            units.append(UnitLayouts(len(members), part_counts))
        choice = choose_layouts(
            units,
            list(self.catalog.types),
            self.needs,
            limit,
            with_time_left(self.options, self.stop),
        )
        if choice is None:
            return None
        placements = tuple(
            sorted(
                self._placements(choice), key=lambda placement: placement.demand
            )
        )
        check(self.copies, Solution(placements))
        used: list[tuple[int, tuple[DeviceID, ...], int]] = []
        for class_index, members in enumerate(self.classes):
            rows = zip(
                self.layouts[class_index],
                choice.times[class_index],
                strict=True,
            )
            for layout, times in rows:
                if times:
                    devices = [
                        members[0].devices[position]
                        for position in layout.places
                    ]
                    used.append((class_index, self._names(devices), times))
        # Unit by unit, the most frequent layout first.
        used.sort(key=lambda entry: (entry[0], -entry[2]))
        served = self._served(placements)
        assert list(served) == [sum(row) for row in choice.served], (
            "every partition that serves is there"
        )
        return LayoutPlan(
            limit,
            tuple(used),
            served,
            choice.bound,
        )

    def _names(self, devices: Iterable[DeviceIndex]) -> tuple[DeviceID, ...]:
        return tuple(
            self.catalog.problem.devices[device].id for device in devices
        )

    def _placements(self, choice: Choice) -> Iterator[Placement]:
        """Lay the units out, and let their partitions serve."""
        parts: list[list[DeviceIndex]] = [[] for _ in self.catalog.types]
        for members, layouts, row in zip(
            self.classes, self.layouts, choice.times, strict=True
        ):
            # Each layout is repeated for as many units as get it: equal units can have any of them.
            layout_of_each = chain.from_iterable(map(repeat, layouts, row))
            for unit, layout in zip(members, layout_of_each, strict=True):
                for position in layout.places:
                    parts[unit.types[position]].append(unit.devices[position])
        first = 0
        for demand, (need, row) in enumerate(
            zip(self.needs, choice.served, strict=True)
        ):
            serving = chain.from_iterable(
                repeat(type_, served) for type_, served in enumerate(row)
            )
            # Of the copies of a demand the first are served. The model serves no more of a type than there are parts.
            for copy, type_ in enumerate(serving, first):
                yield self._placement(
                    DemandIndex(copy), demand, parts[type_].pop()
                )
            first += need

    def _placement(
        self, copy: DemandIndex, demand: int, device: DeviceIndex
    ) -> Placement:
        picked = self.catalog.pick(demand, device)
        assert picked is not None, "a type serves the demand"
        node, rank = picked
        single = self.catalog.singles[demand]
        grants = tuple(
            (Grant(single.request, rank, device),)
            if claim == single.claim
            else ()
            for claim in range(len(self.catalog.demands[demand].claims))
        )
        return Placement(copy, node, grants)


_RULE: Final = (
    "layouts are found for claims of one device each, without admin access"
)


@dataclass(frozen=True, repr=False)
class PartitionLayout(Provisional, LayoutComparison):
    """Fixed layouts beside partitions on demand. ``print(partition_layout)`` is a readable report.

    Parameters
    ----------
    mix
        What is wanted, and how many of each.
    left_out
        What is pending and does not count, with the reason.
    """

    document = PartitionLayoutDocument

    mix: tuple[tuple[str, int], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def conclusion(self) -> str:
        """Say how many claims the best layouts serve, beside partitions on demand."""
        best = max((plan.total for plan in self.plans), default=0)
        return f"fixed layouts serve {best}, partitions on demand {sum(self.on_demand)}"

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        total = sum(self.on_demand)
        columns = (
            "partitions",
            *(f">{title}" for title, _ in self.mix),
            ">served",
            ">at most",
            ">lost",
        )
        rows = [
            (
                "wanted",
                *(str(count) for _, count in self.mix),
                str(sum(count for _, count in self.mix)),
                "",
                "",
            )
        ]
        rows += [
            (
                "on demand",
                *map(str, self.on_demand),
                str(total),
                str(self.bound),
                "",
            )
        ]
        rows += [
            (
                _title(plan),
                *map(str, plan.served),
                str(plan.total),
                str(plan.bound),
                str(total - plan.total),
            )
            for plan in self.plans
        ]
        return [
            Table("Served", columns, rows),
            Table(
                "Layouts",
                ("layouts", ">units", "partitions, as on"),
                folded(list(self._layouts()), 1),
            ),
            *(
                Line(f"warning: does not count: {reason}", "yellow")
                for reason in self.left_out
            ),
        ]

    def _layouts(self) -> Iterator[tuple[str, ...]]:
        for plan in self.plans:
            for _, partitions, unit_count in plan.layouts:
                yield _title(plan), str(unit_count), _together(partitions)


@without_garbage_collection()
@spelled_out(NodelessWords)
def partition_layout(
    cluster: Cluster,
    *entries: MixEntry | str,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> PartitionLayout:
    """Find the fixed layouts of partitions that serve the most claims of a mix, as if nothing were allocated.

    Parameters
    ----------
    entries
        Claims, templates or pods: ``namespace/name``, ``namespace/name=number``, or a `MixEntry`; once each if no
        number is given. Each asks for one device. Without any, all that is pending.
    choices, words
        As in `dralloc.allocate`, without goals, nodes, gangs, caps and fairness.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod; it asks for more than one device, or for one that can be shared.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.partition_layout(dralloc.example())
    <PartitionLayout: fixed layouts serve 2, partitions on demand 2>
    """
    options = Choices.of(
        choices, words, unused=("nodes", "gang", "caps", "fair", "keep", "goal")
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        included = (
            cluster_of(cluster)
            .including(options.include)
            .with_gates(options.features)
        )
        mix = workload_mix(included, entries, options, devices_alone=True)
    with phase(timings, "layouts"):
        # The last ones first: what is left out does not change the numbers of those before.
        for class_index, demand in reversed(list(enumerate(mix.demands))):
            if read_single(demand) is None:
                mix = mix.without({class_index}, _RULE)
            elif reason := shared_device(mix.problem, demand):
                # If nothing else is left, the reason is an error: the answer would be about nothing.
                if mix.named or len(mix.demands) == 1:
                    raise DrallocError(reason)
                mix = mix.without({class_index}, reason)
        comparison = compare(mix.problem, mix.demands, mix.numbers, options)
    unmodelled = mix.compiled.beside_devices(
        mix.compiled.cluster.pods, strict=options.strict
    )
    return PartitionLayout(
        **vars(comparison),
        mix=mix.wanted,
        left_out=mix.left_out,
        unmodelled=unmodelled,
        timings=timings,
    )


def _title(plan: LayoutPlan) -> str:
    if plan.limit is None:
        return "any layouts"
    return "one layout" if plan.limit == 1 else f"up to {plan.limit} layouts"


def _together(devices: tuple[DeviceID, ...]) -> str:
    """The names of devices of one pool."""
    if not devices:
        return "none"
    return (
        f"{devices[0].pool}: {', '.join(device.device for device in devices)}"
    )
