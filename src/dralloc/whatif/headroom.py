"""How many more of a claim fit beside what is allocated: exactly, by first fit, and device by device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dralloc.cluster import Cluster
from dralloc.features import ALL_FEATURES, Features
from dralloc.garbage import without_garbage_collection
from dralloc.report import Line, Part, Table, as_text, timing_line
from dralloc.solvers.cpsat import Options
from dralloc.timing import phase
from dralloc.whatif.fill import Fill, fill
from dralloc.whatif.wishes import Wish, stage

__all__ = ["Headroom", "headroom"]


@dataclass(frozen=True)
class Headroom:
    """How many more fit. ``print(headroom)`` is a readable report.

    Parameters
    ----------
    wishes
        What was asked for.
    alone
        For each wish, how many fit if nothing else comes.
    left_out
        How many pending claims do not count.
    timings
        Seconds by phase.
    """

    wishes: tuple[Wish, ...]
    alone: tuple[Fill, ...]
    left_out: int = 0
    timings: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON; null stands for no end."""
        return {
            "alone": [
                {
                    "wish": wish.title,
                    "number": found.number,
                    "bound": found.bound,
                    "exact": found.exact,
                    "firstFit": found.first_fit,
                    "perDevice": found.per_device,
                    "error": found.reason or None,
                    "warnings": list(found.warnings),
                }
                for wish, found in zip(self.wishes, self.alone, strict=True)
            ],
            "pendingLeftOut": self.left_out,
            "timings": dict(self.timings),
        }

    def parts(self) -> list[Part]:
        """The answer as tables and lines."""
        columns = ("claim", ">exactly", ">first fit", ">device by device")
        rows = [
            (wish.title, _exactly(found), _count(found.first_fit), _count(found.per_device))
            for wish, found in zip(self.wishes, self.alone, strict=True)
        ]
        found: list[Part] = [Table("How many more fit, each alone", columns, rows)]
        found += self._remarks()
        found.append(timing_line(self.timings))
        return found

    def _remarks(self) -> Iterator[Line]:
        if self.left_out:
            yield Line(f"\n{self.left_out} pending claims do not count.")
        for wish, found in zip(self.wishes, self.alone, strict=True):
            if found.reason:
                yield Line(f"{wish.title}: first fit ends with an error: {found.reason}", "yellow")
        for warning in dict.fromkeys(one for found in self.alone for one in found.warnings):
            yield Line(f"warning: {warning}", "yellow")

    def __str__(self) -> str:
        return as_text(self.parts())


@without_garbage_collection()
def headroom(
    cluster: Cluster,
    *wishes: Wish | str,
    nodes: Sequence[str] = (),
    features: Features = ALL_FEATURES,
    strict: bool = False,
    options: Options | None = None,
) -> Headroom:
    """Find out how many more of a claim fit beside everything that is allocated.

    Parameters
    ----------
    wishes
        Claims, templates or pods: ``namespace/name``, or a `Wish`.
    nodes, features, strict
        As in `dralloc.allocate`.
    options
        For the search for the optimum.

    Raises
    ------
    DrallocError
        There is no such claim, template, pod or node.
    """
    asked = tuple(wish if isinstance(wish, Wish) else Wish.parse(wish) for wish in wishes)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        staged = stage(cluster, asked, nodes=nodes, features=features, strict=strict)
    with phase(timings, "headroom"):
        alone = tuple(fill(staged.compiled.problem, demand, options) for demand in staged.demands)
    left_out = sum(claim.status.allocation is None for claim in cluster.claims)
    return Headroom(asked, alone, left_out, timings)


def _count(number: int | None) -> str:
    return "no end" if number is None else str(number)


def _exactly(found: Fill) -> str:
    if found.exact:
        return _count(found.number)
    return f"{found.number} or more, at most {_count(found.bound)}"
