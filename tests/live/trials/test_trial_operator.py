"""The operators' page, step by step, on a real control plane: with kubectl and promtool, where they are on the path."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from control_plane import TOKEN
from live.apply.schedules import devices_of
from live.trials.clusters import crowd
from live.trials.crowds import planned_crowd
from live.trials.planes import Plane, begun, command, planes, run, until
from live.trials.replicas import Replicas
from live_plane import KINDS

FOLDER = (
    "deploy/rbac.yaml",
    "deploy/node-taints.yaml",
    "deploy/deployment.yaml",
)
SETTLE = ("--settle", "2")


def tool(name: str) -> str:
    """A program; skips the test without."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name}")
    return path


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with (
        pytest.MonkeyPatch.context() as patch,
        planes(
            tmp_path_factory.mktemp("plane"), "kube-scheduler", rules=False
        ) as trial_plane,
    ):
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield trial_plane


def interrupted(plane: Plane, folder: Path) -> str:
    """Kill a run that has fenced, and written a claim; its name."""
    process = subprocess.Popen(
        command(plane, folder, "--yes", *SETTLE),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # As little as can be asked, over one connection: all claims are written within a tenth of a second.
    with plane.live.objects() as (_, objects):

        def has_written() -> bool:
            claims = objects.listed(KINDS["ResourceClaim"])["items"]
            return any(map(devices_of, claims))

        until(has_written, 60, 0)
        process.send_signal(signal.SIGKILL)
    process.wait()
    return str(begun(folder / "journal")[0]["run"])


def test_something_was_interrupted(plane: Plane, tmp_path: Path) -> None:
    plane.begin(planned_crowd(4, 4))
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    assert run(plane, here, "--status").code == 0
    name = interrupted(plane, here)
    shown = run(plane, here, "--status")
    assert (shown.code, shown.answer["unfinished"]) == (1, name)
    assert [fence["run"] for fence in shown.answer["fences"]] == [name]
    refused = run(plane, here, "--yes", *SETTLE)
    assert refused.code == 2
    assert f"run {name} was ended before its end" in refused.said
    beside = run(plane, elsewhere, "--yes", *SETTLE)
    assert beside.code == 1
    assert any(
        f"run {name} fences" in aside["reason"]
        for aside in (*beside.answer["unplaced"], *beside.answer["asides"])
    )
    assert run(plane, elsewhere, "--lift", name).code == 0
    assert run(plane, here, "--status").answer["fences"] == []
    assert run(plane, here, "--rollback").code in (0, 1)
    assert run(plane, here, "--status").code == 0
    again = run(plane, here, "--yes", *SETTLE)
    assert again.code == 0
    state = plane.state()
    assert (state.broken(), state.fenced, state.stranded) == ([], [], [])
    assert len(state.bound) == 13


def batch(plane: Plane, *options: str) -> subprocess.CompletedProcess[bytes]:
    where = ["--kubeconfig", str(plane.live.kubeconfig)]
    return subprocess.run(
        [sys.executable, "-m", "dralloc", "batch", *where, *options],
        capture_output=True,
        check=False,
    )


def test_the_queue_is_taken_away(
    plane: Plane, tmp_path: Path, root: Path
) -> None:
    kubectl = [
        tool("kubectl"),
        f"--server=https://127.0.0.1:{plane.live.plane.port}",
        f"--token={TOKEN}",
        "--insecure-skip-tls-verify",
    ]

    def ask(*words: str) -> str:
        done = subprocess.run(
            [*kubectl, *words], cwd=root, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    plane.begin(planned_crowd(4, 4))
    files = [word for name in FOLDER for word in ("-f", name)]
    ask("apply", *files)
    replicas = Replicas(
        plane.live.kubeconfig,
        ("--interval", "600", "--at-least", "900", "--port", "0"),
        tmp_path,
    )
    name = replicas.start()
    try:
        until(lambda: "leading as" in replicas.log(name), 60)
        refused = batch(plane, "--release-all")
        assert refused.returncode == 2
        assert b"a replica holds the Lease" in refused.stderr
        inside = ("-n", "dralloc-system")
        ask(*inside, "scale", "deployment", "dralloc-batch", "--replicas=0")
        # No kubelet is there to say that they have ended.
        ask(*inside, "delete", "pods", "--all", "--force", "--grace-period=0")
    finally:
        replicas.stop()
    assert replicas.processes[name].returncode == 0
    released = batch(plane, "--release-all")
    assert released.returncode == 0
    assert b"released 13 pods" in released.stderr
    assert plane.state().gated == set()
    ask("delete", "-f", "deploy/")
    made = ask(
        "get", "namespaces,clusterroles,clusterrolebindings", "-o", "json"
    )
    names = [item["metadata"]["name"] for item in json.loads(made)["items"]]
    assert [
        object_name for object_name in names if "dralloc" in object_name
    ] == []
    # Whoever deleted it first can release everything after that, too.
    plane.live.add(crowd(iter(["late"])))
    assert b"released 1 pods" in batch(plane, "--release-all").stderr
    assert plane.state().gated == set()


ALERTS = {
    "DrallocNobodyLeads": ["dralloc_leader 0x120", ""],
    "DrallocBatchesFail": ['dralloc_batches_total{result="failed"} 0+1x120'],
    "DrallocRuleBroken": ["dralloc_findings_total 0+1x120"],
    "DrallocFenceStays": ["dralloc_foreign_fences 1x120"],
    "DrallocPodsWait": [
        'dralloc_waiting_pods 3x120;dralloc_batches_total{result="done"} 7x120'
    ],
}
"""Series of two hours, by what they alert of; several ways by list, several series by semicolon."""
WELL = [
    "dralloc_leader 1x120",
    "dralloc_waiting_pods 3x120",
    "dralloc_foreign_fences 0x120",
    "dralloc_findings_total 0x120",
    'dralloc_batches_total{result="done"} 0+1x120',
    'dralloc_batches_total{result="failed"} 0x120',
]


def alerting(root: Path, folder: Path, series: str, firing: list[str]) -> str:
    """What Prometheus's own test of rules says; empty if just these alerts fire after two hours."""
    page = (root / "docs" / "how-to" / "operate.md").read_text()
    (folder / "rules.yaml").write_text(
        page.partition("```yaml\n")[2].partition("```")[0]
    )
    given = [
        {"series": name.rpartition(" ")[0], "values": name.rpartition(" ")[2]}
        for name in series.split(";")
        if name
    ]
    tests = [
        {
            "eval_time": "119m",
            "alertname": name,
            "exp_alerts": [{}] if name in firing else [],
        }
        for name in ALERTS
    ]
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {"interval": "1m", "input_series": given, "alert_rule_test": tests}
        ],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        [tool("promtool"), "test", "rules", "test.yaml"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return (
        ""
        if done.returncode == 0
        else done.stderr.decode() + done.stdout.decode()
    )


@pytest.mark.parametrize(
    ("name", "series"),
    [(name, series) for name, ways in ALERTS.items() for series in ways],
)
def test_an_alert_fires(
    root: Path, tmp_path: Path, name: str, series: str
) -> None:
    led = "" if name == "DrallocNobodyLeads" else ";dralloc_leader 1x120"
    assert alerting(root, tmp_path, series + led, [name]) == ""


def test_no_alert_fires_while_all_is_well(root: Path, tmp_path: Path) -> None:
    assert alerting(root, tmp_path, ";".join(WELL), []) == ""
