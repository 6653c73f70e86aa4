"""What the plugins are told about one attempt to schedule a pod."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from dralloc.scheduling.devices import Devices, Found
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.pods import PodInfo
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
    found
        What the pod's claims would get, by node, as far as DynamicResources has looked.
    """

    pod: PodInfo
    profile: Profile
    snapshot: Snapshot
    devices: Devices
    classes: Container[str]
    found: dict[NodeInfo, Found] = field(default_factory=dict)
