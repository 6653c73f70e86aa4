"""What the plugins are told about one attempt to schedule a pod."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from dralloc.pods.kinds import PodInfo
from dralloc.scheduling.devices import Devices
from dralloc.scheduling.memory import Memory
from dralloc.scheduling.profile import Profile
from dralloc.scheduling.snapshot import Snapshot

__all__ = ["Cycle"]


@dataclass(frozen=True)
class Cycle:
    """One attempt.

    Parameters
    ----------
    classes
        Names of the device classes.
    memory
        What is known about nodes for pods of this kind.
    """

    pod: PodInfo
    profile: Profile
    snapshot: Snapshot
    devices: Devices
    classes: Container[str]
    memory: Memory
