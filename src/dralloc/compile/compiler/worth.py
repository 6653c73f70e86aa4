"""Quotas, weights and priorities: the amounts that namespaces may still use, and the weight of each demand.

Strictly by priority, and within a priority by what is to be maximised. A weight is worth more than all weights of lower
priorities together, so that the largest sum is the lexicographic optimum: what is placed at a higher priority is never
given up for lower ones. Within a priority the objective counts, and of equal answers the number of pods. As digits of
one number, these can be read off the sum again.

Before that come quota, caps and fair shares of namespaces, and what a demand asks for at least.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections import Counter as Tally
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Final, NamedTuple

from dralloc.compile.inventory import Inventory, counters_charged, held_results
from dralloc.objects.api import ResourceClaim, ResourceQuota
from dralloc.objects.api.disclosure import VALUE_ANNOTATION
from dralloc.objects.choices import ObjectiveWord, Priorities
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, Finding
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS, Quantity
from dralloc.objects.user_rules import Budget, Cap
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    AlternativeIndex,
    Charge,
    Demand,
    DeviceIndex,
    Problem,
    indices,
)
from dralloc.problem.indices import DemandIndex, Numbered, grouped, numbered
from dralloc.problem.solution import Tier, amount_used

__all__ = [
    "Quotas",
    "WeightLevel",
    "Worth",
    "annotated_values",
    "find_budgets",
    "worth_of",
]

# ----------------------------------------------------------------------------
# ResourceQuota for claims (KEP-4381 "ResourceQuota").
#
# The API server looks at quota when a claim is made. Claims that are given exist
# already: they count as used. Claims that dralloc makes for pods have yet to pass:
# one that exceeds a limit cannot be made, and its pod stays pending.
#
# Source: upstream's ``claimEvaluator``. A request counts with its devices, ``All`` as
# the 32 that a claim can get at most, and a prioritized list with the most that any
# of its alternatives asks of each class (KEP-4816 "Resource Quota").

_COUNT = "count/resourceclaims.resource.k8s.io"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"


class Quotas:
    """The verdicts of quotas on the claims of their namespaces: claims that exist come before those to be made.

    Parameters
    ----------
    defects
        Why claims cannot be made, by claim.
    """

    def __init__(self, cluster: Cluster, features: Features) -> None:
        self._cluster = cluster
        self._features = features
        # A quota with a scope is for pods only.
        self._quotas: dict[str, list[ResourceQuota]] = defaultdict(list)
        for quota in cluster.quotas:
            if not quota.spec.scoped:
                self._quotas[quota.key.namespace].append(quota)
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._refused: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        self.defects: dict[ClaimKey, str] = {}
        claims = cluster.claims if self._quotas else ()
        concerned = [
            claim for claim in claims if claim.key.namespace in self._quotas
        ]
        for claim in concerned:
            if claim.key not in cluster.made:
                self._used[claim.key.namespace] += self._usage(claim)
        self._given = {
            namespace: Counter(used) for namespace, used in self._used.items()
        }
        for claim in concerned:
            if claim.key in cluster.made:
                self._make(claim)

    def _make(self, claim: ResourceClaim) -> None:
        requested, used = self._usage(claim), self._used[claim.key.namespace]
        for quota in self._quotas[claim.key.namespace]:
            if short := [
                name
                for name in _exceeded(quota, used + requested)
                if requested[name]
            ]:
                self.defects[claim.key] = (
                    f"claim {claim.key}: exceeded quota: {quota.name}, requested: {_listed(short, requested)}, "
                    f"used: {_listed(short, used)}, limited: {_listed(short, quota.spec.hard)}"
                )
                self._refused[quota.key].append(claim.key)
                return
        used.update(requested)

    def findings(self) -> Iterator[Finding]:
        """Quotas that given claims exceed already, and quotas that claims of pods cannot pass."""
        for namespace, quotas in self._quotas.items():
            for quota in quotas:
                used = self._given.get(namespace, Counter())
                for name in _exceeded(quota, used):
                    rule = f"the given claims ask for {used[name]}, more than the {quota.spec.hard[name]} allowed"
                    yield self._cluster.remark(
                        quota, f"spec.hard[{name}]", rule
                    )
                if refused := self._refused.get(quota.key):
                    further = (
                        f" and {len(refused) - 1} more"
                        if len(refused) > 1
                        else ""
                    )
                    yield self._cluster.remark(
                        quota,
                        "spec.hard",
                        f"{self.defects[refused[0]]}{further}",
                    )

    def _usage(self, claim: ResourceClaim) -> Counter[str]:
        """Return the amounts that a claim counts for in quotas, by resource name."""
        usage = Counter({_COUNT: 1})
        for request in claim.spec.devices.requests:
            by_class: Counter[str] = Counter()
            for _, details in request.alternatives:
                # Modes that are not known count for nothing.
                counts = {"ExactCount": details.count, "All": MAX_RESULTS}
                devices = counts.get(details.allocation_mode, 0)
                name = details.device_class_name
                by_class[name] = max(by_class[name], devices)
            for name, devices in by_class.items():
                usage.update(dict.fromkeys(self._resources(name), devices))
        return usage

    def _resources(self, name: str) -> Iterator[str]:
        """The names under which devices of a class are limited; as extended resources, too (KEP-5004)."""
        yield f"{name}{_DEVICES}"
        if self._features.ExtendedResource:
            yield f"{_IMPLICIT}{name}"
            device_class = self._cluster.classes.get(name)
            if (
                device_class is not None
                and device_class.spec.extended_resource_name is not None
            ):
                yield f"requests.{device_class.spec.extended_resource_name}"


def _exceeded(quota: ResourceQuota, usage: Mapping[str, int]) -> Iterator[str]:
    """Yield the resources of which more is in use than the quota allows."""
    limits = quota.spec.hard.items()
    return (
        name
        for name, limit in limits
        if (used := usage.get(name)) and used * NANOS > limit.nanos
    )


def _listed(
    names: Sequence[str], amounts: Mapping[str, int] | Mapping[str, Quantity]
) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)


# ----------------------------------------------------------------------------
# What namespaces use of something already, beside their caps and what is to be fair.


def find_budgets(
    cluster: Cluster,
    inventory: Inventory,
    demands: Sequence[Demand],
    caps: Sequence[Cap],
    fair: str,
) -> tuple[Budget, ...]:
    """The budgets: one for each cap, and for fairness one for each namespace that has something pending.

    Raises
    ------
    DrallocError
        A cap or fairness is about something of which no device has any, or a namespace is capped twice.
    """
    budgets: dict[tuple[str, str], Cap | None] = {}
    for cap in caps:
        if (cap.namespace, cap.resource) in budgets:
            raise DrallocError(
                f"--cap {cap.namespace}={cap.resource}: is given twice"
            )
        budgets[cap.namespace, cap.resource] = cap
    waiting = {demand.key.namespace for demand in demands} if fair else set()
    for namespace in sorted(waiting):
        budgets.setdefault((namespace, fair), None)
    resources = {*(cap.resource for cap in caps), fair} - {""}
    totals = {
        resource: list(_totals(inventory, resource)) for resource in resources
    }
    for resource, amounts in totals.items():
        if not amounts:
            option = "--fair" if resource == fair else "--cap"
            raise DrallocError(
                f'{option}: no counter and no capacity of a device is named "{resource}"'
            )
    used = _used(cluster, inventory, budgets)
    return tuple(
        Budget(
            namespace=namespace,
            resource=resource,
            used=used[namespace, resource],
            total=sum(totals[resource]),
            most=None if cap is None else cap.most.nanos,
            fair=resource == fair and namespace in waiting,
        )
        for (namespace, resource), cap in budgets.items()
    )


def _totals(inventory: Inventory, resource: str) -> Iterator[int]:
    """Counters of that name, and capacities of devices that consume none."""
    named = {
        counter_index
        for counter_index, counter in enumerate(inventory.counters)
        if counter.id.counter == resource
    }
    yield from (
        inventory.counters[counter_index].total for counter_index in named
    )
    for device, source in zip(
        inventory.devices, inventory.sources, strict=True
    ):
        consumed = (*device.consumes, *source.requested_counters)
        if resource in device.capacity and not any(
            counter_index in named for counter_index, _ in consumed
        ):
            yield device.capacity[resource].total


def _used(
    cluster: Cluster, inventory: Inventory, budgets: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], int]:
    """Return, by namespace and resource, what allocated claims use of published devices."""
    resources: dict[str, list[str]] = defaultdict(list)
    for namespace, resource in budgets:
        resources[namespace].append(resource)
    used: Tally[tuple[str, str]] = Tally()
    claims = (
        claim for claim in cluster.claims if claim.key.namespace in resources
    )
    for claim, result in held_results(claims):
        device = inventory.newest(result.device_id)
        if device is not None:
            recorded = result.consumed_capacity
            charge = Charge(
                capacity=tuple(
                    (name, amount.nanos) for name, amount in recorded.items()
                ),
                counters=tuple(
                    counters_charged(
                        recorded,
                        inventory.sources[device],
                        inventory.published,
                        inventory.features,
                    )
                ),
            )
            for resource in resources[claim.key.namespace]:
                amount = amount_used(
                    resource,
                    inventory.devices[device],
                    charge,
                    inventory.counters,
                )
                used[claim.key.namespace, resource] += amount
    return used


# ----------------------------------------------------------------------------
# What a demand asks for at least, however it is served: so nothing is gained by
# giving it more than it needs.


def asked_amounts(problem: Problem, resource: str) -> tuple[int, ...]:
    """Return, by demand, what its claims use of a counter or capacity at least (see `dralloc.problem.solution`).

    It is worked out with the devices that match, whatever is in use: 0 for a demand that nothing can serve.
    """
    eligibility, devices, counters = (
        problem.eligibility,
        problem.devices,
        problem.counters,
    )
    # One of the devices that match alike and have the same of the resource stands for all of them.
    representatives = {
        (
            eligibility.device_key(device),
            _has(problem, device, resource),
        ): device
        for device in indices(devices)
    }
    least_of_equal: dict[Hashable, int] = {}

    def used(alternative: AlternativeIndex) -> Iterator[int]:
        for device in representatives.values():
            if eligibility.selects(
                alternative, device
            ) is True and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    yield amount_used(
                        resource, devices[device], charge, counters
                    )

    def least(alternative: Alternative) -> int:
        if alternative.admin:
            return 0
        key = eligibility.request_key(alternative.index)
        if key not in least_of_equal:
            least_of_equal[key] = min(used(alternative.index), default=0)
        return least_of_equal[key] * (alternative.count or 1)

    def of_demand(demand: Demand) -> int:
        total = 0
        for claim in demand.claims:
            for request in claim.requests:
                total += min(map(least, request.alternatives))
        return total

    return tuple(map(of_demand, problem.demands))


def _has(
    problem: Problem, device_index: DeviceIndex, resource: str
) -> Hashable:
    device = problem.devices[device_index]
    drawn = sorted(
        amount
        for counter, amount in device.consumes
        if problem.counters[counter].id.counter == resource
    )
    return tuple(drawn), device.shareable, device.capacity.get(resource)


WEIGHT: Final = "weight"


class WeightLevel(NamedTuple):
    """A digit of the weights: its unit, what all demands have of it, and what one of it stands for."""

    name: str
    unit: int
    total: int
    factor: int = 1


_Weights = tuple[tuple[int, ...], tuple[WeightLevel, ...]]
"""By demand; and the digits."""


@dataclass(frozen=True)
class Worth:
    """How weights are made.

    Parameters
    ----------
    weights
        By demand.
    levels
        The digits, most important first; none if the weights are shown as they are.
    values
        By name of an objective, what placing each demand counts.
    kept_unit
        The unit of those that are kept whatever it costs; 0 if there are none.
    """

    weights: tuple[int, ...]
    levels: tuple[WeightLevel, ...] = ()
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    kept_unit: int = 0

    def applied(self, problem: Problem) -> Problem:
        """The problem with these weights."""
        pairs = zip(problem.demands, self.weights, strict=True)
        return replace(
            problem,
            demands=tuple(
                demand
                if demand.weight == weight
                else replace(demand, weight=weight)
                for demand, weight in pairs
            ),
        )

    def keeping(self, demands: frozenset[int]) -> Worth:
        """Some demands, by index, are worth more than all others together."""
        unit = 1 + sum(self.weights)
        weights = (
            weight * unit if demand in demands else weight
            for demand, weight in enumerate(self.weights)
        )
        return replace(self, weights=tuple(weights), kept_unit=unit)

    @property
    def weights_are_shown(self) -> bool:
        """Whether the sum of weights is what tiers are to say."""
        return not (self.levels or self.kept_unit)

    def bound(self, tiers: Sequence[Tier]) -> int:
        """Return the upper bound of the sum of weights, given the tiers of an answer."""
        pairs = zip(self.levels, tiers, strict=False)
        return (
            sum(
                level.unit * tier.bound // level.factor for level, tier in pairs
            )
            if self.levels
            else tiers[0].bound
        )

    def tiers(self, tiers: Sequence[Tier]) -> tuple[Tier, ...]:
        """The tiers of an answer with the weight in its levels."""
        if self.weights_are_shown or not tiers or tiers[0].name != WEIGHT:
            return tuple(tiers)
        return (*self._read(tiers[0]), *tiers[1:])

    def _read(self, weight: Tier) -> Iterator[Tier]:
        """Return what is proven of the sum, by level: how much of each the optimum has at most.

        Where a level before is not proven, the sum says nothing: an answer with less there than its bound may have any
        number of this one.
        """
        limits = {} if self.kept_unit else dict(weight.limits)
        # Who is kept is in the digit above all others; what is below it is what others are worth.
        kept_weight, value = 0, weight.value
        kept_bound, bound = 0, weight.bound
        if self.kept_unit:
            kept_weight, value = divmod(weight.value, self.kept_unit)
            kept_bound, bound = divmod(weight.bound, self.kept_unit)
        proven = kept_weight == kept_bound
        for level in self.levels or (
            WeightLevel(WEIGHT, 1, self.kept_unit - 1),
        ):
            kept_digit, kept_weight = divmod(kept_weight, level.unit)
            value_digit, value = divmod(value, level.unit)
            bound_digit, bound = divmod(bound, level.unit)
            not_kept = level.total - kept_digit
            limit = bound_digit if proven else not_kept
            limit = min(limit, max(value_digit, limits.get(level.unit, limit)))
            proven = proven and limit == value_digit
            why = "" if limit == value_digit else weight.why
            yield Tier(
                level.name,
                (kept_digit + value_digit) * level.factor,
                (kept_digit + limit) * level.factor,
                why=why,
            )


def worth_of(
    problem: Problem,
    priorities: Priorities,
    objective: str,
    annotated: Mapping[DemandIndex, int] | None = None,
) -> Worth:
    """Return the weights of the demands of a problem.

    Parameters
    ----------
    objective
        As in `dralloc.Choices`.
    annotated
        The values of pods and claims, by demand; 1 for all others.

    Raises
    ------
    DrallocError
        No counter and no capacity has the name of the objective.
    """
    demands, annotated = problem.demands, annotated or {}
    values: dict[str, tuple[int, ...]] = {
        ObjectiveWord.PODS: (1,) * len(demands),
        ObjectiveWord.DEVICES: tuple(
            demand.asked_devices for demand in demands
        ),
    }
    if annotated or objective == ObjectiveWord.VALUE:
        values[ObjectiveWord.VALUE] = tuple(
            annotated.get(demand_index, 1) for demand_index in indices(demands)
        )
    if objective not in values:
        values[objective] = asked_amounts(problem, objective)
        if not any(values[objective]) and not _is_known(problem, objective):
            raise DrallocError(
                f'--objective: no counter and no capacity of a device is named "{objective}"'
            )
    make = _strict if priorities is Priorities.STRICT else _ranked
    weights, levels = make(demands, objective, values[objective])
    return Worth(weights, levels if len(levels) > 1 else (), values)


def annotated_values(
    cluster: Cluster, demands: Numbered[DemandIndex, Demand]
) -> dict[DemandIndex, int]:
    """The values that pods, and claims that no pod uses, have by annotation, by demand.

    Raises
    ------
    DrallocError
        A value is no integer from 0.
    """
    if not any(
        VALUE_ANNOTATION in annotated_object.metadata.annotations
        for annotated_object in (*cluster.pods, *cluster.claims)
    ):
        return {}
    values = {}
    for demand_index, demand in numbered(demands):
        lone = cluster.is_lone(
            demand.key, (claim.key for claim in demand.claims)
        )
        about = (
            cluster.claim(demand.key)
            if lone
            else cluster.pods_by_key.get(demand.key)
        )
        text = (
            about.metadata.annotations.get(VALUE_ANNOTATION) if about else None
        )
        if about and text is not None:
            if not (text.isascii() and text.isdigit()):
                raise DrallocError(
                    f'{about.title}: metadata.annotations["{VALUE_ANNOTATION}"]: "{text}" is no integer from 0'
                )
            values[demand_index] = int(text)
    return values


def _is_known(problem: Problem, resource: str) -> bool:
    return any(
        counter.id.counter == resource for counter in problem.counters
    ) or any(resource in device.capacity for device in problem.devices)


def _strict(
    demands: Numbered[DemandIndex, Demand],
    objective: str,
    values: Sequence[int],
) -> _Weights:
    """From the lowest priority up: one of a priority weighs more than all that are below it together."""
    weights, levels, scale = [0] * len(demands), [], 1
    by_priority = grouped(
        (demand.priority, demand_index)
        for demand_index, demand in numbered(demands)
    )
    for priority in sorted(by_priority):
        suffix = f"@{priority}" if len(by_priority) > 1 else ""
        members = {
            demand_index: values[demand_index]
            for demand_index in by_priority[priority]
        }
        digits, digit_levels = _digits(members, objective)
        for demand_index, digit in digits.items():
            weights[demand_index] = digit * scale
        levels += [
            level._replace(name=level.name + suffix, unit=level.unit * scale)
            for level in reversed(digit_levels)
        ]
        scale *= 1 + sum(digits.values())
    return tuple(weights), tuple(reversed(levels))


def _ranked(
    demands: Numbered[DemandIndex, Demand],
    objective: str,
    values: Sequence[int],
) -> _Weights:
    """Give each demand the rank of its priority as weight: 1 for the lowest, one more for each distinct priority."""
    priorities = sorted({demand.priority for demand in demands})
    ranks = {priority: rank for rank, priority in enumerate(priorities, 1)}
    ranked = {
        demand_index: ranks[demand.priority] * values[demand_index]
        for demand_index, demand in numbered(demands)
    }
    if objective == ObjectiveWord.PODS:
        return tuple(ranked.values()), ()
    digits, levels = _digits(ranked, objective)
    return tuple(digits.values()), (
        levels[0]._replace(name=WEIGHT),
        *levels[1:],
    )


def _digits(
    values: Mapping[DemandIndex, int], objective: str
) -> tuple[dict[DemandIndex, int], list[WeightLevel]]:
    """Return the weights of demands of one priority: the objective first, then that they are placed at all."""
    demand_count = len(values)
    if objective == ObjectiveWord.PODS:
        return dict(values), [WeightLevel(objective, 1, demand_count)]
    factor = gcd(*values.values()) or 1
    total = sum(values.values()) // factor
    name = (
        objective
        if objective in tuple(ObjectiveWord)
        else f"amount of {objective}"
    )
    # The lower digit counts demands, at most all of them: so one of the upper is worth one more than that.
    digits = {
        demand: value // factor * (demand_count + 1) + 1
        for demand, value in values.items()
    }
    return digits, [
        WeightLevel(name, demand_count + 1, total, factor),
        WeightLevel(ObjectiveWord.PODS, 1, demand_count),
    ]
