"""Constraints as first fit meets them: device by device, each addition revocable (KEP-4381 "Device constraints").

Both kinds are monotonic: once a device is refused, taking more devices never changes that. Claims that are searched
for together have those constraints in common that span several claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from dralloc.names import RequestName
from dralloc.problem import Claim, Constraint, ConstraintKind, Device, Scalar, Scope

__all__ = ["ClaimConstraints", "ConstraintState", "Propagator"]


class ConstraintState(NamedTuple):
    """A constraint in the middle of a search.

    Parameters
    ----------
    taken
        How many devices it covers so far.
    common
        The values that they have in common, for `matchAttribute`; None as long as there are no devices.
    """

    constraint: Constraint
    taken: int
    common: frozenset[Scalar] | None


class Propagator(Protocol):
    """What devices that were added mean for further ones."""

    def add(self, values: frozenset[Scalar]) -> bool:
        """Add one device's values; False, and nothing added, if they break the constraint."""

    def remove(self) -> None:
        """Revoke the newest addition."""

    def state(self, constraint: Constraint) -> ConstraintState:
        """What was added so far."""


class _Match:
    """All devices have a value in common. Keeps what is common after each device, so that taking back is exact."""

    def __init__(self) -> None:
        self._common: list[frozenset[Scalar]] = []

    def add(self, values: frozenset[Scalar]) -> bool:
        common = self._common[-1] & values if self._common else values
        if self._common and not common:
            return False
        self._common.append(common)
        return True

    def remove(self) -> None:
        self._common.pop()

    def state(self, constraint: Constraint) -> ConstraintState:
        return ConstraintState(constraint, len(self._common), self._common[-1] if self._common else None)


class _Distinct:
    """No two devices have a value in common."""

    def __init__(self) -> None:
        self._seen: list[frozenset[Scalar]] = []

    def add(self, values: frozenset[Scalar]) -> bool:
        if self._seen and (not values or any(values & other for other in self._seen)):
            return False
        self._seen.append(values)
        return True

    def remove(self) -> None:
        self._seen.pop()

    def state(self, constraint: Constraint) -> ConstraintState:
        return ConstraintState(constraint, len(self._seen), None)


_PROPAGATORS: dict[ConstraintKind, type[_Match] | type[_Distinct]] = {
    ConstraintKind.MATCH: _Match,
    ConstraintKind.DISTINCT: _Distinct,
}


class ClaimConstraints:
    """The constraints of one claim.

    Parameters
    ----------
    spanning
        What is known of constraints that span several claims; those of this claim are added.
    """

    def __init__(self, claim: Claim, spanning: dict[Scope, Propagator]) -> None:
        self._propagators: list[tuple[Constraint, Propagator]] = []
        for constraint in claim.constraints:
            propagator: Propagator = _PROPAGATORS[constraint.kind]()
            if constraint.scope:
                propagator = spanning.setdefault(constraint.scope, _told(propagator, constraint.scope))
            self._propagators.append((constraint, propagator))

    def add(self, name: RequestName, device: Device) -> bool:
        """Add a device for that request; False, and nothing added, if some constraint refuses it."""
        added: list[Propagator] = []
        for constraint, propagator in self._propagators:
            if not constraint.covers(name):
                continue
            values = device.attributes.get(constraint.compared(name))
            if values is None or not propagator.add(values):
                for earlier in added:
                    earlier.remove()
                return False
            added.append(propagator)
        return True

    def remove(self, name: RequestName) -> None:
        """Revoke the newest addition, which was made for that request."""
        for constraint, propagator in self._propagators:
            if constraint.covers(name):
                propagator.remove()

    def accepts(self, name: RequestName, device: Device) -> bool:
        """Whether a device could be added for that request."""
        if not self.add(name, device):
            return False
        self.remove(name)
        return True

    def states(self) -> Iterator[ConstraintState]:
        """All constraints as they stand."""
        return (propagator.state(constraint) for constraint, propagator in self._propagators)


def _told(propagator: Propagator, scope: Scope) -> Propagator:
    for values in scope.held:
        propagator.add(values)
    return propagator
