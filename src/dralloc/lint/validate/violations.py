"""What validation finds: violations of rules, at levels; and the JSON of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import AliasPath, Field

from dralloc.objects.answer import Document, Documented, Fields
from dralloc.objects.errors import Finding, Level
from dralloc.objects.report import Line, Part, Table

__all__ = ["Validation", "Violation"]


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
        return self.line

    @property
    def line(self) -> str:
        """The violation as compilers write theirs: ``file:line:column: level: rule: object: field: message``."""
        words = (
            self.finding.place,
            str(self.level),
            self.rule,
            self.subject,
            self.path,
            # What follows the first line shows where in an expression it is.
            self.message.partition("\n")[0],
        )
        return ": ".join(filter(None, words))

    @property
    def source(self) -> str:
        """The place where the object was read."""
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
        """The rule, in words that say what is wrong."""
        return self.finding.rule


_NAMES: Final = {
    Level.ERROR: ("error", "errors"),
    Level.WARNING: ("warning", "warnings"),
    Level.INFO: ("remark", "remarks"),
}


class ViolationFields(
    Fields,
    of=Violation,
    shown="level rule source line column subject path message",
):
    """A rule that does not hold at one place."""

    source: str
    """The place where the object was read."""
    line: int = Field(validation_alias=AliasPath("finding", "line"))
    """Where the field is in the file, from 1; 0 where it cannot be told."""
    column: int = Field(validation_alias=AliasPath("finding", "column"))
    """The column in this line, from 1; 0 where it cannot be told."""
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
        """The number of violations at each level."""
        counts = Counter(violation.level for violation in self)
        return ", ".join(
            f"{counts[level]} {names[counts[level] != 1]}"
            for level, names in _NAMES.items()
        )

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All violations, by object."""
        return tuple(self)

    def lines(self) -> Iterator[str]:
        """Yield a line for each error, and for each warning or remark that others only repeat in other places.

        A class that was not given is missing in every request for it: that is said once, with the number of places.
        """
        alike: dict[object, list[Violation]] = {}
        for violation in self:
            match violation:
                case Violation(level=Level.ERROR):
                    location: object = violation.finding
                case Violation(rule=rule) if rule in _NAMING_CLASSES:
                    location = ""
                case _:
                    location = violation.source, violation.subject
            same_words = violation.rule, violation.message, location
            alike.setdefault(same_words, []).append(violation)
        for first, *repeated in alike.values():
            yield first.line + _elsewhere(len(repeated))

    def parts(self) -> list[Part]:
        """Return the headline, then everything."""
        rows = [
            (
                violation.finding.place,
                str(violation.level),
                violation.rule,
                violation.subject,
                violation.path,
                violation.message,
            )
            for violation in self
        ]
        return [Line(self.headline, "bold"), Table("", _COLUMNS, rows)]

    def names(self) -> Iterable[str]:
        """Return the objects that it is about."""
        return dict.fromkeys(
            violation.subject for violation in self if violation.subject
        )


_COLUMNS: Final = ("place", "level", "rule", "object", "field", "message")


_NAMING_CLASSES: Final = {"request-class-missing", "request-class-unknown"}
"""Rules whose words name a class: who asks for it matters less."""


def _elsewhere(count: int) -> str:
    """Return what to add to a line that stands for this many more places."""
    if not count:
        return ""
    return f"; also in {count} more {'places' if count > 1 else 'place'}"
