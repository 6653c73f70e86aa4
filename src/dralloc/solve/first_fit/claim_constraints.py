"""Constraints as first fit meets them: device by device, each addition revocable (KEP-4381 "Device constraints").

Both kinds are monotonic: once a device is refused, taking more devices never changes that. Claims that are searched for
together have those constraints in common that span several claims.
"""

from __future__ import annotations

from typing import assert_never

from dralloc.objects.names import RequestName
from dralloc.problem import (
    Claim,
    Constraint,
    ConstraintKind,
    Device,
    Scalar,
    Scope,
)

__all__ = ["ClaimConstraints", "Propagator"]


class Propagator:
    """A constraint on devices to come by those that were added: all have a value in common, or no two of them have."""

    def __init__(self, constraint: Constraint) -> None:
        match constraint.kind:
            case ConstraintKind.MATCH:
                self._is_match = True
            case ConstraintKind.DISTINCT:
                self._is_match = False
            case _:
                assert_never(constraint.kind)
        # The values of each device; of a match, those that it has in common with all before it.
        self._added: list[frozenset[Scalar]] = []
        for values in constraint.scope.held if constraint.scope else ():
            self.add(values)

    @property
    def taken(self) -> int:
        """The number of devices that the constraint covers so far."""
        return len(self._added)

    @property
    def common(self) -> frozenset[Scalar] | None:
        """The values that they have in common, for `matchAttribute`; None as long as there are no devices."""
        if self._is_match and self._added:
            return self._added[-1]
        return None

    def add(self, values: frozenset[Scalar]) -> bool:
        """Add one device's values; False, and nothing added, if they break the constraint."""
        added = self._added
        if added and self._is_match:
            values = added[-1] & values
        if added and not values:
            return False
        if not self._is_match and any(values & earlier for earlier in added):
            return False
        added.append(values)
        return True

    def remove(self) -> None:
        """Revoke the newest addition."""
        self._added.pop()


class ClaimConstraints:
    """The constraints of one claim.

    Parameters
    ----------
    spanning
        What is known of constraints that span several claims; those of this claim are added.

    Notes
    -----
    ``states``: all constraints as they stand.
    """

    def __init__(self, claim: Claim, spanning: dict[Scope, Propagator]) -> None:
        self.states: list[tuple[Constraint, Propagator]] = []
        for constraint in claim.constraints:
            propagator = Propagator(constraint)
            if constraint.scope:
                propagator = spanning.setdefault(constraint.scope, propagator)
            self.states.append((constraint, propagator))

    def add(self, name: RequestName, device: Device) -> bool:
        """Add a device for that request; False, and nothing added, if some constraint refuses it."""
        added: list[Propagator] = []
        for constraint, propagator in self.states:
            if not constraint.covers(name):
                continue
            values = device.attributes.get(constraint.compared(name))
            # A device without the attribute satisfies no constraint about it.
            if values is None or not propagator.add(values):
                for earlier in added:
                    earlier.remove()
                return False
            added.append(propagator)
        return True

    def remove(self, name: RequestName) -> None:
        """Revoke the newest addition, which was made for that request."""
        for constraint, propagator in self.states:
            if constraint.covers(name):
                propagator.remove()

    def accepts(self, name: RequestName, device: Device) -> bool:
        """Whether a device could be added for that request."""
        if not self.add(name, device):
            return False
        self.remove(name)
        return True
