"""Which fixed partition layout per GPU serves a mix of claims best, and what is lost against partitions on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Unpack

from dralloc.ask.whatif.document import PartitionLayoutDocument
from dralloc.ask.whatif.layouts import LayoutComparison, LayoutPlan, UnitClass, compare
from dralloc.ask.whatif.mix_entries import MixEntry
from dralloc.ask.whatif.partitions import read_single, shared_device
from dralloc.ask.whatif.workload_mix import workload_mix
from dralloc.objects.choices import Choices, NodelessWords
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.garbage import without_garbage_collection
from dralloc.objects.names import DeviceID
from dralloc.objects.report import Line, Part, Table, folded
from dralloc.show.provisional import Provisional
from dralloc.solve.timing import phase

__all__ = ["LayoutPlan", "PartitionLayout", "UnitClass", "partition_layout"]

_RULE: Final = "layouts are found for claims of one device each, without admin access"


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
        """How many claims the best layouts serve, beside partitions on demand."""
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
                *(str(number) for _, number in self.mix),
                str(sum(number for _, number in self.mix)),
                "",
                "",
            )
        ]
        rows += [
            ("on demand", *map(str, self.on_demand), str(total), str(self.bound), "")
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
            for _, partitions, number in plan.layouts:
                yield _title(plan), str(number), _together(partitions)


@without_garbage_collection()
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
        As in `dralloc.allocate`, without nodes, gangs, caps and fairness.

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
        choices, words, unused=("nodes", "gang", "caps", "fair", "keep")
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        given = cluster_of(cluster).including(options.include)
        mix = workload_mix(given, entries, options, devices_alone=True)
    with phase(timings, "layouts"):
        for place, demand in reversed(list(enumerate(mix.demands))):
            if read_single(demand) is None:
                mix = mix.without(place, _RULE)
            elif reason := shared_device(mix.problem, demand):
                if mix.named or len(mix.demands) == 1:
                    raise DrallocError(reason)
                mix = mix.without(place, reason)
        found = compare(mix.problem, mix.demands, mix.numbers, options)
    unmodelled = mix.compiled.beside_devices(
        mix.compiled.cluster.pods, strict=options.strict
    )
    return PartitionLayout(
        **vars(found),
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
    return f"{devices[0].pool}: {', '.join(device.device for device in devices)}"
