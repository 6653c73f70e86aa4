"""Slices and classes that break one rule each."""

from __future__ import annotations

from typing import Final

from lint.validate.objects import (
    ABSENT,
    CLASS,
    CONFIGURED,
    COUNTERS,
    DISCRETE,
    PARTITIONS,
    PER_DEVICE,
    POLICY,
    SELECTED,
    SHARED,
    SLICE,
    Broken,
    attributes,
    many,
)
from wire import consumes, counters

DEVICE: Final = "spec.devices[0]"
MEMORY: Final = f"{DEVICE}.capacity[memory]"
RANGE: Final = f"{MEMORY}.requestPolicy.validRange"
VALID: Final = f"{MEMORY}.requestPolicy.validValues"
TERM: Final = "spec.nodeSelector.nodeSelectorTerms[0]"
LONG: Final = "a" * 64
TAINT: Final = {"key": "broken", "effect": "NoSchedule"}
TAINT_RULE: Final = {
    "apiVersion": "resource.k8s.io/v1beta2",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {
        "deviceSelector": {
            "driver": "gpu.example.com",
            "pool": "a/b",
            "device": "gpu-0",
        },
        "taint": TAINT,
    },
}
NODE: Final = f"{DEVICE}.nodeAllocatableResources"
PLAIN: Final = {"name": "d{}"}
EXPENSIVE: Final = (
    "[{0}].all(a, [{0}].all(b, [{0}].all(c, a + b + c > 0)))".format(
        ", ".join(map(str, range(200)))
    )
)

METADATA: Final = (
    Broken(
        "a name with an underscore",
        SLICE,
        {"metadata.name": "a_b"},
        "metadata-name",
        "metadata.name",
    ),
    Broken(
        "a name that is too long",
        CLASS,
        {"metadata.name": "a" * 254},
        "metadata-name",
        "metadata.name",
        {"metadata.name": "a" * 253},
    ),
    Broken(
        "a label without key",
        SLICE,
        {"metadata.labels": {"a/": "b"}},
        "metadata-labels",
        "metadata.labels",
        {"metadata.labels": {"a/b": "b"}},
    ),
    Broken(
        "a label with a long value",
        SLICE,
        {"metadata.labels": {"a": LONG}},
        "metadata-labels",
        "metadata.labels",
        {"metadata.labels": {"a": LONG[1:]}},
    ),
    Broken(
        "an annotation with spaces",
        CLASS,
        {"metadata.annotations": {"a b": ""}},
        "metadata-annotations",
        "metadata.annotations",
        {"metadata.annotations": {"A/B": "any text"}},
    ),
    Broken(
        "annotations of more than 256 KiB",
        CLASS,
        {"metadata.annotations": {"a": "x" * 2**18}},
        "metadata-annotation-size",
        "metadata.annotations",
        {"metadata.annotations": {"a": "x" * (2**18 - 1)}},
    ),
    Broken(
        "an owner without name",
        SLICE,
        {
            "metadata.ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "uid": "1"}
            ]
        },
        "metadata-owner",
        "metadata.ownerReferences.name",
    ),
    Broken(
        "an owner with two groups",
        SLICE,
        {
            "metadata.ownerReferences": [
                {"apiVersion": "a/b/v1", "kind": "A", "name": "a", "uid": "1"}
            ]
        },
        "metadata-owner",
        "metadata.ownerReferences.apiVersion",
        {
            "metadata.ownerReferences": [
                {"apiVersion": "b/v1", "kind": "A", "name": "a", "uid": "1"}
            ]
        },
    ),
    Broken(
        "an event as owner",
        SLICE,
        {
            "metadata.ownerReferences": [
                {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1"}
            ]
        },
        "metadata-owner-event",
        "metadata.ownerReferences",
        {
            "metadata.ownerReferences": [
                {
                    "apiVersion": "events.k8s.io/v1",
                    "kind": "Event",
                    "name": "a",
                    "uid": "1",
                }
            ]
        },
    ),
    Broken(
        "two controllers",
        SLICE,
        {
            "metadata.ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": name,
                    "uid": name,
                    "controller": True,
                }
                for name in "ab"
            ]
        },
        "metadata-one-controller",
        "metadata.ownerReferences",
    ),
    Broken(
        "a finalizer with a space",
        CLASS,
        {"metadata.finalizers": ["a b"]},
        "metadata-finalizers",
        "metadata.finalizers",
        {"metadata.finalizers": ["a.io/b"]},
    ),
)

SLICES: Final = (
    Broken(
        "no driver", SLICE, {"spec.driver": ""}, "slice-driver", "spec.driver"
    ),
    Broken(
        "a driver with an underscore",
        SLICE,
        {"spec.driver": "a_b"},
        "slice-driver",
        "spec.driver",
    ),
    Broken(
        "a driver of 64 characters",
        SLICE,
        {"spec.driver": LONG},
        "slice-driver",
        "spec.driver",
        {"spec.driver": LONG[1:]},
    ),
    Broken(
        "no pool", SLICE, {"spec.pool.name": ""}, "pool-name", "spec.pool.name"
    ),
    Broken(
        "a pool with an empty part",
        SLICE,
        {"spec.pool.name": "a//b"},
        "pool-name",
        "spec.pool.name",
        {"spec.pool.name": "a/b.c/d"},
    ),
    Broken(
        "a pool of 254 characters",
        SLICE,
        {"spec.pool.name": "a" * 254},
        "pool-name",
        "spec.pool.name",
        {"spec.pool.name": "a" * 253},
    ),
    Broken(
        "no slices in the pool",
        SLICE,
        {"spec.pool.resourceSliceCount": 0},
        "pool-slice-count",
        "spec.pool.resourceSliceCount",
    ),
    Broken(
        "a pool before its time",
        SLICE,
        {"spec.pool.generation": -1},
        "pool-generation",
        "spec.pool.generation",
        {"spec.pool.generation": 0},
    ),
    Broken(
        "a pool after its time",
        SLICE,
        {"spec.pool.generation": 2**63},
        "schema",
        "spec.pool.generation",
        {"spec.pool.generation": 2**63 - 1},
    ),
    Broken(
        "a generation too late",
        SLICE,
        {"metadata.generation": 2**63},
        "schema",
        "metadata.generation",
        {"metadata.generation": 2**63 - 1},
    ),
    Broken(
        "a node in upper case",
        SLICE,
        {"spec.nodeName": "Node"},
        "slice-node-name",
        "spec.nodeName",
    ),
    Broken(
        "an empty node name",
        SLICE,
        {"spec.nodeName": ""},
        "slice-node-name",
        "spec.nodeName",
    ),
    Broken(
        "not on all nodes",
        SLICE,
        {"spec.allNodes": False},
        "slice-node-selection-false",
        "spec.allNodes",
    ),
    Broken(
        "not per device",
        SLICE,
        {"spec.perDeviceNodeSelection": False},
        "slice-node-selection-false",
        "spec.perDeviceNodeSelection",
    ),
    Broken(
        "nowhere",
        SLICE,
        {"spec.nodeName": ABSENT},
        "slice-node-selection",
        "spec",
    ),
    Broken(
        "on a node and on all",
        SLICE,
        {"spec.allNodes": True},
        "slice-node-selection",
        "spec",
    ),
    Broken(
        "per device and on all",
        PER_DEVICE,
        {"spec.allNodes": True},
        "slice-node-selection",
        "spec",
    ),
    Broken(
        "two terms",
        SELECTED,
        {
            "spec.nodeSelector.nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
            ]
            * 2
        },
        "slice-node-selector-terms",
        "spec.nodeSelector.nodeSelectorTerms",
    ),
    Broken(
        "devices and counters",
        SLICE,
        {"spec.sharedCounters": [counters("set-0", memory="1")]},
        "slice-devices-or-counters",
        "spec",
    ),
    Broken(
        "129 devices",
        SLICE,
        {"spec.devices": many(129, PLAIN)},
        "slice-device-limit",
        "spec.devices",
        {"spec.devices": many(128, PLAIN)},
    ),
    Broken(
        "65 devices, one with a taint",
        SLICE,
        {"spec.devices": [*many(64, PLAIN), {"name": "d", "taints": [TAINT]}]},
        "slice-device-limit",
        "spec.devices",
        {"spec.devices": [*many(63, PLAIN), {"name": "d", "taints": [TAINT]}]},
    ),
    Broken(
        "65 devices, one with counters",
        SLICE,
        {
            "spec.devices": [
                *many(64, PLAIN),
                {"name": "d", "consumesCounters": consumes("s", a="1")},
            ]
        },
        "slice-device-limit",
        "spec.devices",
        {
            "spec.devices": [
                *many(63, PLAIN),
                {"name": "d", "consumesCounters": consumes("s", a="1")},
            ]
        },
    ),
    Broken(
        "65 devices, one with a list",
        SLICE,
        {
            "spec.devices": [
                *many(64, PLAIN),
                {"name": "d", "attributes": {"a": {"ints": [1]}}},
            ]
        },
        "slice-device-limit",
        "spec.devices",
        {
            "spec.devices": [
                *many(63, PLAIN),
                {"name": "d", "attributes": {"a": {"ints": [1]}}},
            ]
        },
    ),
    Broken(
        "two devices of one name",
        SLICE,
        {"spec.devices[1].name": "gpu-0"},
        "slice-device-unique",
        "spec.devices[1]",
    ),
    Broken(
        "a partition type without domain",
        PARTITIONS,
        {"spec.partitionTypeAttribute": "profile"},
        "partition-type-name",
        "spec.partitionTypeAttribute",
        {"spec.partitionTypeAttribute": "gpu.example.com/profile"},
    ),
    Broken(
        "a partition type without partitions",
        SLICE,
        {"spec.partitionTypeAttribute": "gpu.example.com/model"},
        "partition-type-use",
        "spec.partitionTypeAttribute",
    ),
    Broken(
        "a partition without type",
        PARTITIONS,
        {
            "spec.partitionTypeAttribute": "gpu.example.com/profile",
            "spec.devices[1].attributes": {},
        },
        "partition-type-value",
        "spec.devices[1].attributes[gpu.example.com/profile]",
    ),
    Broken(
        "a partition type that is a number",
        PARTITIONS,
        {
            "spec.partitionTypeAttribute": "gpu.example.com/profile",
            "spec.devices[1].attributes.profile": {"int": 1},
        },
        "partition-type-value",
        "spec.devices[1].attributes[gpu.example.com/profile]",
    ),
    Broken(
        "an unknown operation",
        SLICE,
        {"spec.skipNodeOperations": ["Sleep"]},
        "slice-skip-value",
        "spec.skipNodeOperations[0]",
    ),
    Broken(
        "an operation twice",
        SLICE,
        {"spec.skipNodeOperations": ["*", "*"]},
        "slice-skip-unique",
        "spec.skipNodeOperations[1]",
    ),
    Broken(
        "prepared, not undone",
        SLICE,
        {"spec.skipNodeOperations": ["NodePrepareResources"]},
        "slice-skip-pair",
        "spec.skipNodeOperations",
        {
            "spec.skipNodeOperations": [
                "NodePrepareResources",
                "NodeUnprepareResources",
            ]
        },
    ),
    Broken(
        "an attribute of two values",
        SLICE,
        {f"{DEVICE}.attributes.model.int": 1},
        "schema",
        f"{DEVICE}.attributes[model]",
    ),
    Broken(
        "a quantity that is none",
        SLICE,
        {f"{MEMORY}.value": "1Gx"},
        "schema",
        f"{MEMORY}.value",
        {f"{MEMORY}.value": "Gi"},
    ),
    Broken(
        "a count that is text",
        SLICE,
        {"spec.pool.resourceSliceCount": "1"},
        "schema",
        "spec.pool.resourceSliceCount",
    ),
    Broken("no specification", SLICE, {"spec": ABSENT}, "schema", "spec"),
)

DEVICES: Final = (
    Broken(
        "no name",
        SLICE,
        {f"{DEVICE}.name": ""},
        "device-name",
        f"{DEVICE}.name",
    ),
    Broken(
        "a name in upper case",
        SLICE,
        {f"{DEVICE}.name": "GPU-0"},
        "device-name",
        f"{DEVICE}.name",
    ),
    Broken(
        "a name with a dot",
        SLICE,
        {f"{DEVICE}.name": "gpu.0"},
        "device-name",
        f"{DEVICE}.name",
    ),
    Broken(
        "a name of 64 characters",
        SLICE,
        {f"{DEVICE}.name": LONG},
        "device-name",
        f"{DEVICE}.name",
        {f"{DEVICE}.name": LONG[1:]},
    ),
    Broken(
        "32 attributes and a capacity",
        SLICE,
        {f"{DEVICE}.attributes": attributes(32)},
        "device-attribute-limit",
        DEVICE,
        {f"{DEVICE}.attributes": attributes(31)},
    ),
    Broken(
        "49 values",
        SLICE,
        {
            f"{DEVICE}.attributes": {
                "a": {"ints": [*range(48)]},
                "b": {"int": 1},
            }
        },
        "device-value-limit",
        DEVICE,
        {
            f"{DEVICE}.attributes": {
                "a": {"ints": [*range(47)]},
                "b": {"int": 1},
            }
        },
    ),
    Broken(
        "an attribute with a dash",
        SLICE,
        {f"{DEVICE}.attributes[a-b]": {"int": 1}},
        "attribute-name",
        f"{DEVICE}.attributes",
        {f"{DEVICE}.attributes[a_b]": {"int": 1}},
    ),
    Broken(
        "an attribute of 33 characters",
        SLICE,
        {f"{DEVICE}.attributes[{'a' * 33}]": {"int": 1}},
        "attribute-name",
        f"{DEVICE}.attributes",
        {f"{DEVICE}.attributes[{'a' * 32}]": {"int": 1}},
    ),
    Broken(
        "an attribute with two slashes",
        SLICE,
        {f"{DEVICE}.attributes[a/b/c]": {"int": 1}},
        "attribute-name",
        f"{DEVICE}.attributes",
        {f"{DEVICE}.attributes[a/b]": {"int": 1}},
    ),
    Broken(
        "an attribute without domain",
        SLICE,
        {f"{DEVICE}.attributes[/b]": {"int": 1}},
        "attribute-name",
        f"{DEVICE}.attributes",
    ),
    Broken(
        "an attribute without name",
        SLICE,
        {f"{DEVICE}.attributes[a/]": {"int": 1}},
        "attribute-name",
        f"{DEVICE}.attributes",
    ),
    Broken(
        "an attribute with a domain of 64",
        SLICE,
        {f"{DEVICE}.attributes[{LONG}/a]": {"int": 1}},
        "attribute-name",
        f"{DEVICE}.attributes",
        {f"{DEVICE}.attributes[{LONG[1:]}/a]": {"int": 1}},
    ),
    Broken(
        "a capacity that starts with a digit",
        SLICE,
        {f"{DEVICE}.capacity[1a]": {"value": "1"}},
        "capacity-name",
        f"{DEVICE}.capacity",
        {f"{DEVICE}.capacity[a1]": {"value": "1"}},
    ),
    Broken(
        "an attribute without value",
        SLICE,
        {f"{DEVICE}.attributes.model": {}},
        "attribute-value",
        f"{DEVICE}.attributes[model]",
    ),
    Broken(
        "an empty list",
        SLICE,
        {f"{DEVICE}.attributes.model": {"strings": []}},
        "attribute-value",
        f"{DEVICE}.attributes[model]",
        {f"{DEVICE}.attributes.model": {"strings": [""]}},
    ),
    Broken(
        "a string of 65 bytes",
        SLICE,
        {f"{DEVICE}.attributes.model.string": "x" * 65},
        "attribute-length",
        f"{DEVICE}.attributes[model].string",
        {f"{DEVICE}.attributes.model.string": "x" * 64},
    ),
    Broken(
        "a listed string of 65 bytes",
        SLICE,
        {f"{DEVICE}.attributes.model": {"strings": ["a", "ä" * 33]}},
        "attribute-length",
        f"{DEVICE}.attributes[model].strings[1]",
        {f"{DEVICE}.attributes.model": {"strings": ["a", "ä" * 32]}},
    ),
    Broken(
        "a version of 65 bytes",
        SLICE,
        {f"{DEVICE}.attributes.model": {"version": f"1.2.3-{'a' * 59}"}},
        "attribute-length",
        f"{DEVICE}.attributes[model].version",
        {f"{DEVICE}.attributes.model": {"version": f"1.2.3-{'a' * 58}"}},
    ),
    Broken(
        "a version of two numbers",
        SLICE,
        {f"{DEVICE}.attributes.model": {"version": "1.2"}},
        "attribute-version",
        f"{DEVICE}.attributes[model].version",
        {f"{DEVICE}.attributes.model": {"version": "1.2.0"}},
    ),
    Broken(
        "a listed version with a v",
        SLICE,
        {f"{DEVICE}.attributes.model": {"versions": ["v1.2.3"]}},
        "attribute-version",
        f"{DEVICE}.attributes[model].versions[0]",
        {f"{DEVICE}.attributes.model": {"versions": ["1.2.3-rc.1+b"]}},
    ),
    Broken(
        "a node per device that is none",
        PER_DEVICE,
        {f"{DEVICE}.nodeName": "a b"},
        "device-node-name",
        f"{DEVICE}.nodeName",
    ),
    Broken(
        "a device that is not on all nodes",
        PER_DEVICE,
        {"spec.devices[1]": {"name": "gpu-1", "allNodes": False}},
        "device-all-nodes-false",
        "spec.devices[1].allNodes",
        {"spec.devices[1]": {"name": "gpu-1", "allNodes": True}},
    ),
    Broken(
        "a device nowhere",
        PER_DEVICE,
        {f"{DEVICE}.nodeName": ABSENT},
        "device-node-selection",
        DEVICE,
    ),
    Broken(
        "a device on a node and on all",
        PER_DEVICE,
        {f"{DEVICE}.allNodes": True},
        "device-node-selection",
        DEVICE,
    ),
    Broken(
        "a node per device, unasked",
        SLICE,
        {f"{DEVICE}.nodeName": "node-0"},
        "device-node-selection-unused",
        DEVICE,
    ),
    Broken(
        "five binding conditions",
        SLICE,
        {
            f"{DEVICE}.bindingConditions": many(5, "c{}"),
            f"{DEVICE}.bindingFailureConditions": ["f"],
        },
        "binding-condition-limit",
        f"{DEVICE}.bindingConditions",
        {
            f"{DEVICE}.bindingConditions": many(4, "c{}"),
            f"{DEVICE}.bindingFailureConditions": many(4, "f{}"),
        },
    ),
    Broken(
        "a condition with a space",
        SLICE,
        {
            f"{DEVICE}.bindingConditions": ["a b"],
            f"{DEVICE}.bindingFailureConditions": ["f"],
        },
        "binding-condition-name",
        f"{DEVICE}.bindingConditions[0]",
    ),
    Broken(
        "a condition twice",
        SLICE,
        {
            f"{DEVICE}.bindingConditions": ["a"],
            f"{DEVICE}.bindingFailureConditions": ["f", "f"],
        },
        "binding-condition-unique",
        f"{DEVICE}.bindingFailureConditions[1]",
    ),
    Broken(
        "a condition for both",
        SLICE,
        {
            f"{DEVICE}.bindingConditions": ["a"],
            f"{DEVICE}.bindingFailureConditions": ["a"],
        },
        "binding-condition-overlap",
        f"{DEVICE}.bindingFailureConditions[0]",
    ),
    Broken(
        "conditions without failures",
        SLICE,
        {f"{DEVICE}.bindingConditions": ["a"]},
        "binding-condition-pair",
        f"{DEVICE}.bindingFailureConditions",
    ),
    Broken(
        "failures without conditions",
        SLICE,
        {f"{DEVICE}.bindingFailureConditions": ["a"]},
        "binding-condition-pair",
        f"{DEVICE}.bindingConditions",
    ),
    Broken(
        "17 taints",
        SLICE,
        {f"{DEVICE}.taints": many(17, {**TAINT, "key": "t{}"}, key="key")},
        "taint-limit",
        f"{DEVICE}.taints",
        {f"{DEVICE}.taints": many(16, {**TAINT, "key": "t{}"}, key="key")},
    ),
    Broken(
        "a taint without key",
        SLICE,
        {f"{DEVICE}.taints": [{**TAINT, "key": ""}]},
        "taint-key",
        f"{DEVICE}.taints[0].key",
    ),
    Broken(
        "a taint with a long value",
        SLICE,
        {f"{DEVICE}.taints": [{**TAINT, "value": LONG}]},
        "taint-value",
        f"{DEVICE}.taints[0].value",
        {f"{DEVICE}.taints": [{**TAINT, "value": LONG[1:]}]},
    ),
    Broken(
        "a taint without effect",
        SLICE,
        {f"{DEVICE}.taints": [{**TAINT, "effect": ""}]},
        "taint-effect",
        f"{DEVICE}.taints[0].effect",
    ),
    Broken(
        "a taint of nodes only",
        SLICE,
        {f"{DEVICE}.taints": [{**TAINT, "effect": "PreferNoSchedule"}]},
        "taint-effect",
        f"{DEVICE}.taints[0].effect",
        {f"{DEVICE}.taints": [{**TAINT, "effect": "None"}]},
    ),
    Broken(
        "a rule for taints with a driver that is none",
        TAINT_RULE,
        {"spec.deviceSelector.driver": "gpu_example"},
        "taint-rule-driver",
        "spec.deviceSelector.driver",
        {"spec.deviceSelector": ABSENT},
    ),
    Broken(
        "a rule for taints with a pool that is none",
        TAINT_RULE,
        {"spec.deviceSelector.pool": "a//b"},
        "taint-rule-pool",
        "spec.deviceSelector.pool",
    ),
    Broken(
        "a rule for taints with a device that is none",
        TAINT_RULE,
        {"spec.deviceSelector.device": "gpu.0"},
        "taint-rule-device",
        "spec.deviceSelector.device",
    ),
    Broken(
        "a rule for taints with upper case in its name",
        TAINT_RULE,
        {"metadata.name": "R"},
        "metadata-name",
        "metadata.name",
    ),
    Broken(
        "a disk of the node",
        SLICE,
        {f"{NODE}[ephemeral-storage]": {"mapping": {"deviceMultiplier": "1"}}},
        "node-resource-name",
        f"{NODE}[ephemeral-storage]",
        {f"{NODE}[hugepages-2Mi]": {"mapping": {"deviceMultiplier": "1"}}},
    ),
    Broken(
        "less than nothing, as Kubernetes 1.36 spells it",
        SLICE,
        {
            f"{DEVICE}.nodeAllocatableResourceMappings.cpu": {
                "allocationMultiplier": "-1"
            }
        },
        "node-resource-multiplier",
        f"{NODE}[cpu].mapping.deviceMultiplier",
        {f"{DEVICE}.nodeAllocatableResourceMappings.cpu": {}},
    ),
    Broken(
        "nothing of the node's memory",
        SLICE,
        {f"{NODE}.memory": {}},
        "node-resource-empty",
        f"{NODE}[memory]",
    ),
    Broken(
        "an unknown capacity as memory",
        SLICE,
        {
            f"{NODE}.memory": {
                "mapping": {"capacityKey": "size", "capacityMultiplier": "1"}
            }
        },
        "node-resource-capacity",
        f"{NODE}[memory].mapping.capacityKey",
        {
            f"{NODE}.memory": {
                "mapping": {"capacityKey": "memory", "capacityMultiplier": "1"}
            }
        },
    ),
    Broken(
        "a capacity without multiplier",
        SLICE,
        {f"{NODE}.memory": {"mapping": {"capacityKey": "memory"}}},
        "node-resource-pair",
        f"{NODE}[memory].mapping.capacityMultiplier",
    ),
    Broken(
        "a multiplier without capacity",
        SLICE,
        {f"{NODE}.memory": {"mapping": {"capacityMultiplier": "1"}}},
        "node-resource-pair",
        f"{NODE}[memory].mapping.capacityKey",
    ),
    Broken(
        "a resource of the node that is a number",
        SLICE,
        {f"{NODE}.cpu": 1},
        "schema",
        f"{NODE}[cpu]",
    ),
    Broken(
        "an empty mapping",
        SLICE,
        {f"{NODE}.cpu": {"mapping": {}}},
        "node-resource-one-of",
        f"{NODE}[cpu].mapping",
    ),
    Broken(
        "nothing per device",
        SLICE,
        {f"{NODE}.cpu": {"mapping": {"deviceMultiplier": "0"}}},
        "node-resource-multiplier",
        f"{NODE}[cpu].mapping.deviceMultiplier",
        {f"{NODE}.cpu": {"mapping": {"deviceMultiplier": "1m"}}},
    ),
    Broken(
        "an empty overhead",
        SLICE,
        {f"{NODE}.cpu": {"overhead": {}}},
        "node-overhead-empty",
        f"{NODE}[cpu].overhead",
    ),
    Broken(
        "an overhead that gives",
        SLICE,
        {f"{NODE}.cpu": {"overhead": {"perPod": "-1"}}},
        "node-overhead-negative",
        f"{NODE}[cpu].overhead.perPod",
        {f"{NODE}.cpu": {"overhead": {"perPod": "0"}}},
    ),
)

COUNTERS_BROKEN: Final = (
    Broken(
        "nine counter sets",
        COUNTERS,
        {"spec.sharedCounters": [counters(f"s{n}", a="1") for n in range(9)]},
        "counter-set-limit",
        "spec.sharedCounters",
        {"spec.sharedCounters": [counters(f"s{n}", a="1") for n in range(8)]},
    ),
    Broken(
        "a counter set twice",
        COUNTERS,
        {"spec.sharedCounters[1]": counters("set-0", a="1")},
        "counter-set-unique",
        "spec.sharedCounters[1]",
    ),
    Broken(
        "a counter set with a dot",
        COUNTERS,
        {"spec.sharedCounters[0].name": "a.b"},
        "counter-set-name",
        "spec.sharedCounters[0].name",
    ),
    Broken(
        "an empty counter set",
        COUNTERS,
        {"spec.sharedCounters[0].counters": {}},
        "counter-set-empty",
        "spec.sharedCounters[0].counters",
    ),
    Broken(
        "33 counters",
        COUNTERS,
        {
            "spec.sharedCounters[0]": counters(
                "s", **{f"c{n}": "1" for n in range(33)}
            )
        },
        "counter-limit",
        "spec.sharedCounters[0].counters",
        {
            "spec.sharedCounters[0]": counters(
                "s", **{f"c{n}": "1" for n in range(32)}
            )
        },
    ),
    Broken(
        "a counter with an underscore",
        COUNTERS,
        {"spec.sharedCounters[0].counters.a_b": {"value": "1"}},
        "counter-name",
        "spec.sharedCounters[0].counters",
    ),
    Broken(
        "three consumptions",
        PARTITIONS,
        {
            f"{DEVICE}.consumesCounters": [
                consumption
                for n in range(3)
                for consumption in consumes(f"s{n}", a="1")
            ]
        },
        "consumption-limit",
        f"{DEVICE}.consumesCounters",
        {
            f"{DEVICE}.consumesCounters": [
                consumption
                for n in range(2)
                for consumption in consumes(f"s{n}", a="1")
            ]
        },
    ),
    Broken(
        "one set twice",
        PARTITIONS,
        {
            f"{DEVICE}.consumesCounters": [
                *consumes("s", a="1"),
                *consumes("s", b="1"),
            ]
        },
        "consumption-unique",
        f"{DEVICE}.consumesCounters[1]",
    ),
    Broken(
        "a consumption of no set",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters[0].counterSet": ""},
        "consumption-set",
        f"{DEVICE}.consumesCounters[0].counterSet",
    ),
    Broken(
        "a consumption of nothing",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters[0].counters": {}},
        "consumption-empty",
        f"{DEVICE}.consumesCounters[0].counters",
    ),
    Broken(
        "a consumption of 33 counters",
        PARTITIONS,
        {
            f"{DEVICE}.consumesCounters": consumes(
                "s", **{f"c{n}": "1" for n in range(33)}
            )
        },
        "consumption-counter-limit",
        f"{DEVICE}.consumesCounters[0].counters",
        {
            f"{DEVICE}.consumesCounters": consumes(
                "s", **{f"c{n}": "1" for n in range(32)}
            )
        },
    ),
    Broken(
        "a consumption of a counter with a slash",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters": consumes("s", **{"a/b": "1"})},
        "consumption-counter-name",
        f"{DEVICE}.consumesCounters[0].counters",
    ),
    Broken(
        "three groups",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters[0].compatibilityGroups": ["a", "b", "c"]},
        "compatibility-group-limit",
        f"{DEVICE}.consumesCounters[0].compatibilityGroups",
        {f"{DEVICE}.consumesCounters[0].compatibilityGroups": ["a", "b"]},
    ),
    Broken(
        "a group twice",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters[0].compatibilityGroups": ["a", "a"]},
        "compatibility-group-unique",
        f"{DEVICE}.consumesCounters[0].compatibilityGroups[1]",
    ),
    Broken(
        "a group in upper case",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters[0].compatibilityGroups": ["A"]},
        "compatibility-group-name",
        f"{DEVICE}.consumesCounters[0].compatibilityGroups[0]",
    ),
)

POLICIES: Final = (
    Broken(
        "a policy on a device for one",
        SLICE,
        {f"{MEMORY}.requestPolicy": POLICY},
        "policy-shareable",
        f"{MEMORY}.requestPolicy",
    ),
    Broken(
        "values and a range",
        SHARED,
        {f"{VALID}": ["2Gi"]},
        "policy-one-of",
        f"{MEMORY}.requestPolicy",
    ),
    Broken(
        "a range without default",
        SHARED,
        {f"{MEMORY}.requestPolicy.default": ABSENT},
        "policy-default",
        f"{MEMORY}.requestPolicy.default",
    ),
    Broken(
        "values without default",
        DISCRETE,
        {f"{MEMORY}.requestPolicy.default": ABSENT},
        "policy-default",
        f"{MEMORY}.requestPolicy.default",
    ),
    Broken(
        "eleven values",
        DISCRETE,
        {f"{VALID}": [f"{n}Gi" for n in range(11)]},
        "policy-value-limit",
        VALID,
        {f"{VALID}": [f"{n}Gi" for n in range(10)]},
    ),
    Broken(
        "values that descend",
        DISCRETE,
        {f"{VALID}": ["1Gi", "4Gi", "2Gi"]},
        "policy-value-order",
        f"{VALID}[2]",
    ),
    Broken(
        "a value twice",
        DISCRETE,
        {f"{VALID}": ["1Gi", "2Gi", "2048Mi"]},
        "policy-value-unique",
        f"{VALID}[2]",
    ),
    Broken(
        "a value above all",
        DISCRETE,
        {f"{VALID}[2]": "11Gi"},
        "policy-value-size",
        f"{VALID}[2]",
        {f"{VALID}[2]": "10Gi"},
    ),
    Broken(
        "a default that is no value",
        DISCRETE,
        {f"{MEMORY}.requestPolicy.default": "3Gi"},
        "policy-value-default",
        VALID,
    ),
    Broken(
        "no minimum", SHARED, {f"{RANGE}.min": ABSENT}, "schema", f"{RANGE}.min"
    ),
    Broken(
        "a minimum above all",
        SHARED,
        {RANGE: {"min": "11Gi"}, f"{MEMORY}.requestPolicy.default": "11Gi"},
        "policy-min-size",
        f"{RANGE}.min",
        {RANGE: {"min": "10Gi"}, f"{MEMORY}.requestPolicy.default": "10Gi"},
    ),
    Broken(
        "a maximum above all",
        SHARED,
        {f"{RANGE}.max": "11Gi"},
        "policy-max-size",
        f"{RANGE}.max",
        {f"{RANGE}.max": "10Gi"},
    ),
    Broken(
        "a default below",
        SHARED,
        {f"{RANGE}.min": "3Gi"},
        "policy-range-default",
        f"{RANGE}.default",
        {f"{RANGE}.min": "2Gi"},
    ),
    Broken(
        "a default above",
        SHARED,
        {f"{RANGE}.max": "1Gi"},
        "policy-range-default",
        f"{RANGE}.default",
        {f"{RANGE}.max": "2Gi"},
    ),
    Broken(
        "a step of nothing",
        SHARED,
        {f"{RANGE}.step": "0"},
        "policy-step-positive",
        f"{RANGE}.step",
    ),
    Broken(
        "a step back",
        SHARED,
        {f"{RANGE}.step": "-1Gi"},
        "policy-step-positive",
        f"{RANGE}.step",
    ),
    Broken(
        "a step too far",
        SHARED,
        {RANGE: {"min": "2Gi", "step": "9Gi"}},
        "policy-step-size",
        f"{RANGE}.step",
        {RANGE: {"min": "2Gi", "step": "8Gi"}},
    ),
    Broken(
        "a default between steps",
        SHARED,
        {f"{MEMORY}.requestPolicy.default": "1536Mi"},
        "policy-step-multiple",
        f"{RANGE}.step",
    ),
    Broken(
        "a maximum between steps",
        SHARED,
        {f"{RANGE}.max": "9500Mi"},
        "policy-step-multiple",
        f"{RANGE}.step",
    ),
    Broken(
        "an amount finer than a thousandth",
        SHARED,
        {RANGE: {"min": "1u"}},
        "policy-precision",
        f"{RANGE}.min",
        {RANGE: {"min": "1m"}},
    ),
    Broken(
        "an amount beside fractions that is too large in thousandths",
        SHARED,
        {
            f"{MEMORY}.value": "10P",
            RANGE: {"min": "500m", "max": "9223372036854776"},
        },
        "policy-precision",
        f"{RANGE}.max",
        {
            f"{MEMORY}.value": "10P",
            RANGE: {"min": "500m", "max": "9223372036854775"},
        },
    ),
    Broken(
        "a negative minimum with steps",
        SHARED,
        {RANGE: {"min": "-1Gi", "step": "1Gi"}},
        "policy-bounds",
        f"{RANGE}.min",
        {RANGE: {"min": "0", "step": "1Gi"}},
    ),
    Broken(
        "a policy of a counter",
        COUNTERS,
        {
            "spec.sharedCounters[0].counters.cores.requestPolicy": {
                "default": "9",
                "validValues": ["9"],
            }
        },
        "policy-value-size",
        "spec.sharedCounters[0].counters[cores].requestPolicy.validValues[0]",
        {
            "spec.sharedCounters[0].counters.cores.requestPolicy": {
                "default": "8",
                "validValues": ["8"],
            }
        },
    ),
    Broken(
        "a minimum above the maximum",
        SHARED,
        {RANGE: {"min": "2Gi", "max": "1Gi"}},
        "policy-min-max",
        f"{RANGE}.max",
    ),
)

SELECTORS: Final = (
    Broken(
        "no terms",
        SELECTED,
        {"spec.nodeSelector.nodeSelectorTerms": []},
        "node-selector-terms",
        "spec.nodeSelector.nodeSelectorTerms",
    ),
    Broken(
        "a label key with a space",
        SELECTED,
        {f"{TERM}.matchExpressions[0].key": "a b"},
        "node-selector-key",
        f"{TERM}.matchExpressions[0].key",
    ),
    Broken(
        "an unknown operator",
        SELECTED,
        {f"{TERM}.matchExpressions[0].operator": "Like"},
        "node-selector-operator",
        f"{TERM}.matchExpressions[0].operator",
    ),
    Broken(
        "In without values",
        SELECTED,
        {f"{TERM}.matchExpressions[0].values": []},
        "node-selector-count",
        f"{TERM}.matchExpressions[0].values",
    ),
    Broken(
        "Exists with values",
        SELECTED,
        {f"{TERM}.matchExpressions[0].operator": "Exists"},
        "node-selector-count",
        f"{TERM}.matchExpressions[0].values",
    ),
    Broken(
        "Gt with two values",
        SELECTED,
        {
            f"{TERM}.matchExpressions[0]": {
                "key": "a",
                "operator": "Gt",
                "values": ["1", "2"],
            }
        },
        "node-selector-count",
        f"{TERM}.matchExpressions[0].values",
        {
            f"{TERM}.matchExpressions[0]": {
                "key": "a",
                "operator": "Gt",
                "values": ["1"],
            }
        },
    ),
    Broken(
        "a value with a space",
        SELECTED,
        {f"{TERM}.matchExpressions[0].values[0]": "a b"},
        "node-selector-value",
        f"{TERM}.matchExpressions[0].values[0]",
    ),
    Broken(
        "an unknown field",
        SELECTED,
        {f"{TERM}.matchFields[0].key": "metadata.uid"},
        "node-field-key",
        f"{TERM}.matchFields[0].key",
    ),
    Broken(
        "a field that exists",
        SELECTED,
        {f"{TERM}.matchFields[0].operator": "Exists"},
        "node-field-operator",
        f"{TERM}.matchFields[0].operator",
    ),
    Broken(
        "a field of two values",
        SELECTED,
        {f"{TERM}.matchFields[0].values": ["a", "b"]},
        "node-field-operator",
        f"{TERM}.matchFields[0].values",
    ),
    Broken(
        "a node name in upper case",
        SELECTED,
        {f"{TERM}.matchFields[0].values": ["A"]},
        "node-field-value",
        f"{TERM}.matchFields[0].values[0]",
    ),
)

CLASSES: Final = (
    Broken(
        "33 selectors",
        CLASS,
        {"spec.selectors": CLASS["spec"]["selectors"] * 33},
        "selector-limit",
        "spec.selectors",
        {"spec.selectors": CLASS["spec"]["selectors"] * 32},
    ),
    Broken(
        "a selector of another kind",
        CLASS,
        {"spec.selectors": [{}]},
        "selector-cel",
        "spec.selectors[0].cel",
    ),
    Broken(
        "an expression of more than 10 KiB",
        CLASS,
        {"spec.selectors[0].cel.expression": "true" + " " * 10237},
        "selector-length",
        "spec.selectors[0].cel.expression",
        {"spec.selectors[0].cel.expression": "true" + " " * 10236},
    ),
    Broken(
        "an expression that does not parse",
        CLASS,
        {"spec.selectors[0].cel.expression": "device."},
        "selector-compile",
        "spec.selectors[0].cel.expression",
    ),
    Broken(
        "an expression that is no bool",
        CLASS,
        {"spec.selectors[0].cel.expression": "device.driver"},
        "selector-compile",
        "spec.selectors[0].cel.expression",
    ),
    Broken(
        "an unknown function",
        CLASS,
        {"spec.selectors[0].cel.expression": "f(device)"},
        "selector-compile",
        "spec.selectors[0].cel.expression",
    ),
    Broken(
        "an empty expression",
        CLASS,
        {"spec.selectors[0].cel.expression": ""},
        "selector-compile",
        "spec.selectors[0].cel.expression",
    ),
    Broken(
        "an expression without end",
        CLASS,
        {"spec.selectors[0].cel.expression": EXPENSIVE},
        "selector-cost",
        "spec.selectors[0].cel.expression",
    ),
    Broken(
        "33 configurations",
        CONFIGURED,
        {"spec.config": CONFIGURED["spec"]["config"] * 33},
        "class-config-limit",
        "spec.config",
        {"spec.config": CONFIGURED["spec"]["config"] * 32},
    ),
    Broken(
        "a configuration of another kind",
        CONFIGURED,
        {"spec.config": [{}]},
        "config-opaque",
        "spec.config[0].opaque",
    ),
    Broken(
        "a configuration for no driver",
        CONFIGURED,
        {"spec.config[0].opaque.driver": ""},
        "config-driver",
        "spec.config[0].opaque.driver",
    ),
    Broken(
        "parameters that are text",
        CONFIGURED,
        {"spec.config[0].opaque.parameters": "x"},
        "config-parameters",
        "spec.config[0].opaque.parameters",
    ),
    Broken(
        "parameters of more than 10 KiB",
        CONFIGURED,
        {"spec.config[0].opaque.parameters": {"a": "x" * 10233}},
        "config-parameters",
        "spec.config[0].opaque.parameters",
        {"spec.config[0].opaque.parameters": {"a": "x" * 10232}},
    ),
    Broken(
        "an extended resource of Kubernetes",
        CLASS,
        {"spec.extendedResourceName": "kubernetes.io/gpu"},
        "class-extended-resource",
        "spec.extendedResourceName",
        {"spec.extendedResourceName": "example.com/gpu"},
    ),
    Broken(
        "an extended resource without domain",
        CLASS,
        {"spec.extendedResourceName": "gpu"},
        "class-extended-resource",
        "spec.extendedResourceName",
    ),
)

WARNED: Final = (
    Broken(
        "a slice in a namespace",
        SLICE,
        {"metadata.namespace": "a"},
        "metadata-no-namespace",
        "metadata.namespace",
    ),
    Broken(
        "a class in a namespace",
        CLASS,
        {"metadata.namespace": "a"},
        "metadata-no-namespace",
        "metadata.namespace",
    ),
    Broken(
        "33 times 64 counters consumed",
        SLICE,
        {
            "spec.devices": many(
                33,
                {
                    **PLAIN,
                    "consumesCounters": [
                        *consumes("a", **{f"c{n}": "1" for n in range(32)}),
                        *consumes("b", **{f"c{n}": "1" for n in range(32)}),
                    ],
                },
            )
        },
        "slice-consumed-counter-limit",
        "spec.devices",
    ),
    Broken("a capacity of no amount", SLICE, {MEMORY: {}}, "", ""),
    Broken(
        "a consumption of no amount",
        PARTITIONS,
        {f"{DEVICE}.consumesCounters[0].counters.memory": {}},
        "",
        "",
    ),
)
"""What every API server accepts, and the warning about it if there is one."""
