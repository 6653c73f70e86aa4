"""Devices that leave most to others are tried first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dralloc.objects.quantity import NANOS
from dralloc.problem import Charge, DeviceIndex, Problem, indices
from dralloc.problem.ledger import Ledger
from dralloc.solve.recreate.change import DeviceOrder
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


def orders(problem: Problem, ledger: Ledger) -> list[Sequence[int]]:
    """Twenty orders of all devices; now and then it is the published one."""
    order = DeviceOrder(problem, ledger, np.random.default_rng(0))
    devices = indices(problem.devices)
    return [order.sorted(devices) for _ in range(20)]


def test_the_fullest_shared_device_comes_first() -> None:
    builder = ProblemBuilder()
    for _ in range(3):
        builder.device(0, capacity={"memory": 10})
    builder.pod(builder.claim(AlternativeSpec(capacity={"memory": 1})))
    problem = builder.problem()
    ledger = Ledger(problem)
    for device, used in ((1, 4), (2, 7)):
        charge = Charge(capacity=(("memory", used * NANOS),))
        ledger.enter(problem.devices[DeviceIndex(device)], charge, share=True)
    drawn = orders(problem, ledger)
    assert drawn.count([2, 1, 0]) > 10


def test_the_published_order_is_tried_too() -> None:
    builder = ProblemBuilder()
    for _ in range(2):
        builder.device(0, capacity={"memory": 10})
    problem = builder.problem()
    ledger = Ledger(problem)
    charge = Charge(capacity=(("memory", NANOS),))
    ledger.enter(problem.devices[DeviceIndex(1)], charge, share=True)
    drawn = [list(order) for order in orders(problem, ledger)]
    assert [0, 1] in drawn
    assert [1, 0] in drawn
