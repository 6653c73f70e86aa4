"""Feature gates: the switches upstream's allocator has, by upstream's names without the ``DRA`` prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from dralloc.errors import DrallocError

__all__ = ["ALL_FEATURES", "Features"]


@dataclass(frozen=True, slots=True)
class Features:
    """Which optional parts of Dynamic Resource Allocation are in force. All are on unless switched off."""

    AdminAccess: bool = True
    PrioritizedList: bool = True
    PartitionableDevices: bool = True
    DeviceTaints: bool = True
    DeviceBindingAndStatus: bool = True
    ConsumableCapacity: bool = True
    ListTypeAttributes: bool = True

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Every feature's name."""
        return tuple(field.name for field in fields(cls))

    def switched(self, switches: Mapping[str, bool]) -> Features:
        """A copy with some features switched; a name may carry upstream's ``DRA`` prefix.

        Raises
        ------
        DrallocError
            A name is not a feature.
        """
        known = self.names()
        plain = {name.removeprefix("DRA"): value for name, value in switches.items()}
        for name in plain:
            if name not in known:
                raise DrallocError(f"unknown feature {name!r}; known features: {', '.join(known)}")
        return replace(self, **plain)


ALL_FEATURES = Features()
"""Everything on: the default."""
