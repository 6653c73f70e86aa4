"""The choices of users, as one object; it imports nothing heavy, as the command line shows it before anything else.

First the words that users choose from, then how the optimum is searched for (`Options`), then all choices of a question
(`Choices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from inspect import Parameter, signature
from os import PathLike
from typing import Final, Literal, TypedDict, TypeVar

from dralloc.objects.errors import (
    ChoiceError,
    DrallocError,
    ModelError,
    did_you_mean,
)
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.user_rules import Across, Cap, parsed_across, parsed_caps

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

# ----------------------------------------------------------------------------
# What users choose from, by name.

E = TypeVar("E", bound=StrEnum)

MAX_SEED: Final = 2**31 - 1
"""CP-SAT's seed is an int32."""

MAX_WORKERS: Final = 1024
"""Threads or processes; each takes memory, and beyond what an operating system grants the solver ends the process."""


class FenceKind(StrEnum):
    """The kind of fence that keeps others from devices while allocations are written.

    ``DEVICE_TAINTS``: a DeviceTaintRule for each pool (KEP-5055). ``NODE_TAINTS``: a taint on each node that reaches
    one. ``NONE``: nothing. ``AUTO``: the first of them that is sure to work.
    """

    AUTO = "auto"
    DEVICE_TAINTS = "device-taints"
    NODE_TAINTS = "node-taints"
    NONE = "none"


class Mode(StrEnum):
    """The kind of answer.

    ``FIRST_FIT``: upstream's allocator on the nodes in order. ``SCHEDULER``: kube-scheduler, which filters and scores
    nodes around the same allocator. ``OPTIMAL``: as well as possible.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.allocate(dralloc.example(), dralloc.Mode.FIRST_FIT)
    <Plan: first-fit: 1 of 2 placed, nothing proven>
    """

    FIRST_FIT = "first-fit"
    SCHEDULER = "scheduler"
    OPTIMAL = "optimal"


ModeName = Literal["first-fit", "scheduler", "optimal"]
"""A mode by its name."""

PolicyName = Literal["priority-ordered", "best-fit", "fgd", "density"]
"""A policy that dralloc knows, by its name: see `dralloc.solve.policies.table`."""

AnswerName = Literal[
    "optimal",
    "scheduler",
    "first-fit",
    "priority-ordered",
    "best-fit",
    "fgd",
    "density",
]
"""A mode or a policy by its name."""

AllocatorName = Literal["first-fit", "optimal"]
"""A mode whose answers are compared with recorded ones of the allocator."""


class Goal(StrEnum):
    """The preference among the answers that place the most demands with the best alternatives.

    ``FEWEST_NODES``: the smallest number of nodes that get a placement.
    ``FEWEST_DEVICES``: the smallest number of devices that were free and no longer are; one more share of a device
    that is already shared costs nothing, nor does admin access.
    ``LEAST_FRAGMENTATION``: the smallest number of untouched units that get touched. A unit is a counter set (the GPU
    that partitions are cut from, KEP-4815), or a device that draws on no counters. It is untouched as long as no
    allocation without admin access draws on it. Fewer touched units leave more of them whole for later requests that
    need a whole one.
    ``SPREAD``: the smallest largest number of demands on one node, so that the loss of any node costs as few demands
    as possible. (The number of used nodes would not tell 10 + 10 from 19 + 1.)
    ``NONE``: no preference.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.allocate(dralloc.example(), goal=dralloc.Goal.FEWEST_NODES).metrics.nodes
    1
    """

    FEWEST_NODES = "fewest-nodes"
    FEWEST_DEVICES = "fewest-devices"
    LEAST_FRAGMENTATION = "least-fragmentation"
    SPREAD = "spread"
    NONE = "none"


GoalName = Literal[
    "fewest-nodes", "fewest-devices", "least-fragmentation", "spread", "none"
]
"""A goal by its name."""


class Priorities(StrEnum):
    """The worth of pods of higher priority.

    ``STRICT``: more than all pods of lower priorities together. ``RANKED``: one more for each distinct priority below,
    so that several less important pods can push out an important one.
    """

    STRICT = "strict"
    RANKED = "ranked"


PrioritiesName = Literal["strict", "ranked"]
"""Priorities by their name."""


class ObjectiveWord(StrEnum):
    """The amount that is maximised within each priority.

    ``PODS``: how many pods (and claims that no pod uses) are placed. ``DEVICES``: how many devices they ask for at
    least. ``VALUE``: the values that an annotation of pods gives. Anything else is the name of a counter or a capacity.
    """

    PODS = "pods"
    DEVICES = "devices"
    VALUE = "value"


class Keep(StrEnum):
    """The mode whose placed pods stay placed: the optimum places each of them, too, maybe elsewhere."""

    NOBODY = "nobody"
    FIRST_FIT = "first-fit"
    SCHEDULER = "scheduler"


KeepName = Literal["nobody", "first-fit", "scheduler"]
"""Whom to keep, by name."""


class Include(StrEnum):
    """Pods that Kubernetes does not schedule yet, to be planned for as if it did."""

    GATED = "gated"
    SUSPENDED = "suspended"


class Ignored(StrEnum):
    """The rules beside devices that bind pods to nodes and may be left out: resources, or rules of pods and nodes.

    ``EXTENDED``: what device plugins offer. ``AFFINITY``: required affinity and anti-affinity to other pods.
    """

    CPU = "cpu"
    MEMORY = "memory"
    STORAGE = "ephemeral-storage"
    PODS = "pods"
    HUGEPAGES = "hugepages"
    EXTENDED = "extended"
    PORTS = "ports"
    AFFINITY = "affinity"
    SPREAD = "spread"
    TAINTS = "taints"

    @classmethod
    def of_resource(cls, name: str) -> Ignored:
        """Return the kind of rule that a resource of nodes belongs to."""
        if name.startswith("hugepages-"):
            return cls.HUGEPAGES
        return (
            cls(name)
            if name in (cls.CPU, cls.MEMORY, cls.STORAGE, cls.PODS)
            else cls.EXTENDED
        )


class Durations(StrEnum):
    """The distribution of durations around their mean.

    ``FIXED``: all are the mean. ``EXPONENTIAL``: without memory. ``LOGNORMAL`` and ``PARETO``: heavy-tailed, most are
    short and a few take most of the time.
    """

    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"
    PARETO = "pareto"


class Backend(StrEnum):
    """The library that runs tasks in parallel.

    ``LOKY``: processes on this machine. ``DASK``: the Dask cluster of the current ``distributed.Client``, or of Dask's
    configured scheduler address, or one on this machine. ``RAY``: the Ray cluster that is initialised or that
    ``RAY_ADDRESS`` names, or one on this machine.
    """

    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


def chosen(choices: type[E], subject: str, word: str) -> E:
    """Return the member that a word stands for.

    Raises
    ------
    ChoiceError
        There is none.
    """
    try:
        return choices(word)
    except ValueError:
        raise ChoiceError(subject, word, choices) from None


def several(
    choices: type[E], subject: str, texts: str | Iterable[str]
) -> frozenset[E]:
    """Return the members that one or several words stand for; one of them may be several, with commas.

    Raises
    ------
    ChoiceError
        A word stands for nothing.
    """
    words = (
        word.strip()
        for text in ([texts] if isinstance(texts, str) else texts)
        for word in text.split(",")
    )
    return frozenset(chosen(choices, subject, word) for word in words if word)


# ----------------------------------------------------------------------------
# How the optimum is searched for.


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
        A value is out of its range (`ModelError`), or there is no such goal or backend (`ChoiceError`).

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


# ----------------------------------------------------------------------------
# All choices of a question: what is looked at, and how the optimum is searched for.
#
# A new choice is a field of `Options` or `Choices`, its type once more in
# `NodelessWords` (a test holds both the same), and an option of the command line in
# `dralloc.cli.option_sets`.


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
        A value is out of its range, or a cap or a constraint has another form; `ChoiceError` if a word is none of those
        known.

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
            A choice is made that is not looked at; or as `Choices`.
        """
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
        parameters = [
            parameter
            for parameter in written.parameters.values()
            if parameter.kind is not Parameter.VAR_KEYWORD
        ]
        taken = {parameter.name for parameter in parameters}
        for name, annotation in words.__annotations__.items():
            if name not in taken:
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
