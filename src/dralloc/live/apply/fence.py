"""Keeps others from allocating what a run is about to write: a fence around pools, taken before, lifted after.

Each part of a fence is one object of the API server, whose label says which run holds it; whoever comes second is
refused, so two runs never write to the same pool at the same time. Here are the kinds of fences;
`dralloc.live.apply.fence_status` says what runs hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Final

from dralloc.live.apply.journal import JournalStep, WriteJournal
from dralloc.live.apply.marks import FENCE
from dralloc.live.apply.run_names import has_ended
from dralloc.live.snapshot import (
    NODES,
    PODS,
    RULES,
    Json,
    ListedKind,
    LiveObjects,
    Refused,
    condition,
    is_current,
    key_of,
)
from dralloc.objects.api import DeviceTaint, ExactDeviceRequest
from dralloc.objects.api.selecting import all_tolerated
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey, PoolID

__all__ = [
    "FENCED_KINDS",
    "Fence",
    "NodeTaintFence",
    "TaintRuleFence",
    "fence_of",
    "held_parts",
    "held_since",
    "lift_all",
    "run_of",
    "unfenced",
    "without_fence",
]

FENCED_KINDS: Final = frozenset((NODES.kind, RULES.kind, PODS.kind))
"""The kinds of objects that are parts of fences; pods are those that ask the scheduler about it."""
_GONE: Final = 404
_NO_SCHEDULE: Final = "NoSchedule"


class Fence:
    """A kind of fence; ``kind`` names it in the journal. This one is none: what others write is only noticed."""

    kind: str = "none"
    is_over: Callable[[str], bool] = staticmethod(has_ended)

    @property
    def toleration(self) -> Json | None:
        """The toleration by which the run's own pods pass; None where the fence is not about pods."""
        return None

    @property
    def is_any(self) -> bool:
        """Whether it is one, which a scheduler has to know of."""
        return False

    def node_of(self, part: str) -> str:  # noqa: ARG002
        """Return the node that a part closes to pods; empty if it closes none."""
        return ""

    def parts(
        self,
        pools: Iterable[PoolID],  # noqa: ARG002
        look: Callable[[], Cluster],  # noqa: ARG002
    ) -> list[str]:
        """Return the names of what has to be taken so that nobody else allocates from the pools.

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

    def sweep(self) -> None:
        """Delete what this run made to ask about the fence, and could not delete at once."""


@dataclass
class TaintRuleFence(Fence):
    """A DeviceTaintRule with NoSchedule for each pool (KEP-5055). Allocated devices are not affected.

    Parameters
    ----------
    is_over
        Whether another run writes nothing any more, by its name: what is left of its fence is taken over.
    """

    objects: LiveObjects
    run: str
    kind: str = "taint rules"
    is_over: Callable[[str], bool] = has_ended

    @property
    def is_any(self) -> bool:
        """It is one."""
        return True

    def parts(
        self,
        pools: Iterable[PoolID],
        look: Callable[[], Cluster],  # noqa: ARG002
    ) -> list[str]:
        """Return the pools, as ``driver/pool``."""
        return sorted(map(str, pools))

    def take(self, part: str) -> bool:
        """Make the rule of a pool, whose name follows from the pool."""
        driver, _, pool = part.partition("/")
        rule = {
            "metadata": {"name": _name(part), "labels": {FENCE: self.run}},
            "spec": {
                "deviceSelector": {"driver": driver, "pool": pool},
                "taint": {"key": FENCE, "effect": _NO_SCHEDULE},
            },
        }
        if is_current(lambda: self.objects.create(RULES, rule)):
            return True
        holders = [
            run_of(held) for held in _found(self.objects, RULES, _name(part))
        ]
        if holders and not self.is_over(holders[0]):
            return self.run in holders
        for holder in holders:
            _lift_rule(self.objects, _name(part), holder)
        return self.take(part)

    def lift(self, part: str) -> None:
        """Delete the rule of a pool. Controllers write its status, so that it may have changed meanwhile."""
        _lift_rule(self.objects, _name(part), self.run)

    def sweep(self) -> None:
        """Delete the pods by which the scheduler was asked whether it is at work."""
        _delete_probes(self.objects, self.run)


@dataclass
class NodeTaintFence(Fence):
    """A taint with NoSchedule on each node that reaches the pools, which every kube-scheduler honours.

    The pods of the run tolerate it from their release on, so that they are bound while nobody else comes. A cordon
    would stop these, too, would let DaemonSets pass, and could not be told from one that an administrator orders.
    """

    objects: LiveObjects
    run: str
    kind: str = "node taints"
    is_over: Callable[[str], bool] = has_ended

    @property
    def is_any(self) -> bool:
        """It is one."""
        return True

    def node_of(self, part: str) -> str:
        """Return the part, which is a node."""
        return part

    @property
    def toleration(self) -> Json:
        """The toleration that the run's own pods are given."""
        return {
            "key": FENCE,
            "operator": "Equal",
            "value": self.run,
            "effect": _NO_SCHEDULE,
        }

    def parts(
        self, pools: Iterable[PoolID], look: Callable[[], Cluster]
    ) -> list[str]:
        """Return the nodes that slices of the pools name; all nodes, where a slice is for several."""
        pool_ids, cluster = frozenset(pools), look()
        specs = [
            published.spec
            for published in cluster.slices
            if published.pool_id in pool_ids
        ]
        if any(spec.node_name is None for spec in specs):
            return sorted(node.name for node in cluster.nodes)
        return sorted(
            {spec.node_name for spec in specs if spec.node_name is not None}
        )

    def take(self, part: str) -> bool:
        """Taint a node in this run's name; one that is gone keeps nobody, and is none that anybody could come to."""
        for node in _found(self.objects, NODES, part):
            holder = run_of(node)
            if holder and not self.is_over(holder):
                return holder == self.run
            taint = {
                "key": FENCE,
                "value": self.run,
                "effect": _NO_SCHEDULE,
                "timeAdded": _now(),
            }
            return self._write(
                node, [*_other_taints(node), taint]
            ) or self.take(part)
        return True

    def lift(self, part: str) -> None:
        """Take this run's taint from a node."""
        for node in _found(self.objects, NODES, part):
            if run_of(node) == self.run and not self._write(
                node, _other_taints(node)
            ):
                self.lift(part)

    def sweep(self) -> None:
        """Delete the pods by which the scheduler was asked whether it knows of the taints."""
        _delete_probes(self.objects, self.run)

    def _write(self, node: Json, taints: list[Json]) -> bool:
        """Return whether the node was still as it was seen: kubelets, and other runs, may write it at any time."""
        change = {
            "metadata": condition(node),
            "spec": {"taints": taints or None},
        }
        return is_current(
            lambda: self.objects.patch(
                NODES, ClaimKey("", node["metadata"]["name"]), change
            )
        )


def unfenced(cluster: Cluster) -> list[ClaimKey]:
    """Return the pending claims that the taint of `TaintRuleFence` keeps from nothing, because they tolerate it."""
    taint = (DeviceTaint(key=FENCE, effect=_NO_SCHEDULE),)
    alternatives = (
        (claim, alternative)
        for claim in cluster.claims
        for _, alternative in claim.spec.devices.alternatives
    )
    keys = (
        claim.key
        for claim, alternative in alternatives
        if not (
            claim.is_allocated
            or (
                isinstance(alternative, ExactDeviceRequest)
                and alternative.admin_access
            )
        )
        and all_tolerated(taint, alternative.tolerations)
    )
    return list(dict.fromkeys(keys))


def _name(pool: str) -> str:
    return f"dralloc-{sha256(pool.encode()).hexdigest()[:20]}"


def _lift_rule(objects: LiveObjects, name: str, run: str) -> None:
    for rule in _found(objects, RULES, name):
        if run_of(rule) == run and not is_current(
            partial(objects.delete, RULES, rule)
        ):
            _lift_rule(objects, name, run)


def _delete_probes(objects: LiveObjects, run: str) -> None:
    for probe in objects.listed(PODS, label=FENCE)["items"]:
        if run_of({**probe, "kind": PODS.kind}) == run:
            _delete_probe(objects, probe)


def _delete_probe(objects: LiveObjects, probe: Json) -> None:
    """Delete a pod that can run nowhere, at once; that it is gone is as good."""
    path = objects.path(PODS, key_of(probe))
    try:
        objects.wire.send("DELETE", path, {}, {"gracePeriodSeconds": 0})
    except Refused as refusal:
        if refusal.status != _GONE:
            raise


def _found(objects: LiveObjects, kind: ListedKind, name: str) -> Iterator[Json]:
    try:
        yield objects.get(kind, ClaimKey("", name))
    except Refused as refusal:
        if refusal.status != _GONE:
            raise


def run_of(part: Json) -> str:
    """Return the run to whose fence a DeviceTaintRule, a node or a pod belongs; empty if to none."""
    if part["kind"] == NODES.kind:
        return next(
            (
                str(taint.get("value", ""))
                for taint in _taints(part)
                if taint.get("key") == FENCE
            ),
            "",
        )
    return str((part["metadata"].get("labels") or {}).get(FENCE, ""))


def held_since(part: Json) -> str:
    """Return when a DeviceTaintRule or a node was fenced; empty if nobody has noted it."""
    if part["kind"] == NODES.kind:
        return next(
            (
                str(node_taint.get("timeAdded") or "")
                for node_taint in _taints(part)
                if node_taint.get("key") == FENCE
            ),
            "",
        )
    return str(part["metadata"].get("creationTimestamp") or "")


def _taints(node: Json) -> list[Json]:
    return list(node.get("spec", {}).get("taints") or ())


def _other_taints(node: Json) -> list[Json]:
    return [taint for taint in _taints(node) if taint.get("key") != FENCE]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_fence(
    resource: Json, is_aside: Callable[[str], bool]
) -> Json | None:
    """Return an object of a snapshot as it would be without the fences of some runs; None for what is nothing else.

    Parameters
    ----------
    is_aside
        Whether a run, by its name, is one of these.
    """
    run = run_of(resource) if resource["kind"] in FENCED_KINDS else ""
    if not run or not is_aside(run):
        return resource
    if resource["kind"] != NODES.kind:
        return None
    return {
        **resource,
        "spec": {**resource["spec"], "taints": _other_taints(resource)},
    }


def lift_all(
    objects: LiveObjects,
    is_over: Callable[[str], bool],
    parts: Iterable[Json] | None = None,
    refused: Callable[[Json, Refused], None] | None = None,
) -> int:
    """Lift what is left of the fences of runs that are over; returns how many parts were lifted.

    Parameters
    ----------
    parts
        DeviceTaintRules, nodes and pods, for who has them at hand; by default they are listed.
    refused
        Is told of each part that may not be lifted, and why; by default the first one ends it.

    Raises
    ------
    Refused
        A part may not be lifted.
    """
    lifted = 0
    for part in held_parts(objects) if parts is None else parts:
        run = run_of(part)
        if not run or not is_over(run):
            continue
        try:
            _lift_part(objects, part, run)
        except Refused as refusal:
            if refused is None:
                raise
            refused(part, refusal)
        else:
            lifted += 1
    return lifted


def _lift_part(objects: LiveObjects, part: Json, run: str) -> None:
    name = part["metadata"]["name"]
    if part["kind"] == NODES.kind:
        NodeTaintFence(objects, run).lift(name)
    elif part["kind"] == PODS.kind:
        _delete_probe(objects, part)
    else:
        _lift_rule(objects, name, run)


def held_parts(objects: LiveObjects) -> Iterator[Json]:
    """Yield the DeviceTaintRules, nodes and pods that belong to the fence of some run, as they are now."""
    for kind in (RULES, NODES, PODS):
        label = FENCE if kind is PODS else ""
        listed: Json = (
            objects.listed(kind, label=label)
            if kind in objects.versions
            else {"items": ()}
        )
        for item in listed["items"]:
            part = {**item, "kind": kind.kind}
            if run_of(part):
                yield part


def fence_of(journal: WriteJournal, objects: LiveObjects, run: str) -> Fence:
    """Return the fence of a run that goes on with what a journal is about."""
    kind = next(journal.of(JournalStep.BEGIN))["fence"]
    fences = (TaintRuleFence(objects, run), NodeTaintFence(objects, run))
    return next((fence for fence in fences if fence.kind == kind), Fence())
