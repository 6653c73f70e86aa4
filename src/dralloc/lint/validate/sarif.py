"""Violations as SARIF 2.1.0, which code hosts show beside the files of a change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, Final

from dralloc.lint.validate.rule import Rule
from dralloc.lint.validate.violations import Violation
from dralloc.objects.errors import Level, file_of

__all__ = ["as_sarif"]

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
    # A source in angle brackets, such as standard input, is no file.
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
