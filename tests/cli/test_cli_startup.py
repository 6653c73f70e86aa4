"""What is only looked at, as help and the package's names, does not wait for the solver."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from types import ModuleType

import pytest

import dralloc
from dralloc.objects.errors import DrallocError
from dralloc.solve.optimum.solvers import cp_model

HEAVY = {
    "celpy",
    "joblib",
    "kubecel.selector",
    "lark",
    "matplotlib",
    "networkx",
    "numpy",
    "ortools",
    "pandas",
    "yaml",
}
"""What takes its time to be imported."""

SHOW = """
from dralloc.cli import app
try:
    app({arguments})
except SystemExit as end:
    assert end.code == 0
"""


def imported(code: str) -> set[str]:
    """The modules that a program has imported at its end."""
    told = "import sys; print(*sys.modules, sep='\\n', file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{told}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stderr.split())


@pytest.mark.parametrize(
    "code",
    ["import dralloc", SHOW.format(arguments=["--help"])],
    ids=["import", "help"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    modules = imported(code)
    assert "dralloc" in modules
    assert modules.isdisjoint({*HEAVY, "pydantic"})


def test_a_command_is_explained_without_what_it_runs() -> None:
    """Typer takes pydantic for the ranges of options."""
    modules = imported(SHOW.format(arguments=["plan", "headroom", "--help"]))
    assert "dralloc.cli.plan" in modules
    assert modules.isdisjoint(HEAVY)


def test_modules_that_users_import_are_offered_by_name() -> None:
    from dralloc.ask import whatif
    from dralloc.objects import errors
    from dralloc.show import plot

    assert all(
        isinstance(module, ModuleType) for module in (errors, plot, whatif)
    )
    assert errors.DrallocError is dralloc.DrallocError
    assert whatif.headroom is dralloc.headroom


def test_the_version_is_that_of_the_package() -> None:
    assert dralloc.__version__ == importlib.metadata.version("dralloc")


def test_a_name_that_is_not_offered_is_none() -> None:
    with pytest.raises(
        AttributeError, match="module 'dralloc' has no attribute 'nonsense'"
    ):
        _ = dralloc.nonsense  # type: ignore[attr-defined]


LIGHT = [
    ["validate", "models/gpu-nic"],
    ["capacity", "models/gpu-nic"],
    ["allocate", "models/gpu-nic", "--mode", "first-fit"],
    ["compare", "models/gpu-nic", "--modes", "first-fit,scheduler"],
    ["explain", "models/gpu-nic"],
]
"""Questions that need no model."""


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_without_a_model_nobody_waits_for_the_solver(
    arguments: list[str],
) -> None:
    assert imported(SHOW.format(arguments=arguments)).isdisjoint(
        {"ortools", "pandas"}
    )


def test_a_missing_solver_is_told_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    deferred = type(cp_model)("ortools.sat.python.cp_model_of_nobody")
    with pytest.raises(DrallocError, match="pip install ortools"):
        _ = deferred.CpModel
