"""The exported model, solved by others, has the optimum's value."""

from __future__ import annotations

from math import gcd
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from ortools.linear_solver.python import model_builder
from ortools.sat.python import cp_model

import dralloc
from cluster_strategies import clusters
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.errors import ModelError
from dralloc.solve.optimum import build
from dralloc.solve.optimum.component import export
from dralloc.solve.optimum.objective import placed_weight
from examples import INDEPENDENT, examples
from wire import Json, cluster


@settings(
    max_examples=examples(100),
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(objects=clusters())
def test_other_solvers_find_the_optimum(
    tmp_path_factory: pytest.TempPathFactory, objects: list[Json]
) -> None:
    whole = cluster(objects)
    problem = compile_cluster(whole).whole
    path = tmp_path_factory.mktemp("models") / "model.mps"
    try:
        export(problem, path)
    except ModelError as error:
        event(str(error))
        return
    tiers = placed_weight(problem)
    if len(tiers) > 1:
        event("several tiers of weights")
        return
    model: Any = model_builder.Model()  # type: ignore[no-untyped-call]
    assert model.import_from_mps_file(str(path))
    solver = model_builder.Solver("sat")
    solver.solve(model)
    in_model = set(build(problem).sites)
    weights = [demand.weight for demand in problem.demands]
    unit = gcd(*(weights[demand_index] for demand_index in in_model)) or 1
    plan = dralloc.allocate(whole)
    event(plan.verdict)
    placed = sum(weights[demand_index] for demand_index in in_model)
    placed -= round(solver.objective_value) * unit
    assert placed == plan.objective


def test_the_model_in_the_format_of_cp_sat(tmp_path: Path) -> None:
    whole = dralloc.load(Path(__file__).parents[3] / "models" / "gang")
    path = tmp_path / "model.txt"
    dralloc.export_model(whole, path)
    model = cp_model.CpModel()
    assert model.proto.parse_text_format(path.read_text())
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
