"""The JSON of what a run did."""

from __future__ import annotations

from dralloc.live.apply.units import Aside
from dralloc.objects.answer import Document, Fields, Key, Word
from dralloc.show.documents import PlanFields

__all__ = ["ApplyDocument", "StatusDocument"]


class AsideFields(Fields, of=Aside):
    """A pod or claim that was not written."""


class FenceFields(Fields):
    """What a run fences."""

    run: str
    parts: list[str]
    """DeviceTaintRules and nodes, as ``Kind name``."""
    since: Word
    """When the first of them was fenced; null if nobody has noted it."""
    until: Word
    """When the run ends at the latest; null if its name does not say."""


class StatusDocument(Document):
    """What ``dralloc apply --status --json`` prints."""

    fences: list[FenceFields]
    """By run."""
    journal: str
    """The file."""
    unfinished: Word
    """The run of the journal, if it was ended before its end."""


class ApplyDocument(Document):
    """What ``dralloc apply --json`` prints."""

    plan: PlanFields | None
    """The last plan; null where none was made."""
    placed: list[Key]
    """Pods, and claims that no pod uses, whose claims were written."""
    claims: list[Key]
    """The claims that were written."""
    released: list[Key]
    """Pods whose scheduling gate was taken away."""
    asides: list[AsideFields]
    """What was left alone, and why."""
    unplaced: list[AsideFields]
    """What has no place, and why."""
    taken_back: list[Key] | None
    """Claims that a rollback took back; null if it was none."""
    findings: list[str]
    """Rules that are broken by what the API server holds now."""
    fence: str
    foreign: list[FenceFields]
    """What other runs fenced while this one planned, so that nothing could be placed there."""
    unasked: Word
    """Why the scheduler could not be asked whether it knew of the fence; null if it was, or had not to be."""
    dry: bool
    """Whether nothing was written: the server was only asked what it would do, or not even that."""
