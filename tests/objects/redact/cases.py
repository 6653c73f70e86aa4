"""Recorded cases as objects on the wire."""

from __future__ import annotations

from dralloc.lint.conformance.cases import Json as Case
from dralloc.lint.conformance.cases import read_allocation_case
from dralloc.objects.api import ApiObject, to_wire
from wire import Json


def documents(case: Case) -> list[Json]:
    """The objects of a case."""
    cluster = read_allocation_case(case).cluster
    classes = cluster.classes.values()
    objects: list[ApiObject] = [
        *cluster.nodes,
        *classes,
        *cluster.slices,
        *cluster.claims,
        *cluster.pods,
    ]
    return [to_wire(api_object) for api_object in objects]
