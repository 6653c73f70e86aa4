"""Keeps others from allocating what a run is about to write: a fence around pools, taken before, lifted after.

Each part of a fence is one object of the API server, whose label says which run holds it; whoever comes
second is refused, so two runs never write to the same pool at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

from dralloc.api import DeviceTaint, ExactDeviceRequest
from dralloc.api.tolerating import CORDON_TAINT, all_tolerated
from dralloc.apply.journal import JournalStep, WriteJournal
from dralloc.apply.marks import FENCE
from dralloc.cluster import Cluster
from dralloc.names import ClaimKey, PoolID
from dralloc.snapshot import LISTED_KINDS, Json, ListedKind, LiveObjects, Refused, condition, is_current

__all__ = [
    "RULES",
    "CordonFence",
    "Fence",
    "TaintRuleFence",
    "fence_of",
    "lift_all",
    "unfenced",
    "without_fence",
]

NODES: Final = next(kind for kind in LISTED_KINDS if kind.kind == "Node")
RULES: Final = next(kind for kind in LISTED_KINDS if kind.kind == "DeviceTaintRule")
_GONE: Final = 404
_KEPT: Final = ".kept"
"""Follows the run in the label of a node that was cordoned before."""


class Fence:
    """A kind of fence; ``kind`` names it in the journal. This one is none: what others write is only noticed."""

    kind: str = "none"

    def parts(self, pools: Iterable[PoolID], look: Callable[[], Cluster]) -> list[str]:  # noqa: ARG002
        """The names of what has to be taken so that nobody else allocates from the pools.

        Parameters
        ----------
        look
            Reads the cluster, for who has to know which nodes reach the pools.
        """
        return []

    def take(self, part: str) -> bool:  # noqa: ARG002
        """Take a part; false if another run holds it. To take it again is no mistake."""
        return True

    def lift(self, part: str) -> None:
        """Let a part go, if it is there and this run's. To let it go again is no mistake."""


@dataclass
class TaintRuleFence(Fence):
    """A DeviceTaintRule with NoSchedule for each pool (KEP-5055). Allocated devices are not affected."""

    objects: LiveObjects
    run: str
    kind: str = "taint rules"

    def parts(self, pools: Iterable[PoolID], look: Callable[[], Cluster]) -> list[str]:  # noqa: ARG002
        """The pools, as ``driver/pool``."""
        return sorted(map(str, pools))

    def take(self, part: str) -> bool:
        """Make the rule of a pool, whose name follows from the pool."""
        driver, _, pool = part.partition("/")
        rule = {
            "metadata": {"name": _name(part), "labels": {FENCE: self.run}},
            "spec": {
                "deviceSelector": {"driver": driver, "pool": pool},
                "taint": {"key": FENCE, "effect": "NoSchedule"},
            },
        }
        if is_current(lambda: self.objects.create(RULES, rule)):
            return True
        there = [_run_of(one) for one in _found(self.objects, RULES, _name(part))]
        return self.run in there if there else self.take(part)

    def lift(self, part: str) -> None:
        """Delete the rule of a pool. Controllers write its status, so that it may have changed meanwhile."""
        for rule in _found(self.objects, RULES, _name(part)):
            if _run_of(rule) == self.run and not is_current(partial(self.objects.delete, RULES, rule)):
                self.lift(part)


@dataclass
class CordonFence(Fence):
    """The nodes that reach the pools, cordoned. Pods that tolerate that, as those of DaemonSets, still come."""

    objects: LiveObjects
    run: str
    kind: str = "cordoned nodes"

    def parts(self, pools: Iterable[PoolID], look: Callable[[], Cluster]) -> list[str]:
        """The nodes that slices of the pools name; all nodes, where a slice is for several."""
        wanted, cluster = frozenset(pools), look()
        specs = [one.spec for one in cluster.slices if one.pool_id in wanted]
        if any(spec.node_name is None for spec in specs):
            return sorted(node.name for node in cluster.nodes)
        return sorted({spec.node_name for spec in specs if spec.node_name is not None})

    def take(self, part: str) -> bool:
        """Cordon a node in this run's name."""
        node = self.objects.get(NODES, ClaimKey("", part))
        held = _run_of(node)
        if held:
            return held == self.run
        kept = _KEPT if node.get("spec", {}).get("unschedulable") else ""
        return self._write(node, self.run + kept, cordoned=True) or self.take(part)

    def lift(self, part: str) -> None:
        """Uncordon a node, unless it was cordoned before."""
        for node in _found(self.objects, NODES, part):
            kept = _mark(node).endswith(_KEPT)
            if _run_of(node) == self.run and not self._write(node, None, cordoned=kept):
                self.lift(part)

    def _write(self, node: Json, mark: str | None, *, cordoned: bool) -> bool:
        """Whether the node was still as it was seen: kubelets, and other runs, may write it at any time."""
        metadata = {**condition(node), "labels": {FENCE: mark}}
        change = {"metadata": metadata, "spec": {"unschedulable": cordoned or None}}
        return is_current(lambda: self.objects.patch(NODES, ClaimKey("", node["metadata"]["name"]), change))


def unfenced(cluster: Cluster) -> list[ClaimKey]:
    """The pending claims that the taint of `TaintRuleFence` keeps from nothing, because they tolerate it."""
    taint = (DeviceTaint(key=FENCE, effect="NoSchedule"),)
    alternatives = ((claim, one) for claim in cluster.claims for _, one in claim.spec.devices.alternatives)
    found = (
        claim.key
        for claim, one in alternatives
        if not (claim.is_allocated or (isinstance(one, ExactDeviceRequest) and one.admin_access))
        and all_tolerated(taint, one.tolerations)
    )
    return list(dict.fromkeys(found))


def _name(pool: str) -> str:
    return f"dralloc-{sha256(pool.encode()).hexdigest()[:20]}"


def _found(objects: LiveObjects, kind: ListedKind, name: str) -> Iterator[Json]:
    try:
        yield objects.get(kind, ClaimKey("", name))
    except Refused as refusal:
        if refusal.status != _GONE:
            raise


def _run_of(one: Json) -> str:
    """The run to whose fence a DeviceTaintRule or a node belongs; empty if to none."""
    return _mark(one).removesuffix(_KEPT)


def _mark(one: Json) -> str:
    return str((one["metadata"].get("labels") or {}).get(FENCE, ""))


def without_fence(one: Json, runs: str) -> Json | None:
    """An object of a snapshot as it would be without the fences of some runs; None for what is nothing else.

    Parameters
    ----------
    runs
        How the names of the runs start; if they start like nothing, all fences count.
    """
    if one["kind"] not in (RULES.kind, NODES.kind) or not runs or not _run_of(one).startswith(runs):
        return one
    if one["kind"] == RULES.kind:
        return None
    if _mark(one).endswith(_KEPT):
        return one
    spec = {key: part for key, part in one.get("spec", {}).items() if key != "unschedulable"}
    spec["taints"] = [taint for taint in spec.get("taints", ()) if taint.get("key") != CORDON_TAINT.key]
    return {**one, "spec": spec}


def lift_all(objects: LiveObjects, prefix: str) -> int:
    """Lift what is left of the fences of runs whose names start like this; returns how many parts there were."""
    lifted = 0
    for kind in (RULES, NODES):
        for one in objects.listed(kind, FENCE)["items"] if kind in objects.versions else ():
            run, name = _run_of(one), one["metadata"]["name"]
            if run.startswith(prefix):
                CordonFence(objects, run).lift(name) if kind is NODES else objects.delete(RULES, one)
                lifted += 1
    return lifted


def fence_of(journal: WriteJournal, objects: LiveObjects) -> Fence:
    """The fence of the run that a journal is about."""
    kind = next(journal.of(JournalStep.BEGIN))["fence"]
    fences = (TaintRuleFence(objects, journal.run), CordonFence(objects, journal.run))
    return next((one for one in fences if one.kind == kind), Fence())
