"""What runs hold on a cluster: the parts of their fences, since when, and what a journal says is unfinished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dralloc.live.apply.document import StatusDocument
from dralloc.live.apply.fence import held_parts, held_since, run_of
from dralloc.live.apply.journal import WriteJournal
from dralloc.live.snapshot import Json, LiveObjects
from dralloc.objects.answer import Documented
from dralloc.objects.report import Line, Part, Table, counted

__all__ = ["FenceStatus", "HeldFence", "fences_of", "status_of"]


@dataclass(frozen=True)
class HeldFence:
    """What one run fences.

    Parameters
    ----------
    parts
        DeviceTaintRules and nodes, as ``Kind name``.
    since
        When the first of them was fenced, as the API server writes times; empty if that is not known.
    """

    run: str
    parts: tuple[str, ...]
    since: str


@dataclass(frozen=True, repr=False)
class FenceStatus(Documented):
    """The fences of a cluster, and the run that a journal is about.

    Parameters
    ----------
    unfinished
        The run that was ended before its end; empty if there is none.
    """

    document = StatusDocument

    fences: tuple[HeldFence, ...]
    journal: str
    unfinished: str

    @property
    def failed(self) -> bool:
        """Whether somebody has to come back to something."""
        return bool(self.fences or self.unfinished)

    @property
    def headline(self) -> str:
        """How many fences there are, in one line."""
        return (
            f"{counted(len(self.fences), 'run')} with a fence"
            if self.fences
            else "nothing is fenced"
        )

    def parts(self) -> list[Part]:
        """The status as tables and lines."""
        rows = [
            (
                one.run,
                one.since or "?",
                str(len(one.parts)),
                ", ".join(one.parts[:_SHOWN]),
            )
            for one in self.fences
        ]
        lines = [
            Line(
                f"{self.journal}: run {self.unfinished} is unfinished: --resume or --rollback",
                "yellow",
            )
        ]
        return [
            Line(self.headline, "bold"),
            Table("Fences", ("run", "since", "parts", "the first of them"), rows),
            *(lines if self.unfinished else ()),
        ]


_SHOWN = 3


def fences_of(parts: Iterable[Json]) -> tuple[HeldFence, ...]:
    """Return what each run fences, by what it holds."""
    held: dict[str, list[Json]] = {}
    for part in parts:
        if run := run_of(part):
            held.setdefault(run, []).append(part)
    return tuple(
        HeldFence(
            run,
            tuple(f"{one['kind']} {one['metadata']['name']}" for one in found),
            min(filter(None, map(held_since, found)), default=""),
        )
        for run, found in sorted(held.items())
    )


def status_of(objects: LiveObjects, journal: WriteJournal, path: str) -> FenceStatus:
    """Return what is fenced now, and what the journal of that path says is unfinished."""
    return FenceStatus(
        fences_of(held_parts(objects)), path, journal.run if journal.unfinished else ""
    )
