"""Tables and lines that people read, on a terminal or as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from dralloc.objects.quantity import Format, Quantity

__all__ = [
    "WIDTH",
    "Line",
    "Part",
    "Table",
    "amount",
    "as_text",
    "at_most",
    "counted",
    "counts_amounts",
    "duration",
    "folded",
    "listed",
    "one_line",
    "percent",
    "show",
    "tier_text",
    "timing_line",
    "visible",
]

WIDTH: Final = 120
"""Columns of help where nobody says how wide it may be."""


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table. Columns whose name starts with ``>`` are aligned to the right.

    ``wide``: whether it is only for those who want to see more.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; ``style`` is a rich style for terminals."""

    text: str
    style: str = ""


Part = Table | Line
"""What a report consists of."""


def show(
    console: Console,
    parts: Iterable[Part],
    *,
    wide: bool = False,
    headers: bool = True,
) -> None:
    """Print the parts, with an empty line before every table; nothing in them is a command, and nothing is wrapped.

    Parameters
    ----------
    wide
        Whether tables for those who want to see more are shown, too.
    headers
        Whether lines, titles and heads of columns are shown, and not only rows.
    """
    for part in parts:
        if isinstance(part, Line):
            if headers:
                above = "\n" if part.text.startswith("\n") else ""
                text = above + one_line(part.text.removeprefix("\n"))
                console.print(Text(text, part.style), soft_wrap=True)
        elif part.rows and (wide or not part.wide):
            if headers:
                console.print()
            for line in _table_lines(part, headers=headers):
                console.print(line, soft_wrap=True)


def visible(text: str) -> str:
    """Return the text with escapes for what a terminal would obey or not show: all but what prints and line breaks."""
    return "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def one_line(text: str) -> str:
    """Return the same without line breaks."""
    return text if text.isprintable() else visible(text).replace("\n", "\\n")


def _table_lines(table: Table, *, headers: bool) -> Iterator[Text]:
    """Yield a table as lines: columns are as wide as they need, as those of kubectl."""
    heads = [one_line(column.removeprefix(">")) for column in table.columns]
    # A row has its cells, a cell its lines.
    shown = [[[head] for head in heads]] if headers else []
    shown.extend(map(_lines_of_cells, table.rows))
    widths = [
        _column_width(shown, column_index) for column_index in range(len(heads))
    ]
    if headers and table.title:
        yield Text(one_line(table.title), "bold")
    for row_index, row_lines in enumerate(shown):
        style = "bold" if headers and row_index == 0 else ""
        for cells in zip_longest(*row_lines, fillvalue=""):
            padded = map(_padded, cells, widths, table.columns)
            yield Text(f" {'  '.join(padded)}".rstrip(), style)


def _lines_of_cells(row: Sequence[str]) -> list[list[str]]:
    return [visible(cell).split("\n") for cell in row]


def _column_width(rows: Iterable[Sequence[Sequence[str]]], column: int) -> int:
    """Return the width of a column on a terminal, where characters of East Asian scripts take two columns."""
    return max(cell_len(line) for row in rows for line in row[column])


def _padded(text: str, width: int, column: str) -> str:
    """Return a cell as wide as its column, with its text at the side where the column has it."""
    space = " " * (width - cell_len(text))
    return f"{space}{text}" if column.startswith(">") else f"{text}{space}"


def as_text(parts: Iterable[Part]) -> str:
    """Return the parts as plain text."""
    out = StringIO()
    # The width of the terminal does not matter, but nothing at all is printed where it is 0.
    console = Console(file=out, no_color=True, highlight=False, width=WIDTH)
    show(console, parts)
    return out.getvalue().removesuffix("\n")


def percent(share: float | None) -> str:
    """Return a share as a percentage with one digit; an empty string for None."""
    return "" if share is None else f"{100 * share:.1f}%"


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number of things: ``1 device``, ``2 devices``."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def listed(words: Sequence[str], maximum: int) -> str:
    """Return at most so many of the words, and how many more there are."""
    further = (
        f" and {len(words) - maximum} more" if len(words) > maximum else ""
    )
    return ", ".join(words[:maximum]) + further


def duration(seconds: float) -> str:
    """Seconds with three digits that matter, from a thousand on all whole ones."""
    if seconds >= 999.5:
        return f"{seconds:.0f} s"
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.3g} s"


def amount(nanos: int) -> str:
    """Return an amount in decimal or binary units, whichever is shorter."""
    return min(
        str(Quantity(nanos)), str(Quantity(nanos, Format.BINARY)), key=len
    )


def at_most(nanos: int) -> str:
    """Return an amount that is easy to read and no larger: of many digits in a small unit, some in a large one.

    Examples
    --------
    >>> at_most(2267742732 * 1024 * 10**9), at_most(8 * 10**9)
    ('2162Gi', '8')
    """
    exact = amount(nanos)
    whole = nanos // _NANO
    larger = (
        f"{whole >> bits}{unit}"
        for unit, bits in _BINARY_UNITS.items()
        if whole >> bits >= _READABLE
    )
    return min(exact, next(larger, exact), key=len)


_NANO: Final = 10**9
_BINARY_UNITS: Final = {
    unit: 10 * power
    for power, unit in reversed(list(enumerate(("Ki", "Mi", "Gi", "Ti"), 1)))
}
"""Units by how many bits they shift, the largest first."""
_READABLE: Final = 100
"""With so many of a unit, leaving out the rest takes less than a hundredth away."""


def counts_amounts(tier: str) -> bool:
    """Return whether a tier of the objective sums up amounts, in nanos, as fairness does; the others just count."""
    return tier.startswith(("fairness-", "amount of "))


def tier_text(tier: str, value: int) -> str:
    """Return a value or bound of a tier."""
    return amount(value) if counts_amounts(tier) else str(value)


def folded(
    rows: Sequence[tuple[str, ...]], columns: int
) -> list[tuple[str, ...]]:
    """Return the rows with their first columns left empty where they repeat the row before."""
    result: list[tuple[str, ...]] = []
    for before, row in zip([(), *rows], rows, strict=False):
        repeated = 0
        while (
            repeated < columns
            and before[repeated : repeated + 1] == row[repeated : repeated + 1]
        ):
            repeated += 1
        result.append(("",) * repeated + row[repeated:])
    return result


def timing_line(timings: Mapping[str, float]) -> Line:
    """Seconds by phase in one line, below everything else."""
    return Line(
        "\n"
        + ", ".join(
            f"{name} {duration(seconds)}" for name, seconds in timings.items()
        ),
        "dim",
    )
