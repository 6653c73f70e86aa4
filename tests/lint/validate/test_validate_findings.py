"""What users make of findings: a line with the place, all of an object at once, nothing that only follows, hints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.lint.validate import Violation, validate_reading
from dralloc.objects.load import read, read_documents
from wire import (
    DRIVER,
    Json,
    claim,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

GPU = device_class("gpu", f'device.driver == "{DRIVER}"')
SLICE = resource_slice(
    [device("a", {"model": "A100"}, capacity={"memory": {"value": "40Gi"}})]
)


def violations(*objects: Json) -> list[Violation]:
    return list(validate_reading(read_documents(objects)))


def messages(*objects: Json) -> dict[str, str]:
    """Return what is said, by path."""
    return {
        violation.path: violation.message for violation in violations(*objects)
    }


def rules(*objects: Json) -> set[str]:
    return {violation.rule for violation in violations(*objects)}


def test_a_finding_is_one_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    broken = device_class("b", "device.drivers ==")
    file.write_text(yaml.safe_dump_all([GPU, broken], sort_keys=False))
    [violation] = validate_reading(read(file))
    line = file.read_text().splitlines()[violation.finding.line - 1]
    assert line.strip() == "expression: device.drivers =="
    location = f"{file}:{violation.finding.line}:{violation.finding.column}"
    shown = CliRunner().invoke(app, ["validate", str(file), "--no-headers"])
    assert shown.stdout.splitlines() == [str(violation)]
    assert str(violation).startswith(
        f"{location}: error: selector-compile: DeviceClass b: "
    )


def test_all_that_is_wrong_with_an_object_is_said_at_once() -> None:
    """A field of another type hides neither others nor what the rest of the object breaks."""
    broken = claim(
        "c",
        request("a", count="2"),
        request("b", allocationMode="Al"),
        constraints=[{"requests": ["x"], "matchAttribute": "d/e"}],
    )
    del broken["spec"]["devices"]["requests"][1]["name"]
    assert messages(GPU, broken).keys() == {
        "spec.devices.requests[0].exactly.count",
        "spec.devices.requests[1].name",
        "spec.devices.requests[1].exactly.allocationMode",
        "spec.devices.constraints[0].requests[0]",
    }


def test_nothing_is_said_that_only_follows_from_a_refused_object() -> None:
    """The claim is there, and so are class and devices, whatever is wrong with them."""
    broken_claim = claim("c", request(count="2"))
    assert rules(GPU, broken_claim, pod("p", "c")) == {"schema"}
    broken_class = device_class("gpu", "true")
    broken_class["spec"]["selectors"][0]["cel"]["expression"] = 1
    assert rules(broken_class, claim("c", request())) == {"schema"}
    broken_slice = resource_slice(gpus(1))
    broken_slice["spec"]["devices"][0]["attributes"] = []
    assert rules(GPU, broken_slice, claim("c", request(count=2))) == {"schema"}


def test_of_a_class_that_does_not_compile_nothing_else_is_said() -> None:
    assert rules(device_class("gpu", "device.drivers"), SLICE) == {
        "selector-compile"
    }


def test_where_a_selector_fails_it_is_not_said_that_it_accepts_nothing() -> (
    None
):
    failing = request("a", f'device.attributes["{DRIVER}"].x == "y"')
    assert rules(GPU, SLICE, claim("c", failing)) == {"selector-fails"}


def v1beta1_claim() -> Json:
    wrong = claim("c")
    wrong["spec"]["devices"]["requests"] = [
        {"name": "a", "deviceClassName": "gpu", "count": 2}
    ]
    return wrong


def v1beta1_slice() -> Json:
    return resource_slice([{"name": "a", "basic": {"attributes": {}}}])


def v1alpha3_slice() -> Json:
    return resource_slice([device("a", capacity={"memory": "40Gi"})])


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        (v1beta1_claim(), "deviceClassName, count must stand below exactly"),
        (v1beta1_slice(), "stands in the device itself in v1"),
        (v1alpha3_slice(), "v1 has {value: 40Gi}"),
    ],
)
def test_shapes_of_older_versions_have_a_hint(old: Json, hint: str) -> None:
    first = violations(GPU, old)[0]
    assert hint in first.message


SLIPS = {
    "a field": (
        [device_class() | {"metadata": {"name": "a", "lables": {}}}],
        'mean "labels"',
    ),
    "a class": ([GPU, claim("c", request(device_class="gup"))], 'mean "gpu"'),
    "a request": (
        [
            GPU,
            claim(
                "c",
                request("large"),
                constraints=[{"requests": ["lrage"], "matchAttribute": "a/b"}],
            ),
        ],
        'mean "large"',
    ),
    "a claim": ([claim("train", request()), pod("p", "trian")], '"train"'),
    "a node": ([node("n-1"), resource_slice(nodeName="m-1")], 'mean "n-1"'),
    "a function": (
        [device_class("a", 'device.driver.startWith("a")')],
        'mean "startsWith"',
    ),
    "a field of the device": (
        [device_class("a", 'device.attribute["a"].b')],
        'mean "attributes"',
    ),
    "an attribute": (
        [
            GPU,
            SLICE,
            claim(
                "c",
                request("a", f'device.attributes["{DRIVER}"].modle == "A"'),
            ),
        ],
        'mean "model"',
    ),
    "a driver": (
        [
            GPU,
            SLICE,
            claim(
                "c",
                request("a", f'device.attributes["x{DRIVER}"].model == "A"'),
            ),
        ],
        f'mean "{DRIVER}"',
    ),
    "a value": (
        [
            GPU,
            SLICE,
            claim(
                "c",
                request("a", f'device.attributes["{DRIVER}"].model == "a100"'),
            ),
        ],
        'mean "A100"',
    ),
    "another value": (
        [
            GPU,
            SLICE,
            claim(
                "c",
                request("a", f'device.attributes["{DRIVER}"].model == "B"'),
            ),
        ],
        'no model is "B", only "A100"',
    ),
    "a capacity": (
        [
            GPU,
            SLICE,
            claim("c", request(capacity={"requests": {"memroy": "1Gi"}})),
        ],
        'none has "memroy", did you mean "memory"',
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_slips_have_a_hint(name: str) -> None:
    objects, hint = SLIPS[name]
    shown = [str(violation) for violation in violations(*objects)]
    assert any(hint in line for line in shown), shown


def test_names_on_the_command_line_have_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    objects = [GPU, SLICE, claim("train", request())]
    file.write_text(yaml.safe_dump_all(objects))
    for arguments in (
        ["explain", str(file), "--claim", "default/trian"],
        ["plan", "headroom", str(file), "--claim", "default/trian"],
        ["stranded", str(file), "--claim", "default/trian"],
    ):
        result = CliRunner().invoke(app, arguments)
        assert 'did you mean "default/train"?' in result.stderr, arguments


def test_findings_about_one_object_are_in_the_order_of_its_fields() -> None:
    fields = {
        "name": "a",
        "generateName": "a-",
        "namespace": "b",
        "uid": "c",
        "finalizers": ["example.com/d"],
        "labels": {"app": "e"},
    }
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {
            "metadata": fields,
            "spec": claim("t", request())["spec"],
        },
    }
    about = [
        violation.path
        for violation in violations(template, GPU)
        if violation.rule == "template-metadata"
    ]
    assert about == [f"spec.metadata.{name}" for name in [*fields][:-1]]


def test_a_broken_name_hides_nothing_about_the_namespace() -> None:
    wrong = claim("a", request())
    wrong["metadata"] = {"name": 5, "namespace": "BAD_NS"}
    # It is there, so that nothing else is to be said of it.
    [about_name] = violations(wrong, GPU)
    assert about_name.message == "must be a string, not 5"
    wrong["metadata"]["generateName"] = "a-"
    assert messages(wrong, GPU).keys() == {
        "metadata.name",
        "metadata.namespace",
    }
    assert len(violations(wrong, GPU)) == 2
