"""Components that are searched: bounds, while answers are searched for elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import pytest

from dralloc.objects.choices import Goal, Options
from dralloc.objects.errors import ModelError
from dralloc.problem import DemandIndex, DeviceIndex, Problem, indices
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.answered import is_proven, raise_bounds
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.climbing import Climb
from dralloc.solve.optimum.improve import (
    NeighbourhoodSearch,
    SearchedComponent,
)
from dralloc.solve.optimum.objective import (
    DemandSubset,
    after_weight,
    placed_weight,
)
from dralloc.solve.optimum.relax import Bound
from dralloc.solve.optimum.relax.component import ComponentRelaxation
from dralloc.solve.optimum.search import SolverOutcome, Watch
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    rack_with_a_waiting_gang,
)


def no_sites(
    demands: Sequence[DemandIndex], stop: Stop
) -> dict[DemandIndex, tuple[CandidateSite, ...]]:
    del demands, stop
    return {}


def test_bounds_that_are_proven_meanwhile_count_afterwards() -> None:
    problem = rack_with_a_waiting_gang()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        (),
        no_sites,
    )
    # There is a ladder, and nobody had time to climb.
    component.climb(Stop.after(0), Stop.after(0))
    before = component.relaxation.why
    with Climb([component], Stop()):
        while not component.relaxation.is_at_the_top:
            time.sleep(0.01)
        meanwhile = component.relaxation.why
    assert (before, meanwhile) == ("", "")
    assert component.relaxation.why
    assert component.relaxation.appraisal is not None


def test_prices_are_used_though_the_climb_ran_out_of_time() -> None:
    problem = rack_with_a_waiting_gang()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        (),
        no_sites,
    )

    def has_prices() -> bool:
        ladder = component.relaxation._ladder
        return ladder is not None and ladder._prices is not None

    until = Stop(cancelled=Cancelled(has_prices))
    assert not until.reached()
    component.climb(until, Stop())
    assert until.reached()
    assert component.relaxation.appraisal is not None


def test_a_relaxation_that_hopes_for_more_in_one_tier_says_nothing_about_later_ones() -> (
    None
):
    """Three demands want one device: it is proven that two wait, where a relaxation hopes that only one does."""
    builder = ProblemBuilder()
    builder.device()
    for _ in range(3):
        builder.pod(builder.claim(AlternativeSpec()))
    problem = builder.problem()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        (*placed_weight(problem), *after_weight(Goal.NONE)),
        first_fit(problem).placements,
        no_sites,
    )
    component.bounds[0] = component.cost(0)
    assert component.cost(0) == 2
    raise_bounds(component, (1, 7))
    assert component.bounds == [2, 0]
    raise_bounds(component, (2, 7))
    assert component.bounds == [2, 7]


def test_a_failure_while_climbing_is_not_lost() -> None:
    class Failing(ComponentRelaxation):
        def climb(self, *_: object, **__: object) -> Iterator[Bound]:
            raise ModelError("amounts are too large")

    problem = rack_with_a_waiting_gang()
    component = SearchedComponent(
        DemandSubset(problem, indices(problem.demands)),
        placed_weight(problem),
        (),
        no_sites,
    )
    component.relaxation = Failing(component.subset, component.tiers)
    with pytest.raises(ModelError), Climb([component], Stop()):
        pass


def fractions() -> Problem:
    """Three nodes have room for five demands in fractions, and for four in fact."""
    return with_partitions(
        3, (5, 5, 6), [(size, 1) for size in (5, 5, 6, 6, 6, 6)]
    )


def with_partitions(
    nodes: int, sizes: Sequence[int], asked_for: Iterable[tuple[int, int]]
) -> Problem:
    """A device of ten slices on each node, with partitions; and demands: the size of a partition, and a weight."""
    builder = ProblemBuilder(nodes)
    partitions: dict[int, list[DeviceIndex]] = defaultdict(list)
    for node in range(nodes):
        slices = builder.counter(total=10, counter_set=f"device-{node}")
        for size in sizes:
            device = builder.device(node, consumes={slices: size})
            partitions[size].append(device)
    for size, weight in asked_for:
        claim = builder.claim(AlternativeSpec(only=partitions[size]))
        builder.pod(claim, weight=weight)
    return builder.problem()


def searched(problem: Problem, start: Sequence[Placement]) -> SearchedComponent:
    """All demands, with where they can go, so that the exact model can be solved."""
    sites = survey(problem).sites
    return SearchedComponent(
        DemandSubset(problem, list(sites), sites),
        placed_weight(problem),
        start,
        no_sites,
    )


class Noted(NamedTuple):
    """What is done about a model.

    Parameters
    ----------
    looks
        The ends of looks at it.
    jobs
        The numbers of jobs of searches beside it.
    decisions
        The levels for which it had all the time.
    """

    looks: list[Stop]
    jobs: list[int]
    decisions: list[int]


def leave_nodes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody go by nodes first, which would decide small problems before the exact model comes."""
    monkeypatch.setattr(
        "dralloc.solve.optimum.improve.component.nodes_first", lambda *_: None
    )


@pytest.fixture
def by_device(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_nodes_out(monkeypatch)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """What is done after the first look at a model, which decides nothing here."""
    leave_nodes_out(monkeypatch)
    notes = Noted([], [], [])
    search, decide = SearchedComponent._search, SearchedComponent._decide

    def beside(
        self: SearchedComponent,
        levels: Sequence[int],
        options: Options,
        stop: Stop,
        watch: Watch | None,
        *,
        is_thorough: bool = False,
    ) -> None:
        if is_thorough:
            notes.jobs.append(options.jobs)
        search(self, levels, options, stop, watch, is_thorough=is_thorough)

    def later(
        self: SearchedComponent,
        level: int,
        options: Options,
        stop: Stop,
        watch: Watch | None,
    ) -> tuple[int, tuple[Placement, ...] | None]:
        if stop.effort < inf:
            notes.looks.append(stop)
            return 0, None
        notes.decisions.append(level)
        return decide(self, level, options, stop, watch)

    monkeypatch.setattr(SearchedComponent, "_search", beside)
    monkeypatch.setattr(SearchedComponent, "_decide", later)
    return notes


@pytest.mark.parametrize(
    ("options", "seconds", "is_beside"),
    [
        (Options(jobs=2), 60.0, True),
        (Options(jobs=1), 60.0, False),
        (Options(jobs=2), None, False),
        (Options(jobs=2, steps=5), 60.0, False),
    ],
)
def test_the_exact_model_is_solved_beside_the_search_where_the_clock_counts_anyway(
    noted: Noted, options: Options, seconds: float | None, is_beside: bool
) -> None:
    component = searched(fractions(), ())
    component.improve(0, options, Stop.after(seconds), None)
    assert noted.jobs == ([1] if is_beside else [])
    assert len(component.placements) == 4
    # No relaxation proves that two are missing.
    assert is_proven(component, 0) == (options.steps is None)
    assert len(noted.decisions) == (options.steps is None)


def test_a_model_that_is_solved_again_beside_the_search_gets_only_a_glance_before(
    noted: Noted,
) -> None:
    for jobs in (1, 2):
        component = searched(fractions(), ())
        component.improve(0, Options(jobs=jobs), Stop.after(60), None)
    alone, in_company = noted.looks
    assert in_company.effort <= alone.effort / 10


@pytest.mark.parametrize("jobs", [1, 2])
def test_on_a_slow_machine_the_first_look_leaves_time_to_others(
    noted: Noted, jobs: int
) -> None:
    component = searched(fractions(), ())
    component.improve(0, Options(jobs=jobs), Stop.after(60), None)
    [look] = noted.looks
    assert look.seconds() < 20


@pytest.mark.usefixtures("noted")
@pytest.mark.parametrize(
    ("jobs", "seconds", "searches"), [(1, 60.0, 1), (2, 60.0, 1), (2, None, 2)]
)
def test_what_a_look_does_not_decide_asks_once_for_answers_to_start_from(
    jobs: int, seconds: float | None, searches: int
) -> None:
    """With so many jobs as the exact model beside it leaves."""
    problem = fractions()
    component = searched(problem, ())
    start = first_fit(problem).placements[:1]
    jobs_asked: list[int] = []

    def take_starts(_stop: Stop, jobs: int) -> None:
        jobs_asked.append(jobs)
        component.consider(start)
        assert component.placements == start

    component.take_starts = take_starts
    for _ in range(2):
        component.improve(0, Options(jobs=jobs), Stop.after(seconds), None)
    assert jobs_asked == [searches]
    assert len(component.placements) == 4


def test_a_look_that_there_is_no_time_for_leaves_the_rest_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide = SearchedComponent._decide

    def no_time(*arguments: Any) -> tuple[int, tuple[Placement, ...] | None]:
        if arguments[3].effort < inf:
            raise Stopped
        return decide(*arguments)

    monkeypatch.setattr(SearchedComponent, "_decide", no_time)
    component = searched(fractions(), ())
    component.improve(0, Options(), Stop.after(60), None)
    assert is_proven(component, 0)


@pytest.mark.usefixtures("by_device")
def test_a_model_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has several turns, as others leave some of their time, begins with the search from the second one on."""
    efforts: list[float] = []

    def give_up(
        _cp: object, _terms: object, _options: Options, stop: Stop, _: object
    ) -> SolverOutcome:
        efforts.append(stop.effort)
        return SolverOutcome(None, 0)

    monkeypatch.setattr("dralloc.solve.optimum.component.minimise", give_up)
    component = searched(fractions(), ())
    for _ in range(2):
        component.improve(0, Options(), Stop.after(60), None)
    assert efforts == [1.0, inf, inf]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("most_sites", "times"), [(2, 0), (3_000, 1)])
def test_it_goes_by_nodes_where_few_sites_have_many_candidates(
    monkeypatch: pytest.MonkeyPatch, jobs: int, most_sites: int, times: int
) -> None:
    levels: list[int] = []

    def note(_component: object, level: int, *_: object) -> None:
        levels.append(level)

    module = "dralloc.solve.optimum.improve.component"
    monkeypatch.setattr(f"{module}.nodes_first", note)
    monkeypatch.setattr(f"{module}._SMALL", 1)
    limit = "_FEW_SITES" if jobs == 1 else "_MOST_SITES"
    monkeypatch.setattr(
        f"dralloc.solve.optimum.improve.nodes_first.{limit}", most_sites
    )
    component = searched(fractions(), ())
    component.improve(0, Options(jobs=jobs), Stop.after(60), None)
    assert levels == [0] * times


def two_priorities() -> Problem:
    """Two nodes have room for five demands of the higher priority in fractions, and for four in fact."""
    return with_partitions(
        2, (4, 4, 4, *(1,) * 10), [(4, 100)] * 5 + [(1, 1)] * 20
    )


@pytest.mark.usefixtures("by_device")
def test_what_an_answer_has_of_a_priority_says_what_is_left_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exact model has no time to prove that there are no more of the higher one."""
    monkeypatch.setattr(
        "dralloc.solve.optimum.component.minimise",
        lambda *_: SolverOutcome(None, 0),
    )
    component = searched(two_priorities(), ())
    component.improve(0, Options(), Stop.after(60), None)
    assert len(component.placements) == 8
    # Four take sixteen of twenty; a fifth one would leave no room.
    assert component.relaxation.limits(component) == {100: 5, 1: 4}
    assert component.relaxation.most_with_weight(component) == 8


@pytest.mark.usefixtures("by_device")
def test_time_that_is_kept_for_bounds_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the time was not enough, it has to be over: else nobody goes on when others leave some of theirs."""
    stops: list[Stop] = []

    def wait(*arguments: Any) -> tuple[int, None]:
        stops.append(stop := arguments[3])
        while stop.effort == inf and not stop.reached():
            time.sleep(0.01)
        return 0, None

    monkeypatch.setattr(SearchedComponent, "_decide", wait)
    component = searched(two_priorities(), ())
    stop = Stop.after(3)
    component.improve(0, Options(), stop, None)
    assert len({deadline.end for deadline in stops}) == 3
    assert stop.reached()


def test_a_few_thousand_candidates_need_a_start() -> None:
    """The exact model alone may find nothing better than first fit's answer in ten seconds there."""
    builder = ProblemBuilder()
    for _ in range(60):
        builder.device()
    for _ in range(61):
        builder.pod(builder.claim(AlternativeSpec()))
    component = searched(builder.problem(), ())
    assert component.size == 3660
    assert component.needs_start
    assert not component.is_large


def test_what_a_look_decides_asks_for_no_answers() -> None:
    component = searched(fractions(), ())

    def never(_stop: Stop, _jobs: int) -> None:
        pytest.fail("the answer is known")

    component.take_starts = never
    component.improve(0, Options(jobs=2), Stop.after(60), None)
    assert is_proven(component, 0)


@pytest.mark.usefixtures("noted")
def test_a_start_that_meets_the_bound_is_not_searched_any_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        pytest.fail("the answer is as good as can be")

    problem = rack_with_a_waiting_gang()
    best = solve(problem).placements
    component = searched(problem, first_fit(problem).placements)
    component.take_starts = lambda _stop, _jobs: component.consider(best)
    monkeypatch.setattr(NeighbourhoodSearch, "run", never)
    component.improve(0, Options(), Stop(), None)
    assert is_proven(component, 0)


def test_a_search_that_meets_the_bound_ends_the_exact_model_beside_it(
    monkeypatch: pytest.MonkeyPatch, noted: Noted
) -> None:
    def never(*arguments: Any) -> tuple[int, tuple[Placement, ...] | None]:
        stop = arguments[3]
        while stop.effort == inf and not stop.reached():
            time.sleep(0.01)
        return 0, None

    monkeypatch.setattr(SearchedComponent, "_decide", never)
    problem = rack_with_a_waiting_gang()
    component = searched(problem, first_fit(problem).placements)
    started = time.perf_counter()
    component.improve(0, Options(jobs=2), Stop.after(100), None)
    assert noted.jobs == [1]
    assert is_proven(component, 0)
    assert time.perf_counter() - started < 50


def test_an_error_of_the_exact_model_beside_the_search_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, noted: Noted
) -> None:
    def failing(*arguments: Any) -> tuple[int, tuple[Placement, ...] | None]:
        if arguments[3].effort == inf:
            raise ModelError("amounts are too large")
        return 0, None

    monkeypatch.setattr(SearchedComponent, "_decide", failing)
    component = searched(fractions(), ())
    with pytest.raises(ModelError):
        component.improve(0, Options(jobs=2), Stop.after(60), None)
    assert noted.jobs == [1]


@pytest.mark.parametrize(("weights", "ranks"), [((1, 1, 1), 2), ((3, 2, 2), 0)])
def test_ranks_are_bounded_where_it_is_known_how_much_of_each_weight_is_placed(
    monkeypatch: pytest.MonkeyPatch, weights: Sequence[int], ranks: int
) -> None:
    """All three are placed, and one by its first alternative. Weights in one level could make up for each other."""
    monkeypatch.setattr(
        "dralloc.solve.optimum.component.minimise",
        lambda *_: SolverOutcome(None, 0),
    )
    builder = ProblemBuilder()
    first, *others = [builder.device() for _ in range(3)]
    for weight in weights:
        alternatives = [
            AlternativeSpec(only=[first]),
            AlternativeSpec(only=others),
        ]
        builder.pod(builder.claim(alternatives), weight=weight)
    component = searched(builder.problem(), ())
    component = SearchedComponent(
        component.subset,
        (*component.tiers, *after_weight(Goal.NONE)),
        (),
        no_sites,
    )
    component.improve(0, Options(), Stop.after(60), None)
    assert is_proven(component, 0)
    component.improve(1, Options(), Stop.after(60), None)
    assert component.bounds[1] == ranks
