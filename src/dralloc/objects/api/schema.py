"""The paths of texts in objects, as the models of the API have them, and hints for unknown fields.

What a model does not know, and what is of another type than the model says, is left out. Objects of which controllers
make pods have models of another form than their own, so that their kinds say what is where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from dralloc.objects.api.base import INT64, ApiObject, ObjectMeta
from dralloc.objects.api.disclosure import (
    Beside,
    ByKey,
    LabelKey,
    Mark,
    Name,
    Public,
    Refined,
    Removed,
    Terms,
    Text,
    Timestamp,
    WireForm,
    is_time,
)
from dralloc.objects.api.owners import ENDED, PodOwner
from dralloc.objects.api.versions import EXACT, KEP5075_NAMES
from dralloc.objects.api.workloads import PodTemplate
from dralloc.objects.errors import QuantityError, did_you_mean
from dralloc.objects.quantity import Quantity, parse_quantity

__all__ = [
    "ABSENT",
    "Leaf",
    "form_hint",
    "is_quantity",
    "name_hint",
    "parts",
    "rebuilt",
    "wire_schema",
]

ABSENT: Final = object()
"""What a text turns into that leaves no trace."""

Leaf = Callable[[Any, str], Any]
"""What becomes of a text with a mark."""


@dataclass(frozen=True)
class Properties:
    """The schema of an object: that of each field, by its name on the wire."""

    by_name: Mapping[str, Schema]


@dataclass(frozen=True)
class Items:
    """The schema of a list: that of its items."""

    item: Schema


@dataclass(frozen=True)
class Entries:
    """The schema of a map: those of its keys and values; `special` keys stay and have values of their own.

    Where the API takes a list as well, that is in its items.
    """

    special: Mapping[str, Schema]
    key: Schema
    value: Schema


Schema = Mark | Beside | Properties | Items | Entries | type


@cache
def _schema_of(model: Any) -> Properties:
    """Return the schema of a model's objects, in the alpha spelling of KEP-5075, too."""
    hints = get_type_hints(model, include_extras=True)
    if issubclass(model, BaseModel):
        names = {
            field.alias or name: name
            for name, field in model.model_fields.items()
        }
    else:
        names = {to_camel(field.name): field.name for field in fields(model)}
    by_alias = {alias: _schema(hints[name]) for alias, name in names.items()}
    alpha = {
        old: by_alias[new]
        for names in KEP5075_NAMES
        for old, new in names.items()
        if new in by_alias
    }
    return Properties(alpha | by_alias)


def _schema(hint: Any, marks: tuple[Any, ...] = ()) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    # Marks of the type that is nearest come first: they overrule those around it.
    if origin is Annotated:
        return _schema(arguments[0], (*arguments[1:], *marks))
    for mark in marks:
        if isinstance(mark, WireForm):
            return _schema_of(mark.model)
        if isinstance(mark, Refined):
            return Properties(
                {
                    **_schema_of(hint).by_name,
                    **{
                        name: _marked(rule)
                        for name, rule in mark.fields.items()
                    },
                }
            )
        if isinstance(mark, Mark | ByKey | Beside):
            return _marked(mark)
    if origin is Literal:
        return Terms(*arguments)
    if origin is tuple:
        item = _schema(arguments[0])
        return item if isinstance(item, Removed) else Items(item)
    if origin is Mapping:
        key, value = map(_schema, arguments)
        return next(
            (
                argument
                for argument in (key, value)
                if isinstance(argument, Removed)
            ),
            Entries({}, key, value),
        )
    if NoneType in arguments:
        return next(
            _schema(argument)
            for argument in arguments
            if argument is not NoneType
        )
    if hint in _PLAIN:
        return cast(type, hint)
    # A text without a mark is dropped, and so is what may hold anything.
    return Removed.UNSAID if hint in (str, Any) else _schema_of(hint)


_TEXTS: Final = (Name, Public, Text, Terms, LabelKey)


def _marked(mark: Mark | ByKey | Beside) -> Schema:
    return (
        Entries(mark.special, mark.key, mark.value)
        if isinstance(mark, ByKey)
        else mark
    )


def parts(
    schema: Schema, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield everything that a schema consists of, with its place."""
    yield path, schema
    if isinstance(schema, Properties):
        inner: Mapping[str, Schema] = schema.by_name
    elif isinstance(schema, Entries):
        inner = {**schema.special, "[key]": schema.key, "[value]": schema.value}
    else:
        inner = {"[item]": schema.item} if isinstance(schema, Items) else {}
    for name, part in inner.items():
        yield from parts(part, (*path, name))


def rebuilt(value: Any, schema: Schema, leaf: Leaf) -> Any:
    """Return a copy in which every text is what `leaf` makes of it, visited in the order of the object; else `ABSENT`.

    A map of which nothing stays is left out as a whole. Other objects are not, as an empty one may mean something.
    """
    if isinstance(value, dict):
        if isinstance(schema, Properties):
            return _object(value, schema, leaf)
        if isinstance(schema, Entries):
            return _map(value, schema, leaf)
    elif isinstance(value, list):
        if isinstance(schema, Items | Entries):
            inner = schema.item if isinstance(schema, Items) else schema.value
            return [
                new
                for item in value
                if (new := rebuilt(item, inner, leaf)) is not ABSENT
            ]
    elif isinstance(schema, type):
        return _plain(value, schema)
    elif isinstance(schema, Timestamp):
        return value if isinstance(value, str) and is_time(value) else ABSENT
    elif isinstance(value, str) and isinstance(schema, _TEXTS):
        return leaf(schema, value)
    # What comes here has no mark by which it stays, or another form than its schema says.
    return {} if schema is Removed.CONTENT else ABSENT


def _object(
    value: dict[str, Any], schema: Properties, leaf: Leaf
) -> dict[str, Any]:
    rebuilt_fields = {}
    for name, part in value.items():
        inner = schema.by_name.get(name, Removed.WHOLE)
        # What the items are is said by another field of the object, such as a selector's key.
        if isinstance(inner, Beside):
            inner = Items(
                inner.rules.special.get(
                    str(value.get(inner.field)), inner.rules.value
                )
            )
        new = rebuilt(part, inner, leaf)
        if new is not ABSENT:
            rebuilt_fields[name] = new
    return rebuilt_fields


def _map(value: dict[str, Any], schema: Entries, leaf: Leaf) -> Any:
    entries = {}
    for key, part in value.items():
        special = key in schema.special
        name = key if special else rebuilt(key, schema.key, leaf)
        new = rebuilt(
            part, schema.special[key] if special else schema.value, leaf
        )
        if ABSENT not in (name, new):
            entries[name] = new
    return entries if entries or not value else ABSENT


def is_quantity(value: Any) -> bool:
    """Return whether a value on the wire is a quantity."""
    try:
        parse_quantity(value if isinstance(value, str) else repr(value))
    except QuantityError:
        return False
    return True


def _plain(value: Any, schema: type) -> Any:
    if not _PLAIN[schema](value):
        return ABSENT
    # As a number a quantity may be larger than what JSON holds; its text is as good.
    return (
        value if isinstance(value, str | bool) or schema is int else repr(value)
    )


_PLAIN: Final[Mapping[Any, Callable[[Any], bool]]] = {
    bool: lambda value: isinstance(value, bool),
    int: lambda value: type(value) is int and value in INT64,
    Quantity: is_quantity,
}
"""Types whose values stay, and what is one on the wire."""


_NUMBERS: Final = (
    "replicas",
    "count",
    "parallelism",
    "completions",
    "minReplicas",
    "maxReplicas",
    "numOfHosts",
)
_INNER_NUMBERS: Final = (
    "leaderWorkerTemplate.size",
    "template.spec.parallelism",
    "template.spec.completions",
)
_OF_PODS: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("name", "groupName"), Name.GROUP),
    **dict.fromkeys((*_NUMBERS, *_INNER_NUMBERS), int),
    "suspend": bool,
}
"""What counts and names pods, beside their template."""
_OF_OWNERS: Final[Mapping[str, Schema]] = {
    "metadata": Properties(
        {**_schema_of(ObjectMeta).by_name, "name": Name.OWNER}
    ),
    **dict.fromkeys(
        ("spec.suspend", "spec.runPolicy.suspend", "spec.active"), bool
    ),
    "status.conditions.*.type": Terms(*ENDED, "Admitted"),
    "status.conditions.*.status": Terms("True", "False", "Unknown"),
    "status.jobDeploymentStatus": Terms(*ENDED),
}
_ROLES: Final = Terms(
    "Chief", "Evaluator", "Launcher", "Master", "PS", "Worker"
)
"""What pods are in the jobs of Kubeflow."""


@cache
def wire_schema(model: type[ApiObject]) -> Properties:
    """Return the schema of a kind's objects on the wire."""
    if not issubclass(model, PodOwner):
        return _schema_of(model)
    template = _schema_of(PodTemplate)
    templates = {
        f"{pods.at}.{path}": template
        for pods in model.form.pods
        for path in pods.template
    }
    beside = {
        f"{pods.at}.{path}": schema
        for pods in model.form.pods
        for path, schema in _OF_PODS.items()
    }
    # Pod templates come first: what stands inside of one is said by its own schema.
    tree: dict[str, Any] = {}
    for path, schema in {**templates, **_OF_OWNERS, **beside}.items():
        _grow(tree, path.split("."), schema)
    return Properties({step: _grown(part) for step, part in tree.items()})


def _grow(tree: dict[str, Any], path: list[str], schema: Schema) -> None:
    """Put a schema at a path, unless there is one on the way."""
    step, *steps_below = path
    if not steps_below:
        tree.setdefault(step, schema)
    elif isinstance(inner := tree.setdefault(step, {}), dict):
        _grow(inner, steps_below, schema)


def _grown(part: Schema | dict[str, Any]) -> Schema:
    if not isinstance(part, dict):
        return part
    if "*" in part:
        return Entries({}, _ROLES, _grown(part["*"]))
    return Properties({step: _grown(inner) for step, inner in part.items()})


# ----------------------------------------------------------------------------
# What to do about a field that is not known, or whose value has another form: older
# versions' shapes, and slips.

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
    """Return a hint to add to "unknown field": its place in v1, or the field that it may be meant for.

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
    """Return a hint to add where a value has another type than v1 asks for."""
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
