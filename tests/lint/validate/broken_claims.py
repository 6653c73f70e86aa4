"""Claims and templates that break one rule each."""

from __future__ import annotations

from typing import Final

from lint.validate.objects import (
    ABSENT,
    ALLOCATED,
    ALTERNATIVES,
    CLAIM,
    CONFIG,
    CONSTRAINED,
    DERIVED,
    OTHER_UID,
    REPORTED,
    TEMPLATE,
    UID,
    Broken,
    condition,
    many,
)
from wire import claim, first_available, request, sub

REQUEST: Final = "spec.devices.requests[0]"
EXACTLY: Final = f"{REQUEST}.exactly"
IN_TEMPLATE: Final = f"spec.{EXACTLY}"
LIST: Final = f"{REQUEST}.firstAvailable"
CONSTRAINT: Final = "spec.devices.constraints[0]"
SETTING: Final = "spec.devices.config[0]"
TOLERATION: Final = f"{EXACTLY}.tolerations[0]"
DERIVATION: Final = f"{EXACTLY}.derivedAttributes"
RESULT: Final = "status.allocation.devices.results[0]"
CHOSEN: Final = "status.allocation.devices.config"
STATUS: Final = "status.devices[0]"
CONDITION: Final = f"{STATUS}.conditions[0]"
NETWORK: Final = f"{STATUS}.networkData"
LONG: Final = "a" * 64
MATCH: Final = {"matchAttribute": "example.com/numa"}
COSTLY: Final = "[{0}].map(a, [{0}].filter(b, [{0}].exists(c, a + b + c > 0)).size())".format(
    ", ".join(map(str, range(200)))
)

REQUESTS: Final = (
    Broken(
        "a negative generation",
        CLAIM,
        {"metadata.generation": -1},
        "metadata-generation",
        "metadata.generation",
        {"metadata.generation": 0},
    ),
    Broken(
        "a claim with a name in upper case",
        CLAIM,
        {"metadata.name": "C"},
        "metadata-name",
        "metadata.name",
    ),
    Broken(
        "a prefix of names in upper case",
        CLAIM,
        {"metadata.generateName": "Cc-"},
        "metadata-generate-name",
        "metadata.generateName",
        {"metadata.generateName": "c--"},
    ),
    Broken(
        "a namespace with a dot",
        CLAIM,
        {"metadata.namespace": "a.b"},
        "metadata-namespace",
        "metadata.namespace",
    ),
    Broken(
        "33 requests",
        CLAIM,
        {"spec.devices.requests": [request(f"r{n}") for n in range(33)]},
        "request-limit",
        "spec.devices.requests",
        {"spec.devices.requests": [request(f"r{n}") for n in range(32)]},
    ),
    Broken(
        "a request twice",
        CLAIM,
        {"spec.devices.requests[1]": request("gpu")},
        "request-unique",
        "spec.devices.requests[1]",
    ),
    Broken(
        "a request without name",
        CLAIM,
        {f"{REQUEST}.name": ""},
        "request-name",
        f"{REQUEST}.name",
    ),
    Broken(
        "a request with a slash",
        CLAIM,
        {f"{REQUEST}.name": "a/b"},
        "request-name",
        f"{REQUEST}.name",
    ),
    Broken(
        "a request of 64 characters",
        CLAIM,
        {f"{REQUEST}.name": LONG},
        "request-name",
        f"{REQUEST}.name",
        {f"{REQUEST}.name": LONG[1:]},
    ),
    Broken(
        "a request for nothing", CLAIM, {EXACTLY: ABSENT}, "schema", REQUEST
    ),
    Broken(
        "a request for two things", CLAIM, {LIST: [sub("a")]}, "schema", REQUEST
    ),
    Broken(
        "nine alternatives",
        ALTERNATIVES,
        {LIST: [sub(f"s{n}") for n in range(9)]},
        "alternative-limit",
        LIST,
        {LIST: [sub(f"s{n}") for n in range(8)]},
    ),
    Broken(
        "an alternative twice",
        ALTERNATIVES,
        {f"{LIST}[1].name": "large"},
        "alternative-unique",
        f"{LIST}[1]",
    ),
    Broken(
        "an alternative with a dot",
        ALTERNATIVES,
        {f"{LIST}[1].name": "a.b"},
        "alternative-name",
        f"{LIST}[1].name",
    ),
    Broken(
        "an alternative of less than none",
        ALTERNATIVES,
        {f"{LIST}[1].count": -1},
        "request-count",
        f"{LIST}[1].count",
    ),
    Broken(
        "an alternative without class",
        ALTERNATIVES,
        {f"{LIST}[0].deviceClassName": ""},
        "request-class",
        f"{LIST}[0].deviceClassName",
    ),
    Broken(
        "no class",
        CLAIM,
        {f"{EXACTLY}.deviceClassName": ""},
        "request-class",
        f"{EXACTLY}.deviceClassName",
    ),
    Broken(
        "a class with a slash",
        CLAIM,
        {f"{EXACTLY}.deviceClassName": "a/b"},
        "request-class",
        f"{EXACTLY}.deviceClassName",
    ),
    Broken(
        "no class field",
        CLAIM,
        {f"{EXACTLY}.deviceClassName": ABSENT},
        "schema",
        f"{EXACTLY}.deviceClassName",
    ),
    Broken(
        "an unknown mode",
        CLAIM,
        {f"{EXACTLY}.allocationMode": "Some"},
        "request-mode",
        f"{EXACTLY}.allocationMode",
        {f"{EXACTLY}.allocationMode": ""},
    ),
    Broken(
        "a negative count",
        CLAIM,
        {f"{EXACTLY}.count": -1},
        "request-count",
        f"{EXACTLY}.count",
        {f"{EXACTLY}.count": 0},
    ),
    Broken(
        "a count of all",
        CLAIM,
        {f"{EXACTLY}.allocationMode": "All", f"{EXACTLY}.count": 1},
        "request-count-of-all",
        f"{EXACTLY}.count",
        {f"{EXACTLY}.allocationMode": "All", f"{EXACTLY}.count": 0},
    ),
    Broken(
        "33 selectors",
        CLAIM,
        {
            f"{EXACTLY}.selectors": CLAIM["spec"]["devices"]["requests"][0][
                "exactly"
            ]["selectors"]
            * 33
        },
        "selector-limit",
        f"{EXACTLY}.selectors",
        {
            f"{EXACTLY}.selectors": CLAIM["spec"]["devices"]["requests"][0][
                "exactly"
            ]["selectors"]
            * 32
        },
    ),
    Broken(
        "a selector that does not compile",
        CLAIM,
        {
            f"{EXACTLY}.selectors[0].cel.expression": "device.capacity.memory > 1"
        },
        "selector-compile",
        f"{EXACTLY}.selectors[0].cel.expression",
    ),
    Broken(
        "a selector of no kind",
        CLAIM,
        {f"{EXACTLY}.selectors[0]": {}},
        "selector-cel",
        f"{EXACTLY}.selectors[0].cel",
    ),
    Broken(
        "a toleration with a bad key",
        CLAIM,
        {f"{EXACTLY}.tolerations": [{"key": "a b", "operator": "Exists"}]},
        "toleration-key",
        f"{TOLERATION}.key",
        {f"{EXACTLY}.tolerations": [{"operator": "Exists"}]},
    ),
    Broken(
        "a toleration with a bad value",
        CLAIM,
        {f"{EXACTLY}.tolerations": [{"key": "a", "value": "a b"}]},
        "toleration-value",
        f"{TOLERATION}.value",
        {f"{EXACTLY}.tolerations": [{"key": "a", "value": ""}]},
    ),
    Broken(
        "a toleration of what exists, with value",
        CLAIM,
        {
            f"{EXACTLY}.tolerations": [
                {"key": "a", "operator": "Exists", "value": "b"}
            ]
        },
        "toleration-exists",
        f"{TOLERATION}.value",
    ),
    Broken(
        "a toleration of an unknown effect",
        CLAIM,
        {f"{EXACTLY}.tolerations": [{"key": "a", "effect": "Maybe"}]},
        "toleration-effect",
        f"{TOLERATION}.effect",
        {f"{EXACTLY}.tolerations": [{"key": "a", "effect": "None"}]},
    ),
    Broken(
        "a toleration with an unknown operator",
        CLAIM,
        {f"{EXACTLY}.tolerations": [{"key": "a", "operator": "Like"}]},
        "schema",
        f"{TOLERATION}.operator",
    ),
    Broken(
        "33 derived attributes",
        DERIVED,
        {
            DERIVATION: many(33, {"name": "d/a{}", "expression": "1"}),
            "spec.devices.constraints": many(
                32, {"matchAttribute": "d/a{}"}, key="matchAttribute"
            ),
        },
        "derived-limit",
        DERIVATION,
    ),
    Broken(
        "a derived attribute twice",
        DERIVED,
        {f"{DERIVATION}[1]": {"name": "derived/numa", "expression": "1"}},
        "derived-unique",
        f"{DERIVATION}[1]",
    ),
    Broken(
        "a derived attribute without domain",
        DERIVED,
        {f"{DERIVATION}[0].name": ""},
        "derived-name",
        f"{DERIVATION}[0].name",
    ),
    Broken(
        "a derived attribute without expression",
        DERIVED,
        {f"{DERIVATION}[0].expression": ""},
        "derived-expression",
        f"{DERIVATION}[0].expression",
    ),
    Broken(
        "a derivation of more than 10 KiB",
        DERIVED,
        {f"{DERIVATION}[0].expression": "1" + " " * 10240},
        "derived-length",
        f"{DERIVATION}[0].expression",
        {f"{DERIVATION}[0].expression": "1" + " " * 10239},
    ),
    Broken(
        "a derivation that is a map",
        DERIVED,
        {f"{DERIVATION}[0].expression": "{'a': 1}"},
        "derived-compile",
        f"{DERIVATION}[0].expression",
        {f"{DERIVATION}[0].expression": "['a', 'b']"},
    ),
    Broken(
        "derivations without end",
        DERIVED,
        {f"{DERIVATION}[0].expression": COSTLY},
        "derived-cost",
        "spec.devices",
    ),
    Broken(
        "a derived attribute that nobody compares",
        DERIVED,
        {"spec.devices.constraints": [MATCH]},
        "derived-use",
        f"{DERIVATION}[0].name",
    ),
    Broken(
        "a template with a name in it",
        TEMPLATE,
        {"spec.metadata.name": "a"},
        "template-metadata",
        "spec.metadata.name",
    ),
    Broken(
        "a template with a bad label in it",
        TEMPLATE,
        {"spec.metadata.labels.app": "a b"},
        "metadata-labels",
        "spec.metadata.labels",
    ),
    Broken(
        "a template without class",
        TEMPLATE,
        {f"{IN_TEMPLATE}.deviceClassName": ""},
        "request-class",
        f"{IN_TEMPLATE}.deviceClassName",
    ),
    Broken(
        "a template with a bad selector",
        TEMPLATE,
        {f"{IN_TEMPLATE}.selectors[0].cel.expression": "("},
        "selector-compile",
        f"{IN_TEMPLATE}.selectors[0].cel.expression",
    ),
)

NAMES: Final = [f"r{n}/s{m}" for n in range(5) for m in range(8)]
MANY_NAMES: Final = claim(
    "c",
    *(
        first_available(f"r{n}", *(sub(f"s{m}") for m in range(8)))
        for n in range(5)
    ),
)

REFERENCES: Final = (
    Broken(
        "a constraint on 33 requests",
        MANY_NAMES,
        {"spec.devices.constraints": [{"requests": NAMES[:33], **MATCH}]},
        "reference-limit",
        f"{CONSTRAINT}.requests",
        {"spec.devices.constraints": [{"requests": NAMES[:32], **MATCH}]},
    ),
    Broken(
        "a configuration for 33 requests",
        MANY_NAMES,
        {"spec.devices.config": [{"requests": NAMES[:33], **CONFIG}]},
        "reference-limit",
        f"{SETTING}.requests",
        {"spec.devices.config": [{"requests": NAMES[:32], **CONFIG}]},
    ),
    Broken(
        "33 constraints",
        CONSTRAINED,
        {"spec.devices.constraints": [MATCH] * 33},
        "constraint-limit",
        "spec.devices.constraints",
        {"spec.devices.constraints": [MATCH] * 32},
    ),
    Broken(
        "a constraint of nothing",
        CONSTRAINED,
        {f"{CONSTRAINT}.matchAttribute": ABSENT},
        "constraint-kind",
        CONSTRAINT,
    ),
    Broken(
        "a constraint without domain",
        CONSTRAINED,
        {f"{CONSTRAINT}.matchAttribute": "numa"},
        "constraint-attribute",
        f"{CONSTRAINT}.matchAttribute",
    ),
    Broken(
        "a difference without domain",
        CONSTRAINED,
        {CONSTRAINT: {"distinctAttribute": "numa"}},
        "constraint-attribute",
        f"{CONSTRAINT}.distinctAttribute",
        {CONSTRAINT: {"distinctAttribute": "example.com/numa"}},
    ),
    Broken(
        "a constraint on nobody",
        CONSTRAINED,
        {f"{CONSTRAINT}.requests": ["cpu"]},
        "constraint-request",
        f"{CONSTRAINT}.requests[0]",
    ),
    Broken(
        "a constraint on an unknown alternative",
        CONSTRAINED,
        {f"{CONSTRAINT}.requests": ["nic/wide"]},
        "constraint-request",
        f"{CONSTRAINT}.requests[0]",
    ),
    Broken(
        "a constraint on an alternative alone",
        CONSTRAINED,
        {f"{CONSTRAINT}.requests": ["fast"]},
        "constraint-request",
        f"{CONSTRAINT}.requests[0]",
    ),
    Broken(
        "a constraint on a part of a part",
        CONSTRAINED,
        {f"{CONSTRAINT}.requests": ["nic/fast/x"]},
        "constraint-request",
        f"{CONSTRAINT}.requests[0]",
    ),
    Broken(
        "a constraint on one request twice",
        CONSTRAINED,
        {f"{CONSTRAINT}.requests": ["gpu", "gpu"]},
        "reference-unique",
        f"{CONSTRAINT}.requests[1]",
    ),
    Broken(
        "33 configurations",
        CONSTRAINED,
        {"spec.devices.config": [CONFIG] * 33},
        "config-limit",
        "spec.devices.config",
        {"spec.devices.config": [CONFIG] * 32},
    ),
    Broken(
        "a configuration for nobody",
        CONSTRAINED,
        {f"{SETTING}.requests[1]": "cpu"},
        "config-request",
        f"{SETTING}.requests[1]",
    ),
    Broken(
        "a configuration for one request twice",
        CONSTRAINED,
        {f"{SETTING}.requests": ["nic", "nic"]},
        "reference-unique",
        f"{SETTING}.requests[1]",
    ),
    Broken(
        "a configuration of no kind",
        CONSTRAINED,
        {f"{SETTING}.opaque": ABSENT},
        "config-opaque",
        f"{SETTING}.opaque",
    ),
    Broken(
        "a configuration for a bad driver",
        CONSTRAINED,
        {f"{SETTING}.opaque.driver": "a b"},
        "config-driver",
        f"{SETTING}.opaque.driver",
    ),
    Broken(
        "parameters that are a list",
        CONSTRAINED,
        {f"{SETTING}.opaque.parameters": []},
        "config-parameters",
        f"{SETTING}.opaque.parameters",
    ),
    Broken(
        "no parameters",
        CONSTRAINED,
        {f"{SETTING}.opaque.parameters": ABSENT},
        "schema",
        f"{SETTING}.opaque.parameters",
    ),
    Broken(
        "a template with a constraint on nobody",
        TEMPLATE,
        {"spec.spec.devices.constraints": [{"requests": ["x"], **MATCH}]},
        "constraint-request",
        "spec.spec.devices.constraints[0].requests[0]",
    ),
)

RESULTS: Final = (
    Broken(
        "33 results",
        ALLOCATED,
        {
            "status.allocation.devices.results": many(
                33,
                {
                    **ALLOCATED["status"]["allocation"]["devices"]["results"][
                        0
                    ],
                    "device": "d{}",
                },
                key="device",
            )
        },
        "result-limit",
        "status.allocation.devices.results",
        {
            "status.allocation.devices.results": many(
                32,
                {
                    **ALLOCATED["status"]["allocation"]["devices"]["results"][
                        0
                    ],
                    "device": "d{}",
                },
                key="device",
            )
        },
    ),
    Broken(
        "a result for no request",
        ALLOCATED,
        {f"{RESULT}.request": "nic"},
        "result-request",
        f"{RESULT}.request",
    ),
    Broken(
        "a result of a bad driver",
        ALLOCATED,
        {f"{RESULT}.driver": "a_b"},
        "result-driver",
        f"{RESULT}.driver",
    ),
    Broken(
        "a result of no pool",
        ALLOCATED,
        {f"{RESULT}.pool": ""},
        "result-pool",
        f"{RESULT}.pool",
    ),
    Broken(
        "a result of a bad device",
        ALLOCATED,
        {f"{RESULT}.device": "GPU"},
        "result-device",
        f"{RESULT}.device",
    ),
    Broken(
        "a share in upper case",
        ALLOCATED,
        {f"{RESULT}.shareID": UID.upper()},
        "result-share",
        f"{RESULT}.shareID",
        {f"{RESULT}.shareID": UID},
    ),
    Broken(
        "a share that is no UUID",
        ALLOCATED,
        {f"{RESULT}.shareID": "1"},
        "result-share",
        f"{RESULT}.shareID",
    ),
    Broken(
        "a result that skips something else",
        ALLOCATED,
        {f"{RESULT}.skipNodeOperations": ["Rest"]},
        "result-skip-value",
        f"{RESULT}.skipNodeOperations[0]",
    ),
    Broken(
        "a result that skips twice",
        ALLOCATED,
        {f"{RESULT}.skipNodeOperations": ["*", "*"]},
        "result-skip-unique",
        f"{RESULT}.skipNodeOperations[1]",
    ),
    Broken(
        "a result that is only prepared",
        ALLOCATED,
        {f"{RESULT}.skipNodeOperations": ["NodePrepareResources"]},
        "result-skip-pair",
        f"{RESULT}.skipNodeOperations",
        {f"{RESULT}.skipNodeOperations": ["NodePrepareResources", "*"]},
    ),
    Broken(
        "a result with conditions only",
        ALLOCATED,
        {f"{RESULT}.bindingConditions": ["a"]},
        "binding-condition-pair",
        f"{RESULT}.bindingFailureConditions",
    ),
    Broken(
        "a result with a bad toleration",
        ALLOCATED,
        {f"{RESULT}.tolerations": [{"key": "a", "effect": "Maybe"}]},
        "toleration-effect",
        f"{RESULT}.tolerations[0].effect",
    ),
    Broken(
        "65 chosen configurations",
        ALLOCATED,
        {CHOSEN: [{"source": "FromClass", **CONFIG}] * 65},
        "result-config-limit",
        CHOSEN,
        {CHOSEN: [{"source": "FromClass", **CONFIG}] * 64},
    ),
    Broken(
        "a chosen configuration for nobody",
        ALLOCATED,
        {CHOSEN: [{"source": "FromClaim", "requests": ["x"], **CONFIG}]},
        "result-config-request",
        f"{CHOSEN}[0].requests[0]",
    ),
    Broken(
        "a chosen configuration for one twice",
        ALLOCATED,
        {
            CHOSEN: [
                {"source": "FromClaim", "requests": ["gpu", "gpu"], **CONFIG}
            ]
        },
        "result-config-list",
        f"{CHOSEN}[0].requests[1]",
    ),
    Broken(
        "a chosen configuration of no kind",
        ALLOCATED,
        {CHOSEN: [{"source": "FromClaim"}]},
        "config-opaque",
        f"{CHOSEN}[0].opaque",
    ),
    Broken(
        "a configuration from elsewhere",
        ALLOCATED,
        {CHOSEN: [{"source": "FromNode", **CONFIG}]},
        "schema",
        f"{CHOSEN}[0].source",
    ),
    Broken(
        "an allocation for no node",
        ALLOCATED,
        {"status.allocation.nodeSelector": {"nodeSelectorTerms": []}},
        "node-selector-terms",
        "status.allocation.nodeSelector.nodeSelectorTerms",
    ),
    Broken(
        "257 consumers",
        REPORTED,
        {
            "status.reservedFor": many(
                257, {"resource": "pods", "name": "p", "uid": "u{}"}, key="uid"
            )
        },
        "reserved-limit",
        "status.reservedFor",
        {
            "status.reservedFor": many(
                256, {"resource": "pods", "name": "p", "uid": "u{}"}, key="uid"
            )
        },
    ),
    Broken(
        "a consumer twice",
        REPORTED,
        {
            "status.reservedFor[1]": {
                "resource": "pods",
                "name": "q",
                "uid": UID,
            }
        },
        "reserved-unique",
        "status.reservedFor[1]",
        {
            "status.reservedFor[1]": {
                "resource": "pods",
                "name": "q",
                "uid": OTHER_UID,
            }
        },
    ),
    Broken(
        "a consumer without UID",
        REPORTED,
        {"status.reservedFor[0].uid": ""},
        "reserved-field",
        "status.reservedFor[0].uid",
    ),
    Broken(
        "a consumer without name",
        REPORTED,
        {"status.reservedFor[0].name": ""},
        "reserved-field",
        "status.reservedFor[0].name",
    ),
    Broken(
        "a consumer of no kind",
        REPORTED,
        {"status.reservedFor[0].resource": ""},
        "reserved-field",
        "status.reservedFor[0].resource",
    ),
    Broken(
        "reserved before it is allocated",
        CLAIM,
        {
            "status": {
                "reservedFor": [{"resource": "pods", "name": "p", "uid": UID}]
            }
        },
        "reserved-allocated",
        "status.reservedFor",
    ),
)

REPORTS: Final = (
    Broken(
        "a report about another device",
        REPORTED,
        {f"{STATUS}.device": "gpu-1"},
        "device-status-allocated",
        STATUS,
    ),
    Broken(
        "a report about a share",
        REPORTED,
        {f"{STATUS}.shareID": UID},
        "device-status-allocated",
        STATUS,
        {f"{STATUS}.shareID": UID, f"{RESULT}.shareID": UID},
    ),
    Broken(
        "two reports about a device",
        REPORTED,
        {
            "status.devices[1]": {
                "driver": "gpu.example.com",
                "pool": "pool-0",
                "device": "gpu-0",
            }
        },
        "device-status-unique",
        "status.devices[1]",
    ),
    Broken(
        "data that is text",
        REPORTED,
        {f"{STATUS}.data": "x"},
        "device-status-data",
        f"{STATUS}.data",
    ),
    Broken(
        "data of more than 10 KiB",
        REPORTED,
        {f"{STATUS}.data": {"a": "x" * 10233}},
        "device-status-data",
        f"{STATUS}.data",
        {f"{STATUS}.data": {"a": "x" * 10232}},
    ),
    Broken(
        "nine conditions",
        REPORTED,
        {f"{STATUS}.conditions": many(9, condition(type="C{}"), key="type")},
        "condition-limit",
        f"{STATUS}.conditions",
        {f"{STATUS}.conditions": many(8, condition(type="C{}"), key="type")},
    ),
    Broken(
        "a condition twice",
        REPORTED,
        {f"{STATUS}.conditions[1]": condition()},
        "condition-unique",
        f"{STATUS}.conditions[1].type",
    ),
    Broken(
        "a condition of a bad type",
        REPORTED,
        {f"{CONDITION}.type": "a b"},
        "condition-type",
        f"{CONDITION}.type",
    ),
    Broken(
        "a condition that may be",
        REPORTED,
        {f"{CONDITION}.status": "Maybe"},
        "condition-status",
        f"{CONDITION}.status",
        {f"{CONDITION}.status": "Unknown"},
    ),
    Broken(
        "a condition without reason",
        REPORTED,
        {f"{CONDITION}.reason": ""},
        "condition-reason",
        f"{CONDITION}.reason",
    ),
    Broken(
        "a reason in two words",
        REPORTED,
        {f"{CONDITION}.reason": "a b"},
        "condition-reason",
        f"{CONDITION}.reason",
        {f"{CONDITION}.reason": "A,b:c_"},
    ),
    Broken(
        "a reason of 1025 characters",
        REPORTED,
        {f"{CONDITION}.reason": "a" * 1025},
        "condition-reason",
        f"{CONDITION}.reason",
        {f"{CONDITION}.reason": "a" * 1024},
    ),
    Broken(
        "a condition since when",
        REPORTED,
        {f"{CONDITION}.lastTransitionTime": ABSENT},
        "condition-time",
        f"{CONDITION}.lastTransitionTime",
    ),
    Broken(
        "a message of more than 32 KiB",
        REPORTED,
        {f"{CONDITION}.message": "x" * 32769},
        "condition-message",
        f"{CONDITION}.message",
        {f"{CONDITION}.message": "x" * 32768},
    ),
    Broken(
        "a condition of a negative generation",
        REPORTED,
        {f"{CONDITION}.observedGeneration": -1},
        "condition-generation",
        f"{CONDITION}.observedGeneration",
        {f"{CONDITION}.observedGeneration": 0},
    ),
    Broken(
        "an interface of 257 characters",
        REPORTED,
        {f"{NETWORK}.interfaceName": "x" * 257},
        "network-length",
        f"{NETWORK}.interfaceName",
        {f"{NETWORK}.interfaceName": "x" * 256},
    ),
    Broken(
        "hardware of 129 characters",
        REPORTED,
        {f"{NETWORK}.hardwareAddress": "x" * 129},
        "network-length",
        f"{NETWORK}.hardwareAddress",
        {f"{NETWORK}.hardwareAddress": "x" * 128},
    ),
    Broken(
        "17 addresses",
        REPORTED,
        {f"{NETWORK}.ips": many(17, "10.0.0.{}/24")},
        "network-ip-limit",
        f"{NETWORK}.ips",
        {f"{NETWORK}.ips": many(16, "10.0.0.{}/24")},
    ),
    Broken(
        "an address twice",
        REPORTED,
        {f"{NETWORK}.ips": ["10.0.0.1/24"] * 2},
        "network-ip-unique",
        f"{NETWORK}.ips[1]",
    ),
    Broken(
        "an address without prefix",
        REPORTED,
        {f"{NETWORK}.ips": ["10.0.0.1"]},
        "network-ip",
        f"{NETWORK}.ips[0]",
    ),
    Broken(
        "an address that is not written shortest",
        REPORTED,
        {f"{NETWORK}.ips": ["2001:db8:0::1/64"]},
        "network-ip",
        f"{NETWORK}.ips[0]",
    ),
    Broken(
        "an address of IPv4 as one of IPv6",
        REPORTED,
        {f"{NETWORK}.ips": ["::ffff:102:304/120"]},
        "network-ip",
        f"{NETWORK}.ips[0]",
        {f"{NETWORK}.ips": ["1.2.3.4/24"]},
    ),
    Broken(
        "an address with a zone",
        REPORTED,
        {f"{NETWORK}.ips": ["fe80::1%eth0/64"]},
        "network-ip",
        f"{NETWORK}.ips[0]",
        {f"{NETWORK}.ips": ["fe80::1/64"]},
    ),
    Broken(
        "a report of a bad share",
        REPORTED,
        {f"{STATUS}.shareID": "x"},
        "device-status-share",
        f"{STATUS}.shareID",
    ),
    Broken(
        "a report of no driver",
        REPORTED,
        {f"{STATUS}.driver": ""},
        "device-status-driver",
        f"{STATUS}.driver",
    ),
    Broken(
        "a report of a bad pool",
        REPORTED,
        {f"{STATUS}.pool": "a b"},
        "device-status-pool",
        f"{STATUS}.pool",
    ),
    Broken(
        "a report of a bad device",
        REPORTED,
        {f"{STATUS}.device": "a.b"},
        "device-status-device",
        f"{STATUS}.device",
    ),
)
