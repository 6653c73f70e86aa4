"""The JSON of explanations."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from dralloc.ask.explain.members import MemberKind
from dralloc.ask.explain.reasons import Code
from dralloc.objects.choices import Mode
from dralloc.objects.schema import Fields, Key, Timings, Word
from dralloc.show.provisional import ProvisionalDocument

__all__ = ["ConflictFields", "ExplanationDocument"]


class CauseFields(Fields):
    """What rules out one request, or the pod or claim as a whole."""

    code: Code
    subject: str
    """Claim and request that it is about; empty for the whole."""
    text: str
    devices: int
    """How many devices of the node it excludes."""
    excluded: Annotated[dict[str, int], BeforeValidator(dict)]
    """All reasons that exclude devices for this request, with the number of devices."""
    details: list[str]
    """What is particular to the node: amounts, what is free, who holds it."""


class GroupFields(Fields):
    """Nodes that are ruled out by the same causes."""

    nodes: list[str]
    causes: list[CauseFields]


class NodeFields(Fields):
    """What holds for one node."""

    node: str
    fits: bool
    causes: list[CauseFields]


class MemberFields(Fields):
    """A rule that is part of a conflict."""

    kind: MemberKind
    title: str
    detail: str


class ConflictFields(Fields):
    """Rules that cannot hold together, though without any one of them the others can."""

    members: list[MemberFields]
    nodes: int
    """How many nodes were looked at."""


class GangFields(Fields):
    """How many members of a gang fit at once beside what is placed."""

    members: list[Key]
    number: int
    bound: int


class CompetitionFields(Fields):
    """What the optimum would have to give up."""

    possible: bool
    """Whether any answer can place it beside what is allocated already."""
    displaced: list[Key]
    gained: list[Key]
    weight: int
    """Weight of the best answer that places it."""
    optimum: int = Field(validation_alias="best")
    proven: bool


class SuggestionFields(Fields):
    """A change that would admit it, as has been tried."""

    change: str = Field(validation_alias="text")
    outcome: str
    kind: Annotated[str, BeforeValidator(str.lower)] = Field(
        validation_alias=AliasPath("cost", "name")
    )
    cost: int
    """Rank of the kind of change; the cheapest is 1."""


class ExplanationDocument(ProvisionalDocument):
    """What ``dralloc explain --json`` prints."""

    mode: Mode
    demand: Key
    """The pod, or the claim that no pod uses."""
    claims: list[Key]
    node: Word
    """Where it is placed; null if it is not."""
    groups: list[GroupFields]
    nodes: list[NodeFields] = Field(validation_alias="reasons")
    conflict: ConflictFields | None
    """A minimal one; null if it is placed, or was not looked for."""
    gang: GangFields | None = Field(validation_alias="gathering")
    """If it would fit alone (mode optimal)."""
    competition: CompetitionFields | None
    """Beside the optimum (mode optimal)."""
    suggestions: list[SuggestionFields]
    remarks: list[str]
    """What else is to be known."""
    timings: Timings
