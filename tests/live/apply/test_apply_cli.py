"""``dralloc apply`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dralloc.cli import app
from dralloc.cli.console import Exit
from dralloc.live.apply import JournalFile
from dralloc.live.apply.executor import Executor
from dralloc.live.apply.journal import JournalStep
from dralloc.live.apply.marks import FINALIZER
from dralloc.live.apply.pods import gates_of
from live.apply.runs import small_cluster
from live.apply.schedules import devices_of
from simulated import Simulated
from simulated_http import serving
from wire import claim, pod, request


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    simulated = Simulated()
    simulated.add(*small_cluster())
    return simulated


def apply(server: Simulated, tmp_path: Path, *options: str) -> Result:
    with serving(server, tmp_path) as kubeconfig:
        files = [
            "--kubeconfig",
            str(kubeconfig),
            "--journal",
            str(tmp_path / "journal"),
        ]
        arguments = [
            "apply",
            *files,
            "--settle",
            "0",
            "--watch",
            "0",
            "--probe",
            "",
            *options,
        ]
        return CliRunner().invoke(app, arguments)


def allocated(server: Simulated) -> list[str]:
    return [
        claim["metadata"]["name"]
        for claim in server.of("resourceclaims")
        if devices_of(claim)
    ]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--dry-run", "server"],
        ["--dry-run", "client"],
        ["--yes", "--dry-run", "server"],
    ],
)
def test_nothing_is_written_unless_it_is_asked_for(
    server: Simulated, tmp_path: Path, options: list[str]
) -> None:
    result = apply(server, tmp_path, *options)
    assert result.exit_code == Exit.DONE, result.output
    assert "2 claims of 2 pods and claims would be written" in result.stdout
    assert allocated(server) == []
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    ("dry_run", "who_was_asked"),
    [("server", "asked the server"), ("client", "the server not asked")],
)
def test_what_would_be_written_is_shown(
    server: Simulated, tmp_path: Path, dry_run: str, who_was_asked: str
) -> None:
    shown = apply(server, tmp_path, "--dry-run", dry_run).stdout
    assert " default/train  node-0  a " in shown
    assert "to write: 2 claims" in shown
    assert f"would be written ({who_was_asked})" in shown


def test_yes_writes(server: Simulated, tmp_path: Path) -> None:
    result = apply(server, tmp_path, "--yes", "--json")
    assert result.exit_code == Exit.DONE, result.output
    answer = json.loads(result.stdout)
    assert sorted(answer["claims"]) == ["default/a", "default/b"]
    assert answer["released"] == ["default/train"]
    assert answer["findings"] == []
    assert allocated(server) == ["a", "b"]
    assert gates_of(server.one("pods", "train")) == []
    assert not JournalFile(tmp_path / "journal").unfinished


def test_no_is_an_answer(server: Simulated, tmp_path: Path) -> None:
    result = apply(server, tmp_path, "--dry-run", "none")
    assert result.exit_code == Exit.FAILED  # nobody says yes
    assert allocated(server) == []


def test_only_what_is_selected(server: Simulated, tmp_path: Path) -> None:
    server.one("pods", "serve")["metadata"]["labels"] = {"app": "serve"}
    apply(server, tmp_path, "--yes", "--selector", "app=serve")
    assert allocated(server) == ["b"]
    apply(server, tmp_path, "--yes", "--only", "elsewhere")
    assert allocated(server) == ["b"]


@pytest.mark.parametrize(
    ("option", "names"), [("--resume", ["a", "b"]), ("--rollback", [])]
)
def test_a_killed_run_is_in_the_way_until_it_is_ended(
    server: Simulated,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    names: list[str],
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Executor, "release", lambda *_: 1 / 0)
        assert apply(server, tmp_path, "--yes").exit_code == Exit.DEFECT
    refused = apply(server, tmp_path, "--yes")
    assert refused.exit_code == Exit.INPUT
    assert "was ended before its end: --resume or --rollback" in refused.stderr
    assert apply(server, tmp_path, option).exit_code == Exit.DONE
    assert allocated(server) == names
    assert server.of("devicetaintrules") == []
    again = apply(server, tmp_path, option)
    assert again.exit_code == Exit.INPUT
    assert "no run is to be resumed or rolled back" in again.stderr


@pytest.mark.parametrize("option", ["--resume", "--rollback", "--yes"])
def test_a_run_that_is_at_work_is_left_at_work(
    server: Simulated, tmp_path: Path, option: str
) -> None:
    at_work = JournalFile(tmp_path / "journal")
    at_work.add(JournalStep.BEGIN, run="run-1", fence="none", gate="", units=[])
    refused = apply(server, tmp_path, option)
    assert refused.exit_code == Exit.INPUT
    assert "run run-1 is at work" in refused.stderr
    assert JournalFile(at_work.path).entries == at_work.entries


def test_without_rules_nodes_are_tainted(
    server: Simulated, tmp_path: Path
) -> None:
    server.without = frozenset(["devicetaintrules"])
    result = apply(server, tmp_path, "--yes", "--json")
    assert json.loads(result.stdout)["fence"] == "node taints"
    assert allocated(server) == ["a", "b"]
    assert "taints" not in server.one("nodes", "node-0", "")["spec"]


def test_without_any_fence_nothing_is_written_unless_that_is_wanted(
    server: Simulated, tmp_path: Path
) -> None:
    server.denied = frozenset(["devicetaintrules"])
    result = apply(server, tmp_path, "--yes")
    assert result.exit_code == Exit.INPUT
    assert "--fence names another one" in result.stderr
    assert allocated(server) == []
    assert (
        apply(server, tmp_path, "--yes", "--fence", "none").exit_code
        == Exit.DONE
    )
    assert allocated(server) == ["a", "b"]


def test_the_names_are_those_of_what_was_written(
    server: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not of what has no place; of a rollback, those of the claims that it took back."""
    server.add(claim("c", request(count=9)), pod("greedy", "c"))
    written = apply(server, tmp_path, "--dry-run", "client", "-o", "name")
    assert written.stdout.split() == ["default/serve", "default/train"]
    with monkeypatch.context() as patched:
        patched.setattr(Executor, "release", lambda *_: 1 / 0)
        assert apply(server, tmp_path, "--yes").exit_code == Exit.DEFECT
    undone = apply(server, tmp_path, "--rollback", "-o", "name")
    assert sorted(undone.stdout.split()) == ["default/a", "default/b"]


def test_what_is_left_alone_is_a_failure(
    server: Simulated, tmp_path: Path
) -> None:
    server.denied = frozenset(["pods"])
    result = apply(server, tmp_path, "--yes", "--json")
    assert result.exit_code == Exit.FAILED
    assert [aside["key"] for aside in json.loads(result.stdout)["asides"]] == [
        "default/train"
    ]


def test_other_pods_are_not_included(server: Simulated, tmp_path: Path) -> None:
    result = apply(server, tmp_path, "--include", "gated")
    assert result.exit_code == Exit.INPUT
    assert result.stderr.startswith(
        "error: --include: pods are released by their gate"
    )


def test_it_is_kubectls_plugin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dralloc.cli import kubectl

    monkeypatch.setattr("sys.argv", ["kubectl-dralloc", "apply", "--help"])
    with pytest.raises(SystemExit):
        kubectl()
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: kubectl dralloc apply")
    assert "--context" in shown
    assert "--namespace" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["--show-completion"],
        ["--show-completion", "bash"],
        ["--install-completion", "zsh"],
    ],
)
def test_kubectls_own_completion_is_left_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    from dralloc.cli import kubectl

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["kubectl-dralloc", *arguments])
    with pytest.raises(SystemExit) as ended:
        kubectl()
    assert ended.value.code == Exit.INPUT
    told = capsys.readouterr()
    assert told.out == ""
    assert "kubectl dralloc has no completion of its own" in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_the_fence_does_not_keep_away_is_named(
    server: Simulated, tmp_path: Path
) -> None:
    server.add(
        claim("x", request(tolerations=[{"operator": "Exists"}])),
        pod("monitor", "x"),
    )
    shown = apply(server, tmp_path, "--yes").stderr
    assert (
        "warning: claim default/x tolerates every taint, also that of the fence: --fence node-taints"
        in shown
    )
    assert "tolerates" not in apply(server, tmp_path).stderr


def test_taking_back_tells_what_was_taken(
    server: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Executor, "_allocate", lambda *_: 1 / 0)
        assert apply(server, tmp_path, "--yes").exit_code == Exit.DEFECT
    assert [
        claim["metadata"].get("finalizers", [])
        for claim in server.of("resourceclaims")
    ] == [[], [FINALIZER]]
    assert (
        apply(server, tmp_path, "--rollback").stdout == "taken back: 1 claim\n"
    )
    assert [
        claim["metadata"].get("finalizers", [])
        for claim in server.of("resourceclaims")
    ] == [[], []]
