"""All rules, and what they say about a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from dralloc.lint.validate.claims import CLAIM_RULES, CLASS_RULES
from dralloc.lint.validate.counters import ALLOCATABLE_RULES, COUNTER_RULES
from dralloc.lint.validate.metadata import METADATA_RULES, NODE_SELECTOR_RULES, Stored
from dralloc.lint.validate.pools import POOL_RULES
from dralloc.lint.validate.rule import (
    Issue,
    Part,
    Parts,
    Rule,
    ValidationContext,
    errors,
    nothing,
    warnings,
)
from dralloc.lint.validate.slices import DEVICE_RULES, DEVICE_TAINT_RULES, SLICE_RULES
from dralloc.lint.validate.status import POD_RULES, STATUS_RULES
from dralloc.lint.validate.unsatisfiable import OFFER_RULES, UNSATISFIABLE_RULES
from dralloc.lint.validate.violation import Validation, Violation
from dralloc.objects.api import ApiObject
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import Finding
from dralloc.objects.features import ALL_FEATURES, NEWEST_MINOR, Features, minor_version
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.load import Reading

__all__ = ["RULES", "validate", "validate_reading"]


def _nothing(_context: ValidationContext) -> Iterator[Part[Finding]]:
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
        "An object is given once: a later one of its name would replace it on the server, and is not checked here.",
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


@without_garbage_collection()
def validate(
    cluster: Cluster, features: Features = ALL_FEATURES, kubernetes: str | None = None
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
    position = {identity: number for number, identity in enumerate(cluster.sources)}
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
    return Validation(
        Violation(
            rule.level,
            rule.id,
            Finding(cluster.sources.get(_identity(owner), ""), owner.title, *issue),
        )
        for owner, rule, issue in broken
    )


def validate_reading(
    reading: Reading, features: Features = ALL_FEATURES, kubernetes: str | None = None
) -> Validation:
    """Do the same as `validate`, with what the loader could not use or did not know."""
    stored = Stored(features, minor_version(kubernetes) if kubernetes else None)
    # The loader refuses what the newest version refuses; an older server drops fields that it does not have.
    dropped = [finding for finding in reading.refused if stored.has_no(finding.path)]
    said = {
        SCHEMA: [finding for finding in reading.refused if finding not in dropped],
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
                rule=f"{finding.rule}: the API server would update it; only the first is checked",
            )
            for finding in reading.repeated
        ],
    }
    loaded = (
        Violation(rule.level, rule.id, finding)
        for rule, findings in said.items()
        for finding in findings
    )
    return Validation((*loaded, *validate(reading.cluster, features, kubernetes)))


def _identity(owner: ApiObject) -> tuple[str, Any]:
    return owner.kind, owner.key


def _broken(context: ValidationContext) -> Iterator[tuple[ApiObject, Rule, Issue]]:
    for parts, rules in _by_parts(RULES):
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
