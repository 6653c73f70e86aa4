"""Why pods wait, in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dralloc.apply import Question
from dralloc.cluster import Cluster
from dralloc.errors import DrallocError
from dralloc.explain import explain
from dralloc.names import ClaimKey
from dralloc.snapshot import Json

__all__ = ["reasons_for"]

_EXPLAINED: Final = 20
"""How many pods are explained after a batch; pods of one owner share an explanation."""
_CAUSES: Final = 4


def reasons_for(
    question: Question, cluster: Cluster, pods: Mapping[ClaimKey, Json], known: Mapping[ClaimKey, str]
) -> Mapping[ClaimKey, str]:
    """What explain says about each pod, node by node; where it is not asked, what is known.

    Parameters
    ----------
    cluster
        As it is once the others are placed.
    known
        The pods, each with what its plan says.
    """
    said: dict[str, str] = {}
    found = {}
    for key, why in known.items():
        owner = _owner(pods.get(key, {}))
        if owner not in said and len(said) < _EXPLAINED:
            said[owner] = _explained(question, cluster, key) or why
        found[key] = said.get(owner, why)
    return found


def _owner(pod: Json) -> str:
    metadata = pod.get("metadata", {})
    owners: Iterable[Json] = metadata.get("ownerReferences") or ()
    return str(next((one["uid"] for one in owners), metadata.get("uid")))


def _explained(question: Question, cluster: Cluster, key: ClaimKey) -> str:
    try:
        found = explain(cluster, pod=str(key), mode="first-fit", suggest=False, choices=question.choices)
    except DrallocError as error:
        return str(error)
    causes = [f"{len(group.nodes)} nodes: {', '.join(str(cause) for cause in group.causes)}" for group in found.groups]
    return "; ".join(causes[:_CAUSES])
