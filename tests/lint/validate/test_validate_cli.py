"""``dralloc validate`` as a user meets it, and its output for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.lint.validate import RULES, as_sarif, validate, validate_reading
from dralloc.objects.load import load_documents, read_documents
from lint.validate.objects import edited
from wire import (
    Json,
    claim,
    device,
    device_class,
    gpus,
    request,
    resource_slice,
)

WHOLE = [device_class(), resource_slice(gpus(2))]
WARNED = [*WHOLE, claim("c", request(count=3))]
BROKEN = [
    *WARNED,
    edited(device_class("b"), {"spec.config": [{}]}),
    {"apiVersion": "v1", "kind": "Pod", "spec": 1},
]


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["validate", str(path), *arguments])


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def written(objects: list[Json]) -> Path:
        path = tmp_path / "objects.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return path

    return written


@pytest.mark.parametrize(
    ("objects", "arguments", "code"),
    [
        (WHOLE, [], Exit.DONE),
        (WARNED, [], Exit.DONE),
        (WARNED, ["--strict"], Exit.FAILED),
        (BROKEN, [], Exit.FAILED),
        (BROKEN, ["--level", "error"], Exit.FAILED),
    ],
)
def test_exit_codes(  # type: ignore[no-untyped-def]
    write, objects: list[Json], arguments: list[str], code: Exit
) -> None:
    assert run(write(objects), *arguments).exit_code == code


def test_what_cannot_be_read(tmp_path: Path) -> None:
    result = run(tmp_path / "missing.yaml")
    assert result.exit_code == Exit.INPUT
    assert "cannot be read" in result.stderr
    text = tmp_path / "text.yaml"
    text.write_text("{")
    assert run(text).exit_code == Exit.INPUT


def test_the_table(write) -> None:  # type: ignore[no-untyped-def]
    out = run(write(BROKEN)).stdout
    assert ": DeviceClass b: spec.config[0].opaque: " in out
    assert out.splitlines()[-1] == "3 errors, 1 warning, 0 remarks"


def test_only_the_level_that_is_asked_for(write) -> None:  # type: ignore[no-untyped-def]
    shown = json.loads(run(write(BROKEN), "--json", "--level", "error").stdout)[
        "violations"
    ]
    assert {violation["level"] for violation in shown} == {"error"}
    assert {violation["rule"] for violation in shown} == {
        "schema",
        "config-opaque",
    }
    assert all(
        violation["source"]
        and violation["path"]
        and violation["message"]
        and violation["object"]
        for violation in shown
    )


@pytest.mark.parametrize("form", ["table", "wide"])
def test_what_is_hidden_is_counted(write, form: str) -> None:  # type: ignore[no-untyped-def]
    """With --strict it is why the command fails."""
    hidden = ["--strict", "--level", "error", "-o", form]
    result = run(write(WARNED), *hidden)
    assert result.exit_code == Exit.FAILED
    assert result.stdout.split("\n")[0] == "0 errors, 1 warning, 0 remarks"


def test_unknown_fields_are_warnings(write) -> None:  # type: ignore[no-untyped-def]
    (only,) = json.loads(
        run(write([edited(WHOLE[1], {"spec.colour": "red"})]), "--json").stdout
    )["violations"]
    assert (only["level"], only["rule"], only["path"]) == (
        "warning",
        "unknown-field",
        "spec.colour",
    )


def test_sarif(write) -> None:  # type: ignore[no-untyped-def]
    path = write(BROKEN)
    log = json.loads(run(path, "--sarif").stdout)
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    rules = only["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in RULES]
    assert all(
        rule["help"]["text"] and rule["shortDescription"]["text"]
        for rule in rules
    )
    result = next(
        result
        for result in only["results"]
        if result["ruleId"] == "config-opaque"
    )
    assert rules[result["ruleIndex"]]["id"] == "config-opaque"
    assert result["level"] == "error"
    assert (
        result["message"]["text"]
        == "DeviceClass b: spec.config[0].opaque: is required"
    )
    (location,) = result["locations"]
    assert (
        location["physicalLocation"]["artifactLocation"]["uri"] == path.as_uri()
    )
    assert location["logicalLocations"][0]["properties"] == {"document": 4}
    region = location["physicalLocation"]["region"]
    line = path.read_text().splitlines()[region["startLine"] - 1]
    # The field is absent: the entry that it belongs to is shown.
    assert line[region["startColumn"] - 1 :].startswith("{}")


def test_sarif_of_standard_input_names_no_file() -> None:
    reading = read_documents(
        [edited(device_class("b"), {"spec.config": [{}]})], source="<stdin>"
    )
    log = as_sarif(validate_reading(reading), RULES)
    assert (
        "physicalLocation" not in log["runs"][0]["results"][0]["locations"][0]
    )


def test_objects_with_one_name() -> None:
    reading = read_documents(
        [
            device_class("a", "true"),
            device_class("b"),
            device_class("a", "false"),
        ],
        source="x",
    )
    assert reading.refused == ()
    assert [str(finding) for finding in reading.repeated] == [
        "x: DeviceClass a: was given before in x with different content"
    ]
    [selector] = reading.cluster.classes["a"].spec.selectors
    assert selector.cel is not None
    assert selector.cel.expression == "true"
    assert [str(violation) for violation in validate_reading(reading)] == [
        "x: warning: repeated-object: DeviceClass a: was given before in x with different content: the API server "
        "would update it"
    ]


def test_each_version_of_an_object_is_checked() -> None:
    """The first of a name is right, the second, the third and an object beside them are not."""
    wrong: dict[str, Any] = {"spec.config": [{}]}
    reading = read_documents(
        [
            device_class("a", "true"),
            edited(device_class("a", "false"), wrong),
            edited(device_class("b"), wrong),
            edited(device_class("a"), {"spec.extendedResourceName": "gpu"}),
        ],
        source="x",
    )
    violations = validate_reading(reading)
    checked = [
        violation
        for violation in violations
        if violation.rule != "repeated-object"
    ]
    assert [violation.subject for violation in checked] == [
        "DeviceClass b",
        "DeviceClass a",
        "DeviceClass a",
    ]


def test_a_class_that_many_ask_for_is_missed_once(write) -> None:  # type: ignore[no-untyped-def]
    """In the lines for people; programs are told each place."""
    claims = [claim(f"c{n}", request(device_class="none")) for n in range(4)]
    path = write([*WHOLE, *claims])
    *lines, counts = run(path).stdout.splitlines()
    missing = 'class "none" does not exist'
    assert [line for line in lines if missing in line] == [
        f"{path}:{line_of(path, 'none')}:9: warning: request-class-missing: ResourceClaim default/c0: "
        f"spec.devices.requests[0].exactly.deviceClassName: {missing}; also in 3 more places"
    ]
    assert counts == "0 errors, 4 warnings, 0 remarks"
    listed = json.loads(run(path, "--json").stdout)["violations"]
    assert len(listed) == 4


def line_of(path: Path, word: str) -> int:
    """Return the first line of a file that has a word."""
    lines = path.read_text().splitlines()
    return 1 + next(n for n, line in enumerate(lines) if word in line)


TEMPLATE = "{{- if .Values.enabled }}\napiVersion: v1\nkind: Node\nmetadata: {name: {{ .Values.node }}}\n{{- end }}\n"


def test_templates_of_charts_are_left_out_of_directories(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(TEMPLATE)
    nothing = run(tmp_path)
    assert nothing.exit_code == Exit.INPUT
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(device_class("a", "true")))
    result = run(tmp_path)
    told = f"{tmp_path}/a.yaml: is left out: a template, not YAML (helm template renders charts); so is 1 more file\n"
    assert nothing.stderr == f"error: {told}"
    assert result.stderr == f"warning: {told}"
    assert result.exit_code == Exit.DONE
    named = run(tmp_path / "a.yaml")
    assert named.exit_code == Exit.INPUT
    assert named.stderr.endswith(
        "a key must be text; it looks like a template: render it first, as helm template does\n"
    )


def test_a_directory_of_demos_is_no_failure(tmp_path: Path) -> None:
    for name, expression in {"one": "true", "two": "false"}.items():
        (tmp_path / f"{name}.yaml").write_text(
            yaml.safe_dump(device_class("a", expression))
        )
    result = run(tmp_path)
    assert result.exit_code == Exit.DONE
    assert "0 errors, 1 warning" in result.stdout
    assert [
        violation["rule"]
        for violation in json.loads(run(tmp_path, "--json").stdout)[
            "violations"
        ]
    ] == ["repeated-object"]
    assert run(tmp_path, "--strict").exit_code == Exit.FAILED


def test_violations_print_on_one_line() -> None:
    (only,) = validate(
        load_documents(
            [edited(device_class("b"), {"spec.config": [{}]})], source="f.yaml"
        )
    )
    assert (
        str(only)
        == "f.yaml: error: config-opaque: DeviceClass b: spec.config[0].opaque: is required"
    )


def test_the_api_server_of_a_version(write) -> None:  # type: ignore[no-untyped-def]
    """Before 1.37 a name with two slashes is accepted, and lists are no values."""
    path = write([resource_slice([device("gpu-0", {"a/b/c": 1, "d": ["x"]})])])
    assert [
        violation["path"]
        for violation in json.loads(run(path, "--json").stdout)["violations"]
    ] == ["spec.devices[0].attributes"]
    earlier = json.loads(run(path, "--json", "--kubernetes", "1.36").stdout)[
        "violations"
    ]
    assert [
        (violation["rule"], violation["path"]) for violation in earlier
    ] == [
        ("attribute-value", "spec.devices[0].attributes[d]"),
        ("dropped-field", "spec.devices[0].attributes[d]"),
    ]
