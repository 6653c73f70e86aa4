"""What validation finds: violations of rules, at levels; and the JSON of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pydantic import Field

from dralloc.objects.answer import Documented
from dralloc.objects.errors import Finding, Level
from dralloc.objects.report import Line, Part, Table
from dralloc.objects.schema import Document, Fields

__all__ = ["Validation", "ValidationDocument", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold at one place.

    Parameters
    ----------
    level
        How bad it is.
    rule
        The id of the rule, e.g. ``slice-device-limit``.
    finding
        Where it was found and what is wrong there, as for findings of the loader.

    Examples
    --------
    >>> import dralloc
    >>> from dataclasses import replace
    >>> cluster = dralloc.example()
    >>> for violation in dralloc.validate(replace(cluster, classes={})):
    ...     print(violation.level, violation.rule)
    info request-class-unknown
    info request-class-unknown
    """

    level: Level
    rule: str
    finding: Finding

    def __str__(self) -> str:
        return f"{self.level}: {self.finding} ({self.rule})"

    @property
    def source(self) -> str:
        """Where the object was read."""
        return self.finding.source

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return self.finding.subject

    @property
    def path(self) -> str:
        """The field, as the API server writes it; empty for the object as a whole."""
        return self.finding.path

    @property
    def message(self) -> str:
        """What is wrong."""
        return self.finding.rule


_NAMES: Final = {
    Level.ERROR: ("error", "errors"),
    Level.WARNING: ("warning", "warnings"),
    Level.INFO: ("remark", "remarks"),
}


class ViolationFields(Fields):
    """A rule that does not hold at one place."""

    level: Level
    rule: str
    source: str
    """Where the object was read."""
    object: str = Field(validation_alias="subject")
    """Kind and name."""
    path: str
    """The field, as the API server writes it; empty for the object as a whole."""
    message: str


class ValidationDocument(Document):
    """What ``dralloc validate --json`` prints."""

    violations: list[ViolationFields]


class Validation(Documented, tuple[Violation, ...]):
    """All violations, by object. ``print(validation)`` is a readable report.

    Examples
    --------
    >>> import dralloc
    >>> found = dralloc.validate(dralloc.example())
    >>> print(found.headline)
    0 errors, 0 warnings, 0 remarks
    """

    document = ValidationDocument

    @property
    def headline(self) -> str:
        """How many there are at each level."""
        counts = Counter(violation.level for violation in self)
        return ", ".join(
            f"{counts[level]} {names[counts[level] != 1]}"
            for level, names in _NAMES.items()
        )

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All of them."""
        return tuple(self)

    def parts(self) -> list[Part]:
        """The headline, then everything."""
        return [Line(self.headline, "bold"), *self.tables()]

    def tables(self) -> Iterator[Part]:
        """A line and a table for each object; titles of tables would be wrapped at their width."""
        for (source, subject), found in groupby(
            self, lambda one: (one.source, one.subject)
        ):
            title = ": ".join(part for part in (source, subject) if part)
            rows = [(str(one.level), one.path, one.message, one.rule) for one in found]
            yield Line(f"\n{title}", "bold")
            yield Table("", ("level", "path", "message", "rule"), rows)
