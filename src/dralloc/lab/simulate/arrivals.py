"""Who arrives when: read from a trace or drawn by chance, and the cluster with all of them, compiled once."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from io import StringIO
from math import cos, isfinite, log, pi
from os import PathLike
from pathlib import Path
from random import Random
from typing import Final

from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.api import (
    ObjectMeta,
    Pod,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimSpec,
)
from dralloc.objects.api.base import changed
from dralloc.objects.api.workloads import (
    GangPolicy,
    PodGroupSpec,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    SchedulingPolicy,
)
from dralloc.objects.choices import Choices, Durations, chosen
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.indices import DemandIndex, grouped, numbered
from dralloc.problem.supply import record

__all__ = [
    "MILLISECONDS",
    "Arrival",
    "Incoming",
    "PoissonArrivals",
    "incoming",
    "read_trace",
    "trace_text",
]

# ----------------------------------------------------------------------------
# Traces: who arrives when and runs how long, read from and written to CSV.
#
# Times are whole milliseconds inside and seconds in files. A file has a header and
# one arrival per line:
#
# - ``time``: seconds since the beginning of the trace;
# - ``duration``: for how many seconds it runs once it is placed; empty if it never leaves;
# - ``template``: what arrives, ``NAME`` or ``NAMESPACE/NAME`` of something in the cluster: a pod, an owner of pods such
#   as a Job, or a ResourceClaimTemplate or ResourceClaim, which is all that its pod asks for then;
# - ``priority``: in place of that of the template;
# - ``namespace``: where it arrives, if not where its template is;
# - ``group``: arrivals of one namespace and group are placed together or not at all.
#
# The last three may be missing or empty. Other columns are not looked at.

MILLISECONDS: Final = 1000
"""In a second."""

_COLUMNS: Final = (
    "time",
    "duration",
    "template",
    "priority",
    "namespace",
    "group",
)
_NEEDED: Final = _COLUMNS[:3]
_LONGEST: Final = 10**12
"""Seconds that no time of a trace exceeds: thirty thousand years."""


@record
class Arrival:
    """Somebody who arrives.

    Parameters
    ----------
    time
        Milliseconds since the beginning of the trace.
    template
        What in the cluster it is a copy of.
    duration
        Milliseconds for which it runs; None if it never leaves.
    priority
        In place of that of its template; None for just that.
    namespace
        Where it arrives; empty for the namespace of its template.
    group
        Arrivals of a namespace with the same group are placed together or not at all; empty for one by itself.

    Examples
    --------
    >>> import dralloc
    >>> from dralloc.objects.names import ClaimKey
    >>> large = dralloc.Arrival(0, ClaimKey("default", "large"), duration=60_000)
    >>> dralloc.simulate(dralloc.example(), [large, large])
    <Simulated: first-fit: 2 of 2 arrivals got a place>
    """

    time: int
    template: ClaimKey
    duration: int | None = None
    priority: int | None = None
    namespace: str = ""
    group: str = ""


def read_trace(path: str | PathLike[str]) -> tuple[Arrival, ...]:
    """Read a trace; its arrivals in the order of their times, those of one time as they stand in the file.

    Raises
    ------
    DrallocError
        The file cannot be read, a column is missing, or a line holds something else than it should.
    """
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            error.strerror
            if isinstance(error, OSError)
            else "is no text in UTF-8"
        )
        raise DrallocError(f"{where}: cannot be read: {reason}") from None
    rows = csv.DictReader(StringIO(text))
    missing = [
        column for column in _NEEDED if column not in (rows.fieldnames or ())
    ]
    if missing:
        raise DrallocError(
            f"{where}: a trace has the columns {', '.join(_NEEDED)}; missing: {', '.join(missing)}"
        )
    arrivals = [_arrival(f"{where}:{rows.line_num}", row) for row in rows]
    return tuple(sorted(arrivals, key=lambda arrival: arrival.time))


def _arrival(where: str, row: Mapping[str, str | None]) -> Arrival:
    fields = {column: (row.get(column) or "").strip() for column in _COLUMNS}
    if not fields["template"]:
        raise DrallocError(f"{where}: template: is empty")
    if not fields["time"]:
        raise DrallocError(f"{where}: time: is empty")
    return Arrival(
        time=_milliseconds(where, "time", fields["time"]),
        template=ClaimKey.parse(fields["template"]),
        duration=_milliseconds(where, "duration", fields["duration"])
        if fields["duration"]
        else None,
        priority=_priority(where, fields["priority"])
        if fields["priority"]
        else None,
        namespace=fields["namespace"],
        group=fields["group"],
    )


def _milliseconds(where: str, column: str, text: str) -> int:
    """Return a number of seconds, rounded to milliseconds, half of one to the even one."""
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        raise DrallocError(
            f"{where}: {column}: {text!r} is no number of seconds"
        ) from None
    if not (seconds.is_finite() and 0 <= seconds <= _LONGEST):
        raise DrallocError(
            f"{where}: {column}: {text} is not between 0 and {_LONGEST} seconds"
        )
    return round(seconds * MILLISECONDS)


def _priority(where: str, text: str) -> int:
    try:
        priority = int(text)
    except ValueError:
        raise DrallocError(
            f"{where}: priority: {text!r} is no integer"
        ) from None
    if not -(2**31) <= priority < 2**31:
        raise DrallocError(
            f"{where}: priority: {text} is no integer of 32 bits"
        )
    return priority


def _in_seconds(milliseconds: int | None) -> str:
    """Milliseconds as the fewest digits of seconds; empty for None."""
    if milliseconds is None:
        return ""
    seconds, part = divmod(milliseconds, MILLISECONDS)
    return f"{seconds}.{part:03}".rstrip("0") if part else str(seconds)


def trace_text(arrivals: Iterable[Arrival]) -> str:
    """Return the arrivals as a file that `read_trace` reads."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_rows(arrivals))
    return text.getvalue()


def _rows(arrivals: Iterable[Arrival]) -> Iterator[Sequence[str]]:
    for arrival in arrivals:
        priority = "" if arrival.priority is None else str(arrival.priority)
        yield (
            _in_seconds(arrival.time),
            _in_seconds(arrival.duration),
            str(arrival.template),
            priority,
            arrival.namespace,
            arrival.group,
        )


# ----------------------------------------------------------------------------
# Arrivals by chance: a Poisson process, by day and night, with durations of any of
# some distributions.
#
# What is drawn depends on the seed and on nothing else. Sources: Lewis and Shedler,
# "Simulation of nonhomogeneous Poisson processes by thinning" (1979), for rates that
# change with the hour; Pareto and log-normal durations are what traces of GPU
# clusters show (Weng et al., "MLaaS in the Wild", NSDI'22, section 3).

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_MOST_ARRIVALS: Final = 10_000_000


@dataclass(frozen=True)
class PoissonArrivals:
    """Arrivals at random times.

    Parameters
    ----------
    mix
        What arrives, as in a trace, and how often beside the others.
    per_hour
        How many arrive in an hour on average.
    hours
        For how long they arrive.
    mean_hours
        How long they run on average.
    durations
        The distribution of how long they run.
    shape
        The standard deviation of the logarithm for ``lognormal``, and the exponent, above 1, for ``pareto``.
    swing
        By how much the rate rises above its mean at noon and falls below it at midnight, as a part of the mean.
    priorities
        Priorities, and how often each is drawn beside the others; none for those of the templates.

    Raises
    ------
    DrallocError
        A number is out of its range; `ChoiceError` if there is no such distribution.

    Examples
    --------
    >>> import dralloc
    >>> mix = {"small": 3, "large": 1}
    >>> day = dralloc.PoissonArrivals(mix, per_hour=20, hours=24, mean_hours=0.5)
    >>> len(day.draw(seed=1))
    487
    """

    mix: Mapping[str, float]
    per_hour: float
    hours: float
    mean_hours: float = 1.0
    durations: Durations | str = Durations.EXPONENTIAL
    shape: float = 1.5
    swing: float = 0.0
    priorities: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        durations = chosen(Durations, "distribution", self.durations)
        object.__setattr__(self, "durations", durations)
        for name in ("per_hour", "hours", "mean_hours", "shape"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise DrallocError(
                    f"arrivals: {name}: {value} is not a positive number"
                )
        if not 0 <= self.swing <= 1:
            raise DrallocError(
                f"arrivals: swing: {self.swing} is not between 0 and 1"
            )
        if durations is Durations.PARETO and self.shape <= 1:
            raise DrallocError(
                f"arrivals: shape: with an exponent of {self.shape} the Pareto distribution has no mean"
            )
        if self.per_hour * self.hours > _MOST_ARRIVALS:
            raise DrallocError(
                f"arrivals: more than {_MOST_ARRIVALS} are expected"
            )
        for name, shares in (
            ("mix", self.mix),
            ("priorities", self.priorities),
        ):
            weights = list(shares.values())
            if any(
                not (isfinite(weight) and weight >= 0) for weight in weights
            ) or (weights and not sum(weights) > 0):
                raise DrallocError(
                    f"arrivals: {name}: the shares are not from 0, with a sum above 0"
                )
        if not self.mix:
            raise DrallocError("arrivals: mix: names no template")

    def draw(self, seed: int) -> tuple[Arrival, ...]:
        """Return the arrivals of a seed, in order."""
        random = Random(f"arrivals {seed}")
        templates = [ClaimKey.parse(name) for name in self.mix]
        shares = list(self.mix.values())
        priorities: list[int | None] = [*self.priorities] or [None]
        of_priorities = list(self.priorities.values()) or [1.0]
        return tuple(
            Arrival(
                time=time,
                template=random.choices(templates, shares)[0],
                duration=self._duration(random),
                priority=random.choices(priorities, of_priorities)[0],
            )
            for time in self._times(random)
        )

    def _times(self, random: Random) -> Iterator[int]:
        """Draw times at the highest rate, and keep each as likely as the rate is beside the highest one then."""
        end = self.hours * _HOUR
        highest = self.per_hour * (1 + self.swing) / _HOUR
        seconds = random.expovariate(highest)
        while seconds < end:
            if random.random() * (1 + self.swing) < 1 - self.swing * cos(
                2 * pi * seconds / _DAY
            ):
                yield round(seconds * MILLISECONDS)
            seconds += random.expovariate(highest)

    def _duration(self, random: Random) -> int:
        mean = self.mean_hours * _HOUR * MILLISECONDS
        match self.durations:
            case Durations.FIXED:
                length = mean
            case Durations.EXPONENTIAL:
                length = random.expovariate(1 / mean)
            case Durations.LOGNORMAL:
                length = random.lognormvariate(
                    log(mean) - self.shape**2 / 2, self.shape
                )
            case _:
                length = (
                    mean
                    * (self.shape - 1)
                    / self.shape
                    * random.paretovariate(self.shape)
                )
        return max(1, round(length))


# ----------------------------------------------------------------------------
# The cluster with everybody who will arrive, as pods that wait: what is compiled once
# for a whole simulation.
#
# An arrival is a copy of its template. It has claims of its own, also where the
# template names a claim: nobody shares anything with those who come before or after
# it.


@dataclass(frozen=True, eq=False)
class Incoming:
    """A compiled cluster in which nothing is pending but the arrivals of a trace.

    Parameters
    ----------
    arrivals
        In order of their times.
    pods
        The pod of each arrival.
    demands
        The number of the demand of each arrival; None if it asks for no device.
    jobs
        Arrivals that are placed together or not at all, by their numbers: the most important ones first, then as they
        come. In the order of the first of each.
    """

    compiled: CompiledCluster
    arrivals: tuple[Arrival, ...]
    pods: tuple[ClaimKey, ...]
    demands: tuple[DemandIndex | None, ...]
    jobs: tuple[tuple[int, ...], ...]

    @cached_property
    def problem(self) -> Problem:
        """With all that binds pods to nodes and to each other."""
        return self.compiled.whole

    @cached_property
    def arrival_of(self) -> Mapping[DemandIndex, int]:
        """The arrival of each demand."""
        return {
            demand: arrival
            for arrival, demand in enumerate(self.demands)
            if demand is not None
        }

    def demand(self, arrival: int) -> Demand | None:
        """Return what an arrival asks for of devices; None if that is nothing."""
        demand_index = self.demands[arrival]
        return (
            None if demand_index is None else self.problem.demands[demand_index]
        )

    def asked_devices(self, arrival: int) -> int:
        """Return how many devices an arrival asks for at least."""
        demand_index = self.demands[arrival]
        return (
            0
            if demand_index is None
            else self.compiled.problem.demands[demand_index].asked_devices
        )

    def may_preempt(self, arrival: int) -> bool:
        """Whether an arrival's pod may take the place of less important ones."""
        spec = self.compiled.cluster.pods_by_key[self.pods[arrival]].spec
        return spec.preemption_policy != "Never"

    def priority(self, arrival: int) -> int:
        """Return the priority of an arrival's pod."""
        return (
            self.compiled.cluster.pods_by_key[self.pods[arrival]].spec.priority
            or 0
        )


def incoming(
    cluster: Cluster, arrivals: Sequence[Arrival], choices: Choices
) -> Incoming:
    """Compile a cluster with the pods of a trace; what is pending otherwise is left out, and so are quotas.

    Raises
    ------
    DrallocError
        A template is not there, or cannot be copied; and what compiling a cluster raises.
    """
    writer = _PodWriter(cluster)
    in_order = tuple(sorted(arrivals, key=lambda arrival: arrival.time))
    copies = [
        writer.copied(arrival_index, arrival)
        for arrival_index, arrival in enumerate(in_order)
    ]
    jobs = tuple(_jobs(in_order, [writer.pods[key][0] for key in copies]))
    scenario = (
        Scenario(cluster)
        .without_pending()
        .with_pods(writer.pods.values(), writer.claims.values())
    )
    groups = {group.key: group for group in writer.groups(in_order, copies)}
    compiled = compile_cluster(
        replace(scenario.cluster, pod_groups=groups), choices
    )
    demand_indices = {
        demand.key: demand_index
        for demand_index, demand in numbered(compiled.problem.demands)
    }
    demands = tuple(demand_indices.get(key) for key in copies)
    return Incoming(compiled, in_order, tuple(copies), demands, jobs)


def _jobs(
    arrivals: Sequence[Arrival], pods: Sequence[Pod]
) -> Iterator[tuple[int, ...]]:
    """Yield those who are placed together."""
    together = grouped(
        (
            (pods[arrival_index].key.namespace, arrival.group)
            if arrival.group
            else arrival_index,
            arrival_index,
        )
        for arrival_index, arrival in enumerate(arrivals)
    )

    def importance(arrival_index: int) -> tuple[int, int]:
        return -(pods[arrival_index].spec.priority or 0), arrival_index

    jobs = (
        tuple(sorted(members, key=importance)) for members in together.values()
    )
    yield from sorted(jobs, key=lambda members: members[0])


class _PodWriter:
    """Writes the pods and claims of arrivals."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._specs = {
            template.key: template.spec.spec for template in cluster.templates
        }
        self._taken = {pod.key for pod in cluster.pods}
        self._patterns: dict[
            ClaimKey, tuple[Pod, Sequence[ResourceClaimSpec]]
        ] = {}
        self.pods: dict[ClaimKey, tuple[Pod, Sequence[ClaimKey]]] = {}
        self.claims: dict[ClaimKey, ResourceClaim] = {}

    def copied(self, arrival_index: int, arrival: Arrival) -> ClaimKey:
        """Write the pod of an arrival; returns its key."""
        if arrival.template not in self._patterns:
            self._patterns[arrival.template] = self._pattern(arrival.template)
        pattern, specs = self._patterns[arrival.template]
        namespace = arrival.namespace or arrival.template.namespace
        key = self._free_key(
            namespace, f"{arrival.template.name}-{arrival_index:07}"
        )
        spec = pattern.spec
        if arrival.priority is not None:
            spec = changed(spec, priority=arrival.priority)
        if arrival.group:
            spec = changed(
                spec,
                scheduling_group=PodSchedulingGroup(
                    pod_group_name=arrival.group
                ),
            )
        metadata = changed(pattern.metadata, name=key.name, namespace=namespace)
        claims = [
            self._claim(key, claim_index, template_spec)
            for claim_index, template_spec in enumerate(specs)
        ]
        self.pods[key] = changed(pattern, metadata=metadata, spec=spec), claims
        return key

    def groups(
        self, arrivals: Sequence[Arrival], pods: Sequence[ClaimKey]
    ) -> Iterator[PodGroup]:
        """Yield the groups of arrivals, of which all members are needed."""
        members = grouped(
            (ClaimKey(pod.namespace, arrival.group), pod)
            for arrival, pod in zip(arrivals, pods, strict=True)
            if arrival.group
        )
        for key, member_pods in members.items():
            policy = SchedulingPolicy(
                gang=GangPolicy(min_count=len(member_pods))
            )
            metadata = ObjectMeta(name=key.name, namespace=key.namespace)
            yield PodGroup(
                metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy)
            )

    def _free_key(self, namespace: str, name: str) -> ClaimKey:
        key = ClaimKey(namespace, name)
        while key in self._taken:
            key = ClaimKey(namespace, f"{key.name}-x")
        self._taken.add(key)
        return key

    def _claim(
        self, pod: ClaimKey, claim_index: int, spec: ResourceClaimSpec
    ) -> ClaimKey:
        key = ClaimKey(pod.namespace, f"{pod.name}-{claim_index}")
        self.claims[key] = ResourceClaim(
            metadata=ObjectMeta(name=key.name, namespace=key.namespace),
            spec=spec,
        )
        return key

    def _pattern(
        self, template: ClaimKey
    ) -> tuple[Pod, Sequence[ResourceClaimSpec]]:
        """Return a pod that waits, and what its claims ask for."""
        pod = self._cluster.pods_by_key.get(template) or self._owned.get(
            template
        )
        if pod is None:
            return self._pod_for(template)
        if pod.key in self._cluster.unresolved:
            raise DrallocError(
                f"Pod {pod.key}: {self._cluster.unresolved[pod.key][0]}"
            )
        claims = filter(
            None, map(self._cluster.claim, self._cluster.pod_claims(pod))
        )
        metadata = ObjectMeta(
            namespace=template.namespace, labels=pod.metadata.labels
        )
        alone = changed(
            pod.spec,
            node_name=None,
            scheduling_gates=(),
            scheduling_group=None,
            workload_ref=None,
        )
        return changed(
            pod, metadata=metadata, spec=alone, status=PodStatus()
        ), [claim.spec for claim in claims]

    @cached_property
    def _owned(self) -> Mapping[ClaimKey, Pod]:
        """A pod of each owner, such as a Job, by the owner's name."""
        owned = (
            (ClaimKey(pod.key.namespace, owner.name), pod)
            for pod in self._cluster.pods
            for owner in pod.metadata.owner_references
        )
        return {key: pods[0] for key, pods in grouped(owned).items()}

    def _pod_for(
        self, template: ClaimKey
    ) -> tuple[Pod, Sequence[ResourceClaimSpec]]:
        """Return a pod that has one claim and asks for nothing else."""
        claim = self._cluster.claim(template)
        spec = self._specs.get(template) or (claim.spec if claim else None)
        if spec is None:
            kinds = (
                "no pod, owner of pods, ResourceClaimTemplate or ResourceClaim"
            )
            raise DrallocError(
                f"arrivals: template {template}: {kinds} has this name"
            )
        entry = PodResourceClaim(
            name="devices", resource_claim_template_name=template.name
        )
        metadata = ObjectMeta(namespace=template.namespace)
        return Pod(metadata=metadata, spec=PodSpec(resource_claims=(entry,))), [
            spec
        ]
