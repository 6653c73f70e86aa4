"""The JSON of what-if answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from fractions import Fraction
from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field, ValidationInfo

from dralloc.ask.explain.explanation import ConflictFields
from dralloc.ask.whatif.copies import CopyCount
from dralloc.ask.whatif.eviction_costs import EvictionUnit
from dralloc.ask.whatif.evictions import Admission
from dralloc.ask.whatif.moves.steps import Action
from dralloc.ask.whatif.node_types import NodeType
from dralloc.objects.answer import Count, Fields, Key, Timings, Word, described
from dralloc.objects.names import DeviceID
from dralloc.problem.solution import Status
from dralloc.show.question import ProvisionalDocument

__all__ = [
    "ClaimMove",
    "DefragmentationDocument",
    "DrainDocument",
    "FewestNodesDocument",
    "HeadroomDocument",
    "PartitionLayoutDocument",
    "PreemptionDocument",
    "StepFields",
    "written",
]


def written(price: Fraction) -> str:
    """A price exactly: an integer, a decimal number, or a fraction."""
    decimal = (
        str(price.numerator) if price.denominator == 1 else str(float(price))
    )
    return decimal if Fraction(decimal) == price else str(price)


Price = Annotated[str, BeforeValidator(written)]


class MixFields(Fields):
    """So many of a claim."""

    claim: str
    number: int


Mix = Annotated[
    list[MixFields],
    BeforeValidator(
        lambda mix: [
            MixFields(claim=title, number=count) for title, count in mix
        ]
    ),
]


class Alone(Fields):
    """How many more of a claim fit if nothing else comes. Null stands for no end."""

    wish: str
    number: int | None
    """So many can be placed: the checker has accepted it."""
    bound: int | None
    """Not more than so many can be placed."""
    exact: bool
    first_fit: int | None
    per_device: int | None
    """How many there would be if each device were looked at alone."""
    error: Word
    """What ends first fit's attempt."""
    warnings: list[str]


def _alone(counts: Iterable[CopyCount], info: ValidationInfo) -> list[Alone]:
    return [
        Alone(
            wish=entry.title,
            exact=count.exact,
            error=count.reason,
            **asdict(count),
        )
        for entry, count in zip(described(info).entries, counts, strict=True)
    ]


class PointFields(Fields):
    """Numbers of each claim that fit together, and how many of these first fit places."""

    numbers: list[int]
    first_fit: list[int]


class Together(Fields):
    """What fits together: none of the numbers can be raised without lowering another."""

    points: list[PointFields]
    complete: bool
    exact: bool = Field(validation_alias="proven")


class HeadroomDocument(ProvisionalDocument):
    """What ``dralloc plan headroom --json`` prints."""

    alone: Annotated[list[Alone], BeforeValidator(_alone)]
    joint: Together | None
    """Null if there is one claim only, or one that nothing limits."""
    pending_left_out: int = Field(validation_alias="left_out")
    """How many pending claims do not count."""
    timings: Timings


class Needed(Fields):
    """So many nodes of a kind."""

    kind: str
    example: str
    """The node that stands for the kind."""
    existing: int
    """How many there are in the cluster."""
    price: Price
    number: int


def _needed(kinds: Iterable[NodeType], info: ValidationInfo) -> list[Needed]:
    counts = described(info).numbers
    return [
        Needed(kind=kind.name, number=count, **asdict(kind))
        for kind, count in zip(kinds, counts, strict=True)
    ]


class FewestNodesDocument(ProvisionalDocument):
    """What ``dralloc plan fewest-nodes --json`` prints."""

    mix: Mix
    nodes: Annotated[list[Needed], BeforeValidator(_needed)] = Field(
        validation_alias="kinds"
    )
    cost: Price
    """What the nodes cost; their number, if there are no prices."""
    bound: Price
    """Nothing cheaper holds everything."""
    exact: bool
    left_out: list[str]
    """What is pending and does not count, with the reason."""
    timings: Timings


class ClaimMove(Fields):
    """What a step changes for one claim; null and empty where it has nothing before or after."""

    claim: Key
    from_node: str | None = None
    from_: tuple[Key, ...] = Field(default=(), serialization_alias="from")
    to_node: str | None = None
    to: tuple[Key, ...] = ()


class StepFields(Fields):
    """One step; the steps are to be carried out in order."""

    step: int
    action: Action
    claims: list[ClaimMove]


class DrainDocument(ProvisionalDocument):
    """What ``dralloc plan drain --json`` prints."""

    nodes: list[str]
    possible: bool
    """Whether all claims can go."""
    claims: Count
    """How many claims depend on the nodes."""
    gone: int
    """How many of them can go."""
    bound: int = Field(validation_alias="most")
    """No more can go."""
    moves: Count = Field(
        validation_alias=AliasPath("itinerary", "outcome", "moved")
    )
    restarts: int = Field(
        validation_alias=AliasPath("itinerary", "outcome", "restarts")
    )
    restarts_proven: bool = Field(
        validation_alias=AliasPath("itinerary", "outcome", "fewest")
    )
    steps: list[StepFields] = Field(
        validation_alias=AliasPath("itinerary", "steps")
    )
    stuck: list[Key]
    """Claims that stay in this plan."""
    cannot_go_together: list[Key] = Field(validation_alias="together")
    """Claims of which any but one could go."""
    conflict: ConflictFields | None
    left_out: list[Key]
    """Claims that do not count: a DaemonSet's pod or one that is not settled uses them."""
    warnings: list[str] = Field(
        validation_alias=AliasPath("itinerary", "outcome", "warnings")
    )
    timings: Timings


class DefragmentationDocument(ProvisionalDocument):
    """What ``dralloc plan defragment --json`` prints."""

    status: Status = Field(
        validation_alias=AliasPath("itinerary", "outcome", "status")
    )
    pending: int
    """How many pods, and claims that no pod uses, wait."""
    admitted_without_moves: Count = Field(
        validation_alias=AliasPath("before", "placements")
    )
    weight_without_moves: int = Field(
        validation_alias=AliasPath("before", "tiers", 0, "value")
    )
    admitted: list[Key]
    """Those of them that the moves let in."""
    weight: int = Field(validation_alias=AliasPath("tiers", 0, "value"))
    bound: int = Field(validation_alias=AliasPath("tiers", 0, "bound"))
    """No plan admits more weight."""
    most_moves: int = Field(validation_alias="most")
    """How many claims may move."""
    moves: int
    moves_bound: int = Field(validation_alias=AliasPath("tiers", 1, "bound"))
    """No plan of this weight has fewer moves."""
    restarts: int = Field(
        validation_alias=AliasPath("itinerary", "outcome", "restarts")
    )
    restarts_proven: bool = Field(
        validation_alias=AliasPath("itinerary", "outcome", "fewest")
    )
    steps: list[StepFields] = Field(
        validation_alias=AliasPath("itinerary", "steps")
    )
    warnings: list[str] = Field(
        validation_alias=AliasPath("itinerary", "outcome", "warnings")
    )
    timings: Timings


class UnitFields(Fields):
    """Equal GPUs, or devices that are not partitioned."""

    number: int = Field(validation_alias="size")
    example: list[Key]
    """The devices of one."""


class OnDemand(Fields):
    """Partitions that are made as they are needed."""

    served: list[int]
    """How many of each claim of the mix."""
    total: int
    bound: int


class LayoutFields(Fields):
    """How some of the units are partitioned."""

    unit: int
    """Index of their kind in ``units``."""
    partitions: list[Key]
    """As on the kind's example."""
    units: int
    """How many of them."""


def _layouts(
    layouts: Iterable[tuple[int, tuple[DeviceID, ...], int]],
) -> list[LayoutFields]:
    return [
        LayoutFields(unit=unit, partitions=list(map(str, names)), units=count)
        for unit, names, count in layouts
    ]


class Fixed(Fields):
    """Fixed layouts for all units."""

    layouts_per_kind: int | None = Field(validation_alias="limit")
    """How many different layouts equal units have at most; null if that is not limited."""
    served: list[int]
    total: int
    bound: int
    lost: Annotated[
        int,
        BeforeValidator(
            lambda served, info: sum(described(info).on_demand) - sum(served)
        ),
    ] = Field(validation_alias=AliasPath("served"))
    """How many fewer are served than on demand."""
    layouts: Annotated[list[LayoutFields], BeforeValidator(_layouts)]


def _on_demand(served: Iterable[int], info: ValidationInfo) -> OnDemand:
    counts = list(served)
    return OnDemand(
        served=counts, total=sum(counts), bound=described(info).bound
    )


class PartitionLayoutDocument(ProvisionalDocument):
    """What ``dralloc plan partition-layout --json`` prints."""

    mix: Mix
    units: list[UnitFields]
    on_demand: Annotated[OnDemand, BeforeValidator(_on_demand)]
    fixed: list[Fixed] = Field(validation_alias="plans")
    left_out: list[str]
    timings: Timings


class VictimFields(Fields):
    """A pod that is evicted."""

    pod: Key
    node: str
    priority: int
    """Its group's, if it is evicted with it."""
    group: Key | None
    """The PodGroup that is evicted as a whole; null if the pod is evicted by itself."""
    freed: list[Key]
    """Its claims that nobody uses any more then."""


def _victims(
    units: Iterable[EvictionUnit], info: ValidationInfo
) -> list[VictimFields]:
    freed = described(info).freed
    return [
        VictimFields(
            pod=pod.key,
            node=pod.spec.node_name,
            priority=unit.priority,
            group=unit.group,
            freed=freed[pod.key],
        )
        for unit in units
        for pod in unit.pods
    ]


class AdmissionFields(Fields, of=Admission):
    """Where a claim goes, and what it gets."""

    pod: Key | None
    """Null for a claim that no pod uses."""


class EvictionTier(Fields):
    """One of the things that are made as small as possible, most important first."""

    name: str
    value: int
    bound: int
    """No answer has less (given the tiers before it)."""


class UpstreamVictimFields(Fields):
    """A pod that kube-scheduler would evict, and for whom."""

    pod: Key
    node: str
    priority: int
    preemptor: Key


class UpstreamFields(Fields):
    """What kube-scheduler's preemption comes to, pod by pod."""

    admits: bool
    victims: list[UpstreamVictimFields]
    message: Word
    """Why it does not help."""


class PreemptionDocument(ProvisionalDocument):
    """What ``dralloc plan preempt --json`` prints."""

    asked: list[Key]
    """Who is to be admitted: of a gang, as many as it needs."""
    priority: int
    possible: bool
    """Whether they are admitted."""
    exact: bool
    """Whether the cost is proven to be the lowest, or that no eviction helps."""
    candidates: int
    """How many pods could be evicted."""
    victims: Annotated[list[VictimFields], BeforeValidator(_victims)]
    cost: list[EvictionTier] = Field(validation_alias="tiers")
    admitted: list[AdmissionFields]
    upstream: UpstreamFields
    left_out: list[Key]
    """Pods of lower priority that are not looked at: what they have breaks a rule as things are."""
    warnings: list[str]
    timings: Timings
