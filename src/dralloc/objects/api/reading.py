"""From the plain data of one object to a validated model: API versions, unknown fields, clear findings.

`ObjectReader` is what others call. Before it stands what null means in each place.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import orjson
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from dralloc.objects.api.base import ApiObject, ResourceObject, changed
from dralloc.objects.api.disclosure import WireForm
from dralloc.objects.api.field_errors import UNKNOWN_FIELD, field_path, rule
from dralloc.objects.api.known_kinds import (
    DRA_GROUP,
    MODELS,
    RESOURCE_KINDS,
    model_of,
)
from dralloc.objects.api.mended import Mended, Repair, delete_field
from dralloc.objects.api.owners import PodOwner, generated_name, holds_template
from dralloc.objects.api.schema import form_hint, name_hint
from dralloc.objects.api.slice_reader import SliceReader
from dralloc.objects.api.slices import ResourceSlice
from dralloc.objects.api.versions import (
    CONVERSIONS,
    Json,
    Path,
    from_kep5075_alpha,
    from_kep5517_alpha,
    misplaced,
    written_path,
)
from dralloc.objects.errors import Finding, UnknownField
from dralloc.objects.quantity import Quantity

__all__ = [
    "ObjectReader",
    "subject",
    "without_nulls",
]

# ----------------------------------------------------------------------------
# What null stands for, as Go reads JSON: a field that is null is absent, and in lists
# and maps null is the zero value.
#
# ``values: [null]`` is one empty text, ``nodeSelectorTerms: [null]`` a term without
# conditions, and ``capacity: {memory: null}`` an amount of nothing. The types of the
# models say which value that is. Source: ``encoding/json`` of Go, and
# ``UnmarshalJSON`` of ``resource.Quantity``.

Fill = Callable[[Any], Any]
"""What becomes of a value on the wire that is not null."""

_ZEROS: Final[Mapping[type, Any]] = {
    str: "",
    int: 0,
    bool: False,
    Quantity: "0",
}


@dataclass(frozen=True)
class _Form:
    """The form of a type's values on the wire: the zero value, and what null in other ones becomes."""

    zero: Any
    fill: Fill


def without_nulls(model: type[BaseModel], body: Any) -> Any:
    """Return a copy of the body of an object without null, but for what may hold anything."""
    return _form(model).fill(body)


def _form(hint: Any) -> _Form:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        wire_forms = [
            mark.model for mark in arguments[1:] if isinstance(mark, WireForm)
        ]
        return _form(wire_forms[0] if wire_forms else arguments[0])
    if origin in (Union, UnionType):
        # A pointer in Go, which null leaves at nil.
        pointed = [
            _form(argument)
            for argument in arguments
            if argument is not NoneType
        ]
        return _Form(None, pointed[0].fill if len(pointed) == 1 else _as_it_is)
    if origin is tuple:
        return _list_of(arguments[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _map_of(arguments[1])
    if isinstance(hint, type) and (
        issubclass(hint, BaseModel) or is_dataclass(hint)
    ):
        return _object_of(hint)
    return _Form(_ZEROS.get(hint), _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value


def _list_of(hint: Any) -> _Form:
    form = _form(hint)

    def fill(value: Any) -> Any:
        # A tuple is of parts that were read already.
        return (
            [_filled(item, form) for item in value]
            if isinstance(value, list)
            else value
        )

    return _Form([], fill)


def _map_of(hint: Any) -> _Form:
    form = _form(hint)

    def fill(value: Any) -> Any:
        return (
            {key: _filled(item, form) for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )

    return _Form({}, fill)


def _filled(value: Any, form: _Form) -> Any:
    return form.zero if value is None else form.fill(value)


@cache
def _object_of(model: Any) -> _Form:
    hints = get_type_hints(model, include_extras=True)
    if issubclass(model, BaseModel):
        names = {
            field.alias or name: name
            for name, field in model.model_fields.items()
        }
    else:
        names = {to_camel(field.name): field.name for field in fields(model)}
    by_wire_name = {
        wire_name: _form(hints[name]) for wire_name, name in names.items()
    }
    # What is in a field that is not known stays as it is: the field itself becomes a finding.
    unknown = _Form(None, _as_it_is)

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        set_fields = {
            name: part for name, part in value.items() if part is not None
        }
        return {
            name: by_wire_name.get(name, unknown).fill(part)
            for name, part in set_fields.items()
        }

    return _Form({}, fill)


_OUTDATED: Final = dict.fromkeys(
    ("v1alpha1", "v1alpha2"),
    "; its claims were addressed to a driver's controller and name no "
    "devices, so they must be rewritten",
)
"""What to add about versions that are no form of v1."""
_FLAT: Final = ("v1", "v1beta2")
"""Versions whose requests have what they ask for below ``exactly``."""
_OURS: Final = "dralloc"
"""The group of what models hold beside objects, such as the outcome that is expected of them."""
_KINDS: Final = frozenset(model.kind for model in MODELS)
_SpecKey = tuple[type[ApiObject], str, bytes]
_OPAQUE: Final = frozenset({"parameters", "data"})
"""Fields that hold anything: what is null in there stays."""


@dataclass
class ObjectReader:
    """Reads objects one after the other. Equal parts of slices are kept once for all of them.

    Parameters
    ----------
    strict
        Whether an unknown field is an error; otherwise it is a warning and the field is left out.
    """

    strict: bool = False
    errors: list[Finding] = field(default_factory=list)
    """What made objects unusable."""
    warnings: list[Finding] = field(default_factory=list)
    """What was left out of objects."""
    mended: list[Mended] | None = None
    """Where it is a list, it takes the objects with errors, without what is wrong with them."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many objects there were of each kind that is not read."""
    unmade: Counter[str] = field(default_factory=Counter)
    """How many of these have pod templates, of which no pods are made."""
    slices: SliceReader = field(default_factory=SliceReader)
    _specs: dict[_SpecKey | None, BaseModel] = field(default_factory=dict)
    """Validated specifications by what they say, as thousands of pods and claims are made from few templates."""
    _generated: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How many objects of a kind and namespace so far left their name to the API server, by ``generateName``."""

    def read(self, raw: Json, source: str) -> ApiObject | None:
        """Read one object in any supported version.

        Parameters
        ----------
        raw
            The object as it was written; it is not changed.
        source
            Where it was read, for findings.

        Returns
        -------
        ApiObject or None
            None for an object with `errors` and for one of a kind that is not read, which is counted in `skipped`.
        """
        try:
            return self._read(raw, source)
        except RecursionError:
            self._reject(raw, source, "", "is nested too deeply")
            return None

    def _read(self, raw: Json, source: str) -> ApiObject | None:
        kind, api_version = raw.get("kind"), raw.get("apiVersion")
        if not isinstance(kind, str) or not kind:
            self._reject(
                raw,
                source,
                "kind",
                "is required: this is not a Kubernetes object",
            )
            return None
        if not isinstance(api_version, str) or not api_version:
            self._reject(raw, source, "apiVersion", "is required")
            return None
        group, _, version = api_version.partition("/")
        model = model_of(raw)
        if model is not None:
            if issubclass(model, PodOwner):
                return self._owner(model, raw, source)
            return self._with_known_spec(model, version, raw, source)
        if group == DRA_GROUP and kind in RESOURCE_KINDS:
            supported = ", ".join(
                f"{DRA_GROUP}/{read_version}" for read_version in CONVERSIONS
            )
            self._reject(
                raw,
                source,
                "apiVersion",
                f'"{api_version}" is not supported, only {supported}'
                + _OUTDATED.get(version, ""),
            )
        elif group != _OURS:
            # The PodGroup of another group is not the one that is read.
            is_namesake = bool(version) and kind in _KINDS
            self.skipped[f"{kind}.{group}" if is_namesake else kind] += 1
            self.unmade[kind] += holds_template(raw.get("spec"))
        return None

    def _owner(
        self, model: type[PodOwner], raw: Json, source: str
    ) -> ApiObject | None:
        try:
            body, templates = model.form.normal(_without_nulls(_body(raw)))
        except ValidationError as failure:
            for error in failure.errors(include_url=False):
                self._reject(raw, source, field_path(error["loc"]), rule(error))
            return None

        def written(path: Path) -> Path:
            return (
                (*templates[int(path[1])], *path[3:])
                if path[0] == "sets"
                else path
            )

        return self._validated(model, body, raw, source, written)

    def _with_known_spec(
        self, model: type[ApiObject], version: str, raw: Json, source: str
    ) -> ApiObject | None:
        """Read an object; a specification that another one has, and of which nothing was to be said, is read once."""
        body, key, remarks = (
            _body(raw),
            _spec_key(model, version, raw),
            len(self.errors) + len(self.warnings),
        )
        if key in self._specs:
            body["spec"] = self._specs[key]
        if issubclass(model, ResourceObject):
            read_object = self._resource(model, version, body, raw, source)
        else:
            read_object = self._validated(
                model, _without_nulls(body, model), raw, source
            )
        # A finding about a specification is to be told of each object that has it: such a one is not kept.
        if (
            key is not None
            and read_object is not None
            and remarks == len(self.errors) + len(self.warnings)
        ):
            self._specs.setdefault(key, vars(read_object)["spec"])
        return read_object

    def _resource(
        self,
        model: type[ResourceObject],
        version: str,
        body: Json,
        raw: Json,
        source: str,
    ) -> ApiObject | None:
        older = misplaced(model.kind, body) if version in _FLAT else []
        for path, names in older:
            rule = (
                f"needs exactly or firstAvailable: {', '.join(names)} must "
                "stand below exactly, or the apiVersion be "
                f"{DRA_GROUP}/v1beta1, which has no such level"
            )
            self._reject(raw, source, field_path(path), rule)
        if older and self.mended is None:
            return None
        # With such requests the object is refused by now; in the form that they have, it shows what else is wrong.
        form = "v1beta1" if older else version
        body = CONVERSIONS[form](model.kind, body)
        # A slice without a name goes the long way, which makes one of ``generateName`` or refuses it.
        quick = self.slices.read(body) if model is ResourceSlice else None
        if quick is not None and quick.name:
            return quick
        body = from_kep5517_alpha(
            model.kind,
            from_kep5075_alpha(model.kind, _without_nulls(body, model)),
        )
        return self._validated(model, body, raw, source, usable=not older)

    def _validated(  # noqa: PLR0913 - what is read, and from where
        self,
        model: type[ApiObject],
        body: Json,
        raw: Json,
        source: str,
        written: Callable[[Path], Path] | None = None,
        *,
        usable: bool = True,
    ) -> ApiObject | None:
        """Validate until no unknown field is left, as these hide the checks of whole objects.

        ``written`` says where in the object as it was written a place in the body is; an object that is not usable is
        only looked at.
        """
        written = written or partial(written_path, raw)
        # Nearly all objects are as they should be: no more is made for them than has to be.
        repair: Repair | None = None
        while True:
            try:
                built = self._built(model, body)
                break
            except ValidationError as failure:
                errors = failure.errors(include_url=False)
            repair = repair or Repair()
            unknown = [
                error for error in errors if error["type"] in UNKNOWN_FIELD
            ]
            wrong = [
                error for error in errors if error["type"] not in UNKNOWN_FIELD
            ]
            if issubclass(model, ResourceObject):
                usable = usable and not self.strict
                (self.errors if self.strict else self.warnings).extend(
                    _unknown_fields(model, unknown, body, raw, source)
                )
            for error in wrong:
                path = field_path(written(error["loc"]))
                if not repair.follows(path):
                    hint = form_hint(error["loc"], error["input"])
                    self._reject(raw, source, path, rule(error) + hint)
            repair.broken += (field_path(error["loc"]) for error in wrong)
            if wrong and self.mended is None:
                return None
            body = _copied_without_nulls(body)
            for error in unknown:
                delete_field(body, error["loc"])
            if not all(repair.repaired(body, error) for error in wrong):
                return None
        if not (built.metadata.name or built.metadata.generate_name):
            # Of a name that is no text it was said.
            if repair is None or not repair.follows("metadata.name"):
                self._reject(
                    raw,
                    source,
                    "metadata.name",
                    "is required, or metadata.generateName",
                )
            return None
        read_object = self._named(built)
        broken = tuple(repair.broken) if repair else ()
        if usable and not broken:
            return read_object
        if self.mended is not None:
            self.mended.append(Mended(read_object, source, broken))
        return None

    def _built(self, model: type[ApiObject], body: Json) -> ApiObject:
        quick = self.slices.read(body) if model is ResourceSlice else None
        return quick or model.model_validate(body, by_alias=True, by_name=False)

    def _named(self, nameless: ApiObject) -> ApiObject:
        """Return the object with a name: one with ``generateName`` alone gets one as the API server makes them.

        Each such object is one of its own, also where another says the same. Its name stays the same as long as those
        of its kind, namespace and ``generateName`` come in the same order. Source: ``rest.BeforeCreate`` of
        k8s.io/apiserver.
        """
        metadata = nameless.metadata
        if metadata.name:
            return nameless
        identity = nameless.kind, nameless.key.namespace, metadata.generate_name
        self._generated[identity] += 1
        name = generated_name(
            metadata.generate_name,
            nameless.key.namespace,
            nameless.kind,
            str(self._generated[identity]),
        )
        return changed(nameless, metadata=changed(metadata, name=name))

    def unmade_notice(self) -> Iterator[Finding]:
        """Yield which kinds of the objects that are not read have pod templates."""
        kinds = ", ".join(
            f"{kind} ({count})"
            for kind, count in sorted(self.unmade.items())
            if count
        )
        if kinds:
            yield Finding(
                "", "", "", f"no pods are made of the pod templates of {kinds}"
            )

    def _reject(self, raw: Json, source: str, path: str, text: str) -> None:
        self.errors.append(Finding(source, subject(raw), path, text))


def _unknown_fields(
    model: type[ApiObject],
    errors: Sequence[ErrorDetails],
    body: Json,
    raw: Json,
    source: str,
) -> Iterator[Finding]:
    """Yield one finding for each field, at the first of the places in lists where it occurs."""
    locations: dict[tuple[str, ...], list[tuple[str | int, ...]]] = {}
    for error in errors:
        location = error["loc"]
        locations.setdefault(
            tuple(step for step in location if isinstance(step, str)), []
        ).append(location)
    for first, *repeated in locations.values():
        elsewhere = (
            f", here and in {len(repeated)} more places" if repeated else ""
        )
        yield UnknownField(
            source,
            subject(raw),
            field_path(written_path(raw, first)),
            f"unknown field{elsewhere}{name_hint(model, first, body)}",
        )


def subject(raw: Json) -> str:
    """Kind and name of an object as messages show them; empty for what has no kind."""
    kind, metadata = raw.get("kind"), raw.get("metadata")
    if not isinstance(kind, str):
        return ""
    if not isinstance(metadata, dict):
        return kind
    called = metadata.get("name") or metadata.get("generateName")
    name = "/".join(
        str(part) for part in (metadata.get("namespace"), called) if part
    )
    return f"{kind} {name}".strip()


def _body(raw: Json) -> Json:
    body = raw.copy()
    body.pop("apiVersion", None)
    body.pop("kind", None)
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        body["metadata"] = {
            key: value
            for key, value in metadata.items()
            if key != "managedFields"
        }
    return body


def _without_nulls(body: Json, model: type[ApiObject] | None = None) -> Json:
    """Return the same without null; of objects in another form than their model's only fields are looked at."""
    try:
        if b"null" not in orjson.dumps(body, default=_validated_part):
            return body
    except orjson.JSONEncodeError:
        # It is nested too deeply: without end, if even this is a RecursionError.
        _copied_without_nulls(body)
    copied: Json = (
        _copied_without_nulls(body)
        if model is None
        else without_nulls(model, body)
    )
    return copied


def _validated_part(_: object) -> str:
    """Return the result for a part that was read before, and has no fields that are null."""
    return ""


def _copied_without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: part if key in _OPAQUE else _copied_without_nulls(part)
            for key, part in value.items()
            if part is not None
        }
    return (
        [_copied_without_nulls(part) for part in value]
        if isinstance(value, list)
        else value
    )


def _spec_key(
    model: type[ApiObject], version: str, raw: Json
) -> _SpecKey | None:
    """Return a key that equal specifications share; None for no specification, or one that nothing else has."""
    if (
        model is ResourceSlice
        or "spec" not in raw
        or "spec" not in model.model_fields
    ):
        return None
    try:
        return model, version, orjson.dumps(raw["spec"])
    except orjson.JSONEncodeError:
        return None
