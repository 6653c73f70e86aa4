"""The choices about the search for the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dralloc.objects.choices.words import (
    MAX_SEED,
    MAX_WORKERS,
    Backend,
    Goal,
    GoalName,
    chosen,
)
from dralloc.objects.errors import ModelError
from dralloc.objects.value_kinds import (
    NUMBER,
    SWITCH,
    TEXT,
    WHOLE_NUMBER,
    ValueKind,
    instance_of,
    require_fields,
)

__all__ = ["Options", "Thresholds"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on the optimum is searched for in another way. All ways lead to answers of the same worth.

    Parameters
    ----------
    components, seconds
        Fewer components are not worth sending to other processes, and with less seconds left to start processes would
        take too many of them.
    pattern_effort
        More devices are not looked at for the patterns of one bin: bins with more patterns are packed.
    listed_patterns
        So many patterns are listed of the shares of one device: where there are more, capacities are only added up.
    packings, round_packings
        How many are made however short the time is, and in the first round of a longer search.
    candidates
        With more devices to choose from in all choices together, there is no model of every device: what needs it
        stays as it is.
    surveyed
        With more devices to choose from in all choices together, demands are not split by what they share: they are
        searched as they are.
    """

    components: int = 2
    seconds: float = 5.0
    pattern_effort: int = 100_000
    listed_patterns: int = 1_000
    packings: int = 4
    round_packings: int = 2
    candidates: int = 4_000_000
    surveyed: int = 100_000


_KINDS: Final[Mapping[str, ValueKind]] = {
    "float | None": NUMBER.or_none(),
    "int": WHOLE_NUMBER,
    "int | None": WHOLE_NUMBER.or_none(),
    "bool": SWITCH,
    "str": TEXT,
    "Thresholds": instance_of(Thresholds, "Thresholds"),
}
"""By annotation, what a choice must be. Goals and other words are looked up instead."""


@dataclass(frozen=True, slots=True)
class Options:
    """Choices for `dralloc.solve.optimum.solve`.

    Parameters
    ----------
    time_limit
        Seconds for the whole solve, building models included; None for as long as the proof takes.
    seed
        Seed of the search. The same problem, options and hint give the same answer, unless the time limit or an
        interrupt ends the search: where a wall clock stops it is never repeatable.
    workers
        Threads of the search. With more than one they work in a fixed interleaved order, which stays repeatable.
    goal
        The last tier of the objective.
    strict_cel
        Whether a selector that fails on a device is an error instead of a warning that leaves the device out.
    per_device
        Whether to decide on every device even where equal demands and equal devices could be counted instead. Both
        give answers of the same worth; counting scales.
    steps
        How many steps the search for better answers takes at most where a problem is too large to be solved as a whole;
        None for as many as help. With a number of steps and no time limit the answer is the same on every machine, for
        any number of jobs and any backend.
    jobs, backend
        How many components at a time are worked out in other processes, and where: ``loky`` (processes here), ``dask``
        or ``ray``, which need the extras ``parallel``, ``dask`` and ``ray``. With one job and ``loky`` all is done in
        this process; so is what is one component, though bundles may be packed in as many threads. The answer does not
        depend on it, unless the time limit or an interrupt ends the search.
    thresholds
        From where on it is done in another way.

    Raises
    ------
    DrallocError
        A value is of another kind or out of its range (`ModelError`), or there is no such goal or backend
        (`ChoiceError`).

    Examples
    --------
    >>> import dralloc
    >>> from dralloc.compile.compiler import compile_cluster
    >>> from dralloc.solve.optimum import solve
    >>> problem = compile_cluster(dralloc.example()).problem
    >>> print(solve(problem, dralloc.Options(time_limit=60, goal="fewest-nodes")).status)
    OPTIMAL
    """

    time_limit: float | None = None
    seed: int = 0
    workers: int = 1
    goal: Goal | GoalName = Goal.NONE
    strict_cel: bool = False
    per_device: bool = False
    jobs: int = 1
    steps: int | None = None
    backend: str = Backend.LOKY
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        require_fields(self, _KINDS)
        # Asked like this, not-a-number is refused as well.
        if self.time_limit is not None and not self.time_limit > 0:
            raise ModelError(
                f"time limit: {self.time_limit} is not a positive number of seconds"
            )
        for name, count, unit in (
            ("workers", self.workers, "threads"),
            ("jobs", self.jobs, "processes"),
        ):
            if not 1 <= count <= MAX_WORKERS:
                raise ModelError(
                    f"{name}: {count} is not between 1 and {MAX_WORKERS} {unit}"
                )
        if self.steps is not None and self.steps < 0:
            raise ModelError(f"steps: {self.steps} is negative")
        chosen(Backend, "backend", self.backend)
        object.__setattr__(self, "goal", chosen(Goal, "goal", self.goal))
        if not 0 <= self.seed <= MAX_SEED:
            raise ModelError(
                f"seed: {self.seed} is not between 0 and {MAX_SEED}"
            )
