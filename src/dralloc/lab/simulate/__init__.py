"""Time: pods arrive, run and leave, and a policy decides who gets which devices when.

- `dralloc.lab.simulate.arrivals`: who arrives, from a file or by chance, and the cluster with all of them;
- `dralloc.lab.simulate.waiting_queue`: who waits;
- `dralloc.lab.simulate.placing`: who finds places for them, one after the other;
- `dralloc.lab.simulate.batch_placing`: who finds places for all of them together;
- `dralloc.lab.simulate.kept_answers`: what solvers answered, in a file;
- `dralloc.lab.simulate.room`: who gives way to whom, and who moves;
- `dralloc.lab.simulate.simulation`: what happens, in order;
- `dralloc.lab.simulate.figures`: what it comes to, for one run;
- `dralloc.lab.simulate.answer`: all runs, with means over seeds, as tables and data frames;
- `dralloc.lab.simulate.measures`: what it could have come to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, Unpack

import orjson
from pydantic import TypeAdapter, ValidationError

from dralloc.lab.simulate.answer import RunRegret, Simulated, SimulatedRun
from dralloc.lab.simulate.arrivals.incoming import Incoming, incoming
from dralloc.lab.simulate.arrivals.poisson import PoissonArrivals
from dralloc.lab.simulate.arrivals.trace import (
    MILLISECONDS,
    Arrival,
    read_trace,
    trace_text,
)
from dralloc.lab.simulate.batch_placing import BatchPlacer, OptimalPlacer
from dralloc.lab.simulate.figures import figures_of, reached_value
from dralloc.lab.simulate.kept_answers import KeptAnswers
from dralloc.lab.simulate.measures.clairvoyant_bound import clairvoyant_bound
from dralloc.lab.simulate.measures.decision_regret import WatchedPlacer
from dralloc.lab.simulate.measures.fragmentation_meter import FragmentationMeter
from dralloc.lab.simulate.placing import (
    Placer,
    RunPlacer,
    SchedulerPlacer,
    check_state,
)
from dralloc.lab.simulate.room import preempt, rearrange_all
from dralloc.lab.simulate.simulation import (
    ArrivalState,
    Decisions,
    History,
    Instant,
    MoveTimes,
    Preempt,
    RoomMaking,
    Simulation,
)
from dralloc.objects.choices import (
    Backend,
    Choices,
    ChoiceWords,
    Mode,
    spelled_out,
)
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import ChoiceError, DrallocError
from dralloc.objects.limits import Limits
from dralloc.objects.save import write_text
from dralloc.objects.value_kinds import (
    FUNCTION,
    NUMBER,
    PATH,
    SWITCH,
    TEXT,
    WHOLE_NUMBER,
    WHOLE_NUMBERS,
    any_of,
    instance_of,
    list_of,
    takes,
)
from dralloc.solve.first_fit.quick_run import QuickRun
from dralloc.solve.policies import (
    POLICIES,
    OrderedPolicy,
    Policy,
    place,
    policy_name,
)
from dralloc.solve.policies.protocol import AskingRun
from dralloc.solve.policies.scored_run import ScoredRun
from dralloc.solve.policies.table import as_given
from dralloc.solve.scheduler import Profile, Release, read_profiles
from dralloc.solve.work import run_all

__all__ = [
    "Arrival",
    "ArrivalState",
    "Arrivals",
    "PoissonArrivals",
    "Simulated",
    "placer_of",
    "read_trace",
    "room_making",
    "simulate",
    "trace_text",
]


# ----------------------------------------------------------------------------
# Seeds in files, so that a simulation that was killed goes on where it was.


class SeedFiles:
    """The files of a simulation: one for each seed that is finished, and one with the answers of each that is begun.

    Parameters
    ----------
    folder
        Where they are; made if it is not there.
    identity
        Everything that a run depends on beside its seed. A file that was written for anything else is an error, so that
        nobody takes figures of one simulation for those of another one.

    Raises
    ------
    DrallocError
        The folder cannot be made.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._folder = folder
        described = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        self._digest = sha256(described).hexdigest()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DrallocError(
                f"{folder}: cannot be made: {error.strerror or error}"
            ) from None

    def run(self, seed: int) -> SimulatedRun | None:
        """Return the run of a seed that is finished; None if it is not.

        Raises
        ------
        DrallocError
            The file cannot be read, or is about another simulation.
        """
        path = self._path(seed)
        if not path.exists():
            return None
        try:
            stored = orjson.loads(path.read_bytes())
            digest, run = stored["simulation"], stored["run"]
            if digest == self._digest:
                return self._runs.validate_python(run)
        except (
            OSError,
            orjson.JSONDecodeError,
            ValidationError,
            KeyError,
            TypeError,
        ):
            raise DrallocError(f"{path}: is no finished seed") from None
        raise DrallocError(
            f"{path}: is about another simulation: another cluster, policy or trace, or other choices"
        )

    def write(self, run: SimulatedRun) -> None:
        """Keep a finished seed.

        Raises
        ------
        DrallocError
            The file cannot be written.
        """
        stored = {
            "simulation": self._digest,
            "run": self._runs.dump_python(run, mode="json"),
        }
        write_text(orjson.dumps(stored).decode(), self._path(run.seed))
        self._begun_path(run.seed).unlink(missing_ok=True)

    def begun(self, seed: int) -> BegunFile:
        """Return where the answers of a seed are kept as long as it is not finished."""
        # Another version might ask otherwise.
        heading = f"{self._digest} {seed} {version('dralloc')}"
        return BegunFile(self._begun_path(seed), heading)

    def _begun_path(self, seed: int) -> Path:
        return self._folder / f"seed-{seed}.begun.jsonl"

    def _path(self, seed: int) -> Path:
        return self._folder / f"seed-{seed}.json"

    @cached_property
    def _runs(self) -> TypeAdapter[SimulatedRun]:
        return TypeAdapter(SimulatedRun)


class BegunFile(NamedTuple):
    """The file of a seed that is begun, and what its answers depend on (see `KeptAnswers`)."""

    path: Path
    heading: str


# ----------------------------------------------------------------------------
# The simulation itself: policies, seeds, and the answer of all runs.

SIMULATED_POLICIES: Final = (
    *POLICIES,
    Mode.SCHEDULER.value,
    Mode.OPTIMAL.value,
)
"""The policies by name."""

Arrivals = str | PathLike[str] | Sequence[Arrival] | PoissonArrivals
"""The path of a trace, its arrivals, or something that draws them by the seed."""

_CHECKS: Final = 20
"""How many states of a run the checker looks at, beside the last one."""

_LOOKS: Final = 24
"""How often in a run fragmentation is measured."""

_UNUSED: Final = ("caps", "fair", "gang", "keep", "across")


_MAYBE_NUMBER: Final = NUMBER.or_none()


@takes(
    arrivals=any_of(
        PATH,
        instance_of(PoissonArrivals, "PoissonArrivals"),
        list_of(Arrival, "a list of Arrivals"),
    ),
    policy=any_of(TEXT, FUNCTION),
    seeds=any_of(WHOLE_NUMBER, WHOLE_NUMBERS),
    every=_MAYBE_NUMBER,
    batch=WHOLE_NUMBER.or_none(),
    patience=_MAYBE_NUMBER,
    warm_up=NUMBER,
    until=_MAYBE_NUMBER,
    preemption=SWITCH,
    moves_every=_MAYBE_NUMBER,
    moves=WHOLE_NUMBER,
    state=PATH.or_none(),
    regret=SWITCH,
    progress=FUNCTION.or_none(),
)
@spelled_out(ChoiceWords)
def simulate(  # noqa: PLR0913 - who comes, who places them, and when
    cluster: Cluster,
    arrivals: Arrivals,
    policy: str | Policy = Mode.FIRST_FIT.value,
    *,
    seeds: int | Iterable[int] = 1,
    every: float | None = None,
    batch: int | None = None,
    patience: float | None = None,
    warm_up: float = 0.0,
    until: float | None = None,
    preemption: bool = False,
    moves_every: float | None = None,
    moves: int = 5,
    state: str | PathLike[str] | None = None,
    regret: bool = False,
    progress: Callable[[int, int], None] | None = None,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> Simulated:
    """Let pods arrive, run and leave, and see what a policy makes of it.

    What runs in the cluster stays; what is pending there serves as template and does not wait itself. An arrival has
    claims of its own. Pods without a place are tried again whenever another one leaves, by priority and then by when
    they came.

    Parameters
    ----------
    cluster
        Nodes, devices, what runs, and the templates of what arrives.
    arrivals
        A trace (see `dralloc.lab.simulate.arrivals.trace`): its path, or the arrivals themselves. Or `PoissonArrivals`,
        which are drawn for each seed.
    policy
        ``first-fit``, ``scheduler``, ``optimal``, the name of a policy (see `dralloc.solve.policies`), or your own
        (`dralloc.Policy`).
    seeds
        The seeds, or how many: 0, 1, ... A seed draws arrivals, and decides what the policy leaves to chance.
    every
        Seconds between two decisions; without it, and without ``batch``, there is one whenever somebody comes or goes.
    batch
        There is a decision as soon as so many have come since the last one.
    patience
        Seconds after which a pod without a place is refused; without it, it waits for ever.
    warm_up
        Seconds at the beginning that figures do not count.
    until
        Seconds after which the run ends; without it, it does when nothing happens any more.
    preemption
        Whether an arrival without a place may take that of less important ones, which do not come back, by the rules of
        kube-scheduler. With policy ``scheduler`` that is upstream's preemption itself, which evicts for devices only
        with the feature ``Preemption`` (KEP-5690).
    moves_every, moves
        At each multiple of so many seconds so many claims may move to other devices, if that gives others a place, as
        `dralloc.defragment` finds it; without ``moves_every`` nobody moves. Groups, and pods with rules about other
        pods, stay where they are. With policy ``scheduler`` that is a descheduler's work beside it: its filters are
        asked about everybody who comes to a node, and if one is against it, nobody moves this time.
    state
        A folder in which each finished seed is kept in a file; those that are there are not worked out again. Of a seed
        that is begun what took a solver is kept: the answers to batches, moves and regrets. It goes on from there
        (backend ``loky``).
    regret
        Whether to hold each decision against the optimum of that moment, and each run against what nobody could exceed
        who had known all arrivals. That takes as long as many optima.
    progress
        Called after each finished seed, with how many are done, and of how many.
    choices, words
        As for `dralloc.allocate`, without caps, fairness, gangs by label, constraints over claims, and whom to keep.
        ``jobs`` is how many seeds are worked out at a time, and ``backend`` where.

    Returns
    -------
    Simulated
        Figures, what became of each arrival, and how many waited and ran over time, for each seed. The independent
        checker has accepted the last state of each run, and others on the way.

    Raises
    ------
    DrallocError
        There is no such policy, a number is out of its range, a trace cannot be read, a template is not there; and what
        `dralloc.allocate` raises.

    Examples
    --------
    >>> import dralloc
    >>> arrivals = dralloc.PoissonArrivals({"large": 1, "any": 1}, per_hour=10, hours=5)
    >>> dralloc.simulate(dralloc.example(), arrivals)
    <Simulated: first-fit: 35 of 35 arrivals got a place>
    """
    cluster = cluster_of(cluster)
    choices = Choices.of(choices, words, unused=_UNUSED)
    if isinstance(policy, str) and policy not in SIMULATED_POLICIES:
        raise ChoiceError("policy", policy, SIMULATED_POLICIES)
    if batch is not None and batch < 1:
        raise DrallocError(f"batch: {batch} is less than 1")
    moving = _milliseconds("moves_every", moves_every, least=1)
    if moves < 0:
        raise DrallocError(f"moves: {moves} is less than 0")
    setting = RunSetting(
        Decisions(_milliseconds("every", every, least=1), batch),
        preemption=preemption,
        move_times=None if moving is None else MoveTimes(moving, moves),
        patience=_milliseconds("patience", patience),
        until=_milliseconds("until", until),
        warm_up=_milliseconds("warm_up", warm_up) or 0,
        regret=regret,
    )
    source = (
        read_trace(arrivals)
        if isinstance(arrivals, str | PathLike)
        else arrivals
    )
    seed_values = range(seeds) if isinstance(seeds, int) else seeds
    tasks = [
        SeedTask(cluster, source, policy, setting, replace(choices, seed=seed))
        for seed in seed_values
    ]
    files = (
        None
        if state is None
        else SeedFiles(
            Path(state), _identity(cluster, source, policy, setting, choices)
        )
    )
    runs: dict[int, SimulatedRun] = {}
    for task in tasks if files is not None else ():
        finished = files.run(task.choices.seed) if files else None
        if finished is not None:
            runs[task.choices.seed] = finished
    missing = [task for task in tasks if task.choices.seed not in runs]
    if files is not None and choices.backend == Backend.LOKY:
        # Elsewhere the folder need not be there.
        missing = [
            replace(task, begun=files.begun(task.choices.seed))
            for task in missing
        ]
    for task_index, run in run_all(
        missing, Backend(choices.backend), choices.jobs
    ):
        seed = missing[task_index].choices.seed
        runs[seed] = run
        if files is not None:
            files.write(run)
        if progress is not None:
            progress(len(runs), len(tasks))
    return Simulated(
        policy_name(policy),
        tuple(runs[task.choices.seed] for task in tasks),
    )


def _identity(
    cluster: Cluster,
    arrivals: Sequence[Arrival] | PoissonArrivals,
    policy: str | Policy,
    setting: RunSetting,
    choices: Choices,
) -> Mapping[str, str]:
    """Return what the runs of a simulation depend on beside their seeds."""
    from dralloc.lab.study.scenarios import (  # noqa: PLC0415 - needed for state files alone
        ClusterScenario,
        identity_of,
    )

    chosen = replace(choices, seed=0, jobs=1, backend=Backend.LOKY)
    return {
        "cluster": ClusterScenario(cluster, Limits()).identity,
        "arrivals": repr(arrivals),
        "policy": policy if isinstance(policy, str) else identity_of(policy),
        "setting": repr(setting),
        "choices": repr(chosen),
    }


def _milliseconds(
    name: str, seconds: float | None, least: int = 0
) -> int | None:
    if seconds is None:
        return None
    if not (isfinite(seconds) and seconds * MILLISECONDS >= least):
        raise DrallocError(
            f"{name}: {seconds} is no number of seconds from {least / MILLISECONDS:g}"
        )
    return round(seconds * MILLISECONDS)


@dataclass(frozen=True)
class RunSetting:
    """The setting that all seeds of a simulation have in common; times in milliseconds.

    Parameters
    ----------
    decisions
        When those who wait are looked at.
    patience
        How long somebody waits before being refused; None for ever.
    until
        When the run ends; None for the end of everything.
    warm_up
        Who comes before does not count.
    preemption
        Whether the more important take the place of the less important.
    move_times
        When others move for who waits; None for never.
    regret
        Whether decisions are held against optima, and the run against a clairvoyant bound.
    """

    decisions: Decisions
    preemption: bool = False
    move_times: MoveTimes | None = None
    patience: int | None = None
    until: int | None = None
    warm_up: int = 0
    regret: bool = False


@dataclass(frozen=True)
class SeedTask:
    """The run of one seed, in this process or in another one."""

    cluster: Cluster
    arrivals: Sequence[Arrival] | PoissonArrivals
    policy: str | Policy
    setting: RunSetting
    choices: Choices
    begun: BegunFile | None = None

    def run(self) -> SimulatedRun:
        """Let everything happen; the checker has accepted the last state, and others on the way."""
        choices = replace(self.choices, jobs=1, backend=Backend.LOKY)
        source, seed = self.arrivals, choices.seed
        drawn = (
            source.draw(seed) if isinstance(source, PoissonArrivals) else source
        )
        waiting = incoming(self.cluster, drawn, choices)
        if self.policy != Mode.SCHEDULER:
            _refuse_without_devices(waiting)
        kept = KeptAnswers(*self.begun) if self.begun else KeptAnswers()
        placer = placer_of(waiting, self.policy, choices, kept)
        return self._simulated(waiting, placer, choices, kept)

    def _simulated(
        self,
        waiting: Incoming,
        placer: Placer,
        choices: Choices,
        kept: KeptAnswers,
    ) -> SimulatedRun:
        setting = self.setting
        watched: WatchedPlacer | None = None
        if setting.regret:
            watched = WatchedPlacer(placer, choices, kept)
        # Decisions alone are held against optima: preemption and moves go to the placer itself.
        simulation = Simulation(
            waiting,
            watched or placer,
            setting.decisions,
            patience=setting.patience,
            until=setting.until,
            room=room_making(
                placer,
                choices,
                setting.move_times,
                preemption=setting.preemption,
                kept=kept,
            ),
        )
        meter = FragmentationMeter(waiting, placer, setting.warm_up, _LOOKS)
        # Most arrivals come and leave, so that there are about two instants for each.
        between = max(1, 2 * len(waiting.arrivals) // _CHECKS)

        def look(instant: Instant, placer: Placer) -> None:
            meter.look(instant.time)
            if len(simulation.history.instants) % between == 0:
                check_state(placer)

        history = simulation.run(look)
        check_state(placer)
        figures = figures_of(
            waiting, history, setting.warm_up, meter.mean, setting.until
        )
        regret = (
            _regret_of(
                waiting,
                history,
                watched,
                setting.until,
                # Other policies evict arrivals alone.
                evicts=setting.preemption and self.policy == Mode.SCHEDULER,
            )
            if watched
            else None
        )
        devices = map(waiting.asked_devices, range(len(waiting.arrivals)))
        return SimulatedRun(
            choices.seed,
            waiting.arrivals,
            tuple(devices),
            history,
            figures,
            regret,
            tuple(meter.looks),
        )


def _regret_of(
    waiting: Incoming,
    history: History,
    watched: WatchedPlacer,
    until: int | None,
    *,
    evicts: bool,
) -> RunRegret:
    last = max((arrival.time for arrival in waiting.arrivals), default=0)
    horizon = last if until is None else until
    reached = reached_value(waiting, history, horizon)
    bound = clairvoyant_bound(waiting, horizon, reached, evicts=evicts).value
    return RunRegret(tuple(watched.regrets), reached, bound, horizon)


def _refuse_without_devices(waiting: Incoming) -> None:
    for arrival, demand in zip(waiting.arrivals, waiting.demands, strict=True):
        if demand is None:
            raise DrallocError(
                f"template {arrival.template}: asks for no device; only the policy scheduler places such pods"
            )


def placer_of(
    waiting: Incoming,
    policy: str | Policy,
    choices: Choices,
    kept: KeptAnswers | None = None,
) -> Placer:
    """Return who finds places by a policy.

    Parameters
    ----------
    kept
        Where answers to whole batches are kept.

    Raises
    ------
    ChoiceError
        There is no such policy.
    """
    match policy:
        case OrderedPolicy():
            return BatchPlacer(waiting, partial(place, policy=policy), kept)
        case Policy():
            return RunPlacer(waiting, AskingRun(waiting.problem, policy))
        case Mode.OPTIMAL:
            return OptimalPlacer(waiting, choices, kept)
        case Mode.SCHEDULER:
            config = choices.scheduler_config
            profiles = (
                (Profile(),)
                if config is None
                else tuple(read_profiles(Path(config)))
            )
            return SchedulerPlacer(
                waiting, profiles, Release.of(choices.kubernetes), choices.seed
            )
        case _:
            quick_policy = POLICIES.get(policy)
    if quick_policy is None:
        raise ChoiceError("policy", policy, SIMULATED_POLICIES)
    # A policy with an order of its own needs everybody who waits at once; the others take one after the other.
    if quick_policy.order is not as_given:
        return BatchPlacer(waiting, partial(place, policy=policy), kept)
    if quick_policy.scoring is None:
        return RunPlacer(waiting, QuickRun(waiting.problem))
    return RunPlacer(waiting, ScoredRun(waiting.problem, quick_policy.scoring))


def room_making(
    placer: Placer,
    choices: Choices,
    move_times: MoveTimes | None = None,
    *,
    preemption: bool = False,
    kept: KeptAnswers | None = None,
) -> RoomMaking:
    """Return how a placer makes room for who waits.

    Parameters
    ----------
    move_times
        When others move; None for never.
    preemption
        Whether the more important take the place of the less important.
    kept
        Where plans for moves are kept.
    """
    preempting: Preempt | None = None
    if preemption:
        preempting = _preempting(placer)
    rearranging = partial(rearrange_all, placer, choices=choices, kept=kept)
    return RoomMaking(preempting, move_times, rearranging)


def _preempting(placer: Placer) -> Preempt:
    if isinstance(placer, SchedulerPlacer):
        return placer.preempt
    assert isinstance(placer, RunPlacer)
    return partial(preempt, placer)
