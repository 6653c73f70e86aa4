"""The report on stranded capacity: what it consists of, as users hold it, and its JSON."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, ValidationInfo

from dralloc.ask.stranded.quantities import Cause
from dralloc.objects.answer import (
    Amount,
    Fields,
    Key,
    Nanos,
    Timings,
    Word,
    described,
)
from dralloc.objects.report import Line, Part, Table, amount, percent
from dralloc.show.question import Provisional, ProvisionalDocument

__all__ = ["Row", "Stranding", "StrandingDocument", "summed"]


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
    return [
        RequestClassFields(like=name, claims=count)
        for name, count in mix.items()
    ]


def _fragmentation(nanos: int, info: ValidationInfo) -> FragmentationFields:
    return FragmentationFields(sum=nanos, claims=described(info).claims)


_MOST_POOLS: Final = 20
"""So many pools are shown in a printed report."""


@dataclass(frozen=True)
class Row:
    """How much there is of one thing in a pool, or in all pools of one kind of node. Amounts in nanos.

    Parameters
    ----------
    driver, pool, node_kind
        Where; ``pool`` is empty for several pools.
    total, free
        What is published, and what nobody holds.
    causes
        The part of the free amount that is of no use to the mix, by what strands it.
    fragmented
        The measure of Weng et al., times the number of claims in the mix.
    """

    driver: str
    pool: str
    node_kind: str
    measure: str
    """What is counted: ``counter NAME``, ``capacity NAME`` or ``devices``."""
    total: Nanos
    free: Nanos
    causes: Mapping[Cause, int]
    fragmented: int

    @property
    def stranded(self) -> int:
        """The stranded amount, whatever strands it."""
        return sum(self.causes.values())

    @property
    def usable(self) -> int:
        """The free amount that is of use."""
        return self.free - self.stranded

    def plus(self, row: Row) -> Row:
        """Return both rows in one."""
        causes = Tally(self.causes) + Tally(row.causes)
        return replace(
            self,
            total=self.total + row.total,
            free=self.free + row.free,
            causes={cause: causes[cause] for cause in Cause if causes[cause]},
            fragmented=self.fragmented + row.fragmented,
        )


def summed(rows: Iterable[Row]) -> Mapping[tuple[str, str, str, str], Row]:
    """Return one row for each quantity of a pool, or of all pools of a kind of node."""
    sums: dict[tuple[str, str, str, str], Row] = {}
    for row in rows:
        key = row.driver, row.pool, row.measure, row.node_kind
        sums[key] = sums[key].plus(row) if key in sums else row
    return sums


class RowFields(
    Fields,
    of=Row,
    shown="driver pool node_kind measure total free usable causes fragmented",
):
    """How much there is of one thing in a pool, or in all pools of one kind of node."""

    pool: Word
    """Null for several pools."""
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


@dataclass(frozen=True, repr=False)
class Stranding(Provisional):
    """What is free but of no use. ``print(stranding)`` is a readable report.

    Parameters
    ----------
    mix
        The kinds of claims, by the name of one, and how many there are of each.
    pools
        One row for each thing that is counted in each pool.
    remarks
        What was left out, and why.

    Examples
    --------
    >>> import dralloc
    >>> stranding = dralloc.stranded(dralloc.example(), ["default/large"])
    >>> stranding.headline
    '1 of 2 pools have free capacity that no claim of the mix can use'
    >>> [(row.pool, row.free // 10**9, row.stranded // 10**9) for row in stranding.pools]
    [('node-0', 2, 1), ('node-1', 0, 0)]
    """

    document = StrandingDocument

    mix: Mapping[str, int]
    pools: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def claims(self) -> int:
        """The number of claims in the mix."""
        return sum(self.mix.values())

    @cached_property
    def node_kinds(self) -> tuple[Row, ...]:
        """One row for each thing that a driver has on each kind of node."""
        return tuple(
            summed(replace(row, pool="") for row in self.pools).values()
        )

    def names(self) -> Iterator[str]:
        """The pools with free capacity that is of no use."""
        stranded = (row for row in self.pools if row.stranded)
        yield from dict.fromkeys(f"{row.driver}/{row.pool}" for row in stranded)

    def body(self) -> list[Part]:
        """Return the report as tables and lines."""
        mix = [(str(count), name) for name, count in self.mix.items()]
        worst = sorted(
            (row for row in self.pools if row.stranded),
            key=lambda row: -row.stranded * 10**6 // row.total,
        )
        by_pool = "By pool"
        if len(worst) > _MOST_POOLS:
            by_pool += f" ({_MOST_POOLS} of {len(worst)}, the worst first)"
        return [
            Line(self.headline, "bold"),
            *map(Line, self.remarks),
            Table("The mix", (">claims", "like"), mix),
            self._table("By kind of node", "nodes", self.node_kinds),
            self._table(by_pool, "pool", worst[:_MOST_POOLS]),
        ]

    @property
    def conclusion(self) -> str:
        """Say how many pools have free capacity that is of no use."""
        pools = {(row.driver, row.pool) for row in self.pools}
        hit = {(row.driver, row.pool) for row in self.pools if row.stranded}
        return f"{len(hit)} of {len(pools)} pools have free capacity that no claim of the mix can use"

    def _table(self, title: str, where: str, rows: Sequence[Row]) -> Table:
        stranded_by = Tally[Cause]()
        for row in rows:
            stranded_by.update(row.causes)
        causes = [cause for cause in Cause if stranded_by[cause]]
        by_cause = (f">{cause.value}" for cause in causes)
        columns = (
            where,
            "driver",
            "measure",
            ">of",
            ">free",
            ">stranded",
            ">",
            *by_cause,
            ">F (Weng et al.)",
        )
        return Table(
            title, columns, [tuple(self._cells(row, causes)) for row in rows]
        )

    def _cells(self, row: Row, causes: Sequence[Cause]) -> Iterator[str]:
        yield row.pool or row.node_kind
        yield row.driver
        yield row.measure
        yield amount(row.total)
        yield amount(row.free)
        yield amount(row.stranded)
        yield percent(row.stranded / row.free) if row.free else ""
        for cause in causes:
            yield amount(row.causes[cause]) if row.causes.get(cause) else ""
        yield (
            percent(row.fragmented / (row.free * self.claims))
            if row.free
            else ""
        )
