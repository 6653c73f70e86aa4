"""Reading and running cases."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.lint.conformance import (
    read_allocation_case,
    read_lines,
    run_cel,
    run_first_fit,
)
from dralloc.lint.conformance.differences import first_difference
from dralloc.objects.errors import InputError
from wire import claim, device_class, gpus, node, request, resource_slice


def case(**changes: Any) -> dict[str, Any]:
    """A case in which one claim gets one device."""
    result = {
        "devices": {
            "results": [
                {
                    "request": "gpu",
                    "driver": "gpu.example.com",
                    "pool": "pool-0",
                    "device": "gpu-0",
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {
                    "matchFields": [
                        {
                            "key": "metadata.name",
                            "operator": "In",
                            "values": ["node-0"],
                        }
                    ]
                }
            ]
        },
    }
    plain = {
        "id": "case-1",
        "profile": "core",
        "node": node(),
        "classes": [device_class()],
        "slices": [resource_slice(gpus(1))],
        "allocatedClaims": [],
        "claims": [claim("a", request())],
        "expected": {
            "result": [result],
            "error": None,
            "errorKind": None,
            "allocateOne": 4,
        },
    }
    return {**plain, **changes}


def test_an_answer_as_recorded_passes() -> None:
    outcome = run_first_fit(read_allocation_case(case()))
    assert outcome.passed
    assert outcome.actual == case()["expected"]


def test_the_first_difference_is_named() -> None:
    outcome = run_first_fit(
        read_allocation_case(
            case(slices=[resource_slice(gpus(1, bindingConditions=["Ready"]))])
        )
    )
    assert outcome.difference == (
        "result[0].devices.results[0].bindingConditions: expected nothing, got ['Ready']"
    )


def test_no_solution_and_errors_are_told_apart() -> None:
    nothing = {
        "result": None,
        "error": None,
        "errorKind": None,
        "allocateOne": 1,
    }
    assert run_first_fit(
        read_allocation_case(case(slices=[], expected=nothing))
    ).passed
    text = 'claim a, request gpu: could not retrieve device class gpu: deviceclass.resource.k8s.io "gpu" not found'
    fatal = {**nothing, "error": text, "errorKind": "fatal"}
    assert run_first_fit(
        read_allocation_case(case(classes=[], expected=fatal))
    ).passed
    assert not run_first_fit(
        read_allocation_case(case(slices=[], expected=fatal))
    ).passed
    other = {**fatal, "error": text.replace("request gpu", "request other")}
    assert run_first_fit(
        read_allocation_case(case(classes=[], expected=other))
    ).difference.startswith("error: ")


def test_lines_are_read_plain_or_compressed(tmp_path: Path) -> None:
    text = "".join(
        json.dumps(document) + "\n" for document in ({"a": 1}, {"b": 2})
    )
    (tmp_path / "plain.jsonl").write_text(text + "\n")
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert list(read_lines(tmp_path / "plain.jsonl")) == [{"a": 1}, {"b": 2}]
    assert list(read_lines(tmp_path / "packed.jsonl.gz")) == [
        {"a": 1},
        {"b": 2},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "cases.jsonl: line 1: is not JSON"),
        (b"[1]", "cases.jsonl: line 1: is not a JSON object"),
        (
            b'{"a": 1, "a": 2}',
            'cases.jsonl: line 1: is not JSON: the key "a" is there twice',
        ),
        (
            b"[" * 300 + b"]" * 300,
            "cases.jsonl: line 1: is not JSON: is nested too deeply",
        ),
        (
            gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 10,
            "cases.jsonl: cannot be read: is not valid gzip data",
        ),
    ],
)
def test_broken_lines(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ('{"expression": "true"}', "case cases:1 of kind cel: lacks 'device'"),
        ('{"claims": []}', "case cases:1 of kind allocate: lacks 'node'"),
        (
            '{"claims": 1, "node": 2, "classes": 3, "slices": [], "allocatedClaims": []}',
            "has not the form of such a case",
        ),
        ('{"attempts": []}', "of kind scheduler: lacks 'config'"),
    ],
)
def test_a_case_that_lacks_something_is_one_line(
    tmp_path: Path, case: str, message: str
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(case)
    result = CliRunner().invoke(app, ["conformance", str(path)])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line


def test_a_missing_file_and_an_unknown_form(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_lines(tmp_path / "none.jsonl"))
    with pytest.raises(
        InputError,
        match="case x: has neither claims, pods nor claimsToAllocate",
    ):
        read_allocation_case({"id": "x"})


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, ""),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]: expected 2, got 3"),
        ({"a": [1, 2]}, {"a": [1]}, "a: expected 2 entries, got 1"),
        ({"a": 1}, {}, "a: expected 1, got nothing"),
        ({}, {"b": {"c": 1}}, "b: expected nothing, got {'c': 1}"),
        ({"a": {"b": None}}, {"a": {"b": 0}}, "a.b: expected None, got 0"),
    ],
)
def test_first_difference(expected: Any, actual: Any, difference: str) -> None:
    assert first_difference(expected, actual) == difference


def probe(expression: str, expect: bool | str) -> dict[str, Any]:
    device = {"driver": "gpu.example.com", "attributes": {"index": {"int": 3}}}
    return {
        "name": "probe",
        "expression": expression,
        "device": device,
        "expect": expect,
        "category": "core",
    }


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("device.attributes['gpu.example.com'].index == 3", True),
        ("device.attributes['gpu.example.com'].index > 3", False),
        ("device.attributes['gpu.example.com'].none", "runtime-error"),
        ("device.nothing", "compile-error"),
    ],
)
def test_cel_probes(expression: str, answer: bool | str) -> None:
    assert run_cel(probe(expression, answer)).passed
    assert not run_cel(probe(expression, "something else")).passed


def row(expression: str, **recorded: Any) -> dict[str, Any]:
    """A row of upstream's table."""
    answer = {
        "actualCompileError": None,
        "actualMatchError": None,
        "actualMatch": True,
        "actualMaxCost": 5,
    }
    plain = {
        "table": "TestCEL",
        "features": {},
        "envType": "StoredExpressions",
        "actualCost": 5,
    }
    return {**probe(expression, True), **plain, **answer, **recorded}


def cel_difference(case: dict[str, Any]) -> str:
    case.pop("expect")
    return run_cel(case).difference


_INDEX = "device.attributes['gpu.example.com'].index"


def test_rows_of_upstreams_cel_table_compare_costs_and_texts() -> None:
    assert cel_difference(row(f"{_INDEX} == 3")) == ""
    assert (
        cel_difference(row(f"{_INDEX} == 3", actualCost=6))
        == "cost: expected 6, got 5"
    )
    assert (
        cel_difference(row(f"{_INDEX} == 3", actualMaxCost=6))
        == "estimated cost: expected 6, got 5"
    )
    assert cel_difference(row(f"{_INDEX} == 4")) == "expected True, got False"
    failing = {
        "actualMatch": False,
        "actualMatchError": "no such key: none",
        "actualMaxCost": 4,
    }
    assert (
        cel_difference(
            row("device.attributes['gpu.example.com'].none", **failing)
        )
        == ""
    )
    other = {**failing, "actualMatchError": "no such key: other"}
    assert cel_difference(
        row("device.attributes['gpu.example.com'].none", **other)
    ).startswith("error: expected")


def test_of_syntax_errors_only_the_place_is_compared() -> None:
    recorded = {"actualMatch": False, "actualMaxCost": None, "actualCost": None}
    text = "compilation failed: ERROR: <input>:1:1: Syntax error: extraneous input '?' expecting {'[', '{'}"
    assert cel_difference(row("?!", actualCompileError=text, **recorded)) == ""
    moved = text.replace("1:1", "1:2")
    assert cel_difference(
        row("?!", actualCompileError=moved, **recorded)
    ).startswith("error: expected")
