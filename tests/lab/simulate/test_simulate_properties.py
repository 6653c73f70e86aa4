"""What holds of every simulation, whatever arrives and whoever places it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

import dralloc
from arrival_strategies import Scene, scenes
from dralloc.lab.simulate import (
    ArrivalState,
    placer_of,
    room_making,
)
from dralloc.lab.simulate.arrivals.incoming import Incoming, incoming
from dralloc.lab.simulate.batch_placing import BatchPlacer
from dralloc.lab.simulate.placing import (
    Placer,
    RunPlacer,
    SchedulerPlacer,
    check_state,
)
from dralloc.lab.simulate.room import rearrange_all
from dralloc.lab.simulate.simulation import (
    Decisions,
    History,
    Instant,
    MoveTimes,
    Simulation,
)
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.objects.choices import Choices, Mode
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit import first_fit
from examples import INDEPENDENT, examples

MANY = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
MOST = settings(
    MANY,
    max_examples=examples(500),
    backend=INDEPENDENT,
)
POLICIES = ("first-fit", "best-fit", "fgd", "density", "scheduler", "optimal")
WHEN = (Decisions(), Decisions(every=2000), Decisions(batch=3))


def waiting_in(scene: Scene) -> Incoming:
    assume(scene.arrivals)
    return incoming(scene.cluster, scene.arrivals, Choices())


def told(history: History) -> dict[int, tuple[Any, ...]]:
    """What became of everybody, with the devices."""
    return {
        arrival_index: (
            stay.state,
            stay.started,
            stay.ended,
            stay.node,
            stay.placement and stay.placement.grants,
        )
        for arrival_index, stay in history.stays.items()
    }


@MOST
@given(
    scenes(),
    st.sampled_from(POLICIES),
    st.sampled_from(WHEN),
    st.sampled_from([None, 0, 1500]),
    st.booleans(),
    st.sampled_from([None, MoveTimes(1500, 1), MoveTimes(1000, 9)]),
)
def test_everybody_is_in_one_state_and_nothing_is_taken_twice(
    scene: Scene,
    policy: str,
    when: Decisions,
    patience: int | None,
    preemption: bool,
    move_times: MoveTimes | None,
) -> None:
    waiting = waiting_in(scene)
    placer = placer_of(waiting, policy, Choices())
    simulation = Simulation(
        waiting,
        placer,
        when,
        patience=patience,
        room=room_making(placer, Choices(), move_times, preemption=preemption),
    )
    running_before: set[int] = set()

    def look(instant: Instant, placer: Placer) -> None:
        nonlocal running_before
        check_state(placer)
        stays = simulation.history.stays
        assert stays.keys() == {
            arrival_index
            for arrival_index, arrival in enumerate(waiting.arrivals)
            if arrival.time <= instant.time
        }, "who has come is in some state, and nobody else"
        states = Counter(stay.state for stay in stays.values())
        assert states[ArrivalState.PENDING] == instant.pending
        assert states[ArrivalState.RUNNING] == instant.running
        running = {
            arrival_index
            for arrival_index, stay in stays.items()
            if stay.state is ArrivalState.RUNNING
        }
        assert placer.placements.keys() == {
            arrival_index
            for arrival_index in running
            if waiting.demands[arrival_index] is not None
        }
        ended = {
            arrival_index
            for arrival_index, stay in stays.items()
            if stay.ended is not None
        }
        assert running_before - running <= ended
        running_before = running

    history = simulation.run(look)
    event(
        " ".join(sorted({stay.state.value for stay in history.stays.values()}))
    )
    event(f"moves {bool(history.moves)}")
    for arrival_index, stay in history.stays.items():
        duration = waiting.arrivals[arrival_index].duration
        match stay.state:
            case ArrivalState.DONE:
                assert stay.started is not None
                assert stay.ended == stay.started + (duration or 0)
            case ArrivalState.RUNNING:
                assert duration is None
            case ArrivalState.REFUSED:
                assert (stay.started, stay.placement) == (None, None)
            case ArrivalState.PREEMPTED:
                assert preemption
                assert stay.started is not None
                assert stay.ended is not None
                if duration is not None:
                    assert stay.ended < stay.started + duration
            case ArrivalState.PENDING:
                assert (stay.started, stay.ended) == (None, None)


@MOST
@given(
    scenes(),
    st.sampled_from(["first-fit", "best-fit"]),
    st.sampled_from(WHEN),
)
def test_in_the_end_no_moves_would_help_who_waits(
    scene: Scene, policy: str, when: Decisions
) -> None:
    """Nobody leaves, so that nothing but moves helps."""
    staying = tuple(
        replace(arrival, duration=None) for arrival in scene.arrivals
    )
    waiting = waiting_in(replace(scene, arrivals=staying))
    placer, most = placer_of(waiting, policy, Choices()), 9
    room = room_making(placer, Choices(), MoveTimes(1000, most))
    stays = Simulation(waiting, placer, when, room=room).run().stays
    jobs = [
        job
        for job, [first, *_] in enumerate(waiting.jobs)
        if stays[first].state is ArrivalState.PENDING
    ]
    event(f"some wait {bool(jobs)}")
    assert not rearrange_all(placer, jobs, most, Choices()).admitted


@MANY
@given(scenes(), st.sampled_from(POLICIES), st.sampled_from(WHEN))
def test_the_same_seed_gives_the_same_run(
    scene: Scene, policy: str, when: Decisions
) -> None:
    runs = []
    for _ in range(2):
        waiting = waiting_in(scene)
        choices = Choices(seed=3, kubernetes="1.34")
        runs.append(
            Simulation(waiting, placer_of(waiting, policy, choices), when).run()
        )
    assert runs[0] == runs[1]


def placed_by(plan: dralloc.Plan) -> dict[str, str]:
    return {
        str(plan.demands[placement.demand].key): plan.node_of(placement)
        for placement in plan.solution.placements
    }


@MANY
@given(scenes(), st.sampled_from(list(Mode)))
def test_one_batch_is_what_allocate_answers(scene: Scene, mode: Mode) -> None:
    """Everybody comes at once and never leaves."""
    by_name = sorted(scene.arrivals, key=lambda arrival: arrival.template)
    waiting = waiting_in(
        replace(
            scene,
            arrivals=tuple(
                replace(arrival, time=0, duration=None) for arrival in by_name
            ),
        )
    )
    choices = (
        Choices(kubernetes="1.35") if mode is Mode.SCHEDULER else Choices()
    )
    placer = placer_of(waiting, mode, choices)
    history = Simulation(waiting, placer).run()
    plan = dralloc.allocate(waiting.compiled.cluster, mode, choices=choices)
    there = {
        str(waiting.pods[arrival_index]): stay.node
        for arrival_index, stay in history.stays.items()
        if stay.placement
    }
    assert there == placed_by(plan)
    grants = {
        str(waiting.pods[arrival_index]): placement.grants
        for arrival_index, placement in placer.placements.items()
    }
    assert len(grants) == len(plan.solution.placements)


@MANY
@given(scenes(), st.sampled_from(POLICIES))
def test_when_everybody_has_left_the_cluster_is_as_it_was(
    scene: Scene, policy: str
) -> None:
    """The second of two equal waves finds what the first one did; kube-scheduler draws among equally good nodes."""
    first = tuple(
        replace(arrival, duration=arrival.duration or 500)
        for arrival in scene.arrivals
    )
    later = max((arrival.time for arrival in first), default=0) + 10**6
    again = tuple(
        replace(
            arrival,
            time=arrival.time + later,
            group=arrival.group and f"{arrival.group}2",
        )
        for arrival in first
    )
    waiting = waiting_in(replace(scene, arrivals=(*first, *again)))
    fresh = Ledger(
        waiting.problem
        if policy != Mode.SCHEDULER
        else waiting.compiled.problem
    )
    # A scheduler that leaves nothing to chance.
    placer = placer_of(waiting, policy, Choices(kubernetes="1.35"))
    simulation = Simulation(waiting, placer, patience=10**5)

    def look(instant: Instant, placer: Placer) -> None:
        if not instant.running:
            ledger = placer.ledger
            assert (ledger.held, ledger.shares, ledger.free) == (
                fresh.held,
                fresh.shares,
                fresh.free,
            )
            assert _amounts(ledger) == _amounts(fresh)

    history = simulation.run(look)
    if policy == Mode.SCHEDULER:
        return
    outcomes = [
        (stay.state, stay.node, _times(stay.arrived, stay.started))
        for _, stay in sorted(history.stays.items())
    ]
    assert outcomes[: len(first)] == outcomes[len(first) :]


def _amounts(ledger: Ledger) -> dict[tuple[int, str], int]:
    return {
        (slot, name): amount
        for slot, amounts in ledger.consumed.items()
        for name, amount in amounts.items()
        if amount
    }


def _times(arrived: int, started: int | None) -> int | None:
    return None if started is None else started - arrived


class PlainPlacer(BatchPlacer):
    """First fit as upstream does it: each job anew, without memory of anything but what is in use."""

    def __init__(self, waiting: Incoming) -> None:
        super().__init__(waiting, first_fit)

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        for job in queue.in_order():
            demands = self._demands(job)
            placements = first_fit(
                self.waiting_problem(demands), pruning=False
            ).placements
            for placement in placements:
                self.accept(
                    replace(placement, demand=demands[placement.demand])
                )
            if placements:
                yield job


@MANY
@given(scenes())
def test_first_fit_that_remembers_is_first_fit(scene: Scene) -> None:
    waiting = waiting_in(scene)
    runs = [
        Simulation(waiting, placer_of(waiting, "first-fit", Choices())),
        Simulation(waiting, PlainPlacer(waiting)),
    ]
    quick, plain = (told(simulation.run()) for simulation in runs)
    assert quick == plain


class Forgetful(SchedulerPlacer):
    """kube-scheduler that keeps nothing in mind between two attempts."""

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        self._run.scheduler._remembers = False
        queue.reopen()
        return super().decide(queue)


@MANY
@given(scenes())
def test_a_scheduler_that_remembers_is_the_scheduler(scene: Scene) -> None:
    waiting = waiting_in(scene)
    usual = placer_of(waiting, Mode.SCHEDULER, Choices())
    assert isinstance(usual, SchedulerPlacer)
    forgetful = placer_of(waiting, Mode.SCHEDULER, Choices())
    forgetful.__class__ = Forgetful
    assert told(Simulation(waiting, usual).run()) == told(
        Simulation(waiting, forgetful).run()
    )


@MANY
@given(scenes(grouped=False))
def test_a_recorded_order_of_arrivals_is_scheduled_step_by_step(
    scene: Scene,
) -> None:
    """One arrival after the other, none of which leaves: as mode scheduler takes pods that come in this order."""
    by_name = sorted(scene.arrivals, key=lambda arrival: arrival.template)
    one_by_one = tuple(
        replace(arrival, time=1000 * arrival_index, duration=None, priority=0)
        for arrival_index, arrival in enumerate(by_name)
    )
    waiting = waiting_in(replace(scene, arrivals=one_by_one))
    assume(not any(demand.roles for demand in waiting.problem.demands))
    choices = Choices(kubernetes="1.35")
    history = Simulation(
        waiting, placer_of(waiting, Mode.SCHEDULER, choices)
    ).run()
    plan = dralloc.allocate(
        waiting.compiled.cluster, Mode.SCHEDULER, choices=choices
    )
    there = {
        str(waiting.pods[arrival_index]): stay.node
        for arrival_index, stay in history.stays.items()
        if stay.placement
    }
    assert there == placed_by(plan)


@pytest.mark.parametrize("policy", POLICIES)
def test_placements_are_found_by_arrival(policy: str) -> None:
    cluster = dralloc.example()
    waiting = incoming(cluster, [], Choices())
    placer = placer_of(waiting, policy, Choices())
    assert isinstance(
        placer, SchedulerPlacer if policy == Mode.SCHEDULER else RunPlacer
    )
    assert placer.placements == dict[int, Placement]()
