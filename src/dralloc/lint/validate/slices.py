"""Rules about a slice as a whole: its driver, its pool, its nodes and how much it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dralloc.lint.validate.checks import (
    at_most,
    choice,
    distinct,
    dns_subdomain,
    driver_name,
    form,
    fully_qualified_name,
    not_false,
    not_negative,
    on,
    one_term,
    pool_name,
    positive,
)
from dralloc.lint.validate.rule import (
    RESULTS,
    SLICES,
    Issue,
    Row,
    errors,
    warnings,
)
from dralloc.objects.api import Device, ResourceSliceSpec

__all__ = ["SLICE_RULES"]

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64
"""At most so many devices, if one has taints, consumes counters or has lists as attributes."""
MAX_CONSUMED_COUNTERS: Final = 2048
"""Over all devices of a slice."""
_ONE_OF: Final = "nodeName, nodeSelector, allNodes, perDeviceNodeSelection"
_SKIPPED: Final = "skipNodeOperations"
_OPERATIONS: Final = ("NodePrepareResources", "NodeUnprepareResources", "*")


def _one_slice_selection(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    selections = (
        spec.node_name,
        spec.node_selector,
        spec.all_nodes,
        spec.per_device_node_selection,
    )
    set_count = sum(
        selection is not None and selection is not False
        for selection in selections
    )
    # An empty name and false have errors of their own.
    if set_count > 1 or all(selection is None for selection in selections):
        yield Issue(
            at,
            f"exactly one of {_ONE_OF} is required, not {set_count or 'none'}",
        )


def _devices_or_counters(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    # An empty list counts: it is about which of the two fields is set.
    if {"devices", "shared_counters"} <= spec.model_fields_set:
        yield Issue(
            at,
            "only one of devices and sharedCounters is allowed: put them in slices of their own",
        )


def _advanced(device: Device) -> bool:
    return bool(
        device.taints
        or device.consumes_counters
        or any(isinstance(value, tuple) for value in device.attributes.values())
    )


def _device_limit(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_DEVICES, spec.devices, f"{at}.devices", "devices")
    # Beyond the larger limit there is one issue already.
    if MAX_ADVANCED_DEVICES < len(spec.devices) <= MAX_DEVICES and any(
        map(_advanced, spec.devices)
    ):
        words = "devices of which some have taints, lists or consume counters"
        yield from at_most(
            MAX_ADVANCED_DEVICES, spec.devices, f"{at}.devices", words
        )


def _consumed(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    total = sum(
        len(entry.counters)
        for device in spec.devices
        for entry in device.consumes_counters
    )
    if total > MAX_CONSUMED_COUNTERS:
        text = f"consume {total} counters together, at most {MAX_CONSUMED_COUNTERS} are allowed"
        yield Issue(f"{at}.devices", text)


def _partition_use(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    consuming = any(device.consumes_counters for device in spec.devices)
    if spec.partition_type_attribute is not None and not consuming:
        yield Issue(
            f"{at}.partitionTypeAttribute",
            "is only allowed with devices that consume counters",
        )


def _partition_values(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    # A name of a wrong form is an issue of its own, and no device has such an attribute.
    name = spec.partition_type_attribute
    if not name or fully_qualified_name(name):
        return
    for index, device in enumerate(spec.devices):
        if (
            device.consumes_counters
            and type(device.attribute(name, spec.driver)) is not str
        ):
            path = f"{at}.devices[{index}].attributes[{name}]"
            yield Issue(
                path,
                "must be a string, as the device consumes counters and partitionTypeAttribute names it",
            )


def _prepared_only(operations: Sequence[str], at: str) -> Iterator[Issue]:
    if "NodePrepareResources" in operations and not {
        "NodeUnprepareResources",
        "*",
    } & set(operations):
        yield Issue(
            at,
            "NodePrepareResources can only be skipped together with NodeUnprepareResources",
        )


def _skipping(kind: str) -> Iterator[Row]:
    yield (
        f"{kind}-skip-value",
        choice(f"{_SKIPPED}[]", _OPERATIONS),
        "skipNodeOperations lists known operations.",
    )
    yield (
        f"{kind}-skip-unique",
        distinct(_SKIPPED),
        "skipNodeOperations lists each operation once.",
    )
    yield (
        f"{kind}-skip-pair",
        on(_SKIPPED, _prepared_only),
        "Preparing is only skipped if unpreparing is.",
    )


SLICE_RULES: Final = (
    *errors(
        SLICES,
        (
            "slice-driver",
            form("driver", driver_name),
            "A driver's name is a DNS subdomain of at most 63 characters.",
        ),
        (
            "pool-name",
            form("pool.name", pool_name),
            "A pool's name is DNS subdomains joined by slashes, up to 253 characters.",
        ),
        (
            "pool-slice-count",
            positive("pool.resourceSliceCount"),
            "A pool has at least one slice.",
        ),
        (
            "pool-generation",
            not_negative("pool.generation"),
            "A pool's generation is not negative.",
        ),
        (
            "slice-node-name",
            form("nodeName", dns_subdomain),
            "A node's name is a DNS subdomain.",
        ),
        (
            "slice-node-selection-false",
            not_false("allNodes|perDeviceNodeSelection"),
            "allNodes and perDeviceNodeSelection are true or absent.",
        ),
        (
            "slice-node-selection",
            _one_slice_selection,
            f"A slice says one of {_ONE_OF}.",
        ),
        (
            "slice-node-selector-terms",
            one_term("required"),
            "The node selector of a slice has exactly one term.",
        ),
        (
            "slice-device-limit",
            _device_limit,
            "A slice has at most 128 devices, or 64 if any of them has taints or lists or consumes counters.",
        ),
        (
            "slice-device-unique",
            distinct("devices", "name"),
            "The names of a slice's devices differ.",
        ),
        (
            "partition-type-name",
            form("partitionTypeAttribute", fully_qualified_name),
            "partitionTypeAttribute is a name with a domain.",
        ),
        (
            "partition-type-use",
            _partition_use,
            "partitionTypeAttribute needs devices that consume counters.",
        ),
        (
            "partition-type-value",
            _partition_values,
            "Every device that consumes counters has the attribute that partitionTypeAttribute names, as a string.",
        ),
    ),
    *errors(
        SLICES,
        (
            "slice-devices-or-counters",
            _devices_or_counters,
            "A slice holds devices or counters, not both.",
        ),
        origin="resource.k8s.io validation; KEP-4815",
    ),
    *warnings(
        SLICES,
        (
            "slice-consumed-counter-limit",
            _consumed,
            "The devices of a slice consume at most 2048 counters together, as documented; no API server checks it.",
        ),
        origin="KEP-4815, limits of a ResourceSlice",
    ),
    *errors(SLICES, *_skipping("slice")),
    *errors(RESULTS, *_skipping("result")),
)
