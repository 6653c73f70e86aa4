"""``dralloc example``: the clusters of the documentation, also from a wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

from typer.testing import CliRunner

import dralloc
from conftest import ROOT
from dralloc.cli.main import app


def test_the_examples_can_be_read(tmp_path: Path) -> None:
    target = tmp_path / "new" / "examples"
    run = CliRunner().invoke(app, ["example", str(target)])
    assert run.exit_code == 0, run.output
    folders = sorted(target.iterdir())
    assert [folder.name for folder in folders] == [
        "fair-share",
        "first-available",
        "gang",
        "gpu-nic",
        "h100-mig",
        "rails",
    ]
    for folder in folders:
        written = dralloc.load(folder)
        assert (
            written.headline
            == dralloc.load(ROOT / "models" / folder.name).headline
        )


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("")
    run = CliRunner().invoke(app, ["example", str(target)])
    assert run.exit_code == 2
    assert "cannot be made" in run.output


def test_the_wheel_has_them_all(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"][
        "force-include"
    ]
    assert CliRunner().invoke(app, ["example", str(tmp_path)]).exit_code == 0
    written = {
        f"dralloc/examples/{path.relative_to(tmp_path)}"
        for path in tmp_path.rglob("*.yaml")
    }
    assert set(packed.values()) == written
    assert all((ROOT / source).is_file() for source in packed)
