"""Admission: what the API server refuses, and what it accepts and users suffer from.

The rules are in tables, one module for each kind of thing: a small function over a part of an object, with an id, a
level and words about it. Errors follow ``pkg/apis/resource/validation`` of Kubernetes 1.37, with its limits and paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from pydantic import AliasPath, Field

from dralloc.lint.validate.claims import CLAIM_RULES
from dralloc.lint.validate.classes import CLASS_RULES
from dralloc.lint.validate.counters import ALLOCATABLE_RULES, COUNTER_RULES
from dralloc.lint.validate.device_taints import DEVICE_TAINT_RULES
from dralloc.lint.validate.devices import DEVICE_RULES
from dralloc.lint.validate.metadata import METADATA_RULES
from dralloc.lint.validate.node_selectors import NODE_SELECTOR_RULES
from dralloc.lint.validate.pools import POOL_RULES
from dralloc.lint.validate.rule import (
    Issue,
    Parts,
    Rule,
    RulePart,
    ValidationContext,
    errors,
    nothing,
    warnings,
)
from dralloc.lint.validate.slices import SLICE_RULES
from dralloc.lint.validate.status import POD_RULES, STATUS_RULES
from dralloc.lint.validate.stored_objects import Stored
from dralloc.lint.validate.unsatisfiable import OFFER_RULES, UNSATISFIABLE_RULES
from dralloc.objects.answer import Document, Documented, Fields
from dralloc.objects.api import ApiObject
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import Finding, Level, file_of
from dralloc.objects.features import (
    ALL_FEATURES,
    NEWEST_MINOR,
    Features,
    minor_version,
)
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.load import Reading, located
from dralloc.objects.report import Line, Part, Table

__all__ = [
    "RULES",
    "Level",
    "Validation",
    "Violation",
    "as_sarif",
    "validate",
    "validate_reading",
]

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


# ----------------------------------------------------------------------------
# Violations as SARIF 2.1.0, which code hosts show beside the files of a change.

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {
    Level.ERROR: "error",
    Level.WARNING: "warning",
    Level.INFO: "note",
}
_DOCUMENT: Final = re.compile(r": document (?P<number>[0-9]+)$")
_HOME: Final = "https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/resource/validation/validation.go"

Json = dict[str, Any]


def as_sarif(violations: Sequence[Violation], rules: Iterable[Rule]) -> Json:
    """Return a log with one run. All rules are in it, so that a viewer can tell what was looked at.

    Source: OASIS Static Analysis Results Interchange Format, version 2.1.0.
    """
    descriptors = [_descriptor(rule) for rule in rules]
    index = {
        descriptor["id"]: rule_index
        for rule_index, descriptor in enumerate(descriptors)
    }
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
    match = _DOCUMENT.search(violation.source)
    file = file_of(violation.source)
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
        physical: Json = {"artifactLocation": {"uri": uri}}
        finding = violation.finding
        if finding.line:
            physical["region"] = {
                "startLine": finding.line,
                "startColumn": finding.column,
            }
        location["physicalLocation"] = physical
    return location


# ----------------------------------------------------------------------------
# All rules, and what they say about a cluster.


def _nothing(_context: ValidationContext) -> Iterator[RulePart[Finding]]:
    return iter(())


# What the loader refuses, what it leaves out, what it takes the first of, and what the API server drops without a word.
[SCHEMA] = errors(
    _nothing,
    ("schema", nothing, "The object has the fields and types of its kind."),
    origin="the API's types",
)
[UNKNOWN_FIELD] = warnings(
    _nothing,
    (
        "unknown-field",
        nothing,
        "Every field is one that the API knows; others are dropped, or refused if the client asks for that.",
    ),
    origin="the API's types; fieldValidation",
)
[REPEATED] = warnings(
    _nothing,
    (
        "repeated-object",
        nothing,
        "An object is given once: on the server a later one of its name would replace it. Each of them is checked.",
    ),
    origin="kubectl apply",
)
[DROPPED] = warnings(
    _nothing,
    (
        "dropped-field",
        nothing,
        "Every field is one that the asked version has and keeps, by its feature gates.",
    ),
    origin="pkg/registry/resource, dropDisabledFields",
)

RULES: Final[tuple[Rule, ...]] = (
    SCHEMA,
    UNKNOWN_FIELD,
    REPEATED,
    DROPPED,
    *METADATA_RULES,
    *SLICE_RULES,
    *DEVICE_RULES,
    *COUNTER_RULES,
    *DEVICE_TAINT_RULES,
    *NODE_SELECTOR_RULES,
    *ALLOCATABLE_RULES,
    *CLASS_RULES,
    *CLAIM_RULES,
    *STATUS_RULES,
    *POOL_RULES,
    *OFFER_RULES,
    *UNSATISFIABLE_RULES,
    *POD_RULES,
)
"""Every rule there is."""

_OF_CLASSES: Final = {rule.id for rule in (*OFFER_RULES, *UNSATISFIABLE_RULES)}
_ABOUT_OTHERS: Final = {
    "DeviceClass": _OF_CLASSES - {"request-class-missing"},
    "ResourceSlice": _OF_CLASSES.union(rule.id for rule in POOL_RULES)
    - {"request-class-missing", "request-class-unknown"},
}
"""Rules that look at all objects of a kind: they say nothing where one of these was refused."""


@without_garbage_collection()
def validate(
    cluster: Cluster,
    features: Features = ALL_FEATURES,
    kubernetes: str | None = None,
) -> Validation:
    """Check what the API server would refuse in a cluster's objects, and what it accepts and will hurt.

    Parameters
    ----------
    features
        Which feature gates are on; fields of those that are off are dropped, and expressions cannot use them.
    kubernetes
        The version of the API server that is asked, ``1.34`` to ``1.37``; None for the newest, with all of its fields.

    Returns
    -------
    Validation
        A tuple of violations by object, in the order in which they were read, the worst first for each.

    Raises
    ------
    DrallocError
        The version is not known.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.validate(dralloc.example())
    <Validation: 0 errors, 0 warnings, 0 remarks>
    """
    cluster = cluster_of(cluster)
    stored = Stored(features, minor_version(kubernetes) if kubernetes else None)
    context = ValidationContext(
        stored.cluster(cluster), features, stored.minor or NEWEST_MINOR
    )
    position = {
        identity: index for index, identity in enumerate(cluster.sources)
    }
    broken = [
        *((owner, DROPPED, issue) for owner, issue in stored.dropped),
        *_broken(context),
    ]
    broken.sort(
        key=lambda violation: (
            position.get(_identity(violation[0]), len(position)),
            violation[1].level.rank,
        )
    )
    findings = [
        Finding(cluster.sources.get(_identity(owner), ""), owner.title, *issue)
        for owner, _, issue in broken
    ]
    return Validation(
        Violation(rule.level, rule.id, finding)
        for (_, rule, _), finding in zip(broken, located(findings), strict=True)
    )


def validate_reading(
    reading: Reading,
    features: Features = ALL_FEATURES,
    kubernetes: str | None = None,
) -> Validation:
    """Do the same as `validate`, with what the loader could not use or did not know."""
    stored = Stored(features, minor_version(kubernetes) if kubernetes else None)
    # The loader refuses what the newest version refuses; an older server drops fields that it does not have.
    dropped = [
        finding for finding in reading.refused if stored.has_no(finding.path)
    ]
    said = {
        SCHEMA: [
            finding for finding in reading.refused if finding not in dropped
        ],
        DROPPED: [
            replace(
                finding,
                rule=f"the API server drops it, as this version does not have it; here {finding.rule}",
            )
            for finding in dropped
        ],
        UNKNOWN_FIELD: reading.unknown,
        REPEATED: [
            replace(
                finding,
                rule=f"{finding.rule}: the API server would update it",
            )
            for finding in reading.repeated
        ],
    }
    loaded = (
        Violation(rule.level, rule.id, finding)
        for rule, findings in said.items()
        for finding in located(findings)
    )
    checked = (
        violation
        for violation in _of_all_versions(reading, features, kubernetes)
        if not _follows(violation, reading)
    )
    return Validation(_in_order_of_files([*loaded, *checked]))


def _of_all_versions(
    reading: Reading, features: Features, kubernetes: str | None
) -> Iterator[Violation]:
    """Yield what is wrong with the objects, and with those that would replace them."""
    yield from validate(reading.mended, features, kubernetes)
    replacing = {
        (finding.source, finding.subject) for finding in reading.repeated
    }
    for cluster in reading.later:
        for violation in validate(cluster, features, kubernetes):
            if (violation.source, violation.subject) in replacing:
                yield violation


def _follows(violation: Violation, reading: Reading) -> bool:
    """Return whether something may be wrong only because objects were refused, or not be as it looks without them."""
    mended = reading.broken.get((violation.source, violation.subject))
    if mended is not None and mended.hides(violation.path):
        return True
    kinds = {part.object.kind for part in reading.broken.values()}
    return any(
        kind in kinds and violation.rule in rules
        for kind, rules in _ABOUT_OTHERS.items()
    )


def _in_order_of_files(violations: Sequence[Violation]) -> list[Violation]:
    """Return violations by file and line, the worst first in a line; without lines, as they are."""
    files = [file_of(violation.source) for violation in violations]
    file_order = {file: index for index, file in enumerate(files)}

    def place(violation: Violation) -> tuple[int, int, int]:
        file = file_of(violation.source)
        return (
            file_order[file],
            violation.finding.line,
            violation.level.rank if violation.finding.line else 0,
        )

    return sorted(violations, key=place)


def _identity(owner: ApiObject) -> tuple[str, Any]:
    return owner.kind, owner.key


def _broken(
    context: ValidationContext,
) -> Iterator[tuple[ApiObject, Rule, Issue]]:
    for parts, rules in _by_parts(RULES):
        # A version may check otherwise than the newest, or not at all.
        checks = [(rule, rule.check_of(context.minor)) for rule in rules]
        for owner, path, value in parts(context):
            for rule, check in checks:
                for issue in check(value, path):
                    yield owner, rule, issue


def _by_parts(rules: Iterable[Rule]) -> Iterable[tuple[Parts, list[Rule]]]:
    """Group rules by the parts that they are about, so that these are visited once."""
    together: dict[Parts, list[Rule]] = {}
    for rule in rules:
        together.setdefault(rule.parts, []).append(rule)
    return together.items()
