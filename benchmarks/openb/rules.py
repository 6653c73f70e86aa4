"""Two of the published policies by the rules of those who published them: Random, and fragmentation gradient descent.

Source: hkust-adsl/kubernetes-scheduler-simulator, the plugins RandomScore, FGDScore and Open-Gpu-Share, whose rules are
written down here anew. What differs from dralloc's policy ``fgd``, which knows devices of any sort:

- a score is a whole number from 0 to 100, the sigmoid of what is gained, so that many nodes are equally good; of these
  the first by name is taken (their scheduler does not draw among ties, which is worth two percent of all GPUs);
- the mix of pods is that of the list, as far as the most frequent ones make up 95% of it;
- fragmentation is in thousandths of GPUs and looks at cores and models, not at memory;
- a share of a GPU may go to any GPU of the node, whole GPUs are the first that are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.openb.trace import WHOLE, TraceNode, TracePod

__all__ = ["PUBLISHED_RULES", "Spot", "spots"]

PUBLISHED_RULES: Final = ("random", "fgd-as-published")
"""The policies by name."""

_BEST: Final = 100
_UNFIT: Final = -1
_MIX_PERCENT: Final = 95
_MIX_STEP: Final = 10
"""The mix grows by so many kinds at a time until it is that part of all pods."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spot:
    """The node of a pod, and its GPUs there, by number."""

    node: int
    gpus: tuple[int, ...]


class _Room:
    """What is left of a node."""

    def __init__(self, node: TraceNode) -> None:
        self.cpu, self.memory, self.model = node.cpu, node.memory, node.model
        self.gpus = [WHOLE] * node.gpus

    def holds(self, pod: TracePod) -> bool:
        """Return whether a pod fits."""
        if self.cpu < pod.cpu or self.memory < pod.memory:
            return False
        if pod.gpus and pod.models and self.model not in pod.models:
            return False
        return (
            sum(free_milli >= pod.milli for free_milli in self.gpus) >= pod.gpus
        )

    def choices(self, pod: TracePod) -> list[tuple[int, ...]]:
        """Return the GPUs that a pod could get: one choice for each GPU that it could share, else one."""
        able = [
            gpu
            for gpu, free_milli in enumerate(self.gpus)
            if free_milli >= pod.milli
        ]
        if pod.gpus == 1 and pod.milli < WHOLE:
            return [(gpu,) for gpu in able]
        return [tuple(able[: pod.gpus])]

    def take(self, pod: TracePod, gpus: Sequence[int]) -> None:
        """Enter a pod."""
        self.cpu -= pod.cpu
        self.memory -= pod.memory
        for gpu in gpus:
            self.gpus[gpu] -= pod.milli

    @property
    def state(self) -> tuple[object, ...]:
        """All that a score depends on."""
        return self.model, self.cpu, self.memory, *self.gpus


def spots(
    policy: str,
    nodes: Sequence[TraceNode],
    workload: Sequence[TracePod],
    arrivals: Sequence[TracePod],
    seed: int,
) -> list[Spot | None]:
    """Return where each arrival goes; None for one that fits nowhere, which does not come back.

    Parameters
    ----------
    policy
        One of `PUBLISHED_RULES`.
    workload
        The list of pods from which arrivals are drawn: what the mix is known from.
    """
    random = Random(f"{policy}:{seed}")
    rooms = [_Room(node) for node in nodes]
    kinds = {replace(pod, name=""): None for pod in arrivals}
    scores: _Scores = _Scores(list(kinds), rooms, None)
    if policy == PUBLISHED_RULES[1]:
        scores = _Scores(list(kinds), rooms, _Fragments(workload))
    assignment: list[Spot | None] = []
    for pod in arrivals:
        best_nodes = scores.best_nodes(pod)
        if not best_nodes.size:
            assignment.append(None)
            continue
        draws = policy == PUBLISHED_RULES[0]
        choice = random.randrange(best_nodes.size) if draws else 0
        node = int(best_nodes[choice])
        gpus = scores.gpus(pod, node)
        chosen = gpus[random.randrange(len(gpus))]
        rooms[node].take(pod, chosen)
        scores.update(node)
        assignment.append(Spot(node, chosen))
    return assignment


class _Scores:
    """The score of each node for each kind of pod; without a measure of fragments all that fit are equal."""

    def __init__(
        self,
        kinds: Sequence[TracePod],
        rooms: Sequence[_Room],
        fragments: _Fragments | None,
    ) -> None:
        self._kinds = kinds
        self._row_of = {kind: row for row, kind in enumerate(kinds)}
        self._rooms = rooms
        self._fragments = fragments
        self._known: dict[tuple[object, ...], list[int]] = {}
        columns = [self._column(room) for room in rooms]
        self._scores = np.array(columns, np.int16).T.copy()

    def best_nodes(self, pod: TracePod) -> Integers:
        """Return the nodes with the best score; none if the pod fits nowhere."""
        scores = self._scores[self._row_of[replace(pod, name="")]]
        best = scores.max(initial=_UNFIT)
        if best == _UNFIT:
            return np.empty(0, np.int64)
        return np.flatnonzero(scores == best)

    def gpus(self, pod: TracePod, node: int) -> list[tuple[int, ...]]:
        """Return the GPUs to choose from: the first with the best score, or any."""
        choices = self._rooms[node].choices(pod)
        if self._fragments is None or len(choices) < 2:
            return choices
        rates = self._fragments.scores(
            self._rooms[node], [(pod, gpus) for gpus in choices]
        )
        return [choices[rates.index(max(rates))]]

    def update(self, node: int) -> None:
        """Rate a node again that has changed."""
        self._scores[:, node] = self._column(self._rooms[node])

    def _column(self, room: _Room) -> list[int]:
        if room.state not in self._known:
            self._known[room.state] = self._rated(room)
        return self._known[room.state]

    def _rated(self, room: _Room) -> list[int]:
        rates = [0 if room.holds(kind) else _UNFIT for kind in self._kinds]
        if self._fragments is None:
            return rates
        rows: list[int] = []
        attempts: list[tuple[TracePod, tuple[int, ...]]] = []
        for row, kind in enumerate(self._kinds):
            if rates[row] == _UNFIT:
                continue
            # GPUs with as much left are as good.
            distinct = {
                tuple(room.gpus[gpu] for gpu in gpus): gpus
                for gpus in room.choices(kind)
            }
            for gpus in distinct.values():
                rows.append(row)
                attempts.append((kind, gpus))
        scores = self._fragments.scores(room, attempts)
        for row, score in zip(rows, scores, strict=True):
            rates[row] = max(rates[row], score)
        return rates


class _Fragments:
    """How much of a node's GPUs the pods of the mix cannot use on average."""

    def __init__(self, workload: Sequence[TracePod]) -> None:
        tally = Counter(
            replace(pod, name="", memory=0) for pod in workload
        ).most_common()
        total = sum(count for _, count in tally)
        shown = covered = 0
        while 100 * covered < _MIX_PERCENT * total:
            covered += sum(
                count for _, count in tally[shown : shown + _MIX_STEP]
            )
            shown += _MIX_STEP
        mix = tally[:shown]
        self._pods = [pod for pod, _ in mix]
        self._shares = np.array([count / covered for _, count in mix])
        self._cpu = np.array([pod.cpu for pod in self._pods], np.int64)
        self._milli = np.array([pod.milli for pod in self._pods], np.int64)
        self._number = np.array([pod.gpus for pod in self._pods], np.int64)
        self._welcome: dict[str, NDArray[np.bool_]] = {}

    def scores(
        self,
        room: _Room,
        attempts: Sequence[tuple[TracePod, tuple[int, ...]]],
    ) -> list[int]:
        """Return the score of a node for some pods, each on some GPUs."""
        if not attempts:
            return []
        cpu = np.array(
            [room.cpu, *(room.cpu - pod.cpu for pod, _ in attempts)], np.int64
        )
        free_milli = np.array([room.gpus] * len(cpu), np.int64)
        for row, (pod, gpus) in enumerate(attempts, 1):
            free_milli[row, list(gpus)] -= pod.milli
        amounts = self._amounts(room.model, cpu, free_milli)
        gained = (amounts[0] - amounts[1:]) / WHOLE
        rates = _BEST / (1 + np.exp(-gained))
        return [int(rate) for rate in rates]

    def _amounts(
        self, model: str, cpu: Integers, free_milli: Integers
    ) -> Floats:
        """Return the expected fragments for each row of what is left."""
        if model not in self._welcome:
            self._welcome[model] = np.array(
                [not pod.models or model in pod.models for pod in self._pods]
            )
        able = free_milli[:, None, :] >= self._milli[None, :, None]
        fits = (
            (able.sum(axis=2) >= self._number)
            & (cpu[:, None] >= self._cpu)
            & self._welcome[model]
            # A pod without GPUs can use none of what is left.
            & (self._milli > 0)
        )
        too_small = np.where(able, 0, free_milli[:, None, :]).sum(axis=2)
        total = free_milli.sum(axis=1)[:, None]
        amounts: Floats = np.where(fits, too_small, total) @ self._shares
        return amounts
