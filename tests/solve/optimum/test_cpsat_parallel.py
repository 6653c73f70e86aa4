"""Components in other processes: the same answers, no worse when time is short, and nothing left behind."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from crowd_strategies import crowds
from dralloc.check import check
from dralloc.objects.choices import Backend, Goal, Thresholds
from dralloc.objects.errors import DrallocError, ModelError
from dralloc.problem import DemandIndex, Problem, indices
from dralloc.problem.solution import Solution, Status
from dralloc.solve import optimum
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, Progress, parallel, solve
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.division import Division
from dralloc.solve.optimum.improve import component as improve_component
from dralloc.solve.optimum.improve.task import WarmUp
from dralloc.solve.optimum.parallel import Excerpts
from dralloc.solve.work import run_all
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
from solve.optimum.test_cpsat_solve import in_order, islands, weight

THOROUGH = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
BRIEF = settings(THOROUGH, max_examples=examples(10))


def mixed() -> Problem:
    """Two components to count, and two for the per-device model."""
    builder = ProblemBuilder(nodes=6)
    plain = [builder.device(node) for node in (0, 0, 1)]
    for worth in (1, 1, 2, 3):
        builder.pod(builder.claim(AlternativeSpec(only=plain)), weight=worth)
    shared = [builder.device(node, capacity={"memory": 10}) for node in (2, 3)]
    for amount in (3, 4, 5, 6, 7):
        builder.pod(
            builder.claim(
                [
                    AlternativeSpec(only=shared, capacity={"memory": amount}),
                    AlternativeSpec(only=shared),
                ]
            ),
            weight=amount,
        )
    for node in (4, 5):
        devices = [builder.device(node) for _ in range(3)]
        for gang in ("a", "b"):
            for _ in range(2):
                builder.pod(
                    builder.claim(AlternativeSpec(only=devices)),
                    gang=f"{gang}-{node}",
                    weight=node,
                )
    return builder.problem()


def same(
    problem: Problem, options: Options, hint: Solution | None = None
) -> str:
    """The answer, which must not depend on who found it."""
    here = solve(problem, options, hint)
    there = solve(problem, replace(options, jobs=2), hint)
    check(problem, there)
    if "components" not in there.timings:
        assert here.timings.keys() == there.timings.keys()
    text = repr(asdict(replace(here, timings={})))
    assert text == repr(asdict(replace(there, timings={})))
    return text


AT_ONCE = Thresholds(components=1)
"""A single component is sent, too."""


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are only packed up and unpacked in this process."""

    def run_all(
        batches: Sequence[Any], *_: object
    ) -> Iterator[tuple[int, Any]]:
        for batch_index, batch in enumerate(batches):
            yield (
                batch_index,
                pickle.loads(
                    pickle.dumps(pickle.loads(pickle.dumps(batch)).run())
                ),
            )

    monkeypatch.setattr(parallel, "run_all", run_all)


@pytest.mark.usefixtures("pretended")
@THOROUGH
@given(strategies.problems(), st.sampled_from(Goal), st.booleans())
def test_an_excerpt_is_enough(
    problem: Problem, goal: Goal, hinted: bool
) -> None:
    same(
        problem,
        Options(goal=goal, thresholds=AT_ONCE),
        first_fit(problem) if hinted else None,
    )


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """All demands are searched."""

    def nothing_is_counted(problem: Problem, *_: object) -> Division:
        return Division((), (), tuple(indices(problem.demands)), ())

    monkeypatch.setattr(
        "dralloc.solve.optimum.stage.divide", nothing_is_counted
    )


@pytest.mark.usefixtures("pretended", "uncounted")
def test_where_steps_are_counted_searches_stay_here() -> None:
    """The exact model, which is what goes elsewhere, knows no steps: without a time limit it might never end."""
    elsewhere = Options(jobs=2, thresholds=AT_ONCE)
    sent = solve(mixed(), elsewhere)
    kept = solve(mixed(), replace(elsewhere, steps=1))
    assert "components" in sent.timings
    assert "components" not in kept.timings


@pytest.mark.usefixtures("pretended", "uncounted")
def test_what_takes_the_exact_model_long_stays_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There the exact model would be alone, without a bound and a start from small changes."""
    elsewhere = Options(jobs=2, thresholds=AT_ONCE)
    sent = solve(mixed(), elsewhere)
    monkeypatch.setattr(improve_component, "_TINY", 0)
    kept = solve(mixed(), elsewhere)
    assert "components" in sent.timings
    assert "components" not in kept.timings


@pytest.mark.usefixtures("pretended")
@THOROUGH
@given(crowds(), st.booleans())
def test_an_excerpt_of_classes_is_enough(
    problem: Problem, packed: bool
) -> None:
    thresholds = replace(AT_ONCE, pattern_effort=0) if packed else AT_ONCE
    same(problem, Options(thresholds=thresholds), first_fit(problem))


@BRIEF
@given(
    strategies.problems(max_demands=8, max_devices=10), st.sampled_from(Goal)
)
def test_the_same_from_processes(problem: Problem, goal: Goal) -> None:
    same(problem, Options(goal=goal, thresholds=AT_ONCE))


def test_what_is_sent_is_small() -> None:
    problem = islands(5, pods=3, gpus=1)
    sites = survey(problem).sites
    first = {
        demand: sites[demand]
        for demand in (DemandIndex(6), DemandIndex(7), DemandIndex(8))
    }
    excerpt, inside = Excerpts(problem).of_sites(first)
    assert (len(excerpt.problem.demands), len(excerpt.problem.nodes)) == (3, 1)
    assert {device.id.pool for device in excerpt.problem.devices} == {"pool-2"}
    assert len(excerpt.problem.counters) == 3
    assert list(inside) == [0, 1, 2]
    placements = in_order(problem).placements[6:9]
    assert excerpt.outward(excerpt.inward(placements)) == list(placements)


@pytest.mark.parametrize("per_device", [True, False])
def test_several_components(per_device: bool) -> None:
    assert "OPTIMAL" in same(mixed(), Options(per_device=per_device))


def test_several_hard_ones() -> None:
    assert "OPTIMAL" in same(
        islands(5, pods=6, gpus=1), Options(per_device=True, seed=3)
    )


def test_progress_is_told_as_components_are_done() -> None:
    news: list[Progress] = []
    solution = solve(
        islands(5, pods=6, gpus=1),
        Options(jobs=2, per_device=True),
        progress=news.append,
    )
    assert len(news) == 1 + 5
    assert [
        progress.best for progress in news if progress.phase == "weight"
    ] == sorted(
        progress.best for progress in news if progress.phase == "weight"
    )
    assert news[-1].gap == 0
    assert (news[-1].phase, news[-1].best) == (
        solution.tiers[-1].name,
        solution.tiers[-1].value,
    )


# A cluster of Dask on this machine starts processes and threads with sockets of their own.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_another_backend_gives_the_same_answer(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(
        {"dask": "distributed", "ray": "ray"}[backend],
        reason=f"the extra {backend} is not installed",
    )
    # The processes of Ray find the modules of tests here, too: the problem has parts that are defined there.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    problem = mixed()
    there = solve(problem, Options(jobs=2, backend=backend))
    assert replace(there, timings={}) == replace(solve(problem), timings={})
    assert "components" in there.timings


def test_with_hardly_any_time_nobody_is_sent_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        optimum, "work_out", lambda *_: pytest.fail("not worth it")
    )
    solution = solve(
        islands(3, pods=40, gpus=6),
        Options(time_limit=0.1, jobs=2, per_device=True),
    )
    assert "components" not in solution.timings


@pytest.mark.parametrize("limit", [0.5, 3.0])
def test_short_of_time_it_is_no_worse_than_the_hint(limit: float) -> None:
    problem = islands(3, pods=40, gpus=6)
    hint = in_order(problem)
    solution = solve(
        problem,
        Options(
            time_limit=limit,
            jobs=2,
            per_device=True,
            thresholds=Thresholds(seconds=0),
        ),
        hint,
    )
    check(problem, solution)
    first = solution.tiers[0]
    assert weight(problem, hint) <= first.value < first.bound
    assert solution.status is Status.FEASIBLE
    assert working() == []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_all_of_them() -> None:
    problem = islands(3, pods=40, gpus=6)
    hint = in_order(problem)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    try:
        solution = solve(
            problem,
            Options(jobs=2, per_device=True),
            hint,
            lambda _: timer.start() if not timer.ident else None,
        )
    finally:
        timer.cancel()
    check(problem, solution)
    first = solution.tiers[0]
    assert weight(problem, hint) <= first.value < first.bound
    assert working() == []


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
@pytest.mark.parametrize(
    "seconds", [0.3, 2.0], ids=["at the start", "while searching"]
)
def test_ctrl_c_on_a_terminal_reaches_the_workers_too(seconds: float) -> None:
    """A terminal sends it to every process of the command, and workers must not die of it."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "searching\n"
        time.sleep(seconds)
        os.killpg(program.pid, signal.SIGINT)
        out, errors = program.communicate(timeout=300)
    status, value, bound = out.split()[-3:]
    assert (program.returncode, errors) == (0, "")
    assert (status, int(value) < int(bound)) == ("FEASIBLE", True)


PROGRAM = """
from dralloc.check import check
from dralloc.solve.optimum import Options, solve
from solve.optimum.test_cpsat_solve import in_order, islands

problem = islands(3, pods=40, gpus=6)
options = Options(jobs=2, per_device=True)
solution = solve(problem, options, in_order(problem), lambda _: print("searching", flush=True))
check(problem, solution)
print(solution.status.value, solution.tiers[0].value, solution.tiers[0].bound)
"""


def test_an_error_of_the_listener_ends_all_of_them() -> None:
    def fail(_: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solve(
            islands(3, pods=40, gpus=6),
            Options(jobs=2, per_device=True),
            progress=fail,
        )
    assert working() == []


def working() -> list[str]:
    """The threads that still wait for other processes."""
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name == "components"
    ]


def test_an_error_in_another_process_is_told() -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        counter = builder.counter(3 * 2**62)
        devices = [
            builder.device(0, consumes={counter: 2**62 + odd})
            for odd in (1, 2, 4)
        ]
        for _ in devices:
            builder.pod(builder.claim(AlternativeSpec(only=devices)))
    with pytest.raises(ModelError, match="beyond the solver's int64"):
        solve(builder.problem(), Options(jobs=2, per_device=True))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib.externals.loky", None)
    with pytest.raises(
        DrallocError, match=r"pip install 'dralloc\[parallel\]'"
    ):
        solve(mixed(), Options(jobs=2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"jobs": 0}, "jobs: 0 is not"),
        ({"backend": "spark"}, "known backends: loky, dask, ray"),
    ],
)
def test_errors_of_users(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DrallocError, match=message):
        Options(**changed)


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_is_done_where_there_is_nothing_to_do(jobs: int) -> None:
    assert list(run_all([], Backend.LOKY, jobs)) == []


def test_users_do_not_hear_of_workers_that_begin_anew() -> None:
    """Loky tells of it from within this process, while tasks are under way."""

    def tasks() -> Iterator[WarmUp]:
        for _ in range(3):
            warnings.warn(
                "A worker stopped while some jobs were given to the executor.",
                UserWarning,
                stacklevel=2,
            )
            yield WarmUp()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = list(run_all(tasks(), Backend.LOKY, 2))
    assert sorted(results) == [(0, None), (1, None), (2, None)]
