"""Rules about taints of devices and what tolerates them (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.lint.validate.checks import (
    JUDGED,
    choice,
    dns_label,
    driver_name,
    form,
    label_name,
    label_value,
    limit,
    pool_name,
    required,
    told,
)
from dralloc.lint.validate.rule import (
    DETAILS,
    DEVICES,
    RESULTS,
    TAINT_RULES,
    Check,
    Issue,
    errors,
    warnings,
)
from dralloc.objects.api import DeviceTaint, DeviceToleration

__all__ = ["DEVICE_TAINT_RULES"]

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
        TAINT_RULES / "spec.deviceSelector",
        (
            "taint-rule-driver",
            form("driver", driver_name),
            "A driver's name is a DNS subdomain of at most 63 characters.",
        ),
        (
            "taint-rule-pool",
            form("pool", pool_name),
            "A pool's name is DNS subdomains joined by slashes.",
        ),
        (
            "taint-rule-device",
            form("device", dns_label),
            "A device's name is a DNS label.",
        ),
        origin="resource.k8s.io validation, validateDeviceTaintSelector; KEP-5055",
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
