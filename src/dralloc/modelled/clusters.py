"""The rows of nodes, namespaces and quotas."""

from __future__ import annotations

from typing import Final

from dralloc.modelled.row import FieldRow, modelled, no_matter, preferred

__all__ = ["CLUSTERS"]

CLUSTERS: Final[tuple[FieldRow, ...]] = (
    *modelled("names the node", "Node metadata.name"),
    *modelled("which nodes are allowed, and which are one place", "Node metadata.labels"),
    *modelled("taints", "Node spec.{unschedulable,taints.{key,value,effect}}"),
    *modelled("what pods take of the node", "Node status.allocatable"),
    *preferred("images that the node has already", "Node status.images.{names,sizeBytes}"),
    *no_matter(
        "Node metadata",
        "Node spec.{podCIDR,podCIDRs,providerID,configSource,externalID,taints.timeAdded}",
        "Node status.{capacity,phase,conditions,addresses,daemonEndpoints,nodeInfo,volumesInUse,volumesAttached}",
        "Node status.{config,runtimeHandlers,features,declaredFeatures}",
    ),
    *modelled("namespaces by labels", "Namespace metadata.{name,labels}"),
    *no_matter("Namespace {metadata,spec,status}"),
    *modelled("quotas of devices (KEP-4381)", "ResourceQuota {metadata.namespace,spec.hard}"),
    *modelled(
        "quotas with a scope are for pods only",
        "ResourceQuota spec.{scopes,scopeSelector.matchExpressions.{scopeName,operator,values}}",
    ),
    *no_matter("ResourceQuota {metadata,status}"),
)
