"""The JSON of plans and comparisons."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PlainSerializer, Tag, WithJsonSchema

from dralloc.objects.answer import (
    Amount,
    Count,
    Document,
    Fields,
    Key,
    Timings,
    Word,
)
from dralloc.objects.api import AllocationResult
from dralloc.objects.report import counts_amounts
from dralloc.problem.solution import Status
from dralloc.show.metrics import Metrics, Spending, Utilisation
from dralloc.show.placed import Placed, Unplaced
from dralloc.show.question import NotAsked, UnmodelledFields

__all__ = ["ComparisonDocument", "PlanDocument", "PlanFields"]


def _wire(allocation: AllocationResult) -> dict[str, Any]:
    return allocation.model_dump(
        mode="json", by_alias=True, exclude_defaults=True
    )


Allocation = Annotated[
    AllocationResult,
    PlainSerializer(_wire),
    WithJsonSchema(
        {
            "type": "object",
            "description": "AllocationResult of resource.k8s.io/v1.",
        }
    ),
]


class _Tier(Fields):
    name: str
    gap: float
    """Distance of value and bound, relative to the value; 0 if the tier is proven, 1 if nothing was reached."""
    sense: Literal[1, -1]
    """1 if more is better, -1 if less is."""
    why: str
    """Why the tier is not proven; empty if it is."""


class CountTier(_Tier):
    """One tier of the objective."""

    unit: Literal["count"] = "count"
    value: int
    bound: int
    """No answer is better than this, given the tiers before."""


class AmountTier(_Tier):
    """One tier of the objective that sums up amounts, as fairness does."""

    unit: Literal["amount"] = "amount"
    value: Amount
    bound: Amount
    """No answer is better than this, given the tiers before."""


def _unit(tier: Any) -> str:
    return "amount" if counts_amounts(tier.name) else "count"


AnyTier = Annotated[
    Annotated[CountTier, Tag("count")] | Annotated[AmountTier, Tag("amount")],
    Discriminator(_unit),
]


class PlacedFields(Fields, of=Placed):
    """A pod, or a claim that no pod uses, with what it gets."""

    claims: dict[Key, Allocation]
    """Each of its claims with its ``status.allocation``."""


class UnplacedFields(Fields, of=Unplaced, shown="key claims reason error"):
    """A pod, or a claim that no pod uses, that gets nothing."""

    demand: Key = Field(validation_alias="key")
    error: Word
    """What ended the attempt, if it was an error."""


class UseFields(
    Fields, of=Utilisation, shown="kind driver name total before used share"
):
    """How much is in use of whole devices, of counters, or of capacities of one name that a driver publishes."""

    kind: str
    total: Amount
    before: Amount
    """What claims held before anything was placed."""
    used: Amount
    share: float


class NamespaceUseFields(
    Fields,
    of=Spending,
    shown="namespace resource total before used most exceeded",
):
    """What a namespace uses of a counter or capacity that a cap or fairness is about."""

    name: str = Field(validation_alias="resource")
    cap: Amount | None = Field(validation_alias="most")
    exceeded: bool


class FigureFields(Fields, of=Metrics):
    """Figures of an answer."""

    namespaces: list[NamespaceUseFields] = Field(validation_alias="spending")


class NotAskedFields(Fields, of=NotAsked):
    """Pods of the input that are not to be placed."""


class PlanFields(Fields):
    """An answer in one mode."""

    mode: str
    """``first-fit``, ``scheduler``, ``optimal``, or the name of a policy."""
    status: Status
    """What is known of the answer by the rules modelled. These are all that count unless `unmodelled` names some."""
    verdict: str
    """The status in words, with the rules that it is true for."""
    unmodelled: list[UnmodelledFields]
    objective: int
    """Sum of the weights of what is placed: the first tier."""
    bound: int | None
    """Proven limit of the objective; null where nothing is proven."""
    gap: float | None
    """The gap of the first tier that is not proven; null where nothing is proven."""
    most_placed: int | None
    """How many demands the optimum places at most, of all priorities together; null where nothing is proven."""
    tiers: list[AnyTier]
    """The objective, the most important tier first."""
    demands: Count
    """How many pods, and claims that no pod uses, were to be placed."""
    placed: list[PlacedFields]
    bindings: dict[Key, str]
    """All pods that kube-scheduler binds with their nodes, in order, also those without devices; empty elsewhere."""
    unplaced: list[UnplacedFields]
    not_asked: list[NotAskedFields]
    metrics: FigureFields
    warnings: list[str]
    """What is to be known, e.g. devices that are left out because a selector fails on them."""
    timings: Timings


class PlanDocument(PlanFields, Document):
    """What ``dralloc allocate -o json`` prints."""


class ScheduledFields(Fields):
    """What kube-scheduler places, over several seeds."""

    seeds: list[int]
    placed: list[Count]
    """How much, by seed."""
    median: PlanFields
    """An answer that places as much as half of them: the one that the optimum is held against."""
    median_seed: int
    """The seed of that answer."""


class DifferenceFields(Fields):
    """What one answer places and another does not."""

    placed_by: str
    """``first-fit``, ``scheduler``, ``optimal``, or the name of a policy."""
    not_by: str
    seed: int | None
    """The seed of kube-scheduler's answer; null if it is none of the two."""
    demands: list[Key]


class ComparisonDocument(Document):
    """What ``dralloc compare --json`` prints."""

    first_fit: PlanFields | None = Field(validation_alias="by_first_fit")
    """Null if it was not asked."""
    optimal: PlanFields | None = Field(validation_alias="by_optimum")
    """Null if it was not asked."""
    policies: list[PlanFields]
    only_optimal: list[Key]
    """What the optimum places and first fit does not."""
    only_first_fit: list[Key]
    """What first fit places and the optimum does not."""
    differences: list[DifferenceFields]
    """What the best answer (the optimum, if it was asked) places and another one does not, then the reverse; against
    kube-scheduler first."""
    neither: list[Key]
    """What no answer places."""
    scheduler: ScheduledFields | None = None
    """What kube-scheduler places; null unless it was asked for."""
    timings: Timings
