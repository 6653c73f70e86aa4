"""The JSON of reports on stranded capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from dralloc.ask.stranded.lifting import Cause
from dralloc.objects.schema import Amount, Fields, Key, Timings, Word, described
from dralloc.show.provisional import ProvisionalDocument

__all__ = ["StrandingDocument"]


class RequestClassFields(Fields):
    """Claims of a mix that ask for the same."""

    like: Key
    """One of them."""
    claims: int


class FragmentationFields(Fields):
    """The measure of Weng et al. (ATC'23), before it is divided by the number of claims."""

    sum: Amount
    claims: int


def _classes(mix: Mapping[str, int]) -> list[RequestClassFields]:
    return [RequestClassFields(like=name, claims=count) for name, count in mix.items()]


def _fragmentation(nanos: int, info: ValidationInfo) -> FragmentationFields:
    return FragmentationFields(sum=nanos, claims=described(info).claims)


class RowFields(Fields):
    """How much there is of one thing in a pool, or in all pools of one kind of node."""

    driver: str
    pool: Word
    """Null for several pools."""
    node_kind: str
    measure: str
    """What is counted: ``counter NAME``, ``capacity NAME`` or ``devices``."""
    total: Amount
    free: Amount
    usable: Amount
    stranded: dict[Cause, Amount] = Field(validation_alias="causes")
    fragmented: Annotated[FragmentationFields, BeforeValidator(_fragmentation)]


class StrandingDocument(ProvisionalDocument):
    """What ``dralloc stranded --json`` prints."""

    mix: Annotated[list[RequestClassFields], BeforeValidator(_classes)]
    node_kinds: list[RowFields]
    pools: list[RowFields]
    remarks: list[str]
    timings: Timings
