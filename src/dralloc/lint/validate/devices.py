"""Rules about one device: name, attributes, capacities, nodes, conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dralloc.lint.validate.checks import (
    at_most,
    before_137,
    distinct,
    dns_label,
    dns_subdomain,
    form,
    keys,
    label_name,
    limit,
    one_term,
    qualified_name,
    size_of,
    version,
)
from dralloc.lint.validate.rule import (
    DEVICES,
    RESULTS,
    SLICES,
    Issue,
    errors,
    warnings,
)
from dralloc.objects.api import (
    UNSET,
    AttributeValue,
    Device,
    ResourceSliceSpec,
    Version,
)

__all__ = ["DEVICE_RULES"]

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
