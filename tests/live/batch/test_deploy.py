"""What deploy/ allows, and asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from dralloc.live.batch import Figures
from dralloc.live.snapshot import LISTED_KINDS
from wire import Json


@pytest.fixture
def rules(root: Path) -> list[Json]:
    objects = list(
        yaml.safe_load_all((root / "deploy" / "rbac.yaml").read_text())
    )
    return [rule for manifest in objects for rule in manifest.get("rules", ())]


def test_nothing_is_allowed_by_wildcard_nor_for_secrets(
    rules: list[Json],
) -> None:
    for rule in rules:
        assert "*" not in [
            *rule["verbs"],
            *rule["resources"],
            *rule["apiGroups"],
        ]
        assert not {"secrets", "configmaps"} & set(rule["resources"])


def test_all_that_is_read_may_be_watched(rules: list[Json]) -> None:
    watched = {
        (group, resource)
        for rule in rules
        if "watch" in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(kind.group, kind.plural) for kind in LISTED_KINDS} == watched


def test_an_allocation_may_be_bound(rules: list[Json]) -> None:
    written = [
        rule["resources"]
        for rule in rules
        if rule["verbs"] == ["patch"] and "resource.k8s.io" in rule["apiGroups"]
    ]
    assert written == [
        ["resourceclaims", "resourceclaims/status"],
        ["resourceclaims/binding"],
    ]


def test_the_deployment_runs_as_that_account(root: Path) -> None:
    deployment = yaml.safe_load(
        (root / "deploy" / "deployment.yaml").read_text()
    )
    spec = deployment["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "dralloc-batch"
    assert spec["containers"][0]["args"][0] == "batch"


def alerts(root: Path) -> list[str]:
    """The expressions of the operators' page."""
    page = (root / "docs" / "how-to" / "operate.md").read_text()
    text = page.partition("```yaml\n")[2].partition("```")[0]
    (group,) = yaml.safe_load(text)["groups"]
    return [str(alert["expr"]) for alert in group["rules"]]


def test_the_alerts_of_the_operators_page_name_metrics_that_there_are(
    root: Path,
) -> None:
    served = {
        line.partition("{")[0].partition(" ")[0]
        for line in Figures().text().decode().splitlines()
    }
    named = {
        name
        for expression in alerts(root)
        for name in re.findall(r"dralloc_\w+", expression)
    }
    assert len(named) >= 5
    assert named <= served


def test_alerts_are_about_all_replicas_together(root: Path) -> None:
    """Sides of ``and`` with different labels never meet, and what nobody exports has no value but ``absent``."""
    for expression in alerts(root):
        for side in re.split(r" (?:and|or) ", expression):
            assert side.startswith(("sum(", "max(", "absent(")), side
    assert any("absent(dralloc_leader)" in alert for alert in alerts(root))


def test_results_that_alerts_ask_for_are_there(root: Path) -> None:
    served = Figures().text().decode()
    labelled = [
        series
        for expression in alerts(root)
        for series in re.findall(r"dralloc_\w+\{[^}]*\}", expression)
    ]
    assert len(labelled) == 2
    for series in labelled:
        assert f"{series} 0.0" in served
