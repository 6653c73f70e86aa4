"""What runs hold on a cluster: the parts of their fences, since when, and what a journal says is unfinished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dralloc.live.apply.documents import StatusDocument
from dralloc.live.apply.fence import held_parts, held_since, run_of
from dralloc.live.apply.journal import WriteJournal
from dralloc.live.apply.run_names import end_of, has_ended
from dralloc.live.snapshot import Json, LiveObjects
from dralloc.objects.answer import Documented
from dralloc.objects.report import Line, Part, Table, counted

__all__ = ["FenceStatus", "HeldFence", "fences_of", "status_of"]


@dataclass(frozen=True)
class HeldFence:
    """The parts that one run fences.

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

    @property
    def until(self) -> str:
        """When the run ends at the latest; empty if its name does not say."""
        end = end_of(self.run)
        return end.strftime("%Y-%m-%dT%H:%M:%SZ") if end else ""


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
        """The number of fences, in one line."""
        return (
            f"{counted(len(self.fences), 'run')} with a fence"
            if self.fences
            else "nothing is fenced"
        )

    def parts(self) -> list[Part]:
        """Return the status as tables and lines."""
        rows = [
            (
                fence.run,
                fence.since or "?",
                f"{fence.until or '?'}{' (over)' * has_ended(fence.run)}",
                str(len(fence.parts)),
                ", ".join(fence.parts[:_SHOWN]),
            )
            for fence in self.fences
        ]
        lines = [
            Line(
                f"{self.journal}: run {self.unfinished} is unfinished: --resume or --rollback",
                "yellow",
            )
        ]
        return [
            Line(self.headline, "bold"),
            Table(
                "Fences",
                ("run", "since", "until", "parts", "the first of them"),
                rows,
            ),
            *(lines if self.unfinished else ()),
        ]


_SHOWN = 3


def fences_of(parts: Iterable[Json]) -> tuple[HeldFence, ...]:
    """Return what each run fences, by what it holds."""
    held: dict[str, list[Json]] = {}
    for part in parts:
        if run := run_of(part):
            held.setdefault(run, []).append(part)
    fences: list[HeldFence] = []
    for run, parts_of_run in sorted(held.items()):
        names = [
            f"{part['kind']} {part['metadata']['name']}"
            for part in parts_of_run
        ]
        # Times are RFC 3339 in UTC, so that the first of them is the earliest.
        since = min(filter(None, map(held_since, parts_of_run)), default="")
        fences.append(HeldFence(run, tuple(names), since))
    return tuple(fences)


def status_of(
    objects: LiveObjects, journal: WriteJournal, path: str
) -> FenceStatus:
    """Return what is fenced now, and what the journal of that path says is unfinished."""
    return FenceStatus(
        fences_of(held_parts(objects)),
        path,
        journal.run if journal.unfinished else "",
    )
