"""Chooses the fence: DeviceTaintRules only where the scheduler is sure to honour them, else taints of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dralloc.live.apply.executor import PODS
from dralloc.live.apply.fence import RULES, Fence, NodeTaintFence, TaintRuleFence
from dralloc.live.apply.releases import (
    KubernetesVersion,
    RuleSupport,
    running_schedulers,
    support_of,
)
from dralloc.live.snapshot import LiveObjects, Refused
from dralloc.objects.choices import FenceKind
from dralloc.objects.errors import ApplyError

__all__ = ["FenceChoice", "fence_for"]

_SYSTEM = "kube-system"


@dataclass(frozen=True)
class FenceChoice:
    """A fence, and why it is this one."""

    fence: Fence
    why: str

    @property
    def reason(self) -> str:
        """Both, in a line."""
        return f"{self.fence.kind}: {self.why}"


def fence_for(
    kind: FenceKind,
    objects: LiveObjects,
    run: str,
    is_over: Callable[[str], bool] = lambda _run: False,
) -> FenceChoice:
    """Return the fence of a run on a cluster.

    Parameters
    ----------
    is_over
        Whether another run writes nothing any more, by its name.

    Raises
    ------
    ApplyError
        DeviceTaintRules are asked for where they are known to keep nobody away.
    """
    rules, nodes = (
        TaintRuleFence(objects, run, is_over=is_over),
        NodeTaintFence(objects, run, is_over=is_over),
    )
    match kind:
        case FenceKind.NONE:
            return FenceChoice(Fence(), "as asked")
        case FenceKind.NODE_TAINTS:
            return FenceChoice(nodes, "as asked")
        case FenceKind.AUTO | FenceKind.DEVICE_TAINTS:
            support = _support(objects)
    served = RULES in objects.versions
    why = (
        f"kube-scheduler {support.value}"
        if served
        else "the API server serves no DeviceTaintRules"
    )
    if kind is FenceKind.AUTO:
        return FenceChoice(
            rules if served and support is RuleSupport.WORKS else nodes, why
        )
    if not served or support not in (RuleSupport.WORKS, RuleSupport.UNKNOWN):
        raise ApplyError(
            f"--fence device-taints: {why}; --fence node-taints works everywhere"
        )
    return FenceChoice(rules, why)


def _support(objects: LiveObjects) -> RuleSupport:
    """What the schedulers of a cluster do about DeviceTaintRules, by their pods and the version of the API server."""
    try:
        pods = objects.listed(PODS, namespace=_SYSTEM)["items"]
    except Refused:  # not everybody may look there
        pods = []
    try:
        server = KubernetesVersion.parse(
            str(objects.wire.send("GET", "/version").get("gitVersion"))
        )
    except Refused:
        server = None
    return support_of(server, running_schedulers(pods))
