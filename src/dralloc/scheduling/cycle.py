"""What the plugins are told about one attempt to schedule a pod."""

from __future__ import annotations

from collections.abc import Container, Set
from typing import NamedTuple

from dralloc.names import ClaimKey
from dralloc.pods.kinds import PodInfo
from dralloc.scheduling.devices import Devices
from dralloc.scheduling.memory import Memory
from dralloc.scheduling.profile import Profile
from dralloc.scheduling.snapshot import Snapshot

__all__ = ["Cycle"]


class Cycle(NamedTuple):
    """One attempt.

    Parameters
    ----------
    classes
        Names of the device classes.
    memory
        What is known about nodes for pods of this kind with these claims.
    in_flight
        Claims whose allocation is decided but not yet known to the API server: their next user has to wait.
    in_placement
        Whether a group is tried in a part of the nodes.
    """

    pod: PodInfo
    profile: Profile
    snapshot: Snapshot
    devices: Devices
    classes: Container[str]
    memory: Memory
    in_flight: Set[ClaimKey] = frozenset()
    in_placement: bool = False
