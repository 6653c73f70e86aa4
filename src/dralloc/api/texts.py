"""The kinds of text that the fields of the API hold, each with its rule for redaction."""

from typing import Annotated, Any

from pydantic import StrictStr

from dralloc.api.disclosure import LabelKey, Name, Public, Removed, Terms, Text, Timestamp

__all__ = [
    "AttributeName",
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
    "LabelName",
    "NamespaceName",
    "NodeName",
    "Operator",
    "PodName",
    "PoolName",
    "PriorityName",
    "RequestId",
    "ResourceName",
    "SkippedOperation",
    "TaintKey",
    "TaintValue",
    "TemplateName",
    "Time",
    "Uid",
]

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

Effect = Annotated[StrictStr, Terms("NoSchedule", "PreferNoSchedule", "NoExecute", "None")]
Operator = Annotated[StrictStr, Terms("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")]
SkippedOperation = Annotated[StrictStr, Terms("NodePrepareResources", "NodeUnprepareResources", "*")]
Time = Annotated[StrictStr, Timestamp()]

Dropped = Annotated[Any, Removed.WHOLE]
Emptied = Annotated[Any, Removed.CONTENT]
