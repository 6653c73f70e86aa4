"""Recorded runs of kube-scheduler, replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product
from typing import Final

from dralloc.ask.answer_checks import check_bindings
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.outcomes import CaseOutcome
from dralloc.lint.conformance.replay import Replay
from dralloc.objects.api import Node
from dralloc.objects.errors import CheckError, Finding, InputError
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.limits import LIMITS
from dralloc.objects.load import load_documents
from dralloc.objects.load.yaml_text import documents_of
from dralloc.objects.names import ClaimKey
from dralloc.problem import NodeIndex, Numbered, indices, numbered
from dralloc.solve.scheduler import Profile, profiles_of

__all__ = ["run_scheduler"]

_MOST_ORDERS: Final = 64
_RECORDED: Final = ALL_FEATURES.switched({"DRAPreemption": False})
"""No scheduler that was recorded has it (KEP-5690)."""
_PROFILE: Final = "scheduler"


def run_scheduler(run: Json) -> CaseOutcome:
    """Replay a run.

    In which order the scheduler heard of the nodes is not in a recording. It matters where nodes disagree on the size
    of an image: then the run passes if it does for one of the sizes.

    Parameters
    ----------
    run
        ``objects`` before the scheduler started, its ``config``, its ``attempts``, and ``claims`` with their status in
        the end.
    """
    documents, failure = documents_of(
        str(run["config"]).encode(), "config", LIMITS.aliases
    )
    if failure is not None or not documents:
        raise InputError(
            [Finding(run["name"], "config", "", failure or "is empty")]
        )
    compiled = compile_cluster(
        load_documents(run["objects"], source=run["name"]),
        features=_RECORDED,
    )
    profiles = profiles_of(documents[0], "config")
    replays = []
    for order in islice(_orders(compiled.cluster.nodes), _MOST_ORDERS):
        replays.append(Replay(run, compiled, profiles, order))
        if not replays[-1].difference:
            break
    # If no order agrees, the one that agrees longest says most. One that agrees on all attempts may differ in devices.
    longest = max(
        replays, key=lambda replay: (not replay.difference, replay.agreed)
    )
    difference = longest.difference or _broken_rules(run, compiled, profiles)
    return CaseOutcome(run["name"], _PROFILE, longest.attempts, difference)


def _broken_rules(
    run: Json, compiled: CompiledCluster, profiles: Sequence[Profile]
) -> str:
    """Return the violations that the checker of objects finds in the recorded bindings; empty if there are none."""
    bindings = [
        (ClaimKey.parse(recorded["pod"]), recorded["node"])
        for recorded in run["attempts"]
        if recorded["outcome"] == "bound"
    ]
    try:
        check_bindings(compiled, profiles, bindings)
    except CheckError as error:
        return f"bindings: {error}"
    return ""


def _orders(nodes: Numbered[NodeIndex, Node]) -> Iterator[Sequence[NodeIndex]]:
    """Yield orders of the nodes such that for each image each of its sizes is once the first."""
    firsts: dict[str, dict[int, NodeIndex]] = {}
    for node_index, node in numbered(nodes):
        for image in node.status.images:
            for name in image.names:
                firsts.setdefault(name, {}).setdefault(
                    image.size_bytes, node_index
                )
    disputed = [sizes.values() for sizes in firsts.values() if len(sizes) > 1]
    for chosen in product(*disputed):
        yield list(dict.fromkeys(chain(chosen, indices(nodes))))
