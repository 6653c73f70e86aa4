"""``resource.k8s.io/v1beta1`` and v1alpha3: devices under ``basic``, requests without ``exactly`` (KEP-4381, KEP-4816).

Capacities may be plain quantities (``memory: 16Gi``), as in v1alpha3 and in the text of KEP-4381.
"""

from typing import Final

from dralloc.objects.api.versions.walk import CLAIM_SPECS, Json, change

__all__ = ["from_v1beta1"]

_EXACT: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "capacityRequests",
)


def from_v1beta1(kind: str, raw: Json) -> Json:
    """Convert an object of the given kind to v1."""
    if kind == "ResourceSlice":
        return change(raw, "spec.devices[]", _flat_device)
    if kind in CLAIM_SPECS:
        return change(raw, f"{CLAIM_SPECS[kind]}.devices.requests[]", _nested_request)
    return raw


def _flat_device(raw: Json) -> Json:
    basic = raw.get("basic")
    if isinstance(basic, dict):
        raw = {**{key: value for key, value in raw.items() if key != "basic"}, **basic}
    return change(
        raw,
        "capacity{}",
        lambda part: part if isinstance(part, dict) else {"value": part},
    )


def _nested_request(raw: Json) -> Json:
    exact = {key: value for key, value in raw.items() if key in _EXACT}
    if not exact or "exactly" in raw:
        return raw
    return {
        **{key: value for key, value in raw.items() if key not in _EXACT},
        "exactly": exact,
    }
