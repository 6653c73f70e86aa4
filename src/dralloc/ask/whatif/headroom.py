"""How many more of some claims fit beside what is allocated: each alone, and together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Unpack

from dralloc.ask.checking import check_newcomers
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.copy_count import CopyCount, count_copies
from dralloc.ask.whatif.document import HeadroomDocument
from dralloc.ask.whatif.mix_entries import CompiledMix, MixEntry, compile_mix
from dralloc.ask.whatif.pareto import ParetoFront, pareto_front
from dralloc.ask.whatif.representatives import NotRepresentativeError
from dralloc.check.objects import Binding
from dralloc.objects.api.objects import changed
from dralloc.objects.choices import Choices, ChoiceWords, Mode, Options
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.garbage import without_garbage_collection
from dralloc.objects.report import Line, Part, Table
from dralloc.problem import Demand
from dralloc.show.provisional import Provisional
from dralloc.solve.timing import phase

__all__ = ["POINTS", "Headroom", "headroom"]

POINTS: Final = 25
"""So many points of a front are enough to see its shape."""

MOST_ENTRIES: Final = 3
"""A front in more dimensions has too many points for anybody to look at."""


@dataclass(frozen=True, repr=False)
class Headroom(Provisional):
    """How many more fit. ``print(headroom)`` is a readable report.

    Parameters
    ----------
    entries
        What was asked for.
    alone
        For each entry, how many fit if nothing else comes.
    joint
        How many of each fit together; None if there is one entry only, or one that nothing limits.
    left_out
        How many pending claims do not count.
    """

    document = HeadroomDocument

    entries: tuple[MixEntry, ...]
    alone: tuple[CopyCount, ...]
    joint: ParetoFront | None = None
    left_out: int = 0

    @property
    def conclusion(self) -> str:
        """How many more of each fit alone."""
        fitting = zip(self.entries, self.alone, strict=True)
        return "how many more fit: " + ", ".join(
            f"{_exactly(found)} of {entry.title}" for entry, found in fitting
        )

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        columns = ("claim", ">exactly", ">first fit", ">device by device")
        rows = [
            (
                entry.title,
                _exactly(found),
                _count(found.first_fit),
                _count(found.per_device),
            )
            for entry, found in zip(self.entries, self.alone, strict=True)
        ]
        found: list[Part] = [Table("How many more fit, each alone", columns, rows)]
        found += self._together()
        found += self._remarks()
        return found

    def _together(self) -> Iterator[Part]:
        if len(self.entries) < 2:
            return
        if self.joint is None:
            yield Line(
                "\nWhat fits together is not shown: nothing limits one of the claims."
            )
            return
        columns = (
            *(f">{entry.title}" for entry in self.entries),
            ">first fit, of these",
        )
        rows = [
            (*map(str, each.numbers), " + ".join(map(str, each.first_fit)))
            for each in self.joint.points
        ]
        yield Table("What fits together: more of one is less of another", columns, rows)
        if not self.joint.complete:
            yield Line(
                f"These {len(rows)} points are not all: there can be others in between (--points)."
            )
        if not self.joint.proven:
            yield Line(
                "The time limit has ended a search: the points may not be the best.",
                "yellow",
            )

    def _remarks(self) -> Iterator[Line]:
        if self.left_out:
            yield Line(f"\n{self.left_out} pending claims do not count.")
        for entry, found in zip(self.entries, self.alone, strict=True):
            if found.reason:
                yield Line(
                    f"{entry.title}: first fit ends with an error: {found.reason}",
                    "yellow",
                )
        for warning in dict.fromkeys(
            one for found in self.alone for one in found.warnings
        ):
            yield Line(f"warning: {warning}", "yellow")


@without_garbage_collection()
def headroom(
    cluster: Cluster,
    *entries: MixEntry | str,
    points: int | None = POINTS,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> Headroom:
    """Find out how many more of a claim or pod fit beside everything that is allocated and runs.

    Of several claims, also how many fit together: all vectors of numbers of which none can be raised without lowering
    another (the Pareto front).

    Parameters
    ----------
    entries
        Claims, templates or pods: ``namespace/name``, or a `MixEntry`.
    points
        The most points of a front; if there are more, these lie well apart. None for all.
    choices, words
        As in `dralloc.allocate`, without gangs, caps and fairness.

    Raises
    ------
    DrallocError
        There is no such claim, template, pod or node, or more than three of them are to be had together.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.headroom(dralloc.example(), "default/any", "default/large")
    <Headroom: how many more fit: 2 of default/any, 1 of default/large>
    """
    asked = tuple(map(MixEntry.of, entries))
    if len(asked) > MOST_ENTRIES:
        raise DrallocError(
            f"headroom for {len(asked)} claims: fronts are found for {MOST_ENTRIES} at most"
        )
    options = Choices.of(choices, words, unused=("gang", "caps", "fair", "keep"))
    cluster = cluster_of(cluster).including(options.include)
    timings: dict[str, float] = {}

    left_out = sum(not claim.is_allocated for claim in cluster.claims)

    def find(*, once: bool) -> Headroom:
        with phase(timings, "compile"):
            mix = compile_mix(cluster, asked, options, once=once)
        with phase(timings, "headroom"):
            problem, times = mix.problem, Counter(mix.order)
            alone = tuple(
                count_copies(problem, demand, options, times) for demand in mix.demands
            )
        with phase(timings, "check"):
            for demand, counted in zip(mix.demands, alone, strict=True):
                _check(mix, demand, counted)
        with phase(timings, "together"):
            joint = _joint(mix, alone, points, options)
        unmodelled = mix.compiled.unmodelled({Mode.OPTIMAL})
        return Headroom(
            asked, alone, joint, left_out, unmodelled=unmodelled, timings=timings
        )

    try:
        return find(once=True)
    except NotRepresentativeError:
        return find(once=False)


def _check(mix: CompiledMix, demand: Demand, counted: CopyCount) -> None:
    """Make sure that so many copies of a pod keep the rules of the objects, too; claims alone know no rules of pods.

    Raises
    ------
    CheckError
        They do not.
    """
    compiled = mix.compiled
    if compiled.is_claim(demand):
        return
    cluster = compiled.cluster
    pod = cluster.pods_by_key[demand.key]
    claims = cluster.pod_claims(pod)
    copies = [
        changed(pod, metadata=changed(pod.metadata, name=f"{pod.name} {number}"))
        for number in range(len(counted.homes))
    ]
    entries = {each.key for each in mix.demands}
    scenario = Scenario(cluster).without_pods(entries)
    beside = scenario.with_pods([(copy, claims) for copy in copies], ()).cluster
    bindings = [
        Binding(copy.key, home)
        for copy, home in zip(copies, counted.homes, strict=True)
    ]
    check_newcomers(compiled, compiled.choices, beside, bindings)


def _joint(
    mix: CompiledMix,
    alone: Sequence[CopyCount],
    points: int | None,
    options: Options | None,
) -> ParetoFront | None:
    most = tuple(found.bound for found in alone if found.bound is not None)
    if len(mix.demands) < 2 or len(most) < len(alone):
        return None
    return pareto_front(
        mix.problem, mix.demands, most, order=mix.order, limit=points, options=options
    )


def _count(number: int | None) -> str:
    return "no end" if number is None else str(number)


def _exactly(found: CopyCount) -> str:
    if found.exact:
        return _count(found.number)
    return f"{found.number} or more, at most {_count(found.bound)}"
