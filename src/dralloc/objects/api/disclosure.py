"""Redaction of each text of the API: the rule of a field stands in its type.

Numbers, truth values, quantities and literals say nothing about who owns a cluster and stay. Text stays only where
its type says so, ``Annotated[StrictStr, Public.DRIVER]``: a field without such a mark is dropped, like one that is not
modelled, and a test asks for a mark on every field that holds text. Points in time come first, as they are shifted.
"""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, StrictStr

from dralloc.objects.user_rules import ACROSS

__all__ = [
    "ADMIN_LABEL",
    "ANNOTATIONS",
    "EXTENDED_RESOURCE_ANNOTATION",
    "HOSTNAME_LABEL",
    "JOB_LABELS",
    "KEPT",
    "LABEL_REQUIREMENT",
    "LABEL_SELECTOR",
    "NAMESPACE_LABELS",
    "NODE_LABELS",
    "NODE_REQUIREMENT",
    "NODE_SELECTOR",
    "POD_CLAIM_ANNOTATION",
    "POD_LABELS",
    "VALUE_ANNOTATION",
    "WORKLOAD_ANNOTATION",
    "AttributeName",
    "Beside",
    "ByKey",
    "CelExpression",
    "ClaimName",
    "ClassName",
    "ContainerName",
    "CounterName",
    "DeviceName",
    "DriverName",
    "Dropped",
    "Effect",
    "Emptied",
    "GroupName",
    "ImageName",
    "LabelKey",
    "LabelName",
    "Mark",
    "Name",
    "NamespaceName",
    "NodeName",
    "Operator",
    "PodName",
    "PoolName",
    "PriorityName",
    "Public",
    "Refined",
    "Removed",
    "RequestId",
    "ResourceName",
    "SkippedOperation",
    "TaintKey",
    "TaintValue",
    "TemplateName",
    "Terms",
    "Text",
    "Time",
    "Timestamp",
    "Uid",
    "WireForm",
    "is_time",
]

# ----------------------------------------------------------------------------
# Points in time as the API reads them: RFC 3339, in the words of Go's ``time.Parse``.

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|[+-](\d\d):(\d\d))",
    re.ASCII,
)
_LEAP_YEAR: Final = 2000
"""Go knows a year 0, which is one, too."""


def is_time(text: str) -> bool:
    """Return whether a text is a point in time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second, zone_hour, zone_minute = (
        int(part or 0) for part in match.groups()
    )
    # Offsets of 24 hours and of 60 minutes are in use, and Go lets them through.
    return (
        1 <= month <= 12
        and 1 <= day <= monthrange(year or _LEAP_YEAR, month)[1]
        and hour < 24
        and minute < 60
        and second < 60
        and zone_hour <= 24
        and zone_minute <= 60
    )


def _read_time(text: str) -> str:
    """Return the text of a point in time.

    Raises
    ------
    ValueError
        It is none.
    """
    if is_time(text):
        return text
    raise ValueError(
        f'"{text}" is not a point in time as RFC 3339 has it, e.g. 2026-01-31T12:00:00Z'
    )


HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""On each namespace: its name."""
JOB_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
"""On the pods of a Job: its name."""
ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
"""On a namespace: whether its claims may ask for admin access."""
_NODE_NAME_FIELD: Final = "metadata.name"
_WELL_KNOWN: Final = frozenset(
    {
        *JOB_LABELS,
        ADMIN_LABEL,
        HOSTNAME_LABEL,
        NAMESPACE_LABEL,
        "app",
        "app.kubernetes.io/component",
        "app.kubernetes.io/instance",
        "app.kubernetes.io/name",
        "batch.kubernetes.io/job-completion-index",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node-role.kubernetes.io/control-plane",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
"""Labels that nodes and pods have everywhere (Kubernetes, "Well-Known Labels" and "Recommended Labels")."""
VALUE_ANNOTATION: Final = "dralloc.dev/value"
"""On a pod or claim: how much it is worth, a whole number (see ``--objective value``)."""
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""On a claim made from a template: the entry of the pod's ``spec.resourceClaims`` that it was made for."""
EXTENDED_RESOURCE_ANNOTATION: Final = (
    "resource.kubernetes.io/extended-resource-claim"
)
"""On a claim: ``"true"`` if it was made for the extended resources of the pod that controls it."""
WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/workload"
"""On pods: the Workload of Kueue that they were admitted with."""


class Name(Enum):
    """A name that is replaced, the same name by the same other name. The value is the word that this one starts with.

    A name that occurs in several places is replaced with the word of the first of them, in this order.
    """

    NODE = "node"
    POOL = "pool"
    DEVICE = "device"
    NAMESPACE = "namespace"
    CLAIM = "claim"
    TEMPLATE = "template"
    POD = "pod"
    OWNER = "owner"
    GROUP = "group"
    HOST = "host"
    QUOTA = "quota"
    RULE = "rule"
    UID = "uid"

    SLICE = "slice"
    CONTAINER = "container"
    GATE = "gate"
    IMAGE = "image"
    ADDRESS = "address"
    """Of a node, where a port of a container is on the node."""
    PRIORITY = "priority"
    RUNTIME = "runtime"
    KEY = "key"
    """Key of a label."""
    LABEL = "label"
    """Value of a label of a pod or namespace."""
    TERM = "term"
    """What stands in the place of a word of the API and is none."""


KEPT: Final[Mapping[Name, frozenset[str]]] = {
    Name.ADDRESS: frozenset({"0.0.0.0", "127.0.0.1", "::", "::1"}),
    Name.NAMESPACE: frozenset({"default"}),
    Name.KEY: _WELL_KNOWN | {_NODE_NAME_FIELD},
    Name.PRIORITY: frozenset(
        {"system-cluster-critical", "system-node-critical"}
    ),
}
"""Names that every cluster has; they stay."""


class Public(Enum):
    """Text that stays as it is. The value is what the documentation calls it."""

    DRIVER = "names of drivers"
    CLASS = "names of device classes"
    ATTRIBUTE = "names of attributes and capacities"
    REQUEST = "names of requests, and of the entries of a pod's claims"
    RESOURCE = (
        "names of resources in quotas, pods, nodes, slices and device classes"
    )
    TAINT = "keys of taints"
    ACROSS = "constraints over several claims, in annotations"
    VALUE = "values of pods and claims, in annotations"


class Text(Enum):
    """Text that stays but for the names and identifiers in it. The value is what the documentation calls it."""

    ATTRIBUTE = "texts and versions that are values of attributes"
    COUNTER = "names of counter sets, of their counters and groups, and of binding conditions"
    TAINT = "values of taints"
    LABEL = "values of labels of nodes, for well-known labels and those that a selector asks for"
    CEL = "CEL expressions, without comments"


class LabelKey(Enum):
    """Key of a label: a `Name.KEY` if it stays."""

    ASKED = "named by a selector"
    KEPT = "stays"
    IF_ASKED = (
        "stays with its value if it is well known or some selector names it"
    )


class Removed(Enum):
    """A text that does not stay."""

    WHOLE = "dropped"
    CONTENT = "emptied"
    """Becomes an empty object."""
    UNSAID = "not said"
    """Dropped, because the field says nothing."""


@dataclass(frozen=True)
class Timestamp:
    """A point in time (RFC 3339)."""


@dataclass(frozen=True)
class Terms:
    """Words of the API, of which the given ones are known; another one counts as `Name.TERM`."""

    words: frozenset[str]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", frozenset(words))


Mark = Name | Public | Text | Removed | Timestamp | LabelKey | Terms
"""What a text is."""


@dataclass(frozen=True)
class ByKey:
    """A map whose values have rules of their own under some keys; what the other keys and their values are."""

    special: Mapping[str, Mark]
    key: Mark = Removed.WHOLE
    value: Mark = Removed.WHOLE


@dataclass(frozen=True)
class Beside:
    """Texts to which the rule applies that a map would have under the text in another field of the same object."""

    field: str
    rules: ByKey


@dataclass(frozen=True)
class Refined:
    """Fields of the object that follow another rule here than they do in general."""

    fields: Mapping[str, Mark | ByKey]

    def __init__(self, **fields: Mark | ByKey) -> None:
        object.__setattr__(self, "fields", fields)


@dataclass(frozen=True)
class WireForm:
    """The model of what a value looks like on the wire."""

    model: Any


ANNOTATIONS: Final = ByKey(
    {
        ACROSS: Public.ACROSS,
        VALUE_ANNOTATION: Public.VALUE,
        POD_CLAIM_ANNOTATION: Public.REQUEST,
        EXTENDED_RESOURCE_ANNOTATION: Terms("true", "false"),
        WORKLOAD_ANNOTATION: Name.OWNER,
    }
)
NODE_SELECTOR: Final = ByKey(
    {HOSTNAME_LABEL: Name.HOST}, LabelKey.ASKED, Text.LABEL
)
"""Labels of nodes that are asked for."""
NODE_LABELS: Final = ByKey(
    {HOSTNAME_LABEL: Name.HOST}, LabelKey.IF_ASKED, Text.LABEL
)
NODE_REQUIREMENT: Final = Beside(
    "key",
    ByKey(
        {HOSTNAME_LABEL: Name.HOST, _NODE_NAME_FIELD: Name.NODE},
        value=Text.LABEL,
    ),
)
"""Values of a condition on a label or field of a node."""
_OF_JOBS: Final = dict.fromkeys(JOB_LABELS, Name.OWNER)
POD_LABELS: Final = ByKey(_OF_JOBS, LabelKey.KEPT, Name.LABEL)
NAMESPACE_LABELS: Final = ByKey(
    {NAMESPACE_LABEL: Name.NAMESPACE, ADMIN_LABEL: Terms("true", "false")},
    LabelKey.IF_ASKED,
    Name.LABEL,
)
LABEL_SELECTOR: Final = ByKey(
    {NAMESPACE_LABEL: Name.NAMESPACE, **_OF_JOBS},
    LabelKey.ASKED,
    Name.LABEL,
)
"""Labels of pods or namespaces that are asked for."""
LABEL_REQUIREMENT: Final = Beside("key", LABEL_SELECTOR)

# The kinds of text that the fields of the API hold.
AttributeName = Annotated[StrictStr, Public.ATTRIBUTE]
ClassName = Annotated[StrictStr, Public.CLASS]
DriverName = Annotated[StrictStr, Public.DRIVER]
RequestId = Annotated[StrictStr, Public.REQUEST]
ResourceName = Annotated[StrictStr, Public.RESOURCE]
TaintKey = Annotated[StrictStr, Public.TAINT]

CelExpression = Annotated[StrictStr, Text.CEL]
CounterName = Annotated[StrictStr, Text.COUNTER]
TaintValue = Annotated[StrictStr, Text.TAINT]

ClaimName = Annotated[StrictStr, Name.CLAIM]
ContainerName = Annotated[StrictStr, Name.CONTAINER]
DeviceName = Annotated[StrictStr, Name.DEVICE]
GroupName = Annotated[StrictStr, Name.GROUP]
LabelName = Annotated[StrictStr, LabelKey.ASKED]
ImageName = Annotated[StrictStr, Name.IMAGE]
NamespaceName = Annotated[StrictStr, Name.NAMESPACE]
NodeName = Annotated[StrictStr, Name.NODE]
PodName = Annotated[StrictStr, Name.POD]
PoolName = Annotated[StrictStr, Name.POOL]
PriorityName = Annotated[StrictStr, Name.PRIORITY]
TemplateName = Annotated[StrictStr, Name.TEMPLATE]
Uid = Annotated[StrictStr, Name.UID]

Effect = Annotated[
    StrictStr, Terms("NoSchedule", "PreferNoSchedule", "NoExecute", "None")
]
Operator = Annotated[
    StrictStr, Terms("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
]
SkippedOperation = Annotated[
    StrictStr, Terms("NodePrepareResources", "NodeUnprepareResources", "*")
]
Time = Annotated[StrictStr, AfterValidator(_read_time), Timestamp()]

Dropped = Annotated[Any, Removed.WHOLE]
Emptied = Annotated[Any, Removed.CONTENT]
