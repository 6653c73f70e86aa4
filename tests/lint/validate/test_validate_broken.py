"""Every broken object is told from a whole one by exactly one rule, at exactly one place."""

from __future__ import annotations

import pytest

from dralloc.lint.validate import RULES, Level, validate_reading
from dralloc.objects.load import read_documents
from lint.validate import broken_claims, broken_slices
from lint.validate.objects import Broken, edited
from wire import Json

EVERY: list[Broken] = [
    *broken_slices.METADATA,
    *broken_slices.SLICES,
    *broken_slices.DEVICES,
    *broken_slices.COUNTERS_BROKEN,
    *broken_slices.POLICIES,
    *broken_slices.SELECTORS,
    *broken_slices.CLASSES,
    *broken_claims.REQUESTS,
    *broken_claims.REFERENCES,
    *broken_claims.RESULTS,
    *broken_claims.REPORTS,
]

NOT_ALONE = {"admin-access", "pod-claim-source", "container-claim"}
"""Errors that need a second object; they are tested with it."""

_OF_WHAT_IS_MISSING = {"pool-set"}
"""Warnings about what other objects would have to say."""


def named(case: Broken) -> str:
    return f"{case.base['kind']}: {case.what}"


def errors(*objects: Json) -> list[tuple[str, str]]:
    violations = validate_reading(read_documents(objects))
    return [
        (violation.rule, violation.path)
        for violation in violations
        if violation.level is Level.ERROR
    ]


@pytest.mark.parametrize("case", EVERY, ids=named)
def test_one_rule_at_one_place(case: Broken) -> None:
    assert errors(edited(case.base, case.edit)) == [(case.rule, case.path)]


@pytest.mark.parametrize("case", EVERY, ids=named)
def test_just_not_broken(case: Broken) -> None:
    assert errors(edited(case.base, case.fine or {})) == []


@pytest.mark.parametrize("case", broken_slices.WARNED, ids=named)
def test_what_is_accepted_is_a_warning_at_most(case: Broken) -> None:
    violations = validate_reading(
        read_documents([edited(case.base, case.edit)])
    )
    said = [
        (violation.level, violation.rule, violation.path)
        for violation in violations
        if violation.rule not in _OF_WHAT_IS_MISSING
    ]
    assert said == (
        [(Level.WARNING, case.rule, case.path)] if case.rule else []
    )


def test_every_error_has_a_broken_object() -> None:
    rules = {rule.id for rule in RULES if rule.level is Level.ERROR}
    assert {case.rule for case in EVERY} == rules - NOT_ALONE
    assert len(EVERY) >= 150


def test_ids_and_words() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(rule.help.endswith(".") and rule.origin for rule in RULES)
