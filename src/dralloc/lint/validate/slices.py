"""Rules about what drivers publish: slices as a whole, single devices, and taints with what tolerates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dralloc.lint.validate.checks import (
    JUDGED,
    at_most,
    before_137,
    choice,
    distinct,
    dns_label,
    dns_subdomain,
    driver_name,
    form,
    fully_qualified_name,
    keys,
    label_name,
    label_value,
    limit,
    not_false,
    not_negative,
    on,
    one_term,
    pool_name,
    positive,
    qualified_name,
    required,
    size_of,
    told,
    version,
)
from dralloc.lint.validate.rule import (
    DETAILS,
    DEVICES,
    RESULTS,
    SLICES,
    TAINT_RULES,
    Check,
    Issue,
    Row,
    errors,
    warnings,
)
from dralloc.objects.api import (
    UNSET,
    AttributeValue,
    Device,
    DeviceTaint,
    DeviceToleration,
    ResourceSliceSpec,
    Version,
)

__all__ = ["DEVICE_RULES", "DEVICE_TAINT_RULES", "SLICE_RULES"]

# ----------------------------------------------------------------------------
# Rules about a slice as a whole: its driver, its pool, its nodes and how much it
# holds.

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


# ----------------------------------------------------------------------------
# Rules about one device: name, attributes, capacities, nodes, conditions.

MAX_ATTRIBUTES: Final = 32
MAX_VALUES: Final = 48
MAX_VALUE_BYTES: Final = 64


def _attribute_limit(device: Device, at: str) -> Iterator[Issue]:
    yield from at_most(
        MAX_ATTRIBUTES,
        [*device.attributes, *device.capacity],
        at,
        "attributes and capacities",
    )


def _value_limit(device: Device, at: str) -> Iterator[Issue]:
    # An empty list, which is an issue of its own, counts as one value.
    counts = (
        len(value) or 1 if isinstance(value, tuple) else 1
        for value in device.attributes.values()
    )
    yield from at_most(MAX_VALUES, range(sum(counts)), at, "attribute values")


def _attribute_value(device: Device, at: str) -> Iterator[Issue]:
    # On the wire an attribute is an object with one field for each type.
    for name, value in device.attributes.items():
        if value is UNSET:
            yield Issue(
                f"{at}.attributes[{name}]", "exactly one value is required"
            )
        elif value == ():
            yield Issue(
                f"{at}.attributes[{name}]", "a list of values must not be empty"
            )


def _texts(device: Device, at: str) -> Iterator[tuple[str, str]]:
    """Yield the texts among the values of attributes, with their paths."""
    for name, value in device.attributes.items():
        if isinstance(value, str):
            yield f"{at}.attributes[{name}].{_field(value)}", value
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, str):
                    yield (
                        f"{at}.attributes[{name}].{_field(item)}s[{index}]",
                        item,
                    )


def _field(value: AttributeValue) -> str:
    return "version" if isinstance(value, Version) else "string"


def _text_length(device: Device, at: str) -> Iterator[Issue]:
    for path, text in _texts(device, at):
        if size_of(text) > MAX_VALUE_BYTES:
            yield Issue(path, f"is longer than {MAX_VALUE_BYTES} bytes")


def _versions(device: Device, at: str) -> Iterator[Issue]:
    for path, text in _texts(device, at):
        if isinstance(text, Version) and (reason := version(str(text))):
            yield Issue(path, f'"{text}" {reason}')


def _not_false(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    for index, device in enumerate(
        spec.devices if spec.per_device_node_selection else ()
    ):
        if device.all_nodes is False:
            yield Issue(
                f"{at}.devices[{index}].allNodes", "must be true or left out"
            )


def _selections(device: Device) -> list[str]:
    fields = {
        "nodeName": device.node_name,
        "nodeSelector": device.node_selector,
        "allNodes": device.all_nodes,
    }
    return [field for field, value in fields.items() if value is not None]


def _one_device_selection(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    for index, device in enumerate(
        spec.devices if spec.per_device_node_selection else ()
    ):
        selections = _selections(device)
        if len(selections) != 1:
            text = "exactly one of nodeName, nodeSelector, allNodes is required with perDeviceNodeSelection"
            yield Issue(
                f"{at}.devices[{index}]",
                f"{text}, not {', '.join(selections) or 'none'}",
            )


def _no_selection(spec: ResourceSliceSpec, at: str) -> Iterator[Issue]:
    for index, device in enumerate(
        () if spec.per_device_node_selection else spec.devices
    ):
        if selections := _selections(device):
            text = f"{', '.join(selections)} can only be set if the slice has perDeviceNodeSelection"
            yield Issue(f"{at}.devices[{index}]", text)


def _condition_overlap(conditioned: Any, at: str) -> Iterator[Issue]:
    binding = set(conditioned.binding_conditions or ())
    for index, name in enumerate(conditioned.binding_failure_conditions or ()):
        if name in binding:
            yield Issue(
                f"{at}.bindingFailureConditions[{index}]",
                f'"{name}" is a binding condition, too',
            )


def _condition_pair(conditioned: Any, at: str) -> Iterator[Issue]:
    if (
        conditioned.binding_conditions
        and not conditioned.binding_failure_conditions
    ):
        yield Issue(
            f"{at}.bindingFailureConditions",
            "are required with bindingConditions",
        )
    if (
        conditioned.binding_failure_conditions
        and not conditioned.binding_conditions
    ):
        yield Issue(
            f"{at}.bindingConditions",
            "are required with bindingFailureConditions",
        )


_NAME: Final = "a C identifier of at most 32 characters, after a domain of at most 63 and a slash or alone"
_CONDITIONAL: Final = DEVICES | RESULTS
"""What has binding conditions: devices, and the results that repeat theirs (KEP-5007)."""
_CONDITIONS: Final = "bindingConditions|bindingFailureConditions"
_EACH_CONDITION: Final = "bindingConditions[]|bindingFailureConditions[]"

DEVICE_RULES: Final = (
    *errors(
        DEVICES,
        (
            "device-name",
            form("name", dns_label),
            "A device's name is a DNS label.",
        ),
        (
            "device-attribute-limit",
            _attribute_limit,
            "A device has at most 32 attributes and capacities.",
        ),
        (
            "device-value-limit",
            _value_limit,
            "The attributes of a device have at most 48 values together.",
        ),
        (
            "attribute-name",
            keys("attributes", qualified_name),
            f"An attribute's name is {_NAME}.",
            keys("attributes", before_137(qualified_name)),
        ),
        (
            "capacity-name",
            keys("capacity", qualified_name),
            f"A capacity's name is {_NAME}.",
            keys("capacity", before_137(qualified_name)),
        ),
        (
            "attribute-value",
            _attribute_value,
            "An attribute has one value, or a list of at least one.",
        ),
        (
            "attribute-length",
            _text_length,
            "Strings and versions have at most 64 bytes.",
        ),
        ("attribute-version", _versions, "Versions follow semver.org 2.0.0."),
        (
            "device-node-name",
            form("nodeName", dns_subdomain),
            "A node's name is a DNS subdomain.",
        ),
    ),
    *errors(
        SLICES,
        ("device-all-nodes-false", _not_false, "allNodes is true or absent."),
        (
            "device-node-selection",
            _one_device_selection,
            "With perDeviceNodeSelection every device says one of nodeName, nodeSelector, allNodes.",
        ),
        (
            "device-node-selection-unused",
            _no_selection,
            "Without perDeviceNodeSelection devices say nothing about nodes.",
        ),
    ),
    *warnings(
        DEVICES,
        (
            "device-node-selector-terms",
            one_term("expected"),
            "The node selector of a device has one term, as the API documents without checking it.",
        ),
        origin="resource.k8s.io types, Device",
    ),
    *errors(
        _CONDITIONAL,
        (
            "binding-condition-limit",
            limit(4, _CONDITIONS, "conditions"),
            "There are at most 4 conditions of each kind.",
        ),
        (
            "binding-condition-name",
            form(_EACH_CONDITION, label_name),
            "Conditions have the form of label keys.",
        ),
        (
            "binding-condition-unique",
            distinct(_CONDITIONS),
            "Each condition is listed once.",
        ),
        (
            "binding-condition-overlap",
            _condition_overlap,
            "No condition means success and failure.",
        ),
        (
            "binding-condition-pair",
            _condition_pair,
            "Conditions come with failure conditions.",
        ),
    ),
)


# ----------------------------------------------------------------------------
# Rules about taints of devices and what tolerates them (KEP-5055).

_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_TAINTS: Final = DEVICES / "taints[]" | TAINT_RULES / "spec.taint"
_TOLERATIONS: Final = (DETAILS | RESULTS) / "tolerations[]"
"""Of requests, and of the results that repeat them."""

_KNOWN_EFFECT: Final = choice("effect", _EFFECTS, empty=True)
_TOLERATION_KEY: Final = form("key", label_name, empty=True)


def _effect(taint: DeviceTaint, at: str) -> Iterator[Issue]:
    yield from (_KNOWN_EFFECT if taint.effect else required("effect"))(
        taint, at
    )


def _toleration_value(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if toleration.operator != "Exists" and (
        reason := label_value(toleration.value)
    ):
        yield Issue(f"{at}.value", f'"{toleration.value}" {reason}')


def _exists(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if toleration.operator == "Exists" and toleration.value:
        yield Issue(f"{at}.value", "must be empty for the operator Exists")


def _no_key(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if not toleration.key and toleration.operator != "Exists":
        yield Issue(
            f"{at}.operator",
            "must be Exists if there is no key: no taint has an empty key",
        )


def _asked(check: Check) -> Check:
    """A check of what requests say, and not of the results that repeat it."""
    return lambda part, at: () if at.startswith("status.") else check(part, at)


DEVICE_TAINT_RULES: Final = (
    *errors(
        DEVICES,
        (
            "taint-limit",
            limit(16, "taints", "taints"),
            "A device has at most 16 taints.",
        ),
    ),
    *errors(
        _TAINTS,
        (
            "taint-key",
            form("key", label_name),
            "A taint's key has the form of a label key.",
        ),
        (
            "taint-value",
            told("value", label_value, JUDGED),
            "A taint's value has the form of a label value.",
        ),
        (
            "taint-effect",
            _effect,
            "A taint's effect is None, NoSchedule or NoExecute.",
        ),
    ),
    *errors(
        _TOLERATIONS,
        (
            "toleration-key",
            _TOLERATION_KEY,
            "A toleration's key has the form of a label key.",
            _asked(_TOLERATION_KEY),
        ),
        (
            "toleration-value",
            _toleration_value,
            "A toleration's value has the form of a label value.",
            _asked(_toleration_value),
        ),
        (
            "toleration-exists",
            _exists,
            "With Exists there is no value.",
            _asked(_exists),
        ),
        (
            "toleration-effect",
            _KNOWN_EFFECT,
            "An effect is None, NoSchedule or NoExecute, or absent.",
            _asked(_KNOWN_EFFECT),
        ),
    ),
    *warnings(
        DETAILS,
        (
            "toleration-limit",
            limit(16, "tolerations", "tolerations"),
            "A request has at most 16 tolerations, as the API documents without checking it.",
        ),
        origin="resource.k8s.io types, DeviceTolerationsMaxLength",
    ),
    *warnings(
        _TOLERATIONS,
        (
            "toleration-no-key",
            _no_key,
            "A toleration without key tolerates something only with Exists.",
        ),
        origin="resource.k8s.io types, DeviceToleration",
    ),
)
