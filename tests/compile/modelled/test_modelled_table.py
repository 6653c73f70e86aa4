"""Every field of the API has a row: those of the models, and those of Kubernetes' own types."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from api_fields import KINDS
from conftest import ROOT
from dralloc.compile.modelled.field_rows import Fate, spelled_out
from dralloc.compile.modelled.table import TABLE, row_of
from dralloc.objects.api import PartialObject, ResourceObject
from dralloc.objects.api.disclosure import WireForm
from dralloc.objects.api.known_kinds import MODELS
from dralloc.objects.api.owners import PodOwner

READ = [model for model in MODELS if not issubclass(model, PodOwner)]
"""The kinds that are read as they are; owners become pods."""

PUBLISHED = [
    tuple(line.split())
    for line in (ROOT / "tests" / "data" / "api_fields.txt")
    .read_text()
    .splitlines()
]
"""Kinds and paths of Kubernetes 1.36."""


def parts(hint: Any) -> Iterator[type]:
    """The models that a type consists of."""
    if get_origin(hint) is Annotated:
        wire = [
            mark.model
            for mark in hint.__metadata__
            if isinstance(mark, WireForm)
        ]
        yield from wire or parts(get_args(hint)[0])
    elif arguments := get_args(hint):
        for argument in arguments:
            yield from parts(argument)
    elif isinstance(hint, type) and (
        issubclass(hint, BaseModel) or hasattr(hint, "__pydantic_config__")
    ):
        yield hint


def is_written(hint: Any) -> bool:
    """Whether a field is one of the API, and not a note of the reader."""
    return not any(
        getattr(mark, "exclude", False)
        for mark in getattr(hint, "__metadata__", ())
    )


def paths(model: Any, above: str = "") -> Iterator[str]:
    """The fields of a model that have no fields of their own, as on the wire."""
    hints = get_type_hints(model, include_extras=True)
    if issubclass(model, BaseModel):
        names = {
            name: field.alias or name
            for name, field in model.model_fields.items()
        }
    else:
        names = {
            field.name: to_camel(field.name)
            for field in dataclasses.fields(model)
            if is_written(hints[field.name])
        }
    for name, alias in names.items():
        inner = list(parts(hints[name]))
        fields = [
            path for part in inner for path in paths(part, f"{above}{alias}.")
        ]
        yield from fields or [f"{above}{alias}"]


MODELLED = [
    (model.kind, path) for model in READ for path in dict.fromkeys(paths(model))
]
"""Kinds and paths of the models."""


@pytest.mark.parametrize("model", READ, ids=lambda model: model.kind)
def test_every_field_that_is_read_has_a_row(
    model: type[ResourceObject | PartialObject],
) -> None:
    fields = [path for kind, path in MODELLED if kind == model.kind]
    assert [path for path in fields if row_of(model.kind, path) is None] == []


@pytest.mark.parametrize(
    "kind", [kind for kinds in KINDS.values() for kind in kinds]
)
def test_every_field_of_kubernetes_has_a_row(kind: str) -> None:
    fields = [path for other, path in PUBLISHED if other == kind]
    assert len(fields) > 20
    assert [path for path in fields if row_of(kind, path) is None] == []


def test_a_field_that_nobody_knows_has_none() -> None:
    assert row_of("Pod", "spec.moodOfTheDay") is None
    assert row_of("Pod", "spec.topologySpreadConstraints.moodOfTheDay") is None
    assert row_of(
        "Pod", "spec.containers.livenessProbe.moodOfTheDay"
    ) is row_of("Pod", "spec.containers.livenessProbe")


def test_no_row_is_for_a_field_that_there_is_not() -> None:
    used = {row_of(*field) for field in (*MODELLED, *PUBLISHED)}
    assert [f"{row.kind} {row.path}" for row in TABLE if row not in used] == []


def test_what_matters_is_read() -> None:
    """A field that is dropped can neither be minded nor named. Of ``resource.k8s.io`` unknown fields are named."""
    read = set(MODELLED)
    whole = {model.kind for model in READ if issubclass(model, ResourceObject)}
    unread = [
        row
        for row in TABLE
        if row.matters
        and (row.kind, row.path) not in read
        and row.kind not in whole
    ]
    assert [f"{row.kind} {row.path}" for row in unread] == []


def test_no_field_has_two_rows() -> None:
    keys = [(row.kind, row.path) for row in TABLE]
    assert len(keys) == len(set(keys))


def test_what_is_not_minded_says_what_it_would_do() -> None:
    assert [
        row
        for row in TABLE
        if Fate.IGNORED in row.fates.values() and not row.rule
    ] == []


@pytest.mark.parametrize(
    ("text", "expansion"),
    [
        ("a", ["a"]),
        ("a.{b,c}", ["a.b", "a.c"]),
        (
            "{A x,B y}.{b,c.{d,e}}",
            ["A x.b", "A x.c.d", "A x.c.e", "B y.b", "B y.c.d", "B y.c.e"],
        ),
    ],
)
def test_braces_stand_for_all_of_their_parts(
    text: str, expansion: list[str]
) -> None:
    assert list(spelled_out(text)) == expansion
