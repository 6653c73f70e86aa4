"""Hypothesis strategies of problems with constraints over the claims of a pod, or of a group of pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from hypothesis import strategies as st

from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    Device,
    DeviceIndex,
    Node,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Scalar,
    Scope,
    SlotIndex,
    Usage,
)
from inventory_strategies import rarely
from strategies import TableEligibility

__all__ = ["bound_claims"]

X, Y, Z = (frozenset({("string", value)}) for value in "xyz")
VALUES: Sequence[frozenset[Scalar] | None] = (
    X,
    X,
    X,
    Y,
    Y,
    Y,
    Z,
    X | Y,
    frozenset(),
    None,
)
"""What devices carry: one value, a list of two, one that cannot be compared, or none."""


@st.composite
def bound_claims(
    draw: st.DrawFn,
    max_pods: int = 3,
    max_devices: int = 3,
    *,
    groups: bool = True,
    allocated: bool = False,
) -> Problem:
    """Draw up to three nodes with some devices each, and pods whose claims are under common constraints.

    ``groups``: whether pods share claims, and constraints. ``allocated``: whether the common constraint is always one
    with devices that are allocated already; otherwise it is so now and then.
    """
    homes = [
        node
        for node in range(draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, max_devices)))
    ]
    alternative_indices = map(AlternativeIndex, count())
    shared = (
        draw(_claims("shared", alternative_indices))
        if groups and draw(st.booleans())
        else None
    )
    group = draw(
        _constraints(
            "team" if groups and draw(st.integers(0, 2)) else "",
            allocated=allocated,
        )
    )
    return Problem(
        demands=tuple(
            draw(_demands(pod, alternative_indices, shared, group))
            for pod in range(draw(st.integers(1, max_pods)))
        ),
        nodes=tuple(
            Node(
                f"node-{node}",
                (
                    PoolAccess(
                        PoolID("gpu", f"node-{node}"),
                        PoolState.USABLE,
                        _of(homes, node),
                    ),
                ),
            )
            for node in range(homes[-1] + 1)
        ),
        devices=tuple(
            draw(_devices(SlotIndex(slot), node))
            for slot, node in enumerate(homes)
        ),
        counters=(),
        usage=Usage(frozenset(), {}, {}),
        eligibility=TableEligibility(),
    )


def _of(homes: Sequence[int], node: int) -> tuple[DeviceIndex, ...]:
    return tuple(
        DeviceIndex(device) for device, home in enumerate(homes) if home == node
    )


@st.composite
def _devices(draw: st.DrawFn, slot: SlotIndex, node: int) -> Device:
    attributes = {
        name: values
        for name in ("root", "rail")
        if (values := draw(st.sampled_from(VALUES))) is not None
    }
    return Device(
        DeviceID("gpu", f"node-{node}", f"gpu-{slot}"),
        slot,
        0,
        draw(rarely()),
        {},
        (),
        attributes,
        None,
    )


@st.composite
def _claims(
    draw: st.DrawFn, name: str, alternative_indices: Iterator[AlternativeIndex]
) -> Claim:
    """A claim for one or two devices, now and then for admin access; the second request may be a list."""
    only = Alternative(
        next(alternative_indices),
        RequestName("a"),
        0,
        draw(st.sampled_from((1, 1, 1, 2))),
        admin=draw(rarely()),
    )
    first = Request("a", (only,))
    entries = tuple(
        Alternative(next(alternative_indices), RequestName("b", sub), rank, 1)
        for rank, sub in enumerate("xy")
    )
    single = (Alternative(next(alternative_indices), RequestName("b"), 0, 1),)
    requests = draw(
        st.sampled_from(
            (
                (first,),
                (first,),
                (first, Request("b", single)),
                (first, Request("b", entries)),
            )
        )
    )
    return Claim(ClaimKey("default", name), "", requests)


@st.composite
def _constraints(
    draw: st.DrawFn, group: str, *, allocated: bool = False
) -> Constraint:
    held = (
        draw(st.sampled_from((X, Y, X | Y, frozenset())))
        if allocated or draw(rarely())
        else None
    )
    return Constraint(
        kind=draw(st.sampled_from(ConstraintKind)),
        attribute=draw(st.sampled_from(("root", "rail"))),
        requests=draw(
            st.sampled_from(
                (frozenset(), frozenset(), frozenset({"a"}), frozenset({"b/x"}))
            )
        ),
        scope=Scope(0, group, () if held is None else (held,)),
    )


@st.composite
def _demands(
    draw: st.DrawFn,
    pod: int,
    alternative_indices: Iterator[AlternativeIndex],
    shared: Claim | None,
    group: Constraint,
) -> Demand:
    names = [
        f"claim-{pod}{letter}"
        for letter in "ab"[: draw(st.sampled_from((1, 1, 2)))]
    ]
    claims = [draw(_claims(name, alternative_indices)) for name in names]
    claims += [shared] if shared and draw(st.booleans()) else []
    own: list[Constraint] = []
    if draw(st.booleans()):
        own.append(replace(draw(_constraints("")), scope=Scope(1)))
    if draw(st.booleans()):
        own.append(group)
    return Demand(
        key=ClaimKey("default", f"pod-{pod}"),
        claims=tuple(
            replace(claim, constraints=tuple(own)) for claim in claims
        ),
        weight=draw(st.integers(0, 3)),
        gang=draw(st.sampled_from(("", "", "gang"))),
        quorum=2,
    )
