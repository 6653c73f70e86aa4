"""``dralloc study`` as a user meets it."""

from __future__ import annotations

import csv
from pathlib import Path

from typer.testing import CliRunner, Result

from conftest import ROOT
from dralloc.cli import app
from dralloc.cli.console import Exit

MODEL = ROOT / "models" / "keps" / "4816-flexible-takes-big"


def study(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def test_a_table_goes_to_standard_output() -> None:
    result = study(
        MODEL,
        "--modes",
        "first-fit,fgd,optimal",
        "--demand",
        "0.5,1.0",
        "--seeds",
        "2",
        "--to",
        "-",
    )
    assert result.exit_code == Exit.DONE
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [(row["seed"], row["demand"], row["mode"]) for row in rows] == [
        (seed, demand, mode)
        for seed in ("0", "1")
        for demand in ("0.5", "1.0")
        for mode in ("first-fit", "fgd", "optimal")
    ]
    assert [row["bound"] for row in rows[:6]] == ["", "", "1", "", "", "2"]


def test_a_file_keeps_its_rows_beside_it(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    assert study(MODEL, "--to", table, "--jobs", "1").stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "table.csv",
        "table.csv.jsonl",
    ]
    first = table.read_text()
    study(MODEL, "--to", table)
    assert table.read_text() == first, (
        "even the seconds are those of the first time"
    )


def test_errors_of_users() -> None:
    assert (
        study(MODEL, "--demand", "much").stderr
        == "error: much: expected numbers with commas between them\n"
    )
    assert "no mode 'worst'" in study(MODEL, "--modes", "worst").stderr
    assert study(MODEL, "--backend", "spark").exit_code == Exit.INPUT


def test_a_table_that_cannot_be_written_is_refused_before(
    tmp_path: Path,
) -> None:
    for target in (tmp_path, tmp_path / "missing" / "x.csv"):
        result = study(MODEL, "--to", target)
        assert result.exit_code == Exit.INPUT
        assert result.stderr.startswith(f"error: {target}: cannot be written: ")
    assert not list(tmp_path.iterdir())
    assert not tmp_path.with_name(f"{tmp_path.name}.jsonl").exists()
