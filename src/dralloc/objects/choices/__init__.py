"""The choices of users, as one object; it imports nothing heavy, as the command line shows it before anything else.

- `dralloc.objects.choices.words`: what users choose from, by name;
- `dralloc.objects.choices.options`: how the optimum is searched for (`Options`).

Here are all choices of a question (`Choices`): what is looked at, and how the optimum is searched for.

A new choice is a field of `Options` or `Choices`, its type once more in `NodelessWords` (a test holds both the same),
and an option of the command line in `dralloc.cli.option_sets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter, signature
from os import PathLike
from typing import Final, TypedDict, TypeVar

from dralloc.objects.choices.options import Options, Thresholds
from dralloc.objects.choices.words import (
    MAX_SEED,
    MAX_WORKERS,
    AllocatorName,
    AnswerName,
    Backend,
    Durations,
    FenceKind,
    Goal,
    GoalName,
    Ignored,
    Include,
    Keep,
    KeepName,
    Mode,
    ModeName,
    ObjectiveWord,
    PolicyName,
    Priorities,
    PrioritiesName,
    chosen,
    several,
)
from dralloc.objects.errors import DrallocError, did_you_mean
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.user_rules import Across, Cap, parsed_across, parsed_caps
from dralloc.objects.value_kinds import (
    PATH,
    TEXT,
    TEXTS,
    ValueKind,
    any_of,
    instance_of,
    list_of,
    require_fields,
)

__all__ = [
    "MAX_SEED",
    "MAX_WORKERS",
    "AllocatorName",
    "AnswerName",
    "Backend",
    "ChoiceWords",
    "Choices",
    "Durations",
    "FenceKind",
    "Goal",
    "GoalName",
    "Ignored",
    "Include",
    "Keep",
    "Mode",
    "ModeName",
    "NodelessWords",
    "ObjectiveWord",
    "Options",
    "PolicyName",
    "Priorities",
    "Thresholds",
    "chosen",
    "several",
    "spelled_out",
]


_KINDS: Final[Mapping[str, ValueKind]] = {
    "Features": instance_of(Features, "Features"),
    "Sequence[str]": TEXTS,
    "str | Iterable[str]": any_of(TEXT, TEXTS),
    "Sequence[Across | str]": list_of(
        (Across, str), "a list of constraints, each an Across or a text"
    ),
    "Sequence[Cap | str]": list_of(
        (Cap, str), "a list of caps, each a Cap or a text"
    ),
    "str | None": TEXT.or_none(),
    "str | PathLike[str] | None": PATH.or_none(),
}
"""By annotation, what a choice must be beside those of `Options`."""


@dataclass(frozen=True, slots=True)
class Choices(Options):
    """The choices of a question; `Options` has those about the search for the optimum.

    Every question takes them as one object, as keywords, or as both: then the keywords count.

    Parameters
    ----------
    nodes
        Names of the only nodes to use, in search order; all if there are none.
    features
        Which feature gates are on.
    strict
        Whether nothing in doubt is accepted: objects with fields that are not modelled are refused (`load` does so with
        unknown ones), and a pool gives no more devices as long as an allocated claim contradicts what it publishes.
    gang
        A label of pods: those with the same value, in one namespace, are placed all or none.
    across
        Constraints over the claims of each pod, or of all pods of each gang, beside those that these say themselves
        with the annotation ``dralloc.dev/across``: an `Across`, or ``pod:matchAttribute=DOMAIN/NAME`` or
        ``gang:distinctAttribute=DOMAIN/NAME:REQUEST,REQUEST``. Every mode keeps them, and places fewer pods for that.
    caps
        What namespaces may use at most of a counter or capacity, with claims that are allocated already: a `Cap`, or
        ``NAMESPACE=COUNTER:AMOUNT``. First fit and the scheduler do not look at caps; their plans say where they are
        exceeded.
    fair
        A counter or capacity that the namespaces with pending claims are to share fairly: of all optima with the most
        weight the one in which the poorest namespace gets the most, then the poorest two, and so on.
    include
        Pods that Kubernetes does not schedule yet and that are to be placed all the same: ``"gated"``, ``"suspended"``
        or both (see `dralloc.Cluster.including`).
    ignore
        What does not count of that which binds pods to nodes beside devices, e.g. ``"cpu,memory"``: see
        `dralloc.objects.choices.Ignored`. The scheduler looks at all of it, as its configuration says.
    priorities
        ``"strict"``: what is placed at a higher priority is never given up for lower ones. ``"ranked"``: a pod is worth
        one more for each distinct priority below its own.
    objective
        What is maximised within each priority: ``"pods"``; ``"devices"`` or the name of a counter or capacity, of
        which pods count what they ask for at least; or ``"value"``, the annotation ``dralloc.dev/value`` of pods
        and of claims that no pod uses (an integer from 0; 1 without it). Of equal answers the one with the most pods.
    keep
        ``"first-fit"`` or ``"scheduler"``: who is placed by it (with ``seed``) is placed in the optimum, too, as far as
        gangs and caps let it. For `dralloc.allocate` and `dralloc.compare`.
    pruning
        Whether first fit leaves out what cannot change its answer.
    scheduler_config
        A file with the KubeSchedulerConfiguration of mode ``"scheduler"``; without it, kube-scheduler's defaults count.
        ``seed`` is for the order in which it hears of nodes and equally old pods, and for the choice between equally
        good nodes. Nobody is evicted.
    kubernetes
        The version whose kube-scheduler answers in mode ``"scheduler"``, ``"1.34"`` to ``"1.37"``, as far as that is
        not a matter of ``features`` (see `Features.of_kubernetes`); without it, 1.36.

    Raises
    ------
    DrallocError
        A value is of another kind or out of its range, or a cap or a constraint has another form; `ChoiceError` if a
        word is none of those known.

    Examples
    --------
    >>> import dralloc
    >>> choices = dralloc.Choices(goal="spread", nodes=["node-0"])
    >>> dralloc.allocate(dralloc.example(), choices=choices, seed=7)
    <Plan: optimal: 2 of 2 placed, proven optimal>
    """

    nodes: Sequence[str] = ()
    features: Features = ALL_FEATURES
    strict: bool = False
    gang: str = ""
    across: Sequence[Across | str] = ()
    caps: Sequence[Cap | str] = ()
    fair: str = ""
    include: str | Iterable[str] = ()
    ignore: str | Iterable[str] = ()
    priorities: Priorities | PrioritiesName = Priorities.STRICT
    objective: str = ObjectiveWord.PODS
    keep: Keep | KeepName = Keep.NOBODY
    pruning: bool = True
    scheduler_config: str | PathLike[str] | None = None
    kubernetes: str | None = None

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        require_fields(self, _KINDS)
        for name, value in (
            ("nodes", tuple(self.nodes)),
            ("across", parsed_across(self.across)),
            ("caps", parsed_caps(self.caps)),
            (
                "include",
                tuple(sorted(several(Include, "inclusion", self.include))),
            ),
            (
                "ignore",
                tuple(sorted(several(Ignored, "rule to ignore", self.ignore))),
            ),
            ("priorities", chosen(Priorities, "priorities", self.priorities)),
            ("keep", chosen(Keep, "keep", self.keep)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        choices: Choices | None,
        words: NodelessWords,
        *,
        unused: Iterable[str] = (),
    ) -> Choices:
        """Return the choices with some of them made anew.

        Parameters
        ----------
        choices
            What was chosen; None for nothing.
        words
            Choices by name, which come before those.
        unused
            Names of choices which the question does not look at, so that they must not be made.

        Raises
        ------
        DrallocError
            The choices are something else, or one is made that is not looked at; or as `Choices`.
        """
        instance_of(Choices, "Choices").or_none().require("choices", choices)
        merged = replace(choices or cls(), **_known(words))
        for name in unused:
            if getattr(merged, name) != getattr(_USUAL, name):
                raise DrallocError(f"{name}: not a choice of this question")
        return merged


_USUAL = Choices()


def _known(words: NodelessWords) -> NodelessWords:
    """Return the words, each of which names a choice.

    Raises
    ------
    TypeError
        One does not, as for any other call with a keyword that is not there.
    """
    names = [field.name for field in fields(Choices)]
    for word in words:
        if word not in names:
            meant = did_you_mean(word, names)
            raise TypeError(f"{word!r} is no choice of this question{meant}")
    return words


class NodelessWords(TypedDict, total=False):
    """Choices by name, where nodes have a meaning of their own."""

    time_limit: float | None
    seed: int
    workers: int
    goal: Goal | GoalName
    strict_cel: bool
    per_device: bool
    jobs: int
    steps: int | None
    backend: str
    thresholds: Thresholds
    features: Features
    strict: bool
    gang: str
    across: Sequence[Across | str]
    caps: Sequence[Cap | str]
    fair: str
    include: str | Iterable[str]
    ignore: str | Iterable[str]
    priorities: Priorities | PrioritiesName
    objective: str
    keep: Keep | KeepName
    pruning: bool
    scheduler_config: str | PathLike[str] | None
    kubernetes: str | None


class ChoiceWords(NodelessWords, total=False):
    """Choices by name: the fields of `Choices`."""

    nodes: Sequence[str]


Function = TypeVar("Function", bound=Callable[..., object])


def spelled_out(
    words: type[NodelessWords],
) -> Callable[[Function], Function]:
    """Decorate a function that takes choices by name, so that its signature names each of them with its default.

    Parameters
    ----------
    words
        The names that it takes.
    """

    def decorate(function: Function) -> Function:
        written = signature(function)
        # The words by name take the place of ``**words``.
        parameters = [
            parameter
            for parameter in written.parameters.values()
            if parameter.kind is not Parameter.VAR_KEYWORD
        ]
        taken = {parameter.name for parameter in parameters}
        for name, annotation in words.__annotations__.items():
            if name not in taken:
                # A TypedDict keeps an annotation that is a text as a forward reference.
                text = getattr(annotation, "__forward_arg__", annotation)
                parameters.append(
                    Parameter(
                        name,
                        Parameter.KEYWORD_ONLY,
                        default=getattr(_USUAL, name),
                        annotation=text,
                    )
                )
        spelled = written.replace(parameters=parameters)
        setattr(function, "__signature__", spelled)  # noqa: B010
        return function

    return decorate
