"""``python -m benchmarks`` as somebody who measures meets it."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.limits import LIMITED, sizes
from benchmarks.measure import PHASES
from benchmarks.mixture.recipe import INGREDIENTS
from benchmarks.openb.rules import Spot, spots
from benchmarks.openb.run import POLICIES, Outcome, Scene, published_outcomes
from benchmarks.openb.sample import sample
from benchmarks.openb.shown import tables
from benchmarks.openb.trace import TraceNode, TracePod, read_pods
from benchmarks.paired import HERE, measure_pairs
from benchmarks.registry import WORKLOADS
from benchmarks.workloads.mixed import mixed
from dralloc.lint.validate import Level, validate
from dralloc.objects.load import load, load_documents
from dralloc.objects.report import as_text
from dralloc.solve.optimum import Options


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_going_on_from_an_answer_is_measured() -> None:
    options = ("--size", "4", "--changed", "0.1", "--time-limit", "5")
    measured = json.loads(run("continual", *options, "--json"))
    assert measured["workload"] == "mixed"
    assert measured["came"] > 0
    assert measured["went"] > 0
    for search in ("from_nothing", "from_answer"):
        assert measured[search]["seconds"] > 0
        for value, bound in measured[search]["tiers"].values():
            assert 0 <= value <= bound
    assert "times as fast" in run("continual", *options)


@pytest.mark.parametrize(
    "name", [name for name in WORKLOADS if not name.startswith("explain")]
)
def test_every_workload_runs_at_a_small_size(name: str) -> None:
    report = json.loads(
        run(
            "run",
            name,
            "--size",
            "3",
            "--seed",
            "1",
            "--time-limit",
            "5",
            "--json",
        )
    )
    assert (report["workload"], report["size"], report["seed"]) == (name, 3, 1)
    assert set(report["phases"]) == set(PHASES)
    assert report["peak_rss_mib"] > 0
    # First fit does not look at caps.
    least = (
        0
        if "caps" in WORKLOADS[name].words(3)
        else report["first_fit"]["placed"]
    )
    assert least <= report["optimal"]["placed"] <= report["first_fit"]["total"]
    assert report["optimal"]["tiers"][0]["name"] == "weight"
    assert report["optimal"]["objective"] <= report["optimal"]["bound"]


def test_equal_seeds_give_equal_objects(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        run(
            "run",
            "bundles",
            "--size",
            "2",
            "--seed",
            "7",
            "--no-optimal",
            "--export",
            tmp_path / folder,
        )
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files
    assert all(
        (tmp_path / "a" / name).read_bytes()
        == (tmp_path / "b" / name).read_bytes()
        for name in files
    )
    assert load(tmp_path / "a").pods


def test_what_is_left_out_of_a_mixed_cluster_changes_nothing_else() -> None:
    whole, plain = (
        mixed(12, seed=3),
        mixed(12, seed=3, without={"gangs", "priorities", "taints"}),
    )
    assert mixed(12, seed=3).pods == whole.pods
    assert (len(plain.pods), len(plain.claims)) == (
        len(whole.pods),
        len(whole.claims),
    )
    assert whole.pod_groups
    assert not plain.pod_groups
    assert {pod.spec.priority for pod in whole.pods} == {0, 100, 1000}
    assert not any(
        pod.spec.priority or pod.spec.scheduling_group for pod in plain.pods
    )
    assert any(node.spec.taints for node in whole.nodes)
    assert not any(node.spec.taints for node in plain.nodes)


@pytest.mark.parametrize("ingredient", INGREDIENTS)
def test_a_mixed_cluster_is_valid_whatever_is_left_out(
    tmp_path: Path, ingredient: str
) -> None:
    run("export", "mixed", tmp_path, "--size", "12", "--without", ingredient)
    cluster = load(tmp_path)
    assert all(
        violation.level is not Level.ERROR for violation in validate(cluster)
    )
    assert len(cluster.nodes) == 12
    assert any(not pod.spec.node_name for pod in cluster.pods)


@pytest.mark.parametrize("name", WORKLOADS)
def test_an_api_server_would_take_the_slices_and_claims_of_a_workload(
    name: str,
) -> None:
    # Another mixture with every seed: what is rare in one is in another.
    seeds = range(12) if name == "varied" else range(1)
    for seed in seeds:
        cluster = load_documents(WORKLOADS[name].objects(6, seed))
        assert not [
            violation
            for violation in validate(cluster)
            if violation.level is Level.ERROR
        ]


def test_only_what_is_an_ingredient_can_be_left_out() -> None:
    result = CliRunner().invoke(app, ["run", "fill", "--without", "gangs"])
    assert result.exit_code == 2
    assert "fill has no ingredient gangs; it has none" in " ".join(
        result.output.split()
    )
    with pytest.raises(ValueError, match="mixed needs a kind of nodes"):
        mixed(1, without={"gpus", "mig", "sharing"})


@pytest.mark.parametrize("format", ["json", "json.gz", "yaml"])
def test_reading_is_compared_with_parsing(format: str) -> None:
    report = json.loads(
        run(
            "reading",
            "cluster-mig-mixed",
            "--size",
            "2",
            "--format",
            format,
            "--json",
        )
    )
    assert report["format"] == format
    assert (
        min(report[phase] for phase in ("load", "compile", "items", "whole"))
        > 0
    )
    table = run("reading", "fill", "--size", "2", "--format", format)
    assert table.count("\n orjson, ") == 2


@pytest.mark.parametrize("limits", ["--limits", "--no-limits"])
def test_the_scheduler_goes_through_every_pod(limits: str) -> None:
    report = json.loads(
        run(
            "scheduler",
            "cluster-plain",
            "--size",
            "2",
            "--repeat",
            "2",
            limits,
            "--json",
        )
    )
    assert (report["pods"], report["size"]) == (20, 2)
    assert 0 < report["placed"] <= 20
    assert report["per_second"] > 0
    assert "mode scheduler places 16 of 16 pods in " in run(
        "scheduler", "fill-8", "--size", "2", limits
    )


@pytest.mark.parametrize(
    "name", ["bundles", "caps-mig", "fair-plain", "goal-spread", "racks"]
)
def test_limits_are_told_with_what_they_cost(name: str) -> None:
    lines = run(
        "limits",
        name,
        "--size",
        "2",
        "--limit",
        "0.001",
        "--limit",
        "60",
        "--json",
    ).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["workload"], row["limit"]) for row in rows] == [
        (name, 0.001),
        (name, 60),
    ]
    assert [row["status"] for row in rows] == [
        "FEASIBLE: the time was over",
        "OPTIMAL",
    ]
    assert all(
        row["first_fit"] <= row["placed"]
        and row["no_worse"]
        and row["kept"] == row["in_time"]
        for row in rows
    )
    assert "in 1 of 1 " in run("limits", name, "--size", "2", "--limit", "600")


def test_sizes_are_those_of_nodes() -> None:
    assert set(LIMITED) <= WORKLOADS.keys()
    assert [sizes(WORKLOADS[name], ()) for name in ("racks", "bundles")] == [
        (33, 300),
        (500, 5000),
    ]
    assert [
        sizes(WORKLOADS[name], (3, 36)) for name in ("racks", "bundles")
    ] == [
        [1, 2],
        (3, 36),
    ]


def test_a_list_of_pods_without_a_column_for_models(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,2048,1,500\nb,1000,2048,2,1000\n"
    )
    assert read_pods(path) == [
        TracePod("a", 1000, 2048, 1, 500, ()),
        TracePod("b", 1000, 2048, 2, 1000, ()),
    ]


def test_openb_never_falls_below_first_fit() -> None:
    scene = Scene(*sample(10), 1.0, 0)
    first, best = scene.measure(
        1.0, ["first-fit", "optimal"], Options(time_limit=5), None
    )
    assert best.bound_percent is not None
    assert (
        first.allocated_percent <= best.allocated_percent <= best.bound_percent
    )


def test_openb_places_by_every_policy() -> None:
    """The checker accepts each answer, and the beginning of it at a lower demand."""
    scene = Scene(*sample(10), 1.2, 0)
    for demand in (0.6, 1.2):
        outcomes = scene.measure(
            demand, POLICIES[:-1], Options(time_limit=5), None
        )
        assert [outcome.policy for outcome in outcomes] == [*POLICIES[:-1]]


def openb_pod(gpus: int, milli: int) -> TracePod:
    return TracePod("", 1000, 1024, gpus, milli, ())


def test_fragmentation_gradient_descent_as_published() -> None:
    """Half a GPU goes beside another half, where nothing is lost for who wants a whole one."""
    nodes = [TraceNode(name, 8000, 8192, 2, "T4") for name in ("a", "b")]
    half, whole = openb_pod(1, 500), openb_pod(1, 1000)
    arrivals = [half, whole, half, whole, whole, half]
    chosen = spots("fgd-as-published", nodes, [half, whole], arrivals, 0)
    assert chosen == [
        Spot(0, (0,)),
        Spot(0, (1,)),
        Spot(0, (0,)),
        Spot(1, (0,)),
        Spot(1, (1,)),
        None,
    ]


def test_random_takes_any_gpu_of_any_node() -> None:
    nodes = [TraceNode(name, 8000, 8192, 2, "T4") for name in ("a", "b")]
    half = openb_pod(1, 500)
    first = {spots("random", nodes, [], [half], seed)[0] for seed in range(99)}
    assert first == {
        Spot(node, (gpu,)) for node in range(2) for gpu in range(2)
    }


def test_the_openb_table_fits_on_a_narrow_terminal() -> None:
    outcomes = list(published_outcomes(0.9, {"03-GpuClustering": 89.981}))
    outcomes += published_outcomes(1.3, {"03-GpuClustering": 91.878})
    for policy in ("first-fit", "optimal"):
        outcomes.append(
            Outcome(
                1.3,
                policy,
                "measured",
                94.25,
                0,
                12345,
                11111,
                96.874,
                "FEASIBLE",
                1234.5,
            )
        )
    assert as_text(tables(outcomes)).splitlines() == [
        "",
        "GPUs allocated",
        " demand  policy        GPUs    bound   pods  placed  status         s",
        "   130%  first-fit  94.250%  96.874%  12345   11111  FEASIBLE  1234.5",
        "         optimal    94.250%  96.874%  12345   11111  FEASIBLE  1234.5",
        "",
        "The same as published, by demand",
        " policy                90%     130%",
        " 03-GpuClustering  89.981%  91.878%",
    ]


def test_two_checkouts_are_compared_in_turns() -> None:
    """This checkout beside itself: the same work in both, so neither is many times as slow."""
    command = "run hard-union --size 3 --no-optimal"
    arguments = ("compare", ".", "--pairs", "1", "--command", command)
    report = json.loads(run(*arguments, "--json"))
    [[before, now]] = report["pairs"]
    assert report["ratio"] == pytest.approx(now / before)
    assert 1 / 5 < report["ratio"] < 5


def test_modules_are_compiled_before_runs_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the environment says that nothing is kept: a run before all finds what is compiled for the others."""
    environments: list[dict[str, str]] = []

    def record(
        arguments: list[str], *, env: dict[str, str], **_: object
    ) -> CompletedProcess[str]:
        environments.append(env)
        return CompletedProcess(arguments, 0, "", "")

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr("benchmarks.paired.subprocess.run", record)
    measure_pairs(HERE, "list", pairs=2)
    assert len(environments) == 2 + 2 * 2
    assert len({env["PYTHONPYCACHEPREFIX"] for env in environments}) == 1
    assert not any("PYTHONDONTWRITEBYTECODE" in env for env in environments)


def test_a_command_that_fails_is_not_compared() -> None:
    arguments = ["compare", ".", "--pairs", "1", "--command", "run nothing"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "nothing" in result.output
