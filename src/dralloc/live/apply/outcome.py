"""What a run did, and what it plans to do, to be shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dralloc.live.apply.documents import ApplyDocument
from dralloc.live.apply.fence_status import HeldFence
from dralloc.live.apply.units import Aside, WriteUnit
from dralloc.objects.answer import Documented
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted
from dralloc.show.plan import Plan

__all__ = ["CHANGED", "ApplyOutcome", "fenced_by", "planned_parts"]

CHANGED: Final = "the cluster changed too often"
"""Why something was left alone that was planned again and again."""


@dataclass(frozen=True, repr=False)
class ApplyOutcome(Documented):
    """The outcome of a run: what it wrote, what it left alone and why, and what the checker says of the server's state.

    Parameters
    ----------
    plan
        The last plan; None if a run was resumed and nothing had to be planned.
    units
        What was written.
    released
        The pods whose gate was taken away.
    asides
        What was left alone.
    taken_back
        The claims that a rollback took back; None if the run was none.
    findings
        Rules that are broken by what the API server holds now.
    fence
        What kept others away.
    unasked
        Why the scheduler could not be asked whether it knows of the fence; empty if it was, or had not to be.
    foreign
        What other runs fenced when the plan was made.
    dry
        Whether nothing was written.
    is_asked
        Whether the server was asked what it would do, if nothing was written.
    """

    document = ApplyDocument

    plan: Plan | None = None
    units: tuple[WriteUnit, ...] = ()
    released: tuple[ClaimKey, ...] = ()
    asides: tuple[Aside, ...] = ()
    taken_back: tuple[ClaimKey, ...] | None = None
    findings: tuple[str, ...] = ()
    fence: str = ""
    foreign: tuple[HeldFence, ...] = ()
    unasked: str = ""
    dry: bool = False
    is_asked: bool = True

    @property
    def placed(self) -> list[ClaimKey]:
        """The pods, and claims that no pod uses, whose claims were written."""
        return [demand.key for unit in self.units for demand in unit.demands]

    @property
    def claims(self) -> list[ClaimKey]:
        """The claims that were written."""
        return [claim.key for unit in self.units for claim in unit.claims]

    @property
    def unplaced(self) -> list[Aside]:
        """The pods and claims that the plan found no place for."""
        keys_aside = {aside.key for aside in self.asides}
        fenced = fenced_by(self.foreign)
        reasons = self.plan.reasons if self.plan else {}
        return [
            Aside(key, f"{why}{fenced}")
            for key, why in reasons.items()
            if key not in keys_aside
        ]

    @property
    def failed(self) -> bool:
        """Whether something was left alone, has no place because of other runs, or is wrong."""
        return bool(
            self.asides or self.findings or (self.foreign and self.unplaced)
        )

    @property
    def is_blocked(self) -> bool:
        """Whether nothing could be done because other runs, or changes of the cluster, were in the way."""
        unwritten = any(aside.reason == CHANGED for aside in self.asides)
        fenced = bool(self.foreign and self.unplaced)
        return not self.units and (unwritten or fenced)

    @property
    def headline(self) -> str:
        """The number of claims that were written, in one line."""
        if self.taken_back is not None:
            return f"taken back: {counted(len(self.taken_back), 'claim')}"
        asked = "asked the server" if self.is_asked else "the server not asked"
        done = (
            f"would be written ({asked})"
            if self.dry
            else "written and read back"
        )
        placed = counted(len(self.placed), "pod or claim", "pods and claims")
        remarks = [f"{len(self.released)} released"] if self.released else []
        remarks += [f"{len(self.asides)} left alone"] if self.asides else []
        remarks += (
            [f"{len(self.unplaced)} without a place"] if self.unplaced else []
        )
        return ", ".join(
            [
                f"{counted(len(self.claims), 'claim')} of {placed} {done}",
                *remarks,
            ]
        )

    def names(self) -> Iterator[str]:
        """Yield the pods and claims whose claims were written; of a rollback, the claims that it took back."""
        keys = self.placed if self.taken_back is None else self.taken_back
        yield from map(str, keys)

    def parts(self) -> list[Part]:
        """Return the outcome as tables and lines."""
        broken = (
            Line(
                f"the API server now holds what breaks a rule: {finding}", "red"
            )
            for finding in self.findings
        )
        tables = (
            _reasons_table("Left alone", self.asides),
            _reasons_table("Not placed", self.unplaced),
        )
        unasked = Line(
            f"whether the scheduler knew of the fence was not asked: {self.unasked}",
            "yellow",
        )
        return [
            Line(self.headline, "bold"),
            *tables,
            *broken,
            *([unasked] if self.unasked else ()),
        ]


def fenced_by(fences: Iterable[HeldFence]) -> str:
    """Return what is added to the reason of what has no place, as it may be for the fences of other runs."""
    return "".join(
        f"; run {fence.run} fences {counted(len(fence.parts), 'part')} of the cluster"
        for fence in fences
    )


def planned_parts(
    plan: Plan, units: list[WriteUnit], asides: list[Aside]
) -> Iterator[Part]:
    """Yield a plan, and what of it is to be written."""
    yield from plan.parts()
    claims, pods = (
        sum(len(unit.claims) for unit in units),
        sum(len(unit.demands) for unit in units),
    )
    yield Line(
        f"\nto write: {claims} claims for {pods} pods and claims that no pod uses",
        "bold",
    )
    yield _reasons_table("Not to write", asides)


def _reasons_table(title: str, asides: Iterable[Aside]) -> Table:
    return Table(
        title,
        ("pod or claim", "why"),
        [(str(aside.key), aside.reason) for aside in asides],
    )
