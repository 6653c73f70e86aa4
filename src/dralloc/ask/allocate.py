"""The main job: a cluster in, a checked plan out; or both plans, to compare.

One answer, or several to compare. What is checked of an answer, as far as first fit, the scheduler or the optimum
promises it: `dralloc.ask.answer_checks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Unpack

from dralloc.ask.checked_answers import CheckedAnswers, OnProgress
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import (
    Choices,
    ChoiceWords,
    Mode,
    ModeName,
    PolicyName,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.value_kinds import (
    FUNCTION,
    PATH,
    TEXT,
    WHOLE_NUMBER,
    any_of,
    instance_of,
    takes,
)
from dralloc.show.comparison import TAKEN_NAMES, Comparison, Scheduled
from dralloc.show.plan import Plan
from dralloc.solve.optimum.component import export
from dralloc.solve.policies import Policy, policy_name, way_of

__all__ = ["allocate", "compare", "export_model"]


@takes(
    progress=FUNCTION.or_none(),
    start=instance_of(Plan, "a Plan").or_none(),
)
@spelled_out(ChoiceWords)
def allocate(
    cluster: Cluster,
    mode: Mode | ModeName | PolicyName | Policy = Mode.OPTIMAL,
    *,
    choices: Choices | None = None,
    progress: OnProgress | None = None,
    start: Plan | None = None,
    **words: Unpack[ChoiceWords],
) -> Plan:
    """Place what is pending in the cluster.

    Parameters
    ----------
    cluster
        What was read with `dralloc.load`.
    mode
        ``"first-fit"``, ``"scheduler"`` or ``"optimal"``; or a policy: the name of one that dralloc knows, or one of
        your own (see `dralloc.Policy`).
    choices, words
        What is chosen, as one object, as keywords, or as both: see `dralloc.Choices`.
    progress
        Called while the optimum is searched for.
    start
        An answer to about the same question, from which the search for the optimum goes on: who is still asked about
        keeps the place there to begin with, and what proved its bound is tried first. If at least nine in ten of those
        asked about are the same, the search ends as soon as the gap is no larger than it was, but for the part of them
        who are new; many such answers in a row are held against the first one's gap.

    Returns
    -------
    Plan
        The answer; the independent checker has accepted it.

    Raises
    ------
    DrallocError
        A named node does not exist; the model cannot be built; a policy answers with something that it was not asked
        about; `ChoiceError` if there is no such mode, policy or goal; `CheckError` if the answer breaks a rule.

    Examples
    --------
    >>> import dralloc
    >>> cluster = dralloc.example()
    >>> dralloc.allocate(cluster, mode="first-fit")
    <Plan: first-fit: 1 of 2 placed, nothing proven>
    >>> plan = dralloc.allocate(cluster, goal="fewest-nodes", time_limit=60)
    >>> plan
    <Plan: optimal: 2 of 2 placed, proven optimal>
    >>> dralloc.allocate(cluster, start=plan)
    <Plan: optimal: 2 of 2 placed, proven optimal>
    """
    way = way_of(mode)
    answers = CheckedAnswers(cluster, Choices.of(choices, words), [way], start)
    return answers.by(way, progress)


@takes(
    modes=any_of(TEXT, instance_of(Iterable, "a list of modes and policies")),
    seeds=WHOLE_NUMBER,
    progress=FUNCTION.or_none(),
)
@spelled_out(ChoiceWords)
def compare(
    cluster: Cluster,
    *,
    modes: str | Iterable[str | Policy] = (Mode.FIRST_FIT, Mode.OPTIMAL),
    seeds: int = 5,
    choices: Choices | None = None,
    progress: OnProgress | None = None,
    **words: Unpack[ChoiceWords],
) -> Comparison:
    """Answer in several modes. Other parameters and errors are those of `allocate`.

    Parameters
    ----------
    modes
        Two or more of what `allocate` takes, also policies, in a list or as one text with commas. Answers are held
        against the optimum; without it, against the last policy, or first fit.
    seeds
        Over how many seeds that is asked, from ``seed`` on.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.compare(dralloc.example())
    <Comparison: 2 claims: first fit places 1, the optimum 2 (proven optimal)>
    >>> dralloc.compare(dralloc.example(), modes="best-fit,optimal")
    <Comparison: 2 claims: best-fit places 1, the optimum 2 (proven optimal)>
    """
    ways, choices = _compared(modes), Choices.of(choices, words)
    answers = CheckedAnswers(cluster, choices, ways.values())
    scheduler_seeds: Sequence[int] = ()
    if Mode.SCHEDULER in ways:
        scheduler_seeds = range(choices.seed, choices.seed + seeds)
    by_scheduler = tuple(
        answers.plan(Mode.SCHEDULER, answers.scheduled(seed))
        for seed in scheduler_seeds
    )
    scheduled = (
        Scheduled(by_scheduler, tuple(scheduler_seeds))
        if by_scheduler
        else None
    )
    plans = [scheduled.median] if scheduled else []
    if Mode.OPTIMAL in ways:
        # It starts from first fit, so that its seconds are not counted twice.
        optimum = answers.optimum(progress)
    if Mode.FIRST_FIT in ways:
        plans.append(answers.by_first_fit())
    for name, way in ways.items():
        if not isinstance(way, Mode):
            plans.append(answers.plan(name, answers.by_policy(way)))
    if Mode.OPTIMAL in ways:
        of_devices = answers.compiled.of_devices(optimum)
        plans.append(answers.plan(Mode.OPTIMAL, of_devices))
    return Comparison(tuple(plans), answers.timings, scheduled)


def _compared(
    modes: str | Iterable[str | Policy],
) -> dict[Mode | str, Mode | str | Policy]:
    """Return the modes and policies to compare, by name.

    Raises
    ------
    ChoiceError
        A word stands for nothing.
    DrallocError
        There are less than two, or two policies of one name, or one that is called as an answer of dralloc is.
    """
    words = modes.split(",") if isinstance(modes, str) else list(modes)
    ways: dict[Mode | str, Mode | str | Policy] = {}
    for word in words:
        texts = word.split(",") if isinstance(word, str) else [word]
        for text in texts:
            way = way_of(text.strip() if isinstance(text, str) else text)
            name = way if isinstance(way, Mode) else policy_name(way)
            if not isinstance(way, str) and name in TAKEN_NAMES:
                raise DrallocError(
                    f"modes to compare: a policy is called {name}, as an answer of dralloc is: give it another name"
                )
            if ways.setdefault(name, way) is not way and not isinstance(
                way, str
            ):
                raise DrallocError(
                    f"modes to compare: two policies are called {name}"
                )
    if len(ways) < 2:
        raise DrallocError(
            f"modes to compare: {', '.join(map(str, ways))} is only one: name two or more"
        )
    return ways


@takes(path=PATH)
@spelled_out(ChoiceWords)
def export_model(
    cluster: Cluster,
    path: str | PathLike[str],
    *,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> None:
    """Write the exact model of what is pending, with its objective, to a file for other solvers.

    The objective is the first tier: the weight that is not placed, to be minimised.

    Parameters
    ----------
    path
        ``*.mps`` for MPS; else CP-SAT's exchange format, as text if the name ends in ``.txt``.
    choices, words
        As in `allocate`.

    Raises
    ------
    DrallocError
        As in `allocate`; amounts do not fit into the model, MPS has no words for one of its constraints, or the file
        cannot be written.

    Examples
    --------
    >>> import dralloc, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.mps")
    ...     dralloc.export_model(dralloc.example(), path)
    ...     "ROWS" in path.read_text()
    True
    """
    options = Choices.of(choices, words)
    compiled = compile_cluster(cluster, options)
    export(compiled.whole, Path(path), strict_cel=options.strict_cel)
