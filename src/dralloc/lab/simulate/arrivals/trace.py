"""Traces: who arrives when and runs how long, read from and written to CSV.

Times are whole milliseconds inside and seconds in files. A file has a header and one arrival per line:

- ``time``: seconds since the beginning of the trace;
- ``duration``: for how many seconds it runs once it is placed; empty if it never leaves;
- ``template``: what arrives, ``NAME`` or ``NAMESPACE/NAME`` of something in the cluster: a pod, an owner of pods such
  as a Job, or a ResourceClaimTemplate or ResourceClaim, which is all that its pod asks for then;
- ``priority``: in place of that of the template;
- ``namespace``: where it arrives, if not where its template is;
- ``group``: arrivals of one namespace and group are placed together or not at all.

The last three may be missing or empty. Other columns are not looked at.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Final

from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.problem.supply import record

__all__ = ["LONGEST", "MILLISECONDS", "Arrival", "read_trace", "trace_text"]

MILLISECONDS: Final = 1000
"""In a second."""

_COLUMNS: Final = (
    "time",
    "duration",
    "template",
    "priority",
    "namespace",
    "group",
)
_NEEDED: Final = _COLUMNS[:3]
LONGEST: Final = 10**12
"""Seconds that no time of a trace exceeds: thirty thousand years."""


@record
class Arrival:
    """Somebody who arrives.

    Parameters
    ----------
    time
        Milliseconds since the beginning of the trace.
    template
        What in the cluster it is a copy of.
    duration
        Milliseconds for which it runs; None if it never leaves.
    priority
        In place of that of its template; None for just that.
    namespace
        Where it arrives; empty for the namespace of its template.
    group
        Arrivals of a namespace with the same group are placed together or not at all; empty for one by itself.

    Examples
    --------
    >>> import dralloc
    >>> from dralloc.objects.names import ClaimKey
    >>> large = dralloc.Arrival(0, ClaimKey("default", "large"), duration=60_000)
    >>> dralloc.simulate(dralloc.example(), [large, large])
    <Simulated: first-fit: 2 of 2 arrivals got a place>
    """

    time: int
    template: ClaimKey
    duration: int | None = None
    priority: int | None = None
    namespace: str = ""
    group: str = ""


def read_trace(path: str | PathLike[str]) -> tuple[Arrival, ...]:
    """Read a trace; its arrivals in the order of their times, those of one time as they stand in the file.

    Raises
    ------
    DrallocError
        The file cannot be read, a column is missing, or a line holds something else than it should.
    """
    where = Path(path)
    try:
        # A byte order mark, as spreadsheets write it, must not become part of the first column's name.
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            error.strerror
            if isinstance(error, OSError)
            else "is no text in UTF-8"
        )
        raise DrallocError(f"{where}: cannot be read: {reason}") from None
    rows = csv.DictReader(StringIO(text))
    try:
        missing = [
            column
            for column in _NEEDED
            if column not in (rows.fieldnames or ())
        ]
        if missing:
            raise DrallocError(
                f"{where}: a trace has the columns {', '.join(_NEEDED)}; missing: {', '.join(missing)}"
            )
        arrivals = [_arrival(f"{where}:{rows.line_num}", row) for row in rows]
    except csv.Error as error:
        # A quotation mark that is never closed, for instance.
        raise DrallocError(f"{where}:{rows.line_num}: {error}") from None
    return tuple(sorted(arrivals, key=lambda arrival: arrival.time))


def _arrival(where: str, row: Mapping[str, str | None]) -> Arrival:
    fields = {column: (row.get(column) or "").strip() for column in _COLUMNS}
    if not fields["template"]:
        raise DrallocError(f"{where}: template: is empty")
    if not fields["time"]:
        raise DrallocError(f"{where}: time: is empty")
    return Arrival(
        time=_milliseconds(where, "time", fields["time"]),
        template=ClaimKey.parse(fields["template"]),
        duration=_milliseconds(where, "duration", fields["duration"])
        if fields["duration"]
        else None,
        priority=_priority(where, fields["priority"])
        if fields["priority"]
        else None,
        namespace=fields["namespace"],
        group=fields["group"],
    )


def _milliseconds(where: str, column: str, text: str) -> int:
    """Return a number of seconds, rounded to milliseconds, half of one to the even one."""
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        raise DrallocError(
            f"{where}: {column}: {text!r} is no number of seconds"
        ) from None
    if not (seconds.is_finite() and 0 <= seconds <= LONGEST):
        raise DrallocError(
            f"{where}: {column}: {text} is not between 0 and {LONGEST} seconds"
        )
    return round(seconds * MILLISECONDS)


def _priority(where: str, text: str) -> int:
    try:
        priority = int(text)
    except ValueError:
        raise DrallocError(
            f"{where}: priority: {text!r} is no integer"
        ) from None
    if not -(2**31) <= priority < 2**31:
        raise DrallocError(
            f"{where}: priority: {text} is no integer of 32 bits"
        )
    return priority


def _in_seconds(milliseconds: int | None) -> str:
    """Milliseconds as the fewest digits of seconds; empty for None."""
    if milliseconds is None:
        return ""
    seconds, part = divmod(milliseconds, MILLISECONDS)
    return f"{seconds}.{part:03}".rstrip("0") if part else str(seconds)


def trace_text(arrivals: Iterable[Arrival]) -> str:
    """Return the arrivals as a file that `read_trace` reads."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_rows(arrivals))
    return text.getvalue()


def _rows(arrivals: Iterable[Arrival]) -> Iterator[Sequence[str]]:
    for arrival in arrivals:
        priority = "" if arrival.priority is None else str(arrival.priority)
        yield (
            _in_seconds(arrival.time),
            _in_seconds(arrival.duration),
            str(arrival.template),
            priority,
            arrival.namespace,
            arrival.group,
        )
