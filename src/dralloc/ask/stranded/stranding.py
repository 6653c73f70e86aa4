"""What a report on stranded capacity consists of, as users hold it, and its JSON."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from dralloc.ask.stranded.quantities import Cause
from dralloc.objects.answer import Amount, Fields, Key, Timings, Word, described
from dralloc.objects.report import Line, Part, Table, amount, percent
from dralloc.show.question import Provisional, ProvisionalDocument

__all__ = ["Row", "Stranding", "summed"]

# ----------------------------------------------------------------------------
# The JSON of reports on stranded capacity.


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


_MOST_POOLS = 20


@dataclass(frozen=True)
class Row:
    """How much there is of one thing in a pool, or in all pools of one kind of node. Amounts in nanos.

    Parameters
    ----------
    driver, pool, node_kind
        Where; ``pool`` is empty for several pools.
    measure
        What is counted: ``counter NAME``, ``capacity NAME`` or ``devices``.
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
    total: int
    free: int
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

    def plus(self, other: Row) -> Row:
        """Both rows in one."""
        causes = Tally(self.causes) + Tally(other.causes)
        return replace(
            self,
            total=self.total + other.total,
            free=self.free + other.free,
            causes={cause: causes[cause] for cause in Cause if causes[cause]},
            fragmented=self.fragmented + other.fragmented,
        )


def summed(rows: Iterable[Row]) -> Mapping[tuple[str, str, str, str], Row]:
    """One row for each quantity of a pool, or of all pools of a kind of node."""
    found: dict[tuple[str, str, str, str], Row] = {}
    for row in rows:
        key = row.driver, row.pool, row.measure, row.node_kind
        found[key] = found[key].plus(row) if key in found else row
    return found


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
    >>> found = dralloc.stranded(dralloc.example(), ["default/large"])
    >>> found.headline
    '1 of 2 pools have free capacity that no claim of the mix can use'
    >>> [(row.pool, row.free // 10**9, row.stranded // 10**9) for row in found.pools]
    [('node-0', 2, 1), ('node-1', 0, 0)]
    """

    document = StrandingDocument

    mix: Mapping[str, int]
    pools: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def claims(self) -> int:
        """How many claims the mix has."""
        return sum(self.mix.values())

    @cached_property
    def node_kinds(self) -> tuple[Row, ...]:
        """One row for each thing that a driver has on each kind of node."""
        return tuple(summed(replace(row, pool="") for row in self.pools).values())

    def names(self) -> Iterator[str]:
        """The pools with free capacity that is of no use."""
        yield from dict.fromkeys(row.pool for row in self.pools if row.stranded)

    def body(self) -> list[Part]:
        """The report as tables and lines."""
        found: list[Part] = [Line(self.headline, "bold"), *map(Line, self.remarks)]
        found.append(
            Table(
                "The mix",
                (">claims", "like"),
                [(str(count), name) for name, count in self.mix.items()],
            )
        )
        found.append(self._table("By kind of node", "nodes", self.node_kinds))
        worst = sorted(
            (row for row in self.pools if row.stranded),
            key=lambda row: -row.stranded * 10**6 // row.total,
        )
        more = (
            f" ({_MOST_POOLS} of {len(worst)}, the worst first)"
            if len(worst) > _MOST_POOLS
            else ""
        )
        found.append(self._table(f"By pool{more}", "pool", worst[:_MOST_POOLS]))
        return found

    @property
    def conclusion(self) -> str:
        """How many pools have free capacity that is of no use."""
        pools = {(row.driver, row.pool) for row in self.pools}
        hit = {(row.driver, row.pool) for row in self.pools if row.stranded}
        return f"{len(hit)} of {len(pools)} pools have free capacity that no claim of the mix can use"

    def _table(self, title: str, where: str, rows: Sequence[Row]) -> Table:
        causes = [
            cause for cause in Cause if any(row.causes.get(cause) for row in rows)
        ]
        by_cause = (f">{cause.value}" for cause in causes)
        columns = (
            where,
            "measure",
            ">of",
            ">free",
            ">stranded",
            ">",
            *by_cause,
            ">F (Weng et al.)",
        )
        return Table(title, columns, [tuple(self._cells(row, causes)) for row in rows])

    def _cells(self, row: Row, causes: Sequence[Cause]) -> Iterator[str]:
        yield row.pool or row.node_kind
        yield row.measure
        yield amount(row.total)
        yield amount(row.free)
        yield amount(row.stranded)
        yield percent(row.stranded / row.free) if row.free else ""
        for cause in causes:
            yield amount(row.causes[cause]) if row.causes.get(cause) else ""
        yield percent(row.fragmented / (row.free * self.claims)) if row.free else ""
