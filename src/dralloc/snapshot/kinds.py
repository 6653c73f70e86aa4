"""What is read from a cluster. Nothing else is, Secrets and ConfigMaps least of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["RESOURCE_GROUP", "WANTED", "Wanted"]

RESOURCE_GROUP: Final = "resource.k8s.io"
_SCHEDULING: Final = "scheduling.k8s.io"
_DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One kind of objects.

    Parameters
    ----------
    plural, kind
        The resource as in URLs and in RBAC rules, and as in objects.
    group
        The API group; empty for core/v1.
    versions
        The versions that dralloc reads, the preferred one first.
    namespaced
        Whether it lives in namespaces.
    required
        Whether a snapshot without it is worth nothing.
    """

    plural: str
    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = False
    required: bool = False

    @property
    def resource(self) -> str:
        """The resource with its group, e.g. ``resourceclaims.resource.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """What objects carry as ``apiVersion``."""
        return f"{self.group}/{version}" if self.group else version


WANTED: Final = (
    Wanted("namespaces", "Namespace"),
    Wanted("nodes", "Node"),
    Wanted("priorityclasses", "PriorityClass", _SCHEDULING),
    Wanted("deviceclasses", "DeviceClass", RESOURCE_GROUP, _DRA_VERSIONS),
    Wanted("resourceslices", "ResourceSlice", RESOURCE_GROUP, _DRA_VERSIONS, required=True),
    Wanted("devicetaintrules", "DeviceTaintRule", RESOURCE_GROUP, _DRA_VERSIONS),
    Wanted("resourcequotas", "ResourceQuota", namespaced=True),
    Wanted("resourceclaimtemplates", "ResourceClaimTemplate", RESOURCE_GROUP, _DRA_VERSIONS, namespaced=True),
    Wanted("resourceclaims", "ResourceClaim", RESOURCE_GROUP, _DRA_VERSIONS, namespaced=True, required=True),
    Wanted("workloads", "Workload", _SCHEDULING, ("v1alpha1",), namespaced=True),
    Wanted("podgroups", "PodGroup", _SCHEDULING, ("v1", "v1beta1", "v1alpha3", "v1alpha2"), namespaced=True),
    Wanted("pods", "Pod", namespaced=True),
)
"""Every kind, in the order in which a snapshot holds them."""
