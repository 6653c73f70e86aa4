"""Whom kube-scheduler would evict for some pods: its preemption, one pod after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.choices import Choices
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table
from dralloc.problem import Demand, are_admitted
from dralloc.solve.scheduler import Profile, read_profiles
from dralloc.solve.scheduler.groups import find_groups
from dralloc.solve.scheduler.release import Release
from dralloc.solve.scheduler.scheduler import Scheduler

__all__ = ["UpstreamPreemption", "UpstreamVictim", "upstream_preemption"]


_TOO_FEW: Final = (
    "there are fewer pods, or groups of them, than have to be placed together"
)


@dataclass(frozen=True, slots=True)
class UpstreamVictim:
    """A pod that upstream evicts, from where, and for whom."""

    pod: ClaimKey
    node: str
    priority: int
    preemptor: ClaimKey


@dataclass(frozen=True, slots=True)
class UpstreamPreemption:
    """What upstream's preemption comes to.

    Parameters
    ----------
    admits
        Whether the first of the pods has a node in the end, and as many others as its gang, or tree of gangs, needs.
    message
        The scheduler's words about the first pod that has none, or why it is not asked.
    """

    admits: bool
    victims: tuple[UpstreamVictim, ...] = ()
    message: str = ""

    def parts(self, number: int | None) -> Iterator[Part]:
        """The same as a table and a line, beside how many pods are to be evicted; None if nobody helps."""
        rows = [
            (str(one.pod), one.node, str(one.priority), str(one.preemptor))
            for one in self.victims
        ]
        yield Table(
            "Evicted by kube-scheduler's preemption",
            ("pod", "node", ">priority", "for"),
            rows,
        )
        if not self.admits:
            yield Line(f"\nkube-scheduler's preemption does not help: {self.message}")
        elif self.victims and number is not None:
            yield Line(
                f"\nkube-scheduler's preemption evicts {len(self.victims)} where {number} would do."
            )


def upstream_preemption(
    compiled: CompiledCluster, wanted: Sequence[Demand], choices: Choices
) -> UpstreamPreemption:
    """What upstream's preemption does for some pods, in the order of their turn.

    Each pod by itself, as in Kubernetes 1.36 by default, also the pods of a gang. Upstream's dry run lets victims hold
    on to their devices, so it never evicts anybody for devices.
    """
    config = choices.scheduler_config
    profiles = (Profile(),) if config is None else read_profiles(Path(config))
    scheduler = Scheduler(compiled, profiles, release=Release.of(choices.kubernetes))
    if compiled.is_claim(wanted[0]):
        return UpstreamPreemption(
            False,
            message="no pod uses the claim: kube-scheduler allocates claims for pods",
        )
    victims: list[UpstreamVictim] = []
    refusals: list[str] = []
    placed: set[ClaimKey] = set()
    groups = find_groups(compiled.cluster, compiled.problem.features)
    for key in (demand.key for demand in wanted):
        group = groups.get(key)
        if group is not None and group.held_back:
            refusals.append(f"{key}: {group.held_back}")
            continue
        if scheduler.pods[key].kind.spec.scheduler_name not in scheduler.profiles:
            refusals.append(f"{key}: no profile is for its scheduler")
            continue
        attempt = scheduler.attempt(key)
        chosen = None if attempt.feasible else scheduler.preempt(attempt)
        if chosen is not None:
            node, evicted = chosen
            victims += (
                UpstreamVictim(pod.key, node.name, pod.kind.priority, key)
                for pod in evicted
            )
            attempt = scheduler.attempt(key, [node.name])
        if attempt.feasible:
            scheduler.bind(key, attempt.chosen)
            placed.add(key)
        else:
            refusals.append(f"{key}: {attempt.message}")
    admits = wanted[0].key in placed and are_admitted(wanted, placed)
    return UpstreamPreemption(
        admits, tuple(victims), "" if admits else (*refusals, _TOO_FEW)[0]
    )
