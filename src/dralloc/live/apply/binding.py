"""What becomes of released pods: bound as planned, elsewhere, or not at all within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dralloc.live.apply.units import WrittenDemand
from dralloc.live.snapshot import Json
from dralloc.objects.names import ClaimKey

__all__ = ["BindingWatch"]

_INTERVAL: Final = 0.25
"""Seconds between two looks."""


@dataclass(frozen=True)
class BindingWatch:
    """Looks at pods until each of them is bound.

    Parameters
    ----------
    pods
        All pods of the cluster, as they are now.
    limit
        Seconds without any pod that is newly bound after which the others are given up; 0 looks at none.
    """

    pods: Callable[[], Iterable[Json]]
    limit: float
    pause: Callable[[float], None]

    def differences(self, demands: Iterable[WrittenDemand]) -> Mapping[ClaimKey, str]:
        """Wait for pods; what is not as planned in the end, by pod."""
        wanted = [demand for demand in demands if demand.pod]
        if not wanted or not self.limit:
            return {}
        bound, quiet = -1, 0.0
        while True:
            held = {one["metadata"]["uid"]: one for one in self.pods()}
            verdicts = {
                demand.key: _difference(demand, held.get(demand.pod))
                for demand in wanted
            }
            waiting = sum(verdict is None for verdict in verdicts.values())
            if not waiting or quiet >= self.limit:
                break
            if len(wanted) - waiting > bound:
                bound, quiet = len(wanted) - waiting, 0.0
            self.pause(_INTERVAL)
            quiet += _INTERVAL
        late = {key for key, verdict in verdicts.items() if verdict is None}
        unbound = {
            demand.key: self._unbound(demand, held[demand.pod])
            for demand in wanted
            if demand.key in late
        }
        return {
            **{key: verdict for key, verdict in verdicts.items() if verdict},
            **unbound,
        }

    def _unbound(self, demand: WrittenDemand, pod: Json) -> str:
        conditions = pod.get("status", {}).get("conditions") or ()
        said = next(
            (
                str(one.get("message", ""))
                for one in conditions
                if one.get("type") == "PodScheduled"
            ),
            "",
        )
        where = f" to {demand.node}" if demand.node else ""
        return f"pod {demand.key}: is not bound{where} after {self.limit:g} s" + (
            f": {said}" if said else ""
        )


def _difference(demand: WrittenDemand, pod: Json | None) -> str | None:
    """What is otherwise than planned; empty if nothing is, None as long as nobody can say."""
    if pod is None:
        return f"pod {demand.key}: is gone"
    node = pod.get("spec", {}).get("nodeName")
    if not node:
        return (
            f"pod {demand.key}: is being deleted"
            if pod["metadata"].get("deletionTimestamp")
            else None
        )
    return (
        ""
        if node == (demand.node or node)
        else f"pod {demand.key}: is bound to {node} in place of {demand.node}"
    )
