"""The plugins of kube-scheduler's default profile, in their order.

Source: ``apis/config/v1/default_plugins.go`` of ``kubernetes/pkg/scheduler``. Those about volumes are left out, as
volumes are not read, and so is NodeName: a pod that names its node is not scheduled.
"""

from __future__ import annotations

from typing import Final

from dralloc.solve.scheduler.plugin import Plugin
from dralloc.solve.scheduler.plugins.dynamic_resources import DYNAMIC_RESOURCES
from dralloc.solve.scheduler.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from dralloc.solve.scheduler.plugins.node_resources import (
    BALANCED_ALLOCATION,
    NODE_RESOURCES_FIT,
)
from dralloc.solve.scheduler.plugins.node_traits import (
    IMAGE_LOCALITY,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
)
from dralloc.solve.scheduler.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD

__all__ = ["PLUGINS"]

PLUGINS: Final[tuple[Plugin, ...]] = (
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
    DYNAMIC_RESOURCES,
    BALANCED_ALLOCATION,
    IMAGE_LOCALITY,
)
