"""All rows, with those of nodes, namespaces and quotas, and which of them says what a field is."""

from __future__ import annotations

from typing import Final

from dralloc.compile.modelled.field_rows import (
    FieldRow,
    modelled,
    no_matter,
    preferred,
)
from dralloc.compile.modelled.resource_rows import RESOURCES
from dralloc.compile.modelled.workload_rows import WORKLOADS

__all__ = ["TABLE", "row_of"]

_CLUSTERS: Final[tuple[FieldRow, ...]] = (
    *modelled("names the node", "Node metadata.name"),
    *modelled(
        "which nodes are allowed, and which are one place",
        "Node metadata.labels",
    ),
    *modelled("taints", "Node spec.{unschedulable,taints.{key,value,effect}}"),
    *modelled("what pods take of the node", "Node status.allocatable"),
    *preferred(
        "images that the node has already",
        "Node status.images.{names,sizeBytes}",
    ),
    *no_matter(
        "Node metadata",
        "Node spec.{podCIDR,podCIDRs,providerID,configSource,externalID,taints.timeAdded}",
        "Node status.{capacity,phase,conditions,addresses,daemonEndpoints,nodeInfo,volumesInUse,volumesAttached}",
        "Node status.{config,runtimeHandlers,features,declaredFeatures}",
    ),
    *modelled("namespaces by labels", "Namespace metadata.{name,labels}"),
    *no_matter("Namespace {metadata,spec,status}"),
    *modelled(
        "quotas of devices (KEP-4381)",
        "ResourceQuota {metadata.namespace,spec.hard}",
    ),
    *modelled(
        "quotas with a scope are for pods only",
        "ResourceQuota spec.{scopes,scopeSelector.matchExpressions.{scopeName,operator,values}}",
    ),
    *no_matter("ResourceQuota {metadata,status}"),
)

TABLE: Final[tuple[FieldRow, ...]] = (*RESOURCES, *WORKLOADS, *_CLUSTERS)
"""All rows."""

_BY_FIELD: Final = {(row.kind, row.path): row for row in TABLE}


def row_of(kind: str, path: str) -> FieldRow | None:
    """The row of a field: its own, or that of the nearest field above it of which all fields below are the same.

    A row of what is modelled stands for its field alone, so that a new field below it is nobody's.

    Parameters
    ----------
    path
        As on the wire, without steps into lists and maps.
    """
    exact_row = _BY_FIELD.get((kind, path))
    steps = path.split(".")
    above = (
        _BY_FIELD.get((kind, ".".join(steps[:depth])))
        for depth in range(len(steps) - 1, 0, -1)
    )
    return exact_row or next(
        (row for row in above if row is not None and row.covers_below), None
    )
