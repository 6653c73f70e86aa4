"""Budgets: what namespaces use of something already, beside their caps and what is to be fair."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from dralloc.compile.inventory import Inventory, counters_charged, held_results
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.user_rules import Budget, Cap
from dralloc.problem import Charge, Demand
from dralloc.problem.solution import amount_used

__all__ = ["find_budgets"]


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
        # A namespace that has a cap on the same resource has its budget already.
        budgets.setdefault((namespace, fair), None)
    resources = {*(cap.resource for cap in caps), fair} - {""}
    # Lists and not sums: that nothing has the name is an error, and a total of zero is none.
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
            # As all usage, the charge comes from what the allocation recorded, and not from what was requested.
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
