"""What devices take of nodes (KEP-5517), which upstream looks at when its allocator has found devices.

If the node has too little of it, it is not for the demand, even if other devices took less.
Source: ``calculateAndCheckNodeAllocatableResources`` of ``framework/plugins/dynamicresources``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from dralloc.objects.errors import FatalError
from dralloc.problem import Alternative, Charge, Claim, Device, Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Grant, served_by

__all__ = ["NodeFootprints"]

_UNKNOWN: Final = ((-1, 0),)
"""Stands for what cannot be told: a device follows a capacity, and nothing may be consumed of any."""


class NodeFootprints:
    """The counters of nodes, as far as devices charge them.

    Parameters
    ----------
    problem
        In which devices take something of nodes.
    ledger
        Of the problem in which they do not (see `dralloc.problem.node_footprint.before_footprints`).
    """

    def __init__(self, problem: Problem, ledger: Ledger) -> None:
        self._problem = problem
        self._ledger = ledger
        self._of_nodes = problem.footprint_counters
        self._uniform: dict[Hashable, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._of_nodes)

    def are_uniform(self, claims: Sequence[Claim]) -> bool:
        """Whether all devices of a node that the claims can get there take the same of it.

        So if the node had too little of it for some of them, it never has enough for others.
        """
        return not self._of_nodes or all(
            len(request.alternatives) == 1 and self._is_uniform(request.alternatives[0])
            for claim in claims
            for request in (() if claim.is_synthetic else claim.requests)
        )

    def _is_uniform(self, alternative: Alternative) -> bool:
        key = self._problem.eligibility.request_key(alternative.index)
        if key not in self._uniform:
            taken = (
                {self._taken(alternative, one) for one in node.devices()}
                for node in self._problem.nodes
            )
            self._uniform[key] = alternative.count is not None and all(
                len(amounts - {None}) <= 1 and _UNKNOWN not in amounts
                for amounts in taken
            )
        return self._uniform[key]

    def _taken(
        self, alternative: Alternative, device: int
    ) -> tuple[tuple[int, int], ...] | None:
        """What a device takes; None if the alternative cannot have it."""
        eligibility = self._problem.eligibility
        if eligibility.selects(alternative.index, device) is not True:
            return None
        charge = eligibility.charge(alternative.index, device)
        return _UNKNOWN if charge is None else self._own(charge)

    def _own(self, charge: Charge) -> tuple[tuple[int, int], ...]:
        return tuple([each for each in charge.counters if each[0] in self._of_nodes])

    def fit(self, claims: Sequence[Claim], found: Sequence[Sequence[Grant]]) -> bool:
        """Whether nodes have what the devices take that claims get; the ledger knows of everything else.

        Raises
        ------
        FatalError
            A device follows a capacity, and nothing is consumed of any.
        """
        amounts: Counter[int] = Counter()
        for _, charge in self._charges(claims, found):
            amounts.update(dict(charge.counters))
        return all(
            amount <= self._ledger.free[counter] for counter, amount in amounts.items()
        )

    def enter(
        self, claims: Sequence[Claim], found: Sequence[Sequence[Grant]], sign: int
    ) -> None:
        """Enter (1) or revoke (-1) what the devices of claims take."""
        for device, charge in self._charges(claims, found):
            self._ledger.consume(device, charge, sign)

    def _charges(
        self, claims: Sequence[Claim], found: Sequence[Sequence[Grant]]
    ) -> Iterator[tuple[Device, Charge]]:
        for claim, alternative, grant in (
            served_by(claims, found) if self._of_nodes else ()
        ):
            if claim.is_synthetic:
                continue
            device = self._problem.devices[grant.device]
            charge = self._problem.eligibility.charge(alternative.index, grant.device)
            if charge is None:
                message = "takes of its node for what is consumed of a capacity, but nothing is"
                raise FatalError(
                    f"claim {claim.key}, device {device.id.device}: {message}"
                )
            own = self._own(charge)
            if own and not alternative.admin:
                yield device, Charge(counters=own)
