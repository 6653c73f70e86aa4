"""How Kubernetes 1.36 spells what devices take of their node (KEP-5517); told by its fields, in any API version.

=============================================  ==========================================================
1.36, ``nodeAllocatableResourceMappings``      1.37, ``nodeAllocatableResources.<resource>.mapping``
=============================================  ==========================================================
``capacityKey``, ``allocationMultiplier``      ``capacityKey``, ``capacityMultiplier``
``allocationMultiplier`` alone                 ``deviceMultiplier``
=============================================  ==========================================================

The API server of 1.36 fills in 1 for a multiplier that is absent (``SetDefaults_Device``).
"""

from typing import Any, Final

from dralloc.objects.api.versions.walk import Json, change, renamed

__all__ = ["KEP5517_NAMES", "from_kep5517_alpha"]

_OLD: Final = "nodeAllocatableResourceMappings"
_FIELD: Final = {_OLD: "nodeAllocatableResources"}
_OF_CAPACITY: Final = {"allocationMultiplier": "capacityMultiplier"}
_OF_DEVICE: Final = {"allocationMultiplier": "deviceMultiplier"}

KEP5517_NAMES: Final = (_FIELD, _OF_CAPACITY, _OF_DEVICE)
"""What was called otherwise, by the place where it occurs."""


def from_kep5517_alpha(kind: str, raw: Json) -> Json:
    """Convert an object of the given kind to v1 spelling; the same object when it does not use the older one."""
    return (
        change(raw, "spec.devices[]", _mapped_device)
        if kind == "ResourceSlice"
        else raw
    )


def _mapped_device(raw: Json) -> Json:
    return (
        renamed(change(raw, _OLD + "{}", _mapped_resource), _FIELD)
        if _OLD in raw
        else raw
    )


def _mapped_resource(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    names = _OF_CAPACITY if raw.get("capacityKey") else _OF_DEVICE
    return {"mapping": renamed({"allocationMultiplier": "1", **raw}, names)}
