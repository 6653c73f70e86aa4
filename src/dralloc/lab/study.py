"""Studies: scenario x seeds x demand x modes -> a table.

`study` is the function that users know as ``dralloc.study``. Before it: more or less demand (`scaled`), scenarios, one
point of a study (`Trial`), and finished rows on disk (`Journal`).
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
import os
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache, partial
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from random import Random
from types import ModuleType, TracebackType, UnionType
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    Self,
    TypeVar,
    Unpack,
)

import orjson

from dralloc.ask.allocate import CheckedAnswers
from dralloc.ask.scenario import Scenario as Changed
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.api import (
    ApiObject,
    CompositePodGroup,
    ObjectMeta,
    Pod,
    PodGroup,
    PodSchedulingGroup,
    PodStatus,
    ResourceClaim,
    to_wire,
)
from dralloc.objects.api.base import changed
from dralloc.objects.choices import (
    Backend,
    Choices,
    ChoiceWords,
    Mode,
    Options,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import ChoiceError, DrallocError
from dralloc.objects.limits import LIMITS, Limits
from dralloc.objects.load import STDIN, load, load_objects
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand
from dralloc.solve.policies import POLICIES, Policy, policy_name, way_of
from dralloc.solve.work import run_all

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["MODES", "Given", "Trial", "identity_of", "scaled", "study"]

# ----------------------------------------------------------------------------
# More or less of what is to be placed: the same pods, fewer of them, or some of them
# twice. That is done to the objects, so that every mode is asked about the same.


def scaled(
    cluster: Cluster,
    demand: float,
    seed: int,
    choices: Choices | None = None,
    most: int = LIMITS.pods,
) -> Cluster:
    """Return the cluster with so many times as many demands: pods that wait for devices, and claims of their own.

    Below 1 some are left out, above 1 all are there and copies of some come after them: as many of each as of any
    other, up to one. Which ones is drawn by the seed; the order stays. A gang is left out or copied as a whole, so that
    the number is met up to the size of a gang. Copies have claims and groups of their own; claims that several pods use
    are copied once for all of them.

    Parameters
    ----------
    demand
        How many times as many, not below 0; rounded to whole demands.
    choices
        Say what is to be placed, and what is a gang.
    most
        How many demands may come out, if there are not that many already.

    Raises
    ------
    DrallocError
        More would come out.
    """
    if demand == 1:
        return cluster
    choices = choices or Choices()
    cluster = cluster.including(choices.include)
    compiled = compile_cluster(cluster, choices)
    demands = tuple(compiled.problem.demands)
    count = demand * len(demands)
    if count > max(most, len(demands)):
        limit = f"more than {most}; --limit pods=AMOUNT allows more"
        raise DrallocError(
            f"demand: {demand} times {len(demands)} pods and claims are {limit}"
        )
    full_rounds, part = divmod(round(count), max(len(demands), 1))
    drawn = _drawn(demands, part, Random(f"{seed}")) if part else ()
    rounds = [*[range(len(demands))] * full_rounds, drawn]
    waiting = [
        DrawnDemands.of(compiled, demands, demand_indices)
        for demand_indices in rounds
    ]
    result = _only(cluster, compiled, waiting[0])
    for turn, copied in enumerate(waiting[1:], 1):
        result = _with_copies(result, cluster, copied, turn, choices.gang)
    return result


def _drawn(
    demands: Sequence[Demand], count: int, random: Random
) -> Sequence[int]:
    """Draw as many of the demands as wanted, or fewer by less than a gang, in their order."""
    groups: dict[object, list[int]] = {}
    for demand_index, demand in enumerate(demands):
        groups.setdefault(demand.placed_with or demand_index, []).append(
            demand_index
        )
    order = list(groups.values())
    random.shuffle(order)
    chosen: list[int] = []
    for members in order:
        if len(chosen) + len(members) <= count:
            chosen += members
    return sorted(chosen)


class DrawnDemands(NamedTuple):
    """Some demands: pods, and claims that no pod uses."""

    pods: frozenset[ClaimKey]
    claims: frozenset[ClaimKey]

    @classmethod
    def of(
        cls,
        compiled: CompiledCluster,
        demands: Sequence[Demand],
        demand_indices: Iterable[int],
    ) -> DrawnDemands:
        pods: set[ClaimKey] = set()
        claims: set[ClaimKey] = set()
        for demand_index in demand_indices:
            demand = demands[demand_index]
            (claims if compiled.is_claim(demand) else pods).add(demand.key)
        return cls(frozenset(pods), frozenset(claims))


def _only(
    cluster: Cluster, compiled: CompiledCluster, remaining: DrawnDemands
) -> Cluster:
    """Return the cluster without all other demands, and without the claims that nobody else uses."""
    demands = tuple(compiled.problem.demands)
    every = DrawnDemands.of(compiled, demands, range(len(demands)))
    omitted = every.pods - remaining.pods
    if not omitted and every == remaining:
        return cluster
    pods = tuple(pod for pod in cluster.pods if pod.key not in omitted)
    unused = set(every.claims - remaining.claims)
    for key in omitted:
        unused.update(cluster.claims_of_pods[key])
    for pod in pods:
        unused.difference_update(cluster.pod_claims(pod))
    claims = tuple(
        claim
        for claim in cluster.claims
        if claim.is_allocated or claim.key not in unused
    )
    return replace(cluster, pods=pods, claims=claims)


def _with_copies(
    cluster: Cluster,
    given: Cluster,
    waiting: DrawnDemands,
    turn: int,
    gang_label: str,
) -> Cluster:
    """Return a cluster with one more of each of these pods and claims of the cluster that was given."""
    groups = {given.pods_by_key[key].pod_group for key in waiting.pods}
    # Members that ask for no device count for their group, too.
    pods = [
        pod
        for pod in given.pods
        if pod.key in waiting.pods
        or (
            pod.pod_group is not None
            and pod.pod_group in groups
            and not pod.spec.node_name
        )
    ]
    used = set(waiting.claims)
    for pod in pods:
        used.update(given.pod_claims(pod))
    claims: dict[ClaimKey, ResourceClaim] = {}
    for claim in given.claims:
        if claim.key in used and not claim.is_allocated:
            metadata = _renamed(claim.metadata, turn)
            claims[claim.key] = changed(claim, metadata=metadata)
    keys = {key: claim.key for key, claim in claims.items()}
    copies = [
        (
            _copied_pod(pod, turn, gang_label),
            [keys.get(key, key) for key in given.pod_claims(pod)],
        )
        for pod in pods
    ]
    more = Changed(cluster).with_pods(copies, claims.values()).cluster
    members = Tally(pod.pod_group for pod in pods if pod.pod_group)
    pod_groups = {
        key: _copied_group(given.pod_groups[key], size, turn)
        for key, size in members.items()
        if key in given.pod_groups
    }
    group_claims: dict[tuple[ClaimKey, ClaimKey], PodGroup] = {}
    for (pod_key, key), group in given.group_claims.items():
        if key in keys and group.key in pod_groups:
            user = _renamed_key(pod_key, turn), keys[key]
            group_claims[user] = pod_groups[group.key]
    return replace(
        more,
        made=more.made | {keys[key] for key in given.made & keys.keys()},
        pod_groups={**more.pod_groups, **_by_key(pod_groups.values())},
        composite_pod_groups={
            **more.composite_pod_groups,
            **_by_key(_copied_parents(given, pod_groups, turn)),
        },
        group_claims={**more.group_claims, **group_claims},
    )


def _copied_pod(pod: Pod, turn: int, gang_label: str) -> Pod:
    """Return a pod that asks for the same under another name, in groups of their own."""
    metadata, spec = _renamed(pod.metadata, turn), pod.spec
    if gang_label in metadata.labels:
        gang = f"{metadata.labels[gang_label]}+{turn}"
        metadata = changed(
            metadata, labels={**metadata.labels, gang_label: gang}
        )
    if pod.pod_group:
        name = _renamed_key(pod.pod_group, turn).name
        group = PodSchedulingGroup(pod_group_name=name)
        spec = changed(spec, scheduling_group=group)
    if spec.workload_ref:
        replica = f"{spec.workload_ref.pod_group_replica_key}+{turn}"
        spec = changed(
            spec,
            workload_ref=changed(
                spec.workload_ref, pod_group_replica_key=replica
            ),
        )
    return changed(pod, metadata=metadata, spec=spec, status=PodStatus())


def _copied_group(group: PodGroup, size: int, turn: int) -> PodGroup:
    """Return a copy of a group with so many pods. None of them runs, so that it needs no more pods than it has."""
    copy = _renamed_group(group, turn)
    policy = group.spec.scheduling_policy
    if policy.gang is None:
        return copy
    least = min(policy.gang.min_count, size)
    policy = changed(policy, gang=changed(policy.gang, min_count=least))
    return changed(copy, spec=changed(copy.spec, scheduling_policy=policy))


def _copied_parents(
    cluster: Cluster, groups: Iterable[ClaimKey], turn: int
) -> Iterator[CompositePodGroup]:
    """Yield copies of all groups of groups above these groups."""
    above = cluster.composite_pod_groups
    keys = {
        ClaimKey(group.key.namespace, name)
        for group in map(cluster.pod_groups.__getitem__, groups)
        if (name := group.spec.parent_composite_pod_group_name)
    }
    done: set[ClaimKey] = set()
    while keys := (keys & above.keys()) - done:
        done |= keys
        yield from (_renamed_group(above[key], turn) for key in sorted(keys))
        keys = {
            ClaimKey(key.namespace, name)
            for key in keys
            if (name := above[key].spec.parent_composite_pod_group_name)
        }


G = TypeVar("G", PodGroup, CompositePodGroup)


def _renamed_group(group: G, turn: int) -> G:
    """Return a copy of a group, which is below a copy of the group that it is in."""
    parent = group.spec.parent_composite_pod_group_name
    spec = changed(
        group.spec,
        parent_composite_pod_group_name=parent and f"{parent}+{turn}",
    )
    return changed(group, metadata=_renamed(group.metadata, turn), spec=spec)


def _by_key(groups: Iterable[G]) -> dict[ClaimKey, G]:
    return {group.key: group for group in groups}


def _renamed(metadata: ObjectMeta, turn: int) -> ObjectMeta:
    """Return what an object says of itself under another name, which no object can have."""
    return changed(metadata, name=f"{metadata.name}+{turn}", uid="")


def _renamed_key(key: ClaimKey, turn: int) -> ClaimKey:
    return ClaimKey(key.namespace, f"{key.name}+{turn}")


# ----------------------------------------------------------------------------
# What a study is about: the same cluster under different demand, or a new cluster for
# every seed.

Source = (
    str
    | Path
    | Sequence[str | Path]
    | Cluster
    | Callable[[int, float], Cluster]
)
"""Paths as for `dralloc.load`, a cluster, or something that makes one for a seed and a demand."""


def _scenario_of(source: Source, limits: Limits = LIMITS) -> Scenario:
    """Return the scenario behind whatever was given."""
    if isinstance(source, Cluster):
        return Given(source, limits)
    if callable(source):
        return Made(source)
    paths = tuple(
        str(path)
        for path in ((source,) if isinstance(source, str | Path) else source)
    )
    # What is read from standard input is gone afterwards.
    return (
        Given(load(*paths, limits=limits), limits)
        if STDIN in paths
        else Files(paths, limits)
    )


@dataclass(frozen=True)
class Files:
    """Files, read by every process that needs them, once."""

    paths: tuple[str, ...]
    limits: Limits

    @property
    def identity(self) -> str:
        """The content of the files."""
        return _digest_of(load_objects(*self.paths, limits=self.limits))

    def at(self, seed: int, demand: float, choices: Choices) -> Cluster:
        """Return the cluster of the files, scaled."""
        cluster = _read(self.paths, self.limits)
        return scaled(cluster, demand, seed, choices, self.limits.pods)


@lru_cache(maxsize=1)
def _read(paths: tuple[str, ...], limits: Limits) -> Cluster:
    return load(*paths, limits=limits)


@dataclass(frozen=True)
class Given:
    """A cluster."""

    cluster: Cluster
    limits: Limits

    @property
    def identity(self) -> str:
        """Everything in it that an answer can depend on."""
        held = self.cluster
        lists = (
            held.slices,
            held.nodes,
            held.claims,
            held.pods,
            held.taint_rules,
            held.quotas,
        )
        tables = (
            held.classes,
            held.namespaces,
            held.pod_groups,
            held.composite_pod_groups,
            held.workloads,
        )
        later = held.templates, held.suspended
        objects = chain[ApiObject](
            *lists, *(table.values() for table in tables), *later
        )
        return _digest_of(
            chain(map(to_wire, objects), map(list, sorted(held.abandoned)))
        )

    def at(self, seed: int, demand: float, choices: Choices) -> Cluster:
        """Return the cluster, scaled."""
        return scaled(self.cluster, demand, seed, choices, self.limits.pods)


@dataclass(frozen=True)
class Made:
    """A generator, which scales what it makes by itself."""

    make: Callable[[int, float], Cluster]

    @property
    def identity(self) -> str:
        """The generator's name, source and bound arguments. What it calls is not looked at."""
        return identity_of(self.make)

    def at(self, seed: int, demand: float, _: Choices) -> Cluster:
        """Return what is made for the seed and the demand."""
        return self.make(seed, demand)


Scenario = Files | Given | Made
"""Gives the cluster for a seed and a demand. Scenarios with equal content have the same identity."""


def identity_of(made_by_user: Any) -> str:
    """Return a hash of the name, source and bound arguments of a function or an object that can be called."""
    return hashlib.sha256(
        repr(tuple(_described(made_by_user))).encode()
    ).hexdigest()


def _described(make: Any) -> Iterator[str]:
    import joblib  # noqa: PLC0415 - an optional dependency

    if isinstance(make, partial):
        yield joblib.hash((make.args, make.keywords))
        yield from _described(make.func)
        return
    function = make if inspect.isroutine(make) else type(make).__call__
    yield f"{function.__module__}.{function.__qualname__}"
    try:
        yield inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        yield joblib.hash(None if code is None else marshal.dumps(code))
    yield joblib.hash(
        [
            cell.cell_contents
            for cell in getattr(function, "__closure__", None) or ()
        ]
    )
    yield joblib.hash(
        vars(make) if function is not make else getattr(make, "__self__", None)
    )


def _digest_of(objects: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for described in objects:
        digest.update(
            orjson.dumps(described, option=orjson.OPT_SORT_KEYS) + b"\n"
        )
    return digest.hexdigest()


# ----------------------------------------------------------------------------
# One point of a study: a problem answered in some modes, as rows of plain data.

MODES: Final = (*POLICIES, Mode.SCHEDULER.value, Mode.OPTIMAL.value)
"""All modes with a name: the policies, kube-scheduler and the optimum."""

Row = dict[str, Any]


def _known_modes(modes: Sequence[str | Policy]) -> Mapping[str, str | Policy]:
    """Return the modes by name, each once.

    Raises
    ------
    ChoiceError
        One of them does not exist.
    DrallocError
        Two policies have the same name.
    """
    named: dict[str, str | Policy] = {}
    for mode in modes:
        name = policy_name(mode)
        if isinstance(mode, str) and name not in MODES:
            raise ChoiceError("mode", name, MODES)
        if named.setdefault(name, mode) is not mode and named[name] != mode:
            raise DrallocError(
                f"modes: several policies are called {name}: give each a name of its own"
            )
    return named


@dataclass(frozen=True)
class Trial:
    """One point of a study, with the modes that are left to do. The seed of the optimum is that of the point."""

    scenario: Scenario
    seed: int
    demand: float
    modes: Mapping[str, str | Policy]
    choices: Choices

    def run(self) -> list[Row]:
        """Answer in every mode; the checker has accepted the answers."""
        choices = replace(
            self.choices, seed=self.seed, jobs=1, backend=Backend.LOKY
        )
        ways = {name: way_of(mode) for name, mode in self.modes.items()}
        cluster = self.scenario.at(self.seed, self.demand, choices)
        answers = CheckedAnswers(cluster, choices, ways.values())
        return [self._row(name, answers, way) for name, way in ways.items()]

    def _row(
        self, name: str, answers: CheckedAnswers, way: Mode | str | Policy
    ) -> Row:
        before = sum(answers.timings.values())
        checked = answers.timings.get("check", 0.0)
        plan = answers.by(way)
        check = answers.timings["check"] - checked
        solve = sum(answers.timings.values()) - before - check
        figures = plan.metrics
        first = plan.tiers[0] if plan.tiers else None
        return {
            "seed": self.seed,
            "demand": self.demand,
            "mode": name,
            "placed": figures.placed,
            "total": len(plan.compiled.problem.demands),
            "weight": figures.weight,
            "status": plan.status.value,
            "bound": first.bound if first else None,
            "gap": max((tier.gap for tier in plan.tiers), default=None),
            "seconds": {
                "compile": answers.timings["compile"],
                "solve": solve,
                "check": check,
            },
            "utilisation": {
                row.title: row.share for row in figures.utilisation if row.total
            },
        }


# ----------------------------------------------------------------------------
# Finished rows on disk, one JSON object per line, each with the key of what it is the
# result of.

_FIELDS: Final[dict[str, type | UnionType]] = {
    "key": str,
    "seed": int,
    "demand": int | float,
    "mode": str,
    "placed": int,
    "total": int,
    "weight": int,
    "status": str,
    "bound": int | None,
    "gap": int | float | None,
    "seconds": dict,
    "utilisation": dict,
}
"""What a whole line holds."""


class Journal:
    """Keeps rows, in a file if there is one. A damaged line, such as one cut off when a study was killed, is left out.

    ``rows`` has the finished rows by key.

    Raises
    ------
    DrallocError
        The file cannot be read or written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self.rows: dict[str, Row] = {}
        try:
            if path is not None and path.exists():
                self.rows = _lines(path)
        except OSError as error:
            raise DrallocError(
                f"{path}: cannot be read: {error.strerror or error}"
            ) from None

    def __enter__(self) -> Self:
        try:
            self._file = (
                self._path.open("ab") if self._path is not None else None
            )
            if self._file is not None and self._file.tell():
                # What was cut off must not swallow the next line.
                self._file.write(b"\n")
        except OSError as error:
            raise DrallocError(
                f"{self._path}: cannot be written: {error.strerror or error}"
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, key: str, row: Row) -> None:
        """Keep a row; it is on the disk when this returns."""
        self.rows[key] = row
        if self._file is not None:
            self._file.write(orjson.dumps({"key": key, **row}) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def _lines(path: Path) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for line in path.read_bytes().splitlines():
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(row, dict) and all(
            isinstance(row.get(name), kind) for name, kind in _FIELDS.items()
        ):
            rows[row.pop("key")] = row
    return rows


# ----------------------------------------------------------------------------
# Studies: scenario x seeds x demand x modes -> a table.

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
    where = _scenario_of(scenario, limits)
    points = _points(seeds, demand)
    named = _known_modes(modes)
    keys = _keys(where, dict.fromkeys(points), named, choices)
    with Journal(None if store is None else Path(store)) as journal:
        _finish(where, keys, named, choices, journal, progress)
        table: DataFrame = pd.json_normalize(
            [journal.rows[key] for key in keys.values()]
        )
    return table.astype({"bound": "Int64"})  # whole numbers, or nothing


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
    points = list(islice(seeds_and_shares, _MOST_POINTS + 1))
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
    trials = [
        Trial(scenario, seed, share, todo, choices)
        for (seed, share), todo in undone.items()
    ]
    done = len(keys) - sum(len(trial.modes) for trial in trials)
    for trial_index, rows in run_all(
        trials, Backend(choices.backend), choices.jobs
    ):
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
    of_search = {
        field.name: matters.pop(field.name)
        for field in fields(Options)
        if field.name in matters
    }
    common = [_FORMAT, scenario.identity, matters]
    written = {
        name: mode if isinstance(mode, str) else identity_of(mode)
        for name, mode in modes.items()
    }
    config = choices.scheduler_config
    own_choices: dict[str, object] = {
        Mode.OPTIMAL: of_search,
        Mode.SCHEDULER: [
            choices.kubernetes,
            Path(config).read_text() if config else "",
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


def _pandas() -> ModuleType:
    try:
        import pandas as pd  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise DrallocError(
            "a study needs pandas: pip install 'dralloc[study]'"
        ) from None
    return pd
