"""Admission: what the API server refuses, and what it accepts and users suffer from.

The rules are in tables, one module for each kind of thing: a small function over a part of an object, with an id, a
level and words about it. Errors follow ``pkg/apis/resource/validation`` of Kubernetes 1.37, with its limits and paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dralloc.lint.validate.all_rules import (
    DROPPED,
    REPEATED,
    RULES,
    RULES_ABOUT_OTHERS,
    SCHEMA,
    UNKNOWN_FIELD,
)
from dralloc.lint.validate.rule import Issue, Parts, Rule, ValidationContext
from dralloc.lint.validate.sarif import as_sarif
from dralloc.lint.validate.stored_objects import Stored
from dralloc.lint.validate.violations import Validation, Violation
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
from dralloc.objects.value_kinds import TEXT, instance_of, takes

__all__ = [
    "RULES",
    "Level",
    "Validation",
    "Violation",
    "as_sarif",
    "validate",
    "validate_reading",
]


@takes(features=instance_of(Features, "Features"), kubernetes=TEXT.or_none())
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
    # `stored.dropped` is complete: it was noted while the context's cluster was made.
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
        for kind, rules in RULES_ABOUT_OTHERS.items()
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
