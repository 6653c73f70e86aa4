"""What commands print as JSON keeps the JSON Schema that ``dralloc schema`` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.cli.schema import DOCUMENTS, document_of
from dralloc.objects.answer import VERSION
from dralloc.objects.quantity import parse_quantity

MIG: Final = str(ROOT / "models" / "h100-mig")
SHARE: Final = str(ROOT / "models" / "fair-share")
INVALID: Final = str(ROOT / "models" / "keps" / "4815-invalid-pools")
ODD: Final = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: odd}
spec: {config: [{}]}
"""

RUNS: Final = {
    "allocate": (
        ("allocate", MIG, "-o", "json"),
        ("allocate", SHARE, "--mode", "first-fit", "-o", "json"),
    ),
    "allocate-caps": (
        (
            "allocate",
            SHARE,
            "--fair",
            "memory",
            "--cap",
            "blue=memory:40Gi",
            "-o",
            "json",
        ),
    ),
    "capacity": (("capacity", MIG, "--json"), ("capacity", "ODD", "--json")),
    "compare": (("compare", MIG, "--json"), ("compare", INVALID, "--json")),
    "conformance": (
        (
            "conformance",
            str(ROOT / "tests" / "data"),
            "--only",
            "core-1-0",
            "--json",
        ),
    ),
    "defragment": (("plan", "defragment", MIG, "--moves", "1", "--json"),),
    "drain": (("plan", "drain", "h100-2", "-f", MIG, "--json"),),
    "explain": (
        ("explain", MIG, "--pod", "ml/distill-0", "--json"),
        (
            "explain",
            MIG,
            "--pod",
            "ml/distill-0",
            "--mode",
            "optimal",
            "--json",
        ),
    ),
    "explain-all": (("explain", MIG, "--json"),),
    "fewest-nodes": (
        ("plan", "fewest-nodes", MIG, "--pod", "ml/distill-0=3", "--json"),
    ),
    "headroom": (
        (
            "plan",
            "headroom",
            MIG,
            "--pod",
            "ml/distill-0",
            "--pod",
            "ml/notebooks-0",
            "--points",
            "2",
            "--json",
        ),
    ),
    "partition-layout": (
        (
            "plan",
            "partition-layout",
            MIG,
            "--pod",
            "ml/notebooks-0=9",
            "--json",
        ),
    ),
    "preempt": (("plan", "preempt", MIG, "--pod", "ml/distill-0", "--json"),),
    "stranded": (("stranded", MIG, "--json"),),
    "validate": (("validate", "ODD", "--json"),),
}


@cache
def validator(name: str) -> Draft202012Validator:
    result = CliRunner().invoke(app, ["schema", name])
    assert result.exit_code == Exit.DONE
    schema = json.loads(result.stdout)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    """The schema with nothing allowed that it does not name, so that it must be complete."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return (
        {**closed, "additionalProperties": False}
        if "properties" in schema and "type" in schema
        else closed
    )


def amounts(schema: Any, value: Any, root: Any) -> Iterator[int | str]:
    """Every number or string of a document for which its schema has quantities, too."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if schema.get("format") == "quantity" and isinstance(value, int | str):
        yield value
    for choice in schema.get("anyOf", schema.get("oneOf", ())):
        yield from amounts(choice, value, root)
    if isinstance(value, dict):
        for key, part in value.items():
            inner = schema.get("properties", {}).get(key) or schema.get(
                "additionalProperties"
            )
            yield from (
                amounts(inner, part, root) if isinstance(inner, dict) else ()
            )
    if isinstance(value, list) and "items" in schema:
        for part in value:
            yield from amounts(schema["items"], part, root)


@pytest.mark.parametrize("name", RUNS)
def test_what_a_command_prints_keeps_its_schema(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "odd.yaml").write_text(ODD)
    document = name.removesuffix("-caps")
    for command in RUNS[name]:
        arguments = [
            str(tmp_path) if word == "ODD" else word for word in command
        ]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code in (Exit.DONE, Exit.FAILED), result.output
        printed = (
            [json.loads(line) for line in result.stdout.splitlines()]
            if name == "conformance"
            else None
        )
        for answer in printed or [json.loads(result.stdout)]:
            assert answer["schemaVersion"] == VERSION
            errors = [
                error.message
                for error in validator(document).iter_errors(answer)
            ]
            assert errors == []
            schema = document_of(document).json_schema()
            assert all(
                isinstance(amount, int) or str(parse_quantity(amount)) == amount
                for amount in amounts(schema, answer, schema)
            )


def test_amounts_are_found() -> None:
    schema = document_of("stranded").json_schema()
    answer = json.loads(
        CliRunner().invoke(app, ["stranded", MIG, "--json"]).stdout
    )
    found_amounts = list(amounts(schema, answer, schema))
    assert len(found_amounts) > 50
    assert {type(amount) for amount in found_amounts} == {int}, (
        "nothing is in parts"
    )


def test_every_command_with_json_has_a_schema_that_is_tested() -> None:
    # The documents of apply are about a live cluster.
    live = {"apply", "apply-status"}
    assert {name.removesuffix("-caps") for name in RUNS} == set(
        DOCUMENTS
    ) - live

    def with_json(group: Any, *path: str) -> Iterator[str]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from with_json(command, *path, name)
            elif {"--json", "--output"} & {
                option
                for parameter in command.params
                for option in parameter.opts
            }:
                yield name

    # Files of other kinds.
    without = {"report", "simulate", "study", "snapshot", "redact"}
    names = set(with_json(typer.main.get_command(app))) - without
    # Other answers of apply and explain.
    assert names == set(DOCUMENTS) - {"apply-status", "explain-all"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_describes_its_parts(name: str) -> None:
    schema = document_of(name).json_schema()
    assert schema["properties"]["schemaVersion"]["const"] == VERSION
    assert set(schema["required"]) == set(schema["properties"])
    assert all(
        re.match("[A-Z]", part["description"])
        for part in (schema, *schema.get("$defs", {}).values())
    )
