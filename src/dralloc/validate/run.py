"""All rules, and what they say about a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from dralloc.api import ApiObject
from dralloc.cluster import Cluster
from dralloc.errors import Finding, Level
from dralloc.features import ALL_FEATURES, Features
from dralloc.garbage import without_garbage_collection
from dralloc.load import Reading
from dralloc.validate import (
    admin,
    allocatable,
    claims,
    classes,
    counters,
    derived,
    devices,
    metadata,
    node_selectors,
    offers,
    pods,
    policies,
    pools,
    results,
    selectors,
    slices,
    status,
    taints,
    wishes,
)
from dralloc.validate.rule import Issue, Part, Rule, ValidationContext
from dralloc.validate.violation import Validation, Violation

__all__ = ["REPEATED", "RULES", "SCHEMA", "UNKNOWN_FIELD", "validate", "validate_reading"]


def _nothing(_context: ValidationContext) -> Iterator[Part[Finding]]:
    return iter(())


def _no_issue(_finding: Finding, _at: str) -> Iterator[Issue]:
    return iter(())


SCHEMA: Final = Rule(
    "schema", Level.ERROR, _nothing, _no_issue, "The object has the fields and types of its kind.", "the API's types"
)
"""What the loader refuses."""

UNKNOWN_FIELD: Final = Rule(
    "unknown-field",
    Level.WARNING,
    _nothing,
    _no_issue,
    "Every field is one that the API knows; others are dropped, or refused if the client asks for that.",
    "the API's types; fieldValidation",
)
"""What the loader leaves out."""

REPEATED: Final = Rule(
    "repeated-object",
    Level.WARNING,
    _nothing,
    _no_issue,
    "An object is given once: a later one of its name would replace it on the server, and is not checked here.",
    "kubectl apply",
)
"""What the loader takes the first of."""

RULES: Final[tuple[Rule, ...]] = (
    SCHEMA,
    UNKNOWN_FIELD,
    REPEATED,
    *metadata.RULES,
    *slices.RULES,
    *devices.RULES,
    *counters.RULES,
    *policies.RULES,
    *taints.RULES,
    *node_selectors.RULES,
    *allocatable.RULES,
    *classes.RULES,
    *selectors.RULES,
    *claims.RULES,
    *derived.RULES,
    *admin.RULES,
    *results.RULES,
    *status.RULES,
    *pools.RULES,
    *offers.RULES,
    *wishes.RULES,
    *pods.RULES,
)
"""Every rule there is."""


@without_garbage_collection()
def validate(cluster: Cluster, features: Features = ALL_FEATURES) -> Validation:
    """What the API server would refuse in a cluster's objects, and what it accepts and will hurt.

    Parameters
    ----------
    features
        Which feature gates are on; expressions can only use what these allow.

    Returns
    -------
    Validation
        A tuple of violations by object, in the order in which they were read, the worst first for each.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.validate(dralloc.example())
    <Validation: 0 errors, 0 warnings, 0 remarks>
    """
    context = ValidationContext(cluster, features)
    position = {identity: number for number, identity in enumerate(cluster.sources)}
    found = list(_found(context))
    found.sort(key=lambda entry: (position.get(_identity(entry[0]), len(position)), entry[1].level.rank))
    return Validation(violation for _, violation in found)


def validate_reading(reading: Reading, features: Features = ALL_FEATURES) -> Validation:
    """As `validate`, with what the loader could not use or did not know."""
    said = {
        SCHEMA: reading.refused,
        UNKNOWN_FIELD: reading.unknown,
        REPEATED: [
            replace(one, rule=f"{one.rule}: the API server would update it; only the first is checked")
            for one in reading.repeated
        ],
    }
    loaded = (Violation(rule.level, rule.id, one) for rule, findings in said.items() for one in findings)
    return Validation((*loaded, *validate(reading.cluster, features)))


def _identity(one: ApiObject) -> tuple[str, Any]:
    return one.kind, one.key


def _found(context: ValidationContext) -> Iterator[tuple[ApiObject, Violation]]:
    for parts, rules in _by_parts(RULES):
        for owner, path, value in parts(context):
            for rule in rules:
                for issue in rule.check(value, path):
                    source = context.cluster.sources.get(_identity(owner), "")
                    yield owner, Violation(rule.level, rule.id, Finding(source, owner.title, *issue))


def _by_parts(rules: Iterable[Rule]) -> list[tuple[Callable[[ValidationContext], Iterable[Part[Any]]], list[Rule]]]:
    """Rules about the same parts together, so that these are visited once."""
    together: dict[Callable[[ValidationContext], Iterable[Part[Any]]], list[Rule]] = {}
    for rule in rules:
        together.setdefault(rule.parts, []).append(rule)
    return list(together.items())
