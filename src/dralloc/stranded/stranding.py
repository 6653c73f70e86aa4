"""What a report on stranded capacity consists of, as users hold it."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dralloc.quantity import Quantity
from dralloc.report import Line, Part, Table, amount, as_text, percent, timing_line
from dralloc.stranded.cause import Cause
from dralloc.stranded.mix import Kind

__all__ = ["Capacity", "Stranding"]

_MOST_POOLS = 20


@dataclass(frozen=True)
class Capacity:
    """How much of a measure there is in a pool, or in all pools of one kind of node. Amounts in nanos.

    Parameters
    ----------
    driver, pool, node_kind
        Where; ``pool`` is empty for several pools.
    measure
        What is counted: ``counter NAME``, ``capacity NAME`` or ``devices``.
    total, free
        What is published, and what nobody holds.
    stranded
        The part of the free amount that no claims of the mix could use, however many come, by what strands it.
    fragmented
        The measure of Weng et al., times the number of claims in the mix.
    proven
        Whether it is proven that no more can be used; if not, less may be stranded.
    """

    driver: str
    pool: str
    node_kind: str
    measure: str
    total: int
    free: int
    stranded: Mapping[Cause, int]
    fragmented: int
    proven: bool = True

    @property
    def unusable(self) -> int:
        """The stranded amount, whatever strands it."""
        return sum(self.stranded.values())

    def to_dict(self, claims: int) -> dict[str, Any]:
        """The row as plain data; amounts as quantities."""
        return {
            "driver": self.driver,
            "pool": self.pool or None,
            "nodeKind": self.node_kind,
            "measure": self.measure,
            "total": str(Quantity(self.total)),
            "free": str(Quantity(self.free)),
            "stranded": str(Quantity(self.unusable)),
            "causes": {cause.value: str(Quantity(nanos)) for cause, nanos in self.stranded.items()},
            "fragmented": {"sum": str(Quantity(self.fragmented)), "claims": claims},
            "proven": self.proven,
        }


@dataclass(frozen=True)
class Stranding:
    """What is free but cannot be used. ``print(stranding)`` is a readable report.

    Parameters
    ----------
    kinds
        The mix: kinds of claims, and how many there are of each.
    pools
        One row for each measure of each pool.
    remarks
        What was left out, and why.
    timings
        Seconds by phase.
    """

    kinds: tuple[Kind, ...]
    pools: tuple[Capacity, ...]
    remarks: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def claims(self) -> int:
        """How many claims the mix has."""
        return sum(kind.count for kind in self.kinds)

    @cached_property
    def node_kinds(self) -> tuple[Capacity, ...]:
        """One row for each measure that a driver has on each kind of node."""
        groups: dict[tuple[str, str, str], list[Capacity]] = {}
        for row in self.pools:
            groups.setdefault((row.driver, row.node_kind, row.measure), []).append(row)
        return tuple(_summed(rows) for rows in groups.values())

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, ready for JSON."""
        return {
            "mix": [{"like": str(kind.first), "claims": kind.count} for kind in self.kinds],
            "nodeKinds": [row.to_dict(self.claims) for row in self.node_kinds],
            "pools": [row.to_dict(self.claims) for row in self.pools],
            "remarks": list(self.remarks),
            "timings": dict(self.timings),
        }

    def parts(self) -> list[Part]:
        """The report as tables and lines."""
        found: list[Part] = [Line(self._headline(), "bold")]
        found += (Line(remark) for remark in self.remarks)
        mix = [(str(kind.count), str(kind.first)) for kind in self.kinds]
        found.append(Table("The mix", (">claims", "like"), mix))
        found.append(self._table("By kind of node", "nodes", self.node_kinds))
        worst = sorted((row for row in self.pools if row.unusable), key=lambda row: -row.unusable * 10**6 // row.total)
        more = f" ({_MOST_POOLS} of {len(worst)}, the worst first)" if len(worst) > _MOST_POOLS else ""
        found.append(self._table(f"By pool{more}", "pool", worst[:_MOST_POOLS]))
        found.append(timing_line(self.timings))
        return found

    def _headline(self) -> str:
        pools = {(row.driver, row.pool) for row in self.pools}
        hit = {(row.driver, row.pool) for row in self.pools if row.unusable}
        return (
            f"{len(hit)} of {len(pools)} pools have free capacity that stays free, however many claims of the mix come"
        )

    def _table(self, title: str, where: str, rows: Sequence[Capacity]) -> Table:
        causes = [cause for cause in Cause if any(row.stranded.get(cause) for row in rows)]
        columns = (
            where,
            "measure",
            ">of",
            ">free",
            ">stranded",
            ">",
            *(f">{cause.value}" for cause in causes),
            ">Weng et al.",
        )
        return Table(title, columns, [tuple(self._cells(row, causes)) for row in rows])

    def _cells(self, row: Capacity, causes: Sequence[Cause]) -> Iterator[str]:
        yield row.pool or row.node_kind
        yield row.measure
        yield amount(row.total)
        yield amount(row.free)
        yield f"{'' if row.proven else '<='}{amount(row.unusable)}"
        yield percent(row.unusable / row.free) if row.free else ""
        for cause in causes:
            yield amount(row.stranded[cause]) if row.stranded.get(cause) else ""
        yield percent(row.fragmented / (row.free * self.claims)) if row.free and self.claims else ""

    def __str__(self) -> str:
        return as_text(self.parts())


def _summed(rows: Sequence[Capacity]) -> Capacity:
    first = rows[0]
    stranded: Tally[Cause] = Tally()
    for row in rows:
        stranded.update(row.stranded)
    return Capacity(
        driver=first.driver,
        pool="",
        node_kind=first.node_kind,
        measure=first.measure,
        total=sum(row.total for row in rows),
        free=sum(row.free for row in rows),
        stranded={cause: stranded[cause] for cause in Cause if stranded[cause]},
        fragmented=sum(row.fragmented for row in rows),
        proven=all(row.proven for row in rows),
    )
