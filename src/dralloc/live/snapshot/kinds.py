"""What is read from a cluster. Nothing else is, Secrets and ConfigMaps least of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

__all__ = ["LISTED_KINDS", "RESOURCE_GROUP", "ListedKind"]

RESOURCE_GROUP: Final = "resource.k8s.io"
_SCHEDULING: Final = "scheduling.k8s.io"
_DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")


@dataclass(frozen=True, slots=True)
class ListedKind:
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

    def path(self, version: str, namespace: str = "", *names: str) -> str:
        """Where a server has its objects: all of them, those of a namespace, or one by its name and a subresource."""
        inside = ("namespaces", namespace) if namespace else ()
        parts = (*self.api_version(version).split("/"), *inside, self.plural, *names)
        return "/".join(
            (
                "",
                "apis" if self.group else "api",
                *(quote(part, safe="") for part in parts),
            )
        )


LISTED_KINDS: Final = (
    ListedKind("namespaces", "Namespace"),
    ListedKind("nodes", "Node"),
    ListedKind("priorityclasses", "PriorityClass", _SCHEDULING),
    ListedKind("deviceclasses", "DeviceClass", RESOURCE_GROUP, _DRA_VERSIONS),
    ListedKind(
        "resourceslices", "ResourceSlice", RESOURCE_GROUP, _DRA_VERSIONS, required=True
    ),
    ListedKind("devicetaintrules", "DeviceTaintRule", RESOURCE_GROUP, _DRA_VERSIONS),
    ListedKind("resourcequotas", "ResourceQuota", namespaced=True),
    ListedKind(
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        RESOURCE_GROUP,
        _DRA_VERSIONS,
        namespaced=True,
    ),
    ListedKind(
        "resourceclaims",
        "ResourceClaim",
        RESOURCE_GROUP,
        _DRA_VERSIONS,
        namespaced=True,
        required=True,
    ),
    ListedKind("workloads", "Workload", _SCHEDULING, ("v1alpha1",), namespaced=True),
    ListedKind(
        "podgroups",
        "PodGroup",
        _SCHEDULING,
        ("v1", "v1beta1", "v1alpha3", "v1alpha2"),
        namespaced=True,
    ),
    ListedKind(
        "compositepodgroups",
        "CompositePodGroup",
        _SCHEDULING,
        ("v1", "v1beta1", "v1alpha3"),
        namespaced=True,
    ),
    ListedKind("pods", "Pod", namespaced=True),
)
"""Every kind, in the order in which a snapshot holds them."""
