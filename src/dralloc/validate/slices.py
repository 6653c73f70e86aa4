"""Rules about a slice as a whole: its driver, its pool, its nodes and how much it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.api import AttributeValue, Device, ResourceSliceSpec
from dralloc.validate.names import dns_subdomain, driver_name, fully_qualified_name, pool_name
from dralloc.validate.rule import Issue, at_most, error, named, unique
from dralloc.validate.walk import slices

__all__ = ["RULES", "partition_type", "skip_pairs", "skip_values"]

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64
MAX_CONSUMED_COUNTERS: Final = 2048
_ONE_OF: Final = "nodeName, nodeSelector, allNodes, perDeviceNodeSelection"


def _driver(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from named(spec.driver, f"{at}.driver", driver_name)


def _pool_name(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from named(spec.pool.name, f"{at}.pool.name", pool_name)


def _pool_count(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    count = spec.pool.resource_slice_count
    if count <= 0:
        yield Issue(f"{at}.pool.resourceSliceCount", f"{count} is not greater than zero")


def _pool_generation(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    if spec.pool.generation < 0:
        yield Issue(f"{at}.pool.generation", f"{spec.pool.generation} is negative")


def _node_name(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    if spec.node_name is not None:
        yield from named(spec.node_name, f"{at}.nodeName", dns_subdomain)


def _not_false(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    for field, value in (("allNodes", spec.all_nodes), ("perDeviceNodeSelection", spec.per_device_node_selection)):
        if value is False:
            yield Issue(f"{at}.{field}", "must be true or left out")


def _one_selection(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    selections = (spec.node_name, spec.node_selector, spec.all_nodes, spec.per_device_node_selection)
    given = sum(selection is not None and selection is not False for selection in selections)
    # An empty name and false have errors of their own.
    if given > 1 or all(selection is None for selection in selections):
        yield Issue(at, f"exactly one of {_ONE_OF} is required, not {given or 'none'}")


def _one_term(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    terms = 1 if spec.node_selector is None else len(spec.node_selector.node_selector_terms)
    if terms > 1:
        yield Issue(f"{at}.nodeSelector.nodeSelectorTerms", f"exactly one term is required, not {terms}")


def _devices_or_counters(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    if {"devices", "shared_counters"} <= spec.model_fields_set:
        yield Issue(at, "only one of devices and sharedCounters is allowed: put them in slices of their own")


def _advanced(device: Device) -> bool:
    return bool(device.taints or device.consumes_counters or any(map(_is_list, device.attributes.values())))


def _is_list(value: AttributeValue) -> bool:
    return isinstance(value, tuple)


def _device_limit(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_DEVICES, spec.devices, f"{at}.devices", "devices")
    if MAX_ADVANCED_DEVICES < len(spec.devices) <= MAX_DEVICES and any(map(_advanced, spec.devices)):
        what = "devices of which some have taints, lists or consume counters"
        yield from at_most(MAX_ADVANCED_DEVICES, spec.devices, f"{at}.devices", what)


def _unique_devices(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from unique((device.name for device in spec.devices), f"{at}.devices")


def _consumed(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    total = sum(len(entry.counters) for device in spec.devices for entry in device.consumes_counters)
    if total > MAX_CONSUMED_COUNTERS:
        text = f"consume {total} counters together, at most {MAX_CONSUMED_COUNTERS} are allowed"
        yield Issue(f"{at}.devices", text)


def partition_type(spec: ResourceSliceSpec, device: Device) -> AttributeValue | None:
    """The attribute that the slice calls the type of its partitions; the driver's domain may be left out."""
    name = spec.partition_type_attribute or ""
    return device.attributes.get(name, device.attributes.get(name.removeprefix(f"{spec.driver}/")))


def _partition_name(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    if spec.partition_type_attribute is not None:
        yield from named(spec.partition_type_attribute, f"{at}.partitionTypeAttribute", fully_qualified_name)


def _partition_use(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    consuming = any(device.consumes_counters for device in spec.devices)
    if spec.partition_type_attribute is not None and not consuming:
        yield Issue(f"{at}.partitionTypeAttribute", "is only allowed with devices that consume counters")


def _partition_values(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    name = spec.partition_type_attribute
    if not name or fully_qualified_name(name):
        return
    for index, device in enumerate(spec.devices):
        if device.consumes_counters and type(partition_type(spec, device)) is not str:
            path = f"{at}.devices[{index}].attributes[{name}]"
            yield Issue(path, "must be a string, as the device consumes counters and partitionTypeAttribute names it")


def skip_values(operations: tuple[str, ...], at: str) -> Iterator[Issue]:
    """Only known operations can be skipped (gate DRAOptionalNodeOperations)."""
    for index, operation in enumerate(operations):
        if operation not in ("NodePrepareResources", "NodeUnprepareResources", "*"):
            text = f'"{operation}" is not one of NodePrepareResources, NodeUnprepareResources, *'
            yield Issue(f"{at}[{index}]", text)


def skip_pairs(operations: tuple[str, ...], at: str) -> Iterator[Issue]:
    """Whether what is prepared is also undone."""
    if "NodePrepareResources" in operations and not {"NodeUnprepareResources", "*"} & set(operations):
        yield Issue(at, "NodePrepareResources can only be skipped together with NodeUnprepareResources")


def _skip_values(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from skip_values(spec.skip_node_operations, f"{at}.skipNodeOperations")


def _skip_unique(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from unique(spec.skip_node_operations, f"{at}.skipNodeOperations")


def _skip_pairs(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from skip_pairs(spec.skip_node_operations, f"{at}.skipNodeOperations")


RULES: Final = (
    error("slice-driver", slices, _driver, "A driver's name is a DNS subdomain of at most 63 characters."),
    error("pool-name", slices, _pool_name, "A pool's name is DNS subdomains joined by slashes, up to 253 characters."),
    error("pool-slice-count", slices, _pool_count, "A pool has at least one slice."),
    error("pool-generation", slices, _pool_generation, "A pool's generation is not negative."),
    error("slice-node-name", slices, _node_name, "A node's name is a DNS subdomain."),
    error("slice-node-selection-false", slices, _not_false, "allNodes and perDeviceNodeSelection are true or absent."),
    error("slice-node-selection", slices, _one_selection, f"A slice says one of {_ONE_OF}."),
    error("slice-node-selector-terms", slices, _one_term, "The node selector of a slice has exactly one term."),
    error(
        "slice-devices-or-counters",
        slices,
        _devices_or_counters,
        "A slice holds devices or counters, not both.",
        "resource.k8s.io validation; KEP-4815",
    ),
    error(
        "slice-device-limit",
        slices,
        _device_limit,
        "A slice has at most 128 devices, or 64 if any of them has taints or lists or consumes counters.",
    ),
    error("slice-device-unique", slices, _unique_devices, "The names of a slice's devices differ."),
    error(
        "slice-consumed-counter-limit",
        slices,
        _consumed,
        "The devices of a slice consume at most 2048 counters together.",
        "KEP-4815, limits of a ResourceSlice",
    ),
    error("partition-type-name", slices, _partition_name, "partitionTypeAttribute is a name with a domain."),
    error("partition-type-use", slices, _partition_use, "partitionTypeAttribute needs devices that consume counters."),
    error(
        "partition-type-value",
        slices,
        _partition_values,
        "Every device that consumes counters has the attribute that partitionTypeAttribute names, as a string.",
    ),
    error("slice-skip-value", slices, _skip_values, "skipNodeOperations lists known operations."),
    error("slice-skip-unique", slices, _skip_unique, "skipNodeOperations lists each operation once."),
    error("slice-skip-pair", slices, _skip_pairs, "Preparing is only skipped if unpreparing is."),
)
