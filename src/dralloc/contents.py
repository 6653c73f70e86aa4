"""What a cluster holds, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dralloc.api import ResourceClaim, ResourceSlice
from dralloc.errors import Finding
from dralloc.report import Line, Part, Table

__all__ = ["contents"]


def contents(
    slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim], findings: Iterable[Finding]
) -> Iterator[Part]:
    """What drivers publish, claims by namespace, and what is remarkable."""
    published: dict[str, list[ResourceSlice]] = {}
    for one in slices:
        published.setdefault(one.spec.driver, []).append(one)
    rows = [
        (
            driver,
            str(len({one.spec.pool.name for one in found})),
            str(len(found)),
            str(sum(len(one.spec.devices) for one in found)),
        )
        for driver, found in published.items()
    ]
    yield Table("Published by drivers", ("driver", ">pools", ">slices", ">devices"), rows)
    allocated, every = Counter[str](), Counter[str]()
    for claim in claims:
        every[claim.key.namespace] += 1
        allocated[claim.key.namespace] += claim.is_allocated
    counts = [(name, str(number), str(allocated[name])) for name, number in every.items()]
    yield Table("Claims", ("namespace", ">claims", ">allocated"), counts)
    yield from (Line(f"warning: {finding}", "yellow") for finding in findings)
