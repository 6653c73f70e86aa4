"""Studies: what is in the table, what is kept on disk, and that it does not matter who works it out."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from pandas import DataFrame
from pandas.testing import assert_frame_equal
from typer.testing import CliRunner

import dralloc
from conftest import ROOT
from dralloc.cli.main import app
from dralloc.lab.study.trial import MODES, Trial
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.solve import optimum
from study_scenarios import gpu_cluster, random_cluster
from wire import (
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

MODEL = ROOT / "models" / "keps" / "4816-flexible-takes-big"


def without_seconds(table: DataFrame) -> DataFrame:
    return table[
        [
            column
            for column in table.columns
            if not column.startswith("seconds.")
        ]
    ]


def test_files_that_are_written_anew_are_read_anew(tmp_path: Path) -> None:
    """What is kept of them is an answer to what they say now."""
    path, store = tmp_path / "cluster.json", tmp_path / "rows.jsonl"
    others = [
        device_class(),
        node(),
        claim("one", request()),
        claim("two", request()),
    ]
    placed = []
    for count in (1, 2):
        items = [*others, resource_slice(gpus(count))]
        path.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        )
        table = dralloc.study(path, modes=["first-fit"], store=store)
        placed += table["placed"].tolist()
    assert placed == [1, 2]


def test_the_bound_is_that_of_the_weight_with_several_priorities() -> None:
    """There is a tier for each of them, and the weight is over all."""
    pods = [pod(f"p{level}", f"c{level}", priority=level) for level in range(3)]
    claims = [claim(f"c{level}", request()) for level in range(3)]
    source = cluster(
        node(), device_class(), resource_slice(gpus(2)), pods, claims
    )
    [row] = dralloc.study(source, modes=["optimal"]).to_dict("records")
    assert (row["placed"], row["weight"], row["gap"]) == (2, 6, 0)
    assert row["bound"] == 6


def test_weights_of_many_priorities_are_kept_as_they_are(
    tmp_path: Path,
) -> None:
    """They are larger than integers of 64 bits."""
    levels = range(70)
    pods = [pod(f"p{level}", f"c{level}", priority=level) for level in levels]
    claims = [claim(f"c{level}", request()) for level in levels]
    objects = [node(), device_class(), resource_slice(gpus(2)), *pods, *claims]
    path, kept = tmp_path / "cluster.json", tmp_path / "rows.csv"
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    )
    weight = 2**69 + 2**68
    command = ["study", str(path), "--modes", "first-fit,optimal"]
    for _ in range(2):
        written = CliRunner().invoke(app, [*command, "--to", str(kept)])
        assert written.exit_code == 0, written.output
        assert f",optimal,2,70,{weight},OPTIMAL,{weight},0.0," in (
            kept.read_text()
        )
    shown = CliRunner().invoke(app, [*command, "-o", "json"])
    assert shown.exit_code == 0, shown.output
    first, best = json.loads(shown.stdout)["answers"]
    assert (first["bound"], best["bound"]) == (None, weight)
    assert best["weight"] == weight


def test_one_row_per_seed_demand_and_mode() -> None:
    table = dralloc.study(
        MODEL, seeds=2, demand=[1.0, 2.0], modes=["first-fit", "optimal"]
    )
    assert list(
        zip(table["seed"], table["demand"], table["mode"], strict=True)
    ) == [
        (seed, demand, mode)
        for seed in (0, 1)
        for demand in (1.0, 2.0)
        for mode in ("first-fit", "optimal")
    ]
    first, best = table.iloc[0], table.iloc[1]
    assert (first["placed"], best["placed"], best["total"]) == (1, 2, 2)
    assert (best["status"], best["bound"], best["gap"]) == ("OPTIMAL", 2, 0)
    assert first["status"] == "FEASIBLE"
    assert table["bound"].isna().tolist() == [True, False] * 4
    assert {"seconds.compile", "seconds.solve", "seconds.check"} <= set(
        table.columns
    )
    assert table["total"].tolist() == [2, 2, 4, 4] * 2


def test_every_mode_answers() -> None:
    table = dralloc.study(gpu_cluster(), demand=1.5)
    assert table["mode"].tolist() == list(MODES)
    best = table["placed"].tolist()[-1]
    assert all(placed <= best for placed in table["placed"])


def last_node(
    _: dralloc.WaitingPod, nodes: Sequence[dralloc.OfferedNode]
) -> dralloc.OfferedNode:
    return nodes[-1]


def first_node(
    _: dralloc.WaitingPod, nodes: Sequence[dralloc.OfferedNode]
) -> dralloc.OfferedNode:
    return nodes[0]


def test_policies_of_the_user_are_modes(tmp_path: Path) -> None:
    """Their rows are kept for them as they are written: another function of the same name is asked again."""
    store = tmp_path / "rows.jsonl"
    table = dralloc.study(
        gpu_cluster(),
        modes=["first-fit", first_node, last_node],
        jobs=2,
        store=store,
    )
    assert table["mode"].tolist() == ["first-fit", "first_node", "last_node"]
    assert table["placed"].tolist()[0] == table["placed"].tolist()[1] > 0
    kept = store.read_text()
    dralloc.study(gpu_cluster(), modes=[last_node], store=store)
    assert store.read_text().split() == kept.split()

    class Other:
        name = "last_node"

        def __call__(
            self, _: dralloc.WaitingPod, nodes: Sequence[dralloc.OfferedNode]
        ) -> dralloc.OfferedNode:
            return nodes[-1]

    dralloc.study(gpu_cluster(), modes=[Other()], store=store)
    assert store.read_text().split() != kept.split()
    with pytest.raises(
        DrallocError, match="several policies are called last_node"
    ):
        dralloc.study(gpu_cluster(), modes=[last_node, Other()])


def test_utilisation_is_a_share(root: Path) -> None:
    table = dralloc.study(
        root / "models" / "h100-mig-smallest", modes=["first-fit"]
    )
    used = table[
        [
            column
            for column in table.columns
            if column.startswith("utilisation.")
        ]
    ]
    assert not used.empty
    assert used.ge(0).all(axis=None)
    assert used.le(1).all(axis=None)


def test_a_generator_scales_by_itself() -> None:
    table = dralloc.study(
        random_cluster, seeds=[3, 5], demand=[0.5, 2.0], modes=["best-fit"]
    )
    expected = [
        len(random_cluster(seed, demand).claims)
        for seed in (3, 5)
        for demand in (0.5, 2.0)
    ]
    assert table["total"].tolist() == expected


@pytest.mark.parametrize(
    "scenario",
    [MODEL, gpu_cluster(), random_cluster],
    ids=["path", "cluster", "generator"],
)
def test_two_jobs_give_the_same_rows(scenario: Any) -> None:
    one_job, two = (
        dralloc.study(scenario, seeds=2, demand=[0.75, 1.5], jobs=jobs)
        for jobs in (1, 2)
    )
    assert_frame_equal(without_seconds(one_job), without_seconds(two))


# A cluster of Dask on this machine starts processes and threads with sockets of their own.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_another_backend_gives_the_same_rows(backend: str) -> None:
    pytest.importorskip(
        {"dask": "distributed", "ray": "ray"}[backend],
        reason=f"the extra {backend} is not installed",
    )
    here = dralloc.study(
        MODEL, demand=[1.0, 2.0], modes=["first-fit", "optimal"]
    )
    there = dralloc.study(
        MODEL,
        demand=[1.0, 2.0],
        modes=["first-fit", "optimal"],
        backend=backend,
        jobs=2,
    )
    assert_frame_equal(without_seconds(here), without_seconds(there))


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_missing_backend_is_an_error_that_names_the_extra(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, {"dask": "distributed", "ray": "ray"}[backend], None
    )
    with pytest.raises(
        DrallocError, match=rf"pip install 'dralloc\[{backend}\]'"
    ):
        dralloc.study(gpu_cluster(), backend=backend)


def test_finished_rows_are_not_worked_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "rows.jsonl"
    told: list[tuple[int, int]] = []
    asked = partial(
        dralloc.study,
        gpu_cluster(),
        store=store,
        progress=lambda *news: told.append(news),
    )
    first = asked(demand=[1.0, 2.0], modes=["first-fit", "best-fit"])
    assert told == [(2, 4), (4, 4)]
    monkeypatch.setattr(Trial, "run", lambda _: pytest.fail("worked out again"))
    assert_frame_equal(
        asked(demand=[1.0, 2.0], modes=["first-fit", "best-fit"]), first
    )
    assert (
        asked(demand=2.0, modes=["best-fit"])["placed"].tolist()
        == first["placed"].tolist()[-1:]
    )


def rows_in(store: Path) -> list[str]:
    """The lines of a store that are not empty."""
    return [line for line in store.read_text().splitlines() if line]


def test_what_a_row_depends_on_is_part_of_its_key(tmp_path: Path) -> None:
    store = tmp_path / "rows.jsonl"

    def lines() -> int:
        return len(rows_in(store))

    dralloc.study(gpu_cluster(), store=store, modes=["first-fit", "optimal"])
    before = lines()
    dralloc.study(
        gpu_cluster(), store=store, modes=["first-fit", "optimal"], time_limit=7
    )
    assert lines() == before + 1, "only the optimum has a time limit"
    dralloc.study(gpu_cluster((1, 1)), store=store, modes=["first-fit"])
    dralloc.study(gpu_cluster(), store=store, modes=["first-fit"], seeds=[1])
    features = dralloc.Features(ConsumableCapacity=False)
    dralloc.study(
        gpu_cluster(), store=store, modes=["first-fit"], features=features
    )
    assert lines() == before + 4
    dralloc.study(random_cluster, store=store, modes=["first-fit"])
    dralloc.study(partial(sized, (1, 1)), store=store, modes=["first-fit"])
    dralloc.study(partial(sized, (1, 2)), store=store, modes=["first-fit"])
    dralloc.study(partial(sized, (1, 2)), store=store, modes=["first-fit"])
    assert lines() == before + 7


def sized(sizes: tuple[int, ...], seed: int, demand: float) -> dralloc.Cluster:
    assert (seed, demand) == (0, 1.0)
    return gpu_cluster(sizes)


def test_a_killed_study_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "rows.jsonl"
    real = Trial.run
    done: list[Trial] = []

    def fail_at_third(self: Trial) -> list[dict[str, Any]]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(self)
        return real(self)

    monkeypatch.setattr(Trial, "run", fail_at_third)
    with pytest.raises(KeyboardInterrupt):
        dralloc.study(gpu_cluster(), seeds=4, store=store, modes=["first-fit"])
    monkeypatch.setattr(Trial, "run", real)
    # The machine died in the middle of a line.
    store.write_text(store.read_text() + '{"key": "12')
    told: list[int] = []
    table = dralloc.study(
        gpu_cluster(),
        seeds=4,
        store=store,
        modes=["first-fit"],
        progress=lambda now, _: told.append(now),
    )
    assert told == [3, 4]
    assert table["seed"].tolist() == [0, 1, 2, 3]
    finished = [
        line
        for line in store.read_text().split("\n")
        if line and line != '{"key": "12'
    ]
    assert len({json.loads(line)["key"] for line in finished}) == 4


DAMAGED = [
    b"\0" * 50,
    b"\xff\xfe",
    b"[" * 2000,
    b"3",
    b"[]",
    b'{"key": []}',
    b'{"key": {"a": 1}, "seed": 0}',
    b'{"key": 1}',
]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_study_and_keeps_finished_rows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not one search of it, whose best answer so far would be kept as a row, and the next ones go on."""
    begun: list[Any] = []
    begin = optimum._set_aside

    def pressed(*arguments: Any) -> Any:
        begun.append(arguments)
        if len(begun) == 2:
            signal.raise_signal(signal.SIGINT)
        return begin(*arguments)

    monkeypatch.setattr(optimum, "_set_aside", pressed)
    store = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        dralloc.study(
            dralloc.example(), seeds=4, modes=["optimal"], store=store
        )
    assert len(begun) == 2
    (row,) = store.read_text().splitlines()
    assert '"status":"OPTIMAL"' in row.replace(" ", "")


@pytest.mark.parametrize("line", DAMAGED)
def test_damaged_lines_are_worked_out_again(
    line: bytes, tmp_path: Path
) -> None:
    store = tmp_path / "rows.jsonl"
    asked = partial(
        dralloc.study,
        gpu_cluster(),
        store=store,
        modes=["first-fit", "best-fit"],
    )
    first = asked()
    whole, other = store.read_bytes().splitlines()
    store.write_bytes(b"\n".join((line, whole, line, other[:-1])))
    assert_frame_equal(without_seconds(asked()), without_seconds(first))
    cut = {**json.loads(other), "seconds": None, "bound": "many"}
    store.write_bytes(b"\n".join((whole, json.dumps(cut).encode())))
    assert_frame_equal(without_seconds(asked()), without_seconds(first))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"modes": ["worst"]},
            "no mode 'worst'; known modes: first-fit, .*optimal",
        ),
        (
            {"backend": "spark"},
            "no backend 'spark'; known backends: loky, dask, ray",
        ),
        (
            {"store": "/nowhere/rows.jsonl"},
            "/nowhere/rows.jsonl: cannot be written",
        ),
        ({"demand": -1.0}, "demand: -1.0 is negative"),
        ({"demand": [1.0, float("nan")]}, "demand: nan is not a finite number"),
        ({"demand": float("inf")}, "demand: inf is not a finite number"),
        (
            {"demand": 1e9},
            "demand: 1000000000.0 times 4 pods and claims are more than 200000; --limit pods=AMOUNT",
        ),
        (
            {"demand": 1e308},
            "demand: 1e[+]308 times 4 pods and claims are more than 200000",
        ),
        (
            {"demand": 2.0, "limits": dralloc.Limits(pods=3)},
            "demand: 2.0 times 4 pods and claims are more than 3",
        ),
        (
            {"seeds": 10**12},
            "seeds and demands: a study has at most 100000 points",
        ),
        ({"seeds": [0, 2**64]}, f"seed: {2**64} is not between 0 and"),
        ({"seeds": [-1]}, "seed: -1 is not between 0 and"),
        (
            {"scheduler_config": "/nowhere/config.yaml"},
            "/nowhere/config.yaml: cannot be read",
        ),
        ({"jobs": 0}, "jobs: 0 is not between 1 and 1024"),
        ({"jobs": 100_000}, "jobs: 100000 is not between 1 and 1024"),
        (
            {"workers": 100_000},
            "workers: 100000 is not between 1 and 1024 threads",
        ),
        ({"jobs": 100_000}, "jobs: 100000 is not between 1 and 1024 processes"),
    ],
)
def test_errors_of_users(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DrallocError, match=message):
        dralloc.study(gpu_cluster(), **changed)


def test_clusters_can_be_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(gpu_cluster())) == gpu_cluster()


_SCRIPT: Final = """
import sys
import dralloc

base = dralloc.example()

def made(seed, demand):
    return base if seed else dralloc.example()

if __name__ == "__main__":
    table = dralloc.study(made, seeds=2, jobs=2, modes=["first-fit"])
    print(table["placed"].tolist(), table["total"].tolist())
"""


def test_a_function_of_a_script_runs_in_other_processes(tmp_path: Path) -> None:
    """Which nobody can import: it is sent with what it names, the package itself among that."""
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.returncode) == ("[1, 1] [2, 2]\n", 0), done.stderr


def test_the_package_is_sent_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(dralloc)) is dralloc


def test_a_generator_without_source_can_be_told_from_others(
    tmp_path: Path,
) -> None:
    """As typed at a prompt: its code stands for its source."""

    def asked(pods: int) -> int:
        names: dict[str, Any] = {"gpu_cluster": gpu_cluster}
        exec(
            f"def made(seed, demand):\n    return gpu_cluster((1,) * {pods})",
            names,
        )
        table = dralloc.study(
            names["made"], modes=["first-fit"], store=tmp_path / "rows.jsonl"
        )
        return int(table["total"][0])

    assert [asked(1), asked(2), asked(1)] == [1, 2, 1]
    assert len(rows_in(tmp_path / "rows.jsonl")) == 2


def test_pods_of_suspended_owners_are_part_of_what_a_row_is_about(
    tmp_path: Path,
) -> None:
    def owned(pods: int) -> Cluster:
        about = {"metadata": {"name": "later", "namespace": "default"}}
        wanted = {**claim("", request()), "kind": "ResourceClaimTemplate"}
        pod = {
            "spec": {
                "containers": [],
                "resourceClaims": [
                    {"name": "gpu", "resourceClaimTemplateName": "later"}
                ],
            }
        }
        job = {"suspend": True, "parallelism": pods, "template": pod}
        return cluster(
            device_class(),
            node(),
            resource_slice(gpus(4)),
            {**wanted, **about, "spec": {"spec": wanted["spec"]}},
            {"apiVersion": "batch/v1", "kind": "Job", **about, "spec": job},
        )

    asked = partial(
        dralloc.study,
        store=tmp_path / "rows.jsonl",
        modes=["first-fit"],
        include="suspended",
    )
    assert [asked(owned(pods))["total"].tolist() for pods in (1, 3)] == [
        [1],
        [3],
    ]


def test_kube_scheduler_is_a_mode() -> None:
    """It answers as `allocate` does, with the seed of the row; groups are copied with their members."""
    gang = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    members: list[dict[str, Any]] = []
    for name in "ab":
        group = {"podGroupName": "g"}
        members += [
            claim(name, request(count=1)),
            pod(name, name, schedulingGroup=group),
        ]
    shown = cluster(
        device_class(), node(), resource_slice(gpus(5)), gang, *members
    )
    table = dralloc.study(
        shown,
        seeds=2,
        demand=[1.0, 2.0, 3.0],
        modes=["scheduler", first_node, "optimal"],
    )
    rows = list(
        zip(table["mode"], table["placed"], table["total"], strict=True)
    )
    once = [(mode, 2, 2) for mode in ("scheduler", "first_node", "optimal")]
    twice = [(mode, 4, 4) for mode, _, _ in once]
    # A third copy of the group does not fit as a whole.
    thrice = [(mode, 4, 6) for mode, _, _ in once]
    assert rows == [*once, *twice, *thrice] * 2


def test_every_mode_minds_what_pods_take_of_nodes() -> None:
    """A node with 2 CPUs takes two pods of 1 CPU, however many GPUs it has."""
    small = node()
    small["status"] = {"allocatable": {"cpu": "2", "pods": "110"}}
    waiting = []
    for pod_index in range(3):
        name = f"p{pod_index}"
        limits = {"requests": {"cpu": "1"}}
        container = {"name": "c", "image": "i", "resources": limits}
        waiting += [
            claim(name, request()),
            pod(name, name, containers=[container]),
        ]
    shown = cluster(device_class(), small, resource_slice(gpus(4)), *waiting)
    table = dralloc.study(shown)
    assert table["placed"].tolist() == [2] * len(MODES)


def test_the_scheduler_is_asked_again_if_it_is_configured_otherwise(
    tmp_path: Path,
) -> None:
    store = tmp_path / "rows.jsonl"
    for version in ("1.35", "1.36", "1.36"):
        dralloc.study(
            gpu_cluster(),
            modes=["scheduler"],
            store=store,
            kubernetes=version,
        )
    assert len(rows_in(store)) == 2
