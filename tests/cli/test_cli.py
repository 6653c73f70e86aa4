"""The command line as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dralloc.ask import answer_checks
from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.objects.errors import CheckError
from wire import (
    Json,
    allocated,
    claim,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)


def dralloc(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], input=stdin
    )


def dump(*objects: Json) -> str:
    return yaml.safe_dump_all(objects)


@pytest.fixture
def two_claims(tmp_path: Path) -> Path:
    """One device, two claims."""
    path = tmp_path / "cluster.yaml"
    claims = [claim("a", request()), claim("b", request())]
    path.write_text(
        dump(node(), device_class(), resource_slice(gpus(1)), *claims)
    )
    return path


def test_allocate_prints_a_table(two_claims: Path) -> None:
    result = dralloc("allocate", two_claims)
    assert result.exit_code == Exit.DONE
    assert "optimal: 1 of 2 placed, proven optimal" in result.stdout
    assert "gpu.example.com/pool-0/gpu-0" in result.stdout


def test_allocate_prints_claims_that_can_be_loaded_again(
    two_claims: Path, tmp_path: Path
) -> None:
    result = dralloc(
        "allocate", two_claims, "--mode", "first-fit", "-o", "yaml"
    )
    (claim_object,) = yaml.safe_load_all(result.stdout)
    assert (
        claim_object["status"]["allocation"]["devices"]["results"][0]["device"]
        == "gpu-0"
    )
    again = tmp_path / "again.yaml"
    again.write_text(
        dump(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            claim("b", request()),
        )
        + result.stdout
    )
    plan = json.loads(dralloc("allocate", again, "-o", "json").stdout)
    assert [entry["demand"] for entry in plan["unplaced"]] == ["default/b"]


def test_compare_prints_both_answers(two_claims: Path) -> None:
    result = dralloc("compare", two_claims)
    assert result.exit_code == Exit.DONE
    assert (
        "2 claims: first fit places 1, the optimum 1 (proven optimal)"
        in result.stdout
    )
    comparison = json.loads(dralloc("compare", two_claims, "--json").stdout)
    assert comparison["optimal"]["status"] == "OPTIMAL"
    assert comparison["optimal"]["gap"] == 0


def test_standard_input_is_read(two_claims: Path) -> None:
    result = dralloc(
        "allocate", "-", "-o", "json", stdin=two_claims.read_text()
    )
    assert json.loads(result.stdout)["demands"] == 2


def test_only_named_nodes_are_used(two_claims: Path) -> None:
    result = dralloc("allocate", two_claims, "--node", "nowhere")
    assert result.exit_code == Exit.INPUT
    assert (
        result.stderr
        == 'error: node "nowhere" does not exist: neither a Node object nor a slice names it\n'
    )


def test_broken_input_is_one_line_per_problem(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    broken = resource_slice(
        [{"name": "gpu-0", "capacity": {"memory": {"value": "10Gx"}}}]
    )
    path.write_text(dump(broken, claim("a", {"name": "gpu"})))
    result = dralloc("allocate", path)
    assert result.exit_code == Exit.INPUT
    first, second = result.stderr.splitlines()
    assert first.startswith(
        f"error: {path}:9:9: ResourceSlice slice-0: spec.devices[0].capacity[memory]"
    )
    assert "'10Gx' is not a quantity" in first
    assert second.startswith(f"error: {path}:")
    assert ": ResourceClaim default/a: spec.devices.requests[0]" in second
    assert result.stdout == ""


def test_unknown_fields_are_warnings_unless_strict(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(dump(node(), resource_slice(gpus(1, colour="red"))))
    assert "colour" in dralloc("allocate", path).stderr
    assert dralloc("allocate", path, "--quiet").stderr == ""
    assert dralloc("allocate", path, "--strict").exit_code == Exit.INPUT


def test_features_can_be_switched(tmp_path: Path) -> None:
    path = tmp_path / "admin.yaml"
    path.write_text(
        dump(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            claim("a", request(adminAccess=True)),
        )
    )
    off = dralloc(
        "allocate",
        path,
        "--mode",
        "first-fit",
        "--feature",
        "DRAAdminAccess=false",
    )
    assert "admin access is requested, but the feature is disabled" in " ".join(
        off.stdout.split()
    )
    assert (
        dralloc("allocate", path, "--feature", "AdminAccess=maybe").exit_code
        == Exit.INPUT
    )
    unknown = dralloc("allocate", path, "--feature", "Nonsense=true")
    assert "unknown feature 'Nonsense'" in unknown.stderr


def test_an_answer_that_fails_the_check_is_withheld(
    two_claims: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: object) -> None:
        raise CheckError("device gpu-0: taken twice")

    monkeypatch.setattr(answer_checks, "check", reject)
    result = dralloc("allocate", two_claims)
    assert result.exit_code == Exit.DEFECT
    assert result.stdout == ""
    assert "device gpu-0: taken twice" in result.stderr


def test_a_failing_selector_is_a_warning_in_the_optimal_mode_unless_strict(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cel.yaml"
    broken = request("gpu", "device.attributes['gpu.example.com'].missing == 1")
    path.write_text(
        dump(
            node(), device_class(), resource_slice(gpus(1)), claim("a", broken)
        )
    )
    result = dralloc("allocate", path)
    where = "device gpu.example.com/pool-0/gpu-0"
    assert (
        result.stderr
        == f"warning: selector of claim default/a fails on {where}: no such key: missing\n"
    )
    assert "warning" not in result.stdout
    assert dralloc("compare", path).stderr == result.stderr
    assert dralloc("allocate", path, "--strict-cel").exit_code == Exit.INPUT


@pytest.fixture
def case_file(tmp_path: Path) -> Path:
    """One case that passes and one that does not."""
    expected = {
        "result": None,
        "error": None,
        "errorKind": None,
        "allocateOne": 1,
    }
    base = {
        "profile": "core",
        "node": node(),
        "classes": [device_class()],
        "allocatedClaims": [],
    }
    base |= {"claims": [claim("a", request())], "expected": expected}
    cases = [
        {"id": "empty", "slices": [], **base},
        {"id": "wrong", "slices": [resource_slice(gpus(1))], **base},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def test_conformance_reports_each_profile(case_file: Path) -> None:
    result = dralloc("conformance", case_file)
    assert result.exit_code == Exit.FAILED
    assert "1 of 2 cases pass" in result.stdout
    assert "wrong" in result.stdout


def test_conformance_can_run_one_case(case_file: Path) -> None:
    result = dralloc("conformance", case_file, "--only", "empty", "--json")
    assert result.exit_code == Exit.DONE
    (line,) = result.stdout.splitlines()
    report = json.loads(line)
    assert report.keys() == {
        "schemaVersion",
        "name",
        "profile",
        "pass",
        "actual",
        "difference",
    }
    assert (report["name"], report["pass"]) == ("empty", True)
    assert (
        dralloc("conformance", case_file, "--only", "none").exit_code
        == Exit.INPUT
    )


def test_conformance_of_the_optimum(case_file: Path) -> None:
    result = dralloc("conformance", case_file, "--mode", "optimal", "--json")
    assert [
        json.loads(line)["pass"] for line in result.stdout.splitlines()
    ] == [
        True,
        False,
    ]


def test_kubernetes_versions_set_the_feature_gates(tmp_path: Path) -> None:
    path = tmp_path / "shared.yaml"
    path.write_text(
        dump(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            claim("a", request(capacity={"requests": {}})),
        )
    )
    assert (
        "1 of 1 placed"
        in dralloc("allocate", path, "--kubernetes", "1.36").stdout
    )
    old = dralloc("allocate", path, "--kubernetes", "1.35")
    assert "the DRAConsumableCapacity feature is disabled" in " ".join(
        old.stdout.split()
    )
    switched = dralloc(
        "allocate",
        path,
        "--kubernetes",
        "1.35",
        "--feature",
        "DRAConsumableCapacity=true",
    )
    assert "1 of 1 placed" in switched.stdout
    unknown = dralloc("compare", path, "--kubernetes", "1.0")
    assert unknown.exit_code == Exit.INPUT
    assert "Kubernetes 1.0 is not known" in unknown.stderr


def test_gangs_by_label(tmp_path: Path) -> None:
    path = tmp_path / "gang.yaml"
    pods = [pod("p", "a"), pod("q", "b")]
    for pod_object in pods:
        pod_object["metadata"]["labels"] = {"job": "training"}
    path.write_text(
        dump(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            claim("a", request()),
            claim("b", request()),
            *pods,
        )
    )
    assert "1 of 2 placed" in dralloc("allocate", path).stdout
    together = dralloc("allocate", path, "--gang", "job")
    assert "0 of 2 placed" in together.stdout
    assert "gang default/training does not fit as a whole" in together.stdout
    assert (
        "first fit places 0, the optimum 0"
        in dralloc("compare", path, "--gang", "job").stdout
    )


def test_drift_is_a_notice_and_with_strict_closes_the_pool(
    tmp_path: Path,
) -> None:
    path = tmp_path / "drift.yaml"
    path.write_text(
        dump(
            node(),
            device_class(),
            resource_slice(gpus(1)),
            allocated("a", {"device": "gpu-9"}),
            claim("b", request()),
        )
    )
    loose = dralloc("allocate", path)
    assert "1 of 1 placed" in loose.stdout
    assert "gpu-9 is not in generation 1 of its pool any more" in loose.stderr
    assert "0 of 1 placed" in dralloc("allocate", path, "--strict").stdout
    assert "gpu-9" not in dralloc("allocate", path, "--quiet").stderr
