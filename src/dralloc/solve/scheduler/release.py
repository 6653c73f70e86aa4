"""Releases of kube-scheduler: in what they differ, beside the defaults of feature gates.

Sources: the pull requests and issues of kubernetes/kubernetes that are named below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dralloc.objects.features import minor_version

__all__ = ["USUAL", "Release"]


@dataclass(frozen=True)
class Release:
    """The behaviour of a release of kube-scheduler; by default of 1.36, of which the recorded runs are.

    Parameters
    ----------
    scores_alternatives
        Whether nodes with better entries of ``firstAvailable`` are better: since 1.35 (#134711).
    draws_ties
        Whether the choice between equally good nodes is drawn, in whatever order they were found: up to 1.34.
    hears_in_order
        Whether a scheduler that starts hears of nodes and pods by name, as the API server lists them: up to 1.35. Since
        then (``AtomicFIFO`` of client-go) a list is taken over as a whole, by way of a map without order: recorded runs
        of 1.36 show none (rank correlation of attempts with creation below 0.12, ten runs of 400 and 1,000 pods).
    leaks_counters
        Whether devices that taints or constraints refuse, and shared ones that are given back, keep their counters
        until a search ends: up to 1.36 (#140436).
    """

    scores_alternatives: bool = True
    draws_ties: bool = False
    hears_in_order: bool = False
    leaks_counters: bool = True

    @classmethod
    def of(cls, kubernetes: str | None) -> Release:
        """The release of a version of Kubernetes, if one is given.

        Raises
        ------
        DrallocError
            The version is not known.
        """
        if kubernetes is None:
            return USUAL
        minor = minor_version(kubernetes)
        return cls(
            scores_alternatives=minor >= 35,
            draws_ties=minor < 35,
            hears_in_order=minor < 36,
            leaks_counters=minor < 37,
        )


USUAL: Final = Release()
"""The release that is meant if none is named."""
