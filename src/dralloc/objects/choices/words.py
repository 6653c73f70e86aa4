"""The words that users choose from."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Literal, TypeVar

from dralloc.objects.errors import ChoiceError

__all__ = [
    "MAX_SEED",
    "MAX_WORKERS",
    "AllocatorName",
    "AnswerName",
    "Backend",
    "Durations",
    "FenceKind",
    "Goal",
    "GoalName",
    "Ignored",
    "Include",
    "Keep",
    "KeepName",
    "Mode",
    "ModeName",
    "ObjectiveWord",
    "PolicyName",
    "Priorities",
    "PrioritiesName",
    "chosen",
    "several",
]

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
