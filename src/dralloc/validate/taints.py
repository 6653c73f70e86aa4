"""Rules about taints of devices and what tolerates them (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.api import Device, DeviceTaint, DeviceToleration
from dralloc.validate.names import label_name, label_value
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named, warning
from dralloc.validate.walk import Details, details, devices, statuses

__all__ = ["RULES"]

MAX_TAINTS: Final = 16
MAX_TOLERATIONS: Final = 16
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")


def _taints(scene: Scene) -> Iterator[Part[DeviceTaint]]:
    for owner, path, device in devices(scene):
        for index, taint in enumerate(device.taints):
            yield Part(owner, f"{path}.taints[{index}]", taint)
    for rule in scene.cluster.taint_rules:
        yield Part(rule, "spec.taint", rule.spec.taint)


def _tolerations(scene: Scene) -> Iterator[Part[DeviceToleration]]:
    """The tolerations of requests, and of the results that repeat them."""
    for owner, path, request in details(scene):
        for index, toleration in enumerate(request.tolerations):
            yield Part(owner, f"{path}.tolerations[{index}]", toleration)
    for owner, path, status in statuses(scene):
        for number, result in enumerate(status.allocation.devices.results if status.allocation else ()):
            for index, toleration in enumerate(result.tolerations):
                yield Part(owner, f"{path}.allocation.devices.results[{number}].tolerations[{index}]", toleration)


def _limit(device: Device, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_TAINTS, device.taints, f"{at}.taints", "taints")


def _key(taint: DeviceTaint, at: str) -> Iterator[Issue]:
    yield from named(taint.key, f"{at}.key", label_name)


def _value(one: DeviceTaint, at: str) -> Iterator[Issue]:
    if reason := label_value(one.value):
        yield Issue(f"{at}.value", f'"{one.value}" {reason}')


def _effect(taint: DeviceTaint, at: str) -> Iterator[Issue]:
    if not taint.effect:
        yield Issue(f"{at}.effect", "is required")
    else:
        yield from _known_effect(taint, at)


def _known_effect(one: DeviceTaint | DeviceToleration, at: str) -> Iterator[Issue]:
    if one.effect and one.effect not in _EFFECTS:
        yield Issue(f"{at}.effect", f'"{one.effect}" is not one of {", ".join(_EFFECTS)}')


def _toleration_limit(request: Details, at: str) -> Iterator[Issue]:
    yield from at_most(MAX_TOLERATIONS, request.tolerations, f"{at}.tolerations", "tolerations")


def _toleration_key(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if toleration.key:
        yield from named(toleration.key, f"{at}.key", label_name)


def _toleration_value(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if toleration.operator != "Exists" and (reason := label_value(toleration.value)):
        yield Issue(f"{at}.value", f'"{toleration.value}" {reason}')


def _exists(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if toleration.operator == "Exists" and toleration.value:
        yield Issue(f"{at}.value", "must be empty for the operator Exists")


def _no_key(toleration: DeviceToleration, at: str) -> Iterator[Issue]:
    if not toleration.key and toleration.operator != "Exists":
        yield Issue(f"{at}.operator", "must be Exists if there is no key: no taint has an empty key")


RULES: Final = (
    error("taint-limit", devices, _limit, "A device has at most 16 taints."),
    error("taint-key", _taints, _key, "A taint's key has the form of a label key."),
    error("taint-value", _taints, _value, "A taint's value has the form of a label value."),
    error("taint-effect", _taints, _effect, "A taint's effect is None, NoSchedule or NoExecute."),
    error("toleration-key", _tolerations, _toleration_key, "A toleration's key has the form of a label key."),
    error("toleration-value", _tolerations, _toleration_value, "A toleration's value has the form of a label value."),
    error("toleration-exists", _tolerations, _exists, "With Exists there is no value."),
    error("toleration-effect", _tolerations, _known_effect, "An effect is None, NoSchedule or NoExecute, or absent."),
    warning(
        "toleration-limit",
        details,
        _toleration_limit,
        "A request has at most 16 tolerations, as the API documents without checking it.",
        "resource.k8s.io types, DeviceTolerationsMaxLength",
    ),
    warning(
        "toleration-no-key",
        _tolerations,
        _no_key,
        "A toleration without key tolerates something only with Exists.",
        "resource.k8s.io types, DeviceToleration",
    ),
)
