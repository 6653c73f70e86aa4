"""``dralloc report`` as a user meets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit

MODEL = ROOT / "models" / "keps" / "4816-flexible-takes-big"


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_a_file_is_no_form() -> None:
    """-o means a form in every command, and --to a file."""
    result = report(MODEL, "-o", "page.html")
    assert result.exit_code == Exit.INPUT
    assert "Files are written with --to." in result.stderr


def test_a_page_is_written(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    result = report(MODEL, "--to", path, "--goal", "fewest-nodes")
    assert result.exit_code == Exit.DONE
    assert result.stdout.startswith("2 claims: first fit places 1, ")
    assert (
        "2 claims: first fit places 1, the optimum 2 (proven optimal)"
        in result.stderr
    )
    text = path.read_text()
    assert "<dt>goal</dt><dd>fewest-nodes</dd>" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_the_page_says_what_it_is_about_and_what_was_read(
    tmp_path: Path,
) -> None:
    """Also where it has a title, starts from a plan, and where an option is nothing."""
    path, plan = tmp_path / "page.html", tmp_path / "plan.json"
    saved = CliRunner().invoke(
        app, ["allocate", str(MODEL), "--mode", "first-fit", "--json"]
    )
    plan.write_text(saved.stdout)
    options = ("--title", "Team A", "--plan", plan, "--steps", "0")
    written = report(MODEL, "--to", path, *options, "--no-pruning")
    assert written.exit_code == Exit.DONE
    text = path.read_text()
    assert "<h1>dralloc report: Team A</h1>" in text
    assert f"<dt>input</dt><dd>{MODEL}</dd>" in text
    assert f"<dt>plan</dt><dd>{plan}</dd>" in text
    assert "<dt>steps</dt><dd>0</dd>" in text
    assert "<dt>pruning</dt><dd>no</dd>" in text


def test_caps_and_fairness_are_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    arguments = ("--cap", "blue=memory:40Gi", "--fair", "memory")
    assert (
        report(
            ROOT / "models" / "fair-share", "--to", path, *arguments
        ).exit_code
        == Exit.DONE
    )
    text = path.read_text()
    assert '<a href="#namespaces">Namespaces</a>' in text
    assert (
        "First fit exceeds a cap: blue uses 160Gi of memory, allowed are 40Gi."
        in text
    )
    assert (
        "what the 2 poorest namespaces use together, the more the better"
        in text
    )
    assert "The best value goes from" in text
    assert "0000000000" not in text
    assert "<dt>caps</dt><dd>blue=memory:40Gi</dd>" in text


def test_without_timings_the_page_is_the_same_again(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        assert (
            report(MODEL, "--to", tmp_path / name, "--no-timings", "-q").stderr
            == ""
        )
    assert (tmp_path / "a.html").read_bytes() == (
        tmp_path / "b.html"
    ).read_bytes()


def test_a_page_that_cannot_be_written_is_an_error_before_the_work(
    tmp_path: Path,
) -> None:
    result = report(
        tmp_path / "missing.yaml", "--to", tmp_path / "nowhere" / "page.html"
    )
    assert result.exit_code == Exit.INPUT
    assert "nowhere" in result.stderr
    assert "missing.yaml" not in result.stderr


def test_bad_input_leaves_the_old_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    assert (
        report(tmp_path / "missing.yaml", "--to", path).exit_code == Exit.INPUT
    )
    assert path.read_text() == "old"


def test_without_matplotlib_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name
        for name in sys.modules
        if name.startswith(("dralloc.show.page", "dralloc.show.plot"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("dralloc.show.page", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = report(MODEL, "--to", tmp_path / "page.html")
    assert result.exit_code == Exit.INPUT
    assert "pip install 'dralloc[plot]'" in result.stderr
