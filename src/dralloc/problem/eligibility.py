"""Which device may serve which alternative: the question, and answers made out of other answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dralloc.objects.errors import AllocationError
from dralloc.problem.requests import Charge

__all__ = [
    "Eligibility",
    "EligibilityTable",
    "Overlay",
    "Remembered",
    "Renumbered",
    "renumbered",
]

Amounts = tuple[tuple[int, int], ...]
"""Counters by index, with amounts in nanos."""


class Eligibility(Protocol):
    """Which device may serve which alternative, whatever else is in use. Answers are worked out when asked, once."""

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """Whether class and request selectors accept the device; a CEL failure is the error that upstream raises."""

    def admits(self, alternative: int, device: int) -> bool:
        """Whether the device lets the alternative in: its taints are tolerated, and no feature that it needs is off."""

    def charge(self, alternative: int, device: int) -> Charge | None:
        """What an allocation takes; None if the device lacks a requested capacity or a request policy forbids it."""

    def request_key(self, alternative: int) -> Hashable:
        """A canonical key: alternatives with equal keys get the same answers for every device, errors' names aside."""

    def device_key(self, device: int) -> Hashable:
        """A canonical key: devices with equal keys get the same answers for every alternative, errors' names aside."""


@dataclass(eq=False)
class Overlay:
    """The answers of another eligibility; what extends this says where they differ."""

    base: Eligibility

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """As in `Eligibility`."""
        return self.base.selects(alternative, device)

    def admits(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        return self.base.admits(alternative, device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        return self.base.charge(alternative, device)

    def request_key(self, alternative: int) -> Hashable:
        """As in `Eligibility`."""
        return self.base.request_key(alternative)

    def device_key(self, device: int) -> Hashable:
        """As in `Eligibility`."""
        return self.base.device_key(device)


@dataclass(eq=False)
class Renumbered(Overlay):
    """The answers about devices and counters that have other numbers.

    ``devices``: by new number the old one. ``counters``: by old number the new one.
    """

    devices: Sequence[int]
    counters: Mapping[int, int]

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """As in `Eligibility`."""
        return self.base.selects(alternative, self.devices[device])

    def admits(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        return self.base.admits(alternative, self.devices[device])

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        charge = self.base.charge(alternative, self.devices[device])
        if charge is None or not charge.counters:
            return charge
        return replace(charge, counters=renumbered(charge.counters, self.counters))

    def device_key(self, device: int) -> Hashable:
        """As in `Eligibility`."""
        return self.base.device_key(self.devices[device])


class Remembered(Overlay):
    """The answers of another eligibility, with the charges kept for who asks again and again."""

    def __init__(self, base: Eligibility) -> None:
        super().__init__(base)
        self._charges: dict[tuple[int, int], Charge | None] = {}

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        question = alternative, device
        if question not in self._charges:
            self._charges[question] = self.base.charge(alternative, device)
        return self._charges[question]


@dataclass(frozen=True)
class EligibilityTable:
    """An eligibility that is known beforehand, and can be sent to another process: what is not listed is refused."""

    charges: Mapping[tuple[int, int], Charge]

    def selects(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        return (alternative, device) in self.charges

    admits = selects

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        return self.charges.get((alternative, device))

    def request_key(self, alternative: int) -> Hashable:
        """As in `Eligibility`."""
        return alternative

    def device_key(self, device: int) -> Hashable:
        """As in `Eligibility`."""
        return device


def renumbered(
    amounts: Sequence[tuple[int, int]], counters: Mapping[int, int]
) -> Amounts:
    """Amounts of counters that have other numbers."""
    return tuple([(counters[counter], amount) for counter, amount in amounts])
