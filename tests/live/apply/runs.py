"""Short ways to runs against the simulated API server."""

from __future__ import annotations

from typing import Any

from dralloc.live.apply import ApplyRun, Question, Selection, TaintRuleFence
from dralloc.live.snapshot import (
    ApiServer,
    LiveObjects,
    ReadLimits,
    Wire,
    served,
    take_snapshot,
)
from dralloc.objects.choices import Mode
from wire import (
    Json,
    claim,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

GATE = "dralloc.dev/batch"


def gated(name: str, *claims: str, **spec: Any) -> Json:
    """A pod that waits for dralloc."""
    return pod(name, *claims, schedulingGates=[{"name": GATE}], **spec)


def small_cluster() -> list[Json]:
    """A node with three devices, a gated pod with one claim, a pending pod with another."""
    return [
        node(),
        device_class(),
        resource_slice(gpus(3)),
        claim("a", request()),
        claim("b", request()),
        gated("train", "a"),
        pod("serve", "b"),
    ]


def run_on(
    wire: Wire,
    name: str = "run-1",
    kind: type[ApplyRun] = ApplyRun,
    **options: Any,
) -> ApplyRun:
    """A run that waits for nothing."""
    reader = ApiServer(wire, ReadLimits(), verified=True)
    objects = LiveObjects(wire, served(reader), dry=options.pop("dry", False))
    settings: dict[str, Any] = {
        "objects": objects,
        "source": lambda: take_snapshot(reader, untrimmed=True),
        "question": Question(Mode.FIRST_FIT),
        "selection": Selection(),
        "fence": TaintRuleFence(objects, name),
        "name": name,
        "wait": 0,
        "settle": 0,
        "watch": 0,
        "pause": lambda _seconds: None,
    }
    return kind(**{**settings, **options})
