"""Selectors that fail on many devices are one line."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dralloc
from dralloc.objects.errors import ExpressionFailure, FatalError
from dralloc.solve.optimum.selector_failures import summed_up
from wire import (
    Json,
    claim,
    cluster,
    device,
    device_class,
    node,
    request,
    resource_slice,
)

_EXPRESSION = "device.attributes['gpu.example.com'].virtual"
_FAILURES = st.builds(
    lambda owner, driver, device, reason: ExpressionFailure(
        f"{owner}: {device}: {reason}",
        what="selector",
        owner=owner,
        expression="virtual",
        driver=driver,
        device=f"{driver}/pool/{device}",
        reason=reason,
    ),
    st.sampled_from(
        ("class x", "class y", "claim default/a", "claim default/b")
    ),
    st.sampled_from(("gpu.example.com", "nic.example.com")),
    st.sampled_from(("d0", "d1", "d2")),
    st.sampled_from(("no such key: virtual", "no such key: other")),
)


def _kind(failure: ExpressionFailure) -> tuple[str, str, str]:
    owner = failure.owner if failure.owner.startswith("class") else "claims"
    return owner, failure.driver, failure.reason


@given(st.lists(_FAILURES, max_size=12))
def test_there_is_a_line_for_each_class_or_expression_and_reason(
    failures: list[ExpressionFailure],
) -> None:
    lines = summed_up(failures)
    assert len(lines) == len(set(map(_kind, failures)))
    for line, kind in zip(
        lines, dict.fromkeys(map(_kind, failures)), strict=True
    ):
        devices = {
            failure.device for failure in failures if _kind(failure) == kind
        }
        match = re.search(r" on (\d+) devices of driver ", line)
        assert (int(match[1]) if match else 1) == len(devices)
        assert line.endswith(f": {kind[2]}")


def test_what_is_no_failure_of_an_expression_stays_as_it_is() -> None:
    assert summed_up([FatalError("b"), FatalError("a"), FatalError("b")]) == (
        "b",
        "a",
    )


@given(_FAILURES)
def test_failures_can_be_sent_to_other_processes(
    failure: ExpressionFailure,
) -> None:
    again = pickle.loads(pickle.dumps(failure))
    assert (str(again), vars(again)) == (str(failure), vars(failure))


def lists() -> list[Json]:
    """Three devices that say whether they are virtual, and 72 that do not."""
    devices = [
        device(f"gpu-{index}", {"virtual": True} if index < 3 else {})
        for index in range(75)
    ]
    return [
        node(),
        device_class("x", _EXPRESSION),
        device_class(),
        resource_slice(devices),
    ]


@pytest.mark.parametrize("per_device", [True, False])
def test_one_line_for_a_class_whoever_asks_for_it(per_device: bool) -> None:
    claims = [
        claim(f"c{index}", request(device_class="x")) for index in range(3)
    ]
    plan = dralloc.allocate(cluster(*lists(), claims), per_device=per_device)
    assert plan.metrics.placed == 3
    told = "selector of class x fails on 72 devices of driver gpu.example.com: no such key: virtual"
    assert plan.warnings == (told,)
    assert plan.to_dict()["warnings"] == [told]


def test_one_line_for_claims_that_say_the_same() -> None:
    claims = [
        claim(f"c{index}", request("r", _EXPRESSION)) for index in range(3)
    ]
    [told] = dralloc.allocate(
        cluster(*lists(), claims), per_device=True
    ).warnings
    assert told.startswith(
        "selector of claim default/c0 and 2 more fails on 72 devices of driver gpu.example.com: "
    )
