"""The alpha spelling of KEP-5075, in use before the API was merged; told by its fields, in any API version.

================================================  ====================================
alpha                                             v1
================================================  ====================================
``capacity.<name>.sharingPolicy``                 ``requestPolicy``
``validRange.minimum``, ``maximum``, ``chunkSize``  ``min``, ``max``, ``step``
``capacityRequests.minimum``                      ``capacity.requests``
``consumedCapacities``                            ``consumedCapacity``
``status.devices[].device: eth1/0d274f``          ``device: eth1``, ``shareID: 0d274f``
================================================  ====================================

In a slice that uses this spelling a capacity without policy is never consumed (KEP-5075 alpha, "API enhancement").
"""

from typing import Any, Final

from dralloc.objects.api.capacity import NOT_CONSUMABLE
from dralloc.objects.api.versions.walk import CLAIM_SPECS, Json, change, renamed

__all__ = ["KEP5075_NAMES", "from_kep5075_alpha"]

_POLICY: Final = {"sharingPolicy": "requestPolicy"}
_RANGE: Final = {"minimum": "min", "maximum": "max", "chunkSize": "step"}
_DETAILS: Final = {"capacityRequests": "capacity"}
_REQUIREMENTS: Final = {"minimum": "requests"}
_RESULT: Final = {"consumedCapacities": "consumedCapacity"}

KEP5075_NAMES: Final = (_POLICY, _RANGE, _DETAILS, _REQUIREMENTS, _RESULT)
"""What was called otherwise, by the place where it occurs."""


def from_kep5075_alpha(kind: str, raw: Json) -> Json:
    """Convert an object of the given kind to v1 spelling; the same object when it does not use the alpha spelling."""
    if kind == "ResourceSlice":
        return (
            change(raw, "spec.devices[]", _shared_device)
            if _uses_sharing_policy(raw)
            else raw
        )
    if kind in CLAIM_SPECS:
        raw = change(raw, f"{CLAIM_SPECS[kind]}.devices.requests[]", _capacity_request)
    if kind == "ResourceClaim":
        raw = change(
            raw,
            "status.allocation.devices.results[]",
            lambda one: renamed(one, _RESULT),
        )
        raw = change(raw, "status.devices[]", _device_status)
    return raw


def _uses_sharing_policy(raw: Json) -> bool:
    spec = raw.get("spec")
    devices = spec.get("devices") if isinstance(spec, dict) else None
    listed = (
        [one.get("capacity") for one in devices if isinstance(one, dict)]
        if isinstance(devices, list)
        else []
    )
    capacities = (
        capacity
        for each in listed
        if isinstance(each, dict)
        for capacity in each.values()
    )
    return any(
        isinstance(capacity, dict) and "sharingPolicy" in capacity
        for capacity in capacities
    )


def _shared_device(raw: Json) -> Json:
    shareable = raw.get("allowMultipleAllocations") is True
    return change(
        raw, "capacity{}", lambda capacity: _capacity(capacity, shareable=shareable)
    )


def _capacity(raw: Any, *, shareable: bool) -> Any:
    if not isinstance(raw, dict):
        return raw
    if "sharingPolicy" not in raw:
        return (
            {**raw, NOT_CONSUMABLE: False}
            if shareable and "requestPolicy" not in raw
            else raw
        )
    return change(
        renamed(raw, _POLICY),
        "requestPolicy.validRange",
        lambda part: renamed(part, _RANGE),
    )


def _capacity_request(raw: Json) -> Json:
    return change(change(raw, "exactly", _details), "firstAvailable[]", _details)


def _details(raw: Any) -> Any:
    return change(
        renamed(raw, _DETAILS), "capacity", lambda part: renamed(part, _REQUIREMENTS)
    )


def _device_status(raw: Json) -> Json:
    device, slash, share = str(raw.get("device", "")).partition("/")
    return {**raw, "device": device, "shareID": share} if slash else raw
