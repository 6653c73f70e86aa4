"""What an answer leaves out that looks at devices alone, as those to what-if questions do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from dralloc.api import Pod
from dralloc.choices import Mode
from dralloc.compiler.compile import CompiledCluster
from dralloc.errors import Finding, InputError
from dralloc.modelled import used

__all__ = ["beside_devices"]

_ONLY_DEVICES: Final = "only devices count here, and not what else the pod takes of nodes, nor its rules for other pods"


def beside_devices(compiled: CompiledCluster, pods: Collection[Pod], *, strict: bool) -> tuple[Finding, ...]:
    """What the optimum does not model, of pods that get new devices, too, and what beside devices binds these.

    Raises
    ------
    InputError
        If there is anything, and nothing may be in doubt.
    """
    found = (*compiled.unmodelled({Mode.OPTIMAL}), *_of_running(compiled, pods), *_of_rules(compiled, pods))
    if strict and found:
        raise InputError(found)
    return found


def _of_running(compiled: CompiledCluster, pods: Collection[Pod]) -> Iterator[Finding]:
    """Pods that have a node are not among those of which the compiled cluster knows what is not modelled."""
    for use in used({"Pod": [pod for pod in pods if pod.spec.node_name]}):
        if Mode.OPTIMAL in use.modes:
            yield compiled.cluster.remark(use.about, use.path, use.rule)


def _of_rules(compiled: CompiledCluster, pods: Collection[Pod]) -> Iterator[Finding]:
    bound = list(compiled.pods.bound(pods))
    if bound:
        more = f" (here and in {len(bound) - 1} more)" if len(bound) > 1 else ""
        yield compiled.cluster.remark(bound[0], "spec", f"{_ONLY_DEVICES}{more}")
