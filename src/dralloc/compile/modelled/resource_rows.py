"""The rows of ``resource.k8s.io``."""

from __future__ import annotations

from typing import Final

from dralloc.compile.modelled.field_rows import FieldRow, modelled, no_matter

__all__ = ["NODE_SELECTOR", "NODE_TERM", "RESOURCES"]

NODE_TERM: Final = "{matchExpressions,matchFields}.{key,operator,values}"
NODE_SELECTOR: Final = f"nodeSelectorTerms.{NODE_TERM}"
_POLICY: Final = "requestPolicy.{default,validValues,validRange.{min,max,step}}"
_SPECS: Final = "{ResourceClaim spec,ResourceClaimTemplate spec.spec}.devices"
_REQUESTS: Final = f"{_SPECS}.requests.{{exactly,firstAvailable}}"
_RESULTS: Final = "ResourceClaim status.allocation.devices.results"

RESOURCES: Final[tuple[FieldRow, ...]] = (
    *modelled("names the pool", "ResourceSlice spec.{driver,pool.name}"),
    *modelled(
        "which slices count (KEP-4381)",
        "ResourceSlice spec.pool.{generation,resourceSliceCount}",
    ),
    *modelled("slices are searched by name", "ResourceSlice metadata.name"),
    *modelled(
        "on which nodes devices are (KEP-4381, KEP-4815)",
        f"ResourceSlice spec.{{nodeName,nodeSelector.{NODE_SELECTOR},allNodes,perDeviceNodeSelection}}",
        f"ResourceSlice spec.devices.{{nodeName,nodeSelector.{NODE_SELECTOR},allNodes}}",
    ),
    *modelled("names the device", "ResourceSlice spec.devices.name"),
    *modelled(
        "selectors and constraints (KEP-4381, KEP-5491)",
        "ResourceSlice spec.devices.attributes.{int,bool,string,version,ints,bools,strings,versions}",
    ),
    *modelled(
        "capacity, and how it is consumed (KEP-5075)",
        f"ResourceSlice spec.devices.capacity.{{value,{_POLICY}}}",
        "ResourceSlice spec.devices.allowMultipleAllocations",
    ),
    *modelled(
        "counters of partitions (KEP-4815)",
        "ResourceSlice spec.sharedCounters.{name,counters.value}",
        "ResourceSlice spec.devices.consumesCounters.{counterSet,counters.value}",
    ),
    *modelled(
        "counters that requests consume (KEP-5941)",
        f"ResourceSlice spec.sharedCounters.counters.{_POLICY}",
        "ResourceSlice spec.devices.consumesCounters.counters.valueFrom.capacityKey",
    ),
    *modelled(
        "partitions that may be in use together (KEP-5963)",
        "ResourceSlice spec.devices.consumesCounters.compatibilityGroups",
    ),
    *modelled(
        "taints of devices (KEP-5055)",
        "ResourceSlice spec.devices.taints.{key,value,effect}",
    ),
    *modelled(
        "devices with conditions come last (KEP-5007)",
        "ResourceSlice spec.devices.{bindsToNode,bindingConditions}",
    ),
    *modelled(
        "devices that take of CPU, memory and other resources of their node (KEP-5517)",
        "ResourceSlice spec.devices.nodeAllocatableResources.mapping.{capacityKey,capacityMultiplier,deviceMultiplier}",
        "ResourceSlice spec.devices.nodeAllocatableResources.overhead.{perPod,perContainer}",
        "ResourceSlice spec.devices.nodeAllocatableResourceMappings.{capacityKey,allocationMultiplier}",
    ),
    *no_matter(
        "ResourceSlice metadata",
        "ResourceSlice spec.devices.{taints.timeAdded,bindingFailureConditions}",
        "ResourceSlice spec.{partitionTypeAttribute,skipNodeOperations}",
    ),
    *modelled("names the class", "DeviceClass metadata.name"),
    *modelled(
        "selectors (KEP-4381)", "DeviceClass spec.selectors.cel.expression"
    ),
    *modelled(
        "extended resources (KEP-5004)", "DeviceClass spec.extendedResourceName"
    ),
    *no_matter("DeviceClass {metadata,spec.config}"),
    *modelled(
        "names the claim",
        "ResourceClaim metadata.{name,namespace}",
        "ResourceClaimTemplate metadata.{name,namespace}",
    ),
    *modelled(
        "who has the claim (KEP-4381)",
        "ResourceClaim metadata.{annotations,ownerReferences.{kind,name,uid,controller}}",
    ),
    *modelled(
        "the order of claims", "ResourceClaim metadata.creationTimestamp"
    ),
    *modelled(
        "a claim that is being deleted is not allocated",
        "ResourceClaim metadata.deletionTimestamp",
    ),
    *modelled(
        "what is requested (KEP-4381)",
        f"{_SPECS}.requests.name",
        f"{_REQUESTS}.{{deviceClassName,selectors.cel.expression,allocationMode,count}}",
    ),
    *modelled(
        "alternatives (KEP-4816)", f"{_SPECS}.requests.firstAvailable.name"
    ),
    *modelled(
        "admin access (KEP-5018)", f"{_SPECS}.requests.exactly.adminAccess"
    ),
    *modelled(
        "tolerated taints (KEP-5055)",
        f"{_REQUESTS}.tolerations.{{key,operator,value,effect}}",
    ),
    *modelled(
        "requested capacity (KEP-5075)", f"{_REQUESTS}.capacity.requests"
    ),
    *modelled(
        "constraints (KEP-4381)",
        f"{_SPECS}.constraints.{{requests,matchAttribute,distinctAttribute}}",
    ),
    *modelled(
        "attributes that a request derives for constraints (KEP-6080)",
        f"{_REQUESTS}.derivedAttributes.{{name,expression}}",
    ),
    *no_matter(
        f"{_REQUESTS}.tolerations.tolerationSeconds",
        f"{_SPECS}.config",
        "ResourceClaim metadata",
    ),
    *no_matter("ResourceClaimTemplate {metadata,spec.metadata}"),
    *modelled(
        "what an allocated claim holds (KEP-4381, KEP-5018, KEP-5075)",
        f"{_RESULTS}.{{request,driver,pool,device,adminAccess,shareID,consumedCapacity}}",
    ),
    *modelled(
        "where an allocated claim can be used",
        f"ResourceClaim status.allocation.nodeSelector.{NODE_SELECTOR}",
    ),
    *modelled(
        "at most 256 pods use a claim, and a PodGroup all of it (KEP-5729)",
        "ResourceClaim status.reservedFor.{apiGroup,resource,name,uid}",
    ),
    *no_matter(
        f"{_RESULTS}.{{tolerations,bindingConditions,bindingFailureConditions,skipNodeOperations}}",
        "ResourceClaim status.allocation.{devices.config,allocationTimestamp}",
        "ResourceClaim status.devices",
    ),
    *modelled(
        "which devices are tainted (KEP-5055)",
        "DeviceTaintRule spec.deviceSelector.{deviceClassName,driver,pool,device,selectors.cel.expression}",
        "DeviceTaintRule spec.taint.{key,value,effect}",
    ),
    *no_matter("DeviceTaintRule {metadata,status,spec.taint.timeAdded}"),
)
