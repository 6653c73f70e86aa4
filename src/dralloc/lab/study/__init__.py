"""Studies: scenario x seeds x demand x modes -> a table.

`study` is the function that users know as ``dralloc.study``.

- `dralloc.lab.study.demand`: more or less of what is to be placed;
- `dralloc.lab.study.scenarios`: the clusters that a study is about;
- `dralloc.lab.study.trial`: one point, answered in some modes;
- `dralloc.lab.study.journal`: finished rows on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from math import isfinite
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Unpack

import orjson

from dralloc.lab.study.journal import Journal
from dralloc.lab.study.scenarios import (
    Scenario,
    Source,
    identity_of,
    scenario_of,
)
from dralloc.lab.study.trial import MODES, Trial, known_modes
from dralloc.objects.choices import (
    Backend,
    Choices,
    ChoiceWords,
    Mode,
    Options,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import LIMITS, Limits
from dralloc.objects.value_kinds import (
    FUNCTION,
    NUMBER,
    NUMBERS,
    PATH,
    WHOLE_NUMBER,
    WHOLE_NUMBERS,
    any_of,
    instance_of,
    list_of,
    takes,
)
from dralloc.solve.optimum.stopping import ended_by_interrupts
from dralloc.solve.policies import Policy
from dralloc.solve.work import run_all

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["study"]

_LARGEST: Final = 2**63 - 1
"""The largest number that a column of whole numbers can hold."""

Keys = dict[tuple[int, float, str], str]

OnPoint = Callable[[int, int], None]
"""Called with the number of rows that are done, and of all rows."""

_MOST_POINTS = 100_000

_FORMAT = 3
"""Part of every key: rows of another form are not taken for finished."""

_NO_MATTER = frozenset(
    {
        "jobs",
        "backend",
        "thresholds",
        "seed",
        "pruning",
        "caps",
        "scheduler_config",
        "kubernetes",
    }
)
"""Choices that change no row, or stand beside them in the key."""


@takes(
    scenario=any_of(
        PATH,
        instance_of(Cluster, "a Cluster"),
        FUNCTION,
        list_of((str, PathLike), "a list of paths"),
    ),
    seeds=any_of(WHOLE_NUMBER, WHOLE_NUMBERS),
    modes=list_of(object, "a list of modes and policies"),
    demand=any_of(NUMBER, NUMBERS),
    store=PATH.or_none(),
    progress=FUNCTION.or_none(),
    limits=instance_of(Limits, "Limits"),
)
@spelled_out(ChoiceWords)
def study(  # noqa: PLR0913 - what a table has rows for, and how it is kept
    scenario: Source,
    *,
    seeds: int | Iterable[int] = 1,
    modes: Sequence[str | Policy] = MODES,
    demand: float | Iterable[float] = 1.0,
    store: str | Path | None = None,
    progress: OnPoint | None = None,
    limits: Limits = LIMITS,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> DataFrame:
    """Answer a scenario in several modes, for every seed and every demand. Needs the extra ``study``.

    Parameters
    ----------
    scenario
        Paths as for `dralloc.load`, or a `Cluster`: then the demand is scaled (see `dralloc.lab.study`). Or a
        function that makes a cluster for a seed and a demand; other processes must be able to import it.
    seeds
        The seeds, or how many: 0, 1, ... A seed draws what is left out or doubled, and seeds the optimum's
        search and what kube-scheduler leaves to chance.
    modes
        ``scheduler``, ``optimal`` and policies: names of those that dralloc knows (`dralloc.solve.policies`), or your
        own (`dralloc.Policy`), which other processes must be able to import. All with a name by default.
    demand
        How many times as many demands as the scenario has; one number or several.
    store
        A file that keeps finished rows. A study that was killed goes on where it was; rows are told apart by the
        content of the scenario and all parameters that matter for them.
    progress
        Called after each finished point.
    limits
        As for `dralloc.load`; a demand is scaled to no more pods and claims than the limit of pods.
    choices, words
        As for `dralloc.allocate`, without caps and fairness, which policies do not look at. ``jobs`` is how many points
        are worked out at a time, and ``backend`` where: ``loky`` (processes here), ``dask`` or ``ray``, which need the
        extras of their names. The rows do not depend on it, but for their seconds, and but for the optimum where a time
        limit ends it. Seeds are those of the points.

    Returns
    -------
    pandas.DataFrame
        One row per seed, demand and mode, in this order: ``seed``, ``demand``, ``mode``, ``placed`` and ``total`` (in
        demands), ``weight`` (of the placed), ``status``, ``bound`` and ``gap`` (of the optimum; the bound is that of
        the weight), ``seconds.compile``, ``seconds.solve``, ``seconds.check``, and ``utilisation.<what>`` for each
        counter and capacity by name, from 0 to 1.

    Raises
    ------
    DrallocError
        A mode is not known, an option is out of its range, a backend is not installed, the store cannot be used; and
        what `dralloc.load` and `dralloc.allocate` raise.

    Examples
    --------
    >>> import dralloc
    >>> table = dralloc.study(dralloc.example(), modes=["first-fit", "optimal"])
    >>> print(table[["mode", "placed", "total"]])
            mode  placed  total
    0  first-fit       1      2
    1    optimal       2      2
    """
    pd = _pandas()
    choices = Choices.of(
        choices, words, unused=("caps", "fair", "seed", "keep")
    )
    where = scenario_of(scenario, limits)
    points = _points(seeds, demand)
    named = known_modes(modes)
    for seed, _ in (min(points), max(points)):
        # Choices refuse a seed that is out of their range: before anything is worked out, and hashed.
        replace(choices, seed=seed)
    keys = _keys(where, dict.fromkeys(points), named, choices)
    with Journal(None if store is None else Path(store)) as journal:
        _finish(where, keys, named, choices, journal, progress)
        rows = [journal.rows[key] for key in keys.values()]
        table: DataFrame = pd.json_normalize(rows)
    bounds = [row["bound"] for row in rows]
    # Whole numbers, or nothing; those of many priorities are larger than what a column of numbers can hold.
    is_large = any(bound is not None and bound > _LARGEST for bound in bounds)
    dtype = "object" if is_large else "Int64"
    return table.assign(bound=pd.Series(bounds, dtype=dtype))


def _points(
    seeds: int | Iterable[int], demand: float | Iterable[float]
) -> list[tuple[int, float]]:
    """Return every seed with every demand."""
    shares = [
        float(share)
        for share in (demand if isinstance(demand, Iterable) else (demand,))
    ]
    for share in shares:
        if share < 0:
            raise DrallocError(f"demand: {share} is negative")
        if not isfinite(share):
            raise DrallocError(f"demand: {share} is not a finite number")
    seeds_and_shares = (
        (seed, share)
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
        for share in shares
    )
    # One more than is allowed shows that there are too many; seeds may come without end.
    points = list(islice(seeds_and_shares, _MOST_POINTS + 1))
    if not points:
        raise DrallocError(
            "seeds and demands: a study needs at least one of each"
        )
    if len(points) > _MOST_POINTS:
        raise DrallocError(
            f"seeds and demands: a study has at most {_MOST_POINTS} points"
        )
    return points


def _finish(  # noqa: PLR0913 - what to do, how, and who is told
    scenario: Scenario,
    keys: Keys,
    modes: Mapping[str, str | Policy],
    choices: Choices,
    journal: Journal,
    progress: OnPoint | None,
) -> None:
    """Work out the rows that are not in the journal."""
    undone: dict[tuple[int, float], dict[str, str | Policy]] = {}
    for (seed, share, name), key in keys.items():
        if key not in journal.rows:
            undone.setdefault((seed, share), {})[name] = modes[name]
    # The modes of a point share what is compiled: one trial has all that are missing of it.
    trials = [
        Trial(scenario, seed, share, todo, choices)
        for (seed, share), todo in undone.items()
    ]
    done = len(keys) - sum(len(trial.modes) for trial in trials)
    with ended_by_interrupts() as check:
        for trial_index, rows in run_all(
            trials, Backend(choices.backend), choices.jobs
        ):
            # The row of a search that was interrupted is no finished one.
            check()
            for row in rows:
                journal.add(
                    keys[
                        trials[trial_index].seed,
                        trials[trial_index].demand,
                        row["mode"],
                    ],
                    row,
                )
            done += len(rows)
            if progress is not None:
                progress(done, len(keys))


def _keys(
    scenario: Scenario,
    points: Iterable[tuple[int, float]],
    modes: Mapping[str, str | Policy],
    choices: Choices,
) -> Keys:
    """Return a hash of all that a row depends on, for each seed, demand and mode."""
    matters = {
        name: value
        for name, value in asdict(choices).items()
        if name not in _NO_MATTER
    }
    # How the optimum is searched for matters to its rows alone: those of other modes stay finished.
    of_search = {
        field.name: matters.pop(field.name)
        for field in fields(Options)
        if field.name in matters
    }
    common = [_FORMAT, scenario.identity, matters]
    # A policy of the user's is known by its source, as its name does not say what it does.
    written = {
        name: mode if isinstance(mode, str) else identity_of(mode)
        for name, mode in modes.items()
    }
    config = choices.scheduler_config
    # What the configuration says counts, not where it is.
    own_choices: dict[str, object] = {
        Mode.OPTIMAL: of_search,
        Mode.SCHEDULER: [
            choices.kubernetes,
            _text_of(Path(config)) if config else "",
        ],
    }
    keys = {}
    for seed, share in points:
        for mode in modes:
            point = [seed, share, written[mode], own_choices.get(mode)]
            keys[seed, share, mode] = hashlib.sha256(
                orjson.dumps([*common, *point])
            ).hexdigest()
    return keys


def _text_of(config: Path) -> str:
    try:
        return config.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DrallocError(f"{config}: cannot be read: {error}") from None


def _pandas() -> ModuleType:
    try:
        import pandas as pd  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise DrallocError(
            "a study needs pandas: pip install 'dralloc[study]'"
        ) from None
    return pd
