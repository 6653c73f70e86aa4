"""What namespaces use of something already, beside their caps and what is to be fair."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from dralloc.compile.inventory import Inventory, held_results
from dralloc.compile.inventory.charges import counters_charged
from dralloc.objects.budget import Budget, Cap
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.problem import Charge, Demand
from dralloc.problem.spending import amount_used

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
    wanted: dict[tuple[str, str], Cap | None] = {}
    for cap in caps:
        if (cap.namespace, cap.resource) in wanted:
            raise DrallocError(f"--cap {cap.namespace}={cap.resource}: is given twice")
        wanted[cap.namespace, cap.resource] = cap
    waiting = {demand.key.namespace for demand in demands} if fair else set()
    for namespace in sorted(waiting):
        wanted.setdefault((namespace, fair), None)
    totals = {
        resource: list(_totals(inventory, resource))
        for resource in {*(cap.resource for cap in caps), fair} - {""}
    }
    for resource, found in totals.items():
        if not found:
            option = "--fair" if resource == fair else "--cap"
            raise DrallocError(
                f'{option}: no counter and no capacity of a device is named "{resource}"'
            )
    used = _used(cluster, inventory, wanted)
    return tuple(
        Budget(
            namespace=namespace,
            resource=resource,
            used=used[namespace, resource],
            total=sum(totals[resource]),
            most=None if cap is None else cap.most.nanos,
            fair=resource == fair and namespace in waiting,
        )
        for (namespace, resource), cap in wanted.items()
    )


def _totals(inventory: Inventory, resource: str) -> Iterator[int]:
    """Counters of that name, and capacities of devices that consume none."""
    named = {
        number
        for number, counter in enumerate(inventory.counters)
        if counter.id.counter == resource
    }
    yield from (inventory.counters[number].total for number in named)
    for device, source in zip(inventory.devices, inventory.sources, strict=True):
        consumed = (*device.consumes, *source.requested_counters)
        if resource in device.capacity and not any(
            number in named for number, _ in consumed
        ):
            yield device.capacity[resource].total


def _used(
    cluster: Cluster, inventory: Inventory, wanted: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], int]:
    """By namespace and resource, what allocated claims use of published devices."""
    resources: dict[str, list[str]] = defaultdict(list)
    for namespace, resource in wanted:
        resources[namespace].append(resource)
    used: Tally[tuple[str, str]] = Tally()
    for claim, result in held_results(
        one for one in cluster.claims if one.key.namespace in resources
    ):
        number = inventory.newest(result.device_id)
        if number is not None:
            recorded = result.consumed_capacity
            charge = Charge(
                capacity=tuple(
                    (name, amount.nanos) for name, amount in recorded.items()
                ),
                counters=tuple(
                    counters_charged(
                        recorded, inventory.sources[number], inventory.published
                    )
                ),
            )
            for resource in resources[claim.key.namespace]:
                amount = amount_used(
                    resource, inventory.devices[number], charge, inventory.counters
                )
                used[claim.key.namespace, resource] += amount
    return used
