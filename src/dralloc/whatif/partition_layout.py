"""Which fixed partition layout per GPU serves a mix of claims best, and what is lost against partitions on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dralloc.cluster import Cluster
from dralloc.errors import DrallocError
from dralloc.features import ALL_FEATURES, Features
from dralloc.garbage import without_garbage_collection
from dralloc.names import DeviceID
from dralloc.problem import Problem
from dralloc.report import Line, Part, Table, as_text, folded, timing_line
from dralloc.solvers.cpsat import Options
from dralloc.timing import phase
from dralloc.whatif.demanded import Demanded, demanded
from dralloc.whatif.layouts import Comparison, Plan, compare
from dralloc.whatif.partitions import Single, read_single
from dralloc.whatif.wishes import Wish

__all__ = ["LayoutPlan", "PartitionLayout", "UnitKind", "partition_layout"]

_RULE: Final = "layouts are found for claims of one device each, without admin access"


@dataclass(frozen=True)
class UnitKind:
    """So many equal units: GPUs that are partitioned, or devices that are not. ``example`` has the devices of one."""

    size: int
    example: tuple[DeviceID, ...]


@dataclass(frozen=True)
class LayoutPlan:
    """Fixed layouts.

    Parameters
    ----------
    limit
        How many different layouts equal units have at most; None if that is not limited.
    layouts
        The kind of unit, the partitions (as on the kind's example), and how many units get them.
    served
        How many are served of each claim in the mix. The independent checker has accepted it.
    bound
        No layouts serve more in sum.
    """

    limit: int | None
    layouts: tuple[tuple[int, tuple[DeviceID, ...], int], ...]
    served: tuple[int, ...]
    bound: int

    @property
    def total(self) -> int:
        """How many claims are served in sum."""
        return sum(self.served)


@dataclass(frozen=True)
class PartitionLayout:
    """Fixed layouts beside partitions on demand. ``print(partition_layout)`` is a readable report.

    Parameters
    ----------
    mix
        What is wanted, and how many of each.
    units
        What there is.
    on_demand
        How many are served of each if partitions are made as they are needed.
    bound
        No way of making them serves more in sum.
    plans
        With one layout for all equal units, with two, and so on until more do not help; the last is the best.
    left_out
        What is pending and does not count, with the reason.
    timings
        Seconds by phase.
    """

    mix: tuple[tuple[str, int], ...]
    units: tuple[UnitKind, ...]
    on_demand: tuple[int, ...]
    bound: int
    plans: tuple[LayoutPlan, ...]
    left_out: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        return {
            "mix": [{"claim": title, "number": number} for title, number in self.mix],
            "units": [{"number": kind.size, "example": _names(kind.example)} for kind in self.units],
            "onDemand": {"served": list(self.on_demand), "total": sum(self.on_demand), "bound": self.bound},
            "fixed": [
                {
                    "layoutsPerKind": plan.limit,
                    "served": list(plan.served),
                    "total": plan.total,
                    "bound": plan.bound,
                    "lost": sum(self.on_demand) - plan.total,
                    "layouts": [
                        {"unit": unit, "partitions": _names(partitions), "units": number}
                        for unit, partitions, number in plan.layouts
                    ],
                }
                for plan in self.plans
            ],
            "leftOut": list(self.left_out),
            "timings": dict(self.timings),
        }

    def parts(self) -> list[Part]:
        """The answer as tables and lines."""
        total = sum(self.on_demand)
        columns = ("partitions", *(f">{title}" for title, _ in self.mix), ">served", ">at most", ">lost")
        rows = [
            ("wanted", *(str(number) for _, number in self.mix), str(sum(number for _, number in self.mix)), "", "")
        ]
        rows += [("on demand", *map(str, self.on_demand), str(total), str(self.bound), "")]
        rows += [
            (_title(plan), *map(str, plan.served), str(plan.total), str(plan.bound), str(total - plan.total))
            for plan in self.plans
        ]
        return [
            Table("Served", columns, rows),
            Table("Layouts", ("layouts", ">units", "partitions, as on"), folded(list(self._layouts()), 1)),
            *(Line(f"warning: does not count: {reason}", "yellow") for reason in self.left_out),
            timing_line(self.timings),
        ]

    def _layouts(self) -> Iterator[tuple[str, ...]]:
        for plan in self.plans:
            for _, partitions, number in plan.layouts:
                yield _title(plan), str(number), _together(partitions)

    def __str__(self) -> str:
        return as_text(self.parts())


@without_garbage_collection()
def partition_layout(
    cluster: Cluster,
    *wishes: Wish | str,
    features: Features = ALL_FEATURES,
    strict: bool = False,
    options: Options | None = None,
) -> PartitionLayout:
    """Find the fixed layouts of partitions that serve the most claims of a mix, as if nothing were allocated.

    Parameters
    ----------
    wishes
        Claims, templates or pods: ``namespace/name``, ``namespace/name=number``, or a `Wish`; once each if no number
        is given. Each asks for one device. Without any, all that is pending.
    features, strict
        As in `dralloc.allocate`.
    options
        For each search for an optimum.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod; it asks for more than one device, or for one that can be shared.
    """
    asked = tuple(wish if isinstance(wish, Wish) else Wish.parse(wish) for wish in wishes)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        mix = demanded(cluster, asked, features=features, strict=strict)
    with phase(timings, "layouts"):
        mix, singles = _of_one_device(mix, strict=bool(asked))
        found = compare(mix.problem, mix.demands, singles, mix.numbers, options)
    return _named(found, mix.problem, tuple(zip(mix.titles, mix.numbers, strict=True)), mix.left_out, timings)


def _of_one_device(mix: Demanded, *, strict: bool) -> tuple[Demanded, list[Single]]:
    """The demands for one device, and what they ask for; others are an error, or left out."""
    singles: list[Single] = []
    for place, demand in reversed(list(enumerate(mix.demands))):
        single = read_single(demand)
        if single is not None:
            singles.insert(0, single)
            continue
        if strict:
            raise DrallocError(f"{mix.titles[place]}: {_RULE}")
        mix = mix.without(place, _RULE)
    return mix, singles


def _named(
    found: Comparison,
    problem: Problem,
    mix: tuple[tuple[str, int], ...],
    left_out: tuple[str, ...],
    timings: Mapping[str, float],
) -> PartitionLayout:
    def names(devices: tuple[int, ...]) -> tuple[DeviceID, ...]:
        return tuple(problem.devices[device].id for device in devices)

    def plan(each: Plan) -> LayoutPlan:
        layouts = tuple((unit, names(devices), number) for unit, devices, number in each.layouts)
        return LayoutPlan(each.limit, layouts, each.served, each.bound)

    units = tuple(UnitKind(size, names(devices)) for devices, size in found.units)
    return PartitionLayout(mix, units, found.on_demand, found.bound, tuple(map(plan, found.plans)), left_out, timings)


def _names(devices: tuple[DeviceID, ...]) -> list[str]:
    return [str(device) for device in devices]


def _title(plan: LayoutPlan) -> str:
    if plan.limit is None:
        return "any layouts"
    return "one layout" if plan.limit == 1 else f"up to {plan.limit} layouts"


def _together(devices: tuple[DeviceID, ...]) -> str:
    """The names of devices of one pool."""
    if not devices:
        return "none"
    return f"{devices[0].pool}: {', '.join(device.device for device in devices)}"
