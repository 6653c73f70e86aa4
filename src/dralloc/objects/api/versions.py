"""Older wire forms of ``resource.k8s.io``, each turned into v1 by a function on plain data.

Such a function gets the kind and the object as it was written and returns an object that shares what did not change.
What it does not know it leaves alone, for validation to report. `written_path` is the way back.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from dralloc.objects.api.slices import NOT_CONSUMABLE

__all__ = [
    "CONVERSIONS",
    "EXACT",
    "KEP5075_NAMES",
    "Json",
    "Path",
    "from_kep5075_alpha",
    "from_kep5517_alpha",
    "misplaced",
    "spellings",
    "written_path",
]

# ----------------------------------------------------------------------------
# Changing parts of plain data without touching the original.

Json = dict[str, Any]
Path = tuple[str | int, ...]
T = TypeVar("T")

CLAIM_SPECS: Final = {
    "ResourceClaim": "spec",
    "ResourceClaimTemplate": "spec.spec",
}
"""Where a kind of object has the specification of a claim."""


def change(raw: T, path: str, function: Callable[[Any], Any]) -> T:
    """Return a copy of `raw` with what lies at a place changed; `raw` itself when there is no such part.

    Parameters
    ----------
    path
        Names of fields with dots between them. ``[]`` behind one stands for all objects in a list, ``{}`` for all
        values of a map.
    """
    step, _, path_below = path.partition(".")
    key = step.rstrip("[]{}")
    if not isinstance(raw, dict) or key not in raw:
        return raw

    def below(part: Any) -> Any:
        return (
            change(part, path_below, function) if path_below else function(part)
        )

    part = raw[key]
    if key == step:
        changed = below(part)
    elif step.endswith("[]"):
        changed = (
            [below(item) if isinstance(item, dict) else item for item in part]
            if isinstance(part, list)
            else part
        )
    else:
        changed = (
            {name: below(item) for name, item in part.items()}
            if isinstance(part, dict)
            else part
        )
    return raw if changed is part else {**raw, key: changed}  # type: ignore[return-value]


def renamed(raw: T, names: Mapping[str, str]) -> T:
    """Return a copy with keys renamed, in order. A key whose new name is taken stays, to be reported as unknown."""
    if not isinstance(raw, dict) or not names.keys() & raw.keys():
        return raw
    return {  # type: ignore[return-value]
        names[key] if key in names and names[key] not in raw else key: value
        for key, value in raw.items()
    }


# ----------------------------------------------------------------------------
# ``resource.k8s.io/v1beta1`` and v1alpha3: devices under ``basic``, requests without
# ``exactly`` (KEP-4381, KEP-4816).
#
# Capacities may be plain quantities (``memory: 16Gi``), as in v1alpha3 and in the
# text of KEP-4381.

EXACT: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "capacityRequests",
)
"""What v1beta1 has in a request, and v1 below ``exactly``."""
_UNSET: Final = {
    "deviceClassName": (str, ""),
    "allocationMode": (str, ""),
    "count": (int, 0),
}
"""Which of these are absent with a zero value, too, as they are no pointers in Go."""


def _from_v1beta1(kind: str, raw: Json) -> Json:
    """Convert an object of the given kind to v1."""
    if kind == "ResourceSlice":
        return change(raw, "spec.devices[]", _flat_device)
    if kind in CLAIM_SPECS:
        return change(
            raw, f"{CLAIM_SPECS[kind]}.devices.requests[]", _nested_request
        )
    return raw


def _flat_device(raw: Json) -> Json:
    basic = raw.get("basic")
    if isinstance(basic, dict):
        raw = {
            **{key: value for key, value in raw.items() if key != "basic"},
            **basic,
        }
    return change(
        raw,
        "capacity{}",
        lambda part: part if isinstance(part, dict) else {"value": part},
    )


def _nested_request(raw: Json) -> Json:
    exact = {key: value for key, value in raw.items() if key in EXACT}
    if not exact or "exactly" in raw:
        return raw
    rest = {key: value for key, value in raw.items() if key not in EXACT}
    # Beside a list of alternatives, fields that say nothing make no request of their own. Source:
    # ``hasAnyMainRequestFieldsSet`` of ``pkg/apis/resource/v1beta1``.
    if rest.get("firstAvailable") and all(
        value is None or _UNSET.get(key) == (type(value), value)
        for key, value in exact.items()
    ):
        return rest
    return {**rest, "exactly": exact}


def misplaced(kind: str, raw: Json) -> list[tuple[Path, list[str]]]:
    """Return the requests of a v1 object that have the form of v1beta1, with the fields that show it."""
    if kind not in CLAIM_SPECS:
        return []
    steps = (*CLAIM_SPECS[kind].split("."), "devices", "requests")
    requests: Any = raw
    for step in steps:
        if not isinstance(requests, dict):
            return []
        requests = requests.get(step)
    if not isinstance(requests, list):
        return []
    exact_fields = map(_exact_fields_of_flat, requests)
    return [
        ((*steps, request_index), fields)
        for request_index, fields in enumerate(exact_fields)
        if fields
    ]


def _exact_fields_of_flat(request: Any) -> list[str]:
    """Return the fields of a request that belong below ``exactly``, if they stand directly in it."""
    if not isinstance(request, dict):
        return []
    if request.keys() & {"exactly", "firstAvailable"}:
        return []
    return [name for name in request if name in EXACT]


# ----------------------------------------------------------------------------
# The alpha spelling of KEP-5075, in use before the API was merged; told by its
# fields, in any API version.
#
# ================================================  ====================================
# alpha                                             v1
# ================================================  ====================================
# ``capacity.<name>.sharingPolicy``                 ``requestPolicy``
# ``validRange.minimum``, ``maximum``, ``chunkSize``  ``min``, ``max``, ``step``
# ``capacityRequests.minimum``                      ``capacity.requests``
# ``consumedCapacities``                            ``consumedCapacity``
# ``status.devices[].device: eth1/0d274f``          ``device: eth1``, ``shareID: 0d274f``
# ================================================  ====================================
#
# In a slice that uses this spelling a capacity without policy is never consumed
# (KEP-5075 alpha, "API enhancement").

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
        raw = change(
            raw, f"{CLAIM_SPECS[kind]}.devices.requests[]", _capacity_request
        )
    if kind == "ResourceClaim":
        raw = change(
            raw,
            "status.allocation.devices.results[]",
            lambda result: renamed(result, _RESULT),
        )
        raw = change(raw, "status.devices[]", _device_status)
    return raw


def _uses_sharing_policy(raw: Json) -> bool:
    spec = raw.get("spec")
    devices = spec.get("devices") if isinstance(spec, dict) else None
    listed = (
        [
            device.get("capacity")
            for device in devices
            if isinstance(device, dict)
        ]
        if isinstance(devices, list)
        else []
    )
    capacities = (
        capacity
        for capacities_of_device in listed
        if isinstance(capacities_of_device, dict)
        for capacity in capacities_of_device.values()
    )
    return any(
        isinstance(capacity, dict) and "sharingPolicy" in capacity
        for capacity in capacities
    )


def _shared_device(raw: Json) -> Json:
    shareable = raw.get("allowMultipleAllocations") is True
    return change(
        raw,
        "capacity{}",
        lambda capacity: _capacity(capacity, shareable=shareable),
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
    return change(
        change(raw, "exactly", _details), "firstAvailable[]", _details
    )


def _details(raw: Any) -> Any:
    return change(
        renamed(raw, _DETAILS),
        "capacity",
        lambda part: renamed(part, _REQUIREMENTS),
    )


def _device_status(raw: Json) -> Json:
    device, slash, share = str(raw.get("device", "")).partition("/")
    return {**raw, "device": device, "shareID": share} if slash else raw


# ----------------------------------------------------------------------------
# How Kubernetes 1.36 spells what devices take of their node (KEP-5517); told by its
# fields, in any API version.
#
# =============================================  ==========================================================
# 1.36, ``nodeAllocatableResourceMappings``      1.37, ``nodeAllocatableResources.<resource>.mapping``
# =============================================  ==========================================================
# ``capacityKey``, ``allocationMultiplier``      ``capacityKey``, ``capacityMultiplier``
# ``allocationMultiplier`` alone                 ``deviceMultiplier``
# =============================================  ==========================================================
#
# The API server of 1.36 fills in 1 for a multiplier that is absent
# (``SetDefaults_Device``).

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


_RENAMED: Final = (*KEP5075_NAMES, *KEP5517_NAMES)
_ALPHA_NAMES: Final = [
    (new, old) for names in _RENAMED for old, new in names.items()
]
_ADDED: Final = ("exactly", "mapping")
"""Steps that older forms do not have."""


def _as_it_is(_kind: str, raw: Json) -> Json:
    """Return the object as it is: v1 took over v1beta2 without a change (Kubernetes 1.34)."""
    return raw


CONVERSIONS: Final[Mapping[str, Callable[[str, Json], Json]]] = {
    "v1": _as_it_is,
    "v1beta2": _as_it_is,
    "v1beta1": _from_v1beta1,
    "v1alpha3": _from_v1beta1,
}
"""For each supported version of the API group, how an object of a kind becomes v1."""


def written_path(raw: Json, path: Path) -> Path:
    """Return the place, in the object as it was written, of what v1 has under `path`."""
    written: list[str | int] = []
    part: Any = raw
    for step in path:
        if isinstance(part, str | int | float):
            break
        if isinstance(part, dict) and step not in part:
            if step in _ADDED:
                continue
            if isinstance(part.get("basic"), dict):
                written.append("basic")
                part = part["basic"]
        name = _name(part, step)
        written.append(name)
        part = _part(part, name)
    return tuple(written)


def spellings(name: str) -> Iterator[tuple[str, ...]]:
    """Yield how a field of v1 may be written: by its name, by older names, nested, or not at all."""
    yield (name,)
    for new, old in _ALPHA_NAMES:
        if new == name:
            yield (old,)
    yield ("basic", name)
    if name in _ADDED:
        yield ()


def _name(part: Any, step: str | int) -> str | int:
    if not isinstance(part, dict) or step in part:
        return step
    return next(
        (old for new, old in _ALPHA_NAMES if new == step and old in part), step
    )


def _part(raw: Any, step: str | int) -> Any:
    try:
        return raw[step]
    except (KeyError, IndexError, TypeError):
        return None
