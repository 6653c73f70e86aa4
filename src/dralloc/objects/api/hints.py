"""What to do about a field that is not known, or whose value has another form: older versions' shapes, and slips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dralloc.objects.api.base import ApiObject
from dralloc.objects.api.schema import Entries, Items, Properties, wire_schema
from dralloc.objects.api.versions import EXACT
from dralloc.objects.errors import did_you_mean

__all__ = ["form_hint", "name_hint"]

_MOVED: Final[Mapping[tuple[str, str], str]] = {
    ("devices", "basic"): "what v1beta1 has below basic stands in "
    "the device itself in v1",
    ("spec", "resourceClassName"): "that was v1alpha2; requests of "
    "spec.devices name a deviceClassName",
    ("spec", "parametersRef"): "that was v1alpha2; parameters are in "
    "spec.devices.config",
    ("spec", "controller"): "that was the API before structured parameters",
    ("spec", "suitableNodes"): "the class of a device has had no nodes since "
    "v1beta1",
}
"""Fields of older versions by the field or list they were in, and where v1 has what they said."""


def name_hint(
    model: type[ApiObject], location: Sequence[str | int], body: Any
) -> str:
    """Return what to add to "unknown field": where v1 has it, or what it may be meant for.

    Parameters
    ----------
    location
        The steps to the field, as v1 has them.
    body
        The object in the form of v1.
    """
    *around, name = location
    words = [step for step in around if isinstance(step, str)]
    outer = words[-1] if words else ""
    if outer == "requests" and name in EXACT:
        return ": it stands below exactly in v1"
    if (outer, str(name)) in _MOVED:
        return f": {_MOVED[outer, str(name)]}"
    known = _fields_at(model, around)
    there = _part(body, around)
    absent = known.difference(there if isinstance(there, dict) else ())
    return did_you_mean(str(name), absent)


def form_hint(location: Sequence[str | int], value: object) -> str:
    """Return what to add where a value has another type than v1 asks for."""
    in_capacity = len(location) > 1 and location[-2] == "capacity"
    if in_capacity and isinstance(value, str | int):
        return (
            f": v1 has {{value: {value}}}, where v1alpha3 has the amount alone"
        )
    if location and location[-1] == "requests" and isinstance(value, str):
        return f": write [{value}]"
    return ""


def _fields_at(
    model: type[ApiObject], location: Sequence[str | int]
) -> frozenset[str]:
    """Return the names of the fields of what lies at a place."""
    schema: Any = wire_schema(model)
    for step in location:
        if isinstance(schema, Properties):
            schema = schema.by_name.get(str(step))
        elif isinstance(schema, Items):
            schema = schema.item
        elif isinstance(schema, Entries):
            schema = schema.value
    named = schema.by_name if isinstance(schema, Properties) else ()
    return frozenset(named)


def _part(body: Any, location: Sequence[str | int]) -> Any:
    for step in location:
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return None
    return body
