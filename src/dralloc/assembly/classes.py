"""Classes that are asked for, but not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from dralloc.api import ApiObject, ResourceClaim, ResourceClaimTemplate

__all__ = ["missing_classes"]


def missing_classes(objects: Iterable[ApiObject], known: Collection[str]) -> Iterator[tuple[ApiObject, str, str]]:
    """Each class that is missing once: the first object that names it, the path, and what is wrong."""
    missing: dict[str, tuple[ApiObject, str]] = {}
    times: Counter[str] = Counter()
    for one in objects:
        for name, path in _classes_named_by(one):
            if name not in known:
                missing.setdefault(name, (one, path))
                times[name] += 1
    for name, (one, path) in missing.items():
        more = f"; {times[name]} requests name it" if times[name] > 1 else ""
        yield one, path, f'DeviceClass "{name}" not found{more}'


def _classes_named_by(one: ApiObject) -> Iterator[tuple[str, str]]:
    """The classes that something unallocated asks for, with the paths of their names."""
    if isinstance(one, ResourceClaim) and one.status.allocation is None:
        spec, path = one.spec, "spec"
    elif isinstance(one, ResourceClaimTemplate):
        spec, path = one.spec.spec, "spec.spec"
    else:
        return
    for number, request in enumerate(spec.devices.requests):
        at = f"{path}.devices.requests[{number}]"
        if request.exactly:
            yield request.exactly.device_class_name, f"{at}.exactly.deviceClassName"
        for rank, alternative in enumerate(request.first_available):
            yield alternative.device_class_name, f"{at}.firstAvailable[{rank}].deviceClassName"
