"""What an answer says and promises about pods, as far as objects of the API can tell whether it keeps it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dralloc.objects.api import NodeSelector, Pod, TopologySpreadConstraint
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.names import ClaimKey

__all__ = ["Binding", "Filters", "Promise"]


class Binding(NamedTuple):
    """A pod and the name of the node that it gets."""

    pod: ClaimKey
    node: str


def _nothing(_: str) -> bool:
    return False


@dataclass(frozen=True)
class Filters:
    """The filters of kube-scheduler that a pod has to pass.

    Parameters
    ----------
    off
        The names of the plugins that do not count.
    ignores
        Tells which resources NodeResourcesFit does not look at.
    added_affinity
        Selects the only nodes for any pod (``addedAffinity`` of NodeAffinity).
    default_constraints
        Spread pods that say nothing about it beside the others of their controller (``defaultConstraints`` of
        PodTopologySpread).
    """

    off: frozenset[str] = frozenset()
    ignores: Callable[[str], bool] = _nothing
    added_affinity: NodeSelector | None = None
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()


@dataclass(frozen=True)
class Promise:
    """The promises of an answer beside its bindings.

    Parameters
    ----------
    nodes
        The names of the only nodes that there are for it.
    features
        Which feature gates are on.
    in_order
        Whether the bindings are in the order in which pods got their nodes, and are all of them, as kube-scheduler
        answers. If not, they are a batch of pods that ask for devices: each rule is kept in some order of these pods,
        and pods that ask for no devices are placed by others.
    gang_label
        The label of which pods with the same value, in one namespace, are placed all or none; only of a batch.
    filters
        The filters for pods by their ``schedulerName``.
    other_filters
        The filters for pods of any other ``schedulerName``.
    moving
        Pods of the bindings that ran elsewhere before. Their groups were admitted then, and as many of their pods have
        nodes now; that others wait does not hold them back.
    """

    nodes: Sequence[str]
    features: Features = ALL_FEATURES
    in_order: bool = False
    gang_label: str = ""
    filters: Mapping[str, Filters] = field(default_factory=dict)
    other_filters: Filters = Filters()
    moving: Collection[ClaimKey] = frozenset()

    def filters_of(self, pod: Pod) -> Filters:
        """The filters that a pod has to pass."""
        return self.filters.get(pod.spec.scheduler_name, self.other_filters)
