"""What validation finds: violations of rules, at levels; as JSON, and as SARIF 2.1.0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Any, Final

from pydantic import Field

from dralloc.lint.validate.rule import Rule
from dralloc.objects.answer import Document, Documented, Fields
from dralloc.objects.errors import Finding, Level
from dralloc.objects.report import Line, Part, Table

__all__ = ["Validation", "Violation", "as_sarif"]

# ----------------------------------------------------------------------------
# What validation finds: violations of rules, at levels; and the JSON of them.


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
        """The rule, in words that say what is wrong."""
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
        """The number of violations at each level."""
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
        """Return the headline, then everything."""
        return [Line(self.headline, "bold"), *self.tables()]

    def tables(self) -> Iterator[Part]:
        """Yield a line and a table for each object; titles of tables would be wrapped at their width."""
        for (source, subject), violations in groupby(
            self, lambda violation: (violation.source, violation.subject)
        ):
            title = ": ".join(part for part in (source, subject) if part)
            rows = [
                (
                    str(violation.level),
                    violation.path,
                    violation.message,
                    violation.rule,
                )
                for violation in violations
            ]
            yield Line(f"\n{title}", "bold")
            yield Table("", ("level", "path", "message", "rule"), rows)


# ----------------------------------------------------------------------------
# Violations as SARIF 2.1.0, which code hosts show beside the files of a change.

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
_DOCUMENT: Final = re.compile(r"(?P<file>.*): document (?P<number>[0-9]+)", re.DOTALL)
_HOME: Final = "https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/resource/validation/validation.go"

Json = dict[str, Any]


def as_sarif(violations: Sequence[Violation], rules: Iterable[Rule]) -> Json:
    """Return a log with one run. All rules are in it, so that a viewer can tell what was looked at.

    Source: OASIS Static Analysis Results Interchange Format, version 2.1.0.
    """
    descriptors = [_descriptor(rule) for rule in rules]
    index = {descriptor["id"]: number for number, descriptor in enumerate(descriptors)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "dralloc", "rules": descriptors}},
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(violation, index[violation.rule])
                    for violation in violations
                ],
            }
        ],
    }


def _descriptor(rule: Rule) -> Json:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.help},
        "help": {"text": f"{rule.help} Source: {rule.origin}."},
        "helpUri": _HOME,
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
    }


def _result(violation: Violation, index: int) -> Json:
    where = f"{violation.path}: " if violation.path else ""
    return {
        "ruleId": violation.rule,
        "ruleIndex": index,
        "level": _LEVELS[violation.level],
        "message": {
            "text": f"{violation.subject}: {where}{violation.message}".removeprefix(
                ": "
            )
        },
        "locations": [_location(violation)],
    }


def _location(violation: Violation) -> Json:
    match = _DOCUMENT.fullmatch(violation.source)
    file = match["file"] if match else violation.source
    logical: Json = {
        "fullyQualifiedName": f"{violation.subject}: {violation.path}",
        "kind": "member",
    }
    if match:
        logical["properties"] = {"document": int(match["number"])}
    location: Json = {"logicalLocations": [logical]}
    if file and not file.startswith("<"):
        path = PurePath(file)
        uri = path.as_uri() if path.is_absolute() else path.as_posix()
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}}
    return location
