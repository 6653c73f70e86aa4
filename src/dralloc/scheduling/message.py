"""The words in which the scheduler says why a pod has no node.

Source: ``FitError`` in ``framework/types.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dralloc.scheduling.plugin import Rejection

__all__ = ["fit_error", "refused"]


def fit_error(nodes: int, rejections: Mapping[Rejection, int], absent: str = "", after: str = "") -> str:
    """The message for a pod.

    Parameters
    ----------
    nodes
        How many there are.
    rejections
        What is against nodes, with the number of these.
    absent
        What is against the nodes for which there is none of these.
    after
        What preemption has to say.
    """
    reasons: Counter[str] = Counter()
    for rejection, number in rejections.items():
        for reason in rejection.reasons:
            reasons[reason] += number
    rest = nodes - sum(rejections.values())
    if absent and rest:
        reasons[absent] += rest
    return _sentence(nodes, sorted(f"{number} {reason}" for reason, number in reasons.items()), after)


def refused(nodes: int, rejection: Rejection, after: str) -> str:
    """The message for a pod that no node could help."""
    return _sentence(nodes, rejection.reasons, after)


def _sentence(nodes: int, reasons: Sequence[str], after: str) -> str:
    against = f"{', '.join(reasons)}." if reasons else ""
    return " ".join(filter(None, (f"0/{nodes} nodes are available:", against, after)))
